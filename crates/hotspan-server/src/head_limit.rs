//! The longest silence at the start of a connection and in the head of a request, which no handler knows of yet.
//!
//! Without it, half a head is waited for until the end of the server. In bodies those who read them see to it
//! (`receive/intake.rs`); in HTTP/2 the library does, which asks silent peers whether they are still there.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::under_way::ConnectionRequests;

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Fails once a connection has been silent in a head for too long.
#[derive(Debug)]
pub(crate) struct HeadLimit {
    requests: Arc<ConnectionRequests>,
    max_idle: Duration,
    spoken: Spoken,
    /// How many requests there were before the head that has begun last.
    begun_before: Option<u64>,
    alarm: Pin<Box<Sleep>>,
}

/// Which protocol a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    /// HTTP/2, if this comes next.
    Unknown(&'static [u8]),
    Http1,
    Http2,
}

impl Spoken {
    /// What it is after these bytes.
    fn after(self, bytes: &[u8]) -> Self {
        let Self::Unknown(rest) = self else { return self };
        let length = rest.len().min(bytes.len());
        match rest.split_at(length) {
            (expected, _) if expected != &bytes[..length] => Self::Http1,
            (_, []) => Self::Http2,
            (_, rest) => Self::Unknown(rest),
        }
    }
}

impl HeadLimit {
    pub(crate) fn new(requests: Arc<ConnectionRequests>, max_idle: Duration) -> Self {
        let alarm = Box::pin(tokio::time::sleep(max_idle));
        Self { requests, max_idle, spoken: Spoken::Unknown(PREFACE), begun_before: Some(0), alarm }
    }

    /// Notes what was read.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        self.spoken = self.spoken.after(bytes);
        // While a request is under way, what comes is its body.
        if !bytes.is_empty() && self.requests.are_over() {
            self.begun_before = Some(self.requests.begun());
            self.alarm.as_mut().reset(Instant::now() + self.max_idle);
        }
    }

    /// The end of a silence that has been too long.
    pub(crate) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if !self.is_in_head() {
            return Poll::Pending;
        }
        self.alarm.as_mut().poll(context).map(|()| {
            let message = format!("nothing came for {} s in the head of a request", self.max_idle.as_secs_f64());
            io::Error::new(io::ErrorKind::TimedOut, message)
        })
    }

    fn is_in_head(&self) -> bool {
        let has_begun = self.begun_before == Some(self.requests.begun());
        self.spoken != Spoken::Http2 && has_begun && self.requests.are_over()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;
    use crate::request_stream::RequestStream;
    use crate::under_way::Requests;

    const MAX_IDLE: Duration = Duration::from_millis(100);

    /// A client and what the server has of it.
    fn connection() -> (DuplexStream, RequestStream<DuplexStream>, Arc<ConnectionRequests>) {
        let (client, server) = tokio::io::duplex(1 << 10);
        let requests = ConnectionRequests::new(Requests::default());
        (client, RequestStream::new(server, Arc::clone(&requests), MAX_IDLE), requests)
    }

    /// Whether the connection fails, after all that was sent is read.
    async fn fails(server: &mut RequestStream<DuplexStream>) -> bool {
        let mut bytes = [0; 100];
        loop {
            match tokio::time::timeout(3 * MAX_IDLE, server.read(&mut bytes)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return error.kind() == io::ErrorKind::TimedOut,
                Err(_) => return false,
            }
        }
    }

    /// Scenario: silence at the start, in a head, in HTTP/2's preface and after it.
    /// Guarantee: the connection fails, except after the preface.
    #[tokio::test]
    async fn silence_at_the_start() {
        let cases: [(&[&[u8]], bool); 5] = [
            (&[], true),
            (&[b"GET / HT"], true),
            (&[b"PRI * HTTP/2", b".0\r\n\r\nSM\r"], true),
            (&[b"PRI * HTTP/2", b".0\r\n\r\nSM\r\n\r\n"], false),
            (&[PREFACE, b"frames"], false),
        ];
        for (pieces, is_failure) in cases {
            let (mut client, mut server, _) = connection();
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                server.read_exact(&mut vec![0; piece.len()]).await.unwrap();
            }
            assert_eq!(fails(&mut server).await, is_failure, "{pieces:?}");
        }
    }

    /// Scenario: silence while a request is under way, in its body, between two requests, and in the head of the second.
    /// Guarantee: only in the head the connection fails.
    #[tokio::test]
    async fn silence_later_on() {
        let (mut client, mut server, requests) = connection();
        client.write_all(b"POST / HTTP/1.1\r\n\r\n").await.unwrap();
        server.read_exact(&mut [0; 19]).await.unwrap();
        let request = requests.begin();
        assert!(!fails(&mut server).await);
        client.write_all(b"body").await.unwrap();
        assert!(!fails(&mut server).await);
        drop(request);
        assert!(!fails(&mut server).await);
        client.write_all(b"GET").await.unwrap();
        assert!(fails(&mut server).await);
    }
}
