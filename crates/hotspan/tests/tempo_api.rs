//! Tempo's API as its clients use it: protobuf by `Accept`, streams over gRPC, pages, and profiles of spans.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use serde_json::{Value, json};
use support::grpc::Raw;
use support::{
    Server, TestSample, now_nanos, percent_encoded, profile_request, request, text_attribute, trace_request,
};
use tonic::{Code, Status};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

#[derive(Clone, PartialEq, Message)]
struct SearchRequest {
    #[prost(uint32, tag = "4")]
    limit: u32,
    #[prost(uint32, tag = "5")]
    start: u32,
    #[prost(uint32, tag = "6")]
    end: u32,
    #[prost(string, tag = "8")]
    query: String,
}

#[derive(Clone, PartialEq, Message)]
struct SearchResponse {
    #[prost(message, repeated, tag = "1")]
    traces: Vec<FoundTrace>,
    #[prost(message, optional, tag = "2")]
    metrics: Option<SearchMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct FoundTrace {
    #[prost(string, tag = "1")]
    trace_id: String,
    #[prost(string, tag = "2")]
    root_service_name: String,
    #[prost(uint64, tag = "4")]
    start_time_unix_nano: u64,
    #[prost(uint32, tag = "5")]
    duration_ms: u32,
}

#[derive(Clone, PartialEq, Message)]
struct SearchMetrics {
    #[prost(uint32, tag = "4")]
    completed_jobs: u32,
    #[prost(uint32, tag = "5")]
    total_jobs: u32,
    #[prost(uint64, tag = "7")]
    inspected_spans: u64,
}

#[derive(Clone, PartialEq, Message)]
struct TagScopes {
    #[prost(message, repeated, tag = "1")]
    scopes: Vec<TagScope>,
}

#[derive(Clone, PartialEq, Message)]
struct TagScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    tags: Vec<String>,
}

/// The question for tags of a scope, or for values of a tag: both have a text first and a query second.
#[derive(Clone, PartialEq, Message)]
struct TagRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    query: String,
}

/// Names of tags, or their values, without scopes or types.
#[derive(Clone, PartialEq, Message)]
struct Texts {
    #[prost(string, repeated, tag = "1")]
    texts: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TagValues {
    #[prost(message, repeated, tag = "1")]
    values: Vec<TagScope>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricsRequest {
    #[prost(string, tag = "1")]
    query: String,
    #[prost(uint64, tag = "2")]
    start: u64,
    #[prost(uint64, tag = "3")]
    end: u64,
    #[prost(uint64, tag = "4")]
    step: u64,
}

#[derive(Clone, PartialEq, Message)]
struct MetricsResponse {
    #[prost(message, repeated, tag = "1")]
    series: Vec<MetricsSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricsSeries {
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    exemplars: Vec<Texts>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
struct InstantResponse {
    #[prost(message, repeated, tag = "1")]
    series: Vec<InstantSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct InstantSeries {
    #[prost(double, tag = "2")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct TraceByIdResponse {
    #[prost(message, optional, tag = "1")]
    trace: Option<ExportTraceServiceRequest>,
}

fn span(trace: u8, id: u8, parent: u8, name: &str, start: u64, length: u64) -> Span {
    Span {
        trace_id: vec![trace; 16],
        span_id: vec![id; 8],
        parent_span_id: if parent == 0 { Vec::new() } else { vec![parent; 8] },
        name: name.to_owned(),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + length,
        attributes: vec![text_attribute("number", &trace.to_string())],
        ..Span::default()
    }
}

fn send(server: &Server, service: &str, spans: Vec<Span>) {
    let body = trace_request(service, spans).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
}

fn ids_of(answer: &Value) -> Vec<String> {
    let traces = answer["traces"].as_array().unwrap();
    traces.iter().map(|trace| trace["traceID"].as_str().unwrap()[..2].to_owned()).collect()
}

fn get_protobuf<M: Message + Default>(server: &Server, path: &str) -> M {
    let accept = [("accept", "application/protobuf")];
    let answer = request(server.address("tempo"), "GET", path, &accept, &[]).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert!(answer.headers.contains("application/protobuf"), "{}", answer.headers);
    M::decode(answer.body.as_slice()).unwrap()
}

/// Scenario: every question that has an answer in protobuf, asked for it by `Accept`, on Tempo's own port.
/// Guarantee: the messages hold what JSON holds; an absent trace is an empty message in v2 and 404 in v1.
#[test]
fn protobuf_by_accept() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    send(&server, "front", vec![span(1, 1, 0, "GET /", now - 9 * SECOND, 700 * MS)]);
    send(&server, "back", vec![span(1, 2, 1, "work", now - 9 * SECOND + MS, 500 * MS)]);
    let id = "01".repeat(16);

    let trace: ExportTraceServiceRequest = get_protobuf(&server, &format!("/api/traces/{id}"));
    let spans = |trace: &ExportTraceServiceRequest| -> Vec<Span> {
        let groups = trace.resource_spans.iter().flat_map(|group| &group.scope_spans);
        groups.flat_map(|scope| scope.spans.clone()).collect()
    };
    assert_eq!(
        spans(&trace),
        [span(1, 1, 0, "GET /", now - 9 * SECOND, 700 * MS), span(1, 2, 1, "work", now - 9 * SECOND + MS, 500 * MS)]
            .map(|span| Span { status: Some(Default::default()), ..span })
    );
    let second: TraceByIdResponse = get_protobuf(&server, &format!("/api/v2/traces/{id}"));
    assert_eq!(second.trace, Some(trace));
    let absent: TraceByIdResponse = get_protobuf(&server, &format!("/api/v2/traces/{}", "77".repeat(16)));
    assert_eq!(absent.trace, Some(ExportTraceServiceRequest::default()));
    assert_eq!(server.get_json(&format!("/api/v2/traces/{}", "77".repeat(16)))["trace"], json!({}));
    assert_eq!(server.get(&format!("/api/traces/{}", "77".repeat(16))).unwrap().status, 404);

    let found: SearchResponse = get_protobuf(&server, "/api/search?q=%7B%7D");
    assert_eq!((found.traces.len(), found.traces[0].duration_ms), (1, 700));
    assert_eq!(found.metrics.unwrap().inspected_spans, 2);
    let tags: TagScopes = get_protobuf(&server, "/api/v2/search/tags?scope=span");
    assert_eq!(tags.scopes, [TagScope { name: "span".to_owned(), tags: vec!["number".to_owned()] }]);
    let values: TagValues = get_protobuf(&server, "/api/v2/search/tag/resource.service.name/values");
    let values: Vec<(&str, &str)> =
        values.values.iter().map(|value| (value.name.as_str(), value.tags[0].as_str())).collect();
    assert_eq!(values, [("string", "back"), ("string", "front")]);
    let range = format!("start={}&end={}&step=60", now / SECOND - 600, now / SECOND + 1);
    let series: MetricsResponse = get_protobuf(
        &server,
        &format!("/api/metrics/query_range?q={}&{range}", percent_encoded("{}|count_over_time()")),
    );
    assert_eq!(series.series[0].samples.iter().map(|sample| sample.value).sum::<f64>(), 2.0);

    // Only those who ask with a cursor get one: other decoders are strict.
    assert!(server.get_json("/api/search?q=%7B%7D&limit=1").get("nextCursor").is_none());
    assert!(server.get_json("/api/search?q=%7B%7D&limit=1&cursor=")["nextCursor"].is_string());
}

/// All messages that a method streams.
async fn streamed<Q: Message, A: Message + Default>(
    address: &str,
    method: &str,
    question: &Q,
) -> Result<Vec<A>, Status> {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
    client.ready().await.unwrap();
    let path = format!("/tempopb.StreamingQuerier/{method}").parse().unwrap();
    let mut stream =
        client.server_streaming(tonic::Request::new(question.encode_to_vec()), path, Raw).await?.into_inner();
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await? {
        messages.push(A::decode(message.as_slice()).unwrap());
    }
    Ok(messages)
}

/// Scenario: a real gRPC client streams every method from both ports; each trace lies in a segment of its own.
/// Guarantee: traces come in order, in several messages, each once; errors carry their code and the place.
#[tokio::test]
async fn streams_over_grpc() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    for number in 1..=6u8 {
        let start = now - 100 * SECOND + u64::from(number) * 10 * SECOND;
        send(&server, "front", vec![span(number, 1, 0, "GET /", start, u64::from(number) * 100 * MS)]);
    }
    for port in ["tempo", "http"] {
        let address = server.address(port);
        let question = SearchRequest {
            query: "{ duration > 150ms }".to_owned(),
            limit: 4,
            start: (now / SECOND - 300) as u32,
            end: (now / SECOND + 1) as u32,
        };
        let parts: Vec<SearchResponse> = streamed(address, "Search", &question).await.unwrap();
        let ids: Vec<&str> = parts.iter().flat_map(|part| &part.traces).map(|trace| &trace.trace_id[..2]).collect();
        assert_eq!(ids, ["06", "05", "04", "03"]);
        assert!(parts.iter().filter(|part| !part.traces.is_empty()).count() > 1, "{parts:?}");
        let last = parts.last().unwrap().metrics.clone().unwrap();
        assert_eq!(last.completed_jobs, last.total_jobs);

        // What Grafana asks to test the connection.
        let anything = SearchRequest { query: "{}".to_owned(), limit: 1, ..question.clone() };
        let parts: Vec<SearchResponse> = streamed(address, "Search", &anything).await.unwrap();
        assert_eq!(parts.iter().map(|part| part.traces.len()).sum::<usize>(), 1);

        let scopes: Vec<TagScopes> = streamed(address, "SearchTagsV2", &TagRequest::default()).await.unwrap();
        let names: Vec<String> = scopes.iter().flat_map(|part| &part.scopes).map(|scope| scope.name.clone()).collect();
        assert_eq!(names.iter().filter(|name| *name == "span").count(), 1, "{names:?}");
        assert!(names.contains(&"intrinsic".to_owned()) && names.contains(&"resource".to_owned()));
        let tags: Vec<Texts> = streamed(address, "SearchTags", &TagRequest::default()).await.unwrap();
        let tags: Vec<String> = tags.into_iter().flat_map(|part| part.texts).collect();
        assert_eq!(tags, ["number", "service.name"]);
        let narrowed = TagRequest { name: "span.number".to_owned(), query: "{ duration > 450ms }".to_owned() };
        let values: Vec<TagValues> = streamed(address, "SearchTagValuesV2", &narrowed).await.unwrap();
        let mut values: Vec<String> =
            values.iter().flat_map(|part| &part.values).map(|value| value.tags[0].clone()).collect();
        values.sort();
        assert_eq!(values, ["5", "6"]);
        let plain = TagRequest { name: "number".to_owned(), query: String::new() };
        let values: Vec<Texts> = streamed(address, "SearchTagValues", &plain).await.unwrap();
        assert_eq!(values.iter().map(|part| part.texts.len()).sum::<usize>(), 6);

        let question = MetricsRequest {
            query: "{ } | count_over_time()".to_owned(),
            start: now - 300 * SECOND,
            end: now,
            step: 60 * SECOND,
        };
        let parts: Vec<MetricsResponse> = streamed(address, "MetricsQueryRange", &question).await.unwrap();
        let sum = |part: &MetricsResponse| part.series[0].samples.iter().map(|sample| sample.value).sum::<f64>();
        assert!(parts.len() > 1 && sum(&parts[0]) < 6.0, "{parts:?}");
        assert_eq!(sum(parts.last().unwrap()), 6.0);
        let parts: Vec<InstantResponse> = streamed(address, "MetricsQueryInstant", &question).await.unwrap();
        assert_eq!(parts.last().unwrap().series, [InstantSeries { value: 6.0 }]);

        let wrong = SearchRequest { query: "{ duraton > 1s }".to_owned(), ..SearchRequest::default() };
        let status = streamed::<_, SearchResponse>(address, "Search", &wrong).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("duration") && status.message().contains('^'), "{status:?}");
        let many = MetricsRequest { step: 1, ..question };
        let status = streamed::<_, MetricsResponse>(address, "MetricsQueryRange", &many).await.unwrap_err();
        assert!(status.message().contains("limit"), "{status:?}");
    }
}

/// Scenario: a series that leads in the first segment read and not over all, streamed as the first of its kind, by a
/// comparison that it fails in the end, and plainly with exemplars.
/// Guarantee: whoever keeps every point that a part had, as Grafana does, ends with the answer that is not streamed.
#[tokio::test]
async fn parts_take_nothing_back() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    let at = |second: u64| now - 100 * SECOND + second * SECOND;
    send(&server, "front", (1..=3).map(|id| span(1, id, 0, "early", at(u64::from(id)), MS)).collect());
    send(&server, "front", vec![span(2, 1, 0, "late", at(50), MS), span(2, 2, 1, "late", at(51), MS)]);
    let whole_range = |query: &str| MetricsRequest {
        query: query.to_owned(),
        start: now - 3600 * SECOND,
        end: now + 3600 * SECOND,
        step: 7200 * SECOND,
    };
    for query in
        ["{ } | rate() by (name) | topk(1)", "{ } | rate() by (name) < 0.0003", "{ } | compare({ name = \"early\" })"]
    {
        let parts: Vec<MetricsResponse> =
            streamed(server.address("tempo"), "MetricsQueryRange", &whole_range(query)).await.unwrap();
        let (last, before) = parts.split_last().unwrap();
        assert!(!before.is_empty() && before.iter().all(|part| part.series.is_empty()), "{query}: {parts:?}");
        assert!(!last.series.is_empty(), "{query}");
    }
    let parts: Vec<MetricsResponse> =
        streamed(server.address("tempo"), "MetricsQueryRange", &whole_range("{ } | rate() by (name)")).await.unwrap();
    let (last, before) = parts.split_last().unwrap();
    assert!(before.iter().any(|part| !part.series.is_empty()), "{parts:?}");
    assert!(before.iter().flat_map(|part| &part.series).all(|series| series.exemplars.is_empty()), "{parts:?}");
    assert!(last.series.iter().all(|series| !series.exemplars.is_empty()), "{last:?}");
}

fn event(name: &str, attributes: Vec<KeyValue>) -> Event {
    Event { name: name.to_owned(), attributes, ..Event::default() }
}

fn value_attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// Scenario: fields that a span has once for each event, and lists, selected, grouped by and counted by.
/// Guarantee: values are texts and numbers, never lists, which stop Grafana's search and empty its labels: of events
/// the last stands for all, one value stands for itself, and a list is one text.
#[test]
fn tables_and_labels_hold_no_lists() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    let tries = |count: i64| value_attribute("tries", any_value::Value::IntValue(count));
    let once = Span {
        events: vec![event("exception", vec![text_attribute("exception.type", "timeout"), tries(1)])],
        ..span(1, 1, 0, "once", now - 9 * SECOND, MS)
    };
    let list = ["a", "b"].map(|text| AnyValue { value: Some(any_value::Value::StringValue(text.to_owned())) });
    let twice = Span {
        events: vec![
            event("exception", vec![text_attribute("exception.type", "timeout"), tries(1)]),
            event("exception", vec![text_attribute("exception.type", "refused"), tries(2)]),
        ],
        attributes: vec![value_attribute("list", any_value::Value::ArrayValue(ArrayValue { values: list.to_vec() }))],
        ..span(2, 1, 0, "twice", now - 8 * SECOND, MS)
    };
    send(&server, "front", vec![once, twice]);
    let query = percent_encoded("{ } | select(event.exception.type, event.tries, span.list)");
    let found = server.get_json(&format!("/api/search?q={query}"));
    let attributes = |trace: usize| found["traces"][trace]["spanSets"][0]["spans"][0]["attributes"].clone();
    assert_eq!(
        attributes(0),
        json!([
            {"key": "exception.type", "value": {"stringValue": "refused"}},
            {"key": "tries", "value": {"intValue": "2"}},
            {"key": "list", "value": {"stringValue": r#"["a","b"]"#}},
        ])
    );
    assert_eq!(
        attributes(1),
        json!([
            {"key": "exception.type", "value": {"stringValue": "timeout"}},
            {"key": "tries", "value": {"intValue": "1"}},
        ])
    );
    let query = percent_encoded("{ } | count_over_time() by (event.exception.type)");
    let counted = server.get_json(&format!("/api/metrics/query?q={query}"));
    let labels: Vec<&Value> =
        counted["series"].as_array().unwrap().iter().map(|one| &one["labels"][0]["value"]["stringValue"]).collect();
    assert_eq!(labels, ["timeout", r#"["timeout","refused"]"#]);
}

/// Scenario: a span whose resource says nothing, and whose scope and status were not sent.
/// Guarantee: its trace holds it with a resource that names the service it is found under, a scope and a status,
/// without which Grafana's trace view leaves the span out or fails.
#[test]
fn a_span_of_nobody_is_shown() {
    let (_store, server) = Server::fresh();
    let sent = span(1, 1, 0, "alone", now_nanos() - 9 * SECOND, MS);
    let scope_spans = vec![ScopeSpans { spans: vec![sent], ..ScopeSpans::default() }];
    let body = ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..Default::default() }] };
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body.encode_to_vec()).unwrap().status, 200);
    let query = percent_encoded("{ resource.service.name = \"unknown_service\" }");
    assert_eq!(ids_of(&server.get_json(&format!("/api/search?q={query}"))), ["01"]);
    let answer: TraceByIdResponse = get_protobuf(&server, &format!("/api/v2/traces/{}", "01".repeat(16)));
    let group = &answer.trace.unwrap().resource_spans[0];
    assert_eq!(group.resource.as_ref().unwrap().attributes, [text_attribute("service.name", "unknown_service")]);
    assert!(group.scope_spans[0].scope.is_some() && group.scope_spans[0].spans[0].status.is_some(), "{group:?}");
}

/// Scenario: traces whose matching span comes long after their start, more than a page, ordered both ways.
/// Guarantee: the order is that of the whole traces, pages join without gap or overlap, and limits are named.
#[test]
fn order_and_pages_are_true_to_the_limit() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    let base = now - 3000 * SECOND;
    for number in 1..=9u8 {
        let start = base + u64::from(number) * 10 * SECOND;
        send(&server, "front", vec![span(number, 1, 0, "GET /", start, u64::from(number % 4) * SECOND + MS)]);
    }
    // The oldest trace has the latest matching span: it must not be taken for the most recent.
    send(&server, "back", vec![span(1, 2, 1, "late", base + 900 * SECOND, SECOND)]);

    let search = |rest: &str| server.get_json(&format!("/api/search?q=%7B%7D{rest}"));
    assert_eq!(ids_of(&search("&limit=3")), ["09", "08", "07"]);
    assert_eq!(ids_of(&search("&limit=50")), ["09", "08", "07", "06", "05", "04", "03", "02", "01"]);
    assert_eq!(ids_of(&search("&limit=4&order=duration")), ["01", "03", "07", "02"]);
    let whole =
        server.get_json(&format!("/api/search?limit=2&order=duration&q={}", percent_encoded("{} | count() > 0")));
    assert_eq!(ids_of(&whole), ["01", "03"]);

    for order in ["recent", "duration"] {
        let all = ids_of(&search(&format!("&limit=50&order={order}")));
        let mut paged = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = search(&format!("&limit=4&order={order}&cursor={cursor}"));
            paged.extend(ids_of(&page));
            match page["nextCursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        assert_eq!(paged, all, "{order}");
    }
    for (query, named) in [
        ("order=size", "recent or duration"),
        ("cursor=zz", "nextCursor"),
        ("limit=9999999", "262144"),
        ("spss=1000", "100"),
    ] {
        let answer = server.get(&format!("/api/search?q=%7B%7D&{query}")).unwrap();
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains(named), "{query}: {}", answer.text());
    }
}

/// Scenario: samples of one span of a trace, sent without any attribute on the span.
/// Guarantee: that span, and no other, says that it has a profile, so that Grafana offers it.
#[test]
fn spans_with_samples_say_so() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    send(
        &server,
        "front",
        vec![
            span(1, 1, 0, "GET /", now - 9 * SECOND, 700 * MS),
            span(1, 2, 1, "work", now - 9 * SECOND + MS, 500 * MS),
        ],
    );
    let sample = TestSample {
        trace_id: [1; 16],
        span_id: [2; 8],
        time: now - 9 * SECOND + 2 * MS,
        value: 10_000_000,
        stack: &["main", "work"],
    };
    let body = profile_request("front", [9; 16], &[sample]).encode_to_vec();
    assert_eq!(server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap().status, 200);

    for path in ["/api/traces/", "/api/v2/traces/"] {
        let answer = server.get_json(&format!("{path}{}", "01".repeat(16)));
        let groups = if answer["batches"].is_array() { &answer["batches"] } else { &answer["trace"]["resourceSpans"] };
        let spans = groups[0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let profile_of = |span: &Value| {
            let attributes = span["attributes"].as_array().unwrap();
            let found = attributes.iter().find(|attribute| attribute["key"] == "pyroscope.profile.id");
            found.map(|attribute| attribute["value"]["stringValue"].as_str().unwrap().to_owned())
        };
        assert_eq!(profile_of(&spans[0]), None);
        assert_eq!(profile_of(&spans[1]), Some("0202020202020202".to_owned()));
    }
}

/// Scenario: requests of two services and a database, scraped before and after more of them, and as a graph.
/// Guarantee: counters are exact and only grow, names are those that Grafana asks for, the graph has both edges.
#[test]
fn span_metrics_and_service_graph() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    let send_request = |number: u8| {
        let start = now - 60 * SECOND + u64::from(number) * SECOND;
        let client = Span { kind: 3, ..span(number, 2, 1, "call back", start + MS, 300 * MS) };
        let database = Span {
            kind: 3,
            attributes: vec![text_attribute("db.system", "postgresql")],
            ..span(number, 4, 3, "SELECT", start + 3 * MS, 100 * MS)
        };
        send(&server, "front", vec![span(number, 1, 0, "GET /", start, 700 * MS), client]);
        send(&server, "back", vec![span(number, 3, 2, "work", start + 2 * MS, 200 * MS), database]);
    };
    let scrape = |line: &str| -> Option<f64> {
        let text = server.get("/metrics/spans").unwrap().text();
        let found = text.lines().find_map(|one| one.strip_prefix(line));
        found.map(|rest| rest.trim().parse().unwrap())
    };
    let wait_for = |line: &str, value: f64| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while scrape(line) != Some(value) {
            assert!(std::time::Instant::now() < deadline, "{line}: {:?}, not {value}", scrape(line));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let calls = r#"traces_spanmetrics_calls_total{service="back",span_name="work",span_kind="SPAN_KIND_SERVER",status_code="STATUS_CODE_UNSET"}"#;
    let edge = r#"traces_service_graph_request_total{client="front",server="back",connection_type=""}"#;
    (1..=3).for_each(send_request);
    wait_for(calls, 3.0);
    wait_for(edge, 3.0);
    (4..=5).for_each(send_request);
    wait_for(calls, 5.0);
    wait_for(edge, 5.0);
    let bucket = calls.replace("_calls_total{", "_latency_bucket{").replace('}', "");
    assert_eq!(scrape(&format!("{bucket},le=\"0.128\"}}")), Some(0.0));
    assert_eq!(scrape(&format!("{bucket},le=\"0.256\"}}")), Some(5.0));
    assert_eq!(scrape(&calls.replace("_calls_total", "_latency_sum")), Some(1.0));
    assert_eq!(
        scrape(r#"traces_service_graph_request_client_seconds_sum{client="front",server="back",connection_type=""}"#),
        Some(1.5)
    );
    assert_eq!(
        scrape(r#"traces_service_graph_request_total{client="user",server="front",connection_type="virtual_node"}"#),
        Some(5.0)
    );

    let graph = server.get_json("/api/v1/service-graph");
    let edges: Vec<(String, String, u64, String)> = graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            let text = |key: &str| edge[key].as_str().unwrap().to_owned();
            (text("client"), text("server"), edge["requests"].as_u64().unwrap(), text("connection_type"))
        })
        .collect();
    assert_eq!(
        edges,
        [
            ("back".to_owned(), "postgresql".to_owned(), 5, "database".to_owned()),
            ("front".to_owned(), "back".to_owned(), 5, String::new()),
        ]
    );
    assert!((graph["edges"][1]["p50_ns"].as_f64().unwrap() / 2e8 - 1.0).abs() < 0.01);
}

/// Scenario: both commands against a running server, right and wrong. Guarantee: a table with ids that can be copied
/// into a waterfall with the share on the CPU; errors say what is wrong.
#[test]
fn traces_at_a_terminal() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    send(
        &server,
        "front",
        vec![
            span(1, 1, 0, "GET /", now - 9 * SECOND, 1000 * MS),
            span(1, 2, 1, "work", now - 9 * SECOND + MS, 500 * MS),
        ],
    );
    let sample = TestSample {
        trace_id: [1; 16],
        span_id: [2; 8],
        time: now - 9 * SECOND + 2 * MS,
        value: 250_000_000,
        stack: &["main", "work"],
    };
    let body = profile_request("front", [9; 16], &[sample]).encode_to_vec();
    assert_eq!(server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap().status, 200);
    let hotspan = |arguments: &[&str]| {
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_hotspan"))
            .args(arguments)
            .args(["--server", &server.http])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (run.status.success(), text(&run.stdout), text(&run.stderr))
    };
    let (fine, table, _) = hotspan(&["traces", "{ duration > 400ms }"]);
    assert!(fine && table.contains("front GET /") && table.contains("2, longest GET /"), "{table}");
    let id = table.lines().nth(1).unwrap().split_whitespace().last().unwrap().to_owned();
    assert_eq!(id, "01".repeat(16));
    let (fine, drawn, _) = hotspan(&["trace", &id, "--width", "100"]);
    assert!(fine && drawn.contains("└ front work") && drawn.contains("50 %"), "{drawn}");
    let bars: Vec<usize> = drawn.lines().skip(3).map(|line| line.matches('█').count()).collect();
    assert!(bars[0].abs_diff(2 * bars[1]) <= 2, "{drawn}");
    let (fine, _, error) = hotspan(&["trace", &"02".repeat(16)]);
    assert!(!fine && error.contains("there is no trace"), "{error}");
    let (fine, _, error) = hotspan(&["traces", "{ duraton > 1s }"]);
    assert!(!fine && error.contains("duration") && error.contains('^'), "{error}");
    let (fine, nothing, _) = hotspan(&["traces", "{ name = \"x\" }"]);
    assert!(fine && nothing.contains("no trace matches"), "{nothing}");
}
