//! A stored trace as Tempo writes it: OTLP in protobuf JSON, with base64 ids and 64-bit numbers as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hashbrown::HashMap;
use hotspan_model::{Attribute, SpanKind, StatusCode, Value as AttributeValue, attributes_from_json};
use hotspan_query::{StoredSpan, StoredTrace};
use serde_json::{Map, Value, json};

/// Spans by scope.
type ScopeGroups<'a> = Vec<(&'a str, Vec<Value>)>;

/// The spans of a trace, grouped by resource and scope as they were sent.
pub(crate) fn resource_spans(trace: &StoredTrace) -> Vec<Value> {
    let mut resources: Vec<(&str, ScopeGroups<'_>)> = Vec::new();
    let mut resource_at: HashMap<&str, usize> = HashMap::new();
    for span in &trace.spans {
        let at = *resource_at.entry(&span.resource).or_insert_with(|| {
            resources.push((&span.resource, Vec::new()));
            resources.len() - 1
        });
        let scopes = &mut resources[at].1;
        match scopes.iter_mut().find(|(scope, _)| *scope == span.scope.as_ref()) {
            Some((_, spans)) => spans.push(span_json(span)),
            None => scopes.push((&span.scope, vec![span_json(span)])),
        }
    }
    resources.into_iter().map(|(resource, scopes)| resource_json(resource, scopes)).collect()
}

fn resource_json(resource: &str, scopes: ScopeGroups<'_>) -> Value {
    let stored: Value = serde_json::from_str(resource).unwrap_or_default();
    let attributes = attributes_from_json(&stored["attributes"].to_string());
    let mut group = Map::new();
    let mut resource = Map::new();
    put_list(&mut resource, "attributes", attributes_json(&attributes));
    put_number(&mut resource, "droppedAttributesCount", &stored["dropped_attributes_count"]);
    group.insert("resource".to_owned(), Value::Object(resource));
    let scopes = scopes.into_iter().map(|(scope, spans)| scope_json(scope, spans)).collect();
    group.insert("scopeSpans".to_owned(), Value::Array(scopes));
    put_text(&mut group, "schemaUrl", stored["schema_url"].as_str().unwrap_or_default());
    Value::Object(group)
}

fn scope_json(scope: &str, spans: Vec<Value>) -> Value {
    let stored: Value = serde_json::from_str(scope).unwrap_or_default();
    let mut group = Map::new();
    let mut scope = Map::new();
    put_text(&mut scope, "name", stored["name"].as_str().unwrap_or_default());
    put_text(&mut scope, "version", stored["version"].as_str().unwrap_or_default());
    put_list(&mut scope, "attributes", attributes_json(&attributes_from_json(&stored["attributes"].to_string())));
    put_number(&mut scope, "droppedAttributesCount", &stored["dropped_attributes_count"]);
    group.insert("scope".to_owned(), Value::Object(scope));
    group.insert("spans".to_owned(), Value::Array(spans));
    put_text(&mut group, "schemaUrl", stored["schema_url"].as_str().unwrap_or_default());
    Value::Object(group)
}

fn span_json(span: &StoredSpan) -> Value {
    let mut json = Map::new();
    json.insert("traceId".to_owned(), STANDARD.encode(span.trace_id.0).into());
    json.insert("spanId".to_owned(), STANDARD.encode(span.span_id.0).into());
    put_text(&mut json, "traceState", &span.trace_state);
    if let Some(parent) = span.parent_id {
        json.insert("parentSpanId".to_owned(), STANDARD.encode(parent.0).into());
    }
    put_count(&mut json, "flags", span.flags);
    put_text(&mut json, "name", &span.name);
    if span.kind != SpanKind::Unspecified {
        json.insert("kind".to_owned(), kind_name(span.kind).into());
    }
    json.insert("startTimeUnixNano".to_owned(), span.start.to_string().into());
    json.insert("endTimeUnixNano".to_owned(), span.start.saturating_add(span.duration).to_string().into());
    put_list(&mut json, "attributes", attributes_json(&span.attributes));
    put_count(&mut json, "droppedAttributesCount", span.dropped_attributes_count);
    let events = span.events.iter().map(|event| {
        let mut json = Map::new();
        json.insert("timeUnixNano".to_owned(), event.time.to_string().into());
        put_text(&mut json, "name", &event.name);
        put_list(&mut json, "attributes", attributes_json(&event.attributes));
        put_count(&mut json, "droppedAttributesCount", event.dropped_attributes_count);
        Value::Object(json)
    });
    put_list(&mut json, "events", events.collect());
    put_count(&mut json, "droppedEventsCount", span.dropped_events_count);
    let links = span.links.iter().map(|link| {
        let mut json = Map::new();
        json.insert("traceId".to_owned(), STANDARD.encode(link.trace_id.0).into());
        json.insert("spanId".to_owned(), STANDARD.encode(link.span_id.0).into());
        put_text(&mut json, "traceState", &link.trace_state);
        put_list(&mut json, "attributes", attributes_json(&link.attributes));
        put_count(&mut json, "droppedAttributesCount", link.dropped_attributes_count);
        put_count(&mut json, "flags", link.flags);
        Value::Object(json)
    });
    put_list(&mut json, "links", links.collect());
    put_count(&mut json, "droppedLinksCount", span.dropped_links_count);
    let mut status = Map::new();
    put_text(&mut status, "message", &span.status_message);
    if span.status != StatusCode::Unset {
        let code = if span.status == StatusCode::Ok { "STATUS_CODE_OK" } else { "STATUS_CODE_ERROR" };
        status.insert("code".to_owned(), code.into());
    }
    json.insert("status".to_owned(), Value::Object(status));
    Value::Object(json)
}

fn kind_name(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Unspecified => "SPAN_KIND_UNSPECIFIED",
        SpanKind::Internal => "SPAN_KIND_INTERNAL",
        SpanKind::Server => "SPAN_KIND_SERVER",
        SpanKind::Client => "SPAN_KIND_CLIENT",
        SpanKind::Producer => "SPAN_KIND_PRODUCER",
        SpanKind::Consumer => "SPAN_KIND_CONSUMER",
    }
}

fn attributes_json(attributes: &[Attribute<'_>]) -> Vec<Value> {
    let entry = |attribute: &Attribute<'_>| json!({ "key": attribute.key, "value": value_json(&attribute.value) });
    attributes.iter().map(entry).collect()
}

fn value_json(value: &AttributeValue<'_>) -> Value {
    match value {
        AttributeValue::Empty => json!({}),
        AttributeValue::String(text) => json!({ "stringValue": text }),
        AttributeValue::Bool(value) => json!({ "boolValue": value }),
        AttributeValue::Int(value) => json!({ "intValue": value.to_string() }),
        AttributeValue::Double(value) if value.is_finite() => json!({ "doubleValue": value }),
        AttributeValue::Double(value) if value.is_nan() => json!({ "doubleValue": "NaN" }),
        AttributeValue::Double(value) if *value > 0.0 => json!({ "doubleValue": "Infinity" }),
        AttributeValue::Double(_) => json!({ "doubleValue": "-Infinity" }),
        AttributeValue::Bytes(bytes) => json!({ "bytesValue": STANDARD.encode(bytes) }),
        AttributeValue::Array(values) => {
            json!({ "arrayValue": { "values": values.iter().map(value_json).collect::<Vec<_>>() } })
        }
        AttributeValue::KeyValues(attributes) => json!({ "kvlistValue": { "values": attributes_json(attributes) } }),
    }
}

fn put_text(json: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        json.insert(key.to_owned(), text.into());
    }
}

fn put_count(json: &mut Map<String, Value>, key: &str, count: u32) {
    if count > 0 {
        json.insert(key.to_owned(), count.into());
    }
}

fn put_number(json: &mut Map<String, Value>, key: &str, number: &Value) {
    if number.is_number() {
        json.insert(key.to_owned(), number.clone());
    }
}

fn put_list(json: &mut Map<String, Value>, key: &str, list: Vec<Value>) {
    if !list.is_empty() {
        json.insert(key.to_owned(), list.into());
    }
}
