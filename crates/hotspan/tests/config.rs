//! The configuration as a person meets it: by commands, files, variables and flags of the real binary.

// Helpers of a test may fail like the test itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::{Server, request};

/// The binary in a folder of its own and with an environment of its own.
fn hotspan(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    command(folder, arguments, variables).output().unwrap()
}

fn command(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    command.current_dir(folder).env_clear().envs(variables.iter().copied()).args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The value and origin of each key, by name.
fn in_force(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> impl Fn(&str) -> (String, String) {
    let output = hotspan(folder, &[&["config", "show", "--json"], arguments].concat(), variables);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let entries: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    move |key| {
        let entry = entries.as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap();
        (entry["value"].as_str().unwrap().to_owned(), entry["origin"].as_str().unwrap().to_owned())
    }
}

fn pair(value: &str, origin: &str) -> (String, String) {
    (value.to_owned(), origin.to_owned())
}

/// Scenario: one key said in one place more each time, and the three ways to name a file.
/// Guarantee: flag over variable over file over default, and the origin says which it was.
#[test]
fn one_rule_of_precedence() {
    let folder = tempfile::tempdir().unwrap();
    let key = "ingest.flush_interval";
    let value = |arguments: &[&str], variables: &[(&str, &str)]| in_force(folder.path(), arguments, variables)(key);
    assert_eq!(value(&[], &[]), pair("250ms", "default"));
    std::fs::write(folder.path().join("hotspan.toml"), "# mine\n[ingest]\nflush_interval = \"1s\"\n").unwrap();
    assert_eq!(value(&[], &[]), pair("1s", "hotspan.toml:3"));
    std::fs::write(folder.path().join("other.toml"), "ingest.flush_interval = \"2s\"\n").unwrap();
    std::fs::write(folder.path().join("third.toml"), "ingest.flush_interval = \"3s\"\n").unwrap();
    let file = ("HOTSPAN_CONFIG", "other.toml");
    assert_eq!(value(&[], &[file]), pair("2s", "other.toml:1"));
    assert_eq!(value(&["--config", "third.toml"], &[file]), pair("3s", "third.toml:1"));
    let variable = ("HOTSPAN_INGEST_FLUSH_INTERVAL", "4s");
    assert_eq!(value(&[], &[file, variable]), pair("4s", variable.0));
    assert_eq!(value(&["--flush-interval", "5s"], &[file, variable]), pair("5s", "--flush-interval"));
}

/// Scenario: `config show` is saved as a file. Guarantee: the file is right and means the same.
#[test]
fn what_is_shown_can_be_saved() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--store", "a \"quoted\" folder", "--tempo", "off"];
    let shown = hotspan(folder.path(), &[&["config", "show"][..], &flags].concat(), &[]);
    let saved = folder.path().join("saved.toml");
    std::fs::write(&saved, &shown.stdout).unwrap();
    let checked = hotspan(folder.path(), &["config", "check", "saved.toml"], &[]);
    assert!(checked.status.success(), "{}", text(&checked.stdout));
    let value = in_force(folder.path(), &["--config", "saved.toml"], &[]);
    assert_eq!(value("store").0, "a \"quoted\" folder");
    assert_eq!(value("tempo").0, "off");
}

/// Scenario: a file with a misspelt key, a wrong value and a wrong section, and one that is not UTF-8.
/// Guarantee: each place is pointed at by line and column with what was probably meant, and the exit code is 1.
#[test]
fn check_points_at_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        "store = \"data\"\n[ingest]\nflush_intervl = \"1s\"\nflush_bytes = \"8 megs\"\n[retenton]\nspans = \"3d\"\n";
    std::fs::write(folder.path().join("bad.toml"), file).unwrap();
    let checked = hotspan(folder.path(), &["config", "check", "bad.toml"], &[]);
    assert_eq!(checked.status.code(), Some(1));
    let report = text(&checked.stdout);
    let expected = [
        "bad.toml:3:1: unknown key ingest.flush_intervl; did you mean ingest.flush_interval?\n  3 | flush_intervl",
        "bad.toml:4:15: ingest.flush_bytes: \"8 megs\" is not a size; use a number with a unit, such as 64MiB",
        "bad.toml:5:2: unknown section [retenton]; did you mean [retention]?",
    ];
    for part in expected {
        assert!(report.contains(part), "{report}\nlacks {part}");
    }
    let served = hotspan(folder.path(), &["serve", "--config", "bad.toml", "--http", "nowhere"], &[]);
    assert_eq!(served.status.code(), Some(1));
    let message = text(&served.stderr);
    assert!(message.contains("bad.toml:4:15") && message.contains("--http: http: \"nowhere\""), "{message}");
    assert!(!folder.path().join("data").exists(), "a server with a wrong configuration touched the store");
    std::fs::write(folder.path().join("latin.toml"), b"[sql]\nmemory = \"caf\xe9\"\n").unwrap();
    let checked = hotspan(folder.path(), &["config", "check", "latin.toml"], &[]);
    let place = "latin.toml:2:14: the byte 0xE9 is not UTF-8; save the file as UTF-8";
    assert!(text(&checked.stdout).contains(place), "{}", text(&checked.stdout));
    let served = hotspan(folder.path(), &["serve", "--config", "latin.toml"], &[]);
    assert!(text(&served.stderr).contains(place), "{}", text(&served.stderr));
    let missing = hotspan(folder.path(), &["serve", "--config", "missing.toml"], &[]);
    assert!(text(&missing.stderr).contains("missing.toml"), "{}", text(&missing.stderr));
}

/// Scenario: docs/configuration.md against what the binary writes. Guarantee: the file is not stale.
#[test]
fn the_documentation_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let written = hotspan(Path::new("."), &["config", "docs"], &[]);
    let kept = std::fs::read_to_string(path).unwrap();
    let refresh = "cargo run -p hotspan -- config docs > docs/configuration.md";
    assert!(text(&written.stdout) == kept, "docs/configuration.md is stale; run\n  {refresh}");
}

/// Scenario: a server by its other name, with JSON logs, that gets metrics again and again and a broken request, and is told
/// to stop.
/// Guarantee: start, refusal and stop each have a line that a machine can read; metrics have one for all of them.
#[test]
fn the_log_tells_start_refusal_and_stop() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["server", "--store", "data", "--otlp-grpc", "off", "--otlp-http", "off", "--tempo", "off"];
    let variables = [("HOTSPAN_HTTP", "127.0.0.1:0"), ("HOTSPAN_LOG_FORMAT", "json"), ("HOTSPAN_STROE", "x")];
    let mut server =
        command(folder.path(), &arguments, &variables).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines().map(|line| {
        let line = line.unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let mut not_stored = Vec::new();
    let mut wait_for = |message: &str| {
        let wanted = log.find(|line| {
            not_stored.extend((line["reason"] == "not_stored").then(|| line.clone()));
            line["message"].as_str().is_some_and(|text| text.contains(message))
        });
        wanted.unwrap_or_else(|| panic!("the log has no line {message:?}"))
    };
    assert_eq!(wait_for("did you mean HOTSPAN_STORE?")["level"], "WARN");
    let address = wait_for("listening")["address"].as_str().unwrap().to_owned();
    assert_eq!(wait_for("ready")["store"], "data");
    let headers = [("content-type", "application/x-protobuf")];
    for _ in 0..3 {
        assert_eq!(request(&address, "POST", "/v1/metrics", &headers, &[]).unwrap().status, 404);
    }
    assert_eq!(request(&address, "POST", "/v1/traces", &headers, &[0x0a, 0xff, 0xff]).unwrap().status, 400);
    // The first line is about metrics.
    wait_for("requests refused");
    let refused = wait_for("requests refused");
    assert_eq!((&refused["signal"], &refused["reason"]), (&"traces".into(), &"invalid".into()), "{refused}");
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(wait_for("stopping")["signal"], "SIGTERM");
    wait_for("stopped");
    assert!(server.wait().unwrap().success());
    assert_eq!(not_stored.len(), 1, "{not_stored:?}");
    assert_eq!((&not_stored[0]["signal"], &not_stored[0]["requests"]), (&"metrics".into(), &1.into()));
}

/// Scenario: a server with a request that never ends is told to stop, twice.
/// Guarantee: it waits for the request at first, also where the signal comes from two sides at once; the second signal ends it at
/// once, and says so by its exit code.
#[test]
fn a_second_signal_ends_at_once() {
    let (_store, mut server) = Server::configured("shutdown_grace = \"10m\"\n");
    let mut sender = TcpStream::connect(server.address("http")).unwrap();
    sender.write_all(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\nhalf").unwrap();
    // Whoever asks after the sender is answered once the sender's request is under way.
    assert_eq!(server.get("/ready").unwrap().status, 200);
    let pid = server.pid().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // Sent beside the terminal by whoever started it: still the first.
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(500));
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(!state.contains(") Z "), "it did not wait for the request: {state}");
    assert_eq!(server.terminate().code(), Some(130));
}

/// Scenario: commands on a store that is not there. Guarantee: the reason is told once.
#[test]
fn errors_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = hotspan(folder.path(), &["store", "stats", "--store", "nowhere"], &[]);
    let message = text(&output.stderr);
    assert!(!output.status.success() && message.matches("no catalog").count() == 1, "{message}");
}
