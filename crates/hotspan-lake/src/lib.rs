//! The lake: traces and profiles as open, sorted files, and the catalog that says which ones count.
//!
//! ```text
//! Rows --Ingest--> level 0 segments --Compaction--> sorted Parquet, rollups --Retention--> gone
//!                        \________________ Catalog (one transaction a step) ________________/
//!                                               |
//!                                            Snapshot --SegmentReader--> Arrow batches
//! ```
//!
//! Rules that are kept here: R1 (an acknowledged request survives), R2 (a snapshot shows commits whole),
//! R5 (memory is bounded), R6 (a tenant has paths and segments of its own).

pub mod arrays;
pub mod catalog;
pub mod check;
mod claim;
pub mod compaction;
mod error;
mod id_hasher;
pub mod ingest;
mod object_name;
mod orphans;
#[cfg(test)]
mod power_cut;
pub mod rejected;
pub mod repair;
pub mod retention;
pub mod rows;
pub mod segment;
pub mod stats;
pub mod store;
pub mod table;
pub mod work_threads;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hotspan_model::TenantId;
use tokio::sync::Notify;
use tracing::warn;

pub use catalog::{Catalog, Snapshot};
pub use claim::StoreClaim;
pub use error::{LakeError, Result};
pub use ingest::{Ingest, IngestCounters, IngestOptions, Receipt};
pub use segment::{IdPart, IdSet, Piece, ReadOptions, Segment, SegmentReader};
pub use table::Table;

use crate::catalog::now_nanos;
use crate::object_name::object_path;
use crate::rejected::RejectedItems;
use crate::store::{BlobStore, LocalStore, Syncs, SystemSyncs};
use crate::work_threads::WorkThreads;

/// An open store.
#[derive(Debug)]
pub struct Lake {
    store: Arc<dyn BlobStore>,
    catalog: Catalog,
    reader: SegmentReader,
    ingest_counters: Arc<IngestCounters>,
    rejected: RejectedItems,
    compaction_wanted: Notify,
    committing: WorkThreads,
    compacting: WorkThreads,
    object_number: AtomicU64,
    _claim: StoreClaim,
}

impl Lake {
    /// Opens the store in a local folder, making it if it is not there.
    pub async fn open(folder: &Path) -> Result<Arc<Self>> {
        Self::open_syncing(folder, Arc::new(SystemSyncs)).await
    }

    async fn open_syncing(folder: &Path, syncs: Arc<dyn Syncs>) -> Result<Arc<Self>> {
        Self::open_segments(StoreClaim::make(folder, syncs.as_ref())?, syncs).await
    }

    /// Opens a store that was claimed before.
    pub async fn open_claimed(claim: StoreClaim) -> Result<Arc<Self>> {
        Self::open_segments(claim, Arc::new(SystemSyncs)).await
    }

    async fn open_segments(claim: StoreClaim, syncs: Arc<dyn Syncs>) -> Result<Arc<Self>> {
        let store = Arc::new(LocalStore::open_syncing(&claim.folder.join("data"), syncs)?);
        Self::open_with(claim, store).await
    }

    /// Opens a store whose segments are kept elsewhere than in its folder.
    pub async fn open_with_store(folder: &Path, store: Arc<dyn BlobStore>) -> Result<Arc<Self>> {
        Self::open_with(StoreClaim::new(folder)?, store).await
    }

    async fn open_with(claim: StoreClaim, store: Arc<dyn BlobStore>) -> Result<Arc<Self>> {
        orphans::refuse_lost_catalog(&claim.folder, store.as_ref()).await?;
        let catalog = Catalog::open(&claim.folder).await?;
        Ok(Arc::new(Self {
            reader: SegmentReader::new(Arc::clone(&store)),
            store,
            catalog,
            ingest_counters: Arc::default(),
            rejected: RejectedItems::default(),
            compaction_wanted: Notify::new(),
            committing: start_thread("commit")?,
            compacting: start_thread("compact")?,
            object_number: AtomicU64::new(0),
            _claim: claim,
        }))
    }

    /// Does the work of a commit.
    pub(crate) async fn committing<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.committing.run(work).await.unwrap_or(Err(LakeError::ShuttingDown))
    }

    /// Does the work of a compaction.
    pub(crate) async fn compacting<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.compacting.run(work).await.unwrap_or(Err(LakeError::ShuttingDown))
    }

    /// Which segments there are.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Where segments are kept.
    pub fn store(&self) -> &Arc<dyn BlobStore> {
        &self.store
    }

    /// Reads segments.
    pub fn reader(&self) -> &SegmentReader {
        &self.reader
    }

    /// Counters of the write path.
    pub fn ingest_counters(&self) -> &Arc<IngestCounters> {
        &self.ingest_counters
    }

    /// What was sent lately and not taken.
    pub fn rejected(&self) -> &RejectedItems {
        &self.rejected
    }

    /// Memory that the rows of young segments take.
    pub fn resident_bytes(&self) -> usize {
        let snapshot = self.catalog.snapshot();
        snapshot.all_segments().map(|segment| segment.resident_bytes).sum()
    }

    /// A path that no object had before: time of creation, then a number.
    pub(crate) fn new_object_path(
        &self,
        tenant: &TenantId,
        kind: &str,
        partition: Option<i64>,
        ending: &str,
    ) -> String {
        let number = self.object_number.fetch_add(1, Ordering::Relaxed);
        object_path(tenant, kind, partition, (now_nanos(), number), ending)
    }

    /// Deletes what was written for a commit that failed with an error, if no catalog can ever mention it. It would lie there until
    /// the next start otherwise, once more for each time that somebody tries again, and soon fill a disk that has no room left.
    pub(crate) async fn discard(&self, paths: &[String], error: &LakeError) {
        if !error.leaves_nothing_committed() {
            return;
        }
        for path in paths {
            if let Err(error) = self.store.delete(path).await {
                warn!(%path, %error, "what was written for a commit that failed could not be deleted; the next start does");
            }
        }
    }

    pub(crate) fn wake_compaction(&self) {
        self.compaction_wanted.notify_one();
    }
}

fn start_thread(name: &str) -> Result<WorkThreads> {
    let failed = |source| LakeError::Storage { action: "starting a thread for", path: name.to_owned(), source };
    WorkThreads::start(name, 1).map_err(failed)
}
