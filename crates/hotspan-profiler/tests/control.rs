//! The profiler does what it is told: over HTTP, by policy, in code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::{Profiler, StartError};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::{Recording, burn, one_at_a_time};

const TOKEN: &str = "a-token-of-some-length";

fn ask(address: SocketAddr, method: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{method} /debug/hotspan HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Scenario: a profiler that was built paused is started, looked at and stopped over HTTP.
/// Guarantee: each command is heeded before it is answered, and samples are taken only in between.
#[test]
fn start_stop_and_status_over_http() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.paused().control(([127, 0, 0, 1], 0).into(), TOKEN));
    let address = recording.profiler.control_address().unwrap();
    burn(150);
    assert!(ask(address, "GET").contains(r#""running":false"#));
    assert_eq!(recording.profiler.status().samples, 0);
    assert!(ask(address, "POST").contains(r#""running":true"#));
    burn(300);
    let stopped = ask(address, "DELETE");
    assert!(stopped.contains(r#""running":false"#) && !stopped.contains(r#""samples":0,"#), "{stopped}");
    let samples = recording.profiler.status().samples;
    burn(150);
    recording.profiler.flush();
    assert_eq!(recording.profiler.status().samples, samples);
    recording.finish();
}

/// Scenario: memory is to be profiled in a program whose allocator is not ours.
/// Guarantee: the status says so in words, in code and over HTTP, instead of showing an empty profile.
#[test]
fn what_cannot_be_had_is_told() {
    let _turn = one_at_a_time();
    let control = ([127, 0, 0, 1], 0).into();
    let recording = Recording::start(|builder| builder.memory(512 << 10).control(control, TOKEN));
    let remarks = recording.profiler.status().remarks;
    assert!(remarks.len() == 1 && remarks[0].contains("HeapProfiler"), "{remarks:?}");
    assert!(ask(recording.profiler.control_address().unwrap(), "GET").contains(&remarks[0]));
    recording.finish();
}

/// Scenario: the server's policy asks for a boost and other types; a second profiler is tried meanwhile.
/// Guarantee: the policy is applied and its change of rate recorded; the second profiler is refused.
#[test]
fn a_policy_from_the_server_is_applied() {
    let _turn = one_at_a_time();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let mut head = String::new();
        while reader.read_line(&mut head).unwrap() > 2 {}
        let body = r#"{"rate": 50, "boost": {"rate": 200, "until_unix_seconds": 99999999999}}"#;
        let answer = format!("HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
        head
    });
    let recording = Recording::start(|builder| builder.policy_from(endpoint));
    assert!(matches!(Profiler::builder("second").start(), Err(StartError::AlreadyExists)));
    let deadline = Instant::now() + Duration::from_secs(10);
    while recording.profiler.status().hertz != 200 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = recording.profiler.status();
    assert_eq!(status.hertz, 200);
    assert_eq!(status.rate_changes.last().map(|change| (change.from_hertz, change.to_hertz)), Some((100, 200)));
    assert!(server.join().unwrap().starts_with("GET /api/v1/profiling/policy?service=test "));
    recording.finish();
}

/// Scenario: sampling is stopped and taken up again many times while a thread works.
/// Guarantee: weights follow the clock, so the total is the CPU time used in between, and none of what was used meanwhile.
#[test]
fn pauses_are_not_counted() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    let mut used = 0;
    for _ in 0..6 {
        let before = support::thread_cpu_ns();
        burn(250);
        used += support::thread_cpu_ns() - before;
        recording.profiler.pause();
        recording.profiler.flush();
        burn(30);
        recording.profiler.resume();
        recording.profiler.flush();
    }
    let status = recording.profiler.status();
    let seen = recording.finish();
    let measured = support::total(seen.iter().filter(|sample| sample.mentions("burn")), "cpu");
    let used = used as f64;
    assert!((measured / used - 1.0).abs() < 0.1, "{measured} of {used}");
    let process = status.process_cpu.as_secs_f64();
    assert!((status.sampled_cpu.as_secs_f64() / process - 1.0).abs() < 0.12, "{status:?}");
    assert_eq!(status.dropped_samples, 0);
}
