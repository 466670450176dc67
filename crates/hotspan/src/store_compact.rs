//! `hotspan store compact`: a store merged for good, as it would be once all of its time is over.

use std::path::Path;
use std::time::Duration;

use hotspan_lake::catalog::now_nanos;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::retention::{Retention, RetentionOptions};
use hotspan_lake::stats::StoreStats;
use hotspan_lake::{Lake, Result};

/// What a store held before and holds after.
#[derive(Debug)]
pub(crate) struct Compacted {
    pub(crate) before: StoreStats,
    pub(crate) after: StoreStats,
    /// Merges that were done.
    pub(crate) jobs: u64,
}

/// Merges everything in a store that nobody has open, and deletes what that replaces. `on_job` is told of each merge.
pub(crate) async fn compact(folder: &Path, mut on_job: impl FnMut(u64)) -> Result<Compacted> {
    // Reading comes first: it says that there is no store where opening one would make it.
    let before = StoreStats::read(folder).await?;
    let lake = Lake::open(folder).await?;
    // Nobody else reads the files that are replaced.
    let at_once = RetentionOptions { deletion_delay: Duration::ZERO, ..RetentionOptions::default() };
    let keeper = Retention::new(lake.clone(), at_once);
    // Before anything is committed: afterwards, an old copy of a catalog would look like a new one.
    keeper.sweep().await?;
    let compactor = Compactor::new(lake.clone(), CompactionOptions::default());
    let mut jobs = 0;
    // At the end of time every partition is over, and every segment old.
    while let Some(job) = compactor.next_job(i64::MAX) {
        compactor.run_job(&job).await?;
        jobs += 1;
        on_job(jobs);
    }
    keeper.delete_removed(now_nanos()).await?;
    lake.catalog().close().await;
    Ok(Compacted { before, after: StoreStats::read(folder).await?, jobs })
}
