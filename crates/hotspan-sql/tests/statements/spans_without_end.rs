//! Spans that say no end, or one before their start.

use hotspan_lake::Ingest;
use hotspan_lake::rows::Rows;
use hotspan_model::{Attribute, Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _, Value};

use crate::store::{SECOND, START, answers_at_every_level, store_of};

/// A root without an end, a child that ends before it starts, and one that took four seconds.
fn unfinished(_: i64, _: &Ingest, _: &TenantId) -> Rows {
    let mut rows = Rows::default();
    let attributes = vec![Attribute::new("service.name", Value::str("shop"))];
    rows.spans.resource(&Resource { attributes, ..Resource::default() });
    rows.spans.scope(&Scope { name: "test", ..Scope::default() });
    for (number, end) in [(1, 0), (2, START - SECOND), (3, START + 4 * SECOND)] {
        rows.spans.span(&Span {
            trace_id: TraceId([7; 16]),
            span_id: SpanId([number; 8]),
            parent_id: (number > 1).then_some(SpanId([1; 8])),
            start: START,
            end,
            name: "operation",
            ..Span::default()
        });
    }
    rows
}

/// Scenario: durations of spans without an end, one by one, summed, as averages and of their trace, at every level of
/// compaction.
/// Guarantee: such a span took no time, as in searches and in Tempo; no duration is below zero.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durations_are_never_negative() {
    let (_folder, lake, engine) = store_of(1, unfinished).await;
    let statements = [
        "SELECT duration FROM spans ORDER BY span_id",
        "SELECT sum(duration) AS total, avg(duration) AS mean, min(duration) AS least FROM spans",
        "SELECT root_duration, end_time - start_time = INTERVAL '4 seconds' AS whole FROM traces",
        "SELECT count(*) AS n FROM spans WHERE duration < 0",
    ];
    let answers = answers_at_every_level(&lake, &engine, &statements).await;
    let mean = 4.0 * SECOND as f64 / 3.0;
    assert_eq!(answers[0]["rows"], serde_json::json!([{"duration": 0}, {"duration": 0}, {"duration": 4 * SECOND}]));
    assert_eq!(answers[1]["rows"][0]["total"], 4 * SECOND);
    assert!((answers[1]["rows"][0]["mean"].as_f64().unwrap() - mean).abs() < 1.0);
    assert_eq!(answers[1]["rows"][0]["least"], 0);
    assert_eq!(answers[2]["rows"], serde_json::json!([{"root_duration": 0, "whole": true}]));
    assert_eq!(answers[3]["rows"][0]["n"], 0);
}
