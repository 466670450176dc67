//! `/metrics`: what the server tells of itself, and what the documentation says of it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, TestSample, now_nanos, profile_request, request, trace_request};

const PROTOBUF: &str = "application/x-protobuf";

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
    let traces = trace_request("shop", vec![span]).encode_to_vec();
    assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
    assert_eq!(server.post("/v1/traces", PROTOBUF, b"\xff").unwrap().status, 400);
    assert_eq!(request(server.address("tempo"), "GET", "/api/search", &[], &[]).unwrap().status, 200);

    let text = server.get("/metrics").unwrap().text();
    let documented = include_str!("../../../docs/metrics.md");
    // Samples only: help and type lines name counters without their ending.
    let samples: String = text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(names(&samples), names(documented));
    for of_the_process in ["resident_memory_bytes", "open_fds", "max_fds", "start_time_seconds", "cpu_seconds_total"] {
        let name = format!("process_{of_the_process}");
        assert!(value(&text, &name) >= 0.0 && documented.contains(&name), "{name}");
    }
    assert!(value(&text, "hotspan_ingest_remembered_ids") >= 1.0);
    assert!(value(&text, "hotspan_compaction_backlog_segments") >= 1.0);
    assert!(value(&text, "hotspan_compaction_backlog_bytes") >= 1.0);
    assert!(value(&text, "hotspan_lake_resident_bytes") >= 1.0);
    assert_eq!(value(&text, "hotspan_queries_seconds_count{api=\"tempo\"}"), 1.0);
}

/// Scenario: stacks deeper than the limit by OTLP and as a file, texts that are too long in both, one that is not UTF-8, and a sample
/// that names a link which is not there.
/// Guarantee: all but that sample is stored; every change and drop is in the answer and in the metrics.
#[test]
fn what_is_changed_or_left_out_is_told_and_counted() {
    let (_store, server) = Server::configured("limits.max_stack_depth = 2\nlimits.max_text_bytes = \"16B\"\n");
    let now = now_nanos();
    let sample =
        TestSample { stack: &["main", "a", "b", "c"], value: 5, time: now, trace_id: [1; 16], span_id: [2; 8] };
    let lost = TestSample { stack: &["main"], value: 7, time: now, trace_id: [1; 16], span_id: [2; 8] };
    let mut profiles = profile_request("shop", [6; 16], &[sample, lost]);
    profiles.resource_profiles[0].scope_profiles[0].profiles[0].samples[1].link_index = 99;
    let answer = server.post("/v1/profiles", PROTOBUF, &profiles.encode_to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = ExportProfilesServiceResponse::decode(&*answer.body).unwrap().partial_success.unwrap();
    assert_eq!(told.rejected_profiles, 0);
    for part in ["more than 2 frames, of which 2 in all were cut", "limits.max_stack_depth", "samples[1].link_index"] {
        assert!(told.error_message.contains(part), "{}", told.error_message);
    }
    let stacks = b"main;a;b;c;a_function_of_more_than_sixteen_bytes 5\n";
    let file = server.post("/api/v1/profiles?service=shop", "text/plain", stacks).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&file.body).unwrap();
    assert_eq!((&stored["samples"], &stored["cut_frames"]), (&1.into(), &3.into()), "{stored}");
    assert_eq!(stored["cut_texts"], 1, "{stored}");

    let span = |id: u8, name: &str| Span {
        trace_id: vec![id; 16],
        span_id: vec![id; 8],
        name: name.to_owned(),
        start_time_unix_nano: now,
        end_time_unix_nano: now + 5,
        ..Span::default()
    };
    let spans = vec![span(1, "a name of more than sixteen bytes"), span(2, "ORDER")];
    let mut body = trace_request("shop", spans).encode_to_vec();
    let name = body.windows(5).position(|window| window == b"ORDER").unwrap();
    body[name] = 0xff;
    let answer = server.post("/v1/traces", PROTOBUF, &body).unwrap();
    let told = ExportTraceServiceResponse::decode(&*answer.body).unwrap().partial_success.unwrap();
    assert_eq!(told.rejected_spans, 0);
    assert!(told.error_message.contains("not UTF-8") && told.error_message.contains("cut"), "{}", told.error_message);

    let text = server.get("/metrics").unwrap().text();
    assert_eq!(value(&text, "hotspan_cut_frames_total"), 5.0);
    assert_eq!(value(&text, "hotspan_rejected_samples_total"), 1.0);
    assert_eq!(value(&text, "hotspan_cut_texts_total{signal=\"traces\"}"), 1.0);
    assert_eq!(value(&text, "hotspan_cut_texts_total{signal=\"profiles\"}"), 1.0);
    assert_eq!(value(&text, "hotspan_repaired_texts_total{signal=\"traces\"}"), 1.0);
}

/// The families of a text, by name, and the samples of each; those before any family are under no name.
fn families(text: &str) -> Vec<(String, String, Vec<&str>)> {
    let mut families: Vec<(String, String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("# TYPE ") {
            let (name, kind) = told.split_once(' ').unwrap();
            families.push((name.to_owned(), kind.to_owned(), Vec::new()));
        } else if !line.starts_with('#') {
            families.last_mut().expect(line).2.push(line);
        }
    }
    families
}

/// Scenario: metrics of the server and of spans, asked for as curl, an old scraper, Prometheus and a proxy ask.
/// Guarantee: OpenMetrics for those who name it, with its end and counters' families without `_total`; for all others
/// Prometheus' text, in which every sample is called as its family is. Both hold the same samples.
#[test]
fn metrics_come_in_the_text_that_is_read() {
    let (_store, server) = Server::fresh();
    let start = now_nanos();
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "work".to_owned(),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 5_000_000,
        ..Span::default()
    };
    let traces = trace_request("shop", vec![span]).encode_to_vec();
    assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
    server.get_json("/api/v1/services");
    let get = |path: &str, accept: &[(&str, &str)]| {
        let answer = request(&server.http, "GET", path, accept, &[]).unwrap();
        assert_eq!(answer.status, 200);
        (answer.headers.to_ascii_lowercase(), answer.text())
    };
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for path in ["/metrics", "/metrics/spans"] {
        let (kind, open) = get(path, &[("accept", prometheus)]);
        assert!(kind.contains("content-type: application/openmetrics-text; version=1.0.0"), "{kind}");
        assert!(open.ends_with("\n# EOF\n"), "{open}");
        let open = families(&open);
        for plain in [&[][..], &[("accept", "*/*")], &[("accept", "text/plain;version=0.0.4")]] {
            let (kind, text) = get(path, plain);
            assert!(kind.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{plain:?}: {kind}");
            assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
            let told = families(&text);
            assert_eq!(told.len(), open.len());
            for ((name, kind, samples), (open_name, open_kind, open_samples)) in told.iter().zip(&open) {
                let endings: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                let is_of_family = |sample: &&str| {
                    let called = sample.split(['{', ' ']).next().unwrap();
                    endings.iter().any(|ending| called == format!("{name}{ending}"))
                };
                assert!(samples.iter().all(is_of_family), "{name}: {samples:?}");
                let ending = if kind == "counter" { "_total" } else { "" };
                assert_eq!((kind, name), (open_kind, &format!("{open_name}{ending}")));
                assert_eq!(samples.len(), open_samples.len(), "{name}");
            }
            assert!(told.iter().any(|(_, kind, samples)| kind == "counter" && !samples.is_empty()));
            // What only grows is a counter: `rate` of a gauge takes a restart for time that was given back.
            let grows = |name: &str| name.ends_with("_seconds") && name != "process_start_time_seconds";
            assert!(told.iter().all(|(name, kind, _)| kind != "gauge" || !grows(name)));
            assert!(told.iter().any(|(_, kind, samples)| kind == "histogram" && !samples.is_empty()), "{path}");
        }
    }
}
