//! `/metrics`: what the server tells of itself, and what the documentation says of it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, now_nanos, trace_request};

/// Names of metrics in a text, with the ending that counters have.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !is_part(letter)).filter(|word| word.starts_with("hotspan_")).collect()
}

/// The value of a metric without labels.
fn value(text: &str, name: &str) -> f64 {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).expect(name)
}

/// Scenario: a server that has taken and refused something, and docs/metrics.md.
/// Guarantee: every metric is documented, every documented one is there, and queues and caches show what came.
#[test]
fn every_metric_is_documented() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start_with(store.path(), &["--self-tracing", "true"]);
    server.wait_ready();
    let start = now_nanos();
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        start_time_unix_nano: start,
        end_time_unix_nano: start + 5,
        ..Span::default()
    };
    let request = trace_request("shop", vec![span]).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &request).unwrap().status, 200);
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", b"\xff").unwrap().status, 400);

    let text = server.get("/metrics").unwrap().text();
    let documented = include_str!("../../../docs/metrics.md");
    // Samples only: help and type lines name counters without their ending.
    let samples: String = text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(names(&samples), names(documented));
    assert!(value(&text, "hotspan_ingest_remembered_ids") >= 1.0);
    assert!(value(&text, "hotspan_compaction_backlog_segments") >= 1.0);
    assert!(value(&text, "hotspan_compaction_backlog_bytes") >= 1.0);
    assert!(value(&text, "hotspan_lake_resident_bytes") >= 1.0);
}
