//! What goes in comes out: OTLP in by every way, traces and flame graphs out, by public API alone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link as SpanLink};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message;
use serde_json::json;
use support::{Server, TestSample, now_nanos, profile_request, request, text_attribute, trace_request};

const PROTOBUF: &str = "application/x-protobuf";

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn full_span(trace_id: [u8; 16], span_id: [u8; 8], start: u64) -> Span {
    Span {
        trace_id: trace_id.to_vec(),
        span_id: span_id.to_vec(),
        parent_span_id: vec![9; 8],
        trace_state: "vendor=1".to_owned(),
        flags: 0x101,
        name: "POST /checkout".to_owned(),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 1_500_000_000,
        attributes: vec![
            text_attribute("http.route", "/checkout"),
            attribute("http.status_code", Value::IntValue(503)),
            attribute("ratio", Value::DoubleValue(2.0)),
            attribute("retry", Value::BoolValue(true)),
            attribute("raw", Value::BytesValue(vec![0, 255])),
            attribute(
                "list",
                Value::ArrayValue(ArrayValue {
                    values: vec![AnyValue { value: Some(Value::IntValue(1)) }, AnyValue { value: None }],
                }),
            ),
        ],
        dropped_attributes_count: 3,
        events: vec![Event {
            time_unix_nano: start + 5,
            name: "exception".to_owned(),
            attributes: vec![text_attribute("exception.type", "Timeout")],
            dropped_attributes_count: 1,
        }],
        dropped_events_count: 4,
        links: vec![SpanLink {
            trace_id: vec![7; 16],
            span_id: vec![8; 8],
            trace_state: "l=2".to_owned(),
            attributes: vec![text_attribute("why", "batch")],
            dropped_attributes_count: 2,
            flags: 1,
        }],
        dropped_links_count: 5,
        status: Some(Status { message: "upstream".to_owned(), code: 2 }),
    }
}

/// Scenario: a span that uses every field OTLP has. Guarantee: all of it is in the trace, with its types.
#[test]
fn everything_in_a_span_is_kept() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let start = now_nanos();
    let request = trace_request("shop", vec![full_span([1; 16], [2; 8], start)]);
    let answer = server.post("/v1/traces", PROTOBUF, &request.encode_to_vec()).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"".as_slice()), "{}", answer.text());

    let trace = server.get_json("/api/traces/01010101010101010101010101010101");
    let batch = &trace["batches"][0];
    assert_eq!(batch["resource"]["attributes"][0], json!({"key": "service.name", "value": {"stringValue": "shop"}}));
    assert_eq!(batch["scopeSpans"][0]["scope"]["name"], "test");
    let span = &batch["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "AQEBAQEBAQEBAQEBAQEBAQ==");
    assert_eq!(span["spanId"], "AgICAgICAgI=");
    assert_eq!(span["parentSpanId"], "CQkJCQkJCQk=");
    assert_eq!(span["traceState"], "vendor=1");
    assert_eq!(span["flags"], 0x101);
    assert_eq!(span["kind"], "SPAN_KIND_SERVER");
    assert_eq!(span["startTimeUnixNano"], start.to_string());
    assert_eq!(span["endTimeUnixNano"], (start + 1_500_000_000).to_string());
    assert_eq!(span["status"], json!({"message": "upstream", "code": "STATUS_CODE_ERROR"}));
    assert_eq!(
        (&span["droppedAttributesCount"], &span["droppedEventsCount"], &span["droppedLinksCount"]),
        (&json!(3), &json!(4), &json!(5))
    );
    let value = |key: &str| {
        let attributes = span["attributes"].as_array().unwrap();
        attributes.iter().find(|attribute| attribute["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("http.route"), json!({"stringValue": "/checkout"}));
    assert_eq!(value("http.status_code"), json!({"intValue": "503"}));
    assert_eq!(value("ratio"), json!({"doubleValue": 2.0}));
    assert_eq!(value("retry"), json!({"boolValue": true}));
    assert_eq!(value("raw"), json!({"bytesValue": "AP8="}));
    assert_eq!(value("list"), json!({"arrayValue": {"values": [{"intValue": "1"}, {}]}}));
    assert_eq!(span["events"][0]["attributes"][0]["value"]["stringValue"], "Timeout");
    assert_eq!(span["links"][0]["traceState"], "l=2");
    assert_eq!(span["links"][0]["flags"], 1);
}

/// Scenario: a trace and a profile whose samples name two of its spans.
/// Guarantee: the flame graph of a span holds exactly its samples, that of the trace both.
#[test]
fn a_span_leads_to_its_code() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let now = now_nanos();
    let trace_id = [3; 16];
    let spans = [[4; 8], [5; 8]].map(|span_id| full_span(trace_id, span_id, now));
    let traces = trace_request("shop", spans.to_vec());
    server.post("/v1/traces", PROTOBUF, &traces.encode_to_vec()).unwrap();
    let sample = |stack, value, span_id| TestSample { stack, value, time: now + 10, trace_id, span_id };
    let samples = [
        sample(&["main", "checkout", "tax"] as &[&str], 30, [4; 8]),
        sample(&["main", "checkout"], 10, [4; 8]),
        sample(&["main", "ship"], 500, [5; 8]),
        sample(&["main", "idle"], 7000, [0; 8]),
    ];
    let profiles = profile_request("shop", [6; 16], &samples);
    let answer = server.post("/v1development/profiles", PROTOBUF, &profiles.encode_to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());

    let of_span = server.get_json("/api/v1/profile?span_id=0404040404040404&format=json");
    assert_eq!(of_span["flamebearer"]["numTicks"], 40);
    assert_eq!(of_span["exactness"]["samples"], 2);
    let names = of_span["flamebearer"]["names"].as_array().unwrap();
    assert!(names.contains(&json!("tax")) && !names.contains(&json!("ship")), "{names:?}");
    let of_trace = server.get_json("/api/v1/profile?trace_id=03030303030303030303030303030303");
    assert_eq!(of_trace["flamebearer"]["numTicks"], 7540);
    let of_service = server.get_json("/api/v1/profile?app=shop&from=now-1h&until=now%2B1h");
    assert_eq!(of_service["flamebearer"]["numTicks"], 7540);
    let other_service = server.get_json("/api/v1/profile?app=other");
    assert_eq!(other_service["flamebearer"]["numTicks"], 0);
    let cohort = |query: &str, scope: &str| {
        let body = json!({ "query": query, "scope": scope, "from": "now-1h", "to": "now+1h" }).to_string();
        let answer = server.post("/api/v1/cohort/flame", "application/json", body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()["flamebearer"]["numTicks"].clone()
    };
    assert_eq!(cohort("{ span:id = \"0404040404040404\" }", "span"), 40);
    assert_eq!(cohort("{ duration > 1s }", "span"), 540);
    assert_eq!(cohort("{ span:id = \"0404040404040404\" }", "trace"), 7540);
    assert_eq!(cohort("{ duration > 1h }", "span"), 0);
    let text = server.get("/api/v1/profile?span_id=0404040404040404&format=flamegraph").unwrap().text();
    assert!(text.contains("tax") && text.contains("75"), "{text}");
}

/// Scenario: the same request sent twice, as a client does whose connection broke.
/// Guarantee: spans and samples are there once, also when the server restarted in between.
#[test]
fn a_retry_counts_once() {
    let store = tempfile::tempdir().unwrap();
    let now = now_nanos();
    let traces = trace_request("shop", vec![full_span([1; 16], [2; 8], now)]).encode_to_vec();
    let sample = TestSample { stack: &["main"], value: 5, time: now, trace_id: [1; 16], span_id: [2; 8] };
    let profiles = profile_request("shop", [6; 16], &[sample]).encode_to_vec();
    for _ in 0..2 {
        let mut server = Server::start(store.path());
        server.wait_ready();
        for _ in 0..2 {
            assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
            assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles).unwrap().status, 200);
        }
        let flame = server.get_json("/api/v1/profile?span_id=0202020202020202");
        assert_eq!(flame["flamebearer"]["numTicks"], 5);
        let trace = server.get_json("/api/traces/01010101010101010101010101010101");
        assert_eq!(trace["batches"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len(), 1);
        assert!(server.terminate().success());
    }
}

/// Scenario: data of three hours ago is merged for good, which takes seconds; the server is killed, and data is sent again.
/// Guarantee: it is there once.
#[test]
fn a_retry_of_late_data_counts_once() {
    let store = tempfile::tempdir().unwrap();
    let config = store.path().join("hotspan.toml");
    std::fs::write(&config, "[compaction]\nfirst_level_age = \"100ms\"\npartition_quiet = \"100ms\"\n").unwrap();
    let start = || {
        let server = Server::start_with(store.path(), &["--config", config.to_str().unwrap()]);
        server.wait_ready();
        server
    };
    let late = now_nanos() - 3 * 3600 * 1_000_000_000;
    let traces = trace_request("shop", vec![full_span([1; 16], [2; 8], late)]).encode_to_vec();
    let sample = TestSample { stack: &["main"], value: 5, time: late, trace_id: [1; 16], span_id: [2; 8] };
    let profiles = profile_request("shop", [6; 16], &[sample]).encode_to_vec();
    let send = |server: &Server| {
        assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
        assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles).unwrap().status, 200);
    };
    let mut server = start();
    send(&server);
    server.wait_merged();
    server.kill();
    let server = start();
    send(&server);
    server.wait_merged();
    for table in ["spans", "samples", "profiles"] {
        let query = format!("SELECT count(*) AS count FROM {table}");
        let answer = server.post_json("/api/v1/sql", &json!({ "query": query }));
        assert_eq!(answer["rows"], json!([{ "count": 1 }]), "{table}");
    }
}

/// Scenario: a profile that has neither an id nor a time is sent twice, with some time between, as after a lost answer.
/// Guarantee: it counts once.
#[test]
fn a_retry_without_id_and_time_counts_once() {
    let (_store, server) = Server::fresh();
    let sample = TestSample { stack: &["main"], value: 7, time: 0, trace_id: [0; 16], span_id: [0; 8] };
    let mut profiles = profile_request("shop", [0; 16], &[sample]);
    let profile = &mut profiles.resource_profiles[0].scope_profiles[0].profiles[0];
    profile.profile_id.clear();
    profile.samples[0].timestamps_unix_nano.clear();
    for _ in 0..2 {
        assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles.encode_to_vec()).unwrap().status, 200);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let flame = server.get_json("/api/v1/profile?app=shop&from=now-1h&until=now%2B1h");
    assert_eq!(flame["flamebearer"]["numTicks"], 7);
}

/// Scenario: requests that are wrong in one way each.
/// Guarantee: the status tells which way, the message names the fault, and nothing is stored.
#[test]
fn bad_input_gets_a_clear_answer() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let broken = server.post("/v1/traces", PROTOBUF, &[0x0a, 0xff, 0xff]).unwrap();
    assert_eq!(broken.status, 400);
    assert!(broken.text().contains("offset") || broken.text().contains("byte"), "{}", broken.text());
    assert_eq!(server.post("/v1/traces", "text/plain", b"x").unwrap().status, 415);
    let json = server.post("/v1/traces", "application/json", b"{\"resourceSpans\":[{\"scopeSpans\":4}]}").unwrap();
    assert_eq!(json.status, 400);
    assert!(json.text().contains("scopeSpans") || json.text().contains("scope_spans"), "{}", json.text());
    assert!(json.headers.to_ascii_lowercase().contains("content-type: application/json"), "{}", json.headers);
    let encoding = [("content-type", PROTOBUF), ("content-encoding", "br")];
    assert_eq!(request(&server.http, "POST", "/v1/traces", &encoding, b"").unwrap().status, 415);

    let mut wrong_id = full_span([1; 16], [2; 8], now_nanos());
    wrong_id.trace_id.pop();
    let good = full_span([4; 16], [2; 8], now_nanos());
    let partly = trace_request("shop", vec![wrong_id, good]).encode_to_vec();
    let answer = server.post("/v1/traces", PROTOBUF, &partly).unwrap();
    assert_eq!(answer.status, 200);
    let partial = opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse::decode(&*answer.body);
    let partial = partial.unwrap().partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("trace_id"), "{}", partial.error_message);
    assert_eq!(server.get("/api/traces/04040404040404040404040404040404").unwrap().status, 200);

    assert_eq!(server.get("/api/traces/xyz").unwrap().status, 400);
    assert_eq!(server.get("/api/traces/1234").unwrap().status, 404);
    assert_eq!(server.get_json("/api/v2/traces/1234")["trace"], json!({}));
    assert_eq!(server.get("/api/v1/profile?span_id=zz").unwrap().status, 400);
    assert_eq!(server.get("/api/v1/profile?type=nonsense").unwrap().status, 400);
    assert_eq!(server.get("/api/v1/profile?from=tomorrow").unwrap().status, 400);
}

/// Scenario: a request of a few kilobytes that unpacks to gigabytes.
/// Guarantee: it is refused with 413 while unpacking.
#[test]
fn a_compression_bomb_is_refused() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let zeros = vec![0u8; 100 << 20];
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    let bomb = encoder.finish().unwrap();
    let headers = [("content-type", PROTOBUF), ("content-encoding", "gzip")];
    let answer = request(&server.http, "POST", "/v1/traces", &headers, &bomb).unwrap();
    assert_eq!(answer.status, 413, "{}", answer.text());
}

/// Scenario: a second process on the same store, while the first is writing a file.
/// Guarantee: the second refuses to start, says who has the store, and touches nothing of it.
#[test]
fn one_store_belongs_to_one_process() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let being_written = store.path().join("data/segment.0.unfinished");
    std::fs::write(&being_written, b"half").unwrap();
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args(["serve", "--http", "off", "--otlp-grpc", "off", "--otlp-http", "off", "--tempo", "off", "--store"])
        .arg(store.path())
        .output()
        .unwrap();
    assert!(!second.status.success());
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(message.contains("is in use by process"), "{message}");
    assert!(being_written.exists());
}

/// Scenario: OTLP/JSON as the specification writes it. Guarantee: stored like protobuf, answered in JSON.
#[test]
fn json_in_json_out() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "js"}}]},
        "scopeSpans": [{"spans": [{
            "traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
            "name": "hello", "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": 1544712661000000000i64,
            "kind": 2, "unknownField": [1, {"x": 2}],
            "attributes": [{"key": "n", "value": {"intValue": "12"}}]
        }]}]
    }]});
    let answer = server.post("/v1/traces", "application/json", body.to_string().as_bytes()).unwrap();
    assert_eq!((answer.status, answer.text().trim()), (200, "{}"));
    let trace = server.get_json("/api/traces/5b8efff798038103d269b633813fc60c");
    let span = &trace["batches"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["name"], "hello");
    assert_eq!(span["attributes"][0]["value"]["intValue"], "12");
}
