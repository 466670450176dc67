//! Flame graphs: which stacks are asked for, and the shapes they are answered in.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::super::json_forms::{enum_number, int64_text, int64_texts, maybe_int64, pprof_json};

/// Which stacks count.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StackTraceSelector {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "call_site")]
    pub(crate) call_site: Vec<CallSite>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "go_pgo", rename = "goPgo")]
    pub(crate) go_pgo: Option<GoPgo>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CallSite {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct GoPgo {
    #[prost(uint32, tag = "1")]
    #[serde(alias = "keep_locations")]
    pub(crate) keep_locations: u32,
    #[prost(bool, tag = "2")]
    #[serde(alias = "aggregate_callees")]
    pub(crate) aggregate_callees: bool,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StacktracesRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(crate) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(crate) label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "max_nodes", with = "maybe_int64")]
    pub(crate) max_nodes: Option<i64>,
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "enum_number")]
    pub(crate) format: i32,
    #[prost(message, optional, tag = "7")]
    #[serde(alias = "stack_trace_selector")]
    pub(crate) stack_trace_selector: Option<StackTraceSelector>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "profile_id_selector")]
    pub(crate) profile_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "10")]
    #[serde(alias = "trace_id_selector")]
    pub(crate) trace_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    #[serde(alias = "span_selector")]
    pub(crate) span_selector: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SpanProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(crate) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(crate) label_selector: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(alias = "span_selector")]
    pub(crate) span_selector: Vec<String>,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "5")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
    #[prost(int64, optional, tag = "6")]
    #[serde(alias = "max_nodes", with = "maybe_int64")]
    pub(crate) max_nodes: Option<i64>,
    #[prost(int32, tag = "7")]
    #[serde(deserialize_with = "enum_number")]
    pub(crate) format: i32,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MergeProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID", alias = "profileTypeId")]
    pub(crate) profile_type_id: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub(crate) label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "max_nodes", with = "maybe_int64")]
    pub(crate) max_nodes: Option<i64>,
    #[prost(message, optional, tag = "6")]
    #[serde(alias = "stack_trace_selector")]
    pub(crate) stack_trace_selector: Option<StackTraceSelector>,
    #[prost(string, repeated, tag = "7")]
    #[serde(alias = "profile_id_selector")]
    pub(crate) profile_id_selector: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "trace_id_selector")]
    pub(crate) trace_id_selector: Vec<String>,
}

/// A flame graph in one of the shapes that were asked for.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct StacktracesResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flamegraph: Option<FlameGraphMessage>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "super::super::json_forms::base64_text", skip_serializing_if = "Vec::is_empty")]
    pub(crate) tree: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) dot: String,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pprof: Option<PprofMessage>,
}

/// A pprof profile inside another message: bytes and message are the same on the wire.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct PprofMessage {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "pprof_json")]
    pub(crate) profile: Vec<u8>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlameGraphMessage {
    #[prost(string, repeated, tag = "1")]
    pub(crate) names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) levels: Vec<LevelMessage>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) total: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) max_self: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct LevelMessage {
    #[prost(int64, repeated, tag = "1")]
    #[serde(serialize_with = "int64_texts")]
    pub(crate) values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DiffRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) left: Option<StacktracesRequest>,
    #[prost(message, optional, tag = "2")]
    pub(crate) right: Option<StacktracesRequest>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct DiffResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) flamegraph: Option<FlameGraphDiffMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlameGraphDiffMessage {
    #[prost(string, repeated, tag = "1")]
    pub(crate) names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) levels: Vec<LevelMessage>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) total: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) max_self: i64,
    #[prost(int64, tag = "5")]
    #[serde(with = "int64_text")]
    pub(crate) left_ticks: i64,
    #[prost(int64, tag = "6")]
    #[serde(with = "int64_text")]
    pub(crate) right_ticks: i64,
}
