//! Compaction: many small young segments become few large sorted ones, in the background.
//!
//! | level | made | holds |
//! |---|---|---|
//! | 0 | at each flush | all tables of a flush, as received |
//! | 1 | within 30 s | one sorted Parquet file a table and partition; 15 s rollups and trace summaries appear |
//! | 2 | from ten files of level 1, or after ten minutes, while more may come | the same, merged; hourly rollups appear |
//! | 3 | when the partition is over, from all that it has, of level 1 too | the same, merged for good |
//!
//! A step replaces its inputs by its outputs in one transaction, so that it never changes an answer (R2).

mod absent_columns;
mod attribute_counts;
mod attribute_entries;
mod attribute_values;
pub mod attributes;
mod codebook;
mod derived;
mod destination;
mod first_level;
mod gather;
mod keys;
mod merge;
mod plan;
mod resting;
mod rollup;
mod soundness;
mod traces;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use absent_columns::with_absent_columns;
use arrow::array::RecordBatch;
use destination::Destination;
use hashbrown::{HashMap, HashSet};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub use derived::derive_rows;
pub use plan::{CompactionOptions, Job};
use resting::Resting;
pub(crate) use soundness::unsound;

use crate::Lake;
use crate::catalog::{Snapshot, now_nanos};
use crate::error::{LakeError, Result};
use crate::segment::{Piece, ReadOptions, Segment};
use crate::table::Table;

/// Counters of compaction.
#[derive(Debug, Default)]
pub struct CompactionCounters {
    /// Jobs done.
    pub jobs: AtomicU64,
    /// Jobs that failed; they are tried again.
    pub failed_jobs: AtomicU64,
    /// Segments that jobs failed on, and that are left alone for a while.
    pub resting_segments: AtomicU64,
    /// Segments replaced.
    pub input_segments: AtomicU64,
    /// Bytes read.
    pub input_bytes: AtomicU64,
    /// Bytes written.
    pub output_bytes: AtomicU64,
    /// Nanoseconds spent.
    pub nanos: AtomicU64,
    /// Nanoseconds spent on a CPU.
    pub cpu_nanos: AtomicU64,
}

/// Compacts a lake until told to stop.
#[derive(Debug)]
pub struct Compactor {
    lake: Arc<Lake>,
    options: CompactionOptions,
    counters: Arc<CompactionCounters>,
    resting: Mutex<Resting>,
}

impl Compactor {
    /// A compactor for a lake.
    pub fn new(lake: Arc<Lake>, options: CompactionOptions) -> Self {
        Self { lake, options, counters: Arc::default(), resting: Mutex::default() }
    }

    /// Its counters.
    pub fn counters(&self) -> &Arc<CompactionCounters> {
        &self.counters
    }

    /// Runs until `stop`: looks for work whenever something was committed, and every second.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.lake.compaction_wanted.notified() => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            while let Some(job) = self.next_job(now_nanos()) {
                if stop.is_cancelled() {
                    return;
                }
                if let Err(error) = self.run_job(&job).await {
                    self.note_failure(&job, &error).await;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    break;
                }
            }
        }
    }

    /// Counts a job that failed and lets what it failed on rest, so that others are not kept from going up. Without space or a
    /// catalog nobody can: then nothing rests.
    async fn note_failure(&self, job: &Job, error: &LakeError) {
        self.counters.failed_jobs.fetch_add(1, Ordering::Relaxed);
        let (tenant, inputs) = (&job.tenant, job.inputs.len());
        warn!(%tenant, level = job.level, inputs, %error, "compaction failed and will be tried again");
        if error.is_out_of_space() || matches!(error, LakeError::Catalog(_)) {
            return;
        }
        let (lake, read, runtime) = (Arc::clone(&self.lake), job.inputs.clone(), tokio::runtime::Handle::current());
        let unsound = self.off_reactor(move || Ok(runtime.block_on(soundness::unsound(&lake, &read)))).await;
        let unsound = unsound.unwrap_or_default();
        let mut told = HashSet::new();
        for (segment, error) in unsound.iter().filter(|(segment, _)| told.insert(segment.path.clone())) {
            warn!(%tenant, path = segment.path, %error, "a damaged segment is left as it is; the others are compacted without it");
        }
        // All tables of a flush go up together.
        let is_unsound = |segment: &Segment| unsound.iter().any(|(damaged, _)| damaged.path == segment.path);
        let (now, mut resting) = (now_nanos(), self.resting.lock().unwrap_or_else(PoisonError::into_inner));
        for segment in &job.inputs {
            if unsound.is_empty() {
                resting.put(segment, now, resting::AFTER_FAILURE);
            } else if is_unsound(segment) {
                resting.put(segment, now, resting::AFTER_DAMAGE);
            }
        }
    }

    /// The most urgent job, if anything is due at this time.
    pub fn next_job(&self, now: i64) -> Option<Job> {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.wake(now);
        self.counters.resting_segments.store(resting.len() as u64, Ordering::Relaxed);
        plan::next_job(&self.lake.catalog().snapshot(), &self.options, &resting, now)
    }

    /// Does everything that is due at `now`, as if that time had come. For tests, benchmarks and maintenance.
    pub async fn run_until_idle(&self, now: i64) -> Result<u64> {
        let mut jobs = 0;
        while let Some(job) = self.next_job(now) {
            self.run_job(&job).await?;
            jobs += 1;
        }
        Ok(jobs)
    }

    /// Does one job: writes its outputs, then swaps them for its inputs in one commit.
    pub async fn run_job(&self, job: &Job) -> Result<Arc<Snapshot>> {
        let started = Instant::now();
        self.lake.catalog().note_work().await?;
        let destination = Arc::new(Destination::new(Arc::clone(&self.lake), job.tenant.clone()));
        let done = self.write_and_commit(job, &destination).await;
        if let Err(error) = &done {
            self.lake.discard(&destination.begun(), error).await;
        }
        let (snapshot, output_bytes) = done?;
        let input_bytes: u64 = job.inputs.iter().map(|segment| segment.bytes()).sum();
        self.counters.jobs.fetch_add(1, Ordering::Relaxed);
        self.counters.input_segments.fetch_add(job.inputs.len() as u64, Ordering::Relaxed);
        self.counters.input_bytes.fetch_add(input_bytes, Ordering::Relaxed);
        self.counters.output_bytes.fetch_add(output_bytes, Ordering::Relaxed);
        self.counters.nanos.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        debug!(level = job.level, inputs = job.inputs.len(), input_bytes, output_bytes, "compacted");
        Ok(snapshot)
    }

    /// The snapshot with the outputs of a job in the place of its inputs, and how many bytes they have.
    async fn write_and_commit(&self, job: &Job, destination: &Arc<Destination>) -> Result<(Arc<Snapshot>, u64)> {
        let outputs = match job.level {
            1 => self.first_level(destination, &job.inputs).await?,
            level => self.merge(destination, &job.inputs, level).await?,
        };
        let data_version = job.inputs.iter().map(|segment| segment.data_version).max();
        let removed: Vec<i64> = job.inputs.iter().map(|segment| segment.id).collect();
        let output_bytes: u64 = outputs.iter().map(Piece::bytes).sum();
        let snapshot = self.lake.catalog().replace(&job.tenant, outputs, &removed, data_version).await?;
        Ok((snapshot, output_bytes))
    }

    async fn first_level(&self, destination: &Arc<Destination>, inputs: &[Arc<Segment>]) -> Result<Vec<Piece>> {
        let mut batches: HashMap<Table, Vec<RecordBatch>> = HashMap::new();
        for segment in inputs {
            let rows = self.lake.reader().read_all(segment, ReadOptions::default()).await?;
            let rows = rows.into_iter().map(|batch| with_absent_columns(segment.table, batch));
            batches.entry(segment.table).or_default().extend(rows.collect::<Result<Vec<_>>>()?);
        }
        let destination = Arc::clone(destination);
        self.off_reactor(move || {
            let mut outputs = Vec::new();
            for table in Table::RECEIVED {
                if let Some(batches) = batches.get(&table) {
                    outputs.extend(first_level::write_first_level(&destination, table, batches)?);
                }
            }
            Ok(outputs)
        })
        .await
    }

    /// Merging mixes reading and encoding; it runs on a thread of its own so that neither holds up requests.
    async fn merge(&self, destination: &Arc<Destination>, inputs: &[Arc<Segment>], level: u8) -> Result<Vec<Piece>> {
        let (lake, destination, inputs) = (Arc::clone(&self.lake), Arc::clone(destination), inputs.to_vec());
        let runtime = tokio::runtime::Handle::current();
        let merging = async move {
            for segment in &inputs {
                soundness::check_sound(&lake, segment).await?;
            }
            merge::merge_segments(&lake, &destination, &inputs, level).await
        };
        self.off_reactor(move || runtime.block_on(merging)).await
    }

    /// Works on a thread of its own, and counts what it takes of a CPU.
    async fn off_reactor<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let counters = Arc::clone(&self.counters);
        let work = move || {
            let before = thread_cpu_nanos();
            let done = work();
            counters.cpu_nanos.fetch_add(thread_cpu_nanos().saturating_sub(before), Ordering::Relaxed);
            done
        };
        self.lake.compacting(work).await
    }
}

/// Time that the calling thread has spent on a CPU; 0 where the system does not tell.
fn thread_cpu_nanos() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}
