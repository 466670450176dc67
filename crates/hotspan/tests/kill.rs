//! R1 under fire: the server is killed at random moments, again and again, while numbered data comes in.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, TestSample, now_nanos, profile_request, request, trace_request};

/// How often the server is killed. `HOTSPAN_KILLS` asks for another number.
const KILLS: usize = 200;

fn trace_id(number: u64) -> [u8; 16] {
    let mut id = [0xa5; 16];
    id[8..].copy_from_slice(&number.to_be_bytes());
    id
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends spans and samples, two of each a request, numbered from `next` on, until the server is gone.
fn send_until_killed(address: &str, next: &Mutex<u64>, acknowledged: &Mutex<BTreeSet<u64>>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let first = {
            let mut next = next.lock().unwrap();
            *next += 2;
            *next - 2
        };
        let now = now_nanos();
        let numbers = [first, first + 1];
        let spans = numbers.map(|number| Span {
            trace_id: trace_id(number).to_vec(),
            span_id: (number + 1).to_be_bytes().to_vec(),
            name: format!("operation {number}"),
            start_time_unix_nano: now,
            end_time_unix_nano: now + 1000,
            ..Span::default()
        });
        let samples = numbers.map(|number| TestSample {
            stack: &["main", "work"],
            value: number as i64 + 1,
            time: now,
            trace_id: trace_id(number),
            span_id: (number + 1).to_be_bytes(),
        });
        let traces = trace_request("numbered", spans.to_vec()).encode_to_vec();
        let profiles = profile_request("numbered", trace_id(first), &samples).encode_to_vec();
        let send = |path: &str, body: &[u8]| {
            let headers = [("content-type", "application/x-protobuf")];
            request(address, "POST", path, &headers, body).is_ok_and(|answer| answer.status == 200)
        };
        if send("/v1/traces", &traces) && send("/v1/profiles", &profiles) {
            acknowledged.lock().unwrap().extend(numbers);
        }
    }
}

/// Scenario: two senders, and a server that is killed at random moments of ingest, compaction and start.
/// Guarantee: every acknowledged span and sample is there afterwards, exactly once.
#[test]
fn acknowledged_data_survives_kills() {
    let kills = std::env::var("HOTSPAN_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let store = tempfile::tempdir().unwrap();
    let next = Arc::new(Mutex::new(0u64));
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let mut chance: u64 = 0x9e37_79b9_7f4a_7c15;
    for life in 0..kills {
        // Compaction runs as fast as it can, so that kills hit it too.
        let mut server = Server::start_with(store.path(), &["--flush-interval", "20ms", "--compact-after", "100ms"]);
        let stop = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (address, next) = (server.http.clone(), Arc::clone(&next));
                let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
                std::thread::spawn(move || send_until_killed(&address, &next, &acknowledged, &stop))
            })
            .collect();
        // Half of the kills may hit a server that is still starting, however slow the machine; the others hit one at work.
        if life % 2 == 1 {
            server.wait_ready();
        }
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(30 + (chance >> 33) % 250));
        server.kill();
        stop.store(true, Ordering::Relaxed);
        for sender in senders {
            sender.join().unwrap();
        }
    }
    let server = Server::start(store.path());
    server.wait_ready();
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.len() > kills, "only {} items were acknowledged", acknowledged.len());
    for number in acknowledged.iter() {
        let id = hex(&trace_id(*number));
        let trace = server.get_json(&format!("/api/traces/{id}"));
        let spans: usize = trace["batches"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|batch| batch["scopeSpans"].as_array().unwrap())
            .map(|scope| scope["spans"].as_array().unwrap().len())
            .sum();
        assert_eq!(spans, 1, "span {number}");
        let flame = server.get_json(&format!("/api/v1/profile?trace_id={id}"));
        assert_eq!(flame["flamebearer"]["numTicks"], number + 1, "sample {number}");
    }
    // Everything that was sent is either whole or absent: the sum over the service has no half requests.
    let status = server.get_json("/api/v1/status");
    assert_eq!(status["ready"], true);
}
