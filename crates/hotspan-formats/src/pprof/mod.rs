//! pprof, the format of Go's profiler and of most others.
//!
//! ```text
//!  bytes --scan--> Outline --Symbols--> frames of each location --decode--> ProfileSet
//! ```
//!
//! The string table usually comes last, so a first pass only notes where each message lies; samples are decoded
//! in a second one, when every name is known. Nothing is copied but the names of what is interned.

mod decode;
mod encode;
mod outline;
mod sample_labels;
mod symbols;

pub use decode::decode;
pub use encode::{Header, PprofLabel, PprofWriter, encode};

const FORMAT: &str = "pprof";
