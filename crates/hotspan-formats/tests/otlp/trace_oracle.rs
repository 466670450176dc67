//! The straightforward translation of trace requests from the generated types, to compare the reader with.

use std::borrow::Cow;

use hotspan_model as model;
use hotspan_model::TraceSink;
use model::{Attribute, SpanId, SpanKind, StatusCode, TraceId, Value};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{Span, span};

/// Everything a sink was given, as text; and how many spans were refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) lines: Vec<String>,
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
}

impl TraceSink for Told {
    fn resource(&mut self, resource: &model::Resource<'_>) {
        self.lines.push(format!("{resource:?}"));
    }

    fn scope(&mut self, scope: &model::Scope<'_>) {
        self.lines.push(format!("{scope:?}"));
    }

    fn span(&mut self, span: &model::Span<'_>) {
        self.lines.push(format!("{span:?}"));
    }
}

pub(crate) fn translate(request: &ExportTraceServiceRequest) -> Told {
    let mut told = Told::default();
    for group in &request.resource_spans {
        let resource = group.resource.clone().unwrap_or_default();
        told.resource(&model::Resource {
            attributes: attributes(&resource.attributes),
            dropped_attributes_count: resource.dropped_attributes_count,
            schema_url: &group.schema_url,
            entity_refs: resource.entity_refs.iter().map(entity_ref).collect(),
        });
        for scope_spans in &group.scope_spans {
            let scope = scope_spans.scope.clone().unwrap_or_default();
            told.scope(&model::Scope {
                name: &scope.name,
                version: &scope.version,
                attributes: attributes(&scope.attributes),
                dropped_attributes_count: scope.dropped_attributes_count,
                schema_url: &scope_spans.schema_url,
            });
            for sent in &scope_spans.spans {
                match span(sent) {
                    Some(span) => {
                        told.accepted += 1;
                        told.span(&span);
                    }
                    None => told.rejected += 1,
                }
            }
        }
    }
    told
}

pub(crate) fn entity_ref(sent: &EntityRef) -> model::EntityRef<'_> {
    model::EntityRef {
        schema_url: &sent.schema_url,
        entity_type: &sent.r#type,
        id_keys: sent.id_keys.iter().map(String::as_str).collect(),
        description_keys: sent.description_keys.iter().map(String::as_str).collect(),
    }
}

fn span(sent: &Span) -> Option<model::Span<'_>> {
    let status = sent.status.as_ref();
    Some(model::Span {
        trace_id: TraceId::from_slice(&sent.trace_id)?,
        span_id: SpanId::from_slice(&sent.span_id)?,
        parent_id: Some(SpanId(optional_id(&sent.parent_span_id)?)).filter(|id| !id.is_zero()),
        trace_state: &sent.trace_state,
        flags: sent.flags,
        name: &sent.name,
        kind: SpanKind::from_number(code(sent.kind)),
        start: sent.start_time_unix_nano.try_into().ok()?,
        end: sent.end_time_unix_nano.try_into().ok()?,
        attributes: attributes(&sent.attributes),
        dropped_attributes_count: sent.dropped_attributes_count,
        events: sent.events.iter().map(event).collect::<Option<_>>()?,
        dropped_events_count: sent.dropped_events_count,
        links: sent.links.iter().map(link).collect::<Option<_>>()?,
        dropped_links_count: sent.dropped_links_count,
        status: StatusCode::from_number(status.map_or(0, |status| code(status.code))),
        status_message: status.map_or("", |status| &status.message),
    })
}

/// The number of a kind or an outcome, as far as it is kept.
fn code(number: i32) -> i8 {
    number.try_into().unwrap_or(0)
}

fn event(sent: &span::Event) -> Option<model::Event<'_>> {
    Some(model::Event {
        time: sent.time_unix_nano.try_into().ok()?,
        name: &sent.name,
        attributes: attributes(&sent.attributes),
        dropped_attributes_count: sent.dropped_attributes_count,
    })
}

fn link(sent: &span::Link) -> Option<model::SpanLink<'_>> {
    Some(model::SpanLink {
        trace_id: TraceId(optional_id(&sent.trace_id)?),
        span_id: SpanId(optional_id(&sent.span_id)?),
        trace_state: &sent.trace_state,
        attributes: attributes(&sent.attributes),
        dropped_attributes_count: sent.dropped_attributes_count,
        flags: sent.flags,
    })
}

fn optional_id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    if bytes.is_empty() { Some([0; N]) } else { bytes.try_into().ok() }
}

pub(crate) fn attributes(sent: &[KeyValue]) -> Vec<Attribute<'_>> {
    sent.iter().map(|sent| Attribute { key: Cow::Borrowed(&sent.key), value: value(sent.value.as_ref()) }).collect()
}

pub(crate) fn value(sent: Option<&AnyValue>) -> Value<'_> {
    use any_value::Value as Sent;
    match sent.and_then(|sent| sent.value.as_ref()) {
        None => Value::Empty,
        Some(Sent::StringValue(text)) => Value::str(text),
        Some(Sent::BoolValue(value)) => Value::Bool(*value),
        Some(Sent::IntValue(value)) => Value::Int(*value),
        Some(Sent::DoubleValue(value)) => Value::Double(*value),
        Some(Sent::BytesValue(bytes)) => Value::Bytes(Cow::Borrowed(bytes)),
        Some(Sent::ArrayValue(list)) => Value::Array(list.values.iter().map(|sent| value(Some(sent))).collect()),
        Some(Sent::KvlistValue(list)) => Value::KeyValues(attributes(&list.values)),
        // Traces have no dictionary.
        Some(Sent::StringValueStrindex(_)) => Value::Empty,
    }
}
