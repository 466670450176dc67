//! When what is compacted: seen from outside, as jobs that become due.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::catalog::now_nanos;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake, Table};
use hotspan_model::{Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _};

const SECOND: i64 = 1_000_000_000;

/// Stores as many spans of this time as there are numbers, in one commit.
async fn store(ingest: &Ingest, numbers: Range<u64>, time: i64) {
    let mut rows = Rows::default();
    rows.spans.resource(&Resource::default());
    rows.spans.scope(&Scope::default());
    for number in numbers {
        let trace_id = TraceId(u128::from(number).to_be_bytes());
        let span_id = SpanId((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        rows.spans.span(&Span { trace_id, span_id, start: time, end: time + 5, ..Span::default() });
    }
    ingest.submit(TenantId::anonymous(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
}

/// Does the jobs that are due at a time, and tells the levels of the spans' segments then.
async fn levels_at(lake: &Lake, compactor: &Compactor, time: i64) -> Vec<u8> {
    compactor.run_until_idle(time).await.unwrap();
    let snapshot = lake.catalog().snapshot();
    let mut levels: Vec<u8> =
        snapshot.segments(&TenantId::anonymous(), Table::Spans).iter().map(|segment| segment.level).collect();
    levels.sort_unstable();
    levels
}

/// Scenario: spans of five hours ago and of an hour that is not over come together; later, one more of five hours ago.
/// Guarantee: what is over is one file within a minute of its coming, what still grows waits for more; and a late span does
/// not have its whole hour written again before more has come, or ten minutes have gone by. While anything comes, all wait.
#[tokio::test]
async fn hours_that_are_over_are_merged_when_nothing_comes_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let compactor = Compactor::new(
        Arc::clone(&lake),
        CompactionOptions { first_level_age: Duration::ZERO, ..CompactionOptions::default() },
    );
    // The next hour: this one may be over before the test is.
    let (over, growing) = (now_nanos() - 5 * HOUR, now_nanos() + HOUR);
    store(&ingest, 0..10_000, over).await;
    store(&ingest, 10_000..10_001, growing).await;
    assert_eq!(levels_at(&lake, &compactor, now_nanos()).await, [1, 1]);
    assert_eq!(levels_at(&lake, &compactor, now_nanos() + 10 * SECOND).await, [1, 1]);
    let job = compactor.next_job(now_nanos() + 16 * SECOND).unwrap();
    assert_eq!(job.level, 3, "nothing is written a second time on its way up");
    assert_eq!(levels_at(&lake, &compactor, now_nanos() + 16 * SECOND).await, [1, 3]);

    store(&ingest, 20_000..20_001, over).await;
    assert_eq!(levels_at(&lake, &compactor, now_nanos()).await, [1, 1, 3]);
    let patient = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
    store(&ingest, 30_000..30_001, growing).await;
    let levels = levels_at(&lake, &patient, now_nanos() + 16 * SECOND).await;
    assert_eq!(levels, [0, 1, 1, 3], "something comes still, so nothing is quiet");
    assert_eq!(levels_at(&lake, &compactor, now_nanos()).await, [1, 1, 1, 3]);
    assert_eq!(levels_at(&lake, &compactor, now_nanos() + 16 * SECOND).await, [1, 1, 2, 3]);
    assert_eq!(levels_at(&lake, &compactor, now_nanos() + 11 * 60 * SECOND).await, [2, 3]);
}

/// Scenario: many commits whose rows are alike, and so take next to no bytes, wait for the first level.
/// Guarantee: a job takes no more rows than it may and one commit; commits stay whole, and all come up in the end.
#[tokio::test]
async fn a_backlog_is_worked_off_in_bites_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let time = now_nanos();
    for commit in 0..10 {
        store(&ingest, commit * 1000..(commit + 1) * 1000, time).await;
    }
    let compactor = Compactor::new(
        Arc::clone(&lake),
        CompactionOptions {
            first_level_age: Duration::ZERO,
            first_level_rows: 2500,
            second_level_files: 100,
            ..CompactionOptions::default()
        },
    );
    let mut bites = Vec::new();
    while let Some(job) = compactor.next_job(now_nanos()) {
        bites.push(job.inputs.iter().map(|segment| segment.rows).sum::<u64>());
        compactor.run_job(&job).await.unwrap();
    }
    assert_eq!(bites, [3000, 3000, 3000, 1000]);
    assert_eq!(levels_at(&lake, &compactor, now_nanos()).await, [1, 1, 1, 1]);
}
