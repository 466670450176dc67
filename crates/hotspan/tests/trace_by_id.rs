//! One trace by its id: whole, or as much of it as a query asks for.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message;
use serde_json::Value;
use support::{Server, now_nanos, percent_encoded, request, text_attribute, trace_request};

const MS: u64 = 1_000_000;

fn span(id: u8, parent: u8, name: &str, start: u64) -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![id; 8],
        parent_span_id: if parent == 0 { Vec::new() } else { vec![parent; 8] },
        name: name.to_owned(),
        kind: 2,
        start_time_unix_nano: start + u64::from(id) * MS,
        end_time_unix_nano: start + 100 * MS,
        attributes: vec![text_attribute("depth", &id.to_string())],
        status: (name == "query").then(|| Status { code: 2, message: "timeout".to_owned() }),
        ..Span::default()
    }
}

/// A checkout (1) that calls an order (2), which calls a query (3) with two rows (4, 5); besides, a log (6).
fn checkout() -> (tempfile::TempDir, Server) {
    let (store, server) = Server::fresh();
    let start = now_nanos() - 60_000 * MS;
    let send = |service: &str, spans: Vec<Span>| {
        let body = trace_request(service, spans).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    };
    send("front", vec![span(1, 0, "checkout", start), span(6, 1, "log", start)]);
    send("order", vec![span(2, 1, "order", start), span(3, 2, "query", start)]);
    send("db", vec![span(4, 3, "row", start), span(5, 4, "cell", start)]);
    (store, server)
}

/// The first byte of the id of each span in an answer.
fn spans_in(trace: &Value) -> Vec<u8> {
    let groups = trace["trace"]["resourceSpans"].as_array().unwrap();
    let spans = groups.iter().flat_map(|group| group["scopeSpans"][0]["spans"].as_array().unwrap());
    let mut depths: Vec<u8> =
        spans.map(|span| span["attributes"][0]["value"]["stringValue"].as_str().unwrap().parse().unwrap()).collect();
    depths.sort_unstable();
    depths
}

fn path(query: &str, more: &str) -> String {
    format!("/api/v2/traces/{}?q={}{more}", "01".repeat(16), percent_encoded(query))
}

/// Scenario: a trace in three segments, filtered by queries of every kind, with more or less of the tree around matches.
/// Guarantee: exactly the spans asked for; an answer that leaves spans out says so, a whole one does not.
#[test]
fn a_query_picks_spans_of_a_trace() {
    let (_store, server) = checkout();
    let cases: [(&str, &str, &[u8]); 13] = [
        ("{ status = error }", "", &[3]),
        ("{ status = error }", "&keep_hierarchy=true", &[1, 2, 3]),
        ("{ status = error }", "&keep_hierarchy=true&ancestor_depth=1", &[2, 3]),
        ("{ status = error }", "&keep_hierarchy=false&ancestor_depth=1", &[3]),
        ("{ status = error }", "&match_depth=1", &[3, 4]),
        ("{ status = error }", "&match_depth=-1&keep_hierarchy=true", &[1, 2, 3, 4, 5]),
        ("{ resource.service.name = \"db\" }", "", &[4, 5]),
        ("{ name = \"nothing\" }", "", &[]),
        ("{ span.depth =~ \"[15]\" }", "&match_depth=0", &[1, 5]),
        ("{ name = \"order\" } >> { }", "", &[3, 4, 5]),
        ("{ parent.depth = \"1\" }", "", &[2, 6]),
        ("{ } | count() > 5", "", &[1, 2, 3, 4, 5, 6]),
        ("", "", &[1, 2, 3, 4, 5, 6]),
    ];
    for (query, more, expected) in cases {
        let answer = server.get_json(&path(query, more));
        assert_eq!(spans_in(&answer), expected, "{query}{more}: {answer}");
        let is_partial = expected.len() < 6;
        assert_eq!(answer["status"] == "PARTIAL", is_partial, "{query}{more}: {answer}");
        let left_out = answer["message"].as_str().unwrap_or_default();
        let expected = if is_partial { format!("{} spans", 6 - expected.len()) } else { String::new() };
        assert!(left_out.starts_with(&expected) && (is_partial || left_out.is_empty()), "{query}{more}: {left_out}");
    }
    let absent = format!("/api/v2/traces/77?q={}", percent_encoded("{ status = error }"));
    assert_eq!(server.get_json(&absent)["trace"], serde_json::json!({}));
}

#[derive(Clone, PartialEq, Message)]
struct TraceByIdResponse {
    #[prost(message, optional, tag = "1")]
    trace: Option<ExportTraceServiceRequest>,
    #[prost(int32, tag = "3")]
    status: i32,
    #[prost(string, tag = "4")]
    message: String,
}

/// Scenario: the same in protobuf, and parameters that can't be understood. Guarantee: the message says that it is a
/// part; an error is 400 and names the parameter, or points at the place in the query.
#[test]
fn parts_of_traces_in_protobuf_and_mistakes() {
    let (_store, server) = checkout();
    let accept = [("accept", "application/protobuf")];
    let answer = request(server.address("tempo"), "GET", &path("{ status = error }", ""), &accept, &[]).unwrap();
    let part = TraceByIdResponse::decode(answer.body.as_slice()).unwrap();
    assert_eq!((part.status, part.message.as_str()), (1, "5 spans of the trace do not match"));
    assert_eq!(part.trace.unwrap().resource_spans[0].scope_spans[0].spans[0].name, "query");
    let nothing = request(server.address("tempo"), "GET", &path("{ name = \"x\" }", ""), &accept, &[]).unwrap();
    let nothing = TraceByIdResponse::decode(nothing.body.as_slice()).unwrap();
    assert_eq!((nothing.trace, nothing.status), (Some(ExportTraceServiceRequest::default()), 1));

    for (query, more, named) in [
        ("{ duraton > 1s }", "", "^"),
        ("{ } | rate()", "", "search"),
        ("{ } | flame(cpu)", "", "search"),
        ("{ }", "&match_depth=-2", "match_depth"),
        ("{ }", "&match_depth=x", "match_depth"),
        ("{ }", "&keep_hierarchy=perhaps", "keep_hierarchy"),
        ("{ }", "&keep_hierarchy=true&ancestor_depth=-5", "ancestor_depth"),
        ("{ }", "&start=soon", "start"),
    ] {
        let answer = server.get(&path(query, more)).unwrap();
        assert_eq!(answer.status, 400, "{query}{more}");
        assert!(answer.text().contains(named), "{query}{more}: {}", answer.text());
    }
    // Times are hints of where to look; a trace is found without them.
    let whole = server.get_json(&format!("/api/traces/{}?start=1&end=2", "01".repeat(16)));
    assert_eq!(whole["batches"].as_array().unwrap().len(), 3);
}

/// Scenario: a tag whose name has a slash, asked for as it is and encoded; tags as old clients send them.
/// Guarantee: its values; texts that contain the value whatever their case, on any span of the trace.
#[test]
fn tags_with_slashes_and_tags_of_old_clients() {
    let (_store, server) = Server::fresh();
    let start = now_nanos() - 9_000 * MS;
    let mut one = span(1, 0, "GET /Cart", start);
    one.attributes = vec![text_attribute("app.kubernetes.io/name", "Cart-1"), text_attribute("code", "500")];
    let other = span(2, 1, "query", start);
    for (service, span) in [("front", one), ("db", other)] {
        let body = trace_request(service, vec![span]).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    }
    for tag in ["span.app.kubernetes.io/name", "span.app.kubernetes.io%2Fname"] {
        let values = server.get_json(&format!("/api/v2/search/tag/{tag}/values"));
        assert_eq!(values["tagValues"][0]["value"], "Cart-1", "{tag}");
    }
    let values = server.get_json("/api/search/tag/app.kubernetes.io/name/values");
    assert_eq!(values["tagValues"], serde_json::json!(["Cart-1"]));
    assert_eq!(server.get("/api/v2/search/tag/span.code").unwrap().status, 404);

    let found = |rest: &str| server.get_json(&format!("/api/search?{rest}"))["traces"].as_array().unwrap().len();
    assert_eq!(found("tags=app.kubernetes.io/name%3Dcart"), 1);
    assert_eq!(found("tags=service.name%3Dfront%20depth%3D2"), 1, "each on a span of its own");
    assert_eq!(found("tags=code%3D500%20name%3Dcart"), 1);
    assert_eq!(found("tags=code%3D501"), 0);
    assert_eq!(found("tags=app.kubernetes.io/name%3D.art"), 0, "no pattern");
    assert_eq!(found("minDuration=90ms&maxDuration=1s"), 1);
    assert_eq!(found("minDuration=99500us"), 0, "the trace, not its spans");
}
