//! Wire and file formats, to and from the model. No I/O: bytes in, model out, and back.
//!
//! Every byte is taken for hostile: nothing here panics, recurses without bound or takes memory that the
//! [`Limits`] do not allow (R5), and an error says which field was wrong (R7).

pub mod compression;
pub mod error;
pub mod limits;
pub mod otlp;
pub mod span_identity;

pub use compression::{DecompressError, Encoding, decompress};
pub use error::DecodeError;
pub use limits::Limits;
