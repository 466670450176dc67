//! Comparisons over HTTP: what is small, what is folded, and what they rest on. `tests/flame.rs` has those of the command line.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::{Answer, Server, now_nanos};

/// Stores what a service did in so many seconds, which ended a minute ago.
fn push(server: &Server, version: u32, kind: &str, seconds: u64, stacks: &str) {
    let until = now_nanos() / 1_000_000_000 - 60;
    let range = format!("from={}&until={until}", until - seconds);
    let path = format!("/api/v1/profiles?service=shop&type={kind}&label=v%3D{version}&{range}");
    let answer = server.post(&path, "text/plain", stacks.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Scenario: 200 functions of few objects each, in one minute and in ten.
/// Guarantee: table, picture and JSON say that each and all of them are a tenth by the second; none is rounded away.
#[test]
fn small_values_are_compared() {
    let (_store, server) = Server::fresh();
    let stacks: String = (0..200).map(|number| format!("main;h{number:03};x 4\n")).collect();
    push(&server, 1, "alloc_objects", 60, &stacks);
    push(&server, 2, "alloc_objects", 600, &stacks);
    let diff = "/api/v1/diff?baseline=shop.alloc_objects{v=1}&comparison=shop.alloc_objects{v=2}";
    let form = |format: &str| server.get(&format!("{diff}&format={format}")).unwrap().text();
    assert!(form("text").contains("per second  13.33 -> 1.33 (-90.0%)"), "{}", form("text"));
    let picture = form("svg");
    assert!(picture.contains("all\n13.33 -&gt; 1.33 (-90.0%)</title>"), "{picture}");
    assert!(picture.contains("<title>x\n0.07 -&gt; 0.01 (-90.0%)</title>"), "{picture}");
    let json = server.get_json(diff);
    assert_eq!((&json["leftTicks"], &json["rightTicks"]), (&json!(8000), &json!(800)));
    let bars = json["flamebearer"]["levels"][3].as_array().unwrap();
    assert_eq!(bars.len(), 7 * 200);
    assert!(bars.chunks(7).all(|bar| (&bar[1], &bar[4]) == (&json!(40), &json!(4))), "{bars:?}");
}

/// Scenario: a comparison of eight call paths, drawn with one of them, in every form and by every door.
/// Guarantee: each has the header with what both sides rest on and what is folded, which is nothing in a table; JSON says it of
/// each side as well.
#[test]
fn comparisons_say_what_they_rest_on() {
    let (_store, server) = Server::fresh();
    push(&server, 1, "cpu", 10, "main;a;x 40\nmain;b;x 30\nmain;c 20");
    push(&server, 2, "cpu", 10, "main;a;x 40\nmain;d;x 5");
    let sides = "baseline=shop.cpu{v=1}&comparison=shop.cpu{v=2}&per=none&max_nodes=1";
    let told =
        |exactness: &Value| ["samples", "pruned_nodes", "pruned_value"].map(|key| exactness[key].as_u64().unwrap());
    let header = |answer: &Answer| {
        let line = answer.headers.lines().find_map(|line| line.strip_prefix("hotspan-exactness: "));
        told(&serde_json::from_str(line.unwrap_or_else(|| panic!("{}", answer.headers))).unwrap())
    };
    for (format, expected) in [("json", [5, 7, 135]), ("svg", [5, 7, 135]), ("text", [5, 0, 0])] {
        let answer = server.get(&format!("/api/v1/diff?{sides}&format={format}")).unwrap();
        assert_eq!(header(&answer), expected, "{format}: {}", answer.headers);
    }
    let json = server.get_json(&format!("/api/v1/diff?{sides}"));
    assert_eq!((&json["pruned_nodes"], &json["pruned_value"]), (&json!(7), &json!(135)));
    for (key, side, expected) in
        [("baseline_exactness", "baseline", [3, 5, 90]), ("exactness", "comparison", [2, 4, 45])]
    {
        assert_eq!((told(&json[key]), told(&json[side]["exactness"])), (expected, expected), "{json:#}");
    }
    let older = "/pyroscope/render-diff?leftQuery=shop.cpu{v=\"1\"}&rightQuery=shop.cpu{v=\"2\"}\
         &leftFrom=now-1h&leftUntil=now&rightFrom=now-1h&rightUntil=now&max-nodes=1";
    assert_eq!(header(&server.get(older).unwrap()), [5, 7, 135]);
    let now = now_nanos() / 1_000_000;
    let side = |v: u32| {
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let labels = format!("{{v=\"{v}\"}}");
        json!({ "profileTypeID": cpu, "labelSelector": labels, "start": now - 3_600_000, "end": now, "maxNodes": 1 })
    };
    let question = json!({ "left": side(1), "right": side(2) }).to_string();
    let answer = server.post("/querier.v1.QuerierService/Diff", "application/json", question.as_bytes()).unwrap();
    assert_eq!(header(&answer), [5, 7, 135], "{}", answer.text());
}
