//! The wire: OTLP requests and pprof files of what a window holds.

mod attributes;
mod dictionary;
mod otlp_profiles;
mod otlp_traces;
mod pprof;
mod protobuf;

pub use otlp_profiles::{SampleShape, profile_requests};
pub use otlp_traces::trace_requests;
pub use pprof::pprof_file;
