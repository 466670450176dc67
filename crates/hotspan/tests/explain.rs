//! `explain` through the public API alone: an incident from its alert to the line, planted causes in the real store, and
//! whether a change helped.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail as tests do")]

#[path = "../../hotspan-analysis/scenarios/mod.rs"]
mod scenarios;
#[path = "support/stored_requests.rs"]
mod stored_requests;
mod support;

use std::process::Command;

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{Request, Vocabulary};
use hotspan_model::SpanKind::{Client, Internal, Server as ServerSide};
use scenarios::workload::Workshop;
use scenarios::{Picked, Planted};
use serde_json::{Value, json};
use stored_requests::Sending;
use support::{Server, now_nanos};

const SECOND: i64 = 1_000_000_000;

/// The checkout of the incident: `calculateTax` takes two seconds in one request of eight.
fn checkout(shop: &mut Workshop<'_>, is_slow: bool) {
    let go = ["net/http.(*conn).serve|/usr/local/go/src/net/http/server.go|2092", "main.handleCheckout|checkout.go|41"];
    let below = |frames: &[&'static str]| go.iter().chain(frames).copied().collect::<Vec<_>>();
    shop.enter("order-service", "POST /api/checkout", ServerSide);
    shop.text("customer.tier", if is_slow { "business" } else { "private" });
    let (check, stock) = (shop.about(12.0), shop.about(20.0));
    shop.work(&below(&["main.checkCart|cart.go|17"]), check);
    shop.enter("order-service", "SELECT stock", Client);
    shop.gap(stock);
    shop.leave();
    shop.enter("order-service", "calculateTax", Internal);
    let parse = if is_slow { shop.about(1950.0) } else { shop.about(30.0) };
    let path = [
        "main.calculateTax|tax.go|90",
        "main.lookupTaxRate|tax.go|112",
        "json.Unmarshal|/usr/local/go/src/encoding/json/decode.go|96",
    ];
    shop.work(&below(&path), parse);
    let sum = shop.about(3.0);
    shop.work(&below(&path[..1]), sum);
    shop.leave();
    let write = shop.about(6.0);
    shop.work(&below(&["main.writeAnswer|answer.go|12"]), write);
}

fn make(
    vocabulary: &mut Vocabulary,
    count: u64,
    slow_share: f64,
    seed: u64,
    make: fn(&mut Workshop<'_>, bool),
) -> Vec<Request> {
    let mut random = Random::new(seed);
    let mut stacks = Default::default();
    (0..count)
        .map(|number| {
            let is_slow = random.unit() < slow_share;
            let mut shop = Workshop::new(vocabulary, &mut stacks, &mut random, number + seed * 1_000_000);
            make(&mut shop, is_slow);
            shop.finish()
        })
        .collect()
}

/// So that the last of these requests ends a minute before now.
fn shift_to_now(requests: &[Request]) -> i64 {
    let end = requests.iter().map(|request| request.spans[0].end).max().unwrap();
    now_nanos() as i64 - 60 * SECOND - end
}

/// Scenario: the p99 of /api/checkout alerts; a slow trace shows `calculateTax` with two seconds; its samples lead on.
/// Guarantee: every step is answered by the public API, and `explain` names `lookupTaxRate`, its file and line, by way of
/// `json.Unmarshal`, with parts that sum to the duration, the same each time, as JSON, text and Markdown.
#[test]
fn an_incident_leads_from_the_alert_to_the_line() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let requests = make(&mut vocabulary, 160, 0.125, 3, checkout);
    let shift = shift_to_now(&requests);
    Sending { vocabulary: &vocabulary, prefix: String::new(), shift, linked: true }.send(&server, &requests);

    // The alert: the 99th percentile is above two seconds, by the only service there is.
    let quantile = "%7Bname%3D%22POST%20%2Fapi%2Fcheckout%22%7D%20%7C%20quantile_over_time(duration%2C%20.99)%20by(resource.service.name)%20with(precise_quantiles%3Dtrue)";
    let series = server.get_json(&format!("/api/metrics/query_range?q={quantile}&since=2h&step=10m"));
    let seconds = series["series"].as_array().unwrap().iter().flat_map(|one| one["samples"].as_array().unwrap());
    let worst = seconds.filter_map(|sample| sample["value"].as_f64()).fold(0.0, f64::max);
    assert!((1.5..4.0).contains(&worst), "p99 is {worst}: {series}");

    // A slow trace, and in it the span that takes the time.
    let query = "%7Bname%3D%22POST%20%2Fapi%2Fcheckout%22%20%26%26%20duration%3E1s%7D";
    let from = (now_nanos() / 1_000_000_000) - 7200;
    let found = server.get_json(&format!("/api/search?q={query}&limit=1&start={from}&end={}", from + 7200));
    let trace_id = found["traces"][0]["traceID"].as_str().unwrap().to_owned();
    let slow = requests.iter().find(|request| request.trace_id.to_string().ends_with(&trace_id)).unwrap();
    let tax = slow
        .spans
        .iter()
        .find(|span| vocabulary.text_of(vocabulary.operation_of(span.operation).name) == "calculateTax")
        .unwrap();
    assert!((1.0..4.0).contains(&((tax.end - tax.start) as f64 / 1e9)));

    // Its samples lead to the function that parses.
    let collapsed = server.get(&format!("/api/v1/profile?span_id={}&format=collapsed", tax.span_id)).unwrap().text();
    assert!(collapsed.contains("main.lookupTaxRate;json.Unmarshal"), "{collapsed}");

    // And the answer in one question: for the cohort, and for the one trace.
    let target = "{ name = \"POST /api/checkout\" && duration > 1s }";
    // With times of its own: the last hour is another one at each question.
    let cohort = json!({ "target": target, "from": from, "to": from + 7200 });
    for body in [cohort.clone(), json!({ "target": trace_id })] {
        let answer = server.post_json("/api/v1/explain", &body);
        assert_eq!(answer["verdict"], "found", "{answer:#}");
        let cause = &answer["causes"][0];
        assert_eq!(cause["function"], "main.lookupTaxRate", "{answer:#}");
        assert_eq!((&cause["file"], &cause["line"]), (&json!("tax.go"), &json!(112)));
        assert_eq!(cause["via"], json!(["json.Unmarshal"]));
        assert_eq!((&cause["kind"], &cause["pattern"]), (&json!("cpu"), &json!("parsing")));
        assert_eq!((&cause["service"], &cause["operation"]), (&json!("order-service"), &json!("calculateTax")));
        assert!(cause["share"].as_f64().unwrap() > 0.9, "{cause:#}");
        let interval = cause["interval_ms"].as_array().unwrap();
        let delta = cause["delta_ms"].as_f64().unwrap();
        assert!(interval[0].as_f64().unwrap() < delta && delta < interval[1].as_f64().unwrap());
        assert!(cause["samples"].as_u64().unwrap() > 100 && cause["spans"].as_u64().unwrap() > 0);
        assert!(cause["link"].as_str().unwrap().contains("/#/"), "{cause:#}");
        let parts: f64 =
            answer["ledger"]["parts"].as_array().unwrap().iter().map(|part| part["ms"].as_f64().unwrap()).sum();
        assert!((parts - answer["ledger"]["duration_ms"].as_f64().unwrap()).abs() < 1e-3);
        assert!(!answer["critical_path"].as_array().unwrap().is_empty());
        assert!(answer["coverage"]["explained"].as_f64().unwrap() > 0.5);
        let shares = ["coverage", "explained"].map(|share| answer["exactness"][share].as_f64().unwrap());
        assert_eq!(json!(shares), json!([answer["coverage"]["sampled"], answer["coverage"]["explained"]]));
        assert!((0.0..=1.0).contains(&shares[0]) && shares[0] > 0.0, "{shares:?}");
        assert_eq!(answer, server.post_json("/api/v1/explain", &body), "the same question gets the same answer");
    }
    let answer = server.post_json("/api/v1/explain", &cohort);
    assert_eq!(answer["causes"][0]["where"][0]["attribute"], "customer.tier", "{answer:#}");

    // A search that holds most of the usual requests is compared with the others.
    let most =
        json!({ "target": "{ name = \"POST /api/checkout\" && duration > 65ms }", "from": from, "to": from + 7200 });
    let answer = server.post_json("/api/v1/explain", &most);
    assert!(answer["fast"]["spans"].as_u64().unwrap() >= 5, "{answer:#}");

    // The span alone: `calculateTax` of the slow request against those of others.
    for target in [format!("{trace_id}:{}", tax.span_id), tax.span_id.to_string()] {
        let answer = server.post_json("/api/v1/explain", &json!({ "target": target }));
        assert_eq!(answer["causes"][0]["function"], "main.lookupTaxRate", "{target}: {answer:#}");
        assert_eq!(answer["slow"]["spans"], 1, "{target}");
    }

    // On a terminal, and for a ticket.
    let command = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
        command.args(["explain", "{ name = \"POST /api/checkout\" && duration > 1s }", "--format", format]);
        let output = command.args(["--server", &format!("http://{}", server.http)]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = command("text");
    assert!(text.starts_with("main.lookupTaxRate (tax.go:112) takes"), "{text}");
    assert!(
        text.contains("via json.Unmarshal") && text.contains("A slow request: spans, then code and waits"),
        "{text}"
    );
    let markdown = command("markdown");
    assert!(markdown.contains("| 1 | `main.lookupTaxRate (tax.go:112)` |"), "{markdown}");

    ledger_and_merged_tree(&server, slow);
    mistakes_are_named(&server);
}

/// The ledger and the merged tree of the slow request sum to its duration.
fn ledger_and_merged_tree(server: &Server, slow: &Request) {
    let duration = slow.spans[0].end - slow.spans[0].start;
    let query = format!("{{ trace:id = \"{}\" && span:id = \"{}\" }}", slow.trace_id, slow.spans[0].span_id);
    for scope in ["span", "subtree"] {
        let ledger = server.post_json("/api/v1/cohort/ledger", &json!({ "query": query, "scope": scope }));
        let parts = ledger["parts"].as_array().unwrap();
        assert_eq!(parts.iter().map(|part| part["ns"].as_i64().unwrap()).sum::<i64>(), duration, "{ledger:#}");
        assert_eq!(ledger["duration_ns"], duration);
        let has_child =
            parts.iter().any(|part| part["kind"] == "child" && part["label"] == "order-service calculateTax");
        assert_eq!(has_child, scope == "span", "{ledger:#}");
    }
    let by_sink = server.post_json("/api/v1/cohort", &json!({ "query": format!("{query} | ledger()") }));
    assert_eq!(by_sink["duration_ns"], duration);
    let merged = server.post_json("/api/v1/cohort/flame", &json!({ "query": query, "format": "merged" }));
    assert_eq!(merged["flamebearer"]["numTicks"], duration, "{merged:#}");
    let names: Vec<&str> =
        merged["flamebearer"]["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in
        ["order-service POST /api/checkout", "order-service calculateTax", "main.lookupTaxRate", "json.Unmarshal"]
    {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
    // Code has its place here as well; spans are told from it.
    let frame = |name| &merged["flamebearer"]["frames"][names.iter().position(|known| *known == name).unwrap()];
    assert_eq!(frame("main.lookupTaxRate"), &json!({ "file": "tax.go", "line": 112 }));
    assert_eq!(frame("order-service calculateTax"), &json!({ "kind": "span" }));
}

fn mistakes_are_named(server: &Server) {
    for (body, said) in [
        (json!({ "target": "" }), "target"),
        (json!({ "target": "no-id" }), "target"),
        (json!({ "target": "{ duration > }" }), "duration"),
        (json!({ "target": "{ }", "baseline": "{ oops" }), "baseline"),
        (json!({ "target": "{ }", "type": "alloc_space" }), "does not measure time"),
        (json!({ "target": "{ }", "format": "pdf" }), "format"),
        (json!({ "target": "{ }", "before": "now-2h..now-1h" }), "after"),
        (json!({ "target": "{ }", "before": "now..now-1h", "after": "now-1h..now" }), "before"),
        (json!({ "target": "{ }", "colour": "red" }), "colour"),
        (json!({ "target": "00000000000000000000000000000001" }), "no trace"),
    ] {
        let answer = server.post("/api/v1/explain", "application/json", body.to_string().as_bytes()).unwrap();
        assert!((400..500).contains(&answer.status), "{body}: {} {}", answer.status, answer.text());
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        let text = format!("{error}");
        assert!(text.contains(said), "{body}: {text}");
    }
    let none = server.post_json("/api/v1/explain", &json!({ "target": "{ name = \"nothing has this name\" }" }));
    assert_eq!(none["verdict"], "not_enough_data");
}

/// Scenario: planted causes of many kinds, all in one store, compacted or not, each with its slowest requests in question.
/// Guarantee: through the store and the public API, too, each planted cause is the first.
#[test]
fn planted_causes_are_found_in_the_store() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let wanted = |scenario: &&scenarios::Scenario| {
        scenario.picked == Picked::Duration && !matches!(scenario.planted, Planted::Nothing)
    };
    let all = scenarios::all();
    let mut asked = Vec::new();
    for (number, scenario) in all.iter().filter(wanted).enumerate().step_by(2) {
        let mut vocabulary = Vocabulary::default();
        let requests = make(&mut vocabulary, 240, scenario.slow_share, number as u64 + 1, scenario.make);
        let prefix = format!("w{number}-");
        Sending { vocabulary: &vocabulary, prefix: prefix.clone(), shift: shift_to_now(&requests), linked: true }
            .send(&server, &requests);
        let mut durations: Vec<i64> = requests.iter().map(Request::duration).collect();
        durations.sort_unstable();
        let root = vocabulary.operation_of(requests[0].spans[0].operation);
        asked.push((
            scenario,
            format!("{prefix}{}", vocabulary.text_of(root.service)),
            vocabulary.text_of(root.name).to_owned(),
            durations[durations.len() * 93 / 100] / 1000,
        ));
    }
    let mut wrong = Vec::new();
    for (scenario, service, operation, slow_micros) in &asked {
        let target = format!(
            "{{ resource.service.name = \"{service}\" && name = \"{operation}\" && duration > {slow_micros}us }}"
        );
        let answer = server.post_json("/api/v1/explain", &json!({ "target": target, "from": "now-2h" }));
        let cause = &answer["causes"][0];
        let is_planted = match scenario.planted {
            Planted::Function(function, kind) => cause["function"] == function && cause["kind"] == kind,
            Planted::Operation(operation, kind) => cause["operation"] == operation && cause["kind"] == kind,
            Planted::Nothing => false,
        };
        if !is_planted {
            wrong
                .push(format!("{}: wanted {:?}, found {cause:#} {}", scenario.name, scenario.planted, answer["notes"]));
        }
    }
    assert!(asked.len() >= 12, "{}", asked.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scenario: `calculateTax` parses too much for half an hour, is fixed, and is asked about before and after.
/// Guarantee: the answer is "faster", with the function that the fix took away; the other way round it is "slower".
#[test]
fn a_fix_is_seen_before_and_after() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let mut vocabulary = Vocabulary::default();
    let broken = make(&mut vocabulary, 60, 1.0, 5, checkout);
    let fixed = make(&mut vocabulary, 60, 0.0, 6, checkout);
    let now = now_nanos() as i64;
    for (requests, end) in [(&broken, now - 1800 * SECOND), (&fixed, now - 60 * SECOND)] {
        let last = requests.iter().map(|request| request.spans[0].end).max().unwrap();
        Sending { vocabulary: &vocabulary, prefix: String::new(), shift: end - last, linked: true }
            .send(&server, requests);
    }
    let [first, second] = ["now-45m..now-29m", "now-20m..now"];
    let ask = |before: &str, after: &str| {
        let target = "{ name = \"POST /api/checkout\" }";
        server.post_json("/api/v1/explain", &json!({ "target": target, "before": before, "after": after }))
    };
    for (before, after, change) in [(first, second, "faster"), (second, first, "slower")] {
        let answer = ask(before, after);
        assert_eq!(answer["comparison"]["change"], change, "{answer:#}");
        assert_eq!(answer["causes"][0]["function"], "main.lookupTaxRate", "{answer:#}");
        let functions = answer["comparison"]["functions"].as_array().unwrap();
        let lookup = functions.iter().find(|function| function["function"] == "main.lookupTaxRate").unwrap();
        assert_eq!(lookup["delta_ms"].as_f64().unwrap() < 0.0, change == "faster");
        let interval = answer["comparison"]["interval_ms"].as_array().unwrap();
        assert!(interval[0].as_f64().unwrap() * interval[1].as_f64().unwrap() > 0.0, "{interval:?}");
    }
    assert_eq!(ask("now-20m..now-8m", "now-8m..now")["comparison"]["change"], "same");

    // On a terminal and for a ticket, the two times are called by what they are.
    for (before, after, slower) in [(first, second, "before"), (second, first, "after")] {
        let command = |format: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
            command.args(["explain", "--before", before, "--after", after, "{ name = \"POST /api/checkout\" }"]);
            let server = format!("http://{}", server.http);
            let output = command.args(["--format", format, "--server", &server]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let text = command("text");
        assert!(text.starts_with(if slower == "before" { "Faster: " } else { "Slower: " }), "{text}");
        assert!(text.contains(&format!("60 requests {slower} of ")), "{text}");
        assert!(text.contains(&format!("\nA request {slower}: spans, then code and waits\n")), "{text}");
        let markdown = command("markdown");
        assert!(markdown.starts_with("## Did the change help?"), "{markdown}");
        assert!(markdown.contains(&format!("| where the time goes | a request {slower} |")), "{markdown}");
        for shown in [text, markdown] {
            assert!(!shown.contains("fast") && shown.contains("main.lookupTaxRate"), "{shown}");
        }
    }
}
