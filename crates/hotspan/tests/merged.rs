//! Waits beside work: the merged tree of a whole cohort, wall-clock time as a field of spans, and what endpoints wait for.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail as tests do")]

#[path = "../../hotspan-analysis/scenarios/mod.rs"]
mod scenarios;
#[path = "support/stored_requests.rs"]
mod stored_requests;
mod support;

use std::process::Command;

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{Measure, Request, Vocabulary};
use hotspan_model::SpanKind::{Internal, Server as ServerSide};
use scenarios::workload::{Waits, Workshop};
use serde_json::{Value, json};
use stored_requests::Sending;
use support::{Server, now_nanos, percent_encoded};

const SECOND: i64 = 1_000_000_000;
const REQUESTS: u64 = 24;
const PLACES: &str = "{ name = \"POST /orders\" }";

/// Orders that are priced, and then wait for the lock of the book; every fourth for long.
fn orders(vocabulary: &mut Vocabulary) -> Vec<Request> {
    let (mut random, mut stacks) = (Random::new(17), Default::default());
    let order = |number: u64| {
        let mut shop = Workshop::new(vocabulary, &mut stacks, &mut random, number + 1);
        shop.waits = Waits::Wall(10_000_000);
        shop.enter("order", "POST /orders", ServerSide);
        let price = shop.about(40.0);
        shop.work(&["order::serve|src/main.rs|7", "order::price|src/price.rs|21"], price);
        shop.enter("order", "store_order", Internal);
        let wait = shop.about(if number.is_multiple_of(4) { 300.0 } else { 20.0 });
        shop.wait(&["order::serve|src/main.rs|7", "order::store|src/book.rs|31", "pthread_mutex_lock", "futex"], wait);
        shop.finish()
    };
    (0..REQUESTS).map(order).collect()
}

/// A server that has them, the last of them a minute ago.
fn started() -> (tempfile::TempDir, Server, Vec<Request>) {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let requests = orders(&mut vocabulary);
    let end = requests.iter().map(|request| request.spans[0].end).max().unwrap();
    let shift = now_nanos() as i64 - 60 * SECOND - end;
    Sending { vocabulary: &vocabulary, prefix: String::new(), shift, linked: true }.send(&server, &requests);
    (store, server, requests)
}

/// Nanoseconds of one measure in the samples of one span of these requests.
fn sampled<'r>(requests: impl IntoIterator<Item = &'r Request>, span: u32, measure: Measure) -> i64 {
    let samples = requests.into_iter().flat_map(|request| &request.samples);
    samples.filter(|sample| sample.span == span && sample.measure == measure).map(|sample| sample.value).sum()
}

/// Scenario: the merged tree of all orders, whole, cut down to few nodes, and drawn on a terminal; a flame graph that is cut.
/// Guarantee: it is as wide as an order takes on average, holds spans, functions and waits, and what is pruned is counted and
/// takes nothing from the width.
#[test]
fn a_cohort_is_one_tree_of_spans_code_and_waits() {
    let (_store, server, requests) = started();
    let mean = requests.iter().map(Request::duration).sum::<i64>() as f64 / requests.len() as f64;
    let ask = |max_nodes: usize, format: &str| {
        let body = json!({ "query": PLACES, "format": format, "max_nodes": max_nodes });
        server.post_json("/api/v1/cohort/flame", &body)
    };
    let names_of = |answer: &Value| {
        let names = answer["flamebearer"]["names"].as_array().unwrap().clone();
        names.into_iter().filter(|name| name != "total" && name != "other").count()
    };
    let whole = ask(0, "merged");
    let width = whole["flamebearer"]["numTicks"].as_f64().unwrap();
    assert!((width - mean).abs() <= 1.0, "{width} instead of {mean}");
    assert_eq!((&whole["exactness"]["spans"], &whole["exactness"]["pruned_nodes"]), (&json!(REQUESTS), &json!(0)));
    let names = whole["flamebearer"]["names"].as_array().unwrap();
    for name in ["order POST /orders", "order store_order", "order::price", "order::store", "[waiting for a lock]"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing: {names:?}");
    }
    for (format, few) in [("merged", 3), ("json", 1)] {
        let (whole, cut) = (ask(0, format), ask(few, format));
        assert!(names_of(&cut) <= few && few < names_of(&whole), "{format}: {cut:#}");
        assert!(cut["exactness"]["pruned_nodes"].as_u64().unwrap() > 0, "{format}: {cut:#}");
        assert_eq!(cut["flamebearer"]["numTicks"], whole["flamebearer"]["numTicks"], "{format}");
    }
    let run = |stage: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
        command.args(["query", &format!("{PLACES} | {stage}")]).args(arguments);
        command.env("HOTSPAN_SERVER", format!("http://{}", server.http)).output().unwrap()
    };
    let query = |arguments: &[&str]| {
        let output = run("flame(cpu)", arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let refused = run("top(3, cpu)", &["--merged"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("flame(cpu)"));
    let drawn = query(&["--merged"]);
    assert!(drawn.contains("order store_order") && drawn.contains("[waiting for a lock]"), "{drawn}");
    let json: Value = serde_json::from_str(&query(&["--merged", "--json"])).unwrap();
    assert_eq!(json["flamebearer"]["numTicks"], whole["flamebearer"]["numTicks"]);
    assert!(query(&["--links", "exact"]).contains("order::price"));
}

/// Scenario: slow orders are explained by all their profiles, and by those of one type.
/// Guarantee: all of them tell that a lock is waited for; by the CPU alone the wait is not seen, and the answer says so.
#[test]
fn an_explanation_by_one_type_sees_that_type_alone() {
    let (_store, server, _) = started();
    let explain = |of: Option<&str>| {
        let target = "{ name = \"POST /orders\" && duration > 150ms }";
        let answer = server.post_json("/api/v1/explain", &json!({ "target": target, "type": of }));
        let profiles = answer["coverage"]["services"][0]["profiles"].clone();
        (profiles, answer)
    };
    for of in [None, Some("wall")] {
        let (profiles, answer) = explain(of);
        assert_eq!(profiles, if of.is_some() { json!(["wall"]) } else { json!(["cpu", "wall"]) });
        let cause = &answer["causes"][0];
        assert_eq!((&cause["kind"], &cause["function"]), (&json!("lock"), &json!("order::store")), "{answer:#}");
        assert_eq!((&cause["pattern"], &cause["line"]), (&json!("lock"), &json!(31)));
    }
    let (profiles, answer) = explain(Some("cpu"));
    assert_eq!(profiles, json!(["cpu"]));
    let cause = &answer["causes"][0];
    assert_eq!((&cause["operation"], &cause["function"]), (&json!("store_order"), &Value::Null), "{answer:#}");
    let is_said = |note: &Value| note.as_str().unwrap().contains("would show in off-CPU or wall-clock profiles");
    assert!(answer["notes"].as_array().unwrap().iter().any(is_said), "{answer:#}");
}

/// Scenario: orders are searched, shown and summed by the wall-clock time of their samples, and endpoints are asked what they cost
/// by the CPU and by the wall clock.
/// Guarantee: the sums of the samples that were sent, for one request and for one second.
#[test]
fn waits_are_fields_of_spans_and_costs_of_endpoints() {
    let (_store, server, requests) = started();
    let search = |query: &str| server.get_json(&format!("/api/search?limit=50&q={}", percent_encoded(query)));
    let is_long = |request: &&Request| sampled([*request], 1, Measure::Wall) > 150_000_000;
    let long = requests.iter().filter(is_long).count();
    assert_eq!(long as u64, REQUESTS / 4);
    let found = search("{ name = \"store_order\" && profile.wall > 150ms } | select(profile.wall, profile.cpu)");
    assert_eq!(found["traces"].as_array().unwrap().len(), long, "{found:#}");
    let shown = found["traces"][0]["spanSets"][0]["spans"][0]["attributes"].to_string();
    assert!(shown.contains("profile.wall") && shown.contains("profile.cpu"), "{shown}");
    assert_eq!(search("{ name = \"store_order\" && profile.cpu > 0s }")["traces"], json!([]));

    let whole = |span: u32, measure: Measure| sampled(&requests, span, measure);
    let query = percent_encoded("{ } | sum_over_time(profile.wall) by(name)");
    let answer = server.get_json(&format!("/api/metrics/query?q={query}&start=now-1h&end=now"));
    let series = answer["series"].as_array().unwrap();
    for (span, name) in [(0, "POST /orders"), (1, "store_order")] {
        let sum = series.iter().find(|series| series["labels"][0]["value"]["stringValue"] == name).unwrap();
        let seconds = whole(span, Measure::Wall) as f64 / 1e9;
        assert!((sum["value"].as_f64().unwrap() - seconds).abs() < 1e-6, "{name}: {seconds} in {sum}");
    }

    // What a span inside the service does is a cost of the endpoint by which the request came in.
    for (kind, measure, function) in [("cpu", Measure::Cpu, "order::price"), ("wall", Measure::Wall, "futex")] {
        let answer = server.get_json(&format!("/api/v1/endpoints?type={kind}"));
        let seconds = (answer["end"].as_i64().unwrap() - answer["start"].as_i64().unwrap()) as f64 / 1e9;
        let rows = answer["endpoints"].as_array().unwrap();
        let row = rows.iter().find(|row| row["operation"] == "POST /orders").unwrap();
        let value = (whole(0, measure) + whole(1, measure)) as f64;
        let number = |field: &str| row[field].as_f64().unwrap();
        assert_eq!((number("value"), number("requests")), (value, REQUESTS as f64), "{kind}: {row}");
        assert!((number("per_request") - value / REQUESTS as f64).abs() < 1.0, "{kind}: {row}");
        assert!((number("per_second") - value / seconds).abs() < 1.0, "{kind}: {row}");
        assert_eq!(row["functions"][0]["function"], function, "{kind}: {row}");
    }
}
