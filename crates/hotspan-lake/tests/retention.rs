//! Retention: each table for its own time, each tenant for itself, and nothing left behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::catalog::now_nanos;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::retention::{Retention, RetentionOptions};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::{DAY, HOUR};
use hotspan_lake::{Ingest, IngestOptions, Lake, Table};
use hotspan_model::{
    Frame, Labels, Profile, ProfileSet, ProfileType, Resource, Sample, Scope, Span, SpanId, TenantId, TraceId,
    TraceSink as _,
};
use sqlx::{Connection, Row};

/// Stores a span and a sample of this time, in one commit.
async fn store(ingest: &Ingest, tenant: &TenantId, time: i64) {
    let mut rows = Rows::default();
    rows.spans.resource(&Resource::default());
    rows.spans.scope(&Scope::default());
    let trace_id = TraceId((time as u128).to_be_bytes());
    rows.spans.span(&Span { trace_id, span_id: SpanId([1; 8]), start: time, end: time + 5, ..Span::default() });
    let mut set = ProfileSet::default();
    let frame = set.paths.frame(Frame::named("main"));
    let path = set.paths.path(&[frame]);
    set.profiles.push(Profile {
        profile_type: ProfileType::cpu(),
        labels: Labels::from_pairs([("service_name", "shop")]),
        time,
        samples: vec![Sample { path, value: 1, time, timed: true, link: 0, thread: 0, labels: 0, attributes: 0 }],
        ..Profile::default()
    });
    rows.profiles.push(&set, &ingest.known().of(tenant));
    ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
}

fn rows(lake: &Lake, tenant: &TenantId, table: Table) -> u64 {
    lake.catalog().snapshot().segments(tenant, table).iter().map(|segment| segment.rows).sum()
}

async fn versions_in_catalog(folder: &Path) -> i64 {
    let url = format!("sqlite://{}?mode=ro", folder.join("catalog.sqlite").display());
    let mut catalog = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("SELECT COUNT(*) FROM version").fetch_one(&mut catalog).await.unwrap().get(0)
}

/// Scenario: two tenants, one with data of an hour and of 20 days ago, the other of 8 days ago, compacted to the end.
/// Guarantee: of each tenant just those tables lose rows whose own time is over; then files and versions go as well, and
/// the next commit goes on from the last version.
#[tokio::test]
async fn each_table_and_tenant_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let [old_and_new, middle]: [TenantId; 2] = ["old-and-new", "middle"].map(|name| name.parse().unwrap());
    let now = now_nanos();
    store(&ingest, &old_and_new, now - 20 * DAY).await;
    store(&ingest, &old_and_new, now - HOUR).await;
    store(&ingest, &middle, now - 8 * DAY).await;
    let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
    compactor.run_until_idle(now + 2 * DAY).await.unwrap();
    let tables = [Table::Spans, Table::Traces, Table::Samples, Table::Profiles, Table::Rollup15s, Table::Rollup1h];
    let counts = |tenant: &TenantId| tables.map(|table| rows(&lake, tenant, table));
    assert_eq!((counts(&old_and_new), counts(&middle)), ([2; 6], [1; 6]));

    let retention = Retention::new(Arc::clone(&lake), RetentionOptions::default());
    retention.expire(now).await.unwrap();
    // Spans and sums of 15 seconds live for 14 days, samples for 7, sums of an hour for 400.
    assert_eq!(counts(&old_and_new), [1, 1, 1, 1, 1, 2]);
    assert_eq!(counts(&middle), [1, 1, 0, 0, 1, 1]);
    assert_eq!(rows(&lake, &old_and_new, Table::Series), 2, "labels live as long as the longest sums");

    let before = versions_in_catalog(folder.path()).await;
    assert!(retention.delete_removed(now + DAY).await.unwrap() > 0);
    let live: Vec<String> = lake.catalog().snapshot().all_segments().map(|segment| segment.path.clone()).collect();
    for blob in lake.store().list("").await.unwrap() {
        assert!(live.contains(&blob.path.trim_end_matches(".ids").to_owned()), "{} is left behind", blob.path);
    }
    let after = versions_in_catalog(folder.path()).await;
    assert!(
        after < before && after <= live.len() as i64 + 1,
        "{after} of {before} versions for {} segments",
        live.len()
    );
    let last = lake.catalog().snapshot().version();
    store(&ingest, &middle, now).await;
    assert!(lake.catalog().snapshot().version() > last);
}

async fn files(lake: &Lake, ending: &str) -> usize {
    lake.store().list("").await.unwrap().iter().filter(|blob| blob.path.ends_with(ending)).count()
}

/// Scenario: a flush is compacted while a query still has it, and looked after at once, again when the query is over, and
/// after a restart that came before.
/// Guarantee: the flush stays as long as it is read, then goes at once, though its time is not over; Parquet files, which
/// anybody may read, wait for theirs.
#[tokio::test]
async fn young_files_go_when_nobody_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let tenant = TenantId::anonymous();
    let retention = |lake: &Arc<Lake>| Retention::new(Arc::clone(lake), RetentionOptions::default());
    let now = now_nanos();
    {
        let lake = Lake::open(folder.path()).await.unwrap();
        let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
        let (ingest, committer) = Ingest::start(Arc::clone(&lake), options);
        let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
        store(&ingest, &tenant, now).await;
        let query = lake.catalog().snapshot();
        compactor.run_until_idle(now + HOUR / 60).await.unwrap();
        let replaced = lake.catalog().snapshot();
        compactor.run_until_idle(now + 2 * DAY).await.unwrap();
        let (merged, live) = (files(&lake, "parquet").await, lake.catalog().snapshot().all_segments().count());
        assert!(merged > live, "{merged} files for {live} segments");
        assert_eq!((retention(&lake).delete_removed(now).await.unwrap(), files(&lake, "seg").await), (0, 1));
        drop((query, replaced));
        assert_eq!((retention(&lake).delete_removed(now).await.unwrap(), files(&lake, "seg").await), (1, 0));
        assert_eq!(files(&lake, "parquet").await, merged);

        store(&ingest, &tenant, now + 1).await;
        compactor.run_until_idle(now + HOUR / 60).await.unwrap();
        assert_eq!(files(&lake, "seg").await, 1);
        drop(ingest);
        committer.await.unwrap();
    }
    let lake = Lake::open(folder.path()).await.unwrap();
    assert_eq!((retention(&lake).delete_removed(now).await.unwrap(), files(&lake, "seg").await), (1, 0));
}
