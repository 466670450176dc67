//! Reading ahead after a start: the caches of questions are filled, within their bounds, and answers stay the same.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::{
    Attribute, Frame, Labels, Link, Profile, ProfileSet, ProfileType, Resource, Sample, Span, SpanId, TenantId,
    TraceId, TraceSink as _, Value,
};
use hotspan_query::search::{SearchOrder, SearchQuery};
use hotspan_query::{Engine, FlameQuery};
use hotspan_traceql::Program;

const START: i64 = 1_700_000_000_000_000_000;

fn trace_id(number: u16) -> TraceId {
    TraceId([(number % 251) as u8 + 1; 16])
}

/// A store with spans and samples of a tenant, merged into files.
async fn merged_store(folder: &Path, tenant: &TenantId) {
    let lake = Lake::open(folder).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, committer) = Ingest::start(Arc::clone(&lake), options);
    let mut rows = Rows::default();
    rows.spans.resource(&Resource {
        attributes: vec![Attribute::new("service.name", Value::str("shop"))],
        ..Resource::default()
    });
    let mut set = ProfileSet::default();
    let frame = set.paths.frame(Frame { function: "work".into(), ..Frame::default() });
    let path = set.paths.path(&[frame]);
    let mut samples = Vec::new();
    for number in 0..200u16 {
        let (start, span_id) = (START + i64::from(number) * 1_000_000_000, SpanId([number as u8 + 1; 8]));
        let (trace_id, end) = (trace_id(number), start + i64::from(number) * 1_000_000);
        rows.spans.span(&Span { trace_id, span_id, start, end, name: "buy", ..Span::default() });
        set.links.push(Link { trace_id, span_id });
        let link = set.links.len() as u32 - 1;
        samples.push(Sample { path, value: 7, time: start, timed: true, link, thread: 0, labels: 0, attributes: 0 });
    }
    set.profiles.push(Profile {
        profile_type: ProfileType::cpu(),
        labels: Labels::from_pairs([("service_name", "shop")]),
        time: START,
        samples,
        ..Profile::default()
    });
    rows.profiles.push(&set, &ingest.known().of(tenant));
    ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
    let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
    compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
    drop(ingest);
    committer.await.unwrap();
    lake.catalog().close().await;
}

async fn warmed(engine: &Engine) -> usize {
    let mut warm_up = engine.warm_up();
    let mut parts = 0;
    while warm_up.next_part().await.unwrap() {
        parts += 1;
    }
    parts
}

/// What a search finds, what a flame graph sums to, and the spans of a trace.
async fn answers(engine: &Engine, tenant: &TenantId) -> (usize, i64, usize) {
    let program = Arc::new(Program::new("{ resource.service.name = \"shop\" && duration > 150ms }").unwrap());
    let (from, until) = (START, START + HOUR);
    let order = SearchOrder::default();
    let query = SearchQuery { from, until, limit: 100, spans_per_set: 3, order, after: None };
    let found = engine.search(tenant, &program, query).await.unwrap().traces.len();
    let flame = FlameQuery { profile_type: ProfileType::cpu(), from, until, ..FlameQuery::default() };
    let total = engine.flame(tenant, &flame).await.unwrap().tree.total();
    let trace = engine.trace_by_id(tenant, trace_id(9)).await.unwrap();
    (found, total, trace.map_or(0, |trace| trace.spans.len()))
}

/// Scenario: a store is opened again and what its first questions need is read ahead.
/// Guarantee: first footers, then columns and symbols are in memory, and answers are the same as of a cold engine.
#[tokio::test(flavor = "multi_thread")]
async fn first_questions_find_what_they_need() {
    let (folder, tenant) = (tempfile::tempdir().unwrap(), TenantId::anonymous());
    merged_store(folder.path(), &tenant).await;
    let cold = {
        let lake = Lake::open(folder.path()).await.unwrap();
        let cold = answers(&Engine::new(Arc::clone(&lake)), &tenant).await;
        lake.catalog().close().await;
        cold
    };
    assert_eq!(cold, (49, 200 * 7, 1));
    let lake = Lake::open(folder.path()).await.unwrap();
    let engine = Engine::new(Arc::clone(&lake));
    assert_eq!((lake.reader().cached_bytes(), lake.reader().cached_column_bytes(), engine.symbol_bytes()), (0, 0, 0));
    let mut basics = engine.warm_up();
    while basics.is_basic() {
        basics.next_part().await.unwrap();
    }
    assert!(lake.reader().cached_bytes() > 0);
    assert_eq!((lake.reader().cached_column_bytes(), engine.symbol_bytes()), (0, 0));
    assert!(warmed(&engine).await > 10);
    assert!(lake.reader().cached_bytes() > 0);
    assert!(lake.reader().cached_column_bytes() > 0);
    assert!(engine.symbol_bytes() > 0);
    assert_eq!(answers(&engine, &tenant).await, cold);
}

/// Scenario: next to no memory is allowed for columns, and a store that has nothing at all.
/// Guarantee: reading ahead stays within half of the bound, and ends.
#[tokio::test(flavor = "multi_thread")]
async fn reading_ahead_is_bounded() {
    let (folder, tenant) = (tempfile::tempdir().unwrap(), TenantId::anonymous());
    merged_store(folder.path(), &tenant).await;
    let lake = Lake::open(folder.path()).await.unwrap();
    lake.reader().set_column_cache_bytes(1);
    assert!(warmed(&Engine::new(Arc::clone(&lake))).await > 0);
    assert_eq!(lake.reader().cached_column_bytes(), 0);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(warmed(&Engine::new(Lake::open(empty.path()).await.unwrap())).await, 0);
}
