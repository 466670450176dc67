//! The bytes of a connection on their way to the HTTP library, past what it leaves to its user: how long a head may be silent,
//! and addresses as people type them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::head_limit::HeadLimit;
use crate::typed_address::TypedAddress;
use crate::under_way::ConnectionRequests;

/// Bytes that are read at once where a first line may be.
pub(crate) const READ_AHEAD: usize = 4 << 10;

/// A connection as the HTTP library is to see it.
#[derive(Debug)]
pub(crate) struct RequestStream<S> {
    stream: S,
    silence: HeadLimit,
    address: TypedAddress,
}

impl<S> RequestStream<S> {
    /// `max_idle` is how long the peer may be silent in the head of a request.
    pub(crate) fn new(stream: S, requests: Arc<ConnectionRequests>, max_idle: Duration) -> Self {
        Self { stream, silence: HeadLimit::new(requests, max_idle), address: TypedAddress::default() }
    }
}

impl<S: AsyncRead + Unpin> RequestStream<S> {
    /// Reads on, or fails where nothing has come for too long.
    fn poll_next(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, into) {
            Poll::Pending => self.silence.poll_end(context).map(Err),
            read => {
                self.silence.take_in(&into.filled()[before..]);
                read
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RequestStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.address.hand_on(into) {
            return Poll::Ready(Ok(()));
        }
        if !this.address.may_follow() {
            return this.poll_next(context, into);
        }
        let mut bytes = [0; READ_AHEAD];
        let mut read = ReadBuf::new(&mut bytes);
        let polled = this.poll_next(context, &mut read);
        if !read.filled().is_empty() {
            this.address.take_in(read.filled());
            this.address.hand_on(into);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RequestStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.address.answer();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.address.answer();
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
