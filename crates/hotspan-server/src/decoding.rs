//! Decoding, whatever a request holds: off the reactor, and in turn.

use std::io;

use hotspan_lake::work_threads::{BrokenOff, WorkThreads};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::self_tracing::child_span;

/// As many requests are decoded at a time as there are cores. More would finish no sooner, take more memory, and take each
/// other's from the processor's caches.
#[derive(Debug)]
pub(crate) struct Decoding {
    turns: Semaphore,
    at_once: usize,
    threads: WorkThreads,
}

/// A turn at decoding: a thread is free for it, or will be as soon as it is done with what somebody gave up waiting for.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    threads: &'t WorkThreads,
    _permit: Option<SemaphorePermit<'t>>,
}

impl Decoding {
    pub(crate) fn start(at_once: usize) -> io::Result<Self> {
        Ok(Self { turns: Semaphore::new(at_once), at_once, threads: WorkThreads::start("decode", at_once)? })
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        // Nobody closes the semaphore.
        Turn { threads: &self.threads, _permit: self.turns.acquire().await.ok() }
    }

    /// How many turns are taken.
    pub(crate) fn busy(&self) -> usize {
        self.at_once - self.turns.available_permits()
    }
}

impl Turn<'_> {
    /// Decodes something. A decoder never panics; if one did, its sender learns that the request can't be read.
    pub(crate) async fn decode<T: Send + 'static>(
        &self,
        decode: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BrokenOff> {
        let span = child_span!("decode");
        self.threads.run(move || span.in_scope(decode)).await
    }
}
