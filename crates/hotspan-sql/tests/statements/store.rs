//! A store with some flushes of spans and samples, and statements over it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::{
    Attribute, Frame, Labels, Link, Profile, ProfileSet, ProfileType, Resource, Sample, Scope, Span, SpanId, TenantId,
    TraceId, TraceSink as _, Value,
};
use hotspan_query::Engine;
use hotspan_sql::output::{Encoder, Format};
use hotspan_sql::{SqlEngine, SqlError, SqlOptions};

pub(crate) const START: i64 = 1_700_000_000_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;

/// Flush `number`: two spans of a trace that every flush adds to, and three samples of the second span.
fn rows_of(number: i64, ingest: &Ingest, tenant: &TenantId) -> Rows {
    let mut rows = Rows::default();
    let trace = TraceId([7; 16]);
    for (part, service) in [(0, "front"), (1, "order-service")] {
        let attributes = vec![Attribute::new("service.name", Value::str(service))];
        rows.spans.resource(&Resource { attributes, ..Resource::default() });
        rows.spans.scope(&Scope { name: "test", ..Scope::default() });
        let start = START + number * 60 * SECOND + part;
        rows.spans.span(&Span {
            trace_id: trace,
            span_id: SpanId([(2 * number + part + 1) as u8; 8]),
            parent_id: (number + part > 0).then_some(SpanId([1; 8])),
            start,
            end: start + (number + 1) * SECOND,
            name: "operation",
            attributes: vec![
                Attribute::new("customer", Value::str("acme")),
                Attribute::new("attempt", Value::Int(number)),
            ],
            ..Span::default()
        });
    }
    let mut set = ProfileSet::default();
    set.links.push(Link { trace_id: trace, span_id: SpanId([2; 8]) });
    let link = set.links.len() as u32 - 1;
    let mut samples = Vec::new();
    for (leaf, value) in [("parse", 30), ("render", 5), ("parse", 3)] {
        let frames = ["main", "handle", leaf].map(|name| set.paths.frame(Frame { line: 4, ..Frame::named(name) }));
        let path = set.paths.path(&frames);
        let time = START + number * 60 * SECOND;
        samples.push(Sample { path, value, time, timed: true, link, thread: 0, labels: 0, attributes: 0 });
    }
    set.profiles.push(Profile {
        profile_type: ProfileType::cpu(),
        labels: Labels::from_pairs([("service_name", "order-service".to_owned())]),
        time: START + number,
        samples,
        ..Profile::default()
    });
    rows.profiles.push(&set, &ingest.known().of(tenant));
    rows
}

pub(crate) async fn text(engine: &SqlEngine, statement: &str, format: Format) -> Result<String, SqlError> {
    let mut answer = engine.query(&TenantId::anonymous(), statement).await?;
    let mut encoder = Encoder::new(format, &answer.schema).unwrap();
    let mut bytes = encoder.begin();
    while let Some(batch) = answer.batches.next().await {
        bytes.extend(encoder.rows(&batch?).unwrap());
    }
    bytes.extend(encoder.end(None).unwrap());
    Ok(String::from_utf8(bytes).unwrap())
}

pub(crate) async fn json(engine: &SqlEngine, statement: &str) -> serde_json::Value {
    let text = text(engine, statement, Format::Json).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{statement}: {error}: {text}"))
}

pub(crate) async fn store(flushes: i64) -> (tempfile::TempDir, Arc<Lake>, SqlEngine) {
    store_of(flushes, rows_of).await
}

/// A store of flushes that are made by their numbers.
pub(crate) async fn store_of(
    flushes: i64,
    rows_of: impl Fn(i64, &Ingest, &TenantId) -> Rows,
) -> (tempfile::TempDir, Arc<Lake>, SqlEngine) {
    let folder = tempfile::tempdir().unwrap();
    let tenant = TenantId::anonymous();
    let lake = Lake::open(folder.path()).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    for number in 0..flushes {
        let rows = rows_of(number, &ingest, &tenant);
        ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
    }
    let engine = SqlEngine::start(Engine::new(Arc::clone(&lake)), SqlOptions::default()).unwrap();
    (folder, lake, engine)
}

/// Asks the same before compaction, and after each of its steps through all levels: the answers must be the same (R2, R3).
pub(crate) async fn answers_at_every_level(
    lake: &Arc<Lake>,
    engine: &SqlEngine,
    statements: &[&str],
) -> Vec<serde_json::Value> {
    let mut answers = Vec::new();
    for statement in statements {
        answers.push(json(engine, statement).await);
    }
    let options = CompactionOptions { second_level_files: 3, ..CompactionOptions::default() };
    let compactor = Compactor::new(Arc::clone(lake), options);
    let future = hotspan_lake::catalog::now_nanos() + 1000 * HOUR;
    while let Some(job) = compactor.next_job(future) {
        compactor.run_job(&job).await.unwrap();
        for (statement, before) in statements.iter().zip(&answers) {
            assert_eq!(&json(engine, statement).await, before, "{statement} after a job to level {}", job.level);
        }
    }
    answers
}
