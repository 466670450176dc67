//! What is sent again after a restart is counted once, however far it was compacted meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hotspan_lake::catalog::now_nanos;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::retention::{Retention, RetentionOptions};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake, Receipt, Table};
use hotspan_model::{
    Frame, Labels, Profile, ProfileId, ProfileSet, ProfileType, Resource, Sample, Scope, Span, SpanId, TenantId,
    TraceId, TraceSink as _,
};
use tokio::task::JoinHandle;

/// A store that was just opened, as by a server that starts.
struct Life {
    lake: Arc<Lake>,
    ingest: Ingest,
    committer: JoinHandle<()>,
}

impl Life {
    async fn start(folder: &Path, options: IngestOptions) -> Self {
        let lake = Lake::open(folder).await.unwrap();
        let options = IngestOptions { flush_interval: Duration::from_millis(1), ..options };
        let (ingest, committer) = Ingest::start(Arc::clone(&lake), options);
        Self { lake, ingest, committer }
    }

    async fn end(self) {
        drop(self.ingest);
        self.committer.await.unwrap();
        self.lake.catalog().close().await;
    }

    async fn send(&self, rows: Rows) -> Receipt {
        let reservation = self.ingest.try_reserve(1000).unwrap();
        self.ingest.submit(TenantId::anonymous(), rows, reservation).await.unwrap()
    }

    /// One request: some spans of a time, and a profile.
    async fn send_numbered(&self, number: u8, time: i64) -> Receipt {
        self.send(self.numbered(number, time)).await
    }

    fn numbered(&self, number: u8, time: i64) -> Rows {
        let mut rows = Rows::default();
        rows.spans.resource(&Resource::default());
        rows.spans.scope(&Scope::default());
        for span in 1..4 {
            let (trace_id, span_id) = (TraceId([number + 1; 16]), SpanId([span; 8]));
            rows.spans.span(&Span { trace_id, span_id, start: time, end: time + 5, ..Span::default() });
        }
        let set = profile(Some(ProfileId([number + 1; 16])), time);
        rows.profiles.push(&set, &self.ingest.known().of(&TenantId::anonymous()));
        rows
    }

    /// Compacts up to a level, as far as the hour of the data is over, deletes what is not needed any more, and forgets its versions.
    async fn compact_to(&self, level: u8) {
        let soon = now_nanos() + 1_000_000_000;
        let age = |least| if level >= least { Duration::ZERO } else { Duration::from_secs(3600) };
        let options =
            CompactionOptions { first_level_age: age(1), second_level_age: age(2), ..CompactionOptions::default() };
        Compactor::new(Arc::clone(&self.lake), options).run_until_idle(soon).await.unwrap();
        let at_once = RetentionOptions { deletion_delay: Duration::ZERO, ..RetentionOptions::default() };
        Retention::new(Arc::clone(&self.lake), at_once).delete_removed(now_nanos()).await.unwrap();
    }

    fn levels(&self) -> Vec<u8> {
        let snapshot = self.lake.catalog().snapshot();
        let stored = |table| snapshot.segments(&TenantId::anonymous(), table);
        let (spans, profiles) = (stored(Table::Spans), stored(Table::Profiles));
        spans.iter().chain(profiles.iter()).map(|segment| segment.level).collect()
    }

    fn rows_of(&self, table: Table) -> u64 {
        let segments = self.lake.catalog().snapshot().segments(&TenantId::anonymous(), table);
        segments.iter().map(|segment| segment.rows).sum()
    }
}

/// One profile with one sample.
fn profile(id: Option<ProfileId>, time: i64) -> ProfileSet<'static> {
    let mut set = ProfileSet::default();
    let frame = set.paths.frame(Frame::named("main"));
    let path = set.paths.path(&[frame]);
    set.profiles.push(Profile {
        id,
        profile_type: ProfileType::cpu(),
        labels: Labels::from_pairs([("service_name", "shop".to_owned())]),
        time,
        samples: vec![Sample { path, value: 7, time, timed: true, link: 0, thread: 0, labels: 0, attributes: 0 }],
        ..Profile::default()
    });
    set
}

/// Scenario: requests of now, and of hours ago, are compacted to each level there is; what they were made of is deleted and
/// its versions are forgotten; then the store is opened anew, and the senders, who never heard of it, send them again.
/// Guarantee: nothing is stored twice.
#[tokio::test]
async fn a_retry_after_a_restart_counts_once_at_every_level() {
    for (level, time) in [(0, now_nanos()), (1, now_nanos()), (2, now_nanos() + HOUR), (3, now_nanos() - 3 * HOUR)] {
        let folder = tempfile::tempdir().unwrap();
        let first = Life::start(folder.path(), IngestOptions::default()).await;
        for number in 0..3 {
            assert_eq!(first.send_numbered(number, time).await.duplicate_spans, 0);
        }
        first.compact_to(level).await;
        assert!(first.levels().iter().all(|found| *found == level), "{:?}", first.levels());
        first.end().await;

        let second = Life::start(folder.path(), IngestOptions::default()).await;
        for number in 0..3 {
            let receipt = second.send_numbered(number, time).await;
            assert_eq!((receipt.duplicate_spans, receipt.duplicate_profiles), (3, 1), "level {level}");
        }
        let rows = [Table::Spans, Table::Profiles, Table::Samples].map(|table| second.rows_of(table));
        assert_eq!(rows, [9, 3, 3], "level {level}");
        // What is new is stored all the same.
        assert_eq!(second.send_numbered(9, time).await.duplicate_spans, 0);
        assert_eq!(second.rows_of(Table::Spans), 12);
        second.end().await;
    }
}

/// Scenario: requests that share a batch: a new one, one that was stored before, half of that one with something new, spans
/// alone, and a new one that comes twice.
/// Guarantee: they are committed as one, and each sender hears how much of its own request was there already.
#[tokio::test]
async fn who_shares_a_batch_hears_of_its_own_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let life = Life::start(folder.path(), IngestOptions::default()).await;
    let now = now_nanos();
    life.send_numbered(1, now).await;
    let mut half = life.numbered(1, now);
    half.profiles = life.numbered(3, now).profiles;
    let mut spans = life.numbered(4, now);
    spans.profiles = Rows::default().profiles;
    let new = |number| life.numbered(number, now);
    // All are there before the committer, on the same thread, gets to look.
    let answers = [new(2), new(1), half, spans, new(5), new(5)].map(|rows| {
        let reservation = life.ingest.try_reserve(1000).unwrap();
        life.ingest.submit(TenantId::anonymous(), rows, reservation)
    });
    let mut receipts = Vec::new();
    for answer in answers {
        receipts.push(answer.await.unwrap());
    }
    let told: Vec<_> = receipts.iter().map(|told| (told.duplicate_spans, told.duplicate_profiles)).collect();
    assert_eq!(told, [(0, 0), (3, 1), (3, 0), (0, 0), (0, 0), (3, 1)]);
    assert!(receipts.iter().all(|told| told.version == receipts[0].version), "{receipts:?}");
    assert_eq!([Table::Spans, Table::Profiles].map(|table| life.rows_of(table)), [12, 4]);
    let counted = life.lake.ingest_counters();
    let counted =
        [&counted.duplicate_spans, &counted.duplicate_profiles].map(|counter| counter.load(Ordering::Relaxed));
    assert_eq!(counted, [9, 2]);
    life.end().await;
}

/// Scenario: a store is opened anew after the window is over, and with less memory than there are ids.
/// Guarantee: ids from before the window are not read back, and no more ids are than may be remembered.
#[tokio::test]
async fn what_is_read_back_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let first = Life::start(folder.path(), IngestOptions::default()).await;
    for number in 0..20 {
        first.send_numbered(number, now_nanos()).await;
    }
    first.end().await;

    let remembered = async |options: IngestOptions| {
        let life = Life::start(folder.path(), options).await;
        // What is sent waits for the ids to be read; this was stored before in each life but the first.
        life.send_numbered(100, 5).await;
        let remembered = life.lake.ingest_counters().remembered_ids.load(Ordering::Relaxed);
        life.end().await;
        remembered
    };
    assert_eq!(remembered(IngestOptions::default()).await, 84);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let short = IngestOptions { dedup_window: Duration::from_millis(20), ..IngestOptions::default() };
    assert_eq!(remembered(short).await, 4);
    let few = IngestOptions { dedup_entries: 40, ..IngestOptions::default() };
    let found = remembered(few).await;
    assert!((20..=48).contains(&found), "{found} ids are remembered");
}
