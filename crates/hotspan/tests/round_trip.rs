//! What goes in comes out: OTLP in by every way, traces and flame graphs out, by public API alone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../hotspan-formats/tests/otlp/encode.rs"]
mod encode;
#[path = "support/pprof_file.rs"]
mod pprof_file;
mod support;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{KeyValueAndUnit, Line, Location, Mapping};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link as SpanLink};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use pprof_file::PprofFile;
use prost::Message;
use serde_json::json;
use support::{Server, TestSample, now_nanos, profile_request, request, text_attribute, trace_request};

const PROTOBUF: &str = "application/x-protobuf";

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn service_entity() -> EntityRef {
    EntityRef {
        schema_url: "https://schemas/entity".to_owned(),
        r#type: "service".to_owned(),
        id_keys: vec!["service.name".to_owned(), "service.namespace".to_owned()],
        description_keys: vec!["service.version".to_owned()],
    }
}

fn full_span(trace_id: [u8; 16], span_id: [u8; 8], start: u64) -> Span {
    Span {
        trace_id: trace_id.to_vec(),
        span_id: span_id.to_vec(),
        parent_span_id: vec![9; 8],
        trace_state: "vendor=1".to_owned(),
        flags: 0x101,
        name: "POST /checkout".to_owned(),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 1_500_000_000,
        attributes: vec![
            text_attribute("http.route", "/checkout"),
            attribute("http.status_code", Value::IntValue(503)),
            attribute("ratio", Value::DoubleValue(2.0)),
            attribute("retry", Value::BoolValue(true)),
            attribute("raw", Value::BytesValue(vec![0, 255])),
            attribute(
                "list",
                Value::ArrayValue(ArrayValue {
                    values: vec![AnyValue { value: Some(Value::IntValue(1)) }, AnyValue { value: None }],
                }),
            ),
        ],
        dropped_attributes_count: 3,
        events: vec![Event {
            time_unix_nano: start + 5,
            name: "exception".to_owned(),
            attributes: vec![text_attribute("exception.type", "Timeout")],
            dropped_attributes_count: 1,
        }],
        dropped_events_count: 4,
        links: vec![SpanLink {
            trace_id: vec![7; 16],
            span_id: vec![8; 8],
            trace_state: "l=2".to_owned(),
            attributes: vec![text_attribute("why", "batch")],
            dropped_attributes_count: 2,
            flags: 1,
        }],
        dropped_links_count: 5,
        status: Some(Status { message: "upstream".to_owned(), code: 2 }),
    }
}

/// Scenario: a span that uses every field OTLP has, and so do its scope and resource.
/// Guarantee: all of it is in the trace, with its types, and attributes of the resource in their order.
#[test]
fn everything_in_a_span_is_kept() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let start = now_nanos();
    let mut request = trace_request("shop", vec![full_span([1; 16], [2; 8], start)]);
    let group = &mut request.resource_spans[0];
    group.schema_url = "https://schemas/resource".to_owned();
    let resource = group.resource.as_mut().unwrap();
    resource.dropped_attributes_count = 6;
    resource.attributes.extend([text_attribute("zone", "b"), text_attribute("host.name", "one")]);
    let host = EntityRef { r#type: "host".to_owned(), id_keys: vec!["host.id".to_owned()], ..EntityRef::default() };
    resource.entity_refs = vec![service_entity(), host];
    group.scope_spans[0].schema_url = "https://schemas/scope".to_owned();
    let scope = group.scope_spans[0].scope.as_mut().unwrap();
    scope.version = "1.2.3".to_owned();
    scope.attributes = vec![text_attribute("library.mode", "fast")];
    scope.dropped_attributes_count = 7;
    let answer = server.post("/v1/traces", PROTOBUF, &request.encode_to_vec()).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"".as_slice()), "{}", answer.text());

    let trace = server.get_json("/api/traces/01010101010101010101010101010101");
    let batch = &trace["batches"][0];
    assert_eq!(batch["resource"]["attributes"][0], json!({"key": "service.name", "value": {"stringValue": "shop"}}));
    assert_eq!(
        (&batch["schemaUrl"], &batch["resource"]["droppedAttributesCount"]),
        (&json!("https://schemas/resource"), &json!(6))
    );
    let service = json!({
        "schemaUrl": "https://schemas/entity",
        "type": "service",
        "idKeys": ["service.name", "service.namespace"],
        "descriptionKeys": ["service.version"],
    });
    assert_eq!(batch["resource"]["entityRefs"], json!([service, {"type": "host", "idKeys": ["host.id"]}]));
    let path = "/api/traces/01010101010101010101010101010101";
    let answer =
        support::request(server.address("http"), "GET", path, &[("accept", "application/protobuf")], b"").unwrap();
    let in_protobuf = ExportTraceServiceRequest::decode(answer.body.as_slice()).unwrap();
    assert_eq!(in_protobuf.resource_spans[0].resource, request.resource_spans[0].resource);
    assert_eq!(batch["scopeSpans"][0]["schemaUrl"], "https://schemas/scope");
    let mode = json!({"key": "library.mode", "value": {"stringValue": "fast"}});
    let scope = json!({"name": "test", "version": "1.2.3", "attributes": [mode], "droppedAttributesCount": 7});
    assert_eq!(batch["scopeSpans"][0]["scope"], scope);
    let span = &batch["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "AQEBAQEBAQEBAQEBAQEBAQ==");
    assert_eq!(span["spanId"], "AgICAgICAgI=");
    assert_eq!(span["parentSpanId"], "CQkJCQkJCQk=");
    assert_eq!(span["traceState"], "vendor=1");
    assert_eq!(span["flags"], 0x101);
    assert_eq!(span["kind"], "SPAN_KIND_SERVER");
    assert_eq!(span["startTimeUnixNano"], start.to_string());
    assert_eq!(span["endTimeUnixNano"], (start + 1_500_000_000).to_string());
    assert_eq!(span["status"], json!({"message": "upstream", "code": "STATUS_CODE_ERROR"}));
    assert_eq!(
        (&span["droppedAttributesCount"], &span["droppedEventsCount"], &span["droppedLinksCount"]),
        (&json!(3), &json!(4), &json!(5))
    );
    let value = |key: &str| {
        let attributes = span["attributes"].as_array().unwrap();
        attributes.iter().find(|attribute| attribute["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("http.route"), json!({"stringValue": "/checkout"}));
    assert_eq!(value("http.status_code"), json!({"intValue": "503"}));
    assert_eq!(value("ratio"), json!({"doubleValue": 2.0}));
    assert_eq!(value("retry"), json!({"boolValue": true}));
    assert_eq!(value("raw"), json!({"bytesValue": "AP8="}));
    assert_eq!(value("list"), json!({"arrayValue": {"values": [{"intValue": "1"}, {}]}}));
    assert_eq!(span["events"][0]["attributes"][0]["value"]["stringValue"], "Timeout");
    assert_eq!(span["links"][0]["traceState"], "l=2");
    assert_eq!(span["links"][0]["flags"], 1);
    assert_eq!(span["links"][0]["attributes"], json!([{"key": "why", "value": {"stringValue": "batch"}}]));
    assert_eq!(span["links"][0]["droppedAttributesCount"], 2);
    assert_eq!(span["events"][0]["droppedAttributesCount"], 1);
}

/// What every way to ask tells of kinds and outcomes, by the first byte of the span's id.
fn told_kinds(server: &Server) -> Vec<String> {
    let accept = [("accept", "application/protobuf")];
    let path = format!("/api/traces/{}", "01".repeat(16));
    let answer = request(server.address("http"), "GET", &path, &accept, b"").unwrap();
    let in_protobuf = ExportTraceServiceRequest::decode(answer.body.as_slice()).unwrap();
    let groups = in_protobuf.resource_spans.iter().flat_map(|group| &group.scope_spans[0].spans);
    let mut told: Vec<String> = groups
        .map(|span| format!("{} {} {}", span.span_id[0], span.kind, span.status.as_ref().map_or(0, |it| it.code)))
        .collect();
    let in_json = server.get_json(&path);
    for group in in_json["batches"].as_array().unwrap() {
        for span in group["scopeSpans"][0]["spans"].as_array().unwrap() {
            told.push(format!("{} {} {}", span["spanId"], span["kind"], span["status"]));
        }
    }
    for row in rows_of(server, "SELECT encode(span_id, 'hex') AS id, kind, status FROM spans") {
        told.push(format!("{} {} {}", row["id"], row["kind"], row["status"]));
    }
    for condition in
        ["kind = 7", "kind = unspecified", "kind != server", "status = 9", "status = unset", "status != ok"]
    {
        let query = support::percent_encoded(&format!("{{ {condition} }} | select(kind, status)"));
        let found = server.get_json(&format!("/api/search?q={query}"));
        let mut spans: Vec<String> = found["traces"][0]["spanSet"]["spans"]
            .as_array()
            .unwrap_or(&Vec::new())
            .iter()
            .map(|span| format!("{} {}", span["spanID"], span["attributes"]))
            .collect();
        spans.sort_unstable();
        told.push(format!("{condition}: {spans:?}"));
    }
    let values = server.get_json("/api/v2/search/tag/kind/values");
    told.push(values["tagValues"].to_string());
    told.sort_unstable();
    told
}

/// Scenario: kinds and outcomes that OTLP has no name for, sent in protobuf and in JSON; some that are larger than any will be.
/// Guarantee: their numbers are given out by every API, from young segments and from sorted ones after a restart; of what
/// is too large the answer says that it was not kept.
#[test]
fn kinds_and_outcomes_of_the_future_are_kept() {
    let store = tempfile::tempdir().unwrap();
    let mut server = Server::start(store.path());
    server.wait_ready();
    let start = now_nanos();
    let span = |id: u8, kind: i32, code: i32| Span {
        parent_span_id: Vec::new(),
        kind,
        status: Some(Status { code, ..Status::default() }),
        ..full_span([1; 16], [id; 8], start)
    };
    let body = trace_request("shop", vec![span(1, 7, 0), span(2, -128, 9), span(3, 2, 1)]).encode_to_vec();
    let answer = server.post("/v1/traces", PROTOBUF, &body).unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, ""));
    let in_json = json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "js"}}]},
        "scopeSpans": [{"spans": [{
            "traceId": "01".repeat(16), "spanId": "04".repeat(8), "kind": 127, "status": {"code": "9"},
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": start.to_string(),
        }]}]
    }]});
    let answer = server.post("/v1/traces", "application/json", in_json.to_string().as_bytes()).unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    let young = told_kinds(&server);
    for expected in [
        "1 7 0",
        "2 -128 9",
        "3 2 1",
        "4 127 9",
        r#""AQEBAQEBAQE=" 7 {}"#,
        r#""AgICAgICAgI=" -128 {"code":9}"#,
        r#""AwMDAwMDAwM=" "SPAN_KIND_SERVER" {"code":"STATUS_CODE_OK"}"#,
        r#""BAQEBAQEBAQ=" 127 {"code":9}"#,
        r#""0101010101010101" 7 0"#,
        r#""0202020202020202" -128 9"#,
        "kind = unspecified: []",
    ] {
        assert!(young.iter().any(|told| told == expected), "{expected} is not told: {young:#?}");
    }
    let found = |condition: &str| {
        let line = young.iter().find(|told| told.starts_with(&format!("{condition}:"))).unwrap();
        ["01", "02", "03", "04"].map(|id| line.contains(&id.repeat(8)))
    };
    assert_eq!(found("kind = 7"), [true, false, false, false], "{young:#?}");
    assert_eq!(found("kind != server"), [true, true, false, true], "{young:#?}");
    assert_eq!(found("status = 9"), [false, true, false, true], "{young:#?}");
    assert_eq!(found("status = unset"), [true, false, false, false], "{young:#?}");
    assert_eq!(found("status != ok"), [true, true, false, true], "{young:#?}");
    let calls = server.get("/metrics/spans").unwrap().text();
    assert!(calls.contains(r#"span_kind="-128",status_code="9""#), "{calls}");

    assert!(server.terminate().success());
    let server = Server::start_with(store.path(), &["--compact-after", "1ms"]);
    server.wait_ready();
    server.wait_compacted();
    assert_eq!(told_kinds(&server), young);

    let body = trace_request("shop", vec![span(5, 1000, 2)]).encode_to_vec();
    let answer = server.post("/v1/traces", PROTOBUF, &body).unwrap();
    assert!(
        answer.text().contains("spans[0] has a kind or a status code that is neither a name that OTLP has"),
        "{}",
        answer.text()
    );
    let failed = server.get_json("/api/search?q=%7B%20kind%20%3D%20unspecified%20%26%26%20status%20%3D%20error%20%7D");
    assert_eq!(failed["traces"][0]["spanSet"]["matched"], 1, "{failed}");
}

/// The rows that a statement gives.
fn rows_of(server: &Server, query: &str) -> Vec<serde_json::Value> {
    server.post_json("/api/v1/sql", &json!({ "query": query }))["rows"].as_array().unwrap().clone()
}

/// Scenario: a profile with a binary, inlined functions, columns, an address without a function, attributes at every level, a
/// payload and schemas.
/// Guarantee: all of it is in the tables.
#[test]
fn everything_in_a_profile_is_kept() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    let sample = TestSample { stack: &["main", "inlined"], value: 5, time: now, trace_id: [1; 16], span_id: [2; 8] };
    let mut request = profile_request("shop", [6; 16], &[sample]);
    let dictionary = request.dictionary.as_mut().unwrap();
    let mut attribute = |key: &str, value: &str| {
        dictionary.string_table.push(key.to_owned());
        dictionary.attribute_table.push(KeyValueAndUnit {
            key_strindex: (dictionary.string_table.len() - 1) as i32,
            value: Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) }),
            unit_strindex: 0,
        });
        (dictionary.attribute_table.len() - 1) as i32
    };
    let build_id = attribute("process.executable.build_id.gnu", "abcdef");
    let of_location = attribute("location.note", "hot");
    let of_sample = attribute("sample.note", "slow");
    let of_profile = attribute("profile.note", "made by hand");
    dictionary.string_table.push("/usr/bin/shop".to_owned());
    let filename_strindex = (dictionary.string_table.len() - 1) as i32;
    let range = (0x1000, 0x9000);
    dictionary.mapping_table.push(Mapping {
        memory_start: range.0,
        memory_limit: range.1,
        file_offset: range.0,
        filename_strindex,
        attribute_indices: vec![build_id],
    });
    // The leaf has both functions, the inner one first; below it is code that nobody has a name for.
    let line = |function_index, line, column| Line { function_index, line, column };
    let inlined = Location {
        mapping_index: 1,
        address: 0x1234,
        lines: vec![line(1, 7, 3), line(2, 70, 30)],
        attribute_indices: vec![of_location],
    };
    let nameless = Location { mapping_index: 1, address: 0x2345, ..Location::default() };
    dictionary.location_table = vec![Location::default(), nameless, inlined];
    dictionary.stack_table[1].location_indices = vec![1, 2];
    let group = &mut request.resource_profiles[0];
    group.schema_url = "https://schemas/resource".to_owned();
    group.resource.as_mut().unwrap().entity_refs = vec![service_entity()];
    group.scope_profiles[0].schema_url = "https://schemas/scope".to_owned();
    group.scope_profiles[0].scope = Some(InstrumentationScope {
        name: "profiler".to_owned(),
        version: "1.2.3".to_owned(),
        attributes: vec![text_attribute("library.mode", "fast")],
        dropped_attributes_count: 7,
    });
    let profile = &mut group.scope_profiles[0].profiles[0];
    profile.samples[0].attribute_indices = vec![of_sample];
    profile.attribute_indices = vec![of_profile];
    profile.original_payload_format = "pprof".to_owned();
    profile.original_payload = vec![1, 2, 255];
    profile.dropped_attributes_count = 9;
    let answer = server.post("/v1/profiles", PROTOBUF, &request.encode_to_vec()).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"".as_slice()), "{}", answer.text());

    let profiles = rows_of(
        &server,
        "SELECT service, period, duration, resource, scope, attributes, mappings, dropped_attributes_count AS dropped, \
         original_payload_format AS format, encode(original_payload, 'hex') AS payload, source FROM profiles",
    );
    let [profile] = profiles.as_slice() else { panic!("{profiles:?}") };
    let text = |column: &str| profile[column].as_str().unwrap_or_default().to_owned();
    assert_eq!((text("service"), text("source")), ("shop".to_owned(), "otlp".to_owned()));
    assert_eq!((&profile["period"], &profile["duration"]), (&json!(10_000_000), &json!(15_000_000_000i64)));
    assert_eq!((text("format"), text("payload"), &profile["dropped"]), ("pprof".into(), "0102ff".into(), &json!(9)));
    for (column, parts) in [
        (
            "resource",
            ["service.name", "https://schemas/resource", "https://schemas/entity", "service.version"].as_slice(),
        ),
        ("scope", &["profiler", "1.2.3", "library.mode", "fast", "https://schemas/scope", "7"]),
        ("attributes", &["profile.note", "made by hand"]),
        ("mappings", &["/usr/bin/shop", "abcdef"]),
    ] {
        for part in parts {
            assert!(text(column).contains(part), "{column}: {} lacks {part}", text(column));
        }
    }
    let samples = rows_of(&server, "SELECT value, attributes, stack(path) AS stack FROM samples");
    let [sample] = samples.as_slice() else { panic!("{samples:?}") };
    assert_eq!(sample["value"], 5);
    // A label of the series or an attribute of the sample: it can be asked for either way.
    let labels = rows_of(&server, "SELECT labels FROM series").remove(0);
    assert!(format!("{sample}{labels}").contains("slow"), "{sample} {labels}");

    let frames = rows_of(
        &server,
        "SELECT function, file, line, \"column\" AS col, build_id, mapping, address, attributes FROM frames ORDER BY function",
    );
    let frame = |name: &str| frames.iter().find(|frame| frame["function"] == name).expect(name);
    for (name, line, column) in [("inlined", 7, 3), ("main", 70, 30)] {
        let place = frame(name);
        assert_eq!((&place["line"], &place["col"]), (&json!(line), &json!(column)), "{place}");
        assert_eq!(place["file"], format!("{name}.rs"));
        assert_eq!(place["mapping"], "/usr/bin/shop", "{place}");
    }
    assert!(frames.iter().any(|frame| frame["attributes"].to_string().contains("location.note")), "{frames:?}");
    assert!(frames.iter().any(|frame| frame["address"] == 0x2345 && frame["build_id"] == "abcdef"), "{frames:?}");
    let stack = sample["stack"].as_str().unwrap();
    assert!(stack.find("main").unwrap() < stack.find("inlined").unwrap(), "{stack}");
}

/// A program with code that has names, inlined code and code without, a library that is known, and an address of which
/// nobody knows where it was loaded.
fn partly_named(time: i64) -> PprofFile {
    let mut file = PprofFile { time, duration: 1_000_000_000, period: 10_000_000, ..PprofFile::default() };
    file.text("");
    let cpu = pprof_file::ValueType { kind: file.text("cpu"), unit: file.text("nanoseconds") };
    (file.sample_types, file.period_type) = (vec![cpu], Some(cpu));
    let binaries = [
        (0x40_0000, 0x50_0000, 0x1000, "/usr/bin/app", "deadbeefcafe", false),
        (0x7f00_0000_0000, 0x7f00_0010_0000, 0, "/lib/libc.so.6", "c0ffee", true),
        (0, 0, 0, "/opt/raw", "", false),
    ];
    for (id, (start, limit, offset, name, build_id, has_functions)) in (1..).zip(binaries) {
        let (name, build_id) = (file.text(name), file.text(build_id));
        file.mappings.push(pprof_file::Mapping { id, start, limit, offset, file: name, build_id, has_functions });
    }
    for (id, (name, system_name)) in
        (1..).zip([("main", "main"), ("app::price", "_ZN3app5priceE"), ("round", "round"), ("memcpy", "__memcpy_avx")])
    {
        let function = pprof_file::Function {
            id,
            name: file.text(name),
            system_name: file.text(system_name),
            file: file.text("src/app.rs"),
            start_line: 10 * id as i64,
        };
        file.functions.push(function);
    }
    let line = |function, line, column| pprof_file::Line { function, line, column };
    let locations = [
        (1, 0x40_0010, vec![line(1, 11, 0)]),
        (1, 0x40_0020, vec![line(3, 31, 5), line(2, 22, 7)]),
        (1, 0x40_1234, vec![]),
        (1, 0x40_5678, vec![]),
        (2, 0x7f00_0000_1000, vec![line(4, 41, 0)]),
        (3, 0x77, vec![]),
    ];
    for (id, (mapping, address, lines)) in (1..).zip(locations) {
        file.locations.push(pprof_file::Location { id, mapping, address, lines });
    }
    for (stack, value) in [(vec![2, 1], 5), (vec![3, 4, 1], 7), (vec![5, 3, 1], 11), (vec![6], 13)] {
        file.samples.push(pprof_file::Sample { locations: stack, values: vec![value * 1_000_000] });
    }
    file
}

/// Scenario: a pprof file with names, inlined functions and bare addresses in several binaries is pushed and exported; what
/// was exported is pushed and exported again; the same is asked of Pyroscope's API.
/// Guarantee: binaries, build ids, addresses, functions and lines are those that went in. Code without a name has no line, and
/// its binary does not claim to know its functions, so that `pprof` can name it.
#[test]
fn binaries_and_addresses_survive_an_export() {
    let (_store, server) = Server::fresh();
    let pushed = partly_named(now_nanos() as i64 - 10_000_000_000);
    let push = |service: &str, body: &[u8]| {
        let path = format!("/api/v1/profiles?service={service}");
        let answer = server.post(&path, "application/octet-stream", body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let exported = |service: &str, from: &str| {
        let answer = server.get(&format!("/api/v1/profile?app={service}&from={from}&format=pprof")).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(answer.body.as_slice()), &mut plain).unwrap();
        (PprofFile::decode(plain.as_slice()).unwrap(), answer.body)
    };
    push("first", &pushed.encode_to_vec());
    let (first, body) = exported("first", "now-1h");
    push("second", &body);
    // An exported file starts where the question did.
    let (second, _) = exported("second", "now-2h");
    let request = json!({"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "start": "1",
        "end": 4_102_444_800_000i64, "labelSelector": "{service_name=\"first\"}"});
    let merged = server.post_json("/querier.v1.QuerierService/SelectMergeProfile", &request);
    let binaries = pushed.binaries();
    assert_eq!(binaries[2], "/usr/bin/app deadbeefcafe to be named");
    for file in [&first, &second] {
        assert_eq!(file.binaries(), binaries);
        assert_eq!(file.stacks(), pushed.stacks());
    }
    let texts = merged["stringTable"].as_array().unwrap();
    let text = |number: &serde_json::Value| texts[number.as_str().unwrap().parse::<usize>().unwrap()].clone();
    let mut named: Vec<(String, String)> = Vec::new();
    for mapping in merged["mapping"].as_array().unwrap() {
        named.push((text(&mapping["filename"]).to_string(), text(&mapping["buildId"]).to_string()));
    }
    assert!(named.contains(&("\"/lib/libc.so.6\"".to_owned(), "\"c0ffee\"".to_owned())), "{merged:#}");
    let bare = |location: &&serde_json::Value| location["line"].as_array().unwrap().is_empty();
    let bare = merged["location"].as_array().unwrap().iter().filter(bare);
    let mut addresses: Vec<u64> = bare.map(|place| place["address"].as_str().unwrap().parse().unwrap()).collect();
    addresses.sort_unstable();
    assert_eq!(addresses, [0x77, 0x2234, 0x6678]);
    // Where a flame graph is drawn, the address stands for the name.
    let names = server.get_json("/api/v1/profile?app=first")["flamebearer"]["names"].clone();
    assert!(names.as_array().unwrap().contains(&json!("app!0x2234")), "{names}");
}

/// Scenario: a profile in the numbering of OTLP v1.9, as collectors of that time send it.
/// Guarantee: value, time, span and attribute of its sample land where they belong.
#[test]
fn the_numbering_of_v1_9() {
    let (_store, server) = Server::fresh();
    let now = now_nanos();
    let empty = encode::Message::new;
    let line = empty().varint(1, 1).varint(2, 10);
    let mut dictionary = empty().message(1, &empty()).message(2, &empty()).message(2, &empty().message(3, &line));
    dictionary = dictionary.message(3, &empty()).message(3, &empty().varint(1, 5));
    let link = empty().bytes(1, [7; 16]).bytes(2, [9; 8]);
    dictionary = dictionary.message(4, &empty()).message(4, &link);
    for text in ["", "samples", "count", "cpu", "nanoseconds", "main", "route"] {
        dictionary = dictionary.bytes(5, text);
    }
    let route = empty().varint(1, 6).message(2, &empty().bytes(1, "/a"));
    dictionary = dictionary.message(6, &empty()).message(6, &route);
    dictionary = dictionary.message(7, &empty()).message(7, &empty().packed(1, &[1]));
    let sample = empty().varint(1, 1).packed(2, &[3]).packed(3, &[1]).varint(4, 1).packed_fixed64(5, &[now]);
    let profile = empty()
        .message(1, &empty().varint(1, 1).varint(2, 2))
        .message(2, &sample)
        .fixed64(3, now)
        .message(5, &empty().varint(1, 3).varint(2, 4))
        .varint(6, 10);
    let scope = empty().message(2, &profile);
    let request = empty().message(1, &empty().message(2, &scope)).message(2, &dictionary);
    let answer = server.post("/v1/profiles", PROTOBUF, &request.0).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"".as_slice()), "{}", answer.text());
    let flame = server.get_json("/api/v1/profile?span_id=0909090909090909");
    assert_eq!(flame["flamebearer"]["numTicks"], 30, "{flame}");
    let samples =
        rows_of(&server, "SELECT value, arrow_cast(time, 'Int64') AS time, stack(path) AS stack FROM samples");
    assert_eq!(samples, [json!({"value": 30, "time": now, "stack": "main"})]);
    let labels = rows_of(&server, "SELECT labels['route'] AS route FROM series");
    assert!(labels[0].to_string().contains("/a"), "{labels:?}");
}

/// Scenario: a trace and a profile whose samples name two of its spans.
/// Guarantee: the flame graph of a span holds exactly its samples, that of the trace both.
#[test]
fn a_span_leads_to_its_code() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let now = now_nanos();
    let trace_id = [3; 16];
    let spans = [[4; 8], [5; 8]].map(|span_id| full_span(trace_id, span_id, now));
    let traces = trace_request("shop", spans.to_vec());
    server.post("/v1/traces", PROTOBUF, &traces.encode_to_vec()).unwrap();
    let sample = |stack, value, span_id| TestSample { stack, value, time: now + 10, trace_id, span_id };
    let samples = [
        sample(&["main", "checkout", "tax"] as &[&str], 30, [4; 8]),
        sample(&["main", "checkout"], 10, [4; 8]),
        sample(&["main", "ship"], 500, [5; 8]),
        sample(&["main", "idle"], 7000, [0; 8]),
    ];
    let profiles = profile_request("shop", [6; 16], &samples);
    let answer = server.post("/v1development/profiles", PROTOBUF, &profiles.encode_to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());

    let of_span = server.get_json("/api/v1/profile?span_id=0404040404040404&format=json");
    assert_eq!(of_span["flamebearer"]["numTicks"], 40);
    assert_eq!(of_span["exactness"]["samples"], 2);
    let names = of_span["flamebearer"]["names"].as_array().unwrap();
    assert!(names.contains(&json!("tax")) && !names.contains(&json!("ship")), "{names:?}");
    let of_trace = server.get_json("/api/v1/profile?trace_id=03030303030303030303030303030303");
    assert_eq!(of_trace["flamebearer"]["numTicks"], 7540);
    let of_service = server.get_json("/api/v1/profile?app=shop&from=now-1h&until=now%2B1h");
    assert_eq!(of_service["flamebearer"]["numTicks"], 7540);
    let other_service = server.get_json("/api/v1/profile?app=other");
    assert_eq!(other_service["flamebearer"]["numTicks"], 0);
    let cohort = |query: &str, scope: &str| {
        let body = json!({ "query": query, "scope": scope, "from": "now-1h", "to": "now+1h" }).to_string();
        let answer = server.post("/api/v1/cohort/flame", "application/json", body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()["flamebearer"]["numTicks"].clone()
    };
    assert_eq!(cohort("{ span:id = \"0404040404040404\" }", "span"), 40);
    assert_eq!(cohort("{ duration > 1s }", "span"), 540);
    assert_eq!(cohort("{ span:id = \"0404040404040404\" }", "trace"), 7540);
    assert_eq!(cohort("{ duration > 1h }", "span"), 0);
    let text = server.get("/api/v1/profile?span_id=0404040404040404&format=flamegraph").unwrap().text();
    assert!(text.contains("tax") && text.contains("75"), "{text}");
}

/// Scenario: the same request sent twice, as a client does whose connection broke.
/// Guarantee: spans and samples are there once, also when the server restarted in between.
#[test]
fn a_retry_counts_once() {
    let store = tempfile::tempdir().unwrap();
    let now = now_nanos();
    let traces = trace_request("shop", vec![full_span([1; 16], [2; 8], now)]).encode_to_vec();
    let sample = TestSample { stack: &["main"], value: 5, time: now, trace_id: [1; 16], span_id: [2; 8] };
    let profiles = profile_request("shop", [6; 16], &[sample]).encode_to_vec();
    for _ in 0..2 {
        let mut server = Server::start(store.path());
        server.wait_ready();
        for _ in 0..2 {
            assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
            assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles).unwrap().status, 200);
        }
        let flame = server.get_json("/api/v1/profile?span_id=0202020202020202");
        assert_eq!(flame["flamebearer"]["numTicks"], 5);
        let trace = server.get_json("/api/traces/01010101010101010101010101010101");
        assert_eq!(trace["batches"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len(), 1);
        assert!(server.terminate().success());
    }
}

/// Scenario: data of three hours ago is merged for good, which takes seconds; the server is killed, and data is sent again.
/// Guarantee: it is there once.
#[test]
fn a_retry_of_late_data_counts_once() {
    let store = tempfile::tempdir().unwrap();
    let config = store.path().join("hotspan.toml");
    std::fs::write(&config, "[compaction]\nfirst_level_age = \"100ms\"\npartition_quiet = \"100ms\"\n").unwrap();
    let start = || {
        let server = Server::start_with(store.path(), &["--config", config.to_str().unwrap()]);
        server.wait_ready();
        server
    };
    let late = now_nanos() - 3 * 3600 * 1_000_000_000;
    let traces = trace_request("shop", vec![full_span([1; 16], [2; 8], late)]).encode_to_vec();
    let sample = TestSample { stack: &["main"], value: 5, time: late, trace_id: [1; 16], span_id: [2; 8] };
    let profiles = profile_request("shop", [6; 16], &[sample]).encode_to_vec();
    let send = |server: &Server| {
        assert_eq!(server.post("/v1/traces", PROTOBUF, &traces).unwrap().status, 200);
        assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles).unwrap().status, 200);
    };
    let mut server = start();
    send(&server);
    server.wait_merged();
    server.kill();
    let server = start();
    send(&server);
    server.wait_merged();
    for table in ["spans", "samples", "profiles"] {
        let query = format!("SELECT count(*) AS count FROM {table}");
        let answer = server.post_json("/api/v1/sql", &json!({ "query": query }));
        assert_eq!(answer["rows"], json!([{ "count": 1 }]), "{table}");
    }
}

/// Scenario: a profile that has neither an id nor a time is sent twice, with some time between, as after a lost answer.
/// Guarantee: it counts once.
#[test]
fn a_retry_without_id_and_time_counts_once() {
    let (_store, server) = Server::fresh();
    let sample = TestSample { stack: &["main"], value: 7, time: 0, trace_id: [0; 16], span_id: [0; 8] };
    let mut profiles = profile_request("shop", [0; 16], &[sample]);
    let profile = &mut profiles.resource_profiles[0].scope_profiles[0].profiles[0];
    profile.profile_id.clear();
    profile.samples[0].timestamps_unix_nano.clear();
    for _ in 0..2 {
        assert_eq!(server.post("/v1/profiles", PROTOBUF, &profiles.encode_to_vec()).unwrap().status, 200);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let flame = server.get_json("/api/v1/profile?app=shop&from=now-1h&until=now%2B1h");
    assert_eq!(flame["flamebearer"]["numTicks"], 7);
}

/// Scenario: requests that are wrong in one way each.
/// Guarantee: the status tells which way, the message names the fault, and nothing is stored.
#[test]
fn bad_input_gets_a_clear_answer() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let broken = server.post("/v1/traces", PROTOBUF, &[0x0a, 0xff, 0xff]).unwrap();
    assert_eq!(broken.status, 400);
    assert!(broken.text().contains("offset") || broken.text().contains("byte"), "{}", broken.text());
    assert_eq!(server.post("/v1/traces", "text/plain", b"x").unwrap().status, 415);
    let json = server.post("/v1/traces", "application/json", b"{\"resourceSpans\":[{\"scopeSpans\":4}]}").unwrap();
    assert_eq!(json.status, 400);
    assert!(json.text().contains("scopeSpans") || json.text().contains("scope_spans"), "{}", json.text());
    assert!(json.headers.to_ascii_lowercase().contains("content-type: application/json"), "{}", json.headers);
    let encoding = [("content-type", PROTOBUF), ("content-encoding", "br")];
    assert_eq!(request(&server.http, "POST", "/v1/traces", &encoding, b"").unwrap().status, 415);

    let mut wrong_id = full_span([1; 16], [2; 8], now_nanos());
    wrong_id.trace_id.pop();
    let good = full_span([4; 16], [2; 8], now_nanos());
    let partly = trace_request("shop", vec![wrong_id, good]).encode_to_vec();
    let answer = server.post("/v1/traces", PROTOBUF, &partly).unwrap();
    assert_eq!(answer.status, 200);
    let partial = opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse::decode(&*answer.body);
    let partial = partial.unwrap().partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("trace_id"), "{}", partial.error_message);
    assert_eq!(server.get("/api/traces/04040404040404040404040404040404").unwrap().status, 200);

    assert_eq!(server.get("/api/traces/xyz").unwrap().status, 400);
    assert_eq!(server.get("/api/traces/1234").unwrap().status, 404);
    assert_eq!(server.get_json("/api/v2/traces/1234")["trace"], json!({}));
    assert_eq!(server.get("/api/v1/profile?span_id=zz").unwrap().status, 400);
    assert_eq!(server.get("/api/v1/profile?type=nonsense").unwrap().status, 400);
    assert_eq!(server.get("/api/v1/profile?from=tomorrow").unwrap().status, 400);
}

/// Scenario: a request of a few kilobytes that unpacks to gigabytes.
/// Guarantee: it is refused with 413 while unpacking.
#[test]
fn a_compression_bomb_is_refused() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let zeros = vec![0u8; 100 << 20];
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    let bomb = encoder.finish().unwrap();
    let headers = [("content-type", PROTOBUF), ("content-encoding", "gzip")];
    let answer = request(&server.http, "POST", "/v1/traces", &headers, &bomb).unwrap();
    assert_eq!(answer.status, 413, "{}", answer.text());
}

/// Scenario: a second process on the same store, while the first is writing a file.
/// Guarantee: the second refuses to start, says who has the store, and touches nothing of it.
#[test]
fn one_store_belongs_to_one_process() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let being_written = store.path().join("data/segment.0.unfinished");
    std::fs::write(&being_written, b"half").unwrap();
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args(["serve", "--http", "off", "--otlp-grpc", "off", "--otlp-http", "off", "--tempo", "off", "--store"])
        .arg(store.path())
        .output()
        .unwrap();
    assert!(!second.status.success());
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(message.contains("is in use by process"), "{message}");
    assert!(being_written.exists());
}

/// Scenario: OTLP/JSON as the specification writes it. Guarantee: stored like protobuf, answered in JSON.
#[test]
fn json_in_json_out() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let now = now_nanos();
    let body = json!({"resourceSpans": [{
        "resource": {
            "attributes": [{"key": "service.name", "value": {"stringValue": "js"}}],
            "entityRefs": [{"type": "service", "idKeys": ["service.name"]}],
        },
        "scopeSpans": [{"spans": [{
            "traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
            "name": "hello", "startTimeUnixNano": now.to_string(), "endTimeUnixNano": now + 1_000_000_000,
            "kind": 2, "unknownField": [1, {"x": 2}],
            "attributes": [{"key": "n", "value": {"intValue": "12"}}]
        }]}]
    }]});
    let answer = server.post("/v1/traces", "application/json", body.to_string().as_bytes()).unwrap();
    assert_eq!((answer.status, answer.text().trim()), (200, "{}"));
    let trace = server.get_json("/api/traces/5b8efff798038103d269b633813fc60c");
    let span = &trace["batches"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["name"], "hello");
    assert_eq!(trace["batches"][0]["resource"]["entityRefs"], body["resourceSpans"][0]["resource"]["entityRefs"]);
    assert_eq!(span["attributes"][0]["value"]["intValue"], "12");
}
