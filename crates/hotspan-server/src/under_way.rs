//! Which requests are under way, from the end of their head to the last piece of their answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// The requests of all connections of a listener.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    under_way: watch::Sender<usize>,
}

impl Requests {
    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        *self.under_way.borrow()
    }

    /// Waits until none has been under way for a moment.
    pub(crate) async fn rest(&self, moment: Duration) {
        let mut under_way = self.under_way.subscribe();
        loop {
            // It only fails when there is no sender left, and this is one.
            let _ = under_way.wait_for(|count| *count == 0).await;
            if tokio::time::timeout(moment, under_way.wait_for(|count| *count > 0)).await.is_err() {
                return;
            }
        }
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
        self.all.under_way.send_modify(|count| *count += 1);
        UnderWay(Arc::clone(self))
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<ConnectionRequests>);

impl UnderWay {
    /// Counts the request until its answer is sent, or its asker has gone.
    pub(crate) fn until_sent(self, answer: Response) -> Response {
        answer.map(|body| Body::new(CountedBody { body, _request: self }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
        self.0.all.under_way.send_modify(|count| *count -= 1);
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
    use std::time::Instant;

    use hyper::body::Body as _;

    use super::*;

    /// Scenario: two requests of two connections, one of which is answered, and one whose asker leaves.
    /// Guarantee: each counts until then, and the listener rests a moment after the last.
    #[tokio::test]
    async fn requests_count_until_they_are_sent() {
        let all = Requests::default();
        let connections = [ConnectionRequests::new(all.clone()), ConnectionRequests::new(all.clone())];
        let answer = connections[0].begin().until_sent(Response::new(Body::from("answer")));
        let left = connections[1].begin();
        assert_eq!((all.count(), connections[0].are_over(), connections[0].begun()), (2, false, 1));
        assert_eq!(answer.body().size_hint().exact(), Some(6));
        let moment = Duration::from_millis(50);
        assert!(tokio::time::timeout(2 * moment, all.rest(moment)).await.is_err());
        drop(left);
        assert_eq!((all.count(), connections[1].are_over()), (1, true));
        assert_eq!(axum::body::to_bytes(answer.into_body(), 10).await.unwrap(), "answer");
        assert_eq!(all.count(), 0);
        let now = Instant::now();
        all.rest(moment).await;
        assert!(now.elapsed() >= moment);
    }
}
