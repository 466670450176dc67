//! What must hold in every answer of `explain` through the public API, and what it says where it cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail as tests do")]

#[path = "../../hotspan-analysis/scenarios/mod.rs"]
mod scenarios;
#[path = "support/stored_requests.rs"]
mod stored_requests;
mod support;

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{AttributeValue, Request, Vocabulary};
use hotspan_model::SpanKind::{Internal, Server as ServerSide};
use hotspan_model::TraceId;
use prost::Message;
use scenarios::anything::any_request;
use scenarios::workload::Workshop;
use serde_json::{Value, json};
use stored_requests::Sending;
use support::{Server, now_nanos};

const SECOND: i64 = 1_000_000_000;

fn sum(parts: &Value, field: &str) -> f64 {
    parts.as_array().unwrap().iter().map(|part| part[field].as_f64().unwrap()).sum()
}

/// Requests made one after the other; the last ends a minute before now.
fn make(vocabulary: &mut Vocabulary, count: u64, seed: u64, make: impl Fn(&mut Workshop<'_>, u64)) -> Vec<Request> {
    let mut random = Random::new(seed);
    let mut stacks = Default::default();
    let one = |number: u64| {
        let mut shop = Workshop::new(vocabulary, &mut stacks, &mut random, number + seed * 1_000_000);
        make(&mut shop, number);
        shop.finish()
    };
    (0..count).map(one).collect()
}

fn send(server: &Server, vocabulary: &Vocabulary, prefix: &str, linked: bool, requests: &[Request]) {
    let end = requests.iter().map(|request| request.spans[0].end).max().unwrap();
    let shift = now_nanos() as i64 - 60 * SECOND - end;
    Sending { vocabulary, prefix: prefix.to_owned(), shift, linked }.send(server, requests);
}

/// Scenario: stored requests of any shape: children outside their parents, samples outside their spans, clocks that jump.
/// Guarantee: by the API the ledger and the merged tree of each are its duration to the nanosecond, for every scope; the parts
/// of its explanation sum to it, and its critical path never exceeds it.
#[test]
fn answers_sum_to_the_duration() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let (mut vocabulary, mut random) = (Vocabulary::default(), Random::new(41));
    let mut requests: Vec<Request> = (0..60).map(|_| any_request(&mut vocabulary, &mut random)).collect();
    for (number, request) in requests.iter_mut().enumerate() {
        request.trace_id = TraceId((number as u128 + 1).to_be_bytes());
    }
    send(&server, &vocabulary, "", true, &requests);
    for request in &requests {
        let duration = request.duration();
        let (trace, span) = (request.trace_id, request.spans[0].span_id);
        let query = format!("{{ trace:id = \"{trace}\" && span:id = \"{span}\" }}");
        for scope in ["span", "subtree", "trace"] {
            let ledger = server.post_json("/api/v1/cohort/ledger", &json!({ "query": query, "scope": scope }));
            let parts = ledger["parts"].as_array().unwrap().iter().map(|part| part["ns"].as_i64().unwrap());
            assert_eq!(parts.sum::<i64>(), duration, "{scope}: {ledger:#}");
        }
        let merged = server.post_json("/api/v1/cohort/flame", &json!({ "query": query, "format": "merged" }));
        assert_eq!(merged["flamebearer"]["numTicks"], duration, "{query}");
        let answer = server.post_json("/api/v1/explain", &json!({ "target": format!("{trace}:{span}") }));
        let whole = answer["ledger"]["duration_ms"].as_f64().unwrap();
        assert!((whole - duration as f64 / 1e6).abs() < 1e-6, "{answer:#}");
        assert!((sum(&answer["ledger"]["parts"], "ms") - whole).abs() < 1e-5, "{answer:#}");
        assert!(sum(&answer["critical_path"], "ms") <= whole + 1e-5, "{answer:#}");
        assert!(sum(&answer["causes"], "share") <= 1.0 + 1e-9, "{answer:#}");
    }
}

/// Scenario: stored requests of one kind, each with forty coins that were thrown for it.
/// Guarantee: heads against tails is not a cause: at most one coin in twenty gives a finding.
#[test]
fn coins_explain_nothing() {
    const COINS: u64 = 40;
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let mut requests = make(&mut vocabulary, 160, 9, |shop, _| {
        shop.enter("checkout", "POST /api/checkout", ServerSide);
        for function in ["main.check|check.go|7", "main.price|price.go|8", "main.write|write.go|9"] {
            let time = shop.spread(15.0, 0.8);
            shop.work(&["main.handle|handle.go|3", function], time);
        }
    });
    let mut random = Random::new(5);
    for request in &mut requests {
        for coin in 0..COINS {
            let side = if random.unit() < 0.5 { "heads" } else { "tails" };
            let value = AttributeValue::Text(vocabulary.text(side));
            request.spans[0].attributes.push((vocabulary.text(&format!("coin.{coin}")), value));
        }
    }
    send(&server, &vocabulary, "", true, &requests);
    let side = |coin: u64, side: &str| format!("{{ name = \"POST /api/checkout\" && span.coin.{coin} = \"{side}\" }}");
    let found = (0..COINS).filter(|coin| {
        let body = json!({ "target": side(*coin, "heads"), "baseline": side(*coin, "tails") });
        let answer = server.post_json("/api/v1/explain", &body);
        assert!(answer["slow"]["spans"].as_u64() > Some(40) && answer["fast"]["spans"].as_u64() > Some(40));
        answer["verdict"] == "found"
    });
    let found = found.count() as u64;
    assert!(found * 20 <= COINS, "{found} of {COINS} coins explain something");
}

/// A checkout whose tax takes long in every eighth request.
fn taxed(shop: &mut Workshop<'_>, number: u64) {
    shop.enter("checkout", "POST /api/checkout", ServerSide);
    let time = shop.about(20.0);
    shop.work(&["main.handle|handle.go|3", "main.check|check.go|7"], time);
    shop.enter("checkout", "calculateTax", Internal);
    let time = shop.about(if number.is_multiple_of(8) { 900.0 } else { 30.0 });
    shop.work(&["main.handle|handle.go|3", "main.calculateTax|tax.go|90", "main.lookupTaxRate|tax.go|112"], time);
    shop.leave();
}

/// Scenario: a profiler that names the span by which a request came in, and never the one inside, in which the time goes.
/// Guarantee: its samples count for the inner span, marked as inherited; asked for exact links alone, they stay where they
/// are; the function is found either way.
#[test]
fn samples_of_local_roots_are_inherited() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let mut requests = make(&mut vocabulary, 80, 11, taxed);
    for sample in requests.iter_mut().flat_map(|request| &mut request.samples) {
        sample.span = 0;
    }
    send(&server, &vocabulary, "", true, &requests);
    let target = "{ name = \"POST /api/checkout\" && duration > 500ms }";
    for (links, operation) in [("inherited", "calculateTax"), ("exact", "POST /api/checkout")] {
        let answer = server.post_json("/api/v1/explain", &json!({ "target": target, "links": links }));
        let cause = &answer["causes"][0];
        assert_eq!((&cause["function"], &cause["line"]), (&json!("main.lookupTaxRate"), &json!(112)), "{answer:#}");
        assert_eq!(cause["operation"], operation, "{answer:#}");
        let inherited = answer["coverage"]["inherited_samples"].as_u64().unwrap();
        assert_eq!(inherited > 0, links == "inherited", "{answer:#}");
        assert_eq!(answer["exactness"]["inherited"], inherited);
    }
    let wrong = json!({ "target": target, "links": "guessed" }).to_string();
    let answer = server.post("/api/v1/explain", "application/json", wrong.as_bytes()).unwrap();
    assert!(answer.status == 400 && answer.text().contains("exact, inherited or inferred"), "{}", answer.text());
}

/// Scenario: requests without profiles, with profiles that name no span, with functions that have no names, shorter than the
/// time between two samples, and too few of them.
/// Guarantee: each time a note says what is missing and what to change.
#[test]
fn what_cannot_be_known_is_said() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let note = |prefix: &str, limit: &str, said: &[&str]| {
        let target = format!(
            "{{ resource.service.name = \"{prefix}checkout\" && name = \"POST /api/checkout\" && duration > {limit} }}"
        );
        let answer = server.post_json("/api/v1/explain", &json!({ "target": target }));
        let notes = answer["notes"].as_array().unwrap();
        let is_said = |note: &&Value| said.iter().all(|word| note.as_str().unwrap().contains(word));
        assert!(notes.iter().any(|note| is_said(&note)), "{prefix}: {said:?} is not in {notes:#?}");
        answer
    };

    let mut vocabulary = Vocabulary::default();
    let mut bare = make(&mut vocabulary, 80, 21, taxed);
    bare.iter_mut().for_each(|request| request.samples.clear());
    send(&server, &vocabulary, "bare-", true, &bare);
    let answer = note("bare-", "500ms", &["No samples belong", "no profiles of these services"]);
    // Spans alone still tell which operation it is.
    assert_eq!(answer["causes"][0]["operation"], "calculateTax", "{answer:#}");
    note("bare-", "500ms", &["profile that service"]);

    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 80, 22, taxed);
    send(&server, &vocabulary, "loose-", false, &requests);
    note("loose-", "500ms", &["profiles came from loose-checkout", "span ids"]);

    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 80, 23, |shop, number| {
        shop.enter("checkout", "POST /api/checkout", ServerSide);
        let time = shop.about(if number.is_multiple_of(8) { 900.0 } else { 30.0 });
        shop.work(&["libcrypto.so!0x11f0||0", "libcrypto.so!0x12c8||0"], time);
    });
    send(&server, &vocabulary, "stripped-", true, &requests);
    note("stripped-", "500ms", &["without a name", "debug symbols"]);

    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 80, 24, |shop, _| {
        shop.enter("checkout", "POST /api/checkout", ServerSide);
        let time = shop.spread(3.0, 0.4);
        shop.work(&["main.handle|handle.go|3"], time);
    });
    send(&server, &vocabulary, "short-", true, &requests);
    note("short-", "0ms", &["apart", "sample faster"]);

    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 24, 25, taxed);
    send(&server, &vocabulary, "few-", true, &requests);
    let answer = note("few-", "500ms", &["Only 3 requests match"]);
    assert_eq!(answer["causes"][0]["function"], "main.lookupTaxRate", "{answer:#}");
}

/// Scenario: one slow request of a service that is sampled ten times a second: one sample at most is of its slow part.
/// Guarantee: the operation is named, since spans tell; no function is, and a note says that samples are too few and what to
/// change.
#[test]
fn too_few_samples_are_said() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 60, 31, |shop, number| {
        shop.cpu_period = SECOND / 10;
        shop.enter("checkout", "POST /api/checkout", ServerSide);
        shop.enter("checkout", "calculateTax", Internal);
        let time = shop.spread(if number == 30 { 90.0 } else { 20.0 }, 0.02);
        shop.work(&["main.handle|handle.go|3", "main.calculateTax|tax.go|90"], time);
    });
    send(&server, &vocabulary, "", true, &requests);
    let answer = server.post_json("/api/v1/explain", &json!({ "target": requests[30].trace_id.to_string() }));
    let cause = &answer["causes"][0];
    assert_eq!((&cause["operation"], &cause["function"]), (&json!("calculateTax"), &Value::Null), "{answer:#}");
    let is_said = |note: &Value| {
        let words = ["too few to name a function", "more requests like this one", "100 ms apart"];
        words.iter().all(|word| note.as_str().unwrap().contains(word))
    };
    assert!(answer["notes"].as_array().unwrap().iter().any(is_said), "{answer:#}");
}

/// Scenario: a sender's spans and samples are partly broken, so that some are rejected and the rest is stored.
/// Guarantee: explanations, ledgers and flame graphs of that time say how many are missing; those of other times do not.
#[test]
fn what_was_rejected_is_said() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 80, 32, taxed);
    let end = requests.iter().map(|request| request.spans[0].end).max().unwrap();
    let shift = now_nanos() as i64 - 60 * SECOND - end;
    let sending = Sending { vocabulary: &vocabulary, prefix: String::new(), shift, linked: true };
    let mut spans = sending.spans(&requests);
    spans.resource_spans[0].scope_spans[0].spans[..2].iter_mut().for_each(|span| span.span_id.clear());
    let mut profiles = sending.profiles(&requests);
    let samples = &mut profiles.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    samples[..3].iter_mut().for_each(|sample| sample.stack_index = 1_000_000);
    for (path, body) in [("/v1/traces", spans.encode_to_vec()), ("/v1development/profiles", profiles.encode_to_vec())] {
        let answer = server.post(path, "application/x-protobuf", &body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let query = "{ name = \"POST /api/checkout\" && duration > 500ms }";
    let answer = server.post_json("/api/v1/explain", &json!({ "target": query }));
    let notes = answer["notes"].as_array().unwrap();
    let is_said = |note: &Value| note.as_str().unwrap().starts_with("2 spans and 3 samples that came in this time");
    assert!(notes.iter().any(is_said), "{notes:#?}");
    assert_eq!((&answer["coverage"]["dropped"], &answer["exactness"]["dropped"]), (&json!(5), &json!(5)));
    let flame = server.post_json("/api/v1/cohort/flame", &json!({ "query": query, "type": "cpu" }));
    // A cohort is made of both: of spans that were found, and of their samples.
    assert_eq!(flame["exactness"]["dropped"], 5, "{flame:#}");
    for (range, dropped) in [("from=now-1h", 3), ("from=now-3h&to=now-2h", 0)] {
        let flame = server.get_json(&format!("/api/v1/profile?service_name=checkout&type=cpu&{range}"));
        assert_eq!(flame["exactness"]["dropped"], dropped, "{range}");
    }
}
