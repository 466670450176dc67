//! OTLP: traces and profiles, as protobuf and as JSON, into the model; answers back.
//!
//! ```text
//!  protobuf ---------------------> wire -> traces    -> TraceSink (spans one by one)
//!  JSON -> json (as protobuf) --->      -> profiles  -> ProfileSet
//!                                        -> outcome  -> response (partial success, status)
//! ```
//!
//! There is one reader for each signal: JSON is translated to the same bytes first, so that both encodings mean
//! the same thing by construction. Broken bytes refuse the whole request; a span, sample or profile that is well
//! formed but makes no sense is refused alone, counted, and named in the answer (R4, R7).

mod attributes;
mod fault;
mod field_path;
pub mod json;
mod outcome;
mod profiles;
mod resource;
pub mod response;
mod traces;
mod wire;

pub use outcome::{Outcome, Reason};
pub use profiles::{WireVersion, decode_profiles, decode_profiles_as};
pub use traces::decode_traces;
