//! The messages of `querier.v1` and its neighbours, for protobuf and for protobuf JSON.
//!
//! Field numbers are the wire's. In JSON, 64-bit numbers are texts, names are in camel case, and both spellings of
//! a name are understood.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::json_forms::{enum_number, int64_text, int64_texts, maybe_int64, pprof_json, uint64_text};

/// Start and end, both in milliseconds since 1970.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ProfileTypesRequest {
    #[prost(int64, tag = "1")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProfileTypesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) profile_types: Vec<ProfileTypeMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProfileTypeMessage {
    #[prost(string, tag = "1")]
    #[serde(rename = "ID")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) sample_type: String,
    #[prost(string, tag = "5")]
    pub(super) sample_unit: String,
    #[prost(string, tag = "6")]
    pub(super) period_type: String,
    #[prost(string, tag = "7")]
    pub(super) period_unit: String,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) matchers: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LabelNamesRequest {
    #[prost(string, repeated, tag = "1")]
    pub(super) matchers: Vec<String>,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
}

/// Names of labels, or values of one.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NamesResponse {
    #[prost(string, repeated, tag = "1")]
    pub(super) names: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SeriesRequest {
    #[prost(string, repeated, tag = "1")]
    pub(super) matchers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(alias = "label_names")]
    pub(super) label_names: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SeriesResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) labels_set: Vec<LabelsMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LabelsMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// Which stacks count.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StackTraceSelector {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "call_site")]
    pub(super) call_site: Vec<CallSite>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "go_pgo", rename = "goPgo")]
    pub(super) go_pgo: Option<GoPgo>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CallSite {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GoPgo {
    #[prost(uint32, tag = "1")]
    #[serde(alias = "keep_locations")]
    pub(super) keep_locations: u32,
    #[prost(bool, tag = "2")]
    #[serde(alias = "aggregate_callees")]
    pub(super) aggregate_callees: bool,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StacktracesRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(super) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(super) label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "max_nodes", with = "maybe_int64")]
    pub(super) max_nodes: Option<i64>,
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "enum_number")]
    pub(super) format: i32,
    #[prost(message, optional, tag = "7")]
    #[serde(alias = "stack_trace_selector")]
    pub(super) stack_trace_selector: Option<StackTraceSelector>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "profile_id_selector")]
    pub(super) profile_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "10")]
    #[serde(alias = "trace_id_selector")]
    pub(super) trace_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    #[serde(alias = "span_selector")]
    pub(super) span_selector: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpanProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(super) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(super) label_selector: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(alias = "span_selector")]
    pub(super) span_selector: Vec<String>,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "5")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
    #[prost(int64, optional, tag = "6")]
    #[serde(alias = "max_nodes", with = "maybe_int64")]
    pub(super) max_nodes: Option<i64>,
    #[prost(int32, tag = "7")]
    #[serde(deserialize_with = "enum_number")]
    pub(super) format: i32,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MergeProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(super) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(super) label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "max_nodes", with = "maybe_int64")]
    pub(super) max_nodes: Option<i64>,
    #[prost(message, optional, tag = "6")]
    #[serde(alias = "stack_trace_selector")]
    pub(super) stack_trace_selector: Option<StackTraceSelector>,
    #[prost(string, repeated, tag = "7")]
    #[serde(alias = "profile_id_selector")]
    pub(super) profile_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "trace_id_selector")]
    pub(super) trace_id_selector: Vec<String>,
}

/// A flame graph in one of the shapes that were asked for.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct StacktracesResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flamegraph: Option<FlameGraphMessage>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "super::json_forms::base64_text", skip_serializing_if = "Vec::is_empty")]
    pub(super) tree: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) dot: String,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pprof: Option<PprofMessage>,
}

/// A pprof profile inside another message: bytes and message are the same on the wire.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct PprofMessage {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "pprof_json")]
    pub(super) profile: Vec<u8>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlameGraphMessage {
    #[prost(string, repeated, tag = "1")]
    pub(super) names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) levels: Vec<LevelMessage>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) total: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) max_self: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct LevelMessage {
    #[prost(int64, repeated, tag = "1")]
    #[serde(serialize_with = "int64_texts")]
    pub(super) values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DiffRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) left: Option<StacktracesRequest>,
    #[prost(message, optional, tag = "2")]
    pub(super) right: Option<StacktracesRequest>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct DiffResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) flamegraph: Option<FlameGraphDiffMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlameGraphDiffMessage {
    #[prost(string, repeated, tag = "1")]
    pub(super) names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) levels: Vec<LevelMessage>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) total: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) max_self: i64,
    #[prost(int64, tag = "5")]
    #[serde(with = "int64_text")]
    pub(super) left_ticks: i64,
    #[prost(int64, tag = "6")]
    #[serde(with = "int64_text")]
    pub(super) right_ticks: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SelectSeriesRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(super) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(super) label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
    #[prost(string, repeated, tag = "5")]
    #[serde(alias = "group_by")]
    pub(super) group_by: Vec<String>,
    #[prost(double, tag = "6")]
    pub(super) step: f64,
    #[prost(int32, optional, tag = "7")]
    #[serde(deserialize_with = "super::json_forms::maybe_enum")]
    pub(super) aggregation: Option<i32>,
    #[prost(message, optional, tag = "8")]
    #[serde(alias = "stack_trace_selector")]
    pub(super) stack_trace_selector: Option<StackTraceSelector>,
    #[prost(int64, optional, tag = "9")]
    #[serde(with = "maybe_int64")]
    pub(super) limit: Option<i64>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<SeriesMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct SeriesMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(super) points: Vec<PointMessage>,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
pub(super) struct PointMessage {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(super) timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
pub(super) struct EmptyMessage {}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileStatsResponse {
    #[prost(bool, tag = "1")]
    pub(super) data_ingested: bool,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(super) oldest_profile_time: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) newest_profile_time: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AnalyzeQueryRequest {
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(super) start: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(super) end: i64,
    #[prost(string, tag = "4")]
    pub(super) query: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnalyzeQueryResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) query_scopes: Vec<QueryScope>,
    #[prost(message, optional, tag = "2")]
    pub(super) query_impact: Option<QueryImpact>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueryScope {
    #[prost(string, tag = "1")]
    pub(super) component_type: String,
    #[prost(uint64, tag = "2")]
    #[serde(with = "uint64_text")]
    pub(super) component_count: u64,
    #[prost(uint64, tag = "3")]
    #[serde(with = "uint64_text")]
    pub(super) block_count: u64,
    #[prost(uint64, tag = "4")]
    #[serde(with = "uint64_text")]
    pub(super) series_count: u64,
    #[prost(uint64, tag = "5")]
    #[serde(with = "uint64_text")]
    pub(super) profile_count: u64,
    #[prost(uint64, tag = "6")]
    #[serde(with = "uint64_text")]
    pub(super) sample_count: u64,
    #[prost(uint64, tag = "7")]
    #[serde(with = "uint64_text")]
    pub(super) index_bytes: u64,
    #[prost(uint64, tag = "8")]
    #[serde(with = "uint64_text")]
    pub(super) profile_bytes: u64,
    #[prost(uint64, tag = "9")]
    #[serde(with = "uint64_text")]
    pub(super) symbol_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueryImpact {
    #[prost(uint64, tag = "2")]
    #[serde(with = "uint64_text")]
    pub(super) total_bytes_in_time_range: u64,
    #[prost(uint64, tag = "3")]
    #[serde(with = "uint64_text")]
    pub(super) total_queried_series: u64,
    #[prost(bool, tag = "4")]
    pub(super) deduplication_needed: bool,
}
