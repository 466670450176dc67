//! OTLP over gRPC as a real client speaks it: tonic with the services that OpenTelemetry generates from its protos.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::trace::v1::Span;
use support::{Server, TestSample, now_nanos, profile_request, text_attribute, trace_request};
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Channel, Endpoint};

async fn connect(server: &Server) -> Channel {
    Endpoint::from_shared(format!("http://{}", server.address("otlp-grpc"))).unwrap().connect().await.unwrap()
}

/// The trace of a number: `count` spans with so many bytes of text that does not compress well.
fn numbered_trace(number: u8, count: usize, text_bytes: usize) -> ExportTraceServiceRequest {
    let start = now_nanos();
    let mut chance = u64::from(number) | 0x9e37_79b9_7f4a_7c00;
    let mut text = || {
        let mut text = String::with_capacity(text_bytes + 16);
        while text.len() < text_bytes {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            text.push_str(&format!("{chance:016x}"));
        }
        text
    };
    let spans = (0..count).map(|at| Span {
        trace_id: vec![number; 16],
        span_id: (at as u64 + 1).to_be_bytes().to_vec(),
        name: "operation".to_owned(),
        start_time_unix_nano: start,
        end_time_unix_nano: start + 1000,
        attributes: vec![text_attribute("text", &text())],
        ..Span::default()
    });
    trace_request("numbered", spans.collect())
}

fn stored_spans(server: &Server, number: u8) -> usize {
    let answer = server.get(&format!("/api/traces/{}", format!("{number:02x}").repeat(16))).unwrap();
    if answer.status == 404 {
        return 0;
    }
    let trace: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let scopes = trace["batches"].as_array().unwrap().iter().flat_map(|batch| batch["scopeSpans"].as_array().unwrap());
    scopes.map(|scope| scope["spans"].as_array().unwrap().len()).sum()
}

/// Whether a status carries `google.rpc.RetryInfo`, which tells clients to try again.
fn says_when_to_retry(status: &tonic::Status) -> bool {
    String::from_utf8_lossy(status.details()).contains("google.rpc.RetryInfo")
}

/// Waits until this share of the room for requests is taken.
async fn wait_for_queue_share(server: &Server, share: u8) {
    let line = format!("\nhotspan_ingest_queue_share {share}\n");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let metrics = server.get("/metrics").unwrap().text();
        if metrics.contains(&line) {
            return;
        }
        assert!(Instant::now() < deadline, "not {line}: {metrics}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Scenario: spans and samples sent plain, with gzip and with zstd, several megabytes in one request.
/// Guarantee: each is acknowledged as a full success, and all of it is there.
#[tokio::test(flavor = "multi_thread")]
async fn every_encoding_and_size() {
    let (_store, server) = Server::configured("");
    let channel = connect(&server).await;
    let encodings = [None, Some(CompressionEncoding::Gzip), Some(CompressionEncoding::Zstd)];
    for (number, encoding) in (1u8..).zip(encodings) {
        let mut traces = TraceServiceClient::new(channel.clone());
        let mut profiles = ProfilesServiceClient::new(channel.clone());
        if let Some(encoding) = encoding {
            traces = traces.send_compressed(encoding).accept_compressed(encoding);
            profiles = profiles.send_compressed(encoding).accept_compressed(encoding);
        }
        let answer = traces.export(numbered_trace(number, 3000, 2000)).await.unwrap().into_inner();
        assert_eq!(answer.partial_success, None, "{encoding:?}");
        assert_eq!(stored_spans(&server, number), 3000, "{encoding:?}");

        let stack: &[&str] = &["main", "work"];
        let sample = TestSample {
            stack,
            value: 7,
            time: now_nanos(),
            trace_id: [number; 16],
            span_id: [0, 0, 0, 0, 0, 0, 0, 1],
        };
        let request = profile_request("numbered", [number; 16], &[sample]);
        let answer = profiles.export(request).await.unwrap().into_inner();
        assert_eq!(answer.partial_success, None, "{encoding:?}");
        let flame = server.get_json(&format!("/api/v1/profile?trace_id={}", format!("{number:02x}").repeat(16)));
        assert_eq!(flame["flamebearer"]["numTicks"], 7, "{encoding:?}");
    }
}

/// Scenario: a request with one good span and two that have no valid id.
/// Guarantee: the good one is stored, and the client learns how many were refused and why.
#[tokio::test(flavor = "multi_thread")]
async fn partial_success() {
    let (_store, server) = Server::configured("");
    let mut client = TraceServiceClient::new(connect(&server).await);
    let mut request = numbered_trace(1, 3, 10);
    let spans = &mut request.resource_spans[0].scope_spans[0].spans;
    spans[1].span_id = vec![1, 2, 3];
    spans[2].trace_id = vec![0; 16];
    let answer = client.export(request).await.unwrap().into_inner();
    let partial = answer.partial_success.expect("two spans were refused");
    assert_eq!(partial.rejected_spans, 2);
    assert!(partial.error_message.contains("span_id") && partial.error_message.contains("trace_id"), "{partial:?}");
    assert_eq!(stored_spans(&server, 1), 1);
}

/// Scenario: a request past the size limit, and one that comes while the queue is full.
/// Guarantee: both are RESOURCE_EXHAUSTED and store nothing; only the second says when to retry, and then succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn exhausted() {
    let config = "limits.max_bytes = \"2MiB\"\ningest.queue_bytes = \"1MiB\"\ningest.flush_interval = \"3s\"\n";
    let (_store, server) = Server::configured(config);
    let channel = connect(&server).await;
    let mut client = TraceServiceClient::new(channel.clone()).send_compressed(CompressionEncoding::Zstd);
    let refused = client.export(numbered_trace(1, 3000, 2000)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(!says_when_to_retry(&refused), "{refused}");
    assert!(refused.message().contains("smaller batches"), "{refused}");

    // This one takes all room until it is committed, three seconds later.
    let mut first = TraceServiceClient::new(channel);
    let large = tokio::spawn(async move { first.export(numbered_trace(2, 500, 2000)).await });
    wait_for_queue_share(&server, 1).await;
    let refused = client.export(numbered_trace(3, 500, 2000)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(says_when_to_retry(&refused), "{refused}");
    large.await.unwrap().unwrap();
    client.export(numbered_trace(4, 5, 10)).await.unwrap();
    assert_eq!([1, 2, 3, 4].map(|number| stored_spans(&server, number)), [0, 500, 0, 5]);
}

/// Scenario: the server is asked to stop while a request waits for its commit, and others keep coming.
/// Guarantee: the waiting one is acknowledged and stored; the others get codes that clients retry, and are not stored.
#[tokio::test(flavor = "multi_thread")]
async fn stopping() {
    let store = tempfile::tempdir().unwrap();
    let mut server = Server::start_with(store.path(), &["--flush-interval", "1500ms"]);
    server.wait_ready();
    let channel = connect(&server).await;
    let mut waiting = TraceServiceClient::new(channel.clone());
    let acknowledged = tokio::spawn(async move { waiting.export(numbered_trace(1, 10, 10)).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let pid = server.pid();
    let ended = tokio::task::spawn_blocking(move || (server.terminate(), server));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut client = TraceServiceClient::new(channel);
    let mut answers = Vec::new();
    while !ended.is_finished() {
        answers.push(client.export(numbered_trace(2, 1, 10)).await.expect_err("the server is stopping").code());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!answers.is_empty(), "process {pid} ended before anything could be asked");
    // A call that meets the server's good-bye on its connection is cancelled by the client itself; OTLP retries both.
    assert!(answers.iter().all(|code| matches!(code, Code::Unavailable | Code::Cancelled)), "{answers:?}");
    acknowledged.await.unwrap().unwrap();
    let (status, server) = ended.await.unwrap();
    assert!(status.success(), "{status}");
    drop(server);
    let server = Server::start(store.path());
    server.wait_ready();
    assert_eq!([1, 2].map(|number| stored_spans(&server, number)), [10, 0]);
}

/// Scenario: clients that give up in the middle of sending or waiting, many times.
/// Guarantee: all room that they had is given back, nothing is stored in part, and others are served as before.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls() {
    let (_store, server) = Server::configured("");
    let channel = connect(&server).await;
    let request = numbered_trace(1, 2000, 2000);
    let mut cancelled = 0;
    for attempt in 0..40u64 {
        let mut client = TraceServiceClient::new(channel.clone());
        let patience = Duration::from_millis(attempt * 5);
        cancelled += usize::from(tokio::time::timeout(patience, client.export(request.clone())).await.is_err());
    }
    assert!(cancelled > 5, "only {cancelled} calls were cancelled");
    let mut client = TraceServiceClient::new(channel);
    client.export(numbered_trace(2, 100, 10)).await.unwrap();
    assert_eq!(stored_spans(&server, 2), 100);
    let stored = stored_spans(&server, 1);
    assert!(stored == 0 || stored == 2000, "{stored} of 2000 spans are stored");
    wait_for_queue_share(&server, 0).await;
}
