//! The one task that commits: it joins submissions into segments, and answers them when they are durable.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use hotspan_model::TenantId;
use tracing::{debug, info, warn};

use super::failures::Failures;
use super::known::Known;
use super::recall::recall;
use super::seen::Seen;
use super::waiting::Exit;
use super::{IngestCounters, IngestOptions, Receipt, Submission};
use crate::Lake;
use crate::error::Result;
use crate::object_name::YOUNG;
use crate::rows::Rows;
use crate::segment::{Piece, l0};
use crate::table::Table;

pub(super) struct Committer {
    lake: Arc<Lake>,
    options: IngestOptions,
    known: Arc<Known>,
    seen: Seen,
    failures: Failures,
}

/// Who opens a store has all cores for this long; only what is to be stored before asks for ids at once.
const RECALL_DELAY: Duration = Duration::from_millis(300);

/// The rows of a batch that came with one submission.
struct Share {
    spans: Range<usize>,
    profiles: Range<usize>,
}

impl Share {
    /// The share of rows that are joined to those of the shares before.
    fn after(before: &[Self], rows: &Rows) -> Self {
        let (spans, profiles) = before.last().map_or((0, 0), |last| (last.spans.end, last.profiles.end));
        Self { spans: spans..spans + rows.spans.len(), profiles: profiles..profiles + rows.profiles.ranges().len() }
    }
}

/// Which rows of a batch were stored before, and the ids of those that were not.
#[derive(Default)]
struct Retries {
    keep_spans: Option<Vec<bool>>,
    keep_samples: Option<Vec<bool>>,
    keep_profiles: Option<Vec<bool>>,
    fresh: Vec<u64>,
}

impl Retries {
    /// What a submission hears of its own rows, and of nobody else's.
    fn receipt(&self, share: &Share) -> Receipt {
        let count = |keep: &Option<Vec<bool>>, rows: &Range<usize>| {
            keep.as_ref().map_or(0, |keep| keep[rows.clone()].iter().filter(|is_new| !**is_new).count() as u64)
        };
        Receipt {
            version: 0,
            duplicate_spans: count(&self.keep_spans, &share.spans),
            duplicate_profiles: count(&self.keep_profiles, &share.profiles),
        }
    }
}

impl Committer {
    pub(super) fn new(lake: Arc<Lake>, options: IngestOptions, known: Arc<Known>) -> Self {
        let seen = Seen::new(options.dedup_window, options.dedup_entries);
        Self { lake, options, known, seen, failures: Failures::default() }
    }

    pub(super) async fn run(mut self, waiting: Exit) {
        if let Ok(false) = tokio::time::timeout(RECALL_DELAY, waiting.some()).await {
            return;
        }
        self.recall().await;
        while let Some(batch) = waiting.batch(self.options.flush_interval).await {
            self.commit_by_tenant(batch).await;
        }
        debug!("committer has answered everything");
    }

    /// Reads on a thread of its own, so that questions are answered meanwhile; what comes to be stored waits for it.
    async fn recall(&mut self) {
        let (lake, options) = (Arc::clone(&self.lake), self.options.clone());
        let mut seen = Seen::new(options.dedup_window, options.dedup_entries);
        let runtime = tokio::runtime::Handle::current();
        let recalling = move || {
            runtime.block_on(recall(&lake, &options, &mut seen))?;
            Ok(seen)
        };
        match self.lake.committing(recalling).await {
            Ok(seen) => self.seen = seen,
            Err(error) => {
                warn!(%error, "recent commits could not be found; retries of requests from before the start may count twice");
            }
        }
        self.count_remembered();
    }

    fn count_remembered(&self) {
        self.lake.ingest_counters().remembered_ids.store(self.seen.len() as u64, Ordering::Relaxed);
    }

    async fn commit_by_tenant(&mut self, mut batch: Vec<Submission>) {
        batch.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        while let Some(tenant) = batch.first().map(|submission| submission.tenant.clone()) {
            let others = batch.split_off(batch.partition_point(|submission| submission.tenant == tenant));
            self.commit_and_answer(&tenant, std::mem::replace(&mut batch, others)).await;
        }
    }

    async fn commit_and_answer(&mut self, tenant: &TenantId, submissions: Vec<Submission>) {
        let started = Instant::now();
        let mut waiting = Vec::with_capacity(submissions.len());
        let mut parts = Vec::with_capacity(submissions.len());
        let mut shares = Vec::with_capacity(submissions.len());
        for submission in submissions {
            shares.push(Share::after(&shares, &submission.rows));
            parts.push(submission.rows);
            waiting.push((submission.answer, submission.reservation));
        }
        let result = match self.lake.committing(move || Ok(Rows::join(parts))).await {
            Ok(joined) => self.commit(tenant, joined, &shares).await.map_err(Arc::new),
            Err(error) => Err(Arc::new(error)),
        };
        let counters = self.lake.ingest_counters();
        IngestCounters::add(&counters.commit_nanos, started.elapsed().as_nanos() as u64);
        match &result {
            Ok(_) => {
                if let Some(batches) = self.failures.succeeded() {
                    info!(batches, "batches are committed again");
                }
            }
            Err(error) => {
                IngestCounters::add(&counters.failed_batches, 1);
                if let Some(batches) = self.failures.failed(Instant::now()) {
                    let requests = waiting.len();
                    warn!(%tenant, %error, requests, batches, "a batch could not be committed; its senders are told to retry");
                }
            }
        }
        for (number, (answer, reservation)) in waiting.into_iter().enumerate() {
            answer.give(result.as_ref().map(|receipts| receipts[number]).map_err(Arc::clone));
            drop(reservation);
        }
    }

    /// Commits a batch; a receipt for each submission that has a share in it.
    async fn commit(&mut self, tenant: &TenantId, rows: Rows, shares: &[Share]) -> Result<Vec<Receipt>> {
        let mut retries = self.find_retries(tenant, &rows);
        let fresh = std::mem::take(&mut retries.fresh);
        let mut receipts: Vec<Receipt> = shares.iter().map(|share| retries.receipt(share)).collect();
        let written = self.write(tenant, rows, retries).await;
        if written.is_err() {
            self.seen.forget(&fresh);
        }
        self.count_remembered();
        let version = written?;
        let counters = self.lake.ingest_counters();
        for receipt in &mut receipts {
            receipt.version = version;
            IngestCounters::add(&counters.duplicate_spans, receipt.duplicate_spans);
            IngestCounters::add(&counters.duplicate_profiles, receipt.duplicate_profiles);
        }
        Ok(receipts)
    }

    /// Stores the rows of a batch that are new; the version that holds them.
    async fn write(&mut self, tenant: &TenantId, rows: Rows, retries: Retries) -> Result<i64> {
        let new_symbols = rows.profiles.new_symbols();
        let collisions = rows.profiles.collisions();
        let keep = (retries.keep_spans, retries.keep_samples, retries.keep_profiles);
        let encode = move || {
            let mut batches = rows.finish()?;
            for (table, batch) in &mut batches {
                let keep = match table {
                    Table::Spans => &keep.0,
                    Table::Samples => &keep.1,
                    Table::Profiles => &keep.2,
                    _ => &None,
                };
                if let Some(keep) = keep {
                    *batch = filter_record_batch(batch, &BooleanArray::from(keep.clone()))?;
                }
            }
            batches.retain(|(_, batch)| batch.num_rows() > 0);
            let (object, tables) = l0::encode(&batches)?;
            Ok((object, tables, batches))
        };
        let (object, tables, batches) = self.lake.committing(encode).await?;

        let counters = Arc::clone(self.lake.ingest_counters());
        if collisions > 0 {
            IngestCounters::add(&counters.symbol_collisions, collisions);
            warn!(%tenant, collisions, "symbols met others with the same id, and are shown as those");
        }
        if batches.is_empty() {
            return Ok(self.lake.catalog().snapshot().version());
        }

        self.lake.catalog().note_work().await?;
        let path = self.lake.new_object_path(tenant, YOUNG, None, "seg");
        let size = object.len() as u64;
        let memory: usize = batches.iter().map(|(_, batch)| batch.get_array_memory_size()).sum();
        let keep_resident = self.lake.resident_bytes() + memory <= self.options.resident_bytes;
        let segments = tables.iter().zip(&batches).map(|(encoded, (_, batch))| Piece {
            table: encoded.table,
            level: 0,
            partition: None,
            path: path.clone(),
            range: encoded.range.clone(),
            checksum: encoded.checksum,
            rows: encoded.rows,
            min_time: encoded.min_time,
            max_time: encoded.max_time,
            index: None,
            resident: keep_resident.then(|| batch.clone()),
            resident_bytes: if keep_resident { batch.get_array_memory_size() } else { 0 },
        });
        let segments = segments.collect();
        let committed = match self.lake.store().put(&path, object).await {
            Ok(()) => self.lake.catalog().commit(tenant, segments).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &committed {
            self.lake.discard(&[path], error).await;
        }
        let snapshot = committed?;

        self.known.learn(tenant, &new_symbols);
        IngestCounters::add(&counters.segments, 1);
        IngestCounters::add(&counters.bytes, size);
        for (table, batch) in &batches {
            let rows = batch.num_rows() as u64;
            match table {
                Table::Spans => IngestCounters::add(&counters.spans, rows),
                Table::Samples => IngestCounters::add(&counters.samples, rows),
                Table::Profiles => IngestCounters::add(&counters.profiles, rows),
                _ => {}
            }
        }
        self.lake.wake_compaction();
        Ok(snapshot.version())
    }

    /// Looks for spans and profiles that are stored already, or that stand twice in this batch, and remembers the others.
    fn find_retries(&mut self, tenant: &TenantId, rows: &Rows) -> Retries {
        let mut retries = Retries::default();
        let (span_key, profile_key) = (self.seen.span_key(tenant.as_str()), self.seen.profile_key(tenant.as_str()));
        let (span_count, ranges) = (rows.spans.len(), rows.profiles.ranges());
        self.seen.expect(span_count + ranges.len());
        retries.fresh.reserve(span_count + ranges.len());
        for row in 0..span_count {
            let (trace_id, span_id) = rows.spans.identity(row);
            let hash = span_key.span(trace_id, span_id);
            if self.seen.insert(hash) {
                retries.fresh.push(hash);
            } else {
                retries.keep_spans.get_or_insert_with(|| vec![true; span_count])[row] = false;
            }
        }
        for (number, range) in ranges.iter().enumerate() {
            let hash = profile_key.profile(range.key);
            if self.seen.insert(hash) {
                retries.fresh.push(hash);
            } else {
                let samples = retries.keep_samples.get_or_insert_with(|| vec![true; rows.profiles.sample_count()]);
                samples[range.first_sample..range.first_sample + range.sample_count].fill(false);
                retries.keep_profiles.get_or_insert_with(|| vec![true; ranges.len()])[number] = false;
            }
        }
        retries
    }
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Committer").field("options", &self.options).finish_non_exhaustive()
    }
}
