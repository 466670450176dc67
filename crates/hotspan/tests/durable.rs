//! R1 as the system sees it: what a server asks of the disk, in which order, before it acknowledges a request.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, now_nanos, trace_request};

/// One call of the system: its text without the number of the thread, and the lines where it starts and where it is done.
#[derive(Debug)]
struct Call {
    text: String,
    start: usize,
    end: usize,
}

/// The calls that `strace -f` noted. One that another thread's came between stands in two lines.
fn calls(noted: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut unfinished: HashMap<&str, usize> = HashMap::new();
    for (line, text) in noted.lines().enumerate() {
        let Some((thread, text)) = text.split_once(' ') else { continue };
        let text = text.trim_start();
        if let Some(begun) = text.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, calls.len());
            calls.push(Call { text: begun.to_owned(), start: line, end: usize::MAX });
        } else if text.starts_with("<... ") {
            if let Some(call) = unfinished.remove(thread) {
                calls[call].end = line;
            }
        } else {
            calls.push(Call { text: text.to_owned(), start: line, end: line });
        }
    }
    calls
}

/// Spans with names of about so many bytes that do not compress.
fn request_of(number: u8, bytes: usize) -> Vec<u8> {
    let mut chance = u64::from(number) + 1;
    let now = now_nanos();
    let span = |span: usize| {
        let mut name = String::new();
        while name.len() < 1600 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            name.push_str(&format!("{chance:016x}"));
        }
        Span {
            trace_id: vec![number + 1; 16],
            span_id: (span as u64 + 1).to_be_bytes().to_vec(),
            name,
            start_time_unix_nano: now,
            end_time_unix_nano: now + 1000,
            ..Span::default()
        }
    };
    trace_request("shop", (0..1 + bytes / 1600).map(span).collect()).encode_to_vec()
}

/// A server of which `strace` notes what it asks of files and connections; none if this machine has no such thing.
fn traced(store: &Path, notes: &Path) -> Option<Server> {
    let notes = notes.to_str().unwrap();
    let wanted = "trace=write,pwrite64,fdatasync,fsync,rename,renameat,renameat2,sendto,sendmsg,writev";
    // With -D the server is the process that was started, and strace another one.
    let arguments = ["-D", "-f", "-y", "-qq", "-s", "16", "-e", wanted, "-o", notes];
    let probe = Command::new("strace").args(arguments).arg("true").output();
    probe.is_ok_and(|probe| probe.status.success()).then(|| Server::start_inside("strace", &arguments, store, &[]))
}

/// Scenario: a small request, and a large one whose segment is written past the page cache.
/// Guarantee: the segment is written, then synced, then named, then its folder is synced; then the catalog's log is written,
/// and synced; and only then is the request acknowledged.
#[test]
fn everything_is_synced_before_the_acknowledgement() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("calls");
    let Some(mut server) = traced(&folder.path().join("store"), &notes) else {
        // Said past the capture of output: a test that did not run must not look like one that passed.
        let notice = "NOT TESTED: what is synced before an acknowledgement; there is no strace that works\n";
        return std::io::Write::write_all(&mut std::io::stderr(), notice.as_bytes()).unwrap();
    };
    server.wait_ready();
    let sizes = [10, 1 << 20];
    for (number, bytes) in sizes.into_iter().enumerate() {
        let body = request_of(number as u8, bytes);
        let answer = server.post("/v1/traces", "application/x-protobuf", &body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    server.terminate();

    let deadline = Instant::now() + Duration::from_secs(20);
    let (noted, segments) = loop {
        let noted = std::fs::read_to_string(&notes).unwrap();
        let named = |call: &&Call| call.text.starts_with("rename") && call.text.contains(".seg\"");
        let segments: Vec<(usize, usize)> =
            calls(&noted).iter().filter(named).map(|call| (call.start, call.end)).collect();
        // The notes come from another process, which may still be writing them.
        if segments.len() >= sizes.len() {
            break (noted, segments);
        }
        assert!(Instant::now() < deadline, "{} segments got their names:\n{noted}", segments.len());
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(segments.len(), sizes.len());
    let calls = calls(&noted);
    let mut answered_before = 0;
    for (named, named_at) in segments {
        let between =
            |first: usize, last: usize| calls.iter().filter(move |call| call.start > first && call.start < last);
        let is_write = |call: &&Call| call.text.starts_with("write(") || call.text.starts_with("pwrite64(");
        let is_sync = |call: &&Call| call.text.starts_with("fdatasync(") || call.text.starts_with("fsync(");
        let last_end = |found: Option<&Call>, what: &str| found.map(|call| call.end).expect(what);

        let of_segment = |call: &&Call| call.text.contains(".seg.") && call.text.contains(".unfinished>");
        let mine = || between(answered_before, named).filter(of_segment);
        let written = last_end(mine().rfind(is_write), "the segment is written");
        let synced = mine().find(|call| is_sync(call) && call.start > written).map(|call| call.end);
        assert!(synced.is_some_and(|synced| synced < named), "the segment has its name before it is synced");

        let is_answer = |call: &&Call| call.start > named_at && call.text.contains("\"HTTP/1.1 200 OK");
        let answered = calls.iter().find(is_answer).expect("it is acknowledged").start;
        let folder = between(named_at, answered).find(|call| is_sync(call) && call.text.contains("/l0>"));
        let folder = last_end(folder, "the folder of the segment is synced");
        let of_log = |call: &&Call| call.text.contains("/catalog.sqlite-wal>");
        let log = || between(folder, answered).filter(of_log);
        let logged = last_end(log().rfind(is_write), "the commit is written after the segment");
        let durable = log().find(|call| is_sync(call) && call.start > logged).map(|call| call.end);
        assert!(durable.is_some_and(|durable| durable < answered), "it is acknowledged before the commit is synced");
        answered_before = answered;
    }
}
