//! A policy set on the server reaches a running profiler, and ends when it was to end.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use hotspan_profiler::{PolicySource, Profiler, RateReason};
use support::{Server, request};

fn policy(server: &Server, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .arg("policy")
        .args(arguments)
        .args(["--server", &server.http])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn wait_for_rate(profiler: &Profiler, hertz: u32) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while profiler.status().hertz != hertz {
        assert!(Instant::now() < deadline, "the rate is not {hertz}: {:?}", profiler.status());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Scenario: `hotspan policy set` boosts a service for some seconds while its profiler runs.
/// Guarantee: the profiler samples at the boosted rate until the time that was set and at its own afterwards.
#[test]
fn a_boost_reaches_the_profiler_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.wait_ready();
    let source =
        PolicySource { interval: Duration::from_millis(100), ..PolicySource::new(format!("http://{}", server.http)) };
    let profiler = Profiler::builder("order-service")
        .ignore_environment()
        .configure(|config| {
            config.policy = Some(source);
            config.load_shedding_percent = None;
        })
        .start()
        .unwrap();
    wait_for_rate(&profiler, 100);
    let said = policy(&server, &["set", "order-service", "--rate", "200", "--for", "4s"]);
    let boosted_before = SystemTime::now();
    assert!(said.starts_with("order-service: 200 Hz for another "), "{said}");
    wait_for_rate(&profiler, 200);
    wait_for_rate(&profiler, 100);
    let changes = profiler.status().rate_changes;
    let rates: Vec<_> = changes.iter().map(|change| (change.from_hertz, change.to_hertz, change.reason)).collect();
    assert_eq!(rates, [(100, 200, RateReason::Requested), (200, 100, RateReason::Requested)]);
    let lasted = changes[1].at.duration_since(boosted_before).unwrap();
    assert!(lasted >= Duration::from_secs(2), "the boost ended after {lasted:?}");
    // A lasting change of what is profiled reaches it as well, and so does its end.
    policy(&server, &["set", "order-service", "--types", "memory"]);
    wait_for_rate(&profiler, 0);
    policy(&server, &["clear", "order-service"]);
    wait_for_rate(&profiler, 100);
}

/// Scenario: policies are set, listed and cleared by command and by API; the server is killed in between.
/// Guarantee: acknowledged policies are there after the crash, ETags spare the answer, mistakes name their field.
#[test]
fn policies_survive_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.wait_ready();
    assert_eq!(policy(&server, &["list"]), "no policies: every service runs as it is configured\n");
    policy(&server, &["set", "orders", "--rate", "150"]);
    policy(&server, &["set", "orders", "--errors", "true", "--share", "5%"]);
    policy(&server, &["set", "*", "--rate", "20"]);
    server.kill();
    let server = Server::start(folder.path());
    server.wait_ready();
    let path = "/api/v1/profiling/policy?service=orders";
    let answer = server.get(path).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&json["rate"], &json["conditions"]["request_share"]), (&150.into(), &0.05.into()));
    let etag = answer.headers.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert_eq!(request(&server.http, "GET", path, &[("if-none-match", etag)], &[]).unwrap().status, 304);
    assert_eq!(server.get_json("/api/v1/profiling/policy?service=other")["rate"], 20);
    let listed = policy(&server, &["list"]);
    assert_eq!(listed.lines().next(), Some("*       20 Hz"), "{listed}");
    let refused = request(&server.http, "PUT", path, &[], br#"{"rate": 100000}"#).unwrap();
    assert!(refused.status == 400 && refused.text().contains("rate: 100000"), "{}", refused.text());
    policy(&server, &["clear", "orders"]);
    assert_eq!(server.get_json(path)["rate"], 20);
    policy(&server, &["clear", "*"]);
    assert_eq!(server.get(path).unwrap().status, 204);
    assert_eq!(request(&server.http, "DELETE", path, &[], &[]).unwrap().status, 404);
}
