//! pprof as a message, for clients that want it in JSON. Everyone else gets the bytes as they were written.

use prost::Message;
use serde::Serialize;

use super::json_forms::{int64_text, int64_texts, uint64_text};

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    #[serde(with = "int64_text")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    #[serde(with = "int64_text")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    #[serde(with = "int64_text")]
    period: i64,
    #[prost(int64, tag = "14")]
    #[serde(with = "int64_text")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
struct ValueType {
    #[prost(int64, tag = "1")]
    #[serde(with = "int64_text", rename = "type")]
    kind: i64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    #[serde(serialize_with = "uint64_texts")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    #[serde(serialize_with = "int64_texts")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Mapping {
    #[prost(uint64, tag = "1")]
    #[serde(with = "uint64_text")]
    id: u64,
    #[prost(uint64, tag = "3")]
    #[serde(with = "uint64_text")]
    memory_limit: u64,
    #[prost(int64, tag = "5")]
    #[serde(with = "int64_text")]
    filename: i64,
    #[prost(int64, tag = "6")]
    #[serde(with = "int64_text")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[prost(uint64, tag = "1")]
    #[serde(with = "uint64_text")]
    id: u64,
    #[prost(uint64, tag = "2")]
    #[serde(with = "uint64_text")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    #[serde(with = "uint64_text")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[prost(uint64, tag = "1")]
    #[serde(with = "uint64_text")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    line: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text", skip_serializing_if = "is_zero")]
    column: i64,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Function {
    #[prost(uint64, tag = "1")]
    #[serde(with = "uint64_text")]
    id: u64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    name: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    filename: i64,
    // Zero is not a line, nor a column: left out, as protobuf JSON does, or clients show it as one.
    #[prost(int64, tag = "5")]
    #[serde(with = "int64_text", skip_serializing_if = "is_zero")]
    start_line: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn uint64_texts<S: serde::Serializer>(values: &[u64], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(values.iter().map(ToString::to_string))
}
