//! From a finished batch to a server: symbolise, encode, compress, send. All of it on a background thread.

pub(crate) mod destination;
pub(crate) mod http;
pub(crate) mod otlp;
mod pprof;
pub(crate) mod upload;
pub(crate) mod wire;

pub use destination::{Compression, Destination, UploadReceiver};
