//! The join by public API: spans that a query selects lead to their code.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::profiles::v1development::KeyValueAndUnit;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::{Server, TestSample, now_nanos, profile_request, text_attribute, trace_request};

const MS: u64 = 1_000_000;
const TRACES: u8 = 12;

fn trace_id(number: u8) -> [u8; 16] {
    [number + 1; 16]
}

/// Ids of the three spans of each trace. They are the same in every trace, so that only trace and span together tell
/// spans apart.
const FRONT: [u8; 8] = [1; 8];
const ORDER: [u8; 8] = [2; 8];
const TAX: [u8; 8] = [3; 8];

fn is_slow(trace: u8) -> bool {
    trace.is_multiple_of(3)
}

/// CPU of a span in milliseconds, by construction.
fn cpu_ms(trace: u8, span: [u8; 8]) -> i64 {
    match span {
        FRONT => 2,
        ORDER => 5 + i64::from(trace),
        _ if is_slow(trace) => 400,
        _ => 10,
    }
}

/// Twelve orders. Each is a span of `front`, which calls `order`, which calls `tax`; every third is slow, since `tax`
/// parses. `order` also does something that belongs to no span while each order runs.
fn send_orders(server: &Server) -> u64 {
    let now = now_nanos();
    let start_of = |trace: u8| now - 60_000 * MS + u64::from(trace) * 2000 * MS;
    #[expect(clippy::type_complexity, reason = "a table is read by its columns")]
    let services: [(&str, [u8; 8], &[u8], &str, u64, &[&str]); 3] = [
        ("front", FRONT, &[], "POST /order", 0, &["main", "route"]),
        ("order", ORDER, &FRONT, "place", 1, &["main", "place", "price"]),
        ("tax", TAX, &ORDER, "calculate", 2, &["main", "lookupTaxRate", "json.Unmarshal"]),
    ];
    for (service, span_id, parent, name, inset, stack) in services {
        let span = |trace: u8| Span {
            trace_id: trace_id(trace).to_vec(),
            span_id: span_id.to_vec(),
            parent_span_id: parent.to_vec(),
            name: name.to_owned(),
            kind: 2,
            start_time_unix_nano: start_of(trace) + inset * MS,
            end_time_unix_nano: start_of(trace) + if is_slow(trace) { 900 * MS } else { 50 * MS } - inset * MS,
            attributes: vec![text_attribute("customer", &format!("customer-{}", trace % 2))],
            ..Span::default()
        };
        let body = trace_request(service, (0..TRACES).map(span).collect()).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
        let mut samples = Vec::new();
        for trace in 0..TRACES {
            let (value, time) = (cpu_ms(trace, span_id) * MS as i64, start_of(trace) + 10 * MS);
            let trace_id = trace_id(trace);
            samples.push(TestSample { stack, value: value / 2, time, trace_id, span_id });
            samples.push(TestSample { stack, value: value - value / 2, time: time + MS, trace_id, span_id });
            if service == "order" {
                for time in [time, time + 1500 * MS] {
                    let stack = &["main", "gc"];
                    samples.push(TestSample { stack, value: MS as i64, time, trace_id: [0; 16], span_id: [0; 8] });
                }
            }
        }
        let body = profile_request(service, span_id.repeat(2).try_into().unwrap(), &samples).encode_to_vec();
        let answer = server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    now
}

fn ask(server: &Server, path: &str, body: &Value) -> support::Answer {
    server.post(path, "application/json", body.to_string().as_bytes()).unwrap()
}

fn ask_json(server: &Server, path: &str, body: &Value) -> Value {
    let answer = ask(server, path, body);
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// Self values by function of a flamebearer answer: of its one side, or of the side asked for.
fn by_function(answer: &Value, side: usize) -> BTreeMap<String, i64> {
    let names = answer["flamebearer"]["names"].as_array().unwrap();
    let width = if answer["metadata"]["format"] == "double" { 7 } else { 4 };
    let mut sums = BTreeMap::new();
    for level in answer["flamebearer"]["levels"].as_array().unwrap() {
        for bar in level.as_array().unwrap().chunks(width) {
            let name = names[bar[width - 1].as_u64().unwrap() as usize].as_str().unwrap();
            *sums.entry(name.to_owned()).or_insert(0) += bar[3 * side + 2].as_i64().unwrap();
        }
    }
    sums.retain(|_, value| *value != 0);
    sums
}

fn total(answer: &Value) -> i64 {
    answer["flamebearer"]["numTicks"].as_i64().unwrap()
}

fn started() -> (tempfile::TempDir, Server, u64) {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let sent = send_orders(&server);
    (store, server, sent)
}

/// Scenario: the same spans with every scope, cohorts that are halves of another, compared cohorts, mistakes.
/// Guarantee: each scope holds exactly the samples it names and the one before; halves sum up to the whole; a cohort
/// differs from itself by nothing; slow differs from fast by the planted function, for one request.
#[test]
fn cohorts_lead_to_their_code() {
    let (_store, server, sent) = started();
    let sum = |span: [u8; 8], of: &dyn Fn(u8) -> bool| -> i64 {
        (0..TRACES).filter(|trace| of(*trace)).map(|trace| cpu_ms(trace, span) * MS as i64).sum()
    };
    let all = |_: u8| true;

    // Scopes.
    let scope = |scope: &str| {
        let body = json!({ "query": "{ name = \"place\" }", "type": "cpu", "scope": scope });
        ask_json(&server, "/api/v1/cohort/flame", &body)
    };
    let (span, subtree, trace, process) = (scope("span"), scope("subtree"), scope("trace"), scope("process"));
    assert_eq!(total(&span), sum(ORDER, &all));
    assert_eq!(by_function(&span, 0), BTreeMap::from([("price".to_owned(), sum(ORDER, &all))]));
    assert_eq!(total(&subtree), sum(ORDER, &all) + sum(TAX, &all));
    assert_eq!(total(&trace), sum(FRONT, &all) + sum(ORDER, &all) + sum(TAX, &all));
    let of_process =
        BTreeMap::from([("price".to_owned(), sum(ORDER, &all)), ("gc".to_owned(), i64::from(TRACES) * MS as i64)]);
    assert_eq!(by_function(&process, 0), of_process);
    let exactness = &span["exactness"];
    assert_eq!((&exactness["spans"], &exactness["spans_with_samples"]), (&json!(12), &json!(12)));
    assert_eq!((&exactness["samples"], &exactness["linked_samples"]), (&json!(24), &json!(24)));
    // Spans below the selected ones are counted as what they are: there are more of them than were selected.
    let beyond = &subtree["exactness"];
    assert_eq!((&beyond["spans"], &beyond["scope_spans_with_samples"]), (&json!(12), &json!(24)));
    assert_eq!(beyond["spans_with_samples"], Value::Null, "{beyond}");
    // Coverage is the same in every answer: time in samples as a share of the spans' duration.
    let coverage = |path: &str| {
        let answer = ask_json(&server, path, &json!({ "query": "{ name = \"calculate\" && duration > 500ms }" }));
        answer["exactness"]["coverage"].as_f64().unwrap()
    };
    let (of_flame, of_ledger) = (coverage("/api/v1/cohort/flame"), coverage("/api/v1/cohort/ledger"));
    assert!(of_flame > 0.0 && (of_flame - of_ledger).abs() < 1e-6, "{of_flame} and {of_ledger}");

    // Every way to select: filters, structure, aggregates.
    let selected = |query: &str| total(&ask_json(&server, "/api/v1/cohort/flame", &json!({ "query": query })));
    let slow_tax = sum(TAX, &is_slow);
    assert_eq!(selected("{ resource.service.name = \"tax\" && duration > 500ms }"), slow_tax);
    assert_eq!(
        selected("{ resource.service.name = \"front\" && duration > 500ms } >> { name = \"calculate\" }"),
        slow_tax
    );
    assert_eq!(selected("{ duration > 500ms && resource.service.name = \"tax\" } | count() > 0"), slow_tax);
    assert_eq!(selected("{ name = \"nothing like it\" }"), 0);

    // Halves.
    let [first, second] = ["customer-0", "customer-1"]
        .map(|customer| selected(&format!("{{ resource.service.name = \"tax\" && .customer = \"{customer}\" }}")));
    assert_eq!(first + second, selected("{ resource.service.name = \"tax\" }"));

    // Comparisons.
    let same = json!({ "query": "{ name = \"calculate\" }", "baseline": "{ name = \"calculate\" }" });
    let same = ask_json(&server, "/api/v1/cohort/diff", &same);
    assert_eq!(by_function(&same, 0), by_function(&same, 1));
    assert_eq!(same["left"], same["right"]);
    let slow = json!({ "query": "{ name = \"calculate\" && duration > 500ms } | diff({ name = \"calculate\" && duration < 500ms }, cpu)" });
    let slow = ask_json(&server, "/api/v1/cohort/diff", &slow);
    assert_eq!(by_function(&slow, 0)["json.Unmarshal"], 10 * MS as i64);
    assert_eq!(by_function(&slow, 1)["json.Unmarshal"], 400 * MS as i64);
    assert_eq!((&slow["left"]["spans"], &slow["right"]["spans"]), (&json!(8), &json!(4)));
    assert_eq!(slow["leftTicks"], json!(10 * MS));
    assert_eq!((&slow["exactness"]["pruned_nodes"], &slow["exactness"]["pruned_value"]), (&json!(0), &json!(0)));
    let folded = json!({ "query": "{ name = \"calculate\" && duration > 500ms }", "baseline": "{ name = \"calculate\" && duration < 500ms }", "max_nodes": 1 });
    let folded = ask_json(&server, "/api/v1/cohort/diff", &folded);
    assert_eq!((&folded["leftTicks"], &folded["rightTicks"]), (&slow["leftTicks"], &slow["rightTicks"]));
    for (side, requests, milliseconds) in [("baseline_exactness", 8, 10), ("exactness", 4, 400)] {
        let told = &folded[side];
        assert_eq!((&told["pruned_nodes"], &told["pruned_value"]), (&json!(2), &json!(requests * milliseconds * MS)));
    }

    let start_of = |trace: u64| sent - 60_000 * MS + trace * 2000 * MS;
    let halves = json!({
        "query": "{ name = \"place\" }", "from": start_of(6), "to": sent,
        "baseline": "{ name = \"place\" }", "baseline_from": start_of(0), "baseline_to": start_of(6),
    });
    let halves = ask_json(&server, "/api/v1/cohort/diff", &halves);
    assert_eq!((&halves["left"]["spans"], &halves["right"]["spans"]), (&json!(6), &json!(6)));
    let of_half = |is_second: bool| sum(ORDER, &move |trace: u8| (trace >= 6) == is_second);
    assert_eq!((&halves["left"]["value"], &halves["right"]["value"]), (&json!(of_half(false)), &json!(of_half(true))));

    // Tables.
    let top = json!({ "query": "{ name =~ \"place|calculate\" } | top(1, cpu)" });
    for path in ["/api/v1/cohort/top", "/api/v1/cohort"] {
        let top = ask_json(&server, path, &top);
        let row = &top["functions"][0];
        assert_eq!(
            (&row["function"], &row["file"], &row["line"]),
            (&json!("json.Unmarshal"), &json!("json.Unmarshal.rs"), &json!(7))
        );
        assert_eq!(row["self"], json!(sum(TAX, &all)));
        assert_eq!(row["total_per_request"], json!(sum(TAX, &all) as f64 / 24.0));
        assert_eq!((top["functions"].as_array().unwrap().len(), &top["left_out"]), (1, &json!(4)));
    }

    // Whole traces, whichever of their spans is selected.
    let costs = json!({ "query": "{ name = \"place\" && duration > 500ms }" });
    let costs = ask_json(&server, "/api/v1/cohort/traces", &costs);
    let traces = costs["traces"].as_object().unwrap();
    assert_eq!((traces.len(), &costs["exactness"]["spans"]), (4, &json!(4)));
    for trace in (0..TRACES).filter(|trace| is_slow(*trace)) {
        let cost = &traces[&format!("{:02x}", trace + 1).repeat(16)];
        let cpu: i64 = [FRONT, ORDER, TAX].map(|span| cpu_ms(trace, span)).iter().sum();
        assert_eq!((&cost["cpu_ns"], &cost["samples"]), (&json!(cpu * MS as i64), &json!(6)), "{cost}");
    }

    // Other formats.
    for (format, part) in
        [("text", "json.Unmarshal"), ("collapsed", "main;lookupTaxRate;json.Unmarshal "), ("svg", "<svg")]
    {
        let answer =
            ask(&server, "/api/v1/cohort/flame", &json!({ "query": "{ name = \"calculate\" }", "format": format }));
        assert!(answer.status == 200 && answer.text().contains(part), "{format}: {}", answer.text());
    }

    // Mistakes.
    let refused = |path: &str, body: Value, part: &str| {
        let answer = ask(&server, path, &body);
        assert!(answer.status == 400 && answer.text().contains(part), "{body}: {} {}", answer.status, answer.text());
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let mistake = refused("/api/v1/cohort/flame", json!({ "query": "{ näme = 1 && duraton > 1s }" }), "error");
    assert_eq!((&mistake["position"], &mistake["field"]), (&json!(2), &json!("query")));
    let mistake = refused("/api/v1/cohort/flame", json!({ "query": "{ .ä = 1 && duraton > 1s }" }), "duration");
    assert_eq!((&mistake["position"], &mistake["suggestion"]), (&json!(12), &json!("duration")));
    refused("/api/v1/cohort/flame", json!({ "query": "{ }", "scope": "planet" }), "subtree");
    refused("/api/v1/cohort/flame", json!({ "query": "{ }", "type": "x" }), "type: ");
    refused("/api/v1/cohort/flame", json!({ "query": "{ }", "tpye": "cpu" }), "tpye");
    refused("/api/v1/cohort/flame", json!({ "query": "{ }", "from": 9, "to": 5 }), "before");
    refused("/api/v1/cohort/flame", json!({ "query": "{ } | rate()" }), "metrics");
    refused("/api/v1/cohort/flame", json!({ "query": "{ } | top(5, cpu)" }), "/api/v1/cohort/top");
    refused("/api/v1/cohort/diff", json!({ "query": "{ }" }), "baseline");
    refused("/api/v1/cohort", json!({ "query": "{ }" }), "flame(cpu)");
    let backwards = json!({ "query": "{ }", "baseline": "{ }", "baseline_from": 9, "baseline_to": 5 });
    refused("/api/v1/cohort/diff", backwards, "baseline_from");
}

/// Scenario: a trace, a function, endpoints and services are asked what their code costs.
/// Guarantee: the planted milliseconds, for each span, operation and service, and the way back to example traces.
#[test]
fn code_leads_back_to_traces() {
    let (_store, server, _) = started();
    let ns = |milliseconds: i64| json!(milliseconds * MS as i64);
    let id = |span: [u8; 8]| format!("{:02x}", span[0]).repeat(8);

    let trace = format!("{:02x}", trace_id(3)[0]).repeat(16);
    let summary = server.get_json(&format!("/api/v1/trace/{trace}/profile-summary"));
    for span in [FRONT, ORDER, TAX] {
        let facts = &summary["spans"][id(span)];
        assert_eq!((&facts["cpu_ns"], &facts["samples"]), (&ns(cpu_ms(3, span)), &json!(2)), "{summary}");
    }
    assert_eq!(summary["total"]["cpu_ns"], ns(cpu_ms(3, FRONT) + cpu_ms(3, ORDER) + cpu_ms(3, TAX)));
    assert_eq!(summary["exactness"]["spans_with_samples"], 3);
    assert_eq!(server.get("/api/v1/trace/0badc0de/profile-summary").unwrap().status, 404);
    assert_eq!(server.get("/api/v1/trace/xyz/profile-summary").unwrap().status, 400);

    let all_tax: i64 = (0..TRACES).map(|trace| cpu_ms(trace, TAX)).sum();
    for (question, functions) in
        [("function=lookupTaxRate", 1), ("regex=lookup.*", 1), ("regex=json%5C..*%7Clookup.*", 2)]
    {
        let found = server.get_json(&format!("/api/v1/functions/spans?{question}&limit=4"));
        assert_eq!(found["functions"].as_array().unwrap().len(), functions, "{found}");
        let operation = &found["operations"][0];
        assert_eq!((&operation["service"], &operation["operation"]), (&json!("tax"), &json!("calculate")));
        assert_eq!((&operation["value"], &operation["spans"]), (&ns(all_tax), &json!(12)));
        assert_eq!((found["operations"].as_array().unwrap().len(), &found["span_count"]), (1, &json!(12)));
        let spans = found["spans"].as_array().unwrap();
        assert_eq!((spans.len(), &spans[0]["value"], &spans[0]["span_id"]), (4, &ns(400), &json!(id(TAX))));
        assert!(operation["traces"].as_array().unwrap().contains(&spans[0]["trace_id"]));
    }
    let outside = server.get_json("/api/v1/functions/spans?function=gc");
    assert_eq!((&outside["value"], &outside["unlinked_value"]), (&ns(24), &ns(24)));
    assert_eq!(server.get_json("/api/v1/functions/spans?function=nothing")["operations"], json!([]));
    assert_eq!(server.get("/api/v1/functions/spans").unwrap().status, 400);
    assert_eq!(server.get("/api/v1/functions/spans?regex=(").unwrap().status, 400);

    let endpoints = server.get_json("/api/v1/endpoints");
    let rows = endpoints["endpoints"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{endpoints}");
    assert_eq!(
        (&rows[0]["service"], &rows[0]["operation"], &rows[0]["requests"]),
        (&json!("tax"), &json!("calculate"), &json!(12))
    );
    assert_eq!(rows[0]["value"], ns(all_tax));
    assert_eq!(rows[0]["per_request"], json!(all_tax as f64 * MS as f64 / 12.0));
    assert_eq!(rows[0]["functions"][0]["function"], "json.Unmarshal");

    let services = server.get_json("/api/v1/services");
    let order = services["services"].as_array().unwrap().iter().find(|row| row["service"] == "order").unwrap();
    let all_order: i64 = (0..TRACES).map(|trace| cpu_ms(trace, ORDER)).sum();
    let close = |value: &Value, expected: f64| (value.as_f64().unwrap() / expected - 1.0).abs() < 1e-6;
    // The service did something for nobody besides; the operation did not.
    assert!(close(&order["cpu_ns_per_request"], (all_order + 24) as f64 * MS as f64 / 12.0), "{order}");
    assert!(close(&order["operations"][0]["cpu_ns_per_request"], all_order as f64 * MS as f64 / 12.0), "{order}");
    assert_eq!(order["cpu_series"].as_array().unwrap().len(), 60);
    // What an operation costs in each step, times its requests there, is what it costs in all.
    let operation = &order["operations"][0];
    let step_seconds = services["step_ns"].as_f64().unwrap() / 1e9;
    let spent = |step: usize| {
        let requests = (operation["rate_series"][step].as_f64().unwrap() * step_seconds).round();
        operation["cpu_ns_per_request_series"][step].as_f64().map_or(0.0, |nanos| nanos * requests)
    };
    assert!(close(&json!((0..60).map(spent).sum::<f64>()), all_order as f64 * MS as f64), "{operation}");

    let flame = ask_json(&server, "/api/v1/cohort/flame", &json!({ "query": "{ name = \"calculate\" }" }));
    let names = flame["flamebearer"]["names"].as_array().unwrap();
    let at = names.iter().position(|name| name == "json.Unmarshal").unwrap();
    assert_eq!(flame["flamebearer"]["frames"][at], json!({ "file": "json.Unmarshal.rs", "line": 7 }));
    assert_eq!(flame["flamebearer"]["frames"].as_array().unwrap().len(), names.len());
    // Callers that no sample was taken in have a place too.
    let frames = flame["flamebearer"]["frames"].as_array().unwrap();
    assert!(frames.iter().skip(1).all(|frame| frame["file"].is_string()), "{frames:?} of {names:?}");
}

/// Sends a request of `shop` with two steps, one after the other on thread 7. Its samples name the request alone, as
/// many profilers do; some name nothing, on thread 7 and on another one.
fn send_root_labelled(server: &Server) {
    let start = now_nanos() - 30_000 * MS;
    let trace_id = [9; 16];
    let span = |id: u8, parent: &[u8], name: &str, from: u64, until: u64| Span {
        trace_id: trace_id.to_vec(),
        span_id: vec![id; 8],
        parent_span_id: parent.to_vec(),
        name: name.to_owned(),
        kind: 2,
        start_time_unix_nano: start + from * MS,
        end_time_unix_nano: start + until * MS,
        attributes: vec![text_attribute("thread.name", "worker-7")],
        ..Span::default()
    };
    let root = [1; 8];
    let spans = vec![span(1, &[], "request", 0, 100), span(2, &root, "parse", 10, 40), span(3, &root, "store", 50, 90)];
    let body = trace_request("shop", spans).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    let sample = |stack: &'static [&'static str], value: i64, at: u64, linked: bool| TestSample {
        stack,
        value,
        time: start + at * MS,
        trace_id: if linked { trace_id } else { [0; 16] },
        span_id: if linked { root } else { [0; 8] },
    };
    let samples = [
        sample(&["main", "accept"], 1, 5, true),
        sample(&["main", "decode"], 20, 15, true),
        sample(&["main", "decode"], 30, 39, true),
        sample(&["main", "write"], 400, 60, true),
        sample(&["main", "fsync"], 5000, 70, false),
        sample(&["main", "elsewhere"], 60_000, 71, false),
    ];
    let mut request = profile_request("shop", [8; 16], &samples);
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.string_table.push("thread.name".to_owned());
    let key_strindex = dictionary.string_table.len() as i32 - 1;
    for name in ["worker-7", "worker-8"] {
        let value = Some(AnyValue { value: Some(AttributeValue::StringValue(name.to_owned())) });
        dictionary.attribute_table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
    }
    let profile = &mut request.resource_profiles[0].scope_profiles[0].profiles[0];
    for (number, sample) in profile.samples.iter_mut().enumerate() {
        sample.attribute_indices = vec![if number == 5 { 2 } else { 1 }];
    }
    let body = request.encode_to_vec();
    let answer = server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Scenario: a profiler that labels only the local root, and samples that name nothing, with every policy.
/// Guarantee: steps get what ran in them, told apart from what names them; what is not sure can be left out; each
/// sample counts for one span.
#[test]
fn links_that_samples_do_not_state() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    send_root_labelled(&server);
    let flame = |name: &str, links: Option<&str>| {
        let mut body = json!({ "query": format!("{{ name = \"{name}\" }}") });
        if let Some(links) = links {
            body["links"] = json!(links);
        }
        let answer = ask_json(&server, "/api/v1/cohort/flame", &body);
        let count = |key: &str| answer["exactness"][key].as_u64().unwrap();
        (total(&answer), count("linked_samples"), count("inherited"), count("inferred"))
    };
    assert_eq!(flame("request", Some("exact")), (451, 4, 0, 0));
    assert_eq!(flame("parse", Some("exact")), (0, 0, 0, 0));
    for policy in [None, Some("inherited")] {
        assert_eq!(flame("request", policy), (1, 1, 0, 0));
        assert_eq!(flame("parse", policy), (50, 0, 2, 0));
        assert_eq!(flame("store", policy), (400, 0, 1, 0));
    }
    assert_eq!(flame("store", Some("inferred")), (5400, 0, 1, 1));
    assert_eq!(flame("parse", Some("inferred")), (50, 0, 2, 0));
    let subtree = json!({ "query": "{ name = \"request\" }", "scope": "subtree" });
    assert_eq!(total(&ask_json(&server, "/api/v1/cohort/flame", &subtree)), 451);
    let trace = "09".repeat(16);
    let summary = server.get_json(&format!("/api/v1/trace/{trace}/profile-summary"));
    let facts = |span: u8| &summary["spans"][format!("{span:02x}").repeat(8)];
    assert_eq!((&facts(2)["cpu_ns"], &facts(2)["inherited"]), (&json!(50), &json!(2)), "{summary}");
    assert_eq!((&facts(1)["cpu_ns"], &facts(1)["inherited"]), (&json!(1), &json!(0)));
    let span = format!("/api/v1/profile?trace_id={trace}&span_id={}", "02".repeat(8));
    assert_eq!(total(&server.get_json(&span)), 50);
    assert_eq!(total(&server.get_json(&format!("{span}&links=exact"))), 0);
    assert_eq!(total(&server.get_json(&format!("{span}&scope=trace"))), 451);
    // Explanations count them apart as well, and take or leave them; what names the request at times of its steps counts for
    // neither by its word alone.
    for (links, counted) in [("exact", [1, 0, 0]), ("inherited", [1, 3, 0]), ("inferred", [1, 3, 1])] {
        let answer = ask_json(&server, "/api/v1/explain", &json!({ "target": trace, "links": links }));
        let samples = ["exact_samples", "inherited_samples", "inferred_samples"].map(|kind| &answer["coverage"][kind]);
        assert_eq!(json!(samples), json!(counted), "{links}: {answer:#}");
    }
    let refused = ask(&server, "/api/v1/cohort/flame", &json!({ "query": "{ }", "links": "guessed" }));
    assert!(refused.status == 400 && refused.text().contains("inferred"), "{}", refused.text());
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Scenario: searches, metrics and cohorts over what profiles know of spans.
/// Guarantee: CPU, samples, functions and files filter, select, group and aggregate like attributes.
#[test]
fn profile_facts_are_fields_of_spans() {
    let (_store, server, _) = started();
    let found = |query: &str| -> Vec<Value> {
        let answer = server.get_json(&format!("/api/search?limit=50&q={}", encode(query)));
        answer["traces"].as_array().unwrap().clone()
    };
    assert_eq!(found("{ profile.cpu > 200ms }").len(), 4);
    assert_eq!(found("{ profile.cpu > 200ms && resource.service.name = \"front\" }").len(), 0);
    assert_eq!(found("{ profile.function =~ \"json.*\" && profile.samples = 2 && duration > 500ms }").len(), 4);
    assert_eq!(found("{ profile.function = \"route\" }").len(), 12);
    assert_eq!(found("{ profile.file = \"lookupTaxRate.rs\" && name = \"place\" }").len(), 0);
    assert_eq!(found("{ name = \"place\" } > { profile.file = \"lookupTaxRate.rs\" }").len(), 12);
    assert_eq!(found("{ } | avg(profile.cpu) > 100ms").len(), 4);
    assert_eq!((found("{ profile.wall = 0s }").len(), found("{ profile.wall > 0s }").len()), (12, 0));
    let shown = found("{ name = \"calculate\" && duration > 500ms } | select(profile.cpu, profile.function)");
    let attributes = shown[0]["spanSets"][0]["spans"][0]["attributes"].to_string();
    assert!(attributes.contains("json.Unmarshal") && attributes.contains("400"), "{attributes}");

    let query = encode("{ } | sum_over_time(profile.cpu) by(resource.service.name)");
    let answer = server.get_json(&format!("/api/metrics/query?q={query}&start=now-1h&end=now"));
    let sums: BTreeMap<String, f64> = answer["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| {
            let service = series["labels"][0]["value"]["stringValue"].as_str().unwrap().to_owned();
            (service, series["value"].as_f64().unwrap())
        })
        .collect();
    let expected: i64 = (0..TRACES).map(|trace| cpu_ms(trace, TAX)).sum();
    let tax = sums["tax"];
    assert!(
        (tax - expected as f64 / 1000.0).abs() < 1e-6 || (tax - (expected * MS as i64) as f64).abs() < 1.0,
        "{sums:?}"
    );

    // A span stands in the group of each of its functions, as it is found by any of them.
    let grouped = found("{ name = \"calculate\" && duration > 500ms } | by(profile.function)");
    let sets = grouped[0]["spanSets"].as_array().unwrap();
    let mut groups: Vec<&str> =
        sets.iter().map(|set| set["attributes"][0]["value"]["stringValue"].as_str().unwrap()).collect();
    groups.sort_unstable();
    assert!(groups.len() > 1 && groups.contains(&"json.Unmarshal"), "{groups:?}");
    let query = encode("{ name = \"calculate\" } | count_over_time() by(profile.function)");
    let answer = server.get_json(&format!("/api/metrics/query?q={query}&start=now-1h&end=now"));
    let mut counted: Vec<(&str, f64)> = answer["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| {
            (series["labels"][0]["value"]["stringValue"].as_str().unwrap(), series["value"].as_f64().unwrap())
        })
        .collect();
    counted.sort_unstable_by_key(|(function, _)| *function);
    assert_eq!(counted, groups.iter().map(|function| (*function, f64::from(TRACES))).collect::<Vec<_>>());

    let body = json!({ "query": "{ profile.cpu > 200ms }" });
    assert_eq!(total(&ask_json(&server, "/api/v1/cohort/flame", &body)), 4 * 400 * MS as i64);
}

fn hotspan(server: &Server, arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args(arguments)
        .env("HOTSPAN_SERVER", format!("http://{}", server.http))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// Scenario: a person asks from a terminal: for traces, functions, a flame graph, a comparison, and makes mistakes.
/// Guarantee: tables and flame graphs for a terminal, JSON on request, and errors that say what to do.
#[test]
fn the_command_line_asks_too() {
    let (_store, server, _) = started();
    let (ok, table, error) = hotspan(&server, &["query", "{ name = \"calculate\" && duration > 500ms }"]);
    assert!(ok && table.lines().count() == 5 && table.contains("POST /order"), "{table}{error}");
    let (ok, top, _) = hotspan(&server, &["query", "{ name = \"calculate\" } | top(3, cpu)"]);
    assert!(ok && top.contains("json.Unmarshal"), "{top}");
    let (ok, flame, _) = hotspan(&server, &["query", "{ name = \"place\" } | flame(cpu)", "--scope", "subtree"]);
    assert!(ok && flame.contains("price") && flame.contains("lookupTaxRate"), "{flame}");
    let widest = |width: Value| {
        let query = "{ name = \"place\" } | flame(cpu)";
        let body = json!({ "query": query, "scope": "subtree", "format": "text", "width": width });
        let drawn = ask(&server, "/api/v1/cohort", &body).text();
        drawn.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest(json!(45)) <= 45 && widest(json!(null)) > 45, "the width of the terminal counts");
    let slow = "{ name = \"calculate\" && duration > 500ms } | diff({ name = \"calculate\" && duration < 500ms }, cpu)";
    let (ok, diff, _) = hotspan(&server, &["query", slow]);
    assert!(ok && diff.contains("json.Unmarshal") && diff.contains("4 spans against 8"), "{diff}");
    for sink in ["top(3, lock)", "flame(lock)"] {
        let (ok, told, _) = hotspan(&server, &["query", &format!("{{ name = \"calculate\" }} | {sink}")]);
        assert!(
            ok && told.contains("none of the 12 spans has samples of mutex:delay") && told.contains("subtree"),
            "{told}"
        );
        let (ok, told, _) = hotspan(&server, &["query", &format!("{{ name = \"nothing\" }} | {sink}")]);
        assert!(ok && told.contains("no span matches"), "{told}");
    }
    let (ok, json, _) = hotspan(&server, &["query", "{ name = \"calculate\" } | top(3, cpu)", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(ok && json["functions"][0]["function"] == "json.Unmarshal", "{json}");
    for scope in ["span", "subtree", "trace", "process"] {
        let ledger = ["query", "{ name = \"calculate\" } | ledger()", "--scope", scope];
        let (ok, text, error) = hotspan(&server, &ledger);
        assert!(ok && text.contains("requests") && text.contains("cpu"), "{scope}: {text}{error}");
        let (ok, json, error) = hotspan(&server, &[&ledger[..], &["--json"]].concat());
        let json: Value = serde_json::from_str(&json).unwrap();
        let parts = json["parts"].as_array().unwrap().iter().map(|part| part["ns"].as_i64().unwrap());
        assert!(ok && parts.sum::<i64>() == json["duration_ns"].as_i64().unwrap(), "{scope}: {json:#}{error}");
        for sink in ["flame(cpu)", "top(5, cpu)", "diff({ name = \"place\" }, cpu)"] {
            let (ok, text, error) =
                hotspan(&server, &["query", &format!("{{ name = \"calculate\" }} | {sink}"), "--scope", scope]);
            assert!(ok && !text.trim().is_empty(), "{scope} {sink}: {text}{error}");
        }
    }
    let (ok, rates, _) = hotspan(&server, &["query", "{ } | count_over_time() by(resource.service.name)"]);
    assert!(ok && rates.contains("order") && rates.contains("12"), "{rates}");
    let (ok, spans, _) = hotspan(&server, &["spans-of", "lookupTaxRate"]);
    assert!(ok && spans.contains("calculate") && spans.contains("400 ms"), "{spans}");
    let (ok, spans, _) = hotspan(&server, &["spans-of", "gc"]);
    assert!(ok && spans.ends_with("of it outside of spans\n") && !spans.contains("operation"), "{spans}");
    let (ok, spans, _) = hotspan(&server, &["spans-of", "Unmarshal"]);
    assert!(ok && spans.starts_with("json.Unmarshal\n") && spans.contains("calculate"), "{spans}");
    let select = "{ name = \"calculate\" && duration > 500ms } | select(profile.cpu, profile.function)";
    let (ok, shown, _) = hotspan(&server, &["query", select]);
    assert!(ok && shown.contains("profile.cpu=400ms  profile.function=") && shown.contains(" more"), "{shown}");
    let (ok, spans, _) = hotspan(&server, &["spans-of", "lookupTax"]);
    assert!(ok && spans.contains("--regex"), "{spans}");
    let (ok, _, error) = hotspan(&server, &["query", "{ duraton > 1s }"]);
    assert!(!ok && error.contains('^') && error.contains("duration"), "{error}");
    let (ok, _, error) = hotspan(&server, &["query", "{ }", "--server", "http://127.0.0.1:1"]);
    assert!(!ok && error.contains("hotspan serve") && error.contains("--server"), "{error}");
}
