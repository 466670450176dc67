//! OTLP in: against the generated types, against other versions, against damage.

mod builder;
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
