//! TraceQL searches over the store against the evaluator over the same traces in memory, at every level of compaction.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::{
    Attribute, Resource, Scope, Span, SpanId, SpanKind, StatusCode, TenantId, TraceId, TraceSink as _,
    Value as AttributeValue,
};
use hotspan_query::Engine;
use hotspan_query::search::{SearchOrder, SearchQuery};
use hotspan_traceql::memory::{MemorySpan, MemoryTrace};
use hotspan_traceql::{MetricsLimits, Program, TimeGrid, TraceView, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const START: i64 = 1_700_000_000_000_000_000;
const MINUTE: i64 = 60_000_000_000;

/// Filters of every kind, and questions about whole traces whose parts may lie in different segments.
const QUERIES: [&str; 14] = [
    "{ }",
    r#"{ resource.service.name = "service-1" && duration > 400ms }"#,
    r#"{ span.rare = "yes" }"#,
    r#"{ name =~ "get.*" && status = error }"#,
    "{ span.number > 3 || kind = client }",
    "{ !(status = error) && span.rare != nil }",
    "{ event:name = \"none\" || duration > 700ms }",
    "{ status = error } | count() > 1",
    "{ } | count() > 4",
    r#"{ resource.service.name = "service-0" } >> { status = error }"#,
    r#"{ span.rare = "yes" } && { kind = client }"#,
    "{ status = error } !> { kind = client }",
    r#"{ name = "get a" } ~ { name = "put b" }"#,
    "{ traceDuration > 20m && rootName = \"get a\" }",
];

#[derive(Debug, Clone)]
struct TestSpan {
    trace: u8,
    span: u8,
    /// Which of the flushes brings it.
    flush: u8,
    start: i64,
    duration: i64,
    service: u8,
    name: u8,
    kind: u8,
    is_error: bool,
    rare: u8,
    number: Option<i64>,
}

fn spans() -> impl Strategy<Value = Vec<TestSpan>> {
    let span = (0..12u8, 0..6u8, 0..50 * MINUTE, 0..1000i64, 0..3u8, 0..4u8, 0..3u8, 0..4u8, 0..9u8, 0..6i64);
    prop::collection::vec(span, 1..80).prop_map(|spans| {
        let span = |(at, (trace, flush, within, duration, service, name, kind, error, rare, number))| TestSpan {
            trace,
            span: at as u8 + 1,
            flush,
            // Traces start up to two hours apart, and each is shorter than an hour.
            start: START + i64::from(trace) * 11 * MINUTE + within,
            duration: duration * 1_000_000,
            service,
            name,
            kind,
            is_error: error == 0,
            rare,
            number: (number > 1).then_some(number),
        };
        spans.into_iter().enumerate().map(span).collect()
    })
}

impl TestSpan {
    fn parent(&self) -> Option<SpanId> {
        (self.span > 4).then_some(SpanId([self.span / 2; 8]))
    }

    fn name(&self) -> &'static str {
        ["get a", "get b", "put b", "poll"][usize::from(self.name)]
    }

    fn kind(&self) -> SpanKind {
        [SpanKind::Server, SpanKind::Client, SpanKind::Internal][usize::from(self.kind)]
    }

    fn status(&self) -> StatusCode {
        if self.is_error { StatusCode::Error } else { StatusCode::Unset }
    }

    /// A text, an array, a number or nothing.
    fn rare(&self) -> Option<AttributeValue<'static>> {
        match self.rare {
            0 => Some(AttributeValue::str("yes")),
            1 => Some(AttributeValue::Array(vec![AttributeValue::str("no"), AttributeValue::str("yes")])),
            2 => Some(AttributeValue::Int(5)),
            _ => None,
        }
    }

    fn in_memory(&self) -> MemorySpan {
        let text = |text: &str| Value::Str(text.to_owned());
        let mut attributes = Vec::new();
        match self.rare {
            0 => attributes.push(("rare".to_owned(), text("yes"))),
            1 => attributes.push(("rare".to_owned(), Value::Array(vec![text("no"), text("yes")]))),
            2 => attributes.push(("rare".to_owned(), Value::Int(5))),
            _ => {}
        }
        attributes.extend(self.number.map(|number| ("number".to_owned(), Value::Int(number))));
        MemorySpan {
            id: SpanId([self.span; 8]),
            parent_id: self.parent(),
            name: self.name().to_owned(),
            kind: self.kind(),
            status: self.status(),
            start_nanos: self.start,
            duration_nanos: self.duration,
            attributes,
            resource: vec![("service.name".to_owned(), text(&format!("service-{}", self.service)))],
            ..MemorySpan::default()
        }
    }
}

fn rows_of(spans: &[TestSpan], flush: u8) -> Rows {
    let mut rows = Rows::default();
    for span in spans.iter().filter(|span| span.flush == flush) {
        let service = format!("service-{}", span.service);
        let attributes = vec![Attribute::new("service.name", AttributeValue::str(&service))];
        rows.spans.resource(&Resource { attributes, ..Resource::default() });
        rows.spans.scope(&Scope { name: "scope", ..Scope::default() });
        let mut attributes: Vec<Attribute<'static>> = Vec::new();
        attributes.extend(span.rare().map(|value| Attribute { key: "rare".into(), value }));
        let number = span.number.map(AttributeValue::Int);
        attributes.extend(number.map(|value| Attribute { key: "number".into(), value }));
        rows.spans.span(&Span {
            trace_id: TraceId([span.trace + 1; 16]),
            span_id: SpanId([span.span; 8]),
            parent_id: span.parent(),
            start: span.start,
            end: span.start + span.duration,
            name: span.name(),
            kind: span.kind(),
            status: span.status(),
            attributes,
            ..Span::default()
        });
    }
    rows
}

/// The traces that a search must find: id and key, in order.
fn expected(spans: &[TestSpan], program: &Program, query: &SearchQuery) -> Vec<(TraceId, i64)> {
    let mut traces: BTreeMap<u8, MemoryTrace> = BTreeMap::new();
    for span in spans {
        let trace = traces.entry(span.trace).or_default();
        trace.id = TraceId([span.trace + 1; 16]);
        trace.spans.push(span.in_memory());
    }
    let search = program.search().unwrap();
    let mut found: Vec<(TraceId, i64)> = Vec::new();
    for trace in traces.values_mut() {
        trace.spans.sort_by_key(|span| span.start_nanos);
        let in_time = |span: &MemorySpan| (query.from..query.until).contains(&span.start_nanos);
        let bound = trace.bind(program.fields());
        let has_span_in_time = match search.span_filter() {
            Some(filter) => {
                let view = TraceView::of_batch(&bound);
                (0..trace.spans.len()).any(|span| in_time(&trace.spans[span]) && filter.matches(&view, span))
            }
            None => trace.spans.iter().any(in_time),
        };
        if has_span_in_time && !search.evaluate(&program.view(&bound)).is_empty() {
            let start = trace.spans.iter().map(|span| span.start_nanos).min().unwrap();
            let end = trace.spans.iter().map(|span| span.start_nanos + span.duration_nanos).max().unwrap();
            let key = if query.order == SearchOrder::Recent { start } else { end - start };
            found.push((trace.id, key));
        }
    }
    found.sort_by_key(|(id, key)| (std::cmp::Reverse(*key), *id));
    found.truncate(query.limit);
    found
}

/// Asks everything, over ranges that fall on and off the edges of hours.
async fn check_answers(engine: &Engine, spans: &[TestSpan], level: &str) {
    let ranges = [(0, 1000), (10, 60), (47, 49), (62, 131)];
    for text in QUERIES {
        let program = Arc::new(Program::new(text).unwrap());
        for (from, until) in ranges {
            for (limit, order) in [(3, SearchOrder::Recent), (50, SearchOrder::Recent), (4, SearchOrder::Duration)] {
                let query = SearchQuery {
                    from: START + from * MINUTE,
                    until: START + until * MINUTE,
                    limit,
                    spans_per_set: 3,
                    order,
                    after: None,
                };
                let right = expected(spans, &program, &query);
                let answer = engine.search(&TenantId::anonymous(), &program, query).await.unwrap();
                let found = answer.traces.iter().map(|trace| match order {
                    SearchOrder::Recent => (trace.trace_id, trace.start),
                    SearchOrder::Duration => (trace.trace_id, trace.duration),
                });
                let found: Vec<(TraceId, i64)> = found.collect();
                assert_eq!(found, right, "{text} from {from} to {until}, at most {limit}, {order:?}, {level}");
            }
        }
    }
}

/// Asks for metrics twice, so that columns are decoded on the way and kept: exemplars name the traces of their spans.
async fn check_exemplars(engine: &Engine, spans: &[TestSpan], level: &str) {
    let program = Arc::new(Program::new("{ } | quantile_over_time(duration, .5) by (resource.service.name)").unwrap());
    let range = (START, START + 1000 * MINUTE);
    for _ in 0..4 {
        let grid = TimeGrid::instant(range.0, range.1).unwrap();
        let limits = MetricsLimits::default();
        let run = engine.start_metrics(&TenantId::anonymous(), &program, grid, range, limits).unwrap();
        let answer = run.into_answer().await.unwrap();
        let exemplars: Vec<_> = answer.series.iter().flat_map(|series| &series.exemplars).collect();
        assert_eq!(exemplars.len(), spans.len(), "{level}");
        for exemplar in exemplars {
            let span = spans.iter().find(|span| SpanId([span.span; 8]) == exemplar.span_id).unwrap();
            assert_eq!(exemplar.trace_id, TraceId([span.trace + 1; 16]), "{level}");
        }
    }
}

async fn store(folder: &std::path::Path) -> (Arc<Lake>, Ingest, Compactor) {
    let lake = Lake::open(folder).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let compaction = CompactionOptions { second_level_files: 3, ..CompactionOptions::default() };
    let compactor = Compactor::new(Arc::clone(&lake), compaction);
    (lake, ingest, compactor)
}

async fn submit(ingest: &Ingest, rows: Rows) {
    let reservation = ingest.try_reserve(1000).unwrap();
    ingest.submit(TenantId::anonymous(), rows, reservation).await.unwrap();
}

async fn check(spans: Vec<TestSpan>) {
    let folder = tempfile::tempdir().unwrap();
    let (lake, ingest, compactor) = store(folder.path()).await;
    let engine = Engine::new(Arc::clone(&lake));
    for flush in 0..6 {
        submit(&ingest, rows_of(&spans, flush)).await;
        if flush == 3 {
            let now = lake.catalog().snapshot().all_segments().map(|segment| segment.created_at).max().unwrap_or(0);
            compactor.run_until_idle(now + 30_000_000_000).await.unwrap();
        }
    }
    check_answers(&engine, &spans, "young and compacted").await;
    check_exemplars(&engine, &spans, "young and compacted").await;
    // Once without room for decoded columns, and once more with what the first questions left behind.
    compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
    lake.reader().set_column_cache_bytes(0);
    check_answers(&engine, &spans, "compacted, without room").await;
    lake.reader().set_column_cache_bytes(64 << 20);
    check_exemplars(&engine, &spans, "compacted").await;
    check_answers(&engine, &spans, "compacted").await;
    check_answers(&engine, &spans, "compacted, decoded").await;
    assert!(lake.reader().cached_column_bytes() > 0);
}

/// Scenario: random traces whose spans come in random flushes, some compacted and some not, searched in every way. Guarantee:
/// the store gives the traces that the evaluator gives, in order, true to the limit, at every level; exemplars are real.
#[test]
fn searches_find_what_the_evaluator_finds() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: 5, ..ProptestConfig::default() });
    let result = runner.run(&spans(), |spans| {
        runtime.block_on(check(spans));
        Ok(())
    });
    result.unwrap();
}

/// Scenario: a trace whose spans are half a day apart, in files of different hours; asked for the time of one of them.
/// Guarantee: it is judged with all its spans (R3), whichever of them is in the time asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_traces_are_judged_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (lake, ingest, compactor) = store(folder.path()).await;
    let engine = Engine::new(Arc::clone(&lake));
    let span = |span: u8, hours: i64| TestSpan {
        trace: 0,
        span,
        flush: span,
        start: START + hours * HOUR,
        duration: 1_000_000,
        service: 0,
        name: 0,
        kind: 0,
        is_error: true,
        rare: 9,
        number: None,
    };
    let spans = [span(1, 0), span(2, 7), span(3, 14)];
    for flush in 1..4 {
        submit(&ingest, rows_of(&spans, flush)).await;
    }
    for is_compacted in [false, true] {
        if is_compacted {
            compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
        }
        for hours in [0, 7, 14] {
            for text in ["{ status = error }", "{ status = error } | count() = 3"] {
                for order in [SearchOrder::Recent, SearchOrder::Duration] {
                    if text.contains("count") && order == SearchOrder::Duration {
                        continue;
                    }
                    let program = Arc::new(Program::new(text).unwrap());
                    let from = START + hours * HOUR - MINUTE;
                    let until = from + 2 * MINUTE;
                    let query = SearchQuery { from, until, limit: 5, spans_per_set: 9, order, after: None };
                    let answer = engine.search(&TenantId::anonymous(), &program, query).await.unwrap();
                    assert_eq!(answer.traces.len(), 1, "{text} at {hours} h");
                    let trace = &answer.traces[0];
                    assert_eq!((trace.start, trace.duration), (START, 14 * HOUR + 1_000_000), "{text} at {hours} h");
                    assert_eq!(trace.spansets[0].matched, 3, "{text} at {hours} h");
                }
            }
        }
    }
}

/// Scenario: a span whose attributes are bytes, key-value lists and doubles beyond all numbers, before and after compaction.
/// Guarantee: each is there and can be compared: doubles as such, the others as the text that they are shown as.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_without_a_type_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (lake, ingest, compactor) = store(folder.path()).await;
    let engine = Engine::new(Arc::clone(&lake));
    let mut rows = Rows::default();
    rows.spans.resource(&Resource::default());
    rows.spans.scope(&Scope::default());
    let list = AttributeValue::KeyValues(vec![Attribute::new("half", AttributeValue::Double(0.5))]);
    let attributes = vec![
        Attribute::new("bytes", AttributeValue::Bytes(vec![0, 1, 2].into())),
        Attribute::new("list", list),
        Attribute::new("most", AttributeValue::Double(f64::INFINITY)),
        Attribute::new("none", AttributeValue::Double(f64::NAN)),
    ];
    let (trace_id, span_id) = (TraceId([1; 16]), SpanId([1; 8]));
    rows.spans.span(&Span { trace_id, span_id, start: START, end: START + 1, attributes, ..Span::default() });
    submit(&ingest, rows).await;
    for is_compacted in [false, true] {
        if is_compacted {
            compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
        }
        for (text, is_found) in [
            ("{ span.bytes != nil && span.list != nil && span.most != nil && span.none != nil }", true),
            ("{ span.bytes = nil }", false),
            ("{ span.list =~ `.*half.*` }", true),
            ("{ span.bytes = `{\"$bytes\":\"AAEC\"}` }", true),
            ("{ span.most > 5.5 }", true),
            ("{ span.none > 5.5 }", false),
        ] {
            let program = Arc::new(Program::new(text).unwrap());
            let (order, from, until) = (SearchOrder::Recent, START - MINUTE, START + MINUTE);
            let query = SearchQuery { from, until, limit: 5, spans_per_set: 9, order, after: None };
            let answer = engine.search(&TenantId::anonymous(), &program, query).await.unwrap();
            assert_eq!(answer.traces.len(), usize::from(is_found), "{text}, compacted: {is_compacted}");
        }
    }
}

/// Scenario: a few traces have so many spans that match that the latest spans of a file are of two or three of them; or all
/// traces run at once, so that their latest spans say little of when they started.
/// Guarantee: as many traces as are asked for are found, in order, however many spans were left out at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_spans_of_few_traces() {
    check_thirty_traces(|number| (number / 40, number % 40)).await;
    check_thirty_traces(|number| (number % 30, number / 30)).await;
}

/// Thirty traces of forty spans; which of them a number is, is asked.
async fn check_thirty_traces(trace_and_span: fn(u32) -> (u32, u32)) {
    let folder = tempfile::tempdir().unwrap();
    let (lake, ingest, compactor) = store(folder.path()).await;
    let engine = Engine::new(Arc::clone(&lake));
    let span = |number: u32| TestSpan {
        trace: trace_and_span(number).0 as u8,
        span: trace_and_span(number).1 as u8 + 1,
        flush: (number % 2) as u8,
        start: START + i64::from(number) * 1_000_000,
        duration: 1_000_000,
        service: 0,
        name: 0,
        kind: 0,
        is_error: number.is_multiple_of(2),
        rare: 9,
        number: None,
    };
    let spans: Vec<TestSpan> = (0..30 * 40).map(span).collect();
    for flush in 0..2 {
        submit(&ingest, rows_of(&spans, flush)).await;
    }
    for is_compacted in [false, true, true, true, true] {
        if is_compacted {
            compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
        }
        for text in ["{ }", "{ status = error }", "{ status = error } | count() > 1", "{ } >> { status = error }"] {
            let program = Arc::new(Program::new(text).unwrap());
            for limit in [1, 5, 25] {
                let (from, until) = (START, START + HOUR);
                let order = SearchOrder::Recent;
                let query = SearchQuery { from, until, limit, spans_per_set: 3, order, after: None };
                let right = expected(&spans, &program, &query);
                let answer = engine.search(&TenantId::anonymous(), &program, query).await.unwrap();
                let found = answer.traces.iter().map(|trace| (trace.trace_id, trace.start));
                assert_eq!(found.collect::<Vec<_>>(), right, "{text}, at most {limit}");
            }
        }
    }
}
