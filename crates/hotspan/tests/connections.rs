//! Connections that say nothing: given up while the server runs, and no hindrance when it ends.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use support::{Server, now_nanos, request, trace_request, wait_for_end};
use tonic::Code;
use tonic::transport::Endpoint;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame of HTTP/2 by which a client tells its settings: none.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const PING: u8 = 6;
const ACKNOWLEDGED: u8 = 1;

/// What a client may send that is no whole request.
fn no_requests() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nothing", Vec::new()),
        ("half a head", b"POST /v1/traces HTTP/1.1\r\nhost: x".to_vec()),
        ("half a preface", b"PRI * HTTP/2".to_vec()),
        ("a preface without settings", PREFACE.to_vec()),
        ("a peer that never answers", [PREFACE, SETTINGS].concat()),
        ("half a frame", [PREFACE, SETTINGS, &[0, 0, 9, 1, 4, 0]].concat()),
    ]
}

fn connect(address: &str, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(sent).unwrap();
    stream
}

/// Asks over a connection that is there already, and reads the answer, which has a length.
fn ask_over(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /ready HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = [0; 1 << 10];
    let length = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// Answers so many of the server's pings.
fn answer_pings(stream: &mut TcpStream, mut pings: usize) {
    while pings > 0 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut content = vec![0; length];
        stream.read_exact(&mut content).unwrap();
        if head[3] == PING && head[4] & ACKNOWLEDGED == 0 {
            head[4] |= ACKNOWLEDGED;
            stream.write_all(&head).unwrap();
            stream.write_all(&content).unwrap();
            pings -= 1;
        }
    }
}

/// Scenario: clients that fall silent before a whole request has come; others that are silent between requests, one by HTTP/1
/// and one by HTTP/2 that answers pings.
/// Guarantee: connections of the first are closed, those of the others stay.
#[test]
fn silence_in_a_head_is_not_waited_for() {
    let (_store, server) = Server::configured("limits.max_idle = \"1s\"\n");
    let mut kept = connect(&server.http, b"");
    assert!(ask_over(&mut kept).starts_with("HTTP/1.1 200"));
    let mut idle = connect(&server.http, &[PREFACE, SETTINGS].concat());
    let idle = thread::spawn(move || answer_pings(&mut idle, 8));
    let began = Instant::now();
    let silent: Vec<_> = no_requests().into_iter().map(|(name, sent)| (name, connect(&server.http, &sent))).collect();
    for (name, mut stream) in silent {
        let mut rest = Vec::new();
        assert!(stream.read_to_end(&mut rest).is_ok(), "{name} is still waited for");
        assert!(began.elapsed() > Duration::from_millis(900), "{name} had too little time");
    }
    // A peer that does not answer is given up after a second and five; this one has answered for longer.
    idle.join().unwrap();
    assert!(began.elapsed() > Duration::from_secs(7), "{:?}", began.elapsed());
    assert!(ask_over(&mut kept).starts_with("HTTP/1.1 200"));
}

/// A server that logs into a pipe, its address, and the store, which is gone with the folder.
struct Logging {
    _store: tempfile::TempDir,
    server: std::process::Child,
    address: String,
}

impl Logging {
    fn start(config: &str) -> Self {
        let store = tempfile::tempdir().unwrap();
        std::fs::write(store.path().join("hotspan.toml"), config).unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_hotspan"))
            .current_dir(store.path())
            .args(["serve", "--store", "data", "--http", "127.0.0.1:0", "--self-tracing", "false"])
            .args(["--otlp-grpc", "off", "--otlp-http", "off", "--tempo", "off"])
            .env("HOTSPAN_LOG_LEVEL", "warn")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http ").unwrap().to_owned();
        while !ask_over(&mut connect(&address, b"")).starts_with("HTTP/1.1 200") {
            thread::sleep(Duration::from_millis(10));
        }
        Self { _store: store, server, address }
    }

    /// Tells the server to end.
    fn stop(&self) {
        assert!(Command::new("kill").args(["-TERM", &self.server.id().to_string()]).status().unwrap().success());
    }

    /// Waits for its end, and gives what it logged.
    fn log(mut self) -> String {
        assert!(wait_for_end(&mut self.server).success());
        let mut log = String::new();
        self.server.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }
}

/// Scenario: a server is told to end while clients have connections without a whole request.
/// Guarantee: it does not wait for them, and does not say that it cut off requests.
#[test]
fn no_request_is_not_waited_for() {
    let server = Logging::start("shutdown_grace = \"30s\"\n");
    let mut kept = connect(&server.address, b"");
    assert!(ask_over(&mut kept).starts_with("HTTP/1.1 200"));
    let silent: Vec<TcpStream> = no_requests().into_iter().map(|(_, sent)| connect(&server.address, &sent)).collect();
    // Whoever asks after them is answered once they are read.
    assert!(ask_over(&mut connect(&server.address, b"")).starts_with("HTTP/1.1 200"));
    server.stop();
    let began = Instant::now();
    let log = server.log();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!log.contains("cut off"), "{log}");
    drop(silent);
}

/// Scenario: a server is told to end while two bodies are half sent; the rest of one comes a while later, that of the other never.
/// Guarantee: the first is answered; the second is waited for as long as was said, and then told of.
#[test]
fn requests_under_way_are_waited_for() {
    let server = Logging::start("shutdown_grace = \"4s\"\n");
    let half =
        b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 8\r\n\r\nhalf";
    let (mut late, silent) = (connect(&server.address, half), connect(&server.address, half));
    // Whoever asks after them is answered once their requests are under way.
    assert!(ask_over(&mut connect(&server.address, b"")).starts_with("HTTP/1.1 200"));
    server.stop();
    let began = Instant::now();
    thread::sleep(Duration::from_millis(2500));
    late.write_all(b"half").unwrap();
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{answer:?}");
    let log = server.log();
    let waited = began.elapsed();
    assert!(Duration::from_secs(4) <= waited && waited < Duration::from_secs(14), "{waited:?}");
    assert!(log.contains("some requests did not finish in time and were cut off"), "{log}");
    drop(silent);
}

/// Scenario: a server is told to end while a body is half sent. Meanwhile others send and ask: over new connections, over one
/// of HTTP/1 that was kept and one of gRPC that was open.
/// Guarantee: each is told to come back, in the words of its protocol, and the log tells it once; the body is stored when its
/// rest comes, and then the server ends.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_during_a_stop_is_told_to_come_back() {
    let server = Logging::start("shutdown_grace = \"30s\"\n");
    let now = now_nanos();
    let span = Span { trace_id: vec![1; 16], span_id: vec![2; 8], start_time_unix_nano: now, ..Span::default() };
    let export = trace_request("shop", vec![span]);
    let body = export.encode_to_vec();
    let protobuf = ("content-type", "application/x-protobuf");
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\n{}: {}\r\ncontent-length: {}\r\n\r\n",
        protobuf.0,
        protobuf.1,
        body.len()
    );
    let (first, rest) = body.split_at(body.len() / 2);
    let mut late = connect(&server.address, &[head.as_bytes(), first].concat());
    let mut kept = connect(&server.address, b"");
    assert!(ask_over(&mut kept).starts_with("HTTP/1.1 200"));
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let open = endpoint.connect().await.unwrap();
    TraceServiceClient::new(open.clone()).export(export.clone()).await.unwrap();
    server.stop();
    while ask_over(&mut connect(&server.address, b"")).starts_with("HTTP/1.1 200") {
        thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..2 {
        let refusal = ask_over(&mut kept);
        assert!(refusal.starts_with("HTTP/1.1 503") && refusal.contains("stopping"), "{refusal}");
        let refusal = request(&server.address, "POST", "/v1/traces", &[protobuf], &body).unwrap();
        assert_eq!(refusal.status, 503, "{}", refusal.text());
        assert!(refusal.headers.to_ascii_lowercase().contains("retry-after: 1"), "{}", refusal.headers);
        for channel in [open.clone(), endpoint.connect().await.unwrap()] {
            let refusal = TraceServiceClient::new(channel).export(export.clone()).await.unwrap_err();
            assert_eq!(refusal.code(), Code::Unavailable, "{refusal}");
            let details = String::from_utf8_lossy(refusal.details()).into_owned();
            assert!(details.contains("google.rpc.RetryInfo"), "{details}");
        }
    }
    late.write_all(rest).unwrap();
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let log = server.log();
    assert!(!log.contains("cut off"), "{log}");
    assert_eq!(log.matches("requests refused").count(), 1, "{log}");
}
