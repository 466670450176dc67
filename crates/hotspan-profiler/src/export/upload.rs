//! The export thread and its queue. The monitor never waits for it: a full queue drops its oldest batch and counts it.

use super::destination::{DeliveryError, Destination};
use super::otlp::{self, Identity};
use super::pprof;
use crate::aggregate::batch::Batch;
use crate::sampler::clock::thread_cpu_ns;
use crate::symbols::{Symbolizer, Symbols};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches that may wait for a slow server: about a minute and a half at the usual interval.
const MAX_WAITING: usize = 8;
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What became of uploads. Counters only grow.
#[derive(Debug, Default)]
pub(crate) struct UploadCounters {
    pub(crate) delivered: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) last_error: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    busy: bool,
    closing: bool,
    /// When closing: no more attempts after this.
    deadline: Option<Instant>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    counters: UploadCounters,
}

/// The queue's entrance; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Uploader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Uploader {
    /// Starts the export thread.
    pub(crate) fn start(
        destinations: Vec<Destination>,
        identity: Identity,
        symbols: Symbols,
        timeout: Duration,
        prepare_thread: impl FnOnce() + Send + 'static,
    ) -> io::Result<Uploader> {
        let shared = Arc::new(Shared::default());
        let worker = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("hotspan-export".into()).spawn(move || {
            prepare_thread();
            export_until_closed(&worker, &destinations, &identity, &mut Symbolizer::new(symbols), timeout);
        })?;
        Ok(Uploader { shared, thread: Some(thread) })
    }

    /// Queues a batch. Never waits.
    pub(crate) fn submit(&self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        if waiting.batches.len() >= MAX_WAITING {
            waiting.batches.pop_front();
            self.shared.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
        waiting.batches.push_back(batch);
        drop(waiting);
        self.shared.changed.notify_all();
    }

    /// Waits until everything queued was delivered or given up, at most this long. False if time ran out.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut waiting = self.lock();
        while waiting.busy || !waiting.batches.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            waiting = self.shared.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Asks the thread to finish what is queued within `patience`; what is left then is dropped and counted.
    pub(crate) fn close(&self, patience: Duration) {
        let mut waiting = self.lock();
        waiting.closing = true;
        waiting.deadline.get_or_insert(Instant::now() + patience);
        drop(waiting);
        self.shared.changed.notify_all();
    }

    pub(crate) fn counters(&self) -> &UploadCounters {
        &self.shared.counters
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Uploader {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
        if let Some(thread) = self.thread.take() {
            // A panic of the export thread must not become one of the service.
            let _ = thread.join();
        }
    }
}

fn export_until_closed(
    shared: &Shared,
    destinations: &[Destination],
    identity: &Identity,
    symbolizer: &mut Symbolizer,
    timeout: Duration,
) {
    loop {
        let mut waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.busy = false;
        shared.changed.notify_all();
        let batch = loop {
            if let Some(batch) = waiting.batches.pop_front() {
                if waiting.deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    break batch;
                }
                shared.counters.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if waiting.closing {
                return;
            }
            waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        };
        waiting.busy = true;
        drop(waiting);
        for destination in destinations {
            let body = match destination {
                Destination::Pyroscope { .. } => pprof::encode_push(&batch, identity, symbolizer),
                _ => otlp::encode(&batch, identity, symbolizer),
            };
            if let Some(body) = body {
                deliver(shared, destination, &body, timeout);
            }
        }
        shared.counters.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
    }
}

fn deliver(shared: &Shared, destination: &Destination, body: &[u8], timeout: Duration) {
    let counters = &shared.counters;
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let error = match destination.deliver(body, timeout) {
            Ok(()) => {
                counters.delivered.fetch_add(1, Ordering::Relaxed);
                counters.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
                return;
            }
            Err(error) => error,
        };
        *counters.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        let DeliveryError::Temporary { retry_after, .. } = error else { break };
        if attempt == ATTEMPTS || !pause_before_retry(shared, retry_after.unwrap_or(pause).min(LONGEST_PAUSE)) {
            break;
        }
        counters.retries.fetch_add(1, Ordering::Relaxed);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    counters.dropped.fetch_add(1, Ordering::Relaxed);
}

/// Sleeps, but wakes when the queue closes. False if there is no time for another attempt.
fn pause_before_retry(shared: &Shared, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    let mut waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if waiting.deadline.is_some_and(|deadline| deadline <= until) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        waiting = shared.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}
