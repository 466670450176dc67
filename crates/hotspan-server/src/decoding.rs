//! Threads that decode, whatever a request holds: off the reactor, and as many as there are cores.
//!
//! More would finish no sooner, take more memory, and take each other's from the processor's caches. They are always the
//! same ones, since each has memory of its own that it takes again and again: handed to any of the runtime's blocking
//! threads, of which there are dozens, requests find that of another one in the caches, and cost a fourteenth more.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use crate::self_tracing::child_span;

type Work = Box<dyn FnOnce() + Send>;

/// The threads, and the turns at them. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct DecodingThreads {
    turns: Semaphore,
    count: usize,
    work: Sender<Work>,
}

/// A turn at decoding: a thread is free for it, or will be as soon as it is done with what somebody gave up waiting for.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    work: &'t Sender<Work>,
    _permit: Option<SemaphorePermit<'t>>,
}

/// What came to an end without a result. A decoder never panics; if one did, its sender learns that the request can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("decoding broke off; the log says where")]
pub(crate) struct BrokenOff;

impl DecodingThreads {
    /// Starts this many.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let (work, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..count {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("decode".to_owned()).spawn(move || work_off(&queue))?;
        }
        Ok(Self { turns: Semaphore::new(count), count, work })
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        // Nobody closes the semaphore.
        Turn { work: &self.work, _permit: self.turns.acquire().await.ok() }
    }

    /// How many turns are taken.
    pub(crate) fn busy(&self) -> usize {
        self.count - self.turns.available_permits()
    }
}

impl Turn<'_> {
    /// Decodes something. What the turn is for may be several such steps, one after the other.
    pub(crate) async fn decode<T: Send + 'static>(
        &self,
        decode: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BrokenOff> {
        let (answer, answered) = oneshot::channel();
        let span = child_span!("decode");
        // Whoever asked may have gone away meanwhile.
        let work = move || drop(answer.send(span.in_scope(decode)));
        self.work.send(Box::new(work)).map_err(|_| BrokenOff)?;
        answered.await.map_err(|_| BrokenOff)
    }
}

fn work_off(queue: &Mutex<Receiver<Work>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        // The panic has been logged, and took the answer with it.
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    /// Scenario: fifty requests at once, of which each tenth panics.
    /// Guarantee: never more at a time than there are threads, always the same threads, and every other request has its answer.
    #[tokio::test]
    async fn requests_take_turns() {
        let threads = Arc::new(DecodingThreads::start(2).unwrap());
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let requests = (0..50).map(|number| {
            let (threads, now, most) = (Arc::clone(&threads), Arc::clone(&now), Arc::clone(&most));
            async move {
                let turn = threads.turn().await;
                assert!((1..=2).contains(&threads.busy()));
                let decode = move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(std::time::Duration::from_millis(1));
                    now.fetch_sub(1, Ordering::SeqCst);
                    assert!(number % 10 != 0, "such a request must not take others with it");
                    thread::current().id()
                };
                turn.decode(decode).await
            }
        });
        let answers = join_all(requests).await;
        let broken: Vec<usize> = (0..50).filter(|number| answers[*number] == Err(BrokenOff)).collect();
        assert_eq!(broken, [0, 10, 20, 30, 40]);
        let used: HashSet<_> = answers.into_iter().flatten().collect();
        assert!(used.len() <= 2 && most.load(Ordering::SeqCst) <= 2, "{used:?}, {most:?}");
        assert_eq!(threads.busy(), 0);
    }
}
