//! The join by public API: spans that a query selects lead to their code.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use std::process::Command;

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
fn send_orders(server: &Server) {
    let now = now_nanos();
    let start_of = |trace: u8| now - 60_000 * MS + u64::from(trace) * 2000 * MS;
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

fn started() -> (tempfile::TempDir, Server) {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    send_orders(&server);
    (store, server)
}

/// Scenario: the same spans with every scope, cohorts that are halves of another, compared cohorts, mistakes.
/// Guarantee: each scope holds exactly the samples it names and the one before; halves sum up to the whole; a cohort
/// differs from itself by nothing; slow differs from fast by the planted function, for one request.
#[test]
fn cohorts_lead_to_their_code() {
    let (_store, server) = started();
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
    assert!(exactness["coverage"].as_f64().unwrap() > 0.0, "{exactness}");

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
}

/// Scenario: a trace, a function, endpoints and services are asked what their code costs.
/// Guarantee: the planted milliseconds, for each span, operation and service, and the way back to example traces.
#[test]
fn code_leads_back_to_traces() {
    let (_store, server) = started();
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
    assert_eq!(order["cpu_series"].as_array().unwrap().len(), 48);

    let flame = ask_json(&server, "/api/v1/cohort/flame", &json!({ "query": "{ name = \"calculate\" }" }));
    let names = flame["flamebearer"]["names"].as_array().unwrap();
    let at = names.iter().position(|name| name == "json.Unmarshal").unwrap();
    assert_eq!(flame["flamebearer"]["frames"][at], json!({ "file": "json.Unmarshal.rs", "line": 7 }));
    assert_eq!(flame["flamebearer"]["frames"].as_array().unwrap().len(), names.len());
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
    let (_store, server) = started();
    let (ok, table, error) = hotspan(&server, &["query", "{ name = \"calculate\" && duration > 500ms }"]);
    assert!(ok && table.lines().count() == 5 && table.contains("POST /order"), "{table}{error}");
    let (ok, top, _) = hotspan(&server, &["query", "{ name = \"calculate\" } | top(3, cpu)"]);
    assert!(ok && top.contains("json.Unmarshal"), "{top}");
    let (ok, flame, _) = hotspan(&server, &["query", "{ name = \"place\" } | flame(cpu)", "--scope", "subtree"]);
    assert!(ok && flame.contains("price") && flame.contains("lookupTaxRate"), "{flame}");
    let slow = "{ name = \"calculate\" && duration > 500ms } | diff({ name = \"calculate\" && duration < 500ms }, cpu)";
    let (ok, diff, _) = hotspan(&server, &["query", slow]);
    assert!(ok && diff.contains("json.Unmarshal") && diff.contains("4 against 8"), "{diff}");
    let (ok, json, _) = hotspan(&server, &["query", "{ name = \"calculate\" } | top(3, cpu)", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(ok && json["functions"][0]["function"] == "json.Unmarshal", "{json}");
    let (ok, rates, _) = hotspan(&server, &["query", "{ } | count_over_time() by(resource.service.name)"]);
    assert!(ok && rates.contains("order") && rates.contains("12"), "{rates}");
    let (ok, spans, _) = hotspan(&server, &["spans-of", "lookupTaxRate"]);
    assert!(ok && spans.contains("calculate") && spans.contains("400ms"), "{spans}");
    let (ok, spans, _) = hotspan(&server, &["spans-of", "lookupTax"]);
    assert!(ok && spans.contains("--regex"), "{spans}");
    let (ok, _, error) = hotspan(&server, &["query", "{ duraton > 1s }"]);
    assert!(!ok && error.contains('^') && error.contains("duration"), "{error}");
    let (ok, _, error) = hotspan(&server, &["query", "{ }", "--server", "http://127.0.0.1:1"]);
    assert!(!ok && error.contains("hotspan serve") && error.contains("--server"), "{error}");
}
