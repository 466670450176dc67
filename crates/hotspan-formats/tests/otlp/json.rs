//! OTLP/JSON in: the same meaning as protobuf, whatever the spelling.

use hotspan_formats::otlp::decode_profiles;
use hotspan_formats::otlp::json::{ProfilesJson, decode_traces_json};
use hotspan_formats::{DecodeError, Limits};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Sent;
use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::Sample;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value, json};

use crate::builder::Builder;
use crate::dice::Dice;
use crate::profile_oracle::describe;
use crate::random_traces;
use crate::trace_oracle::{Told, translate};

fn told(json: &Value) -> Result<Told, DecodeError> {
    let mut told = Told::default();
    let outcome = decode_traces_json(json.to_string().as_bytes(), &Limits::default(), &mut told)?;
    (told.accepted, told.rejected) = (outcome.accepted, outcome.rejected);
    Ok(told)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

pub(crate) fn resource_spans(sent: &ResourceSpans) -> Value {
    let resource = sent.resource.as_ref().map(|resource| {
        json!({
            "attributes": attributes(&resource.attributes),
            "droppedAttributesCount": resource.dropped_attributes_count,
            "entityRefs": resource.entity_refs.iter().map(entity_ref).collect::<Vec<_>>(),
        })
    });
    let scopes: Vec<Value> = sent.scope_spans.iter().map(scope_spans).collect();
    json!({"resource": resource, "scopeSpans": scopes, "schemaUrl": sent.schema_url, "unknown": [{"a": [1]}]})
}

fn entity_ref(sent: &EntityRef) -> Value {
    json!({
        "schemaUrl": sent.schema_url,
        "type": sent.r#type,
        "idKeys": sent.id_keys,
        "descriptionKeys": sent.description_keys,
    })
}

fn scope_spans(sent: &ScopeSpans) -> Value {
    let scope = sent.scope.as_ref().map(|scope| {
        json!({
            "name": scope.name,
            "version": scope.version,
            "attributes": attributes(&scope.attributes),
            "dropped_attributes_count": scope.dropped_attributes_count,
        })
    });
    let spans: Vec<Value> = sent.spans.iter().map(span).collect();
    json!({"scope": scope, "spans": spans, "schema_url": sent.schema_url})
}

fn span(sent: &Span) -> Value {
    let events: Vec<Value> = sent
        .events
        .iter()
        .map(|event| {
            json!({
                "timeUnixNano": event.time_unix_nano.to_string(),
                "name": event.name,
                "attributes": attributes(&event.attributes),
                "droppedAttributesCount": event.dropped_attributes_count,
            })
        })
        .collect();
    let links: Vec<Value> = sent
        .links
        .iter()
        .map(|link| {
            json!({
                "traceId": hex(&link.trace_id),
                "spanId": hex(&link.span_id),
                "traceState": link.trace_state,
                "attributes": attributes(&link.attributes),
                "droppedAttributesCount": link.dropped_attributes_count,
                "flags": link.flags,
            })
        })
        .collect();
    json!({
        "traceId": hex(&sent.trace_id),
        "spanId": hex(&sent.span_id),
        "traceState": sent.trace_state,
        "parentSpanId": hex(&sent.parent_span_id),
        "flags": sent.flags,
        "name": sent.name,
        "kind": sent.kind,
        "startTimeUnixNano": sent.start_time_unix_nano.to_string(),
        "endTimeUnixNano": sent.end_time_unix_nano,
        "attributes": attributes(&sent.attributes),
        "droppedAttributesCount": sent.dropped_attributes_count,
        "events": events,
        "droppedEventsCount": sent.dropped_events_count,
        "links": links,
        "droppedLinksCount": sent.dropped_links_count,
        "status": sent.status.as_ref().map(|status| json!({"message": status.message, "code": status.code})),
    })
}

fn attributes(sent: &[KeyValue]) -> Value {
    sent.iter().map(|sent| json!({"key": sent.key, "value": sent.value.as_ref().map(value)})).collect()
}

fn value(sent: &AnyValue) -> Value {
    match &sent.value {
        None => json!({}),
        Some(Sent::StringValue(text)) => json!({"stringValue": text}),
        Some(Sent::BoolValue(value)) => json!({"boolValue": value}),
        Some(Sent::IntValue(value)) => json!({"intValue": value.to_string()}),
        Some(Sent::DoubleValue(value)) if value.is_infinite() => json!({"doubleValue": "Infinity"}),
        Some(Sent::DoubleValue(value)) => json!({"doubleValue": value}),
        Some(Sent::BytesValue(bytes)) => json!({"bytesValue": base64(bytes)}),
        Some(Sent::ArrayValue(list)) => {
            json!({"arrayValue": {"values": list.values.iter().map(value).collect::<Vec<_>>()}})
        }
        Some(Sent::KvlistValue(list)) => json!({"kvlistValue": {"values": attributes(&list.values)}}),
        Some(Sent::StringValueStrindex(_)) => unreachable!("not generated for traces"),
    }
}

proptest! {
    /// Scenario: any trace request, written as OTLP/JSON.
    /// Guarantee: the sink sees what a plain translation of the generated types gives.
    #[test]
    fn equals_the_generated_types(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let request = random_traces::request(&mut Dice::new(&bytes));
        let groups: Vec<Value> = request.resource_spans.iter().map(resource_spans).collect();
        let told = told(&json!({"resourceSpans": groups})).unwrap();
        prop_assert_eq!(told, translate(&request));
    }

    /// Scenario: JSON with damage.
    /// Guarantee: an answer, whatever it is.
    #[test]
    fn damage_never_panics(at in any::<u16>(), byte in any::<u8>(), cut in any::<u16>()) {
        let text = one_span(&json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8), "name": "é"})).to_string();
        let mut bytes = text.into_bytes();
        let at = usize::from(at) % bytes.len();
        bytes[at] = byte;
        let _ = decode_traces_json(&bytes, &Limits::default(), &mut Told::default());
        bytes.truncate(usize::from(cut) % bytes.len());
        let _ = decode_traces_json(&bytes, &Limits::default(), &mut Told::default());
        let _ = ProfilesJson::parse(&bytes, &Limits::default());
    }
}

fn one_span(span: &Value) -> Value {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

/// Scenario: one span in every spelling that is met: hex of either case, base64, names, numbers, quotes, snake case.
/// Guarantee: the same span.
#[test]
fn spellings() {
    let (trace, span_id) = ([0xab; 16], [0xcd; 8]);
    let spellings = [
        json!({"traceId": hex(&trace), "spanId": hex(&span_id), "kind": 2, "startTimeUnixNano": "1000",
               "status": {"code": 2}, "attributes": [{"key": "n", "value": {"intValue": "5"}}]}),
        json!({"trace_id": hex(&trace).to_uppercase(), "span_id": hex(&span_id), "kind": "SPAN_KIND_SERVER",
               "start_time_unix_nano": 1000, "status": {"code": "STATUS_CODE_ERROR"},
               "attributes": [{"key": "n", "value": {"int_value": 5}}], "links": null}),
        json!({"traceId": base64(&trace), "spanId": base64(&span_id), "kind": "2", "startTimeUnixNano": 1e3,
               "endTimeUnixNano": 0.0, "status": {"code": 2, "later": {}}, "attributes": [{"key": "n", "value": {"intValue": 5.0}}]}),
    ];
    let first = told(&one_span(&spellings[0])).unwrap();
    assert_eq!(first.accepted, 1);
    for spelling in &spellings[1..] {
        assert_eq!(told(&one_span(spelling)).unwrap(), first, "{spelling}");
    }
}

/// Scenario: integers beyond 64 bits, as JavaScript writes what `Number.isInteger` is true of.
/// Guarantee: they are kept as doubles, and so is the request that they are in; those that fit stay integers.
#[test]
fn integers_that_are_too_large() {
    let sent = [
        (json!(u64::MAX), json!({"doubleValue": 18_446_744_073_709_551_615.0})),
        (json!("9223372036854775808"), json!({"doubleValue": 9_223_372_036_854_775_808.0})),
        (json!(1e300), json!({"doubleValue": 1e300})),
        (json!(i64::MIN), json!({"intValue": i64::MIN.to_string()})),
    ];
    for (large, meant) in sent {
        let of = |value: Value| {
            let attributes = json!([{"key": "n", "value": value}, {"key": "m", "value": {"intValue": 1}}]);
            told(&one_span(&json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8), "attributes": attributes})))
        };
        let told = of(json!({"intValue": large})).unwrap();
        assert_eq!(told.accepted, 1);
        assert_eq!(told, of(meant).unwrap(), "{large}");
    }
}

/// Scenario: kinds that OTLP/JSON does not have: names of the future, and numbers in quotes that no kind will have.
/// Guarantee: the span is kept without them, and the answer says so.
#[test]
fn names_of_the_future_are_told() {
    for kind in ["SPAN_KIND_LATER", "4294967298", "two"] {
        let span = json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8), "kind": kind});
        let json = one_span(&span).to_string();
        let outcome = decode_traces_json(json.as_bytes(), &Limits::default(), &mut Told::default()).unwrap();
        assert_eq!((outcome.accepted, outcome.rejected), (1, 0));
        assert!(outcome.message().contains("spans[0] has a kind or a status code"), "{kind}: {}", outcome.message());
    }
}

/// Scenario: times as a script has them that multiplies seconds: a double, of which JSON shows the exponent.
/// Guarantee: the time that the double is, to the few nanoseconds that it is exact to.
#[test]
fn times_with_exponents() {
    let of = |time: Value| {
        told(&one_span(&json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8), "startTimeUnixNano": time})))
    };
    let multiplied = 1_795_065_275.429_443_8 * 1e9;
    assert_eq!(of(json!(multiplied)).unwrap(), of(json!((multiplied as u64).to_string())).unwrap());
}

/// Scenario: texts that were cut in the middle of a character, as JavaScript cuts long values: half of a surrogate pair is left.
/// Guarantee: they are repaired and counted, as wrong UTF-8 is, and everything around them is kept; `null` is no text.
#[test]
fn texts_that_were_cut_in_a_character_are_repaired() {
    let json = r#"{"resourceSpans": [{"scopeSpans": [{"spans": [
        {"traceId": "01010101010101010101010101010101", "spanId": "0202020202020202", "name": "caf\u00e9 \ud83d",
         "traceState": null, "attributes": [{"key": "k", "value": {"stringValue": "\ud83d\ude00 \udc00 end"}}]},
        {"traceId": "01010101010101010101010101010101", "spanId": "0303030303030303", "name": "whole"}
    ]}]}]}"#;
    let mut told = Told::default();
    let outcome = decode_traces_json(json.as_bytes(), &Limits::default(), &mut told).unwrap();
    assert_eq!((outcome.accepted, outcome.rejected, outcome.repaired_texts), (2, 0, 2));
    let told = format!("{told:?}");
    assert!(told.contains("café \u{fffd}") && told.contains("😀 \u{fffd}") && told.contains("\u{fffd} end"), "{told}");
}

/// Scenario: ids that are no ids.
/// Guarantee: the span is refused alone.
#[test]
fn wrong_ids_are_refused_alone() {
    for id in ["0102", "010", "xyz", "not an id at all", "0000000000000000", ""] {
        let span = json!({"traceId": "01".repeat(16), "spanId": id});
        let told = told(&one_span(&span)).unwrap();
        assert_eq!((told.accepted, told.rejected), (0, 1), "{id}");
    }
}

/// Scenario: values of the wrong kind or size, and text that ends too early.
/// Guarantee: the error has the path of the field, and line and column.
#[test]
fn errors_are_located() {
    let error = |span: Value| told(&one_span(&span)).unwrap_err().to_string();
    assert_eq!(
        error(json!({"name": 5})),
        "resource_spans[0].scope_spans[0].spans[0].name can't be read: invalid type: integer `5`, expected a text \
         (line 1, column 52)"
    );
    assert!(
        error(json!({"droppedLinksCount": -1})).contains("dropped_links_count can't be read: -1 is not a 32-bit count")
    );
    assert!(
        error(json!({"attributes": [{"value": {"intValue": "5x"}}]}))
            .contains("attributes[0].value.int_value can't be read")
    );
    assert!(error(json!({"kind": 1u64 << 32 | 2})).contains("kind can't be read: 4294967298 is not a 32-bit integer"));
    assert!(error(json!({"startTimeUnixNano": 1e20})).contains("start_time_unix_nano can't be read: invalid type"));
    assert!(error(json!({"events": {}})).contains("spans[0].events can't be read"));
    let cut = decode_traces_json(b"{\"resourceSpans\":[", &Limits::default(), &mut Told::default()).unwrap_err();
    assert!(cut.to_string().contains("line 1, column 18"), "{cut}");
    assert!(decode_traces_json(b"{} x", &Limits::default(), &mut Told::default()).is_err());
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert!(decode_traces_json(deep.as_bytes(), &Limits::default(), &mut Told::default()).is_err());
}

/// Text that opens `lists` lists of values in each other, each with `open`, and closes them.
fn nested([open, close]: [&str; 2], lists: usize) -> String {
    format!("{}{{\"intValue\":1}}{}", open.repeat(lists), close.repeat(lists))
}

const IN_ARRAYS: [&str; 2] = ["{\"arrayValue\":{\"values\":[", "]}}"];
const IN_KEY_VALUES: [&str; 2] = ["{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":", "}]}}"];

/// A span with an attribute of this value, between two without.
fn span_between_others(value: &str) -> String {
    let ids = r#""traceId":"01010101010101010101010101010101","spanId":"0202020202020202""#;
    format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[
        {{{ids}}},{{{ids},"attributes":[{{"key":"deep","value":{value}}}]}},{{{ids}}}]}}]}}]}}"#
    )
}

/// Scenario: values that nest as deep as is allowed, one level deeper, and far deeper, with the limit as it is and at its highest;
/// in arrays, in key-value lists and in both.
/// Guarantee: kept up to the limit as from protobuf, beyond it refused with the span alone, whatever the depth.
#[test]
fn deep_nesting_is_refused_alone() {
    let both = [&[IN_ARRAYS[0], IN_KEY_VALUES[0]].concat(), &[IN_KEY_VALUES[1], IN_ARRAYS[1]].concat()];
    for max_nesting in [1, 15, 16, 17, 32, 128] {
        let limits = Limits { max_nesting, ..Limits::default() };
        for (brackets, lists_each) in [(IN_ARRAYS, 1), (IN_KEY_VALUES, 1), ([both[0].as_str(), both[1].as_str()], 2)] {
            for times in [max_nesting / lists_each, max_nesting / lists_each + 1, 10_000] {
                let mut told = Told::default();
                let json = span_between_others(&nested(brackets, times));
                let outcome = decode_traces_json(json.as_bytes(), &limits, &mut told).unwrap();
                let is_kept = times * lists_each <= max_nesting;
                let expected = if is_kept { (3, 0) } else { (2, 1) };
                assert_eq!(
                    (outcome.accepted, outcome.rejected),
                    expected,
                    "{times} times {brackets:?} of {max_nesting}"
                );
                if is_kept {
                    assert!(format!("{told:?}").contains("Int(1)"), "{told:?}");
                } else {
                    let reason = format!("nests deeper than {max_nesting} levels (limits.max_nesting)");
                    assert!(outcome.message().ends_with(&reason), "{}", outcome.message());
                }
            }
        }
    }
}

/// Scenario: values that nest, with something wrong far inside.
/// Guarantee: the error names it, and the field by the ends of its path.
#[test]
fn errors_deep_inside_are_located() {
    let limits = Limits { max_nesting: 40, ..Limits::default() };
    let json = span_between_others(&nested(IN_KEY_VALUES, 40).replace("1}", "\"five\"}"));
    let error = decode_traces_json(json.as_bytes(), &limits, &mut Told::default()).unwrap_err().to_string();
    assert!(error.starts_with("resource_spans[0].scope_spans[0].spans[1].attributes[0].value.kvlist_value"), "{error}");
    let problem =
        "values[0].value.int_value can't be read: invalid value: string \"five\", expected an integer (line 2";
    assert!(error.contains(problem), "{error}");
}

/// Runs on a thread with half of the stack that those have which decode.
fn with_little_stack(work: fn()) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

/// Scenario: values that nest as deep as any setting allows, and a hundred thousand levels, on a small stack.
/// Guarantee: read and refused as on any other: the stack that it takes is bounded by the setting.
#[test]
fn nesting_takes_little_stack() {
    with_little_stack(|| {
        let limits = Limits { max_nesting: 128, ..Limits::default() };
        for (lists, rejected) in [(128, 0), (129, 1), (100_000, 1)] {
            let json = span_between_others(&nested(IN_KEY_VALUES, lists));
            let outcome = decode_traces_json(json.as_bytes(), &limits, &mut Told::default()).unwrap();
            assert_eq!(outcome.rejected, rejected, "{lists}");
        }
    });
}

/// Scenario: ten megabytes of nothing but opening brackets, wherever a value can stand, on a small stack.
/// Guarantee: an answer, and never an overflow: refused as broken, since nothing is closed.
#[test]
fn brackets_do_not_overflow_the_stack() {
    with_little_stack(|| {
        let limits = Limits { max_nesting: 128, ..Limits::default() };
        let attribute = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"value\":";
        for start in ["", "{\"a\":", "{\"resourceSpans\":", attribute] {
            for bracket in ["[", "{\"a\":", IN_ARRAYS[0], IN_KEY_VALUES[0]] {
                let json = format!("{start}{}", bracket.repeat((10 << 20) / bracket.len()));
                assert!(decode_traces_json(json.as_bytes(), &limits, &mut Told::default()).is_err());
                assert!(ProfilesJson::parse(json.as_bytes(), &limits).is_err());
            }
        }
    });
}

/// A profile with a stack of two functions, an attribute and a link; some names have changed over time.
pub(crate) fn profiles_json([samples, values, lines]: [&str; 3]) -> Value {
    json!({
        "resourceProfiles": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "cart"}}]},
            "scopeProfiles": [{"profiles": [{
                "sampleType": {"typeStrindex": 5, "unitStrindex": 6},
                samples: [{"stackIndex": 1, "attributeIndices": [1], "linkIndex": 1, values: ["3"],
                           "timestampsUnixNano": ["1100"]}],
                "timeUnixNano": "1000", "durationNano": "5000",
                "periodType": {"typeStrindex": 7, "unitStrindex": 8}, "period": "50",
            }]}],
        }],
        "dictionary": {
            "mappingTable": [{}],
            "locationTable": [{}, {lines: [{"functionIndex": 1, "line": "1", "column": 3}]},
                              {lines: [{"functionIndex": 2, "line": 1, "column": "3"}]}],
            "functionTable": [{}, {"nameStrindex": 1}, {"nameStrindex": 2}],
            "linkTable": [{}, {"traceId": "07".repeat(16), "spanId": base64(&[9; 8])}],
            "stringTable": ["", "leaf", "main", "http.route", "unused", "samples", "count", "cpu", "nanoseconds"],
            "attributeTable": [{}, {"keyStrindex": 3, "value": {"stringValue": "/cart"}}],
            "stackTable": [{}, {"locationIndices": [1, 2]}],
        },
    })
}

/// Scenario: a profile in JSON, once with the names of v1.10 and once with earlier ones.
/// Guarantee: the same set as from protobuf; samples that would be ambiguous there are not here.
#[test]
fn profiles() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["leaf", "main"]);
    let route = builder.text_attribute("http.route", "/cart");
    let link_index = builder.link(7, 9);
    let profile = builder.cpu_profile(vec![Sample {
        stack_index,
        attribute_indices: vec![route],
        link_index,
        values: vec![3],
        timestamps_unix_nano: vec![1_100],
    }]);
    let request = builder.request(&[("service.name", "cart")], vec![profile]);
    let bytes = request.encode_to_vec();
    let (expected, ..) = decode_profiles(&bytes, &Limits::default(), 0).unwrap();

    for [samples, values, lines] in [["samples", "values", "lines"], ["sample", "value", "line"]] {
        let json = profiles_json([samples, values, lines]);
        let parsed = ProfilesJson::parse(json.to_string().as_bytes(), &Limits::default()).unwrap();
        let (set, outcome) = parsed.decode(&Limits::default(), 0).unwrap();
        assert!(outcome.is_clean(), "{}", outcome.message());
        assert_eq!(describe(&set), describe(&expected));
    }
}

/// Scenario: text with the mark of its encoding in front; requests that hold nothing known, nothing at all, or an empty list.
/// Guarantee: the mark is no part of the text, and only who sent something that is not known here is told so.
#[test]
fn what_holds_nothing_known_is_told() {
    let marked = format!("\u{feff}{}", span_between_others("{}"));
    let read = |text: &str| decode_traces_json(text.as_bytes(), &Limits::default(), &mut Told::default()).unwrap();
    assert_eq!(read(&marked).accepted, 3);
    for unknown in [r#"{"resourceSpan":[{"scopeSpans":[]}]}"#, r#"{"resourceLogs":[]}"#, "\u{feff}{\"spans\":[]}"] {
        let outcome = read(unknown);
        let told = "request has no resource_spans, and nothing else that is known here; nothing was stored";
        assert_eq!((outcome.message().as_str(), outcome.rejected), (told, 0), "{unknown}");
    }
    for clean in ["{}", r#"{"resourceSpans":[]}"#, r#"{"resource_spans":[],"x":1}"#] {
        assert!(read(clean).is_clean(), "{clean}");
    }
}
