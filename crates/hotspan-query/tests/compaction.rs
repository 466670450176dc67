//! R2 and R3: compaction at any level, in any order, never changes an answer.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use hotspan_lake::compaction::{CompactionOptions, Compactor, Job};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_lake::{Ingest, IngestOptions, Lake, ReadOptions, Segment, Table};
use hotspan_model::{
    Attribute, Coverage, Event, FlameTree, Frame, Labels, Link, Profile, ProfileSet, ProfileType, Resource, Sample,
    Scope, Span, SpanId, SpanKind, StatusCode, TenantId, TraceId, TraceSink as _, Value,
};
use hotspan_query::{Engine, FlameQuery, Matcher, Selector, StoredTrace};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const START: i64 = 1_700_000_000_000_000_000;

#[derive(Debug, Clone)]
struct TestSpan {
    trace: u8,
    span: u8,
    minute: i64,
    duration: i64,
    service: u8,
    attributes: Vec<(u8, u8)>,
    has_event: bool,
}

#[derive(Debug, Clone)]
struct TestSample {
    service: u8,
    second: i64,
    stack: Vec<u8>,
    value: i64,
    trace: u8,
    span: u8,
}

#[derive(Debug, Clone)]
struct Flush {
    spans: Vec<TestSpan>,
    samples: Vec<TestSample>,
}

fn flush() -> impl Strategy<Value = Flush> {
    let span =
        (0..6u8, 1..40u8, 0..150i64, -3..1000i64, 0..3u8, prop::collection::vec((0..5u8, 0..7u8), 0..5), any::<bool>())
            .prop_map(|(trace, span, minute, duration, service, attributes, has_event)| TestSpan {
                trace,
                span,
                minute,
                duration,
                service,
                attributes,
                has_event,
            });
    let sample = (0..3u8, 0..9000i64, prop::collection::vec(0..6u8, 0..6), 1..100i64, 0..6u8, 0..40u8).prop_map(
        |(service, second, stack, value, trace, span)| TestSample { service, second, stack, value, trace, span },
    );
    (prop::collection::vec(span, 0..25), prop::collection::vec(sample, 0..40))
        .prop_map(|(spans, samples)| Flush { spans, samples })
}

fn trace_id(number: u8) -> TraceId {
    TraceId([number + 1; 16])
}

fn attribute(key: u8, value: u8) -> Attribute<'static> {
    let value = match value {
        0 => Value::Int(7),
        1 => Value::Double(1.5),
        2 => Value::Bool(true),
        3 => Value::Array(vec![Value::Int(1)]),
        text => Value::String(format!("text {text}").into()),
    };
    Attribute { key: format!("key.{key}").into(), value }
}

fn rows_of(flush: &Flush, number: usize, ingest: &Ingest, tenant: &TenantId) -> Rows {
    let mut rows = Rows::default();
    for span in &flush.spans {
        let service = format!("service-{}", span.service);
        let attributes = vec![Attribute::new("service.name", Value::str(&service))];
        rows.spans.resource(&Resource { attributes, ..Resource::default() });
        rows.spans.scope(&Scope { name: "scope", ..Scope::default() });
        let mut attributes: Vec<Attribute<'static>> = Vec::new();
        for (key, value) in &span.attributes {
            if attributes.iter().all(|other| other.key != format!("key.{key}")) {
                attributes.push(attribute(*key, *value));
            }
        }
        let start = START + span.minute * 60_000_000_000 + i64::from(span.span);
        let events = span.has_event.then(|| Event { time: start, name: "event", ..Event::default() });
        rows.spans.span(&Span {
            trace_id: trace_id(span.trace),
            span_id: SpanId([span.span; 8]),
            parent_id: (span.span > 5).then(|| SpanId([span.span - 1; 8])),
            start,
            end: start + span.duration,
            name: "operation",
            kind: SpanKind::Server,
            status: if span.duration > 500 { StatusCode::Error } else { StatusCode::Unset },
            attributes,
            events: events.into_iter().collect(),
            ..Span::default()
        });
    }
    let mut set = ProfileSet::default();
    let mut by_service: BTreeMap<u8, Vec<Sample>> = BTreeMap::new();
    for sample in &flush.samples {
        let names: Vec<String> = sample.stack.iter().map(|frame| format!("function {frame}")).collect();
        let frames: Vec<u32> = names
            .into_iter()
            .map(|name| set.paths.frame(Frame { function: name.into(), ..Frame::default() }))
            .collect();
        let path = set.paths.path(&frames);
        let link = if sample.span == 0 {
            0
        } else {
            set.links.push(Link { trace_id: trace_id(sample.trace), span_id: SpanId([sample.span; 8]) });
            set.links.len() as u32 - 1
        };
        let time = START + sample.second * 1_000_000_000;
        let row = Sample { path, value: sample.value, time, timed: true, link, thread: 0, labels: 0, attributes: 0 };
        by_service.entry(sample.service).or_default().push(row);
    }
    for (service, samples) in by_service {
        set.profiles.push(Profile {
            profile_type: ProfileType::cpu(),
            labels: Labels::from_pairs([("service_name", format!("service-{service}")), ("flush", number.to_string())]),
            time: START,
            samples,
            ..Profile::default()
        });
    }
    rows.profiles.push(&set, &ingest.known().of(tenant));
    rows
}

#[derive(Debug, PartialEq)]
struct Answers {
    traces: Vec<Option<StoredTrace>>,
    flames: Vec<BTreeMap<String, i64>>,
    samples: Vec<u64>,
    coverage: Vec<Option<Coverage>>,
    labels: Vec<String>,
}

/// Every question there is, over ranges that fall on and off window and hour edges.
async fn ask(engine: &Engine, tenant: &TenantId) -> Answers {
    let mut answers = Answers {
        traces: Vec::new(),
        flames: Vec::new(),
        samples: Vec::new(),
        coverage: Vec::new(),
        labels: Vec::new(),
    };
    for trace in 0..7 {
        let mut trace = engine.trace_by_id(tenant, trace_id(trace)).await.unwrap();
        for span in trace.iter_mut().flat_map(|trace| &mut trace.spans) {
            // The order of attributes means nothing.
            span.attributes.sort_by(|a, b| a.key.cmp(&b.key));
        }
        answers.traces.push(trace);
    }
    let ranges = [
        (START, START + 9_000_000_000_000),
        (START + 1, START + 5_000_000_000_001),
        (START - START % HOUR, START - START % HOUR + 2 * HOUR),
        (START + 14_000_000_000, START + 16_000_000_000),
        (START + HOUR - 7, START + HOUR + 7_000_000_000),
    ];
    let service = Selector::default().and(Matcher::equal("service_name", "service-1"));
    for (from, until) in ranges {
        let base = FlameQuery {
            profile_type: ProfileType::cpu(),
            selector: Selector::default(),
            from,
            until,
            spans: Vec::new(),
            traces: Vec::new(),
            max_nodes: 0,
            ..FlameQuery::default()
        };
        let queries = [
            base.clone(),
            FlameQuery { selector: service.clone(), ..base.clone() },
            FlameQuery { spans: vec![SpanId([3; 8]), SpanId([4; 8])], ..base.clone() },
            FlameQuery { traces: vec![trace_id(2)], ..base.clone() },
            FlameQuery { traces: vec![trace_id(1)], spans: vec![SpanId([7; 8])], ..base },
        ];
        for query in queries {
            let answer = engine.flame(tenant, &query).await.unwrap();
            assert_eq!(answer.exactness.unresolved_paths, 0);
            answers.samples.push(answer.exactness.samples);
            answers.coverage.push(answer.exactness.coverage);
            answers.flames.push(stacks(&answer.tree));
        }
    }
    let everything = Selector::default();
    answers.labels =
        engine.label_values(tenant, "flush", &[everything], START, START + 10 * HOUR).await.unwrap().answer;
    answers
}

fn stacks(tree: &FlameTree) -> BTreeMap<String, i64> {
    let mut stacks = BTreeMap::new();
    for node in tree.nodes().iter().filter(|node| node.self_value != 0) {
        let mut names = vec![tree.name(node.name)];
        let mut at = node.parent;
        while at != FlameTree::ROOT {
            names.push(tree.name(tree.nodes()[at].name));
            at = tree.nodes()[at].parent;
        }
        names.reverse();
        stacks.insert(names.join(";"), node.self_value);
    }
    stacks
}

/// What the flushes hold, summed by hand.
fn expected_total(flushes: &[Flush], from: i64, until: i64) -> i64 {
    let samples = flushes.iter().flat_map(|flush| &flush.samples);
    samples
        .filter(|sample| (from..until).contains(&(START + sample.second * 1_000_000_000)))
        .map(|sample| sample.value)
        .sum()
}

/// The time in windows with samples of service 1, by hand.
fn expected_coverage(flushes: &[Flush], from: i64, until: i64) -> i64 {
    let times = flushes.iter().flat_map(|flush| &flush.samples).filter(|sample| sample.service == 1);
    let times = times.map(|sample| START + sample.second * 1_000_000_000).filter(|time| (from..until).contains(time));
    let windows: BTreeSet<i64> = times.map(|time| time / WINDOW_15S * WINDOW_15S).collect();
    windows.iter().map(|start| (start + WINDOW_15S).min(until) - from.max(*start)).sum()
}

async fn check(flushes: Vec<Flush>) {
    let folder = tempfile::tempdir().unwrap();
    let tenant = TenantId::anonymous();
    let lake = Lake::open(folder.path()).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let compactor = Compactor::new(
        Arc::clone(&lake),
        CompactionOptions {
            first_level_age: Duration::from_secs(10),
            second_level_files: 3,
            ..CompactionOptions::default()
        },
    );
    let engine = Engine::new(Arc::clone(&lake));
    for (number, flush) in flushes.iter().enumerate() {
        let rows = rows_of(flush, number, &ingest, &tenant);
        let reservation = ingest.try_reserve(1000).unwrap();
        ingest.submit(tenant.clone(), rows, reservation).await.unwrap();
        // Some flushes meet files of level 1 and 2 that are there already.
        if number % 3 == 2 {
            let before = ask(&engine, &tenant).await;
            let now = lake.catalog().snapshot().all_segments().map(|segment| segment.created_at).max().unwrap_or(0);
            compactor.run_until_idle(now + 11_000_000_000).await.unwrap();
            assert_eq!(ask(&engine, &tenant).await, before);
        }
    }
    let raw = ask(&engine, &tenant).await;
    let whole: i64 = raw.flames[0].values().sum();
    assert_eq!(whole, expected_total(&flushes, START, START + 9_000_000_000_000));
    let covered = raw.coverage[1].map(|coverage| coverage.covered);
    assert_eq!(covered, Some(expected_coverage(&flushes, START, START + 9_000_000_000_000)));
    // Far in the future every partition is closed: all levels are passed, one job at a time.
    let mut jobs = 0;
    let future = hotspan_lake::catalog::now_nanos() + 1000 * HOUR;
    while let Some(job) = compactor.next_job(future) {
        compactor.run_job(&job).await.unwrap();
        jobs += 1;
        assert!(jobs < 1000, "compaction does not come to an end");
        assert_eq!(ask(&engine, &tenant).await, raw, "after a job to level {}", job.level);
    }
    let snapshot = lake.catalog().snapshot();
    for segment in snapshot.all_segments() {
        assert_eq!(segment.level, 3, "{}", segment.path);
    }
    // One file a table and partition is left.
    for table in Table::ALL {
        let mut partitions: Vec<i64> =
            snapshot.segments(&tenant, table).iter().map(|segment| segment.partition.unwrap()).collect();
        let files = partitions.len();
        partitions.sort_unstable();
        partitions.dedup();
        assert_eq!(partitions.len(), files, "{table}");
    }
    // A new engine, without anything remembered, says the same of the compacted files.
    assert_eq!(ask(&Engine::new(lake), &tenant).await, raw);
}

/// Scenario: random spans and samples in random flushes, compacted step by step through all levels.
/// Guarantee: after every step every question has the answer it had before, and totals are the true sums.
#[test]
fn compaction_never_changes_an_answer() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: 12, ..ProptestConfig::default() });
    let flushes = prop::collection::vec(flush(), 1..8);
    let result = runner.run(&flushes, |flushes| {
        runtime.block_on(check(flushes));
        Ok(())
    });
    result.unwrap();
}

/// In which order three files or more of a partition are merged.
#[derive(Debug, Clone, Copy)]
enum Grouping {
    AllAtOnce,
    OldestFirst,
    YoungestFirst,
}

/// What a store says and holds after each flush became files of level 1, and those were merged in this order.
async fn merged(flushes: &[Flush], grouping: Grouping) -> (Answers, BTreeMap<&'static str, Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let tenant = TenantId::anonymous();
    let lake = Lake::open(folder.path()).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
    let segments = |accept: &dyn Fn(&Segment) -> bool| -> Vec<Arc<Segment>> {
        let snapshot = lake.catalog().snapshot();
        let mut segments: Vec<_> = snapshot.all_segments().filter(|segment| accept(segment)).cloned().collect();
        segments.sort_by_key(|segment| segment.data_version);
        segments
    };
    for (number, flush) in flushes.iter().enumerate() {
        let rows = rows_of(flush, number, &ingest, &tenant);
        ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
        let inputs = segments(&|segment| segment.level == 0);
        if !inputs.is_empty() {
            compactor.run_job(&Job { tenant: tenant.clone(), level: 1, inputs }).await.unwrap();
        }
    }
    let mut rows = BTreeMap::new();
    for table in Table::ALL {
        let of_table = segments(&|segment| segment.table == table);
        let partitions: BTreeSet<i64> = of_table.iter().filter_map(|segment| segment.partition).collect();
        for partition in partitions {
            loop {
                let files = segments(&|segment| segment.table == table && segment.partition == Some(partition));
                let inputs = match grouping {
                    _ if files.len() < 2 => break,
                    Grouping::AllAtOnce => files,
                    Grouping::OldestFirst => files[..2].to_vec(),
                    Grouping::YoungestFirst => files[files.len() - 2..].to_vec(),
                };
                compactor.run_job(&Job { tenant: tenant.clone(), level: 2, inputs }).await.unwrap();
            }
        }
        // Which attributes of spans have columns depends on the files that met: what they say is compared by answers.
        if table != Table::Spans {
            rows.insert(table.name(), rows_as_text(&lake, &segments(&|segment| segment.table == table)).await);
        }
    }
    (ask(&Engine::new(lake), &tenant).await, rows)
}

/// Every row as text, sorted.
async fn rows_as_text(lake: &Lake, segments: &[Arc<Segment>]) -> Vec<String> {
    let mut texts = Vec::new();
    for segment in segments {
        for batch in lake.reader().read_all(segment, ReadOptions::default()).await.unwrap() {
            let options = FormatOptions::default();
            let columns: Vec<ArrayFormatter<'_>> =
                batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
            for row in 0..batch.num_rows() {
                let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
                texts.push(values.join(" | "));
            }
        }
    }
    texts.sort_unstable();
    texts
}

/// Scenario: the same flushes, whose files are merged all at once, two by two from the oldest, and from the youngest.
/// Guarantee: merging is associative: the same rows in every table, and the same answers.
#[test]
fn merging_is_associative() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: 4, ..ProptestConfig::default() });
    let flushes = prop::collection::vec(flush(), 3..6);
    let result = runner.run(&flushes, |flushes| {
        runtime.block_on(async {
            let all_at_once = merged(&flushes, Grouping::AllAtOnce).await;
            for grouping in [Grouping::OldestFirst, Grouping::YoungestFirst] {
                assert_eq!(merged(&flushes, grouping).await, all_at_once, "{grouping:?}");
            }
        });
        Ok(())
    });
    result.unwrap();
}
