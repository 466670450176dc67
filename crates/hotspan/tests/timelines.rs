//! Values over time: of any range, they add up to the flame graph of the same samples.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::querier::{CPU, ask, ask_json, ingest_stacks};
use support::{Server, now_nanos};

const DAY: u64 = 86400;

/// Two minutes ago, in seconds.
fn a_moment_ago() -> u64 {
    now_nanos() / 1_000_000_000 - 120
}

/// Bars with something in them, by the seconds at which they begin, and how long each is.
fn bars(timeline: &Value) -> (Vec<(u64, u64)>, u64) {
    let (start, step) = (timeline["startTime"].as_i64().unwrap(), timeline["durationDelta"].as_i64().unwrap());
    let samples = timeline["samples"].as_array().unwrap();
    assert!(samples.len() < 11_000, "{} bars", samples.len());
    let values = samples.iter().map(|value| value.as_u64().unwrap()).zip(0..);
    let filled = values.filter(|(value, _)| *value > 0);
    (filled.map(|(value, at)| ((start + at * step) as u64, value)).collect(), step as u64)
}

/// Scenario: steps of a minute and of others, from times thousands of years ago and the first there is, and up to the last.
/// Guarantee: points and columns of a heatmap lie within a step after the sample; sums are those of the flame graph.
#[test]
fn series_of_huge_ranges() {
    let (_store, server) = Server::fresh();
    let measured = a_moment_ago();
    ingest_stacks(&server, "svc.cpu", measured, "main;a 10\nmain;b 20");
    let measured = measured * 1000;
    for (start, end) in [
        (i64::MIN, measured as i64 + 100_000),
        (-7_400_000_000_000, measured as i64 + 100_000),
        (-1, i64::MAX),
        (i64::MIN, i64::MAX),
    ] {
        for step in [60, 7, 3600, 1_000_000] {
            let message = json!({
                "profileTypeID": CPU, "labelSelector": r#"{service_name="svc"}"#, "start": start.to_string(),
                "end": end.to_string(), "step": step, "queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL",
            });
            let series = ask_json(&server, "SelectSeries", &message)["series"][0]["points"].clone();
            let slots = ask_json(&server, "SelectHeatmap", &message)["series"][0]["slots"].clone();
            let flame = ask_json(&server, "SelectMergeStacktraces", &message);
            assert_eq!(flame["flamegraph"]["total"], "30");
            assert_eq!((series.as_array().unwrap().len(), slots.as_array().unwrap().len()), (1, 1));
            assert_eq!(series[0]["value"], 30.0, "{series}");
            for point in [&series[0], &slots[0]] {
                let time: u64 = point["timestamp"].as_str().unwrap().parse().unwrap_or(0);
                let is_within = (measured..=measured + step * 1000).contains(&time);
                assert!(is_within, "{start} to {end} by {step}: {measured} is counted at {time}");
            }
        }
    }
}

/// Scenario: steps that are too short and too long. Guarantee: what a step may be is told, both ends of it.
#[test]
fn steps_that_are_refused() {
    let (_store, server) = Server::fresh();
    for step in [json!(0), json!(1e10), json!(-60)] {
        let message = json!({"profileTypeID": CPU, "labelSelector": "{}", "start": 1, "end": 2, "step": step});
        for method in ["SelectSeries", "SelectHeatmap"] {
            let refused = ask(&server, method, &message);
            let told = refused.text();
            assert!(refused.status == 400 && told.contains("it may be 0.001 s to 1,000,000,000 s"), "{method}: {told}");
        }
    }
}

/// Scenario: rendered times of a day and an hour, which begin and end between two steps, of 250 years, and of 1,100.
/// Guarantee: the bars of the timeline and of each group add up to the flame graph, and a sample lies in its bar.
#[test]
fn bars_add_up_to_the_flame_graph() {
    let (_store, server) = Server::fresh();
    let minute = a_moment_ago() / 60 * 60;
    ingest_stacks(&server, "svc.cpu{v=1}", minute + 35, "main;a 10");
    ingest_stacks(&server, "svc.cpu{v=2}", minute - 600, "main;b 20");
    let a_day = format!("from={}&until={}", minute + 30 - DAY - 3600, minute + 50);
    for range in [&a_day, "from=now-200y&until=now%2B50y", "from=now-1000y&until=now%2B100y"] {
        let rendered = server.get_json(&format!("/pyroscope/render?query=svc.cpu&{range}&groupBy=v"));
        assert_eq!(rendered["flamebearer"]["numTicks"], 30, "{range}");
        for (timeline, expected) in [
            (&rendered["timeline"], vec![(minute - 600, 20), (minute + 35, 10)]),
            (&rendered["groups"]["1"], vec![(minute + 35, 10)]),
            (&rendered["groups"]["2"], vec![(minute - 600, 20)]),
        ] {
            let (filled, step) = bars(timeline);
            let sum = |values: &[(u64, u64)]| values.iter().map(|(_, value)| value).sum::<u64>();
            assert_eq!(sum(&filled), sum(&expected), "{range}: {filled:?}");
            let is_in_a_bar =
                |(time, _): &(u64, u64)| filled.iter().any(|(start, _)| (*start..start + step).contains(time));
            assert!(expected.iter().all(is_in_a_bar), "{range}: {filled:?} by {step} s: {expected:?}");
        }
    }
}

/// Scenario: a span whose samples lie five days apart, found at any time. Guarantee: its timeline has all of them.
#[test]
fn bars_of_a_long_span() {
    let (_store, server) = Server::fresh();
    let name = "svc.cpu{span_id=00f067aa0ba902b7}";
    let last = a_moment_ago();
    ingest_stacks(&server, name, last - 5 * DAY, "main;a 10");
    ingest_stacks(&server, name, last, "main;a 20");
    let rendered = server.get_json("/pyroscope/render?query=svc.cpu%7Bspan_id%3D%2200f067aa0ba902b7%22%7D");
    let (filled, step) = bars(&rendered["timeline"]);
    assert_eq!(rendered["flamebearer"]["numTicks"], 30);
    assert_eq!(filled, [((last - 5 * DAY) / step * step, 10), (last / step * step, 20)]);
}
