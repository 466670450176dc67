//! OTLP's doors: paths that collectors make up, both protocols on both ports, and clear answers to what is not served.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::{Server, TestSample, now_nanos, profile_request, request, trace_request};
use tonic::transport::Endpoint;

const PROTOBUF: &str = "application/x-protobuf";

fn span(number: u8) -> Span {
    let now = now_nanos();
    Span {
        trace_id: vec![number; 16],
        span_id: vec![number; 8],
        start_time_unix_nano: now,
        end_time_unix_nano: now + 1000,
        ..Span::default()
    }
}

fn sample(number: u8) -> TestSample<'static> {
    TestSample { stack: &["main"], value: 1, time: now_nanos(), trace_id: [number; 16], span_id: [number; 8] }
}

/// Scenario: an endpoint that has OTLP's path already, to which a collector adds its own; on each port.
/// Guarantee: what is sent there is stored.
#[test]
fn paths_that_collectors_make() {
    let (_store, server) = Server::configured("");
    let mut number = 0;
    for port in ["http", "otlp-http", "otlp-grpc"] {
        let send = |path: &str, body: &[u8]| {
            let answer = request(server.address(port), "POST", path, &[("content-type", PROTOBUF)], body).unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, 0), "{port} {path}: {}", answer.text());
        };
        for path in ["/v1/traces", "/v1/traces/v1/traces"] {
            number += 1;
            send(path, &trace_request("shop", vec![span(number)]).encode_to_vec());
            let trace = format!("/api/traces/{}", format!("{number:02x}").repeat(16));
            assert_eq!(server.get(&trace).unwrap().status, 200, "{port} {path}");
        }
        for path in [
            "/v1/profiles",
            "/v1development/profiles",
            "/v1/profiles/v1development/profiles",
            "/v1/profiles/v1/profiles",
            "/v1development/profiles/v1development/profiles",
        ] {
            number += 1;
            send(path, &profile_request("shop", [number; 16], &[sample(number)]).encode_to_vec());
            let flame = format!("/api/v1/profile?trace_id={}", format!("{number:02x}").repeat(16));
            assert_eq!(server.get_json(&flame)["flamebearer"]["numTicks"], 1, "{port} {path}");
        }
    }
}

/// Scenario: gRPC clients that are pointed at the port for HTTP.
/// Guarantee: they are served like on their own.
#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_on_both_ports() {
    let (_store, server) = Server::configured("");
    for (number, port) in [(1, "otlp-http"), (2, "otlp-grpc"), (3, "http")] {
        let address = format!("http://{}", server.address(port));
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut traces = TraceServiceClient::new(channel.clone());
        traces.export(trace_request("shop", vec![span(number)])).await.unwrap();
        let mut profiles = ProfilesServiceClient::new(channel.clone());
        profiles.export(profile_request("shop", [number; 16], &[sample(number)])).await.unwrap();
        let trace = format!("/api/traces/{}", format!("{number:02x}").repeat(16));
        assert_eq!(server.get(&trace).unwrap().status, 200, "{port}");
    }
}

/// Scenario: metrics, logs and a method of somebody else over gRPC, in the framing that puts trailers into the body.
/// Guarantee: UNIMPLEMENTED, which is not retried, with a message that says what to do.
#[test]
fn what_is_not_served_is_told_over_grpc() {
    let (_store, server) = Server::configured("");
    for (service, advice) in [
        ("opentelemetry.proto.collector.metrics.v1.MetricsService", "OTEL_METRICS_EXPORTER=none"),
        ("opentelemetry.proto.collector.logs.v1.LogsService", "OTEL_LOGS_EXPORTER=none"),
        ("some.other.Service", "TraceService"),
    ] {
        for port in ["otlp-grpc", "otlp-http"] {
            let headers = [("content-type", "application/grpc-web+proto")];
            let path = format!("/{service}/Export");
            let answer = request(server.address(port), "POST", &path, &headers, &[0; 5]).unwrap();
            assert_eq!(answer.status, 200);
            let trailers = answer.text();
            assert!(trailers.contains("grpc-status: 12\r\n") && trailers.contains(advice), "{trailers}");
        }
    }
}

/// Scenario: metrics and logs, a path that nothing is at, and a GET, on both of OTLP's ports.
/// Guarantee: a status that is not retried with a body that says what to do, in the encoding of the request, and a count.
#[test]
fn what_is_not_served_is_told() {
    let (_store, server) = Server::configured("");
    let cases = [
        ("POST", "/v1/metrics", 404, "OTEL_METRICS_EXPORTER=none"),
        ("POST", "/v1/logs", 404, "OTEL_LOGS_EXPORTER=none"),
        ("POST", "/v2/traces", 404, "/v1/traces"),
        ("GET", "/", 404, "--http"),
        ("GET", "/v1/traces", 405, "POST"),
    ];
    for port in ["otlp-http", "otlp-grpc"] {
        for (method, path, status, advice) in cases {
            let headers = [("content-type", "application/json")];
            let answer = request(server.address(port), method, path, &headers, b"{}").unwrap();
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(body["code"], json!(12), "{body}");
            assert!(body["message"].as_str().unwrap().contains(advice), "{body}");
        }
    }
    let answer = server.post("/v1/metrics", PROTOBUF, b"").unwrap();
    assert_eq!(answer.status, 404);
    assert!(answer.headers.to_ascii_lowercase().contains("content-type: application/x-protobuf"), "{}", answer.headers);
    assert_eq!(server.post("/no/such/method", PROTOBUF, b"").unwrap().status, 404);
    let metrics = server.get("/metrics").unwrap().text();
    for (signal, reason, count) in [
        ("metrics", "not_stored", 3),
        ("logs", "not_stored", 2),
        ("unknown", "unknown_path", 5),
        ("unknown", "wrong_method", 2),
    ] {
        let line = format!("hotspan_refused_requests_total{{signal=\"{signal}\",reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
}
