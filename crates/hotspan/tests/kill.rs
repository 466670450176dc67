//! R1 under fire: the server is killed at random moments, again and again, while numbered data comes in.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    Spans,
    Samples,
}

/// Two spans, or a profile of two samples, with the numbers `first` and `first + 1`.
struct Numbered {
    signal: Signal,
    first: u64,
    body: Vec<u8>,
    /// It was sent, and nobody answered: it may be stored or not.
    was_cut_off: bool,
}

impl Numbered {
    /// The name of a span tells its number; the value of a sample is one more than its number.
    fn pair(first: u64) -> [Self; 2] {
        let now = now_nanos();
        let numbers = [first, first + 1];
        let spans = numbers.map(|number| Span {
            trace_id: trace_id(number).to_vec(),
            span_id: (number + 1).to_be_bytes().to_vec(),
            name: number.to_string(),
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
        let spans = trace_request("numbered", spans.to_vec()).encode_to_vec();
        let samples = profile_request("numbered", trace_id(first), &samples).encode_to_vec();
        [(Signal::Spans, spans), (Signal::Samples, samples)].map(|(signal, body)| Self {
            signal,
            first,
            body,
            was_cut_off: false,
        })
    }

    /// Whether it was acknowledged; an error if nobody answered.
    fn send(&self, address: &str) -> io::Result<bool> {
        let path = match self.signal {
            Signal::Spans => "/v1/traces",
            Signal::Samples => "/v1/profiles",
        };
        let headers = [("content-type", "application/x-protobuf")];
        Ok(request(address, "POST", path, &headers, &self.body)?.status == 200)
    }

    fn numbers(&self) -> [(Signal, u64); 2] {
        [(self.signal, self.first), (self.signal, self.first + 1)]
    }
}

/// What senders know.
#[derive(Default)]
struct Ledger {
    next: u64,
    /// To be sent, or sent without an answer: until there is one, it is sent again.
    open: VecDeque<Numbered>,
    /// Numbers whose request was acknowledged, spans and samples apart.
    acknowledged: BTreeSet<(Signal, u64)>,
    /// First numbers of requests whose sender gave up when nobody answered.
    given_up: BTreeSet<(Signal, u64)>,
    /// How many requests that were cut off were acknowledged when they were sent again.
    acknowledged_again: usize,
}

impl Ledger {
    fn take(&mut self) -> Numbered {
        if self.open.is_empty() {
            self.open.extend(Numbered::pair(self.next));
            self.next += 2;
        }
        self.open.pop_front().unwrap()
    }

    fn note(&mut self, mut sent: Numbered, answer: &io::Result<bool>) {
        match answer {
            Ok(true) => {
                self.acknowledged.extend(sent.numbers());
                self.acknowledged_again += usize::from(sent.was_cut_off);
            }
            Ok(false) => self.open.push_back(sent),
            Err(_) if sent.first.is_multiple_of(8) && !sent.was_cut_off => {
                self.given_up.insert((sent.signal, sent.first));
            }
            Err(_) => {
                sent.was_cut_off = true;
                self.open.push_back(sent);
            }
        }
    }
}

fn send_until_killed(address: &str, ledger: &Mutex<Ledger>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let numbered = ledger.lock().unwrap().take();
        let answer = numbered.send(address);
        ledger.lock().unwrap().note(numbered, &answer);
        if !matches!(answer, Ok(true)) {
            // The server is starting, or gone.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// How often each number is stored.
fn stored(server: &Server, signal: Signal) -> BTreeMap<u64, u64> {
    let query = match signal {
        Signal::Spans => "SELECT CAST(name AS BIGINT) AS number, count(*) AS count FROM spans GROUP BY name",
        Signal::Samples => "SELECT value - 1 AS number, count(*) AS count FROM samples GROUP BY value",
    };
    let answer = server.post_json("/api/v1/sql", &json!({ "query": query }));
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["number"].as_u64().unwrap(), row["count"].as_u64().unwrap())).collect()
}

/// Scenario: two senders, and a server that is killed at random moments of ingest, compaction and start. What was not answered
/// is sent again to the next server, until it is; some is given up.
/// Guarantee: every acknowledged request is there afterwards, exactly once, also where it had come before without an answer;
/// what was given up is there once and whole, or not at all; and sums over the service agree with the samples.
#[test]
fn acknowledged_data_survives_kills() {
    let kills = std::env::var("HOTSPAN_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let store = tempfile::tempdir().unwrap();
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut chance: u64 = 0x9e37_79b9_7f4a_7c15;
    for life in 0..kills {
        // Compaction runs as fast as it can, so that kills hit it too.
        let mut server = Server::start_with(store.path(), &["--flush-interval", "20ms", "--compact-after", "100ms"]);
        let stop = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (address, ledger, stop) = (server.http.clone(), Arc::clone(&ledger), Arc::clone(&stop));
                std::thread::spawn(move || send_until_killed(&address, &ledger, &stop))
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
    let mut ledger = ledger.lock().unwrap();
    while let Some(numbered) = ledger.open.pop_front() {
        let answer = numbered.send(&server.http);
        assert!(matches!(answer, Ok(true)), "a server at rest does not take {}: {answer:?}", numbered.first);
        ledger.note(numbered, &answer);
    }
    let (acknowledged, given_up) = (&ledger.acknowledged, &ledger.given_up);
    assert!(acknowledged.len() > kills, "only {} items were acknowledged", acknowledged.len());
    assert!(ledger.acknowledged_again > kills / 10, "only {} requests were sent again", ledger.acknowledged_again);

    for signal in [Signal::Spans, Signal::Samples] {
        let stored = stored(&server, signal);
        for (number, count) in &stored {
            assert_eq!(*count, 1, "{signal:?} {number}");
            let expected =
                acknowledged.contains(&(signal, *number)) || given_up.contains(&(signal, number - number % 2));
            assert!(expected, "{signal:?} {number} was never sent");
            assert!(stored.contains_key(&(number ^ 1)), "{signal:?} {number} is half of a request");
        }
        for (_, number) in acknowledged.iter().filter(|(other, _)| *other == signal) {
            assert!(stored.contains_key(number), "{signal:?} {number} is lost");
        }
    }
    for (signal, number) in acknowledged {
        let id = hex(&trace_id(*number));
        match signal {
            Signal::Spans => {
                let trace = server.get_json(&format!("/api/traces/{id}"));
                let spans: usize = trace["batches"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .flat_map(|batch| batch["scopeSpans"].as_array().unwrap())
                    .map(|scope| scope["spans"].as_array().unwrap().len())
                    .sum();
                assert_eq!(spans, 1, "span {number}");
            }
            Signal::Samples => {
                let flame = server.get_json(&format!("/api/v1/profile?trace_id={id}"));
                assert_eq!(flame["flamebearer"]["numTicks"], number + 1, "sample {number}");
            }
        }
    }
    // Sums by window and by hour were made, and made anew, while the server was killed.
    let total: u64 = stored(&server, Signal::Samples).keys().map(|number| number + 1).sum();
    for table in ["rollup_15s", "rollup_1h"] {
        let query = format!("SELECT sum(value) AS total FROM {table}");
        let answer = server.post_json("/api/v1/sql", &json!({ "query": query }));
        assert_eq!(answer["rows"], json!([{ "total": total }]), "{table}");
    }
    let flame = server.get_json("/api/v1/profile?app=numbered&from=now-12h&until=now%2B1h");
    assert_eq!(flame["flamebearer"]["numTicks"], total);
}
