//! OTLP's trace messages as Tempo gives them back: on the wire, and in protobuf JSON with base64 ids.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hotspan_model::{SpanKind, StatusCode};
use prost::Message;
use serde::{Deserialize, Serialize, Serializer};

use super::json_forms::{as_text, is_zero};

/// The spans of one resource.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) schema_url: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_attributes_count: u32,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) entity_refs: Vec<EntityRef>,
}

/// An entity, by the keys of the resource's attributes. Stored as OTLP names its fields, and given in JSON's spelling of them.
#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(rename_all(serialize = "camelCase"))]
pub(super) struct EntityRef {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) schema_url: String,
    #[prost(string, tag = "2")]
    #[serde(rename = "type")]
    pub(super) entity_type: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) id_keys: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) description_keys: Vec<String>,
}

/// The spans of one instrumentation scope.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) schema_url: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "4")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_attributes_count: u32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "base64_text")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "base64_text")]
    pub(super) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "base64_text", skip_serializing_if = "Vec::is_empty")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(fixed32, tag = "16")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) flags: u32,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    #[serde(serialize_with = "kind_name", skip_serializing_if = "is_zero")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "as_text")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "as_text")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "10")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_attributes_count: u32,
    #[prost(message, repeated, tag = "11")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    #[prost(uint32, tag = "12")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_events_count: u32,
    #[prost(message, repeated, tag = "13")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) links: Vec<Link>,
    #[prost(uint32, tag = "14")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_links_count: u32,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    #[prost(fixed64, tag = "1")]
    #[serde(serialize_with = "as_text")]
    pub(super) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "4")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_attributes_count: u32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "base64_text")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "base64_text")]
    pub(super) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) trace_state: String,
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "5")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_attributes_count: u32,
    #[prost(fixed32, tag = "6")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) flags: u32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    #[serde(serialize_with = "status_name", skip_serializing_if = "is_zero")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct AnyValue {
    #[prost(oneof = "ValueKind", tags = "1, 2, 3, 4, 5, 6, 7")]
    #[serde(flatten)]
    pub(super) value: Option<ValueKind>,
}

/// What an attribute's value is.
#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::enum_variant_names, reason = "the names are OTLP's")]
pub(super) enum ValueKind {
    #[prost(string, tag = "1")]
    StringValue(String),
    #[prost(bool, tag = "2")]
    BoolValue(bool),
    #[prost(int64, tag = "3")]
    IntValue(#[serde(serialize_with = "as_text")] i64),
    #[prost(double, tag = "4")]
    DoubleValue(#[serde(serialize_with = "double_or_name")] f64),
    #[prost(message, tag = "5")]
    ArrayValue(ArrayValue),
    #[prost(message, tag = "6")]
    KvlistValue(KeyValueList),
    #[prost(bytes, tag = "7")]
    BytesValue(#[serde(serialize_with = "base64_text")] Vec<u8>),
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<KeyValue>,
}

impl ValueKind {
    /// Under a key.
    pub(super) fn under(self, key: impl Into<String>) -> KeyValue {
        KeyValue { key: key.into(), value: Some(AnyValue { value: Some(self) }) }
    }
}

fn base64_text<S: Serializer>(bytes: &Vec<u8>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&STANDARD.encode(bytes))
}

fn kind_name<S: Serializer>(kind: &i32, out: S) -> Result<S::Ok, S::Error> {
    name_or_number(*kind, |kind| SpanKind::from_number(kind).otlp_name(), out)
}

fn status_name<S: Serializer>(code: &i32, out: S) -> Result<S::Ok, S::Error> {
    name_or_number(*code, |code| StatusCode::from_number(code).otlp_name(), out)
}

/// Protobuf JSON has enums as their names, and as numbers where it knows no name.
fn name_or_number<S: Serializer>(
    number: i32,
    name: impl Fn(i8) -> Option<&'static str>,
    out: S,
) -> Result<S::Ok, S::Error> {
    match i8::try_from(number).ok().and_then(name) {
        Some(name) => out.serialize_str(name),
        None => out.serialize_i32(number),
    }
}

/// Protobuf JSON has names for what JSON has no numbers for.
pub(super) fn double_or_name<S: Serializer>(value: &f64, out: S) -> Result<S::Ok, S::Error> {
    match value {
        value if value.is_finite() => out.serialize_f64(*value),
        value if value.is_nan() => out.serialize_str("NaN"),
        value if *value > 0.0 => out.serialize_str("Infinity"),
        _ => out.serialize_str("-Infinity"),
    }
}
