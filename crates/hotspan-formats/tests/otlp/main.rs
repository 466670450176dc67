//! OTLP in: against the generated types, against other versions, against damage.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

mod builder;
mod corpus;
mod dice;
mod encode;
mod hostile;
mod json;
mod profile_cases;
mod profile_oracle;
mod profiles;
mod random_profiles;
mod random_traces;
mod response;
mod trace_oracle;
mod traces;
mod versions;
