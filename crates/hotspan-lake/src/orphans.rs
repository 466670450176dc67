//! Objects that no commit mentions. A crash between an object and its commit leaves one behind, and only such are deleted:
//! where there are others, a catalog was lost or is an old copy, and what it does not know of may be all that is left.

use std::path::Path;

use hashbrown::HashSet;
use tracing::{info, warn};

use crate::Lake;
use crate::catalog::Found;
use crate::error::{LakeError, Result};
use crate::object_name::ObjectName;
use crate::store::{BlobMeta, BlobStore};

/// What is newer than the last version of the catalog by more than this was made by a server with another one: before a server
/// makes an object, there is a version of the last minute (`Catalog::note_work`). A job notes its work when it starts, and then
/// needs some time.
const LONGEST_BEHIND_VERSION: i64 = 5 * 60 * 1_000_000_000;

/// Fails if there are objects and no catalog, or a file of that name with nothing in it: with a new one none of them would count.
pub(crate) async fn refuse_lost_catalog(folder: &Path, store: &dyn BlobStore) -> Result<()> {
    if folder.join("catalog.sqlite").metadata().is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    let objects = store.list("").await?.iter().filter(|blob| ObjectName::of(&blob.path).is_some()).count();
    match objects {
        0 => Ok(()),
        objects => Err(LakeError::NoCatalog { path: folder.display().to_string(), objects }),
    }
}

impl Found {
    /// Whether some of the objects that a catalog does not mention are too new to be what a crash left: then it is an old copy.
    pub(crate) fn is_older_than<'p>(self, mut unknown: impl Iterator<Item = &'p str>) -> bool {
        let last_explained = self.last_version_at.map(|at| at.saturating_add(LONGEST_BEHIND_VERSION));
        unknown.any(|path| ObjectName::of(path).is_some_and(|name| Some(name.created_at) > last_explained))
    }
}

/// Deletes what the crash before this start left behind; says how many objects that were.
pub(crate) async fn sweep(lake: &Lake) -> Result<u64> {
    sweep_found(lake, lake.catalog().found()).await
}

async fn sweep_found(lake: &Lake, found: Found) -> Result<u64> {
    let catalog = lake.catalog();
    let known: HashSet<String> = catalog.known_paths().await?.into_iter().collect();
    let swept_before = catalog.last_sweep().await?.unwrap_or(i64::MIN);
    let is_of_last_run = |blob: &BlobMeta| {
        let created_at = ObjectName::of(&blob.path).map(|name| name.created_at);
        created_at.is_some_and(|created_at| (swept_before..found.opened_at).contains(&created_at))
    };
    let mut orphans = lake.store().list("").await?;
    orphans.retain(|blob| !known.contains(&blob.path) && is_of_last_run(blob));
    let is_old_copy = found.is_older_than(orphans.iter().map(|blob| blob.path.as_str()));
    let (objects, bytes) = (orphans.len() as u64, orphans.iter().map(|blob| blob.size).sum::<u64>());
    if is_old_copy {
        warn!(
            objects,
            bytes,
            "there are objects that are newer than the catalog, which seems to be an old copy; what it does not mention is \
             not read, and not deleted either"
        );
        catalog.note_sweep(found.opened_at).await?;
        return Ok(0);
    }
    for blob in &orphans {
        lake.store().delete(&blob.path).await?;
    }
    if objects > 0 {
        info!(objects, bytes, "deleted objects that no commit mentions; their writer ended before it");
    }
    catalog.note_sweep(found.opened_at).await?;
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use hotspan_model::{Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _};

    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions as _, Connection as _};

    use super::*;
    use crate::catalog::now_nanos;
    use crate::compaction::{CompactionOptions, Compactor};
    use crate::object_name::{YOUNG, object_path};
    use crate::rows::Rows;
    use crate::table::HOUR;
    use crate::{Ingest, IngestOptions};

    const MINUTE: i64 = 60 * 1_000_000_000;

    async fn store_a_span(lake: &Arc<Lake>) -> std::result::Result<(), Arc<LakeError>> {
        let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
        let (ingest, committer) = Ingest::start(Arc::clone(lake), options);
        let mut rows = Rows::default();
        rows.spans.resource(&Resource::default());
        rows.spans.scope(&Scope::default());
        let start = now_nanos();
        let (trace_id, span_id) = (TraceId([1; 16]), SpanId(start.to_be_bytes()));
        rows.spans.span(&Span { trace_id, span_id, start, end: start + 5, ..Span::default() });
        let stored = ingest.submit(TenantId::anonymous(), rows, ingest.try_reserve(1000).unwrap()).await;
        drop(ingest);
        committer.await.unwrap();
        stored.map(|_| ())
    }

    /// The same store, as a server finds it that starts at this time.
    async fn sweep_at(lake: &Lake, opened_at: i64) -> Result<u64> {
        let last_version_at = Some(now_nanos());
        sweep_found(lake, Found { opened_at, last_version_at }).await
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
        store_a_span(&lake).await.unwrap();
        let now = now_nanos();
        let committed = paths(&lake).await;
        assert_eq!(sweep_at(&lake, now + MINUTE).await.unwrap(), 0);
        let earlier = put_orphan(&lake, now).await;
        let left_behind = put_orphan(&lake, now + 2 * MINUTE).await;
        let on_its_way = put_orphan(&lake, now + 4 * MINUTE).await;
        put(&lake, "sales/2024-01-01.csv").await;
        assert_eq!(sweep_at(&lake, now + 3 * MINUTE).await.unwrap(), 1);
        let left = paths(&lake).await;
        assert!(!left.contains(&left_behind));
        for path in committed.iter().chain([&earlier, &on_its_way, &"sales/2024-01-01.csv".to_owned()]) {
            assert!(left.contains(path), "{path}: {left:?}");
        }
    }

    /// Scenario: objects that are newer than the catalog, one of them by more than a crash can explain, at two starts; and an
    /// object beside a catalog in which nothing was ever noted.
    /// Guarantee: nothing is deleted, and a check says what the catalog seems to be.
    #[tokio::test]
    async fn what_an_old_catalog_does_not_know_stays() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        store_a_span(&lake).await.unwrap();
        let now = now_nanos();
        put_orphan(&lake, now + MINUTE).await;
        put_orphan(&lake, now + 7 * MINUTE).await;
        let before = paths(&lake).await;
        for opened_at in [now + HOUR, now + 2 * HOUR] {
            assert_eq!(sweep_at(&lake, opened_at).await.unwrap(), 0);
        }
        assert_eq!(paths(&lake).await, before);
        lake.catalog().close().await;
        drop(lake);
        let checked = crate::check::check(folder.path(), |_| {}).await.unwrap();
        assert!(checked.damage.iter().any(|damage| damage.reason.contains("an old copy")), "{:?}", checked.damage);

        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        put_orphan(&lake, now).await;
        assert_eq!(sweep(&lake).await.unwrap(), 0);
        assert_eq!(paths(&lake).await.len(), 1);
    }

    /// Runs statements in the catalog of a store that is closed for it.
    async fn change_catalog(lake: Arc<Lake>, folder: &Path, statements: &'static str) -> Arc<Lake> {
        lake.catalog().close().await;
        drop(lake);
        let file = SqliteConnectOptions::new().filename(folder.join("catalog.sqlite"));
        let mut database = file.connect().await.unwrap();
        sqlx::raw_sql(statements).execute(&mut database).await.unwrap();
        database.close().await.unwrap();
        Lake::open(folder).await.unwrap()
    }

    /// Scenario: a server that did nothing for hours takes a span, and another one compacts what is there; both end between
    /// their objects and the commit.
    /// Guarantee: the next start deletes these objects, although the last commit is hours older, and nothing else.
    #[tokio::test]
    async fn what_an_idle_server_left_is_deleted() {
        const IDLE: &str = "UPDATE version SET committed_at = committed_at - 3 * 3600 * 1000000000;
            CREATE TRIGGER ends BEFORE INSERT ON segment BEGIN SELECT raise(ABORT, 'the process ends here'); END;";
        let folder = tempfile::tempdir().unwrap();
        let mut lake = Lake::open(folder.path()).await.unwrap();
        store_a_span(&lake).await.unwrap();
        sweep(&lake).await.unwrap();
        let before = paths(&lake).await;
        for is_compaction in [false, true] {
            lake = change_catalog(lake, folder.path(), IDLE).await;
            if is_compaction {
                let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
                compactor.run_until_idle(now_nanos() + HOUR).await.unwrap_err();
            } else {
                store_a_span(&lake).await.unwrap_err();
            }
            let left_behind = paths(&lake).await.len() - before.len();
            assert!(left_behind > 0);
            lake = change_catalog(lake, folder.path(), "DROP TRIGGER ends").await;
            assert_eq!(sweep(&lake).await.unwrap(), left_behind as u64, "compaction: {is_compaction}");
            assert_eq!(paths(&lake).await, before);
        }
    }

    /// Scenario: a store whose catalog was taken away or is an empty file, opened and checked, and opened again once it is back.
    /// Guarantee: refused with what is missing, without a new catalog and with all files in place; then everything is there.
    #[tokio::test]
    async fn a_store_without_its_catalog_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::open(folder.path()).await.unwrap();
        store_a_span(&lake).await.unwrap();
        let before = paths(&lake).await;
        lake.catalog().close().await;
        drop(lake);
        let (catalog, away) = (folder.path().join("catalog.sqlite"), folder.path().join("away"));
        std::fs::rename(&catalog, &away).unwrap();
        for _ in 0..2 {
            let error = Lake::open(folder.path()).await.unwrap_err().to_string();
            assert!(error.contains("no catalog.sqlite") && !catalog.exists(), "{error}");
        }
        std::fs::write(&catalog, "").unwrap();
        let opened = Lake::open(folder.path()).await.err().map(|error| error.to_string());
        let checked = crate::check::check(folder.path(), |_| {}).await.err().map(|error| error.to_string());
        for error in [opened, checked] {
            assert!(error.as_ref().is_some_and(|error| error.contains("or an empty one")), "{error:?}");
        }
        std::fs::rename(&away, &catalog).unwrap();
        let lake: Arc<Lake> = Lake::open(folder.path()).await.unwrap();
        assert_eq!(paths(&lake).await, before);
        assert_eq!(lake.catalog().snapshot().all_segments().map(|segment| segment.rows).sum::<u64>(), 1);
    }
}
