//! Times that are not taken: what retention would remove at once, and what no clock can mean (R4).

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use support::{Server, TestSample, now_nanos, profile_request, trace_request};

const PROTOBUF: &str = "application/x-protobuf";
const HOUR: u64 = 3600 * 1_000_000_000;
const DAY: u64 = 24 * HOUR;

fn span_at(number: u8, start: u64) -> Span {
    Span {
        trace_id: vec![number; 16],
        span_id: vec![number; 8],
        name: "operation".to_owned(),
        start_time_unix_nano: start,
        end_time_unix_nano: if start == 0 { 0 } else { start + 1000 },
        ..Span::default()
    }
}

/// The value of a metric with its labels.
fn metric(server: &Server, name: &str) -> f64 {
    let text = server.get("/metrics").unwrap().text();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).unwrap_or(0.0)
}

/// Scenario: spans of now, of nearly two weeks ago, of three weeks ago, of the day after tomorrow and of never, in one request.
/// Guarantee: the first two are stored; the others are refused one by one, told with the setting that says so, and counted.
#[test]
fn spans_of_impossible_times_are_refused_alone() {
    let (_store, server) = Server::configured("");
    let now = now_nanos();
    let starts = [now, now - 13 * DAY, now - 21 * DAY, now + 2 * DAY, 0];
    let spans = (1..).zip(starts).map(|(number, start)| span_at(number, start)).collect();
    let answer = server.post("/v1/traces", PROTOBUF, &trace_request("shop", spans).encode_to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = ExportTraceServiceResponse::decode(&*answer.body).unwrap().partial_success.unwrap();
    assert_eq!(told.rejected_spans, 3);
    let expected = [
        "spans[2].start_time_unix_nano is 21 days old; no more than the last 14 days is kept (retention.spans)",
        "spans[3].start_time_unix_nano is 2 days ahead of the server's clock, at most 1 day is taken (limits.max_ahead)",
        "spans[4].start_time_unix_nano is not set",
    ];
    for part in expected {
        assert!(told.error_message.contains(part), "{} lacks {part:?}", told.error_message);
    }
    for (number, status) in (1..).zip([200, 200, 404, 404, 404]) {
        let path = format!("/api/traces/{}", format!("{number:02x}").repeat(16));
        assert_eq!(server.get(&path).unwrap().status, status, "{path}");
    }
    assert_eq!(metric(&server, "hotspan_rejected_items_total{signal=\"traces\"}"), 3.0);
    assert_eq!(metric(&server, "hotspan_received_items_total{signal=\"traces\"}"), 2.0);
}

/// Scenario: a profile with a sample of now and one of ten days ago, and a profile of a month ago, where a week is allowed.
/// Guarantee: the first sample is stored, and nothing else; the other numbering of OTLP is not tried for the sake of times.
#[test]
fn samples_of_impossible_times_are_refused_alone() {
    let (_store, server) = Server::configured("limits.max_age = \"7d\"\n");
    let now = now_nanos();
    let sample = |value, time| TestSample { stack: &["main", "work"], value, time, trace_id: [1; 16], span_id: [2; 8] };
    let mut request = profile_request("shop", [6; 16], &[sample(5, now), sample(70, now - 10 * DAY)]);
    let old = profile_request("shop", [7; 16], &[sample(900, now - 30 * DAY), sample(900, now)]);
    // Both have the same tables.
    let old = old.resource_profiles[0].scope_profiles[0].profiles[0].clone();
    request.resource_profiles[0].scope_profiles[0].profiles.push(old);
    let answer = server.post("/v1/profiles", PROTOBUF, &request.encode_to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = ExportProfilesServiceResponse::decode(&*answer.body).unwrap().partial_success.unwrap();
    assert_eq!(told.rejected_profiles, 1, "{}", told.error_message);
    for part in [
        "profiles[0].samples[1].timestamps_unix_nano is 10 days old; no more than the last 7 days is kept (limits.max_age)",
        "profiles[1].time_unix_nano is 30 days old",
    ] {
        assert!(told.error_message.contains(part), "{} lacks {part:?}", told.error_message);
    }
    let flame = server.get_json("/api/v1/profile?app=shop&from=now-60d&until=now%2B1h");
    assert_eq!(flame["flamebearer"]["numTicks"], 5);
    assert_eq!(metric(&server, "hotspan_rejected_samples_total"), 3.0);
}

/// Scenario: files and posts of Pyroscope's clients that are older than what is kept.
/// Guarantee: each is refused whole with an error that names profile, age and setting, is counted, and stores nothing.
#[test]
fn old_files_are_refused_with_the_reason() {
    let (_store, server) = Server::configured("limits.max_age = \"7d\"\n");
    let file = server.post("/api/v1/profiles?service=shop&from=now-20d", "text/plain", b"main;work 5\n").unwrap();
    assert_eq!(file.status, 400, "{}", file.text());
    for part in ["of shop is 20 days old", "the last 7 days", "limits.max_age", "nothing of it is stored"] {
        assert!(file.text().contains(part), "{}", file.text());
    }
    let posted =
        server.post("/ingest?name=shop.cpu&from=now-20d&until=now-20d", "text/plain", b"main;work 5\n").unwrap();
    assert_eq!(posted.status, 400, "{}", posted.text());
    assert!(posted.text().contains("limits.max_age"), "{}", posted.text());
    // Of formats with types of their own, whatever is wrong with their content is told so.
    let speedscope = include_bytes!("../../hotspan-formats/tests/fixtures/py-spy.speedscope.json");
    let path = "/ingest?name=shop&format=speedscope&from=now-20d&until=now-20d";
    let posted = server.post(path, "application/json", speedscope).unwrap();
    assert_eq!(posted.status, 422, "{}", posted.text());
    assert!(posted.text().contains("limits.max_age"), "{}", posted.text());
    let young = server.post("/api/v1/profiles?service=shop&from=now-6d", "text/plain", b"main;work 5\n").unwrap();
    assert_eq!(young.status, 200, "{}", young.text());
    let flame = server.get_json("/api/v1/query?query=shop.samples&from=now-60d&until=now");
    assert_eq!(flame["flamebearer"]["numTicks"], 5, "{flame}");
    let reason = "hotspan_refused_requests_total{signal=\"profiles\",reason=\"untimely\"}";
    assert_eq!(metric(&server, reason), 3.0);
}

/// Scenario: samples of three hours ago come late, and one of them is broken.
/// Guarantee: an answer about that time says that one is missing; one about now does not.
#[test]
fn what_is_rejected_is_missed_at_its_own_time() {
    let (_store, server) = Server::configured("");
    let late = now_nanos() - 3 * HOUR;
    let sample = |value| TestSample { stack: &["main"], value, time: late, trace_id: [1; 16], span_id: [2; 8] };
    let mut request = profile_request("shop", [6; 16], &[sample(5), sample(7)]);
    request.resource_profiles[0].scope_profiles[0].profiles[0].samples[1].link_index = 99;
    assert_eq!(server.post("/v1/profiles", PROTOBUF, &request.encode_to_vec()).unwrap().status, 200);
    let dropped = |from: &str, until: &str| {
        let answer = server.get_json(&format!("/api/v1/profile?app=shop&from={from}&until={until}"));
        (answer["flamebearer"]["numTicks"].clone(), answer["exactness"]["dropped"].clone())
    };
    assert_eq!(dropped("now-4h", "now-2h"), (5.into(), 1.into()));
    assert_eq!(dropped("now-1h", "now"), (0.into(), 0.into()));
}
