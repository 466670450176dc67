//! The messages of `tempopb`, for protobuf and for protobuf JSON. Field numbers are the wire's.
//!
//! Grafana reads some answers with a strict decoder: a field that Tempo does not have is an error there. What
//! Hotspan adds is therefore only given to those who ask for it.

use std::collections::BTreeMap;

use prost::Message;
use serde::Serialize;

use super::json_forms::{as_text, is_zero};
use super::otlp_messages::{KeyValue, double_or_name};

/// The question of a streamed search; times in seconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SearchRequest {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(super) tags: BTreeMap<String, String>,
    #[prost(uint32, tag = "2")]
    pub(super) min_duration_ms: u32,
    #[prost(uint32, tag = "3")]
    pub(super) max_duration_ms: u32,
    #[prost(uint32, tag = "4")]
    pub(super) limit: u32,
    #[prost(uint32, tag = "5")]
    pub(super) start: u32,
    #[prost(uint32, tag = "6")]
    pub(super) end: u32,
    #[prost(string, tag = "8")]
    pub(super) query: String,
    #[prost(uint32, tag = "9")]
    pub(super) spans_per_span_set: u32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) traces: Vec<TraceSearchMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<SearchMetrics>,
    /// Where the next page starts. Hotspan's own, and only for who asked with a cursor.
    #[prost(string, tag = "1000")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) next_cursor: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceSearchMetadata {
    #[prost(string, tag = "1")]
    #[serde(rename = "traceID")]
    pub(super) trace_id: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) root_service_name: String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) root_trace_name: String,
    #[prost(uint64, tag = "4")]
    #[serde(serialize_with = "as_text")]
    pub(super) start_time_unix_nano: u64,
    #[prost(uint32, tag = "5")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) duration_ms: u32,
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) span_set: Option<SpanSet>,
    #[prost(message, repeated, tag = "7")]
    pub(super) span_sets: Vec<SpanSet>,
    #[prost(btree_map = "string, message", tag = "8")]
    pub(super) service_stats: BTreeMap<String, ServiceStats>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceStats {
    #[prost(uint32, tag = "1")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) span_count: u32,
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) error_count: u32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct SpanSet {
    #[prost(message, repeated, tag = "1")]
    pub(super) spans: Vec<FoundSpan>,
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) matched: u32,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
}

/// A span that matches.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundSpan {
    #[prost(string, tag = "1")]
    #[serde(rename = "spanID")]
    pub(super) span_id: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[prost(uint64, tag = "3")]
    #[serde(serialize_with = "as_text")]
    pub(super) start_time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    #[serde(serialize_with = "as_text")]
    pub(super) duration_nanos: u64,
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchMetrics {
    #[prost(uint32, tag = "1")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) inspected_traces: u32,
    #[prost(uint64, tag = "2")]
    #[serde(serialize_with = "as_text", skip_serializing_if = "is_zero")]
    pub(super) inspected_bytes: u64,
    #[prost(uint32, tag = "3")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) total_blocks: u32,
    #[prost(uint32, tag = "4")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) completed_jobs: u32,
    #[prost(uint32, tag = "5")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) total_jobs: u32,
    #[prost(uint64, tag = "6")]
    #[serde(serialize_with = "as_text", skip_serializing_if = "is_zero")]
    pub(super) total_block_bytes: u64,
    #[prost(uint64, tag = "7")]
    #[serde(serialize_with = "as_text", skip_serializing_if = "is_zero")]
    pub(super) inspected_spans: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SearchTagsRequest {
    #[prost(string, tag = "1")]
    pub(super) scope: String,
    #[prost(string, tag = "2")]
    pub(super) query: String,
    #[prost(uint32, tag = "3")]
    pub(super) start: u32,
    #[prost(uint32, tag = "4")]
    pub(super) end: u32,
    #[prost(uint32, tag = "5")]
    pub(super) max_tags_per_scope: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SearchTagValuesRequest {
    #[prost(string, tag = "1")]
    pub(super) tag_name: String,
    #[prost(string, tag = "2")]
    pub(super) query: String,
    #[prost(uint32, tag = "4")]
    pub(super) start: u32,
    #[prost(uint32, tag = "5")]
    pub(super) end: u32,
    #[prost(uint32, tag = "6")]
    pub(super) max_tag_values: u32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchTagsResponse {
    #[prost(string, repeated, tag = "1")]
    pub(super) tag_names: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<MetadataMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct SearchTagsV2Response {
    #[prost(message, repeated, tag = "1")]
    pub(super) scopes: Vec<TagScope>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<MetadataMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct TagScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) tags: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchTagValuesResponse {
    #[prost(string, repeated, tag = "1")]
    pub(super) tag_values: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<MetadataMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchTagValuesV2Response {
    #[prost(message, repeated, tag = "1")]
    pub(super) tag_values: Vec<TypedTagValue>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<MetadataMetrics>,
}

/// A value with its type.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct TypedTagValue {
    #[prost(string, tag = "1")]
    #[serde(rename = "type")]
    pub(super) value_type: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetadataMetrics {
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "as_text", skip_serializing_if = "is_zero")]
    pub(super) inspected_bytes: u64,
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) total_jobs: u32,
    #[prost(uint32, tag = "3")]
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) completed_jobs: u32,
}

/// Times and step in nanoseconds.
#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryRangeRequest {
    #[prost(string, tag = "1")]
    pub(super) query: String,
    #[prost(uint64, tag = "2")]
    pub(super) start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) end: u64,
    #[prost(uint64, tag = "4")]
    pub(super) step: u64,
    #[prost(uint32, tag = "16")]
    pub(super) exemplars: u32,
    #[prost(uint32, tag = "17")]
    pub(super) max_series: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryInstantRequest {
    #[prost(string, tag = "1")]
    pub(super) query: String,
    #[prost(uint64, tag = "2")]
    pub(super) start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) end: u64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct QueryRangeResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<TimeSeries>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<SearchMetrics>,
    #[prost(int32, tag = "3")]
    #[serde(serialize_with = "status_name", skip_serializing_if = "is_zero")]
    pub(super) status: i32,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<KeyValue>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) exemplars: Vec<Exemplar>,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sample {
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "as_text")]
    pub(super) timestamp_ms: i64,
    #[prost(double, tag = "1")]
    #[serde(serialize_with = "double_or_name")]
    pub(super) value: f64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<KeyValue>,
    #[prost(double, tag = "2")]
    #[serde(serialize_with = "double_or_name")]
    pub(super) value: f64,
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "as_text")]
    pub(super) timestamp_ms: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct QueryInstantResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<InstantSeries>,
    #[prost(message, optional, tag = "2")]
    pub(super) metrics: Option<SearchMetrics>,
    #[prost(int32, tag = "3")]
    #[serde(serialize_with = "status_name", skip_serializing_if = "is_zero")]
    pub(super) status: i32,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct InstantSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<KeyValue>,
    #[prost(double, tag = "2")]
    #[serde(serialize_with = "double_or_name")]
    pub(super) value: f64,
}

/// The status of an answer that something was left out of.
pub(super) const PARTIAL: i32 = 1;

fn status_name<S: serde::Serializer>(_: &i32, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str("PARTIAL")
}
