//! Retention: what is too old goes, and files that nothing needs any more are deleted.
//!
//! Removing is done in two steps. A segment is first marked in the catalog, so that no new query sees it; its
//! file is deleted only after the longest query that could still be reading it must have ended, or, where only this process
//! can read it, has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::Lake;
use crate::catalog::now_nanos;
use crate::error::Result;
use crate::orphans;
use crate::table::Table;

/// How long data is kept.
#[derive(Debug, Clone)]
pub struct RetentionOptions {
    /// Spans, and the traces they make up.
    pub spans: Duration,
    /// Raw samples, and the profiles they came in.
    pub samples: Duration,
    /// Sums of 15 seconds.
    pub rollup_15s: Duration,
    /// Sums of an hour; labels and symbols are kept as long.
    pub rollup_1h: Duration,
    /// How long a removed file stays, for whoever still reads it; one of level 0 goes as soon as no query does.
    pub deletion_delay: Duration,
}

/// Files that are forgotten in one transaction, for whose time nothing else is committed.
const DELETED_AT_ONCE: usize = 64;

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Default for RetentionOptions {
    fn default() -> Self {
        Self {
            spans: 14 * DAY,
            samples: 7 * DAY,
            rollup_15s: 14 * DAY,
            rollup_1h: 400 * DAY,
            deletion_delay: Duration::from_secs(5 * 60),
        }
    }
}

impl RetentionOptions {
    /// How long rows of a table are kept.
    pub fn of(&self, table: Table) -> Duration {
        match table {
            Table::Spans | Table::Traces => self.spans,
            Table::Samples | Table::Profiles => self.samples,
            Table::Rollup15s => self.rollup_15s,
            Table::Rollup1h | Table::Series | Table::Nodes | Table::Frames => {
                self.rollup_1h.max(self.rollup_15s).max(self.samples)
            }
        }
    }
}

/// Counters of retention.
#[derive(Debug, Default)]
pub struct RetentionCounters {
    /// Segments that grew too old.
    pub expired_segments: AtomicU64,
    /// Files deleted.
    pub deleted_files: AtomicU64,
}

/// Removes what is too old until told to stop.
#[derive(Debug)]
pub struct Retention {
    lake: Arc<Lake>,
    options: RetentionOptions,
    counters: Arc<RetentionCounters>,
}

impl Retention {
    /// Retention for a lake.
    pub fn new(lake: Arc<Lake>, options: RetentionOptions) -> Self {
        Self { lake, options, counters: Arc::default() }
    }

    /// Its counters.
    pub fn counters(&self) -> &Arc<RetentionCounters> {
        &self.counters
    }

    /// Runs until `stop`: first sweeps what a crash left behind, then looks every half minute.
    pub async fn run(self, stop: CancellationToken) {
        if let Err(error) = self.sweep().await {
            warn!(%error, "files that a crash left behind could not be swept");
        }
        loop {
            let now = now_nanos();
            if let Err(error) = self.expire(now).await {
                warn!(%error, "old segments could not be removed and will be tried again");
            }
            if let Err(error) = self.delete_removed(now).await {
                warn!(%error, "removed files could not be deleted and will be tried again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(30)) => {}
            }
        }
    }

    /// Deletes what a crash before the store was opened left behind; says how many objects that were.
    pub async fn sweep(&self) -> Result<u64> {
        let deleted = orphans::sweep(&self.lake).await?;
        self.counters.deleted_files.fetch_add(deleted, Ordering::Relaxed);
        Ok(deleted)
    }

    /// Marks the segments whose last row is too old at `now`.
    pub async fn expire(&self, now: i64) -> Result<u64> {
        let snapshot = self.lake.catalog().snapshot();
        let mut expired = 0;
        for tenant in snapshot.tenants() {
            let old: Vec<i64> = snapshot
                .all_segments()
                .filter(|segment| segment.tenant == tenant && segment.level > 0)
                .filter(|segment| {
                    let kept = i64::try_from(self.options.of(segment.table).as_nanos()).unwrap_or(i64::MAX);
                    let last = segment.max_time.saturating_add(crate::segment::time_grain(segment.table) - 1);
                    last < now.saturating_sub(kept)
                })
                .map(|segment| segment.id)
                .collect();
            if !old.is_empty() {
                self.lake.catalog().replace(&tenant, Vec::new(), &old, None).await?;
                info!(%tenant, segments = old.len(), "removed segments past their retention");
                expired += old.len() as u64;
            }
        }
        self.counters.expired_segments.fetch_add(expired, Ordering::Relaxed);
        Ok(expired)
    }

    /// Deletes files that were removed and that nobody reads any more at `now`.
    pub async fn delete_removed(&self, now: i64) -> Result<u64> {
        let delay = i64::try_from(self.options.deletion_delay.as_nanos()).unwrap_or(i64::MAX);
        let unread = self.lake.catalog().unread_objects(now.saturating_sub(delay)).await?;
        for objects in unread.chunks(DELETED_AT_ONCE) {
            for path in objects {
                self.lake.reader().forget(path);
                self.lake.store().delete(path).await?;
            }
            self.lake.catalog().forget(objects).await?;
        }
        let count = unread.len() as u64;
        if count > 0 {
            self.lake.catalog().forget_versions().await?;
        }
        self.counters.deleted_files.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }
}
