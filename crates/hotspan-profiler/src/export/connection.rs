//! A connection to a server, plain or encrypted, with a limit on every wait.

use super::http::Url;
use crate::timed_stream::TimedStream;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Something that can be written to and read from.
pub(super) trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// Connects to a server by the first of its addresses that answers.
pub(super) fn open(url: &Url, timeout: Duration) -> io::Result<Box<dyn Connection>> {
    let stream = connect(url, timeout)?;
    if url.secure { encrypted(url, stream) } else { Ok(Box::new(stream)) }
}

fn connect(url: &Url, timeout: Duration) -> io::Result<TimedStream> {
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in url.authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(TimedStream::new(stream, timeout));
            }
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

#[cfg(feature = "tls")]
fn encrypted(url: &Url, stream: TimedStream) -> io::Result<Box<dyn Connection>> {
    let config = super::tls::client_config(&[])?;
    let session = rustls::ClientConnection::new(config, super::tls::server_name(url)?).map_err(io::Error::other)?;
    Ok(Box::new(rustls::StreamOwned::new(session, stream)))
}

#[cfg(not(feature = "tls"))]
fn encrypted(_url: &Url, _stream: TimedStream) -> io::Result<Box<dyn Connection>> {
    // Such addresses are refused when they are read.
    Err(io::Error::new(io::ErrorKind::Unsupported, "built without TLS"))
}
