//! Threads for work that comes again and again: decoding, committing, compacting.
//!
//! They are always the same ones, since each has memory of its own that it takes and gives back: handed to any of the
//! runtime's blocking threads, of which there are dozens, work finds the memory of another one in the processor's caches, or
//! none that was touched before.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// Some threads that do one kind of work, in the order in which it comes. They end when this is dropped.
#[derive(Debug)]
pub struct WorkThreads {
    work: Sender<Work>,
}

/// Work that panicked. The log says where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work broke off; the log says where")]
pub struct BrokenOff;

impl WorkThreads {
    /// Starts this many.
    pub fn start(name: &str, count: usize) -> io::Result<Self> {
        let (work, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..count {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(name.to_owned()).spawn(move || work_off(&queue))?;
        }
        Ok(Self { work })
    }

    /// Does something on one of them. Who stops waiting for it does not stop it.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, BrokenOff> {
        let (answer, answered) = oneshot::channel();
        let work = move || drop(answer.send(work()));
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
}
