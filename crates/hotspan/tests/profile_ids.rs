//! Profiles by the ids of spans, traces and profiles, wherever an API takes them: whichever of them the samples name.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::querier::{CPU, always, ask, ask_json, ingest_stacks};
use support::{Server, now_nanos, percent_encoded};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const OTHER_SPAN: &str = "00f067aa0ba902b8";

/// A trace of two spans: samples of one name span and trace (1 ns), others only their span (70 and 200 ns); besides,
/// samples of a span in another trace, and of nobody.
fn shop() -> (tempfile::TempDir, Server, u64) {
    let (store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 / 60 * 60 - 600;
    let (start_time, end_time) = (format!("{now}000000000"), format!("{}000000000", now + 2));
    let span = |id: &str| {
        json!({ "traceId": TRACE, "spanId": id, "name": "checkout", "kind": 2,
            "startTimeUnixNano": start_time, "endTimeUnixNano": end_time })
    };
    let service = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "shop" } }] });
    let spans = [span(SPAN), span(OTHER_SPAN), span("00f067aa0ba902b9")];
    let spans = json!({ "resourceSpans": [{ "resource": service, "scopeSpans": [{ "spans": spans }] }] });
    assert_eq!(server.post("/v1/traces", "application/json", spans.to_string().as_bytes()).unwrap().status, 200);
    ingest_stacks(&server, &format!("shop.cpu{{span_id={SPAN}}}"), now, "main;hot 50\nmain;warm 20");
    ingest_stacks(&server, &format!("shop.cpu{{span_id={SPAN},trace_id={TRACE}}}"), now, "main;named 1");
    ingest_stacks(&server, &format!("shop.cpu{{span_id={OTHER_SPAN}}}"), now + 120, "main;late 200");
    ingest_stacks(&server, "shop.cpu{span_id=00000000000000ff}", now, "main;elsewhere 1000");
    ingest_stacks(&server, "shop.cpu", now, "main;nobody 10000");
    (store, server, now)
}

fn flame_total(server: &Server, selectors: &Value) -> i64 {
    let mut message = always(json!({ "profileTypeID": CPU, "labelSelector": "{}" }));
    message.as_object_mut().unwrap().extend(selectors.as_object().unwrap().clone());
    let graph = ask_json(server, "SelectMergeStacktraces", &message);
    graph["flamegraph"]["total"].as_str().unwrap().parse().unwrap()
}

/// Scenario: samples that name their span but not its trace, as many SDKs do, and questions about the trace: one by
/// one, as flame graph, as pprof, in a label, before and after a restart.
/// Guarantee: they are found through the spans of the trace, each once, with the trace they belong to.
#[test]
fn samples_of_a_trace_by_its_spans() {
    let (store, server, _) = shop();
    let check = |server: &Server| {
        let samples = server.get_json(&format!("/api/v1/profiles?trace_id={TRACE}&start_time=now-1h&end_time=now"));
        assert_eq!(samples["total"], 4, "{samples}");
        for sample in samples["samples"].as_array().unwrap() {
            assert!(sample["span_id"] == SPAN || sample["span_id"] == OTHER_SPAN, "{sample}");
            assert_eq!(sample["trace_id"], TRACE, "{sample}");
        }
        assert_eq!(flame_total(server, &json!({ "traceIdSelector": [TRACE] })), 271);
        assert_eq!(flame_total(server, &json!({ "labelSelector": format!("{{trace_id=\"{TRACE}\"}}") })), 271);
        let collapsed = server.get(&format!("/api/v1/profile?trace_id={TRACE}&format=collapsed")).unwrap().text();
        let mut lines: Vec<&str> = collapsed.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["main;hot 50", "main;late 200", "main;named 1", "main;warm 20"]);
        let merged = always(json!({ "profileTypeID": CPU, "labelSelector": "{}", "traceIdSelector": [TRACE] }));
        let merged = ask_json(server, "SelectMergeProfile", &merged);
        assert_eq!(merged["sample"].as_array().unwrap().len(), 4, "{merged}");
    };
    check(&server);
    drop(server);
    let server = Server::start_with(store.path(), &["--compact-after", "100ms"]);
    server.wait_ready();
    server.wait_compacted();
    check(&server);
}

/// Scenario: every combination of selectors by span, trace and profile, with ids that fit together and that do not.
/// Guarantee: each narrows the others down; nothing else is counted.
#[test]
fn selectors_narrow_each_other_down() {
    let (_store, server, _) = shop();
    let total = |selectors: Value| flame_total(&server, &selectors);
    assert_eq!(total(json!({ "spanSelector": [SPAN] })), 71);
    assert_eq!(total(json!({ "spanSelector": [SPAN, OTHER_SPAN] })), 271);
    assert_eq!(total(json!({ "spanSelector": [SPAN], "traceIdSelector": [TRACE] })), 71);
    assert_eq!(total(json!({ "spanSelector": [SPAN], "traceIdSelector": ["77"] })), 70, "what names no trace");
    assert_eq!(total(json!({ "traceIdSelector": ["77"] })), 0);
    let samples = server.get_json(&format!("/api/v1/profiles?span_id={OTHER_SPAN}"));
    let profile = samples["samples"][0]["profile_id"].as_str().unwrap();
    assert_eq!(total(json!({ "profileIdSelector": [profile] })), 200);
    assert_eq!(total(json!({ "profileIdSelector": [profile], "traceIdSelector": [TRACE] })), 200);
    assert_eq!(total(json!({ "profileIdSelector": [profile], "spanSelector": [SPAN] })), 0);
    let site = json!({ "callSite": [{ "name": "main" }, { "name": "hot" }] });
    assert_eq!(total(json!({ "traceIdSelector": [TRACE], "stackTraceSelector": site })), 50);
    // A variable of a dashboard that is not set.
    assert_eq!(total(json!({ "spanSelector": [""], "traceIdSelector": [""], "profileIdSelector": [""] })), 11271);
    for (selector, named) in
        [("spanSelector", "span id"), ("traceIdSelector", "trace id"), ("profileIdSelector", "profile id")]
    {
        let wrong = always(json!({ "profileTypeID": CPU, "labelSelector": "{}", selector: ["no!"] }));
        let answer = ask(&server, "SelectMergeStacktraces", &wrong);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(named), "{}", answer.text());
    }
}

/// Scenario: values over time, heatmaps and the older endpoint, asked for one span and for a trace.
/// Guarantee: they hold that span's samples, that trace's samples, and not those of the whole service.
#[test]
fn values_over_time_of_spans_and_traces() {
    let (_store, server, minute) = shop();
    let asked = |selector: &str, more: Value| {
        let (start, end) = ((minute * 1000).to_string(), ((minute + 300) * 1000).to_string());
        let mut message = json!({ "profileTypeID": CPU, "labelSelector": selector, "start": start, "end": end });
        message["step"] = json!(60);
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let (of_span, of_trace) = (format!("{{span_id=\"{SPAN}\"}}"), format!("{{trace_id=\"{TRACE}\"}}"));
    let values = |selector: &str, more: Value| -> Vec<f64> {
        let series = ask_json(&server, "SelectSeries", &asked(selector, more))["series"].clone();
        let points = series[0]["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["value"].as_f64().unwrap()).collect()
    };
    assert_eq!(values(&of_span, json!({})), [71.0]);
    assert_eq!(values(&of_trace, json!({})), [71.0, 200.0]);
    let average = json!({ "aggregation": "TIME_SERIES_AGGREGATION_TYPE_AVERAGE" });
    assert_eq!(values(&of_trace, average), [35.5, 200.0], "two profiles in the first minute");
    let site = json!({ "stackTraceSelector": { "callSite": [{ "name": "main" }, { "name": "hot" }] } });
    assert_eq!(values(&of_trace, site), [50.0]);
    let exemplar = asked(&of_span, json!({ "exemplarType": "EXEMPLAR_TYPE_SPAN" }));
    let exemplar = ask_json(&server, "SelectSeries", &exemplar)["series"][0]["points"][0]["exemplars"][0].clone();
    assert_eq!((&exemplar["spanId"], &exemplar["value"]), (&json!(SPAN), &json!("71")));
    let heatmap = ask_json(&server, "SelectHeatmap", &asked(&of_trace, json!({ "queryType": 2 })));
    let slots = heatmap["series"][0]["slots"].as_array().unwrap();
    let counts = |slot: &Value| slot["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(slots.iter().map(counts).collect::<Vec<u64>>(), [1, 1]);

    for (selector, total) in [(&of_span, 71), (&of_trace, 271)] {
        for range in ["", "&from=now-1h&until=now"] {
            let query = percent_encoded(&format!("{CPU}{selector}"));
            let rendered = server.get_json(&format!("/pyroscope/render?query={query}{range}&groupBy=service_name"));
            let bars = |timeline: &Value| -> u64 {
                timeline["samples"].as_array().unwrap().iter().map(|bar| bar.as_u64().unwrap()).sum()
            };
            assert_eq!(rendered["flamebearer"]["numTicks"], total);
            assert_eq!(bars(&rendered["timeline"]), total, "{selector} {range}");
            assert_eq!(bars(&rendered["groups"]["shop"]), total, "{selector} {range}");
            assert!(rendered["timeline"]["startTime"].as_u64().unwrap() >= minute - 3600);
        }
    }
}

/// Scenario: a trace some spans of which have samples, that name the trace or only the span; then one more has, dated hours before.
/// Guarantee: these spans, and no other, say that they have a profile, so that Grafana offers it.
#[test]
fn spans_that_only_samples_name_say_that_they_have_a_profile() {
    let (_store, server, now) = shop();
    let trace = server.get_json(&format!("/api/traces/{TRACE}"));
    let spans = trace["batches"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let has_profile = |span: &Value| span["attributes"].to_string().contains("pyroscope.profile.id");
    assert_eq!(spans.iter().map(has_profile).collect::<Vec<_>>(), [true, true, false], "{trace}");

    ingest_stacks(&server, "shop.cpu{span_id=00f067aa0ba902b9}", now - 3 * 3600, "main;pushed 5");
    let trace = server.get_json(&format!("/api/traces/{TRACE}"));
    let spans = trace["batches"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert!(spans.iter().all(has_profile), "{trace}");
}

/// Scenario: questions that no sample answers, as a person asks them at a terminal.
/// Guarantee: the answer says what was asked for and what there is instead.
#[test]
fn nothing_found_says_what_there_is() {
    let (_store, server, _) = shop();
    let text = |path: &str| server.get(path).unwrap().text();
    let other = text("/api/v1/profile?app=ship&format=flamegraph");
    assert!(other.contains("service_name=\"ship\"") && other.contains("services that have some: shop"), "{other}");
    let wall = text("/api/v1/query?query=topk(5,shop.wall)&format=text");
    assert!(wall.contains("types that there are") && wall.contains(CPU), "{wall}");
    let span = text("/api/v1/profile?span_id=77&format=text");
    assert!(span.contains("span_id=\"0000000000000077\""), "{span}");
    let elsewhere = text(&format!("/api/v1/profile?app=ship&span_id={SPAN}&format=text"));
    assert!(elsewhere.contains("what is named has samples of: shop (process_cpu:cpu"), "{elsewhere}");
    assert!(span.contains("no sample of any type names it") && !span.contains("in this time"), "{span}");
    let silent = text(&format!("/api/v1/profile?trace_id={TRACE}&span_id=00f067aa0ba902b9&format=text"));
    let others = "other spans of the trace have samples of: shop (process_cpu:cpu:nanoseconds:cpu:nanoseconds)";
    assert!(silent.contains(others) && silent.contains("without span_id"), "{silent}");
    let misspelt = text("/api/v1/query?query=shop.cpu%7Bregoin=eu%7D&format=text");
    assert!(misspelt.contains("none has a label regoin; labels that there are: service_name\n"), "{misspelt}");
    let page = text("/api/v1/profile?app=ship&format=html");
    assert!(page.contains("No samples") && page.contains("services that have some: shop"), "{page}");
    let picture = text(&format!("/api/v1/profile?app=ship&span_id={SPAN}&format=svg"));
    assert!(picture.contains(">no samples</text>") && !picture.contains("click to zoom"), "{picture}");
    assert!(picture.contains(&format!("service_name=&quot;ship&quot;, span_id=&quot;{SPAN}&quot;")), "{picture}");
    let unknown = ask(&server, "SelectMergeDreams", &json!({}));
    assert_eq!(unknown.status, 404);
    assert!(unknown.text().contains("unimplemented") && unknown.text().contains("SelectMergeDreams"));
}
