//! Requests and memory: what is under way is bounded by configuration, and who finds no room is told so (R5).

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Answer, Server, TestSample, now_nanos, profile_request, request, text_attribute, trace_request};

const PROTOBUF: &str = "application/x-protobuf";
const MEGABYTE: usize = 1 << 20;

/// So many spans, each with so many bytes of text that compresses to nearly nothing.
fn spans_of(number: u8, count: u8, text_bytes: usize) -> Vec<u8> {
    let now = now_nanos();
    let spans = (1..=count).map(|id| Span {
        trace_id: vec![number; 16],
        span_id: vec![id; 8],
        name: "operation".to_owned(),
        start_time_unix_nano: now,
        end_time_unix_nano: now + 1000,
        attributes: vec![text_attribute("text", &"x".repeat(text_bytes))],
        ..Span::default()
    });
    trace_request("large", spans.collect()).encode_to_vec()
}

/// A zstd frame (RFC 8878) in which runs of one byte are written as such, and all else as it is.
fn zstd(plain: &[u8], says_its_size: bool) -> Vec<u8> {
    const LARGEST_BLOCK: usize = 128 << 10;
    const RAW: u32 = 0;
    const RUN: u32 = 1;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
    // A window of 1 MiB, and the size in four bytes or not at all.
    frame.extend_from_slice(if says_its_size { &[0x80, 0x50] } else { &[0x00, 0x50] });
    if says_its_size {
        frame.extend_from_slice(&u32::try_from(plain.len()).unwrap().to_le_bytes());
    }
    let mut block = |kind: u32, size: usize, content: &[u8]| {
        let header = kind << 1 | u32::try_from(size).unwrap() << 3;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(content);
    };
    let mut rest = plain;
    while let Some(byte) = rest.first() {
        let run = rest.iter().take(LARGEST_BLOCK).take_while(|other| *other == byte).count();
        let size = if run >= 64 {
            block(RUN, run, &[*byte]);
            run
        } else {
            let next_run = rest.windows(64).take(1000).position(|bytes| bytes.iter().all(|byte| *byte == bytes[0]));
            let size = next_run.unwrap_or(rest.len().min(1000));
            block(RAW, size, &rest[..size]);
            size
        };
        rest = &rest[size..];
    }
    // The last one is marked, and empty.
    frame.extend_from_slice(&[1, 0, 0]);
    frame
}

fn post_zstd(address: &str, body: &[u8]) -> Answer {
    let headers = [("content-type", PROTOBUF), ("content-encoding", "zstd")];
    request(address, "POST", "/v1/traces", &headers, body).unwrap()
}

fn has_retry_after(answer: &Answer) -> bool {
    answer.headers.to_ascii_lowercase().contains("retry-after: ")
}

/// Waits until all room is given back.
fn wait_until_empty(server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !server.get("/metrics").unwrap().text().contains("\nhotspan_ingest_queue_share 0\n") {
        assert!(Instant::now() < deadline, "room is not given back");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Scenario: thirty senders each send 6 MiB of 7 announced, and fall silent; the queue has 32 MiB.
/// Guarantee: those who find no room are told to retry at once, the others when they have been silent for too long and no later;
/// memory stays bounded, and whoever comes then is served.
#[test]
fn half_sent_bodies_are_bounded() {
    let config = "limits.max_bytes = \"8MiB\"\nlimits.max_idle = \"2s\"\ningest.queue_bytes = \"32MiB\"\n";
    let (_store, server) = Server::configured(config);
    let before = server.peak_memory();
    let senders = (0..30).map(|_| {
        let address = server.http.clone();
        thread::spawn(move || {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let head = format!(
                "POST /v1/traces HTTP/1.1\r\nhost: {address}\r\ncontent-type: {PROTOBUF}\r\ncontent-length: {}\r\n\r\n",
                7 * MEGABYTE
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&vec![0; 6 * MEGABYTE]).unwrap();
            let sent = Instant::now();
            let mut answer = String::new();
            // The connection is closed behind the answer.
            let _ = stream.read_to_string(&mut answer);
            (answer, sent.elapsed())
        })
    });
    let senders: Vec<_> = senders.collect();
    let answers: Vec<(String, Duration)> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    let count = |status: &str| answers.iter().filter(|(answer, _)| answer.starts_with(status)).count();
    let (silent, refused) = (count("HTTP/1.1 503"), count("HTTP/1.1 429"));
    assert_eq!(silent + refused, 30, "{answers:?}");
    assert!(silent >= 1 && refused >= 20, "{silent} fell silent, {refused} found no room");
    for (answer, waited) in answers.iter().filter(|(answer, _)| answer.starts_with("HTTP/1.1 503")) {
        assert!(answer.contains("limits.max_idle") && answer.contains("retry-after: 1\r\n"), "{answer}");
        assert!(*waited < Duration::from_secs(5), "told after {waited:?}");
    }
    let grown = server.peak_memory() - before;
    assert!(grown < 120.0, "{grown} MB more than before");
    wait_until_empty(&server);
    assert_eq!(server.post("/v1/traces", PROTOBUF, &spans_of(1, 2, 10)).unwrap().status, 200);
}

/// Scenario: bodies that stop half way, at every door; over gRPC too.
/// Guarantee: once the longest silence is over, and no later, each sender is told to retry, in the words of its protocol.
#[test]
fn who_falls_silent_is_told_to_retry() {
    let (_store, server) = Server::configured("limits.max_idle = \"1s\"\n");
    let doors = [
        ("/v1/traces", PROTOBUF),
        ("/v1/profiles", "application/json"),
        ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc-web+proto"),
        ("/push.v1.PusherService/Push", "application/json"),
        ("/ingest?name=shop", "application/octet-stream"),
        ("/api/v1/profiles?service=shop", "application/octet-stream"),
    ];
    let senders = doors.map(|(path, content_type)| {
        let mut stream = TcpStream::connect(&server.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\ncontent-length: 9\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"half").unwrap();
        (path, content_type, stream)
    });
    let began = Instant::now();
    for (path, content_type, mut stream) in senders {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(began.elapsed() < Duration::from_secs(4), "{path}: told after {:?}", began.elapsed());
        let is_told = if content_type.contains("grpc") {
            answer.contains("grpc-status: 14\r\n") && answer.contains("grpc-status-details-bin: ")
        } else {
            answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1\r\n")
        };
        assert!(is_told && answer.contains("limits.max_idle"), "{path}: {answer}");
    }
}

/// Scenario: twenty-four requests of a few kilobytes come at once that unpack to 6 MiB each; the queue has 24 MiB.
/// Guarantee: each is stored whole or told to retry with 429 and Retry-After, memory is bounded by the queue and not by what came,
/// and all are stored in the end.
#[test]
fn what_unpacks_to_much_is_counted_as_much() {
    // Rows wait for each other, are not kept afterwards, and nothing else takes memory meanwhile.
    let waiting = "ingest.flush_interval = \"300ms\"\ningest.flush_bytes = \"1GiB\"\ningest.resident_bytes = \"0B\"\n";
    let (_store, server) = Server::configured(&format!(
        "{waiting}ingest.queue_bytes = \"24MiB\"\ncompaction.first_level_bytes = \"10GiB\"\ncompaction.first_level_age = \"10m\"\n"
    ));
    let before = server.peak_memory();
    let senders = (1..=24).map(|number: u8| {
        let address = server.http.clone();
        thread::spawn(move || {
            let body = zstd(&spans_of(number, 6, MEGABYTE), true);
            let mut refused = 0;
            loop {
                let answer = post_zstd(&address, &body);
                match answer.status {
                    200 => return refused,
                    429 => assert!(has_retry_after(&answer), "{}", answer.headers),
                    _ => panic!("{} {}", answer.status, answer.text()),
                }
                refused += 1;
                assert!(refused < 600, "request {number} is never taken");
                thread::sleep(Duration::from_millis(200));
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    let refused: usize = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    let grown = server.peak_memory() - before;
    assert!(refused > 0, "nobody found the queue full");
    assert!(grown < 150.0, "{grown} MB more than before");
    wait_until_empty(&server);
    // One whose size nobody knows before it is unpacked finds room then, since it is alone.
    assert_eq!(post_zstd(&server.http, &zstd(&spans_of(25, 6, MEGABYTE), false)).status, 200);
    let ingest = &server.get_json("/api/v1/status")["ingest"];
    assert_eq!((&ingest["spans"], &ingest["duplicate_spans"]), (&(25 * 6).into(), &0.into()), "{ingest}");
}

/// Scenario: requests that are too large: plain, in each compression, by their rows, and as a body without end.
/// Guarantee: 413 without a hint to retry, counted as too large, and nothing is stored.
#[test]
fn too_large_is_413() {
    let config = "limits.max_bytes = \"1MiB\"\nlimits.max_decoded_bytes = \"64KiB\"\n";
    let (_store, server) = Server::configured(config);
    let plain = spans_of(1, 2, MEGABYTE);
    let packed = zstd(&plain, true);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let packed_by_gzip = gzip.finish().unwrap();
    let stack: &[&str] = &["main", "work"];
    let sample = || TestSample { stack, value: 7, time: now_nanos(), trace_id: [1; 16], span_id: [2; 8] };
    let samples: Vec<TestSample<'_>> = (0..1000).map(|_| sample()).collect();
    let profiles = profile_request("large", [3; 16], &samples).encode_to_vec();
    assert!(profiles.len() < MEGABYTE);
    let cases: [(&str, &str, &[u8]); 4] = [
        ("/v1/traces", "identity", &plain),
        ("/v1/traces", "zstd", &packed),
        ("/v1/traces", "gzip", &packed_by_gzip),
        ("/v1/profiles", "identity", &profiles),
    ];
    for (path, encoding, body) in cases {
        let headers = [("content-type", PROTOBUF), ("content-encoding", encoding)];
        let answer = request(&server.http, "POST", path, &headers, body).unwrap();
        assert_eq!(answer.status, 413, "{path} {encoding}: {}", answer.text());
        assert!(!has_retry_after(&answer) && answer.text().contains("smaller batches"), "{}", answer.text());
    }
    let metrics = server.get("/metrics").unwrap().text();
    for (signal, count) in [("traces", 3), ("profiles", 1)] {
        let line = format!("hotspan_refused_requests_total{{signal=\"{signal}\",reason=\"too_large\"}} {count}");
        assert!(metrics.contains(&line), "{metrics}");
    }
    assert_eq!(server.get(&format!("/api/traces/{}", "01".repeat(16))).unwrap().status, 404);
    wait_until_empty(&server);
}
