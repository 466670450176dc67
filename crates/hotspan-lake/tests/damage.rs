//! Files that change on the disk: nothing of them is taken over, and nothing else suffers.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hotspan_lake::catalog::now_nanos;
use hotspan_lake::check::check;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::{Ingest, IngestOptions, Lake, LakeError, Segment, Table};
use hotspan_model::{Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _};
use sqlx::Connection as _;
use tokio_util::sync::CancellationToken;

const HOUR: i64 = 3600 * 1_000_000_000;

/// Stores ten spans, in one commit.
async fn store(ingest: &Ingest, tenant: &TenantId, trace: u8, time: i64) -> Result<(), Arc<LakeError>> {
    let mut rows = Rows::default();
    rows.spans.resource(&Resource::default());
    rows.spans.scope(&Scope::default());
    for number in 1..=10 {
        let (trace_id, span_id) = (TraceId([trace; 16]), SpanId([number; 8]));
        rows.spans.span(&Span { trace_id, span_id, start: time, end: time + 5, ..Span::default() });
    }
    ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.map(|_| ())
}

fn spans(lake: &Lake, tenant: &TenantId) -> Vec<Arc<Segment>> {
    lake.catalog().snapshot().segments(tenant, Table::Spans).iter().cloned().collect()
}

/// Turns over one bit in the middle of a segment.
fn damage(folder: &Path, segment: &Segment) {
    let file = std::fs::File::options().read(true).write(true).open(folder.join("data").join(&segment.path)).unwrap();
    let (at, mut byte) = (segment.range.start.midpoint(segment.range.end), [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// Rows are never kept in memory, so that they are read back.
fn not_resident() -> IngestOptions {
    IngestOptions { flush_interval: Duration::from_millis(1), resident_bytes: 0, ..IngestOptions::default() }
}

/// Scenario: of two tenants with three commits each, one commit of the first is damaged on the disk before it is sorted.
/// Guarantee: all others go up, of both tenants; the damaged one stays where it is, and is counted.
#[tokio::test]
async fn one_damaged_commit_does_not_hold_up_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), not_resident());
    let tenants: [TenantId; 2] = ["first", "second"].map(|name| name.parse().unwrap());
    for tenant in &tenants {
        for trace in 1..=3 {
            store(&ingest, tenant, trace, now_nanos()).await.unwrap();
        }
    }
    let broken = Arc::clone(&spans(&lake, &tenants[0])[1]);
    damage(folder.path(), &broken);

    let options = CompactionOptions { first_level_age: Duration::ZERO, ..CompactionOptions::default() };
    let compactor = Compactor::new(Arc::clone(&lake), options);
    let (counters, stop) = (Arc::clone(compactor.counters()), CancellationToken::new());
    let running = tokio::spawn(compactor.run(stop.clone()));
    let young = |tenant: &TenantId| spans(&lake, tenant).iter().filter(|segment| segment.level == 0).count();
    let started = Instant::now();
    while (young(&tenants[0]), young(&tenants[1])) != (1, 0) {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", spans(&lake, &tenants[0]));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    running.await.unwrap();
    assert!(spans(&lake, &tenants[0]).iter().any(|segment| segment.id == broken.id));
    let rows: u64 = spans(&lake, &tenants[0]).iter().map(|segment| segment.rows).sum();
    assert_eq!(rows, 30);
    assert_eq!(counters.failed_jobs.load(Ordering::Relaxed), 1);
    assert_eq!(counters.resting_segments.load(Ordering::Relaxed), 1);
}

/// Scenario: a sorted file changes on the disk, anywhere, before it is merged with another.
/// Guarantee: the merge fails and says which file it is, instead of writing what it read with a new checksum.
#[tokio::test]
async fn damage_is_not_merged_away() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), not_resident());
    let tenant = TenantId::anonymous();
    let options = CompactionOptions { first_level_age: Duration::ZERO, ..CompactionOptions::default() };
    let compactor = Compactor::new(Arc::clone(&lake), options);
    for trace in 1..=2 {
        store(&ingest, &tenant, trace, now_nanos()).await.unwrap();
        compactor.run_until_idle(now_nanos()).await.unwrap();
    }
    let sorted = spans(&lake, &tenant);
    assert_eq!(sorted.iter().map(|segment| segment.level).collect::<Vec<_>>(), [1, 1]);
    damage(folder.path(), &sorted[0]);
    let merged = compactor.run_until_idle(now_nanos() + 2 * HOUR).await;
    assert!(matches!(&merged, Err(LakeError::Damaged { path, .. }) if *path == sorted[0].path), "{merged:?}");
    assert_eq!(spans(&lake, &tenant).len(), 2);
}

/// Scenario: a row of the catalog says another tenant, table, partition or no index for a sorted file, contradicts itself, has words
/// for numbers, or stands there twice.
/// Guarantee: a check names that file, each time; as it was, the store is sound.
#[tokio::test]
async fn a_catalog_that_disagrees_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let (ingest, committer) = Ingest::start(Arc::clone(&lake), not_resident());
    let tenant = TenantId::anonymous();
    store(&ingest, &tenant, 1, now_nanos()).await.unwrap();
    let options = CompactionOptions { first_level_age: Duration::ZERO, ..CompactionOptions::default() };
    Compactor::new(Arc::clone(&lake), options).run_until_idle(now_nanos()).await.unwrap();
    let file = spans(&lake, &tenant)[0].path.clone();
    drop(ingest);
    committer.await.unwrap();
    lake.catalog().close().await;
    drop(lake);

    let catalog = folder.path().join("catalog.sqlite");
    let whole = std::fs::read(&catalog).unwrap();
    let change = async |statement: &'static str| {
        let mut database = sqlx::SqliteConnection::connect(catalog.to_str().unwrap()).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut database).await.unwrap();
        database.close().await.unwrap();
    };
    assert!(check(folder.path(), |_| {}).await.unwrap().damage.is_empty());
    for statement in [
        "UPDATE segment SET tenant = 'other' WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET table_name = 'traces' WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET partition = partition + 3600000000000 WHERE table_name = 'spans' AND level = 1",
        "PRAGMA foreign_keys = OFF; UPDATE segment SET created_version = 99999 WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET index_path = NULL WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET removed_at = 5 WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET created_at = created_at - 1 WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET data_version = data_version + 1000 WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET rows = 'many' WHERE table_name = 'spans' AND level = 1",
        "UPDATE segment SET level = 257 WHERE table_name = 'spans' AND level = 1",
        "INSERT INTO segment (tenant, table_name, level, partition, path, start, length, checksum, rows, min_time, max_time,
             index_path, index_bytes, created_version, created_at, data_version)
         SELECT tenant, table_name, level, partition, path, start, length, checksum, rows, min_time, max_time,
             index_path, index_bytes, created_version, created_at, data_version FROM segment WHERE table_name = 'spans' AND level = 1",
    ] {
        change(statement).await;
        let damage = check(folder.path(), |_| {}).await.unwrap().damage;
        let named = if statement.contains("version = 99999") { "../catalog.sqlite" } else { &file };
        assert!(!damage.is_empty() && damage.iter().all(|damage| damage.path == named), "{statement}: {damage:?}");
        std::fs::write(&catalog, &whole).unwrap();
    }
}

/// Scenario: the folder of a store in use is moved away, then another one is put in its place, then it is moved back.
/// Guarantee: nothing is acknowledged and nothing made until it is back; then it goes on as before.
#[tokio::test]
async fn a_folder_that_is_moved_away_takes_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let (folder, away) = (outside.path().join("store"), outside.path().join("away"));
    let lake = Lake::open(&folder).await.unwrap();
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), not_resident());
    let tenant = TenantId::anonymous();
    store(&ingest, &tenant, 1, now_nanos()).await.unwrap();
    std::fs::rename(&folder, &away).unwrap();
    for data_in_its_place in [None, Some(folder.join("data"))] {
        if let Some(data) = &data_in_its_place {
            std::fs::create_dir_all(data).unwrap();
        }
        let refused = store(&ingest, &tenant, 2, now_nanos()).await.unwrap_err();
        assert!(refused.is_temporary() && refused.to_string().contains("moved or deleted"), "{refused}");
    }
    assert!(std::fs::read_dir(folder.join("data")).unwrap().next().is_none());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(&away, &folder).unwrap();
    store(&ingest, &tenant, 2, now_nanos()).await.unwrap();
    assert_eq!(spans(&lake, &tenant).iter().map(|segment| segment.rows).sum::<u64>(), 20);
}
