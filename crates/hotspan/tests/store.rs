//! A store as its operator meets it: how fast it opens, what is in it, and whether it is sound.

// Helpers of a test may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, TestSample, now_nanos, profile_request, trace_request, wait_for_end};

const PROTOBUF: &str = "application/x-protobuf";

fn store_command(command: &str, store: &Path, arguments: &[&str]) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    process.args(["store", command, "--store"]).arg(store).args(arguments);
    let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What it says fits into a pipe.
    wait_for_end(&mut child);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// Sends numbered traces and profiles, one of each a round; every request becomes a segment of its own.
fn fill(server: &Server, rounds: std::ops::Range<u8>) {
    for number in rounds {
        let now = now_nanos();
        let (trace_id, span_id) = ([number + 1; 16], [number + 1; 8]);
        let span = Span {
            trace_id: trace_id.to_vec(),
            span_id: span_id.to_vec(),
            name: format!("operation {number}"),
            start_time_unix_nano: now,
            end_time_unix_nano: now + 1000,
            ..Span::default()
        };
        let traces = trace_request("shop", vec![span]).encode_to_vec();
        assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
        let function = format!("work {number}");
        let stack = ["main", function.as_str()];
        let sample = TestSample { stack: &stack, value: 5, time: now, trace_id, span_id };
        let profiles = profile_request("shop", trace_id, &[sample]).encode_to_vec();
        assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles).unwrap().status, 200);
    }
}

/// A store with compacted files, their id indexes, and young segments.
fn mixed_store() -> tempfile::TempDir {
    let store = tempfile::tempdir().unwrap();
    let quick = ["--flush-interval", "1ms", "--compact-after", "50ms"];
    let mut server = Server::start_with(store.path(), &quick);
    server.wait_ready();
    fill(&server, 0..4);
    let deadline = Instant::now() + Duration::from_secs(30);
    while files(store.path(), ".ids").len() < 2 {
        assert!(Instant::now() < deadline, "nothing was compacted");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.terminate().success());
    let mut server = Server::start_with(store.path(), &["--flush-interval", "1ms", "--compact-after", "1h"]);
    server.wait_ready();
    fill(&server, 4..6);
    assert!(server.terminate().success());
    store
}

/// Objects of the store whose name ends like this.
fn files(store: &Path, ending: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![store.join("data")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Scenario: a server starts on a store with some hundred young segments.
/// Guarantee: it is ready in well under a second (the aim is 0.3 s; the bound leaves room for a busy machine).
#[test]
fn ready_soon_on_an_existing_store() {
    let store = tempfile::tempdir().unwrap();
    let slow_to_compact = ["--flush-interval", "1ms", "--compact-after", "1h"];
    let mut server = Server::start_with(store.path(), &slow_to_compact);
    server.wait_ready();
    fill(&server, 0..50);
    assert!(server.terminate().success());
    let segments = json(&store_command("stats", store.path(), &["--json"]))["total"]["segments"].as_u64().unwrap();
    assert!(segments >= 200, "only {segments} segments");
    // The best of three, since the machine may be busy with other tests.
    let start_once = || {
        let started = Instant::now();
        let server = Server::start_with(store.path(), &slow_to_compact);
        server.wait_ready();
        started.elapsed()
    };
    let best = (0..3).map(|_| start_once()).min().unwrap();
    println!("ready {best:?} after the start on {segments} segments");
    assert!(best < Duration::from_secs(1), "ready only after {best:?}");
}

/// Scenario: a second server is started on the store of one that runs.
/// Guarantee: it says who holds the store, and has told nobody an address at which it never will answer.
#[test]
fn a_second_server_is_refused_before_it_listens() {
    let (store, server) = Server::fresh();
    let anywhere = "127.0.0.1:0";
    let second = Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args(["serve", "--http", anywhere, "--otlp-grpc", anywhere, "--otlp-http", anywhere, "--tempo", anywhere])
        .arg("--store")
        .arg(store.path())
        .env("HOTSPAN_LOG_LEVEL", "info")
        .output()
        .unwrap();
    let (said, complaint) = (text(&second.stdout), text(&second.stderr));
    assert!(
        !second.status.success() && complaint.contains(&format!("in use by process {}", server.pid())),
        "{complaint}"
    );
    assert!(said.is_empty() && !complaint.contains("listening"), "{said}{complaint}");
}

/// Scenario: a store with two levels, beside a running server and after it stopped.
/// Guarantee: stats answers in both cases; check answers when stopped, else it says whom to ask.
#[test]
fn a_sound_store_is_called_sound() {
    let store = mixed_store();
    let mut server = Server::start_with(store.path(), &["--compact-after", "1h"]);
    server.wait_ready();
    let beside = json(&store_command("stats", store.path(), &["--json"]));
    let refused = store_command("check", store.path(), &[]);
    assert_eq!(refused.status.code(), Some(1));
    let message = text(&refused.stderr);
    assert!(message.contains("in use by process") && message.contains("/api/v1/status"), "{message}");
    assert!(server.terminate().success());

    let after = json(&store_command("stats", store.path(), &["--json"]));
    assert_eq!(beside["levels"], after["levels"]);
    let rows_of = |table: &str| {
        let levels = after["levels"].as_array().unwrap().iter().filter(|level| level["table"] == table);
        levels.map(|level| level["rows"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((rows_of("spans"), rows_of("samples")), (6, 6), "{after:#}");
    let table = text(&store_command("stats", store.path(), &[]).stdout);
    assert!(table.lines().any(|line| line.starts_with("spans") && line.contains("L0")), "{table}");
    assert!(table.lines().any(|line| line.starts_with("total")), "{table}");

    let checked = store_command("check", store.path(), &[]);
    assert!(checked.status.success() && text(&checked.stdout).ends_with("sound\n"), "{}", text(&checked.stdout));
    let report = json(&store_command("check", store.path(), &["--json"]));
    assert_eq!(report["rows"], after["total"]["rows"], "{report:#}");
    assert_eq!((&report["sound"], &report["orphans"]), (&true.into(), &serde_json::json!([])));
}

/// Scenario: a store with young and compacted segments is merged for good, once beside a server and once alone, then again.
/// Guarantee: beside a server it is refused; alone, each table is a segment of the last level with the same rows, the
/// answers are the same, nothing that was replaced is left on disk, and there is nothing more to merge.
#[test]
fn a_store_is_merged_for_good() {
    let store = mixed_store();
    let mut server = Server::start_with(store.path(), &["--compact-after", "1h", "--self-tracing", "false"]);
    server.wait_ready();
    let ask = |server: &Server| {
        let trace = server.get("/api/traces/02020202020202020202020202020202").unwrap();
        let flame = server.get("/api/v1/profile?app=shop&format=collapsed").unwrap();
        (text(&trace.body), text(&flame.body))
    };
    let answers = ask(&server);
    assert!(answers.0.contains("operation 1") && answers.1.contains("work 1"), "{answers:?}");
    let refused = store_command("compact", store.path(), &[]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("in use by process"));
    assert!(server.terminate().success());

    let rows = |stats: &serde_json::Value| {
        let received = ["spans", "samples", "profiles"];
        received.map(|table| {
            let levels = stats["levels"].as_array().unwrap().iter().filter(|level| level["table"] == table);
            levels.map(|level| level["rows"].as_u64().unwrap()).sum::<u64>()
        })
    };
    let before = json(&store_command("stats", store.path(), &["--json"]));
    let after = json(&store_command("compact", store.path(), &["--json"]));
    assert_eq!(rows(&before), rows(&after));
    for level in after["levels"].as_array().unwrap() {
        // Two of a table if an hour began meanwhile.
        assert!(level["level"] == 3 && level["segments"].as_u64() <= Some(2), "{level}");
    }
    assert_eq!(after["removed_segments"], 0, "{after:#}");
    assert_eq!(files(store.path(), ".seg").len(), 0);
    let again = text(&store_command("compact", store.path(), &[]).stdout);
    assert!(again.contains("in 0 merges"), "{again}");
    assert!(text(&store_command("check", store.path(), &[]).stdout).ends_with("sound\n"));
    let server = Server::start_with(store.path(), &["--compact-after", "1h", "--self-tracing", "false"]);
    server.wait_ready();
    assert_eq!(ask(&server), answers);
}

/// Scenario: in an object of each kind, a byte at the start, in the middle or near the end is changed, or the
/// object is cut short or taken away. Guarantee: check names that object, and only that one, each time.
#[test]
fn damage_is_named() {
    let store = mixed_store();
    // One object of each kind: a young segment, a compacted one, an index of one kind of id and one of two.
    let kinds = ["seg", "parquet", "spans*ids", "samples*ids"];
    let live = kinds.map(|kind| {
        let (part, ending) = kind.split_once('*').unwrap_or(("", kind));
        let mut found = files(store.path(), ending).into_iter().rev();
        found.find(|path| path.to_string_lossy().contains(part) && is_live(store.path(), path)).unwrap()
    });
    let change = |at: usize, mut bytes: Vec<u8>| {
        bytes[at] ^= 0x10;
        Some(bytes)
    };
    for path in &live {
        let whole = std::fs::read(path).unwrap();
        let name = path.strip_prefix(store.path().join("data")).unwrap().to_string_lossy().into_owned();
        let changes = [
            change(0, whole.clone()),
            change(whole.len() / 2, whole.clone()),
            // Past the rows of a young segment lie its contents.
            change(whole.len().saturating_sub(30), whole.clone()),
            change(whole.len() - 1, whole.clone()),
            Some(whole[..whole.len() - 3].to_vec()),
            None,
        ];
        for (number, damaged) in changes.iter().enumerate() {
            match damaged {
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
            let output = store_command("check", store.path(), &["--json"]);
            assert_eq!(output.status.code(), Some(1), "change {number} of {name} went unnoticed");
            let report = json(&output);
            let damage = report["damage"].as_array().unwrap();
            assert!(!damage.is_empty() && damage.iter().all(|damage| damage["path"] == name), "{name}: {report:#}");
        }
        std::fs::write(path, whole).unwrap();
    }
    let orphan = store.path().join("data/anonymous/spans/orphan.parquet");
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::write(orphan, b"x").unwrap();
    let output = store_command("check", store.path(), &[]);
    assert!(output.status.success(), "an orphan does no harm: {}", text(&output.stdout));
    assert!(text(&output.stdout).contains("orphan   anonymous/spans/orphan.parquet"), "{}", text(&output.stdout));
}

/// Scenario: of a store, the index of a file of spans is gone and one of samples is cut short, so that a server can't answer questions
/// that read them; then it is repaired, twice.
/// Guarantee: a question that fails says why, in `hotspan.queries` too; check points at the repair; the repair builds the index again,
/// takes the samples out and says which are lost, and keeps the file; afterwards the store is sound, and everything is answered from
/// what is left. The second repair has nothing to do.
#[test]
fn a_damaged_store_is_mended() {
    let store = mixed_store();
    let live = |part: &str, ending: &str| {
        let mut found = files(store.path(), ending).into_iter().rev();
        found.find(|path| path.to_string_lossy().contains(part) && is_live(store.path(), path)).unwrap()
    };
    let (index, samples) = (live("/spans/", ".ids"), live("/samples/", ".parquet"));
    let whole = std::fs::read(&index).unwrap();
    std::fs::remove_file(&index).unwrap();
    std::fs::write(&samples, &std::fs::read(&samples).unwrap()[..100]).unwrap();
    let quiet = ["--compact-after", "1h", "--self-tracing", "false"];
    let count = "SELECT count(*) AS n FROM samples";
    let ask = |server: &Server, statement: &str| {
        let body = serde_json::json!({ "query": statement }).to_string();
        server.post("/api/v1/sql", "application/json", body.as_bytes()).unwrap()
    };

    let mut server = Server::start_with(store.path(), &quiet);
    server.wait_ready();
    let name = index.file_name().unwrap().to_string_lossy().into_owned();
    let trace = server.get("/api/traces/01010101010101010101010101010101").unwrap();
    assert_eq!((trace.status, trace.text().contains(&name)), (500, true), "{}", trace.text());
    assert_eq!(ask(&server, count).status, 500);
    let told =
        ask(&server, "SELECT error FROM hotspan.queries WHERE kind = '/api/traces/01010101010101010101010101010101'");
    assert!(told.text().contains(&name), "{}", told.text());
    assert!(server.terminate().success());

    let check = store_command("check", store.path(), &[]);
    assert!(text(&check.stderr).contains("damaged in 2 places; `hotspan store repair`"), "{}", text(&check.stderr));
    let repaired = store_command("repair", store.path(), &["--json"]);
    assert!(repaired.status.success(), "{}", text(&repaired.stderr));
    let report = json(&repaired);
    let inside = |path: &Path| path.strip_prefix(store.path().join("data")).unwrap().to_string_lossy().into_owned();
    assert_eq!(report["rebuilt"], serde_json::json!([inside(&index)]));
    assert_eq!(std::fs::read(&index).unwrap(), whole);
    assert_eq!(
        (&report["removed"][0]["path"], &report["removed"][1]),
        (&inside(&samples).into(), &serde_json::Value::Null)
    );
    assert!(
        report["removed"][0]["rows"].as_u64().unwrap() > 0 && report["removed"][0]["table"] == "samples",
        "{report}"
    );
    assert_eq!(std::fs::read(store.path().join("damaged").join(inside(&samples))).unwrap().len(), 100);
    let again = store_command("repair", store.path(), &[]);
    assert_eq!((again.status.code(), text(&again.stdout).as_str()), (Some(0), "sound; nothing to mend\n"));
    assert!(text(&store_command("check", store.path(), &[]).stdout).ends_with("sound\n"));

    let server = Server::start_with(store.path(), &quiet);
    server.wait_ready();
    assert_eq!(server.get("/api/traces/01010101010101010101010101010101").unwrap().status, 200);
    assert_eq!(ask(&server, count).status, 200);
}

/// Scenario: a catalog that is no database, and a store's folder that is a file.
/// Guarantee: each is refused with what is wrong and what to do; a repair changes nothing.
#[test]
fn a_store_that_can_not_be_opened_says_why() {
    let store = mixed_store();
    let catalog = store.path().join("catalog.sqlite");
    std::fs::write(
        &catalog,
        b"no database at all, but long enough for the head of one: it would be a hundred bytes or more ....",
    )
    .unwrap();
    for command in ["check", "repair", "compact"] {
        let refused = store_command(command, store.path(), &[]);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(
            told.contains("catalog.sqlite can't be read") && told.contains("put a copy of it back"),
            "{command}: {told}"
        );
    }
    let file = store.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let serve = Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--otlp-grpc",
            "off",
            "--otlp-http",
            "off",
            "--tempo",
            "off",
            "--store",
        ])
        .arg(&file)
        .output()
        .unwrap();
    assert!(text(&serve.stderr).contains("file: this is a file, and a store is a folder"), "{}", text(&serve.stderr));
}

/// Whether check notices that the file is gone: those of replaced segments are there until they are deleted.
fn is_live(store: &Path, path: &Path) -> bool {
    let aside = store.join("aside");
    std::fs::rename(path, &aside).unwrap();
    let damaged = !store_command("check", store, &[]).status.success();
    std::fs::rename(&aside, path).unwrap();
    damaged
}

/// Scenario: a folder that holds no store. Guarantee: both commands say so and leave nothing behind in it.
#[test]
fn no_store_is_made_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["check", "stats"] {
        let output = store_command(command, folder.path(), &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("there is no store here"), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
