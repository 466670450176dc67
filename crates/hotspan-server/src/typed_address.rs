//! Addresses as people type them: `curl -g 'http://host/api/v1/query?query=shop.cpu{span_id="7c…"}'`.
//!
//! Strictly, quotes and angle brackets must be escaped in an address, and the HTTP library refuses a request that has them
//! before anybody here could answer it. The queries of runbooks are full of them, and other servers take them as they
//! are. So they are escaped on the way in, in the first line of a request of HTTP/1: what a connection starts with, and what follows
//! an answer and asks for something.

use tokio::io::ReadBuf;

/// Makes the first lines of a connection's requests ones that the HTTP library reads.
#[derive(Debug, Default)]
pub(crate) struct TypedAddress {
    place: Place,
    /// What was read of the stream and not yet handed on, and how much of it was.
    escaped: Vec<u8>,
    handed_on: usize,
}

/// What comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The start of the connection.
    #[default]
    Start,
    /// The rest of a first line.
    FirstLine,
    /// Headers, or a body.
    Request,
    /// Something has been answered: a request, or the rest of one that was answered early.
    Answered,
    /// Frames, in which no line is a first line.
    Http2,
}

impl TypedAddress {
    /// Whether what comes next may be a first line, which has to be taken in before it is handed on.
    pub(crate) fn may_follow(&self) -> bool {
        !matches!(self.place, Place::Request | Place::Http2)
    }

    /// Takes in what was read, with first lines escaped.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        self.place = match self.place {
            Place::Start if bytes.starts_with(b"PRI ") => Place::Http2,
            Place::Start => Place::FirstLine,
            // Bodies do not start so.
            Place::Answered if bytes.starts_with(b"GET ") => Place::FirstLine,
            Place::Answered => Place::Request,
            place => place,
        };
        let line = match bytes.iter().position(|byte| *byte == b'\n') {
            _ if self.place != Place::FirstLine => &[],
            Some(end) => {
                self.place = Place::Request;
                &bytes[..end]
            }
            None => bytes,
        };
        for byte in line {
            match byte {
                b'"' => self.escaped.extend_from_slice(b"%22"),
                b'<' => self.escaped.extend_from_slice(b"%3C"),
                b'>' => self.escaped.extend_from_slice(b"%3E"),
                byte => self.escaped.push(*byte),
            }
        }
        self.escaped.extend_from_slice(&bytes[line.len()..]);
    }

    /// Notes that something is answered.
    pub(crate) fn answer(&mut self) {
        if self.place == Place::Request {
            self.place = Place::Answered;
        }
    }

    /// Hands on as much as there is room for; says whether there was anything.
    pub(crate) fn hand_on(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let waiting = &self.escaped[self.handed_on..];
        if waiting.is_empty() {
            return false;
        }
        let part = &waiting[..waiting.len().min(into.remaining())];
        into.put_slice(part);
        self.handed_on += part.len();
        if self.handed_on == self.escaped.len() {
            self.escaped = Vec::new();
            self.handed_on = 0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use crate::request_stream::{READ_AHEAD, RequestStream};
    use crate::under_way::{ConnectionRequests, Requests};

    /// A client and what the server has of it.
    fn connection() -> (DuplexStream, RequestStream<DuplexStream>) {
        let (client, server) = tokio::io::duplex(1 << 16);
        (client, RequestStream::new(server, ConnectionRequests::new(Requests::default()), Duration::from_secs(60)))
    }

    /// What a server reads of these pieces, with buffers of this size.
    async fn read(pieces: &[&[u8]], buffer: usize) -> Vec<u8> {
        let (mut client, mut server) = connection();
        for piece in pieces {
            client.write_all(piece).await.unwrap();
        }
        drop(client);
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

    /// What a server reads of pieces that each come after it has answered.
    async fn read_in_turn(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut client, mut server) = connection();
        let (mut all, mut bytes) = (Vec::new(), vec![0; 1 << 10]);
        for piece in pieces {
            client.write_all(piece).await.unwrap();
            let count = server.read(&mut bytes).await.unwrap();
            all.extend_from_slice(&bytes[..count]);
            server.write_all(b"answer").await.unwrap();
        }
        all
    }

    /// Scenario: further requests of a connection, a body that is asked for before it comes, and frames of HTTP/2.
    /// Guarantee: first lines of requests are escaped, bodies and frames are not.
    #[tokio::test]
    async fn later_requests_are_escaped() {
        let request = b"GET /?q=\" HTTP/1.1\r\nA: \"\r\n\r\n";
        let escaped = b"GET /?q=%22 HTTP/1.1\r\nA: \"\r\n\r\n";
        assert_eq!(read_in_turn(&[request, request, request]).await, escaped.repeat(3));
        let post = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n";
        let body = b"{\"query\":\"<\"}\n";
        assert_eq!(read_in_turn(&[post, body, request]).await, [&post[..], body, escaped].concat());
        let frames = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], request];
        assert_eq!(read_in_turn(&frames).await, frames.concat());
    }
}
