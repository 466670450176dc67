//! Flame graphs: which stacks are asked for, and the shapes they are answered in. Times are milliseconds since 1970.

use prost::Message;
use serde::Serialize;

use super::schema::messages;
use crate::api::pyroscope::json_forms::{base64_text, pprof_json};

messages! {
    /// Which stacks count.
    StackTraceSelector { 1 call_site: many CallSite, 2 go_pgo: one GoPgo, 3 frame_filter: one FrameFilter }

    CallSite { 1 name: text }

    /// How Go's optimiser wants its stacks.
    GoPgo { 1 keep_locations: uint32, 2 aggregate_callees: flag }

    /// Functions that a stack goes through, all of them, and functions of which it goes through none, wherever they stand
    /// in it. Regular expressions match any part of a name.
    FrameFilter {
        1 include_function_names: texts,
        2 exclude_function_names: texts,
        3 include_function_name_regexes: texts,
        4 exclude_function_name_regexes: texts,
    }

    StacktracesRequest {
        1 profile_type_id: type_id,
        2 label_selector: text,
        3 start: int64,
        4 end: int64,
        5 max_nodes: maybe_int64,
        6 format: profile_format,
        7 stack_trace_selector: one StackTraceSelector,
        8 profile_id_selector: texts,
        10 trace_id_selector: texts,
        11 span_selector: texts,
    }

    SpanProfileRequest {
        1 profile_type_id: type_id,
        2 label_selector: text,
        3 span_selector: texts,
        4 start: int64,
        5 end: int64,
        6 max_nodes: maybe_int64,
        7 format: profile_format,
    }

    MergeProfileRequest {
        1 profile_type_id: type_id,
        2 label_selector: text,
        3 start: int64,
        4 end: int64,
        5 max_nodes: maybe_int64,
        6 stack_trace_selector: one StackTraceSelector,
        7 profile_id_selector: texts,
        8 trace_id_selector: texts,
    }

    DiffRequest { 1 left: one StacktracesRequest, 2 right: one StacktracesRequest }

    DiffResponse { 1 flamegraph: one FlameGraphDiffMessage }

    FlameGraphMessage { 1 names: texts, 2 levels: many LevelMessage, 3 total: int64, 4 max_self: int64 }

    LevelMessage { 1 values: int64s }

    FlameGraphDiffMessage {
        1 names: texts,
        2 levels: many LevelMessage,
        3 total: int64,
        4 max_self: int64,
        5 left_ticks: int64,
        6 right_ticks: int64,
    }
}

/// A flame graph in one of the shapes that were asked for.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct StacktracesResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flamegraph: Option<FlameGraphMessage>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "base64_text", skip_serializing_if = "Vec::is_empty")]
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
