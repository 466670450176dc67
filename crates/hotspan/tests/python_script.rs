//! The script of a typical user of Tempo, in Python with `requests`, unmodified against a real server.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::python::python;
use support::{Server, now_nanos, trace_request};

const MS: u64 = 1_000_000;

/// Scenario: slow and fast orders; the script searches by service, name and duration, then walks each trace.
/// Guarantee: it prints exactly the slow orders, most recent first, with all their spans, and a missing trace is 404.
#[test]
fn a_script_for_tempo_runs_unmodified() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let now = now_nanos();
    for number in 1..=4u8 {
        let length = if number % 2 == 0 { 800 * MS } else { 20 * MS };
        let start = now - 60_000 * MS + u64::from(number) * 1000 * MS;
        let span = |id: u8, parent: &[u8], name: &str, length: u64| Span {
            trace_id: vec![number; 16],
            span_id: vec![id; 8],
            parent_span_id: parent.to_vec(),
            name: name.to_owned(),
            start_time_unix_nano: start,
            end_time_unix_nano: start + length,
            ..Span::default()
        };
        for (service, span) in [
            ("front", span(1, &[], "POST /order", length + 5 * MS)),
            ("order-service", span(2, &[1; 8], "process_order", length)),
        ] {
            let body = trace_request(service, vec![span]).encode_to_vec();
            assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/slow_orders.py");
    for port in ["tempo", "http"] {
        let run = python().arg(&script).env("TEMPO_URL", format!("http://{}", server.address(port))).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let expected: String = [4u8, 2]
            .iter()
            .map(|number| {
                let id = format!("{number:02x}").repeat(16);
                format!("{id} front 805\n  front 0101010101010101 POST /order 805\n  order-service 0202020202020202 process_order 800\n")
            })
            .collect();
        assert_eq!(String::from_utf8_lossy(&run.stdout), expected);
    }
}
