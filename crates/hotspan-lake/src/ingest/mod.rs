//! The write path: rows of many requests become one segment, one catalog commit, and then the answer to each.
//!
//! ```text
//! request -> reserve room -> decode into Rows -> submit --+
//! request -> reserve room -> decode into Rows -> submit --+-> batch -> segment (durable) -> catalog -> answers
//! ```
//!
//! There is no write-ahead log: the segment is the log. Memory is bounded by the room that requests reserve while
//! they are read, and before and after they are decoded (R5); when there is none, the sender is told to come back (R4).

mod committer;
mod failures;
mod known;
mod recall;
mod seen;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hotspan_model::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub use known::Known;

use self::waiting::Entrance;
use crate::Lake;
use crate::error::LakeError;
use crate::rows::Rows;

/// How the write path is bounded.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The longest that a request waits for others to share its segment.
    pub flush_interval: Duration,
    /// A batch this large is flushed at once.
    pub flush_bytes: usize,
    /// Memory for requests that are being read or decoded, or wait for their commit.
    pub queue_bytes: usize,
    /// How long a span or profile is remembered at least, so that a retry of it is counted once, also after a start.
    pub dedup_window: Duration,
    /// How many spans and profiles are remembered at most; half as many, the latest, are whatever comes.
    pub dedup_entries: usize,
    /// How many call-path nodes, frames and series are remembered as durable, so that they are not written again.
    pub known_nodes: usize,
    /// Memory for the rows of young segments, which queries and compaction then need not read back.
    pub resident_bytes: usize,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            flush_interval: Duration::from_millis(250),
            flush_bytes: 8 << 20,
            queue_bytes: 256 << 20,
            dedup_window: Duration::from_secs(15 * 60),
            dedup_entries: 4_000_000,
            known_nodes: 4_000_000,
            resident_bytes: 384 << 20,
        }
    }
}

/// Counters of the write path.
#[derive(Debug, Default)]
pub struct IngestCounters {
    /// Segments committed.
    pub segments: AtomicU64,
    /// Bytes of those segments.
    pub bytes: AtomicU64,
    /// Spans committed.
    pub spans: AtomicU64,
    /// Samples committed.
    pub samples: AtomicU64,
    /// Profiles committed.
    pub profiles: AtomicU64,
    /// Spans that were there already.
    pub duplicate_spans: AtomicU64,
    /// Profiles that were there already.
    pub duplicate_profiles: AtomicU64,
    /// Symbols and series that met another one with the same id.
    pub symbol_collisions: AtomicU64,
    /// Batches that could not be committed.
    pub failed_batches: AtomicU64,
    /// Requests that were told to come back, since there was no room for them.
    pub refused_requests: AtomicU64,
    /// Ids of spans and profiles that are remembered just now, to recognise retries.
    pub remembered_ids: AtomicU64,
    /// Nanoseconds spent between the close of a batch and its commit.
    pub commit_nanos: AtomicU64,
}

impl IngestCounters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Room for a request that is being decoded or waits for its commit; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    permit: OwnedSemaphorePermit,
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receipt {
    /// The catalog version that holds it.
    pub version: i64,
    /// Spans of it that were there already.
    pub duplicate_spans: u64,
    /// Profiles of it that were there already.
    pub duplicate_profiles: u64,
}

#[derive(Debug)]
struct Submission {
    tenant: TenantId,
    rows: Rows,
    bytes: usize,
    reservation: Reservation,
    answer: Answer,
}

/// The end of a way to whoever waits for a receipt. Dropped without one, it says that nothing was stored.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<std::result::Result<Receipt, Arc<LakeError>>>);

impl Answer {
    fn give(self, receipt: std::result::Result<Receipt, Arc<LakeError>>) {
        // Who waited may be gone; what is stored stays stored.
        let _ = self.0.send(receipt);
    }
}

/// A way to wait for the receipt of rows that somebody else is still to make: who decodes on another thread submits from there,
/// and who asked for that is woken once, when all is over.
pub fn expect_receipt() -> (Answer, impl Future<Output = std::result::Result<Receipt, Arc<LakeError>>> + Send + use<>) {
    let (answer, receipt) = oneshot::channel();
    (Answer(answer), async { receipt.await.unwrap_or_else(|_| Err(Arc::new(LakeError::ShuttingDown))) })
}

/// The entrance to the lake.
#[derive(Debug, Clone)]
pub struct Ingest {
    room: Arc<Semaphore>,
    room_total: usize,
    entrance: Arc<Entrance>,
    known: Arc<Known>,
    counters: Arc<IngestCounters>,
}

/// The semaphore counts KiB, since it holds at most 2^29 permits on small machines.
const ROOM_UNIT: usize = 1024;

impl Ingest {
    /// Starts the committer; it ends when every [`Ingest`] is dropped and all submissions are answered.
    pub fn start(lake: Arc<Lake>, options: IngestOptions) -> (Self, tokio::task::JoinHandle<()>) {
        let (entrance, exit) = waiting::queue(options.flush_bytes);
        let known = Arc::new(Known::new(options.known_nodes));
        let counters = Arc::clone(lake.ingest_counters());
        let room_total = (options.queue_bytes / ROOM_UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let ingest = Self {
            room: Arc::new(Semaphore::new(room_total)),
            room_total,
            entrance: Arc::new(entrance),
            known: Arc::clone(&known),
            counters,
        };
        let committer = committer::Committer::new(lake, options, known);
        (ingest, tokio::spawn(committer.run(exit)))
    }

    /// Room for a request of about this many bytes, or none if too much is under way.
    ///
    /// A request larger than all room there is may still enter alone, when nothing else is under way.
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        match Arc::clone(&self.room).try_acquire_many_owned(self.units(bytes)) {
            Ok(permit) => Some(Reservation { permit }),
            Err(_) => {
                IngestCounters::add(&self.counters.refused_requests, 1);
                None
            }
        }
    }

    /// Makes room that was reserved one for about this many bytes. False, and no change, if too much is under way for that.
    pub fn try_resize(&self, reservation: &mut Reservation, bytes: usize) -> bool {
        let (held, wanted) = (reservation.permit.num_permits(), self.units(bytes) as usize);
        if wanted <= held {
            drop(reservation.permit.split(held - wanted));
            return true;
        }
        // At most as many as `units` gives.
        let more = u32::try_from(wanted - held).unwrap_or(u32::MAX);
        match Arc::clone(&self.room).try_acquire_many_owned(more) {
            Ok(permit) => {
                reservation.permit.merge(permit);
                true
            }
            Err(_) => {
                IngestCounters::add(&self.counters.refused_requests, 1);
                false
            }
        }
    }

    /// Room as above, however long it takes: for work that is half done and can't be sent away any more.
    pub async fn reserve(&self, bytes: usize) -> std::result::Result<Reservation, Arc<LakeError>> {
        let permit = Arc::clone(&self.room).acquire_many_owned(self.units(bytes)).await;
        permit.map(|permit| Reservation { permit }).map_err(|_| Arc::new(LakeError::ShuttingDown))
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(ROOM_UNIT).clamp(1, self.room_total)).unwrap_or(u32::MAX)
    }

    /// What is durable already, for building [`Rows`].
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Share of the queue's memory that is taken.
    pub fn queue_share(&self) -> f64 {
        1.0 - self.room.available_permits() as f64 / self.room_total as f64
    }

    /// How many requests wait to be taken into a batch.
    pub fn waiting(&self) -> usize {
        self.entrance.len()
    }

    /// Stores rows, which anybody may hand over, on any thread; what comes back resolves once they are durable and visible
    /// (R1). They are stored whether or not anybody waits for that.
    pub fn submit(
        &self,
        tenant: TenantId,
        rows: Rows,
        reservation: Reservation,
    ) -> impl Future<Output = std::result::Result<Receipt, Arc<LakeError>>> + Send + use<> {
        let (answer, receipt) = expect_receipt();
        self.submit_for(answer, tenant, rows, reservation);
        receipt
    }

    /// The same for who waits elsewhere.
    pub fn submit_for(&self, answer: Answer, tenant: TenantId, rows: Rows, reservation: Reservation) {
        if rows.is_empty() {
            answer.give(Ok(Receipt::default()));
        } else {
            self.entrance.put(Submission { bytes: rows.size(), tenant, rows, reservation, answer });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a request grows, first to what is left, then beyond it, shrinks, and ends.
    /// Guarantee: it gets what is there, keeps what it has where there is no more, and gives everything back.
    #[tokio::test]
    async fn room_grows_and_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        let options = IngestOptions { queue_bytes: 100 << 10, ..IngestOptions::default() };
        let (ingest, _) = Ingest::start(Arc::clone(&lake), options);
        let other = ingest.try_reserve(40 << 10).unwrap();
        let mut growing = ingest.try_reserve(10 << 10).unwrap();
        assert!(ingest.try_resize(&mut growing, 60 << 10));
        assert!(!ingest.try_resize(&mut growing, 61 << 10) && !ingest.try_resize(&mut growing, 1 << 30));
        assert!((ingest.queue_share() - 1.0).abs() < 1e-9);
        assert!(ingest.try_resize(&mut growing, 5 << 10));
        assert!((ingest.queue_share() - 0.45).abs() < 1e-9);
        drop(other);
        // Alone, it may be larger than all room there is.
        assert!(ingest.try_resize(&mut growing, 1 << 30));
        drop(growing);
        assert!(ingest.queue_share().abs() < 1e-9);
    }
}
