//! A stored trace as OTLP messages, grouped by resource and scope as it was sent.

use hashbrown::{HashMap, HashSet};
use hotspan_model::labels::UNKNOWN_SERVICE;
use hotspan_model::{Attribute, SpanId, Value};
use hotspan_query::StoredSpan;
use serde::Deserialize;

use super::otlp_messages::{
    AnyValue, ArrayValue, EntityRef, Event, InstrumentationScope, KeyValue, KeyValueList, Link, Resource,
    ResourceSpans, ScopeSpans, Span, Status, ValueKind,
};

/// The attribute by which Grafana knows that a span has a profile; its value is the span's id.
const PROFILE_ID: &str = "pyroscope.profile.id";

/// Spans grouped by resource and scope. Those in `profiled` say so in an attribute, whatever the sender set.
pub(super) fn resource_spans(spans: &[StoredSpan], profiled: &HashSet<SpanId>) -> Vec<ResourceSpans> {
    let mut groups: Vec<(ResourceSpans, HashMap<&str, usize>)> = Vec::new();
    let mut resource_at: HashMap<&str, usize> = HashMap::new();
    for span in spans {
        let at = *resource_at.entry(&span.resource).or_insert_with(|| {
            groups.push((empty_group(&span.resource), HashMap::new()));
            groups.len() - 1
        });
        let (group, scope_at) = &mut groups[at];
        let at = *scope_at.entry(&span.scope).or_insert_with(|| {
            group.scope_spans.push(empty_scope(&span.scope));
            group.scope_spans.len() - 1
        });
        group.scope_spans[at].spans.push(span_message(span, profiled.contains(&span.span_id)));
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

/// What the text of a resource or of a scope says, in the order that it was sent in.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredGroup {
    name: String,
    version: String,
    attributes: Value<'static>,
    dropped_attributes_count: u32,
    schema_url: String,
    entity_refs: Vec<EntityRef>,
}

impl StoredGroup {
    fn of(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn attribute_messages(&self) -> Vec<KeyValue> {
        match &self.attributes {
            Value::KeyValues(attributes) => attribute_messages(attributes),
            _ => Vec::new(),
        }
    }
}

fn empty_group(resource: &str) -> ResourceSpans {
    let stored = StoredGroup::of(resource);
    let mut attributes = stored.attribute_messages();
    // Grafana leaves out the spans of a resource that says nothing.
    if attributes.is_empty() {
        attributes.push(ValueKind::StringValue(UNKNOWN_SERVICE.to_owned()).under("service.name"));
    }
    ResourceSpans {
        resource: Some(Resource {
            attributes,
            dropped_attributes_count: stored.dropped_attributes_count,
            entity_refs: stored.entity_refs,
        }),
        scope_spans: Vec::new(),
        schema_url: stored.schema_url,
    }
}

fn empty_scope(scope: &str) -> ScopeSpans {
    let stored = StoredGroup::of(scope);
    ScopeSpans {
        scope: Some(InstrumentationScope {
            attributes: stored.attribute_messages(),
            name: stored.name,
            version: stored.version,
            dropped_attributes_count: stored.dropped_attributes_count,
        }),
        spans: Vec::new(),
        schema_url: stored.schema_url,
    }
}

fn span_message(span: &StoredSpan, is_profiled: bool) -> Span {
    let mut attributes = attribute_messages(&span.attributes);
    if is_profiled && !attributes.iter().any(|attribute| attribute.key == PROFILE_ID) {
        attributes.push(ValueKind::StringValue(span.span_id.to_string()).under(PROFILE_ID));
    }
    Span {
        trace_id: span.trace_id.0.to_vec(),
        span_id: span.span_id.0.to_vec(),
        trace_state: span.trace_state.clone(),
        parent_span_id: span.parent_id.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        flags: span.flags,
        name: span.name.clone(),
        kind: i32::from(span.kind.number()),
        start_time_unix_nano: wire_time(span.start),
        end_time_unix_nano: wire_time(span.start.saturating_add(span.duration)),
        attributes,
        dropped_attributes_count: span.dropped_attributes_count,
        events: span
            .events
            .iter()
            .map(|event| Event {
                time_unix_nano: wire_time(event.time),
                name: event.name.clone(),
                attributes: attribute_messages(&event.attributes),
                dropped_attributes_count: event.dropped_attributes_count,
            })
            .collect(),
        dropped_events_count: span.dropped_events_count,
        links: span
            .links
            .iter()
            .map(|link| Link {
                trace_id: link.trace_id.0.to_vec(),
                span_id: link.span_id.0.to_vec(),
                trace_state: link.trace_state.clone(),
                attributes: attribute_messages(&link.attributes),
                dropped_attributes_count: link.dropped_attributes_count,
                flags: link.flags,
            })
            .collect(),
        dropped_links_count: span.dropped_links_count,
        status: Some(Status { message: span.status_message.clone(), code: i32::from(span.status.number()) }),
    }
}

/// OTLP's times are unsigned; ingest lets no earlier time in.
fn wire_time(nanos: i64) -> u64 {
    u64::try_from(nanos).unwrap_or(0)
}

fn attribute_messages(attributes: &[Attribute<'_>]) -> Vec<KeyValue> {
    let message = |attribute: &Attribute<'_>| KeyValue {
        key: attribute.key.to_string(),
        value: Some(value_message(&attribute.value)),
    };
    attributes.iter().map(message).collect()
}

fn value_message(value: &Value<'_>) -> AnyValue {
    let kind = match value {
        Value::Empty => return AnyValue { value: None },
        Value::String(text) => ValueKind::StringValue(text.to_string()),
        Value::Bool(value) => ValueKind::BoolValue(*value),
        Value::Int(value) => ValueKind::IntValue(*value),
        Value::Double(value) => ValueKind::DoubleValue(*value),
        Value::Bytes(bytes) => ValueKind::BytesValue(bytes.to_vec()),
        Value::Array(values) => {
            ValueKind::ArrayValue(ArrayValue { values: values.iter().map(value_message).collect() })
        }
        Value::KeyValues(attributes) => ValueKind::KvlistValue(KeyValueList { values: attribute_messages(attributes) }),
    };
    AnyValue { value: Some(kind) }
}
