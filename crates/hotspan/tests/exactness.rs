//! R4 and R9 as askers see them: how much of the time was profiled, and what was rejected in it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::{Answer, Server, TestSample, now_nanos, percent_encoded, profile_request, trace_request};

const PROTOBUF: &str = "application/x-protobuf";
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const TRACE: [u8; 16] = [0x11; 16];
const SPAN: [u8; 8] = [0x22; 8];

/// What the header of an answer in somebody else's format says.
fn header(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let line = answer.headers.lines().find_map(|line| line.strip_prefix("hotspan-exactness: "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{}", answer.headers))).unwrap()
}

/// The first of two whole hours that are over.
fn past_hour() -> u64 {
    (now_nanos() / HOUR - 3) * HOUR
}

/// Scenario: a service was profiled in the first twenty minutes of an hour, and one of its spans, of two seconds, has half a
/// second in samples.
/// Guarantee: flame graphs, values over time and comparisons of that hour say that a third of it has samples, before and
/// after compaction, in JSON, in text and beside Pyroscope's formats; that of the span says a quarter of its time.
#[test]
fn the_profiled_time_is_said() {
    let (_store, server) = Server::fresh();
    let hour = past_hour();
    let sample = |number: u64| TestSample {
        stack: &["main", "work"],
        value: (SECOND / 10) as i64,
        time: hour + number * 5 * SECOND,
        trace_id: if number < 5 { TRACE } else { [0; 16] },
        span_id: if number < 5 { SPAN } else { [0; 8] },
    };
    let samples: Vec<_> = (0..240).map(sample).collect();
    let profiles = profile_request("shop", [3; 16], &samples).encode_to_vec();
    assert_eq!(server.post("/v1development/profiles", PROTOBUF, &profiles).unwrap().status, 200);
    let span = Span {
        trace_id: TRACE.to_vec(),
        span_id: SPAN.to_vec(),
        name: "buy".to_owned(),
        start_time_unix_nano: hour,
        end_time_unix_nano: hour + 2 * SECOND,
        ..Span::default()
    };
    let spans = trace_request("shop", vec![span]).encode_to_vec();
    assert_eq!(server.post("/v1/traces", PROTOBUF, &spans).unwrap().status, 200);
    let range = format!("from={hour}&until={}", hour + HOUR);
    let is_third = |exactness: &Value| {
        let share = exactness["coverage"].as_f64().unwrap();
        assert!((share - 1.0 / 3.0).abs() < 1e-6 && exactness["coverage_of"] == "range", "{exactness}");
    };
    for is_compacted in [false, true] {
        if is_compacted {
            server.wait_merged();
        }
        is_third(&server.get_json(&format!("/api/v1/profile?app=shop&{range}"))["exactness"]);
        is_third(&server.get_json(&format!("/api/v1/query?query=shop.cpu&{range}"))["exactness"]);
        let text = server.get(&format!("/api/v1/profile?app=shop&{range}&format=text")).unwrap();
        assert!(text.text().contains("240 samples, in 33.3% of the time asked about\n"), "{}", text.text());
        is_third(&header(&text));
        let files = ["pprof", "collapsed", "speedscope"];
        for format in files {
            is_third(&header(&server.get(&format!("/api/v1/profile?app=shop&{range}&format={format}")).unwrap()));
        }
        let diff = format!(
            "/api/v1/diff?baseline=shop.cpu&comparison=shop.cpu&baseline_from={hour}&baseline_until={}&comparison_from={hour}&comparison_until={}",
            hour + 20 * MINUTE,
            hour + HOUR
        );
        let diff = server.get_json(&format!("{diff}&per=none"));
        assert!(diff["baseline"]["exactness"]["coverage"].as_f64().unwrap() > 0.999, "{diff:#}");
        is_third(&diff["comparison"]["exactness"]);
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let (start, end) = (hour / 1_000_000, (hour + HOUR) / 1_000_000);
        for (method, step) in [("SelectSeries", 60), ("SelectMergeStacktraces", 0), ("SelectMergeProfile", 0)] {
            let mut body = json!({ "profileTypeID": cpu, "labelSelector": "{}", "start": start, "end": end });
            if step > 0 {
                body["step"] = json!(step);
            }
            let path = format!("/querier.v1.QuerierService/{method}");
            let answer = server.post(&path, "application/json", body.to_string().as_bytes()).unwrap();
            let exactness = header(&answer);
            is_third(&exactness);
            assert_eq!(exactness["samples"], 240, "{method}");
        }
        // Half a second of two.
        let (trace, span) = ("11".repeat(16), "22".repeat(8));
        let of_span = [
            format!("/api/v1/profile?trace_id={trace}&span_id={span}"),
            format!("/api/v1/profile?trace_id={trace}"),
            format!("/api/v1/trace/{trace}/profile-summary"),
        ];
        for path in of_span {
            let exactness = &server.get_json(&path)["exactness"];
            assert_eq!((&exactness["coverage"], &exactness["coverage_of"]), (&json!(0.25), &json!("spans")), "{path}");
        }
        // Nobody can say how long a span took that is named without its trace.
        let alone = server.get_json(&format!("/api/v1/profile?span_id={span}"));
        assert_eq!((&alone["exactness"]["samples"], alone["exactness"].get("coverage")), (&json!(5), None));
    }
}

/// Scenario: of three spans of a request two are broken, and are rejected.
/// Guarantee: the trace, searches, metrics and everything else about that time say that two are missing, where the formats of
/// Tempo have room and in a header everywhere; answers about other times say nothing, and have nothing that Tempo's lack.
#[test]
fn rejected_spans_are_said() {
    let (_store, server) = Server::fresh();
    let hour = past_hour();
    let span = |number: u8| Span {
        trace_id: TRACE.to_vec(),
        span_id: if number == 0 { SPAN.to_vec() } else { Vec::new() },
        name: "buy".to_owned(),
        start_time_unix_nano: hour + MINUTE,
        end_time_unix_nano: hour + MINUTE + SECOND,
        ..Span::default()
    };
    let spans = trace_request("shop", (0..3).map(span).collect()).encode_to_vec();
    assert_eq!(server.post("/v1/traces", PROTOBUF, &spans).unwrap().status, 200);
    let trace = "11".repeat(16);
    let note = "2 spans or samples that came in this time were rejected and are not in this";

    let whole = server.get_json(&format!("/api/v2/traces/{trace}"));
    assert_eq!((&whole["status"], &whole["message"]), (&json!("PARTIAL"), &json!(note)), "{whole:#}");
    assert_eq!(whole["trace"]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len(), 1);
    let filtered = server.get_json(&format!("/api/v2/traces/{trace}?q={}", percent_encoded("{ name = \"other\" }")));
    assert_eq!(filtered["message"], format!("1 spans of the trace do not match; {note}"), "{filtered:#}");
    let first = server.get(&format!("/api/traces/{trace}")).unwrap();
    assert_eq!((&header(&first)["dropped"], &header(&first)["spans"]), (&json!(2), &json!(1)));
    let keys: Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(keys.as_object().unwrap().keys().collect::<Vec<_>>(), ["batches"]);
    for part in ["spans", "outline", "profile-summary"] {
        let answer = server.get_json(&format!("/api/v1/trace/{trace}/{part}"));
        assert_eq!(answer["exactness"]["dropped"], 2, "{part}: {answer:#}");
    }

    for (from, missing) in [(hour, true), (hour - 3 * HOUR, false)] {
        let (start, end) = (from / SECOND, (from + HOUR) / SECOND);
        let dropped = json!(if missing { 2 } else { 0 });
        let path = |of: &str, query: &str| format!("{of}?q={}&start={start}&end={end}", percent_encoded(query));
        let search = server.get(&path("/api/search", "{ name = \"buy\" }")).unwrap();
        assert_eq!(header(&search)["dropped"], dropped);
        let found: Value = serde_json::from_slice(&search.body).unwrap();
        // Readers of searches refuse what they don't know.
        let keys: Vec<_> = found.as_object().unwrap().keys().collect();
        assert!(keys.iter().all(|key| ["traces", "metrics"].contains(&key.as_str())), "{found:#}");
        assert_eq!(found["metrics"].get("rejected"), None, "{found:#}");
        for of in ["/api/metrics/query_range", "/api/metrics/query"] {
            let metrics = server.get(&path(of, "{ } | rate()")).unwrap();
            assert_eq!(header(&metrics)["dropped"], dropped);
            let told: Value = serde_json::from_slice(&metrics.body).unwrap();
            assert_eq!(told.get("message"), missing.then_some(&json!(note)), "{told:#}");
            assert_eq!(told.get("status"), missing.then_some(&json!("PARTIAL")), "{told:#}");
        }
        let tags = server.get(&path("/api/v2/search/tags", "{ }")).unwrap();
        assert_eq!(header(&tags)["dropped"], dropped);
        for of in ["services", "service-graph", "endpoints"] {
            let answer = server.get_json(&format!("/api/v1/{of}?start={from}&end={}", from + HOUR));
            assert_eq!(answer["exactness"]["dropped"], dropped, "{of}: {answer:#}");
        }
        let body = json!({ "query": "{ name = \"buy\" }", "type": "cpu", "start": from, "end": from + HOUR });
        let cohort = server.post_json("/api/v1/cohort/flame", &body);
        assert_eq!(cohort["exactness"]["dropped"], dropped, "{cohort:#}");
    }
}

/// Scenario: one of two samples of an hour is broken, and is rejected: what labels it had, nobody knows.
/// Guarantee: every list of labels of that hour says so in a header, those of another hour do not; bodies have what Pyroscope's
/// have and nothing else.
#[test]
fn lists_of_labels_say_what_was_rejected() {
    let (_store, server) = Server::fresh();
    let hour = past_hour();
    let sample =
        |value| TestSample { stack: &["main"], value, time: hour + MINUTE, trace_id: [1; 16], span_id: [2; 8] };
    let mut request = profile_request("shop", [6; 16], &[sample(5), sample(7)]);
    request.resource_profiles[0].scope_profiles[0].profiles[0].samples[1].link_index = 99;
    assert_eq!(server.post("/v1development/profiles", PROTOBUF, &request.encode_to_vec()).unwrap().status, 200);
    for (from, missing) in [(hour, true), (hour - 3 * HOUR, false)] {
        let (start, end) = (from / 1_000_000, (from + HOUR) / 1_000_000);
        let methods = [
            ("ProfileTypes", "profileTypes"),
            ("LabelNames", "names"),
            ("LabelValues", "names"),
            ("Series", "labelsSet"),
        ];
        for (method, field) in methods {
            let mut body = json!({ "start": start, "end": end });
            if method == "LabelValues" {
                body["name"] = json!("service_name");
            }
            let path = format!("/querier.v1.QuerierService/{method}");
            let answer = server.post(&path, "application/json", body.to_string().as_bytes()).unwrap();
            let exactness = header(&answer);
            assert_eq!(exactness["dropped"], u64::from(missing), "{method}");
            assert_eq!(exactness["segments_read"].as_u64() > Some(0), missing, "{method}: {exactness}");
            let told: Value = serde_json::from_slice(&answer.body).unwrap();
            assert!(told.as_object().unwrap().keys().all(|key| key == field), "{method}: {told}");
            assert_eq!(told.get(field).is_some_and(|list| list != &json!([])), missing, "{method}: {told}");
        }
        let values = format!("/pyroscope/label-values?label=service_name&from={start}&until={end}");
        let answer = server.get(&values).unwrap();
        assert_eq!(header(&answer)["dropped"], u64::from(missing));
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(told, if missing { json!(["shop"]) } else { json!([]) });
    }
}
