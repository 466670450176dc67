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

/// What OTLP says of a request that is not taken.
#[derive(Clone, PartialEq, Message)]
struct GrpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

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

/// Scenario: an endpoint that has a path already, that of OTLP's other signal among them, to which a collector adds its own;
/// with and without a slash at the end; on each port.
/// Guarantee: what is sent there is stored.
#[test]
fn paths_that_collectors_make() {
    let (_store, server) = Server::configured("ingest.flush_interval = \"5ms\"\n");
    let mut number = 0;
    for port in ["http", "otlp-http", "otlp-grpc"] {
        let send = |path: &str, body: &[u8]| {
            let answer = request(server.address(port), "POST", path, &[("content-type", PROTOBUF)], body).unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, 0), "{port} {path}: {}", answer.text());
        };
        for endpoint in ["", "/v1/traces", "/v1/profiles", "/v1development/profiles", "/otlp"] {
            for end in ["", "/"] {
                number += 1;
                let path = format!("{endpoint}/v1/traces{end}");
                send(&path, &trace_request("shop", vec![span(number)]).encode_to_vec());
                let trace = format!("/api/traces/{}", format!("{number:02x}").repeat(16));
                assert_eq!(server.get(&trace).unwrap().status, 200, "{port} {path}");
                for name in ["/v1/profiles", "/v1development/profiles"] {
                    number += 1;
                    let path = format!("{endpoint}{name}{end}");
                    send(&path, &profile_request("shop", [number; 16], &[sample(number)]).encode_to_vec());
                    let flame = format!("/api/v1/profile?trace_id={}", format!("{number:02x}").repeat(16));
                    assert_eq!(server.get_json(&flame)["flamebearer"]["numTicks"], 1, "{port} {path}");
                }
            }
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

/// Scenario: traces at a wrong path of the port that has everything, in protobuf; and a call by Connect of a method that is not.
/// Guarantee: the first is told in OTLP's words, as on the ports that have OTLP alone; the second in those of Connect.
#[test]
fn a_wrong_path_is_told_as_it_was_asked() {
    let (_store, server) = Server::configured("");
    let is_protobuf = |headers: &str| headers.to_ascii_lowercase().contains("content-type: application/x-protobuf");
    for port in ["http", "otlp-http"] {
        let headers = [("content-type", PROTOBUF)];
        let answer = request(server.address(port), "POST", "/v2/traces", &headers, b"").unwrap();
        assert_eq!((answer.status, is_protobuf(&answer.headers)), (404, true), "{port}: {}", answer.headers);
        let status = GrpcStatus::decode(&answer.body[..]).unwrap();
        assert_eq!(status.code, 12);
        assert!(
            status.message.starts_with("there is nothing at /v2/traces; OTLP over HTTP is at /v1/traces"),
            "{status:?}"
        );
    }
    let answer = server.post("/querier.v1.QuerierService/Nothing", PROTOBUF, b"").unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.status, &body["code"]), (404, &json!("unimplemented")), "{body}");
}

/// Scenario: a call with two messages, and one that is marked as compressed without saying how.
/// Guarantee: refused with a message that says why, and nothing of them is stored; each message alone is taken.
#[test]
fn a_call_is_one_message() {
    let (_store, server) = Server::configured("");
    let frame = |flags: u8, number: u8| {
        let message = trace_request("shop", vec![span(number)]).encode_to_vec();
        [&[flags], (message.len() as u32).to_be_bytes().as_slice(), &message].concat()
    };
    let send = |body: &[u8]| {
        let headers = [("content-type", "application/grpc-web+proto")];
        let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        request(server.address("otlp-grpc"), "POST", path, &headers, body).unwrap().text()
    };
    for (body, reason) in [
        ([frame(0, 1), frame(0, 2)].concat(), "one message"),
        (frame(1, 1), "the header grpc-encoding names no compression"),
    ] {
        let trailers = send(&body);
        assert!(trailers.contains("grpc-status: 3\r\n") && trailers.contains(reason), "{trailers}");
    }
    let status =
        |number: u8| server.get(&format!("/api/traces/{}", format!("{number:02x}").repeat(16))).unwrap().status;
    assert_eq!((status(1), status(2)), (404, 404));
    for number in [1, 2] {
        let trailers = send(&frame(0, number));
        assert!(trailers.contains("grpc-status: 0\r\n"), "{trailers}");
    }
    assert_eq!((status(1), status(2)), (200, 200));
}

/// Scenario: metrics and logs, a path that nothing is at, and a GET, on both of OTLP's ports.
/// Guarantee: a status that is not retried with a body that says what to do, in the encoding of the request, and a count.
#[test]
fn what_is_not_served_is_told() {
    let (_store, server) = Server::configured("");
    let cases = [
        ("POST", "/v1/metrics", 404, "OTEL_METRICS_EXPORTER=none"),
        ("POST", "/v1/logs", 404, "OTEL_LOGS_EXPORTER=none"),
        ("POST", "/v1/traces/v1/logs/", 404, "OTEL_LOGS_EXPORTER=none"),
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
        ("logs", "not_stored", 4),
        ("unknown", "unknown_path", 5),
        ("unknown", "wrong_method", 2),
    ] {
        let line = format!("hotspan_refused_requests_total{{signal=\"{signal}\",reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
}

/// Scenario: a body of gzip that no header tells of, in both encodings; a request to the page's port by a method that is not its own.
/// Guarantee: the answer says which header is missing, or which methods there are.
#[test]
fn what_the_sender_forgot_is_told() {
    let (_store, server) = Server::fresh();
    for content_type in ["application/json", PROTOBUF] {
        let answer = server.post("/v1/traces", content_type, &[0x1f, 0x8b, 8, 0, 0, 0]).unwrap();
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("send Content-Encoding: gzip"), "{}", answer.text());
    }
    for (port, method, path, methods) in [
        ("http", "GET", "/v1/traces", "POST"),
        ("http", "GET", "/api/v1/sql", "POST"),
        ("http", "POST", "/ready", "GET"),
        ("http", "POST", "/api/v1/profiling/policy", "GET or PUT or PATCH or DELETE"),
        ("tempo", "POST", "/api/search", "GET"),
    ] {
        let answer = request(server.address(port), method, path, &[], &[]).unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let told = format!("{path} is asked with {methods}, and {method} came");
        assert_eq!((answer.status, body), (405, json!({ "error": told })));
        assert!(answer.headers.to_ascii_lowercase().contains("allow: "), "{}", answer.headers);
    }
}
