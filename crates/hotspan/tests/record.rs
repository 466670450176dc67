//! `hotspan record` as a person uses it: a program or a process, into the terminal, a file, or the server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::Server;

const ROLE: &str = "RECORDED_ROLE";

/// Not a test of its own: the program that is recorded. It works for as long as it is told to, and ends as it is told to.
#[test]
fn the_recorded_program() {
    let Ok(seconds) = std::env::var(ROLE) else { return };
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse().unwrap());
    while Instant::now() < end {
        sum_of_cubes(100_000);
    }
    std::process::exit(7);
}

#[inline(never)]
fn sum_of_cubes(count: u64) -> u64 {
    (0..count).fold(0, |sum: u64, n| std::hint::black_box(sum.wrapping_add(n.wrapping_mul(n).wrapping_mul(n))))
}

/// The words that start this test program in the role of the recorded one.
fn program() -> Vec<String> {
    let path = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [&path, "--exact", "the_recorded_program", "--nocapture"].map(str::to_owned).to_vec()
}

fn record(arguments: &[&str], program: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    command.arg("record").args(arguments).env(ROLE, "1").stderr(Stdio::piped());
    if !program.is_empty() {
        command.arg("--").args(program);
    }
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Scenario: a program is started and recorded, into the terminal, and into a file whose name says the format.
/// Guarantee: the flame graph names its function, what was recorded is said beside it, and its exit code is passed on.
#[test]
fn a_command_becomes_a_flame_graph() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = record(&[], &program());
    assert!(text(&drawn.stdout).contains("sum_of_cubes"), "{drawn:?}");
    assert_eq!(drawn.status.code(), Some(7), "{}", text(&drawn.stderr));
    for name in ["flame.svg", "profile.collapsed", "profile.speedscope.json"] {
        let file = folder.path().join(name);
        let written = record(&["-o", file.to_str().unwrap()], &program());
        assert!(text(&written.stderr).contains(&format!("written to {}", file.display())), "{}", text(&written.stderr));
        assert!(std::fs::read_to_string(&file).unwrap().contains("sum_of_cubes"), "{name}");
    }
    let refused = record(&["-o", "profile.unknown"], &program());
    assert!(!refused.status.success() && text(&refused.stderr).contains("does not say a format"), "{refused:?}");
}

/// Scenario: a process that runs already is recorded for a second and sent to the server, then one that does not exist.
/// Guarantee: the server shows its function under the service that was named; the process lives on; the other is refused.
#[test]
fn a_process_is_recorded_into_the_server() {
    let (_store, server) = Server::fresh();
    let words = program();
    let mut process = Command::new(&words[0]).args(&words[1..]).env(ROLE, "300").stdout(Stdio::null()).spawn().unwrap();
    let pid = process.id().to_string();
    let sent =
        record(&["--pid", &pid, "--for", "2s", "--push", "--service", "recorded", "--server", &server.http], &[]);
    assert!(sent.status.success() && text(&sent.stderr).contains("as recorded"), "{}", text(&sent.stderr));
    assert!(process.try_wait().unwrap().is_none(), "the process ended");
    process.kill().unwrap();
    process.wait().unwrap();
    let answer = server.get_json("/api/v1/profile?service=recorded&type=cpu");
    assert!(answer["flamebearer"]["names"].to_string().contains("sum_of_cubes"), "{answer}");
    let gone = record(&["--pid", "2147483646"], &[]);
    assert!(!gone.status.success() && text(&gone.stderr).contains("no process 2147483646"), "{}", text(&gone.stderr));
}
