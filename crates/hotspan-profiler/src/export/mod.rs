//! From a finished batch to a server: symbolise, encode, compress, send. All of it on a background thread.

mod connection;
pub(crate) mod destination;
#[cfg(feature = "grpc")]
mod grpc;
pub(crate) mod http;
pub(crate) mod otlp;
mod pprof;
#[cfg(feature = "tls")]
mod tls;
pub(crate) mod upload;
pub(crate) mod wire;

pub use destination::{Compression, Destination, UploadReceiver};
