//! R4 and R9: every answer says how much of what was asked about is in samples, and what was rejected in that time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rejected::Rejected;
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::{
    Attribute, CoverageOf, Exactness, Frame, Labels, Link, Profile, ProfileSet, ProfileType, Resource, Sample, Span,
    SpanId, SpanKind, TenantId, TraceId, TraceSink as _, Value,
};
use hotspan_query::search::{SearchOrder, SearchQuery, TagQuery, TraceFilter};
use hotspan_query::{
    CohortScope, Engine, FlameQuery, IndividualKind, LeafTrim, LinkedQuery, MAX_COHORT_SPANS, Matcher, SampleOwners,
    Selector, TimelineQuery,
};
use hotspan_traceql::{MetricsLimits, Program, TimeGrid};

/// A whole hour, so that hourly rollups answer.
const START: i64 = 472_222 * HOUR;
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const TRACE: TraceId = TraceId([1; 16]);
/// Spans of a trace: a request of ten seconds, and a call of four below it.
const REQUEST: SpanId = SpanId([1; 8]);
const CALL: SpanId = SpanId([2; 8]);

/// A request at the start of an hour, and a sample of 10 ms in each second of its first twenty minutes.
async fn store(folder: &Path, tenant: &TenantId) -> Arc<Lake> {
    let lake = Lake::open(folder).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let mut rows = Rows::default();
    let attributes = vec![Attribute::new("service.name", Value::str("shop"))];
    rows.spans.resource(&Resource { attributes, ..Resource::default() });
    let span = |span_id, parent_id, start, end| Span {
        trace_id: TRACE,
        span_id,
        parent_id,
        start,
        end,
        name: "buy",
        kind: SpanKind::Server,
        ..Span::default()
    };
    rows.spans.span(&span(REQUEST, None, START, START + 10 * SECOND));
    rows.spans.span(&span(CALL, Some(REQUEST), START + 2 * SECOND, START + 6 * SECOND));
    let mut set = ProfileSet::default();
    let frame = set.paths.frame(Frame { function: "work".into(), ..Frame::default() });
    let path = set.paths.path(&[frame]);
    set.links.push(Link { trace_id: TRACE, span_id: REQUEST });
    let link = set.links.len() as u32 - 1;
    let sample = |second: i64| Sample {
        path,
        value: SECOND / 100,
        time: START + second * SECOND,
        timed: true,
        link: if second < 5 { link } else { 0 },
        thread: 0,
        labels: 0,
        attributes: 0,
    };
    set.profiles.push(Profile {
        profile_type: ProfileType::cpu(),
        labels: Labels::from_pairs([("service_name", "shop")]),
        time: START,
        samples: (0..20 * 60).map(sample).collect(),
        ..Profile::default()
    });
    rows.profiles.push(&set, &ingest.known().of(tenant));
    ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
    lake
}

fn flame(from: i64, until: i64) -> FlameQuery {
    FlameQuery { profile_type: ProfileType::cpu(), from, until, ..FlameQuery::default() }
}

/// What is covered and of what, in thousandths.
fn told(exactness: &Exactness) -> Option<(CoverageOf, i64)> {
    exactness.coverage.map(|coverage| (coverage.of, (coverage.share() * 1000.0).round() as i64))
}

/// Scenario: a profiler ran for twenty minutes of an hour; questions about that hour, parts of it and more than it, before
/// and after compaction.
/// Guarantee: each says the share of its time that has samples, also where hourly rollups answer; without samples it is
/// none of it; and a time without an end has no share.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_has_samples_is_told() {
    let (folder, tenant) = (tempfile::tempdir().unwrap(), TenantId::anonymous());
    let lake = store(folder.path(), &tenant).await;
    let engine = Engine::new(Arc::clone(&lake));
    for is_compacted in [false, true] {
        if is_compacted {
            let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
            compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
        }
        let cases = [
            ((START, START + HOUR), Some(333)),
            ((START - 10 * MINUTE, START + 30 * MINUTE), Some(500)),
            ((START + 5 * MINUTE + 1, START + 15 * MINUTE), Some(1000)),
            ((START - HOUR, START + 2 * HOUR), Some(111)),
            ((START + HOUR, START + 2 * HOUR), Some(0)),
            // More hours than are looked into: one of them counts as a whole.
            ((START - 49 * HOUR, START + HOUR), Some(20)),
            ((0, i64::MAX), None),
        ];
        for ((from, until), share) in cases {
            let about = format!("{} minutes, compacted: {is_compacted}", (until - from) / MINUTE);
            let expected = share.map(|share| (CoverageOf::Range, share));
            let query = flame(from, until);
            assert_eq!(told(&engine.flame(&tenant, &query).await.unwrap().exactness), expected, "{about}");
            let merged = engine.merged_paths(&tenant, &query, LeafTrim::default()).await.unwrap();
            assert_eq!(told(&merged.exactness), expected, "{about}");
        }
        let hour = flame(START, START + HOUR);
        let timeline = TimelineQuery { samples: hour.clone(), step: 15 * SECOND, ..TimelineQuery::default() };
        // Whether the windows of a file are remembered or seen for the first time makes no difference.
        let fresh = Engine::new(Arc::clone(&lake));
        for engine in [&fresh, &fresh, &engine] {
            let timelines = engine.timelines(&tenant, &timeline).await.unwrap();
            let values: f64 = timelines.groups.iter().flat_map(|group| &group.points).map(|(_, value)| value).sum();
            let exactness = timelines.exactness;
            assert_eq!((exactness.samples, told(&exactness)), (1200, Some((CoverageOf::Range, 333))));
            assert_eq!(values, 12.0 * SECOND as f64);
        }
        let kind = IndividualKind::Profile;
        let heatmap = engine.heatmap(&tenant, &timeline, kind).await.unwrap();
        let exemplars = engine.exemplars(&tenant, &timeline, kind).await.unwrap();
        for exactness in [heatmap.exactness, exemplars.exactness] {
            assert_eq!((exactness.samples, told(&exactness)), (1200, Some((CoverageOf::Range, 333))));
        }
        // A label that nothing has.
        let selector = Selector::default().and(Matcher::equal("service_name", "nobody"));
        let nobody = engine.flame(&tenant, &FlameQuery { selector, ..hour.clone() }).await.unwrap();
        assert_eq!((nobody.exactness.samples, told(&nobody.exactness)), (0, Some((CoverageOf::Range, 0))));
        let snapshot = engine.snapshot();
        let (from, until) = (START, START + HOUR);
        let services = engine.services(&tenant, from, until).await.unwrap();
        let costs = engine.endpoint_costs(&tenant, &snapshot, &ProfileType::cpu(), &services, 0).await.unwrap();
        assert_eq!(told(&costs.exactness), Some((CoverageOf::Range, 333)));
        for (function, samples) in [("work", 5), ("nothing", 0)] {
            let (wanted, any) = (|name: &str| name == function, Selector::default());
            let cpu = ProfileType::cpu();
            let found = engine.function_spans(&tenant, &snapshot, &wanted, &cpu, &any, (from, until), 9).await.unwrap();
            assert_eq!((found.exactness.samples, told(&found.exactness)), (samples, Some((CoverageOf::Range, 333))));
        }
    }
}

/// Scenario: a request of ten seconds has 50 ms in samples; it is asked for as a trace, by its length, and by its id alone.
/// Guarantee: the samples' share of the time in which the trace or its span ran; nothing where nobody knows how long that is,
/// and nothing for values that are no time.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_spans_that_is_in_samples_is_told() {
    let (folder, tenant) = (tempfile::tempdir().unwrap(), TenantId::anonymous());
    let engine = Engine::new(store(folder.path(), &tenant).await);
    let query = flame(0, i64::MAX);
    let key = hotspan_query::SpanKey { trace_id: Some(TRACE), span_id: REQUEST };
    let request = Some(SampleOwners::Spans(vec![key]));
    let of_spans = |share| Some((CoverageOf::Spans, share));
    let cases = [
        // The call below lies inside the request: its time counts once.
        (FlameQuery { traces: vec![TRACE], ..query.clone() }, of_spans(5)),
        (FlameQuery { owners: request.clone(), owners_time: Some(SECOND / 10), ..query.clone() }, of_spans(500)),
        (FlameQuery { owners: request, ..query.clone() }, None),
        (FlameQuery { spans: vec![REQUEST], ..query.clone() }, None),
        (FlameQuery { traces: vec![TRACE], profile_type: "alloc_space".parse().unwrap(), ..query.clone() }, None),
    ];
    for (query, expected) in cases {
        let answer = engine.flame(&tenant, &query).await.unwrap();
        assert_eq!(told(&answer.exactness), expected, "{query:?}");
    }
}

/// Scenario: lists of labels of an hour, of times that begin or end inside one, of another hour and of all times, and of spans
/// and call paths by their ids, some of which nobody has stored.
/// Guarantee: each says which segments it was read from, whether its edges were rounded, how many spans or samples were found,
/// and how many paths are not known.
#[tokio::test(flavor = "multi_thread")]
async fn lists_say_what_they_rest_on() {
    let (folder, tenant) = (tempfile::tempdir().unwrap(), TenantId::anonymous());
    let engine = Engine::new(store(folder.path(), &tenant).await);
    let snapshot = engine.snapshot();
    let any = [Selector::default()];
    let cases = [
        ((START, START + HOUR), (1, 0, false)),
        ((START + MINUTE, START + HOUR), (1, 0, true)),
        ((START, START + MINUTE), (1, 0, true)),
        ((START - 2 * HOUR, START - HOUR), (0, 1, false)),
        ((0, i64::MAX), (1, 0, false)),
    ];
    for ((from, until), expected) in cases {
        let series = engine.series(&tenant, &snapshot, &any, (from, until)).await.unwrap();
        let names = engine.label_names(&tenant, &any, from, until).await.unwrap();
        let values = engine.label_values(&tenant, "service_name", &any, from, until).await.unwrap();
        let types = engine.profile_types(&tenant, from, until).await.unwrap();
        assert_eq!((series.answer.len(), names.answer.is_empty()), (expected.0 as usize, expected.0 == 0));
        for exactness in [series.exactness, names.exactness, values.exactness, types.exactness] {
            let Exactness { segments_read, segments_pruned, rounded_edges, .. } = exactness;
            assert_eq!((segments_read, segments_pruned, rounded_edges), expected, "{from}..{until}");
        }
    }
    let hour = (START, START + HOUR);
    let outlines = engine.outlines(&tenant, &snapshot, &[TRACE, TraceId([9; 16])], hour).await.unwrap();
    assert_eq!((outlines.exactness.spans, outlines.exactness.segments_read), (2, 1));
    let spans = [(TRACE, CALL), (TRACE, SpanId([9; 8]))];
    let attributes = engine.span_attributes(&tenant, &snapshot, &spans, hour).await.unwrap();
    assert_eq!((attributes.exactness.spans, attributes.exactness.segments_read), (1, 1));
    let profiled = engine.profiled_spans(&tenant, Some(TRACE), [], hour).await.unwrap();
    assert_eq!((profiled.exactness.spans, profiled.exactness.samples), (1, 5));
    let times = engine.sample_times(&tenant, &any[0]).await.unwrap();
    assert_eq!((times.answer.is_some(), times.exactness.samples, told(&times.exactness)), (true, 1200, None));
    let query = LinkedQuery {
        owners: SampleOwners::Traces(vec![TRACE]),
        selector: Selector::default(),
        from: START,
        until: START + HOUR,
        profiles: Vec::new(),
        with_threads: false,
    };
    let linked = engine.linked_samples(&tenant, &snapshot, &query, 1).await.unwrap();
    // Zero is the path of samples without a stack.
    let paths = [linked.samples[0].path, 0, 7, 8];
    let found = engine.call_paths(&tenant, &snapshot, hour, &linked.tables.series, paths).await.unwrap();
    assert_eq!((found.frames(paths[0]).count(), found.exactness().unresolved_paths), (1, 2));
}

/// Scenario: two spans and three samples of an hour were rejected, and questions of every kind are about that hour or the
/// hours around it.
/// Guarantee: each answer says how many of what it is made of are missing: spans, samples or both; those about other times
/// say none. A trace that is not there may be what was rejected.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_rejected_is_told_by_every_answer() {
    let (folder, tenant) = (tempfile::tempdir().unwrap(), TenantId::anonymous());
    let lake = store(folder.path(), &tenant).await;
    lake.rejected().note(&tenant, START + MINUTE, Rejected { spans: 2, samples: 3 });
    let engine = Engine::new(lake);
    let snapshot = engine.snapshot();
    let of_spans = Arc::new(Program::new("{ name = \"buy\" }").unwrap());
    let of_both = Arc::new(Program::new("{ profile.cpu > 1ms }").unwrap());
    let rate = Arc::new(Program::new("{ } | rate()").unwrap());
    for (from, until, missing) in [(START, START + HOUR, true), (START - 3 * HOUR, START - 2 * HOUR, false)] {
        let (spans, samples) = if missing { (2, 3) } else { (0, 0) };
        let search =
            SearchQuery { from, until, limit: 9, spans_per_set: 3, order: SearchOrder::default(), after: None };
        let found = engine.search(&tenant, &of_spans, search.clone()).await.unwrap().exactness;
        assert_eq!((found.dropped, found.samples), (spans, 0));
        let found = engine.search(&tenant, &of_both, search).await.unwrap().exactness;
        assert_eq!((found.dropped, found.samples), (spans + samples, if missing { 5 } else { 0 }));
        let both = engine.cohort(&tenant, &snapshot, &of_both, (from, until), MAX_COHORT_SPANS).await.unwrap();
        assert_eq!((both.exactness.dropped, both.exactness.linked_samples), (found.dropped, found.samples));
        let grid = TimeGrid::range(from, until, MINUTE).unwrap();
        let mut run = engine.start_metrics(&tenant, &rate, grid, (from, until), MetricsLimits::default()).unwrap();
        while let Some(part) = run.next_part().await.unwrap() {
            assert_eq!(part.exactness.dropped, spans);
        }
        let cohort = engine.cohort(&tenant, &snapshot, &of_spans, (from, until), MAX_COHORT_SPANS).await.unwrap();
        assert_eq!((cohort.exactness.dropped, cohort.exactness.spans), (spans, if missing { 2 } else { 0 }));
        assert_eq!(cohort.time(), if missing { 14 * SECOND } else { 0 });
        let owners = engine.cohort_owners(&tenant, &snapshot, &cohort, CohortScope::Span).await.unwrap();
        let (_, facts) = engine.span_facts(&tenant, &snapshot, owners, (from, until)).await.unwrap();
        assert_eq!(facts.dropped, samples);
        let services = engine.services(&tenant, from, until).await.unwrap();
        assert_eq!(services.exactness.dropped, spans);
        assert_eq!(engine.service_graph(&tenant, from, until).await.unwrap().exactness.dropped, spans);
        let costs = engine.endpoint_costs(&tenant, &snapshot, &ProfileType::cpu(), &services, 0).await.unwrap();
        assert_eq!(costs.exactness.dropped, spans + samples);
        let tags = TagQuery { from, until, filter: None, limit: 9, enough_spans: None };
        let mut names = engine.start_tag_names(&tenant, tags.clone());
        while names.next_part().await.unwrap().is_some() {}
        assert_eq!(names.exactness().dropped, spans);
        let any = [Selector::default()];
        let series = engine.series(&tenant, &snapshot, &any, (from, until)).await.unwrap();
        let names = engine.label_names(&tenant, &any, from, until).await.unwrap();
        let values = engine.label_values(&tenant, "service_name", &any, from, until).await.unwrap();
        let types = engine.profile_types(&tenant, from, until).await.unwrap();
        let profiled = engine.profiled_spans(&tenant, Some(TRACE), [], (from, until)).await.unwrap();
        for exactness in [series.exactness, names.exactness, values.exactness, types.exactness, profiled.exactness] {
            assert_eq!(exactness.dropped, samples);
        }
        let nobody = engine.outlines(&tenant, &snapshot, &[TraceId([9; 16])], (from, until)).await.unwrap();
        let attributes = engine.span_attributes(&tenant, &snapshot, &[(TRACE, CALL)], (from, until)).await.unwrap();
        assert_eq!((nobody.exactness.dropped, attributes.exactness.dropped), (spans, spans));
        let (work, cpu) = (|name: &str| name == "work", ProfileType::cpu());
        let function = engine.function_spans(&tenant, &snapshot, &work, &cpu, &any[0], (from, until), 9).await.unwrap();
        assert_eq!(function.exactness.dropped, spans + samples);
        let query = flame(from, until);
        assert_eq!(engine.requests(&tenant, &query).await.unwrap().exactness.dropped, spans);
        assert_eq!(engine.profile_seconds(&tenant, &query).await.unwrap().exactness.dropped, samples);
        let page = engine.samples(&tenant, &FlameQuery { traces: vec![TRACE], ..query }, 0, 9).await.unwrap();
        assert_eq!((page.exactness.dropped, page.exactness.samples), (samples, if missing { 5 } else { 0 }));
    }
    let trace = engine.trace_by_id(&tenant, TRACE).await.unwrap().unwrap();
    assert_eq!((trace.exactness.spans, trace.exactness.dropped), (2, 2));
    let waterfall = engine.waterfall(&tenant, TRACE).await.unwrap();
    assert_eq!((waterfall.exactness.spans, waterfall.exactness.dropped), (2, 2));
    assert_eq!(waterfall.exactness.segments_read, 1);
    assert_eq!(engine.sample_times(&tenant, &Selector::default()).await.unwrap().exactness.dropped, 3);
    let details = engine.spans_of_trace(&tenant, TRACE, &[CALL].into_iter().collect()).await.unwrap();
    assert_eq!((details.exactness.spans, details.exactness.dropped), (1, 2));
    for (program, missing, samples) in [(of_spans, 2, 0), (of_both, 5, 5)] {
        let filter = TraceFilter { program, ancestors: Some(0), descendants: Some(0) };
        let exactness = engine.kept_spans(&tenant, TRACE, &filter).await.unwrap().exactness;
        assert_eq!((exactness.dropped, exactness.samples), (missing, samples));
    }
    let mut nowhere = engine.start_trace(&tenant, TraceId([9; 16]));
    assert!(nowhere.next_part().await.unwrap().is_none());
    assert_eq!(nowhere.exactness().dropped, 2);
}
