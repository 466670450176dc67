//! Threads for work that comes again and again: decoding, committing, compacting.
//!
//! They are always the same ones, since each has memory of its own that it takes and gives back: handed to any of the
//! runtime's blocking threads, of which there are dozens, work finds the memory of another one in the processor's caches, or
//! none that was touched before.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// Some threads that do one kind of work, in the order in which it comes. They end when this is dropped.
#[derive(Debug)]
pub struct WorkThreads {
    queue: Arc<Queue>,
}

/// Work that panicked. The log says where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work broke off; the log says where")]
pub struct BrokenOff;

impl WorkThreads {
    /// Starts this many.
    pub fn start(name: &str, count: usize) -> io::Result<Self> {
        let threads = Self { queue: Arc::default() };
        for _ in 0..count {
            let queue = Arc::clone(&threads.queue);
            thread::Builder::new().name(name.to_owned()).spawn(move || queue.work_off())?;
        }
        Ok(threads)
    }

    /// Does something on one of them, as soon as one is free. Who stops waiting before it has begun takes it back; later, that does
    /// not stop it.
    pub fn run<T, W>(&self, work: W) -> impl Future<Output = Result<T, BrokenOff>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.queue.put(Box::new(move || {
            if !answer.is_closed() {
                // Who waits may be gone by then.
                drop(answer.send(work()));
            }
        }));
        async { answered.await.map_err(|_| BrokenOff) }
    }
}

impl Drop for WorkThreads {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.comes.notify_all();
    }
}

/// Work that waits. A thread that has done one piece goes on with the next; only those that find none sleep, and each piece
/// wakes one of them.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// There is work, or there will be no more.
    comes: Condvar,
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    is_closed: bool,
}

impl Queue {
    fn put(&self, work: Work) {
        self.lock().work.push_back(work);
        self.comes.notify_one();
    }

    /// The next piece of work; none if there will be no more.
    fn next(&self) -> Option<Work> {
        let has_none = |waiting: &mut Waiting| waiting.work.is_empty() && !waiting.is_closed;
        self.comes.wait_while(self.lock(), has_none).unwrap_or_else(PoisonError::into_inner).work.pop_front()
    }

    fn work_off(&self) {
        while let Some(work) = self.next() {
            // The panic has been logged, and took the answer with it.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue").field("waiting", &self.lock().work.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;

    /// Scenario: fifty pieces of work at once, of which each tenth panics.
    /// Guarantee: never more at a time than there are threads, always the same threads, and all others have their answer.
    #[tokio::test]
    async fn work_is_done_by_the_same_threads() {
        let threads = WorkThreads::start("work", 2).unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let pieces = (0..50).map(|number| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            threads.run(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, Ordering::SeqCst);
                assert!(number % 10 != 0, "this must not take others with it");
                thread::current().id()
            })
        });
        let answers = join_all(pieces).await;
        let broken: Vec<usize> = (0..50).filter(|number| answers[*number] == Err(BrokenOff)).collect();
        assert_eq!(broken, [0, 10, 20, 30, 40]);
        let used: HashSet<_> = answers.into_iter().flatten().collect();
        assert!(used.len() <= 2 && most.load(Ordering::SeqCst) <= 2, "{used:?}, {most:?}");
    }

    /// Scenario: one thread is at work; of two pieces behind it, one is given up; then the threads are dropped.
    /// Guarantee: what was given up is never done, the other is, and what was begun is done to its end.
    #[tokio::test]
    async fn what_has_not_begun_can_be_taken_back() {
        let threads = WorkThreads::start("work", 1).unwrap();
        let done = Arc::new(Mutex::new(Vec::new()));
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let note = |name: &'static str| {
            let done = Arc::clone(&done);
            move || done.lock().unwrap().push(name)
        };
        let (first, last) = (note("first"), note("last"));
        let begun = threads.run(move || {
            wait.recv().unwrap();
            first();
        });
        let given_up = threads.run(note("given up"));
        let behind = threads.run(last);
        drop(given_up);
        go_on.send(()).unwrap();
        behind.await.unwrap();
        begun.await.unwrap();
        assert_eq!(*done.lock().unwrap(), ["first", "last"]);
    }
}
