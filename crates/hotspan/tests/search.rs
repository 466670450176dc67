//! TraceQL by Tempo's API: what a person with a slow service does, step by step.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message;
use serde_json::Value;
use support::{Server, now_nanos, percent_encoded, text_attribute, trace_request};

const MS: u64 = 1_000_000;

/// Ten orders; every third is slow, one fails. The root is in another service than its child.
fn send_orders(server: &Server, now: u64) {
    for number in 0..10u8 {
        let trace_id = vec![number + 1; 16];
        let start = now - 60_000 * MS + u64::from(number) * 1000 * MS;
        let length = if number % 3 == 0 { 800 * MS } else { 20 * MS };
        let root = Span {
            trace_id: trace_id.clone(),
            span_id: vec![1; 8],
            name: "POST /order".to_owned(),
            kind: 2,
            start_time_unix_nano: start,
            end_time_unix_nano: start + length + 5 * MS,
            ..Span::default()
        };
        let child = Span {
            trace_id,
            span_id: vec![2; 8],
            parent_span_id: vec![1; 8],
            name: "process_order".to_owned(),
            kind: 2,
            start_time_unix_nano: start + MS,
            end_time_unix_nano: start + MS + length,
            attributes: vec![text_attribute("customer", &format!("customer-{}", number % 2))],
            status: (number == 3).then(|| Status { code: 2, message: "declined".to_owned() }),
            ..Span::default()
        };
        for (service, span) in [("front", root), ("order-service", child)] {
            let body = trace_request(service, vec![span]).encode_to_vec();
            assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
        }
    }
}

fn search(server: &Server, query: &str) -> Vec<Value> {
    let answer = server.get_json(&format!("/api/search?limit=50&q={}", percent_encoded(query)));
    answer["traces"].as_array().unwrap().clone()
}

/// Scenario: search for slow spans, then read the trace, as in runbooks.
/// Guarantee: the slow ones, most recent first, each whole although its spans came in two requests.
#[test]
fn slow_spans_lead_to_their_traces() {
    let (_store, server) = Server::fresh();
    send_orders(&server, now_nanos());

    let slow = r#"{resource.service.name="order-service" && name="process_order" && duration>500ms}"#;
    let traces = search(&server, slow);
    let ids: Vec<&str> = traces.iter().map(|trace| trace["traceID"].as_str().unwrap()).collect();
    let expected: Vec<String> = [10, 7, 4, 1].iter().map(|number: &u8| format!("{number:02x}").repeat(16)).collect();
    assert_eq!(ids, expected);
    let first = &traces[0];
    assert_eq!(first["rootServiceName"], "front");
    assert_eq!(first["rootTraceName"], "POST /order");
    assert_eq!(first["durationMs"], 805);
    assert_eq!(first["spanSets"][0]["matched"], 1);
    assert_eq!(first["spanSets"][0]["spans"][0]["durationNanos"], "800000000");
    assert_eq!(first["serviceStats"]["order-service"]["spanCount"], 1);

    let trace = server.get_json(&format!("/api/traces/{}", ids[0]));
    let names: Vec<&str> = trace["batches"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|batch| batch["scopeSpans"].as_array().unwrap())
        .flat_map(|scope| scope["spans"].as_array().unwrap())
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["POST /order", "process_order"]);
}

/// Scenario: filters, structure, aggregates and metrics. Guarantee: each counts what it says.
#[test]
fn the_language_works_over_the_store() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    send_orders(&server, now);

    assert_eq!(search(&server, "{ }").len(), 10);
    assert_eq!(search(&server, "{ status = error }").len(), 1);
    assert_eq!(search(&server, r#"{ .customer = "customer-1" }"#).len(), 5);
    assert_eq!(search(&server, r#"{ span.customer =~ "customer-.*" && duration < 100ms }"#).len(), 6);
    let child_of_front =
        r#"{ resource.service.name = "front" } > { resource.service.name = "order-service" && duration > 500ms }"#;
    assert_eq!(search(&server, child_of_front).len(), 4);
    assert_eq!(search(&server, "{ } | count() > 1").len(), 10);
    assert_eq!(search(&server, "{ } | count() > 2").len(), 0);
    assert_eq!(search(&server, r#"{ trace:rootService = "front" && status = error }"#).len(), 1);

    let (start, end) = (now / 1_000_000_000 - 600, now / 1_000_000_000 + 10);
    let query = percent_encoded("{ } | count_over_time() by(resource.service.name)");
    let answer = server.get_json(&format!("/api/metrics/query?q={query}&start={start}&end={end}"));
    let series = answer["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    assert!(series.iter().all(|series| series["value"] == 10.0), "{series:?}");
    let query = percent_encoded("{ } | rate()");
    let answer = server.get_json(&format!("/api/metrics/query_range?q={query}&start={start}&end={end}&step=10s"));
    let samples = answer["series"][0]["samples"].as_array().unwrap();
    let total: f64 = samples.iter().map(|sample| sample["value"].as_f64().unwrap() * 10.0).sum();
    assert!((total - 20.0).abs() < 1e-6, "{total}");

    let query = percent_encoded("{ } | compare({ status = error })");
    let answer = server.get_json(&format!("/api/metrics/query?q={query}&start={start}&end={end}"));
    let selected: Vec<&Value> = answer["series"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|series| series["labels"][0]["value"]["stringValue"] == "selection")
        .collect();
    let label =
        |key: &str| selected.iter().find(|series| series["labels"][1]["key"] == key).map(|series| &series["labels"][1]);
    assert_eq!(label("span.customer").unwrap()["value"]["stringValue"], "customer-1", "{answer}");
    assert_eq!(label("resource.service.name").unwrap()["value"]["stringValue"], "order-service");
    let query = percent_encoded("({ } | count_over_time()) / (({ } | count_over_time()) - ({ } | count_over_time()))");
    let answer = server.get_json(&format!("/api/metrics/query?q={query}&start={start}&end={end}"));
    assert_eq!(answer["series"][0]["value"], "NaN", "{answer}");

    let tags = server.get_json("/api/v2/search/tags");
    let span_tags = tags["scopes"].as_array().unwrap().iter().find(|scope| scope["name"] == "span").unwrap();
    assert!(span_tags["tags"].as_array().unwrap().contains(&"customer".into()));
    let values = server.get_json("/api/v2/search/tag/resource.service.name/values");
    assert_eq!(values["tagValues"].as_array().unwrap().len(), 2);
    let values = server.get_json("/api/search/tag/customer/values");
    assert_eq!(values["tagValues"], serde_json::json!(["customer-0", "customer-1"]));

    let services = server.get_json("/api/v1/services");
    let order = services["services"].as_array().unwrap().iter().find(|row| row["service"] == "order-service").unwrap();
    assert_eq!((&order["requests"], &order["error_count"]), (&10.into(), &1.into()));
    let p99 = order["p99_ns"].as_f64().unwrap();
    assert!((p99 / 8e8 - 1.0).abs() < 0.01, "{p99}");
}

/// Scenario: a minute cut into steps of a second, in each of the first ten of which one order of known length is answered.
/// Guarantee: each step tells its own rate, errors and percentiles, of the service and of its operation; silence has none.
#[test]
fn services_tell_their_percentiles_over_time() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    send_orders(&server, now);
    let (start, end) = (now - 60_000 * MS, now);
    let answer = server.get_json(&format!("/api/v1/services?start={start}&end={end}"));
    assert_eq!(answer["step_ns"], 1_000_000_000, "{answer}");
    let order = answer["services"].as_array().unwrap().iter().find(|row| row["service"] == "order-service").unwrap();
    for row in [order, &order["operations"][0]] {
        for step in 0..60 {
            let length = if step % 3 == 0 { 800e6 } else { 20e6 };
            for series in ["p50_series", "p95_series", "p99_series"] {
                let nanos = row[series][step].as_f64();
                let is_right = nanos.map_or(step >= 10, |nanos| step < 10 && (nanos / length - 1.0).abs() < 0.006);
                assert!(is_right, "{series}[{step}] is {nanos:?}");
            }
            assert_eq!(row["rate_series"][step], if step < 10 { 1.0 } else { 0.0 });
            assert_eq!(row["errors_series"][step], u64::from(step == 3));
        }
        assert_eq!(row["p50_series"].as_array().unwrap().len(), 60);
    }
    assert_eq!(order["operations"].as_array().unwrap().len(), 1);
}

/// Scenario: a service that puts an id into the name of every operation.
/// Guarantee: so many are told apart and no more, all others stand in one row, and every request is counted.
#[test]
fn endless_operations_share_one_row() {
    let (_store, server) = Server::fresh();
    let start = now_nanos() - 60_000 * MS;
    let spans = (0..700u64).map(|number| Span {
        trace_id: u128::from(number + 1).to_be_bytes().to_vec(),
        span_id: (number + 1).to_be_bytes().to_vec(),
        name: format!("GET /orders/{number}"),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + MS,
        ..Span::default()
    });
    let body = trace_request("order-service", spans.collect()).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    let service = &server.get_json("/api/v1/services")["services"][0];
    let operations = service["operations"].as_array().unwrap();
    let rest = operations.iter().find(|row| row["is_rest"] == true).unwrap();
    assert_eq!((operations.len(), &rest["requests"], &service["requests"]), (501, &200.into(), &700.into()));
}

/// Scenario: queries that can't be understood. Guarantee: 400, plain text, with the place of the mistake.
#[test]
fn mistakes_are_pointed_at() {
    let (_store, server) = Server::fresh();
    let answer = server.get(&format!("/api/search?q={}", percent_encoded("{ duraton > 1s }"))).unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("duration") && answer.text().contains('^'), "{}", answer.text());
    assert_eq!(server.get("/api/search?q=%7B%7D&start=5").unwrap().status, 400);
    assert_eq!(server.get("/api/search?q=%7B%7D&start=9&end=5").unwrap().status, 400);
    assert_eq!(server.get("/api/v2/search/tags?scope=planet").unwrap().status, 400);
    assert_eq!(server.get("/api/v2/search/tag/%7B%7D/values").unwrap().status, 400);
    assert_eq!(server.get("/api/metrics/query_range?q=%7B%7D").unwrap().status, 400);
    let many = format!("/api/metrics/query_range?q={}&start=0&end=1000000000&step=1ms", percent_encoded("{}|rate()"));
    let answer = server.get(&many).unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("10"), "{}", answer.text());
}
