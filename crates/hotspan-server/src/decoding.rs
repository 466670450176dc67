//! Decoding, whatever a request holds: off the reactor, and in turn.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotspan_lake::work_threads::{BrokenOff, WorkThreads};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::self_tracing::child_span;

/// As many requests are decoded at a time as there are cores. More would finish no sooner, take more memory, and take each
/// other's from the processor's caches.
#[derive(Debug)]
pub(crate) struct Decoding {
    threads: WorkThreads,
    busy: Arc<AtomicUsize>,
    turns: Semaphore,
}

/// A turn for something that first brings what is to be decoded into memory: few have one at a time.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    decoding: &'t Decoding,
    _permit: Option<SemaphorePermit<'t>>,
}

impl Decoding {
    pub(crate) fn start(at_once: usize) -> io::Result<Self> {
        let threads = WorkThreads::start("decode", at_once)?;
        Ok(Self { threads, busy: Arc::default(), turns: Semaphore::new(at_once) })
    }

    /// Decodes something that has come, and has room reserved for it; it begins whether or not anybody waits yet. A decoder never
    /// panics; if one did, its sender learns that the request can't be read.
    pub(crate) fn decode<T, D>(&self, decode: D) -> impl Future<Output = Result<T, BrokenOff>> + Send + use<T, D>
    where
        T: Send + 'static,
        D: FnOnce() -> T + Send + 'static,
    {
        let span = child_span!("decode");
        let busy = Arc::clone(&self.busy);
        let decode = move || {
            let _busy = Busy::count(busy);
            span.in_scope(decode)
        };
        self.threads.run(decode)
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        // Nobody closes the semaphore.
        Turn { decoding: self, _permit: self.turns.acquire().await.ok() }
    }

    /// How many are being decoded.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

impl Turn<'_> {
    /// Decodes something.
    pub(crate) async fn decode<T: Send + 'static>(
        &self,
        decode: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BrokenOff> {
        self.decoding.decode(decode).await
    }
}

/// Counts one that is being decoded, for as long as it lives.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn count(busy: Arc<AtomicUsize>) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
