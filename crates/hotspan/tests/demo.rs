//! The demo as a newcomer meets it: started by one command, looked at through the public API.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests fail as tests do

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::demo::{Demo, demo_command, shop_status};
use support::now_nanos;

/// Long, since test machines are busy; what is waited for takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of these, a quarter ask for the tax of a cart of usual size.
const ENOUGH_REQUESTS: u64 = 400;

/// The ids of large carts' checkouts that ended within the last `newer_than`, newest first.
fn large_checkouts(store: &Path, newer_than: Duration) -> Vec<String> {
    let status = shop_status(store).unwrap_or_default();
    let checkouts = status["slow_checkouts"].as_array().cloned().unwrap_or_default();
    let is_wanted = |checkout: &&Value| {
        checkout["items"].as_u64() > Some(20)
            && checkout["age_ms"].as_u64().is_some_and(|age| u128::from(age) < newer_than.as_millis())
    };
    let id = |checkout: &Value| checkout["trace_id"].as_str().unwrap().to_owned();
    checkouts.iter().filter(is_wanted).map(id).collect()
}

/// The services in a trace, and the span id of its tax calculation.
fn services_and_tax_span(demo: &Demo, trace_id: &str) -> Option<(BTreeSet<String>, String)> {
    let answer = demo.get(&format!("/api/traces/{trace_id}"));
    let trace: Value = serde_json::from_slice(&answer.body).ok()?;
    let mut services = BTreeSet::new();
    let mut tax_span = None;
    for batch in trace["batches"].as_array()? {
        let attributes = batch["resource"]["attributes"].as_array()?;
        let name = attributes.iter().find(|attribute| attribute["key"] == "service.name")?;
        services.insert(name["value"]["stringValue"].as_str()?.to_owned());
        for span in batch["scopeSpans"].as_array()?.iter().flat_map(|scope| scope["spans"].as_array().unwrap()) {
            if span["name"] == "calculate_tax" {
                tax_span = Some(hex_of_base64(span["spanId"].as_str()?));
            }
        }
    }
    Some((services, tax_span?))
}

/// Ids travel as base64 in Tempo's JSON.
fn hex_of_base64(text: &str) -> String {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits: String = text.trim_end_matches('=').bytes().map(|byte| format!("{:06b}", digit(byte))).collect();
    let bytes = bits.as_bytes().chunks_exact(8).map(|byte| std::str::from_utf8(byte).unwrap());
    bytes.map(|byte| format!("{:02x}", u8::from_str_radix(byte, 2).unwrap())).collect()
}

/// CPU nanoseconds below `lookup_tax_rate` in the flame graph of a span.
fn lookup_nanoseconds(demo: &Demo, span_id: &str) -> u64 {
    let collapsed = demo.get(&format!("/api/v1/profile?span_id={span_id}&format=collapsed")).text();
    let of_lookup = collapsed.lines().filter(|line| line.contains("lookup_tax_rate"));
    of_lookup.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

fn profiles_received(demo: &Demo) -> u64 {
    let status: Value = serde_json::from_slice(&demo.get("/api/v1/status").body).unwrap();
    status["ingest"]["profiles"].as_u64().unwrap()
}

/// Tries until there is an answer.
fn wait_for<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(found) = attempt() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    panic!("{what} did not come in time");
}

/// Scenario: the demo is started, a slow checkout is looked at, its problem is fixed from outside, and it is stopped.
/// Guarantee: the trace has all services, its tax span leads to `lookup_tax_rate`, which the fix removes; the end is clean.
#[test]
fn the_demo_leads_to_its_problem_and_shows_the_fix() {
    let store = tempfile::tempdir().unwrap();
    let mut demo = Demo::start(store.path(), "tax,lock", 16);
    let started = now_nanos();

    let (services, before) = wait_for("a slow checkout with its flame graph", || {
        large_checkouts(store.path(), PATIENCE).iter().find_map(|trace_id| {
            let (services, tax_span) = services_and_tax_span(&demo, trace_id)?;
            let nanoseconds = lookup_nanoseconds(&demo, &tax_span);
            (nanoseconds > 50_000_000).then_some((services, nanoseconds))
        })
    });
    let expected = ["checkout", "discount", "inventory", "order", "tax"];
    assert!(services.iter().map(String::as_str).eq(expected), "{services:?}");

    // Before and after can be told apart only with enough requests on both sides, however fast the first was found.
    wait_for("requests before the fix", || {
        (shop_status(store.path())?["requests"].as_u64() >= Some(ENOUGH_REQUESTS)).then_some(())
    });
    let fixed = now_nanos();
    let fix = demo_command(store.path()).args(["--fix", "tax"]).output().unwrap();
    let said = String::from_utf8_lossy(&fix.stdout).into_owned();
    assert!(fix.status.success() && said.contains("tax is fixed"), "{said}");
    assert_eq!(shop_status(store.path()).unwrap()["problems"]["tax"], false);
    assert_eq!(shop_status(store.path()).unwrap()["problems"]["lock"], true);

    let fixed_at = Instant::now();
    // The first seconds are left out: requests that began before the fix, and profiles still on their way.
    let settled = Duration::from_secs(4);
    let after = wait_for("a checkout after the fix", || {
        let newer_than = fixed_at.elapsed().checked_sub(settled)?;
        let trace_id = large_checkouts(store.path(), newer_than).pop()?;
        let (_, tax_span) = services_and_tax_span(&demo, &trace_id)?;
        // Its samples are there when two more uploads are: without them, nothing would be proved.
        for _ in 0..2 {
            let seen = profiles_received(&demo);
            wait_for("an upload of profiles", || (profiles_received(&demo) > seen).then_some(()));
        }
        Some(lookup_nanoseconds(&demo, &tax_span))
    });
    assert!(after * 5 < before, "{after} ns after the fix, {before} ns before");
    the_fix_helped(&demo, [started, fixed, fixed + 2_000_000_000, now_nanos()]);

    assert!(demo.interrupt().success());
    assert!(!store.path().join("demo-control").exists(), "the shop ended in order");
}

/// Asked before against after, `explain` says that the fix helped, and what it took away.
fn the_fix_helped(demo: &Demo, [started, fixed, settled, now]: [u64; 4]) {
    let target = "{ name = \"calculate_tax\" && span.cart.items < 10 }";
    let (before, after) = (format!("{started}..{fixed}"), format!("{settled}..{now}"));
    let body = serde_json::json!({ "target": target, "before": before, "after": after });
    let answer = demo.post_json("/api/v1/explain", &body);
    assert_eq!(answer["comparison"]["change"], "faster", "{answer:#}");
    let function = answer["causes"][0]["function"].as_str().unwrap_or_default();
    assert!(function.contains("services::tax::"), "{answer:#}");
    let functions = answer["comparison"]["functions"].as_array().unwrap();
    let lookup = functions.iter().find(|change| change["function"].as_str().unwrap().ends_with("::lookup_tax_rate"));
    assert!(lookup.unwrap()["delta_ms"].as_f64() < Some(0.0), "{answer:#}");
    // What only calls it, such as the start of its thread, has nothing to tell.
    assert!(
        functions.iter().all(|change| !change["function"].as_str().unwrap().contains("thread_start")),
        "{answer:#}"
    );
}

/// Scenario: a newcomer starts the demo as it comes, opens the page at once, looks around, and stops it.
/// Guarantee: within ten seconds of the address there are traces of all services, and the code of those ten seconds is there
/// as soon as a busy machine has looked it up; it has said where the page is, what is planted and what the store takes, and
/// says that again in the end. How long code takes is in benches/README.md.
#[test]
fn the_demo_has_data_within_ten_seconds() {
    const TEN_SECONDS: Duration = Duration::from_secs(10);
    let store = tempfile::tempdir().unwrap();
    let mut demo = Demo::start(store.path(), "mix", 6);
    let (opened, opened_at) = (Instant::now(), now_nanos());
    let took = wait_for("a trace through all services", || {
        let found: Value = serde_json::from_slice(&demo.get("/api/search?limit=20").body).ok()?;
        let traces = found["traces"].as_array()?;
        let is_whole = |trace: &Value| trace["serviceStats"].as_object().is_some_and(|services| services.len() == 5);
        traces.iter().any(is_whole).then(|| opened.elapsed())
    });
    assert!(took <= TEN_SECONDS, "it took {took:?}");
    let until = opened_at + TEN_SECONDS.as_nanos() as u64;
    let first = format!("/api/v1/profile?service_name=tax&type=cpu&from={opened_at}&to={until}&format=collapsed");
    wait_for("code of the first ten seconds", || demo.get(&first).text().contains("lookup_tax_rate").then_some(()));
    let said = wait_for("the introduction", || Some(demo.said()).filter(|said| said.contains("Ctrl-C stops")));
    assert!(said.contains(&format!("http://{}", demo.http)) && said.contains(" MB"), "{said}");
    for planted in ["tax", "regex", "shard", "lock"] {
        assert!(said.lines().any(|line| line.trim_start().starts_with(planted)), "{planted}: {said}");
    }
    assert!(demo.interrupt().success());
    let last = wait_for("its last words", || {
        Some(demo.said())
            .filter(|said| said.contains("Remove the folder"))
            .and_then(|said| Some(said.lines().last()?.to_owned()))
    });
    let size = last.split_once(" holds ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(size > Some(0.0) && size < Some(200.0), "{last}");
}

/// Scenario: the reader of the demo's output goes away (`hotspan demo | head -1`); the demo is started again on the same
/// store, is given another scenario, and is told to stop.
/// Guarantee: it goes on without its reader, the second start says what to do instead, the problems are as named, the end is clean.
#[test]
fn the_demo_goes_on_without_a_reader_and_takes_another_scenario() {
    let store = tempfile::tempdir().unwrap();
    let mut child = demo_command(store.path())
        .args(["--http", "127.0.0.1:0", "--otlp-grpc", "off", "--otlp-http", "off", "--tempo", "off", "--rate", "1"])
        .args(["--scenario", "shard"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("http "), "{first}");
    wait_for("the shop", || shop_status(store.path()));

    let again = demo_command(store.path()).output().unwrap();
    let text = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && text.contains("already") && text.contains("--scenario"), "{text}");

    let switched = demo_command(store.path()).args(["--scenario", "tax,shard"]).output().unwrap();
    let text = String::from_utf8_lossy(&switched.stdout).into_owned();
    assert!(switched.status.success() && text.contains("tax is broken again"), "{text}");
    assert!(text.contains("shard is there already") && text.contains("lock is fixed already"), "{text}");
    let problems = shop_status(store.path()).unwrap()["problems"].clone();
    for (problem, present) in problems.as_object().unwrap() {
        assert_eq!(present, ["tax", "shard"].contains(&problem.as_str()), "{problem}");
    }

    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !complaints.contains("panicked"), "{complaints}");
}

/// Scenario: a person asks what there is, and misspells a name.
/// Guarantee: all problems are listed with a line each, and the wrong name is answered with the right ones.
#[test]
fn the_problems_are_listed() {
    let store = tempfile::tempdir().unwrap();
    let list = demo_command(store.path()).arg("--list").output().unwrap();
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    for name in ["tax", "regex", "shard", "lock", "queries", "bundles", "cache", "memory", "payments", "retries"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is missing: {text}");
    }
    let wrong = demo_command(store.path()).args(["--fix", "taxes"]).output().unwrap();
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && text.contains("tax, regex, shard, lock"), "{text}");
}
