//! No space left: a real file system that is full, and then is not.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, now_nanos, text_attribute, trace_request};

/// Spans with much text that does not compress, numbered by their trace id.
fn request_of(number: u64) -> Vec<u8> {
    let mut chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = || {
        let mut word = String::new();
        for _ in 0..2000 {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            word.push_str(&format!("{chance:016x}"));
        }
        word
    };
    let now = now_nanos();
    let span = Span {
        trace_id: trace_id(number),
        span_id: vec![1; 8],
        name: "operation".to_owned(),
        start_time_unix_nano: now,
        end_time_unix_nano: now + 1000,
        attributes: vec![text_attribute("noise", &text())],
        ..Span::default()
    };
    trace_request("numbered", vec![span]).encode_to_vec()
}

fn trace_id(number: u64) -> Vec<u8> {
    [[0xa5; 8], number.to_be_bytes()].concat()
}

/// Scenario: a small file system that fills up under the server, until a large file on it is deleted.
/// Guarantee: when it is full, requests are refused with a retryable answer that says why, and what was acknowledged is
/// still read; when there is room, requests are taken again, and nothing acknowledged is lost.
#[test]
fn a_full_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut server) = Server::start_on_small_disk(folder.path(), 10, 4) else {
        // Mounting needs a kernel that lets users do it in a namespace of their own. Said past the capture of output, since
        // a test that did not run must not look like one that passed.
        let notice = "NOT TESTED: a full file system; this machine does not allow mounts in a namespace\n";
        std::io::Write::write_all(&mut std::io::stderr(), notice.as_bytes()).unwrap();
        assert!(std::env::var_os("CI").is_none(), "{notice}");
        return;
    };
    server.wait_ready();
    let send =
        |server: &Server, number| server.post("/v1/traces", "application/x-protobuf", &request_of(number)).unwrap();
    let mut acknowledged = Vec::new();
    let mut next = 0;
    let refused = loop {
        let answer = send(&server, next);
        match answer.status {
            200 => acknowledged.push(next),
            _ => break answer,
        }
        next += 1;
        assert!(next < 2000, "the file system never fills up");
    };
    assert!(acknowledged.len() > 20, "only {} fitted", acknowledged.len());
    assert_eq!(refused.status, 503, "{}", refused.text());
    let text = refused.text().to_lowercase();
    assert!(text.contains("no space left") || text.contains("disk is full"), "{text}");
    assert_eq!(server.get("/healthz").unwrap().status, 200);
    check(&server, &acknowledged);

    std::fs::remove_file(server.on_small_disk("ballast")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let after = next + 1;
    while send(&server, after).status != 200 {
        assert!(Instant::now() < deadline, "requests are still refused though there is room");
        std::thread::sleep(Duration::from_millis(100));
    }
    acknowledged.push(after);
    check(&server, &acknowledged);
    server.terminate();
}

fn check(server: &Server, numbers: &[u64]) {
    for number in numbers {
        let id: String = trace_id(*number).iter().map(|byte| format!("{byte:02x}")).collect();
        let trace = server.get_json(&format!("/api/traces/{id}"));
        assert_eq!(trace["batches"].as_array().unwrap().len(), 1, "span {number}");
    }
}

impl Server {
    /// Starts a server whose store lies on a file system of its own with so many megabytes, of which a file takes some.
    /// None if this machine does not allow that.
    fn start_on_small_disk(folder: &Path, megabytes: u32, ballast: u32) -> Option<Self> {
        let script = format!(
            "mount -t tmpfs -o size={megabytes}m none '{0}' && head -c {ballast}M /dev/zero > '{0}/ballast' && exec \"$@\"",
            folder.display()
        );
        let inside = ["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"];
        let probe = ["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh", "true"];
        let allowed = std::process::Command::new("unshare").args(probe).output().ok()?.status.success();
        allowed.then(|| Self::start_inside("unshare", &inside, &folder.join("store"), &["--flush-interval", "10ms"]))
    }

    /// A path on the file system that only the server sees.
    fn on_small_disk(&self, name: &str) -> PathBuf {
        let store = PathBuf::from(self.get_json("/api/v1/status")["store"]["path"].as_str().unwrap());
        let inside = store.parent().unwrap().join(name);
        Path::new(&format!("/proc/{}/root", self.pid())).join(inside.strip_prefix("/").unwrap())
    }
}
