//! Objects that no commit mentions. A crash between an object and its commit leaves one behind, and only such are deleted:
//! where there are others, a catalog was lost or is an old copy, and what it does not know of may be all that is left.

use std::path::Path;

use hashbrown::HashSet;
use tracing::{info, warn};

use crate::Lake;
use crate::error::{LakeError, Result};
use crate::object_name::ObjectName;
use crate::store::{BlobMeta, BlobStore};
use crate::table::HOUR;

/// What is newer than the last commit by more than this is no orphan of a crash, as far as anybody can tell: a server at work
/// commits. One that did nothing for hours may leave such an object all the same, which then stays and costs room, but no data.
const LONGEST_WITHOUT_COMMIT: i64 = HOUR;

/// Fails if there are objects and no catalog: with a new one none of them would count, and all would be deleted as orphans.
pub(crate) async fn refuse_lost_catalog(folder: &Path, store: &dyn BlobStore) -> Result<()> {
    if folder.join("catalog.sqlite").exists() {
        return Ok(());
    }
    let objects = store.list("").await?.iter().filter(|blob| ObjectName::of(&blob.path).is_some()).count();
    match objects {
        0 => Ok(()),
        objects => Err(LakeError::NoCatalog { path: folder.display().to_string(), objects }),
    }
}

/// Deletes what the crash before this start, at `started`, left behind; says how many objects that were.
pub(crate) async fn sweep(lake: &Lake, started: i64) -> Result<u64> {
    let catalog = lake.catalog();
    let known: HashSet<String> = catalog.known_paths().await?.into_iter().collect();
    let swept_before = catalog.last_sweep().await?.unwrap_or(i64::MIN);
    let is_of_last_run = |blob: &BlobMeta| {
        let created_at = ObjectName::of(&blob.path).map(|name| name.created_at);
        created_at.is_some_and(|created_at| (swept_before..started).contains(&created_at))
    };
    let mut orphans = lake.store().list("").await?;
    orphans.retain(|blob| !known.contains(&blob.path) && is_of_last_run(blob));
    let latest = orphans.iter().filter_map(|blob| ObjectName::of(&blob.path)).map(|name| name.created_at).max();
    let last_commit = catalog.last_commit().await?;
    let (objects, bytes) = (orphans.len() as u64, orphans.iter().map(|blob| blob.size).sum::<u64>());
    if let (Some(latest), Some(last_commit)) = (latest, last_commit)
        && latest.saturating_sub(last_commit) > LONGEST_WITHOUT_COMMIT
    {
        warn!(
            objects,
            bytes,
            "there are objects that are newer than the catalog, which seems to be an old copy; what it does not mention is \
             not read, and not deleted either"
        );
        catalog.note_sweep(started).await?;
        return Ok(0);
    }
    for blob in &orphans {
        lake.store().delete(&blob.path).await?;
    }
    if objects > 0 {
        info!(objects, bytes, "deleted objects that no commit mentions; their writer ended before it");
    }
    catalog.note_sweep(started).await?;
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use hotspan_model::{Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _};

    use super::*;
    use crate::catalog::now_nanos;
    use crate::object_name::{YOUNG, object_path};
    use crate::rows::Rows;
    use crate::{Ingest, IngestOptions};

    const MINUTE: i64 = 60 * 1_000_000_000;

    async fn store_a_span(lake: &Arc<Lake>) {
        let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
        let (ingest, committer) = Ingest::start(Arc::clone(lake), options);
        let mut rows = Rows::default();
        rows.spans.resource(&Resource::default());
        rows.spans.scope(&Scope::default());
        let (trace_id, span_id, start) = (TraceId([1; 16]), SpanId([1; 8]), now_nanos());
        rows.spans.span(&Span { trace_id, span_id, start, end: start + 5, ..Span::default() });
        ingest.submit(TenantId::anonymous(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
        drop(ingest);
        committer.await.unwrap();
    }

    async fn put_orphan(lake: &Lake, created_at: i64) -> String {
        let path = object_path(&TenantId::anonymous(), YOUNG, None, (created_at, 1), "seg");
        put(lake, &path).await;
        path
    }

    async fn put(lake: &Lake, path: &str) {
        lake.store().put(path, Bytes::from_static(b"x")).await.unwrap();
    }

    async fn paths(lake: &Lake) -> Vec<String> {
        lake.store().list("").await.unwrap().into_iter().map(|blob| blob.path).collect()
    }

    /// Scenario: objects without a commit from just before a start, from before the start before it and from after it; files
    /// with names of others.
    /// Guarantee: the first go, all others stay, and so does what is committed.
    #[tokio::test]
    async fn only_what_a_crash_left_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        store_a_span(&lake).await;
        let now = now_nanos();
        let committed = paths(&lake).await;
        assert_eq!(sweep(&lake, now + MINUTE).await.unwrap(), 0);
        let earlier = put_orphan(&lake, now).await;
        let left_behind = put_orphan(&lake, now + 2 * MINUTE).await;
        let on_its_way = put_orphan(&lake, now + 4 * MINUTE).await;
        put(&lake, "sales/2024-01-01.csv").await;
        assert_eq!(sweep(&lake, now + 3 * MINUTE).await.unwrap(), 1);
        let left = paths(&lake).await;
        assert!(!left.contains(&left_behind));
        for path in committed.iter().chain([&earlier, &on_its_way, &"sales/2024-01-01.csv".to_owned()]) {
            assert!(left.contains(path), "{path}: {left:?}");
        }
    }

    /// Scenario: objects that are hours newer than the last commit of the catalog, at two starts.
    /// Guarantee: nothing is deleted at either.
    #[tokio::test]
    async fn what_an_old_catalog_does_not_know_stays() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        store_a_span(&lake).await;
        let now = now_nanos();
        put_orphan(&lake, now + MINUTE).await;
        put_orphan(&lake, now + 3 * HOUR).await;
        let before = paths(&lake).await;
        for started in [now + 4 * HOUR, now + 5 * HOUR] {
            assert_eq!(sweep(&lake, started).await.unwrap(), 0);
        }
        assert_eq!(paths(&lake).await, before);
    }

    /// Scenario: a store whose catalog was taken away, opened, and opened again once it is back.
    /// Guarantee: refused with what is missing, without a new catalog and with all files in place; then everything is there.
    #[tokio::test]
    async fn a_store_without_its_catalog_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        store_a_span(&lake).await;
        let before = paths(&lake).await;
        lake.catalog().close().await;
        drop(lake);
        let (catalog, away) = (folder.path().join("catalog.sqlite"), folder.path().join("away"));
        std::fs::rename(&catalog, &away).unwrap();
        for _ in 0..2 {
            let error = Lake::open(folder.path()).await.unwrap_err().to_string();
            assert!(error.contains("no catalog.sqlite") && !catalog.exists(), "{error}");
        }
        std::fs::rename(&away, &catalog).unwrap();
        let lake: Arc<Lake> = Lake::open(folder.path()).await.unwrap();
        assert_eq!(paths(&lake).await, before);
        assert_eq!(lake.catalog().snapshot().all_segments().map(|segment| segment.rows).sum::<u64>(), 1);
    }
}
