//! A trace of 250,000 spans: it is stored, found, read whole and in windows, and does no harm.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::{Server, now_nanos, text_attribute, trace_request};

const SPANS: u64 = 250_000;
const MS: u64 = 1_000_000;

/// Scenario: one trace of 250,000 spans, read whole, in windows from both ends, as an outline, and two of its spans by themselves.
/// Guarantee: every span comes once, windows are short and in order, and memory stays far below what the answer weighs.
#[test]
fn a_trace_of_a_quarter_million_spans_does_no_harm() {
    let store = tempfile::tempdir().unwrap();
    // Compaction takes memory of its own, which is not what is measured here.
    let config = store.path().join("late.toml");
    std::fs::write(&config, "[compaction]\nfirst_level_age = \"1h\"\nfirst_level_bytes = \"8GiB\"\n").unwrap();
    let server = Server::start_with(&store.path().join("data"), &["--config", config.to_str().unwrap()]);
    server.wait_ready();
    let start = now_nanos() - 600_000 * MS;
    for batch in 0..SPANS / 10_000 {
        let span = |number: u64| Span {
            trace_id: vec![7; 16],
            span_id: (number + 1).to_be_bytes().to_vec(),
            parent_span_id: if number == 0 { Vec::new() } else { (number / 10 + 1).to_be_bytes().to_vec() },
            name: format!("operation-{}", number % 50),
            kind: 1,
            start_time_unix_nano: start + number * 1000,
            end_time_unix_nano: start + number * 1000 + 500 * MS,
            attributes: vec![text_attribute("text", &"x".repeat(40)), text_attribute("number", &number.to_string())],
            ..Span::default()
        };
        let spans = (batch * 10_000..(batch + 1) * 10_000).map(span).collect();
        let body = trace_request("batch", spans).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    }
    let before = server.peak_memory();
    let id = "07".repeat(16);
    let json = server.get(&format!("/api/traces/{id}")).unwrap();
    assert!(json.headers.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{}", json.headers);
    assert!(json.body.starts_with(br#"{"batches":[{"#) && json.body.ends_with(b"]}]}]}"));
    let marker = br#""spanId":""#;
    let ids: Vec<&[u8]> = json
        .body
        .windows(marker.len())
        .enumerate()
        .filter(|(_, window)| window == marker)
        .map(|(at, _)| &json.body[at + marker.len()..at + marker.len() + 12])
        .collect();
    let distinct: std::collections::HashSet<&[u8]> = ids.iter().copied().collect();
    assert_eq!((ids.len() as u64, distinct.len() as u64), (SPANS, SPANS));
    let weight = json.body.len() as f64 / 1e6;
    let grown = server.peak_memory() - before;
    assert!(weight > 70.0 && grown < weight / 2.0 + 50.0, "{weight:.0} MB of JSON took {grown:.0} MB more");

    let window = |parameters: &str| server.get_json(&format!("/api/v1/trace/{id}/spans?{parameters}"));
    let first = window("limit=5");
    assert_eq!((first["total_spans"].as_u64(), first["spans"].as_array().unwrap().len()), (Some(SPANS), 5));
    assert_eq!(first["spans"][0]["descendants"].as_u64(), Some(SPANS - 1));
    let depths: Vec<u64> =
        first["spans"].as_array().unwrap().iter().map(|span| span["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [0, 1, 2, 3, 4]);
    let last = window(&format!("offset={}&limit=100", SPANS - 10));
    assert_eq!(last["spans"].as_array().unwrap().len(), 10);
    assert_eq!(window("max_depth=1&limit=100")["rows"].as_u64(), Some(10));
    let outline = server.get_json(&format!("/api/v1/trace/{id}/outline"));
    let depth = outline["depth"].as_array().unwrap();
    assert_eq!((depth.len() as u64, outline["span_ids"].as_str().unwrap().len() as u64), (SPANS, 16 * SPANS));
    assert_eq!((&depth[..5], outline["names"].as_array().unwrap().len()), (&[0, 1, 2, 3, 4].map(Value::from)[..], 50));
    assert!(outline.to_string().len() as f64 / 1e6 < weight / 4.0, "an outline is short");
    let details = |body: &Value| server.post_json(&format!("/api/v1/trace/{id}/details"), body);
    let told = details(&json!({ "spans": [first["spans"][4]["span_id"], last["spans"][9]["span_id"]] }));
    let scopes = told["trace"]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let number = |span: &Value| span["attributes"][1]["value"]["stringValue"].as_str().unwrap().to_owned();
    assert_eq!(scopes.len(), 2);
    assert_ne!(number(&scopes[0]), number(&scopes[1]));
    let unknown = details(&json!({ "spans": ["0808080808080808"] }));
    assert_eq!(unknown["trace"]["resourceSpans"], json!([]), "a span of another trace is not there");
    for refused in [json!({ "spans": ["nonsense"] }), json!({ "spans": vec!["0000000000000001"; 2001] }), json!({})] {
        let path = format!("/api/v1/trace/{id}/details");
        let answer = server.post(&path, "application/json", refused.to_string().as_bytes()).unwrap();
        assert!((400..500).contains(&answer.status) && answer.text().contains("spans"), "{}", answer.text());
    }
    let refused = server.get(&format!("/api/v1/trace/{id}/spans?limit=1000000")).unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("20000"));
    assert_eq!(server.get(&format!("/api/v1/trace/{}/spans", "08".repeat(16))).unwrap().status, 404);

    let found = server.get_json("/api/search?q=%7B%20name%20%3D%20%22operation-7%22%20%7D");
    assert_eq!(found["traces"][0]["spanSets"][0]["matched"].as_u64(), Some(SPANS / 50));
}
