//! The server's own requests and CPU time, in its own store.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::{Duration, Instant};

use support::{Server, request};

const WAIT: Duration = Duration::from_secs(40);

/// The spans of the server itself that a search finds.
fn own_requests(server: &Server, query: &str) -> Vec<serde_json::Value> {
    let path = format!("/api/search?limit=100&q={query}");
    server.get_json(&path)["traces"].as_array().cloned().unwrap_or_default()
}

fn counter(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").unwrap().text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("hotspan_{name}_total ")));
    line.unwrap_or("0").parse().unwrap()
}

/// Scenario: a new server is asked a question by a caller that traces, and then looked at as a newcomer would.
/// Guarantee: the request is a trace of service `hotspan` under its caller, and CPU profiles of the service come too.
#[test]
fn a_new_server_shows_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--self-tracing", "true"]);
    server.wait_ready();
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = request(&server.http, "GET", "/api/v1/status", &[("traceparent", traceparent)], &[]).unwrap();
    assert_eq!(asked.status, 200);
    let deadline = Instant::now() + WAIT;
    let trace = loop {
        let answer = server.get("/api/traces/0af7651916cd43dd8448eb211c80319c").unwrap();
        if answer.status == 200 {
            break answer.text();
        }
        assert!(Instant::now() < deadline, "the request is not there: {}", answer.text());
        std::thread::sleep(Duration::from_millis(100));
    };
    for part in ["GET /api/v1/status", "http.response.status_code", "hotspan"] {
        assert!(trace.contains(part), "{part} is missing in {trace}");
    }
    // Questions cost CPU, so that there is something to sample.
    let deadline = Instant::now() + WAIT;
    loop {
        (0..20).for_each(|_| drop(own_requests(&server, "%7Bresource.service.name%3D%22hotspan%22%7D")));
        let profile = server.get_json("/api/v1/profile?service=hotspan&type=cpu");
        if profile["flamebearer"]["numTicks"].as_i64().unwrap_or(0) > 0 {
            break;
        }
        assert!(Instant::now() < deadline, "no profile of the server: {profile}");
    }
}

/// Scenario: a server that traces itself is left alone, but for a scraper of metrics; then it is asked too much.
/// Guarantee: its own data makes no more of it (no loop), and requests beyond the limit are counted, not traced.
#[test]
fn the_server_does_not_feed_on_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--self-tracing", "true"]);
    server.wait_ready();
    let stored_spans = |server: &Server| counter(server, "ingest_spans");
    server.get("/api/v1/status").unwrap();
    let deadline = Instant::now() + WAIT;
    while stored_spans(&server) == 0 {
        assert!(Instant::now() < deadline, "the request is not stored");
        std::thread::sleep(Duration::from_millis(100));
    }
    let before = stored_spans(&server);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(stored_spans(&server), before, "idle servers must not trace themselves");
    for _ in 0..120 {
        server.get("/api/v1/status").unwrap();
    }
    let untraced = counter(&server, "self_tracing_untraced_requests");
    let dropped = counter(&server, "self_tracing_dropped");
    let deadline = Instant::now() + WAIT;
    while stored_spans(&server) < before + 120 - untraced {
        assert!(Instant::now() < deadline, "{} of {}", stored_spans(&server), before + 120 - untraced);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!((stored_spans(&server), dropped), (before + 120 - untraced, 0));
}

/// Scenario: the same with self-tracing turned off.
/// Guarantee: nothing is stored.
#[test]
fn it_can_be_turned_off() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--self-tracing", "false"]);
    server.wait_ready();
    server.get("/api/v1/status").unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(counter(&server, "ingest_spans"), 0);
    assert!(!server.get("/metrics").unwrap().text().contains("self_tracing"));
}
