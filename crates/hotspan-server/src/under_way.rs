//! Which requests are under way, from the end of their head to the last piece of their answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// The requests of all connections of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    counted: watch::Sender<Counted>,
}

/// Requests that a stop waits for.
#[derive(Debug, Default)]
struct Counted {
    under_way: usize,
    /// Whether those that begin are no longer counted.
    is_complete: bool,
}

impl Requests {
    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.counted.borrow().under_way
    }

    /// Counts no more: those that begin from here on are told that the server is stopping, and would never let it end.
    pub(crate) fn complete(&self) {
        self.counted.send_modify(|counted| counted.is_complete = true);
    }

    /// Waits until none is under way.
    pub(crate) async fn are_over(&self) {
        // It only fails when there is no sender left, and this is one.
        let _ = self.counted.subscribe().wait_for(|counted| counted.under_way == 0).await;
    }

    /// Whether a request that begins is counted.
    fn begin(&self) -> bool {
        self.counted.send_if_modified(|counted| {
            counted.under_way += usize::from(!counted.is_complete);
            !counted.is_complete
        })
    }
}

/// The requests of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionRequests {
    begun: AtomicU64,
    ended: AtomicU64,
    all: Requests,
}

impl ConnectionRequests {
    pub(crate) fn new(all: Requests) -> Arc<Self> {
        Arc::new(Self { begun: AtomicU64::new(0), ended: AtomicU64::new(0), all })
    }

    /// How many there were so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether none is under way.
    pub(crate) fn are_over(&self) -> bool {
        self.begun() == self.ended.load(Ordering::Relaxed)
    }

    /// Counts a request, until what this gives is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay { of: Arc::clone(self), is_waited_for: self.all.begin() }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    of: Arc<ConnectionRequests>,
    is_waited_for: bool,
}

impl UnderWay {
    /// Counts the request until its answer is sent, or its asker has gone.
    pub(crate) fn until_sent(self, answer: Response) -> Response {
        answer.map(|body| Body::new(CountedBody { body, _request: self }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.of.ended.fetch_add(1, Ordering::Relaxed);
        if self.is_waited_for {
            self.of.all.counted.send_modify(|counted| counted.under_way -= 1);
        }
    }
}

/// The body of an answer, which is dropped once it is sent.
struct CountedBody {
    body: Body,
    _request: UnderWay,
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;

    use super::*;

    /// Scenario: two requests of two connections, one of which is answered, and one whose asker leaves; a third that comes
    /// when no more are counted.
    /// Guarantee: the first count until then, and are over without the third, which its connection still knows of.
    #[tokio::test]
    async fn requests_count_until_they_are_sent() {
        let all = Requests::default();
        let connections = [ConnectionRequests::new(all.clone()), ConnectionRequests::new(all.clone())];
        let answer = connections[0].begin().until_sent(Response::new(Body::from("answer")));
        let left = connections[1].begin();
        assert_eq!((all.count(), connections[0].are_over(), connections[0].begun()), (2, false, 1));
        assert_eq!(answer.body().size_hint().exact(), Some(6));
        all.complete();
        let late = connections[0].begin();
        assert_eq!((all.count(), connections[0].begun()), (2, 2));
        drop(left);
        assert_eq!((all.count(), connections[1].are_over()), (1, true));
        assert_eq!(axum::body::to_bytes(answer.into_body(), 10).await.unwrap(), "answer");
        all.are_over().await;
        assert!(!connections[0].are_over());
        drop(late);
        assert_eq!((all.count(), connections[0].are_over()), (0, true));
    }
}
