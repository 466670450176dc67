//! The store is open: DuckDB reads it without us.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use prost::Message;
use serde_json::json;
use support::{Server, TestSample, now_nanos, profile_request, text_attribute, trace_request};

const MANY: u8 = 110;

/// Scenario: spans and samples are sent, in more than a hundred commits, and compacted; then DuckDB attaches the catalog as a DuckLake, and reads files.
/// Guarantee: all tables are listed, and hold what was sent, nested columns and all; nothing can be changed.
#[test]
fn duckdb_reads_the_store() {
    let store = tempfile::tempdir().unwrap();
    let config = store.path().join("hotspan.toml");
    std::fs::write(&config, "[compaction]\nfirst_level_age = \"1s\"\n[ingest]\nflush_interval = \"1ms\"\n").unwrap();
    let server = Server::start_with(store.path(), &["--config", config.to_str().unwrap()]);
    server.wait_ready();
    let now = now_nanos();
    for (number, name) in [(1u8, "checkout"), (2, "tax")] {
        let span = Span {
            trace_id: vec![7; 16],
            span_id: vec![number; 8],
            name: name.to_owned(),
            start_time_unix_nano: now,
            end_time_unix_nano: now + 1000,
            attributes: vec![text_attribute("customer", "acme")],
            events: vec![Event { name: "retry".to_owned(), time_unix_nano: now, ..Event::default() }],
            ..Span::default()
        };
        let body = trace_request("shop", vec![span]).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    }
    let samples = [
        TestSample { stack: &["main", "parse"], value: 30, time: now, trace_id: [7; 16], span_id: [2; 8] },
        TestSample { stack: &["main", "render"], value: 5, time: now, trace_id: [7; 16], span_id: [2; 8] },
    ];
    let body = profile_request("shop", [6; 16], &samples).encode_to_vec();
    assert_eq!(server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap().status, 200);
    // Enough commits for versions of three digits: text would put the latest in the middle.
    for number in 0..MANY {
        let span_id = [&[9; 7][..], &[number]].concat();
        let span = Span { trace_id: vec![8; 16], span_id, start_time_unix_nano: now, ..Span::default() };
        let body = trace_request("mill", vec![span]).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    }
    server.wait_compacted();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/duckdb_reads_the_store.py");
    let packages = ["duckdb==1.5.5", "duckdb-extensions==1.5.5", "duckdb-extension-ducklake==1.5.5"];
    let packages = [&packages[..], &["duckdb-extension-sqlite-scanner==1.5.5"]].concat();
    let run = support::python::python_with("duckdb", &packages).arg(script).arg(store.path()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let tables = ["frames", "nodes", "profiles", "rollup_15s", "rollup_1h", "samples", "series", "spans", "traces"];
    assert_eq!(answer["tables"], json!(tables));
    let counts = json!({"frames": 3, "nodes": 3, "profiles": 1, "rollup_15s": 2, "rollup_1h": 0, "samples": 2,
        "series": 1, "spans": 2 + MANY, "traces": 2});
    assert_eq!(answer["counts"], counts);
    for table in tables.into_iter().filter(|table| *table != "traces") {
        assert_eq!(answer["read"][table], counts[table], "{table}");
    }
    let with_files: Vec<&str> = tables.into_iter().filter(|table| *table != "rollup_1h").collect();
    assert_eq!(answer["read_plain"], json!(with_files));
    let id = "07".repeat(16);
    assert_eq!(answer["spans"], json!([[id, "checkout", 1000, 1], [id, "tax", 1000, 1]]));
    assert_eq!(answer["services"], json!(["shop"]));
    assert_eq!(answer["labels"], "shop");
    assert_eq!(answer["functions"], json!([["parse", 30], ["render", 5]]));
    assert_eq!(answer["attributes"], json!([["acme"]]));
    assert_eq!(answer["delete"], "refused");
}
