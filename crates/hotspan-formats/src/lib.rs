//! Wire and file formats, to and from the model. No I/O: bytes in, model out, and back.

pub mod compression;
mod decode_options;
mod expand;
mod file_error;
mod label_roles;
pub mod limits;
mod naming;
pub mod pprof;
mod protobuf;
mod set_builder;
pub mod span_identity;

pub use compression::{DecompressError, Encoding, decompress};
pub use decode_options::{DecodeOptions, SampleTypeConfig, TextType};
pub use expand::{expanded, gzip};
pub use file_error::{Fault, FileError};
pub use limits::Limits;
