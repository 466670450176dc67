//! Addresses as people type them: `curl -g 'http://host/api/v1/query?query=shop.cpu{span_id="7c…"}'`.
//!
//! Strictly, quotes and angle brackets must be escaped in an address, and the HTTP library refuses a request that has them
//! before anybody here could answer it. The queries of runbooks are full of them, and other servers take them as they
//! are. So they are escaped on the way in, in the first line of a connection, which is where such tools have them: they make
//! one request a connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose first line is made one that the HTTP library reads.
#[derive(Debug)]
pub(crate) struct TypedAddress<S> {
    stream: S,
    is_in_first_line: bool,
    /// What was read of the stream and not yet handed on, and how much of it was.
    escaped: Vec<u8>,
    handed_on: usize,
}

/// Bytes that are read at once until the first line is over.
const READ_AHEAD: usize = 4 << 10;

impl<S> TypedAddress<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, is_in_first_line: true, escaped: Vec::new(), handed_on: 0 }
    }

    /// Takes in what was read, escaped up to the end of the first line.
    fn take_in(&mut self, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => self.escaped.extend_from_slice(b"%22"),
                b'<' => self.escaped.extend_from_slice(b"%3C"),
                b'>' => self.escaped.extend_from_slice(b"%3E"),
                b'\n' => {
                    self.is_in_first_line = false;
                    self.escaped.extend_from_slice(&bytes[at..]);
                    return;
                }
                byte => self.escaped.push(*byte),
            }
        }
    }

    /// Hands on as much as there is room for.
    fn hand_on(&mut self, into: &mut ReadBuf<'_>) {
        let waiting = &self.escaped[self.handed_on..];
        let part = &waiting[..waiting.len().min(into.remaining())];
        into.put_slice(part);
        self.handed_on += part.len();
        if self.handed_on == self.escaped.len() {
            self.escaped = Vec::new();
            self.handed_on = 0;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TypedAddress<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.escaped.is_empty() && this.is_in_first_line {
            let mut bytes = [0; READ_AHEAD];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut read))?;
            this.take_in(read.filled());
        }
        if this.escaped.is_empty() && !this.is_in_first_line {
            return Pin::new(&mut this.stream).poll_read(context, into);
        }
        this.hand_on(into);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TypedAddress<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// What a server reads of these pieces, with buffers of this size.
    async fn read(pieces: &[&[u8]], buffer: usize) -> Vec<u8> {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        for piece in pieces {
            client.write_all(piece).await.unwrap();
        }
        drop(client);
        let mut server = TypedAddress::new(server);
        let (mut all, mut bytes) = (Vec::new(), vec![0; buffer]);
        loop {
            match server.read(&mut bytes).await.unwrap() {
                0 => return all,
                count => all.extend_from_slice(&bytes[..count]),
            }
        }
    }

    /// Scenario: requests with and without what must be escaped, in their first line, in headers and bodies, longer than is
    /// read at once, and cut off; small buffers and large ones.
    /// Guarantee: the first line is escaped, and every other byte arrives as it was sent.
    #[tokio::test]
    async fn the_first_line_is_escaped() {
        let long = format!("GET /?q={}\"", "x".repeat(3 * READ_AHEAD));
        let requests = [
            (
                "GET /?q={a=\"b\"&&c<1||c>2} HTTP/1.1\r\nA: \"<\"\r\n\r\n",
                "GET /?q={a=%22b%22&&c%3C1||c%3E2} HTTP/1.1\r\nA: \"<\"\r\n\r\n",
            ),
            ("POST / HTTP/1.1\r\n\r\n<\"\n\">", "POST / HTTP/1.1\r\n\r\n<\"\n\">"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            ("GET /?\"", "GET /?%22"),
            ("", ""),
            (&long, &long.replace('"', "%22")),
        ];
        for (sent, wanted) in requests {
            for buffer in [1, 7, 1 << 14] {
                assert_eq!(read(&[sent.as_bytes()], buffer).await, wanted.as_bytes());
            }
        }
    }
}
