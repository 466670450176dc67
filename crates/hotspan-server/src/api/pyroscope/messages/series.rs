//! Values over time, heatmaps, and the exemplars of both.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::super::json_forms::{enum_number, int64_text, maybe_int64};
use super::labels::LabelPair;
use super::stacktraces::StackTraceSelector;

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectSeriesRequest {
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
    #[prost(string, repeated, tag = "5")]
    #[serde(alias = "group_by")]
    pub(crate) group_by: Vec<String>,
    #[prost(double, tag = "6")]
    pub(crate) step: f64,
    #[prost(int32, optional, tag = "7")]
    #[serde(deserialize_with = "super::super::json_forms::maybe_enum")]
    pub(crate) aggregation: Option<i32>,
    #[prost(message, optional, tag = "8")]
    #[serde(alias = "stack_trace_selector")]
    pub(crate) stack_trace_selector: Option<StackTraceSelector>,
    #[prost(int64, optional, tag = "9")]
    #[serde(with = "maybe_int64")]
    pub(crate) limit: Option<i64>,
    #[prost(int32, tag = "10")]
    #[serde(alias = "exemplar_type", deserialize_with = "enum_number")]
    pub(crate) exemplar_type: i32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) series: Vec<SeriesMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct SeriesMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) points: Vec<PointMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct PointMessage {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(crate) timestamp: i64,
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exemplars: Vec<ExemplarMessage>,
}

/// A profile or span that contributed to a value.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExemplarMessage {
    #[prost(int64, tag = "1")]
    #[serde(with = "int64_text")]
    pub(crate) timestamp: i64,
    #[prost(string, tag = "2")]
    pub(crate) profile_id: String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) span_id: String,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) value: i64,
    #[prost(message, repeated, tag = "5")]
    pub(crate) labels: Vec<LabelPair>,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) trace_id: String,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HeatmapRequest {
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
    #[prost(double, tag = "5")]
    pub(crate) step: f64,
    #[prost(string, repeated, tag = "6")]
    #[serde(alias = "group_by")]
    pub(crate) group_by: Vec<String>,
    #[prost(int32, tag = "7")]
    #[serde(alias = "query_type", deserialize_with = "enum_number")]
    pub(crate) query_type: i32,
    #[prost(int32, tag = "8")]
    #[serde(alias = "exemplar_type", deserialize_with = "enum_number")]
    pub(crate) exemplar_type: i32,
    #[prost(int64, optional, tag = "9")]
    #[serde(with = "maybe_int64")]
    pub(crate) limit: Option<i64>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct HeatmapResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) series: Vec<HeatmapSeries>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct HeatmapSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) slots: Vec<HeatmapSlot>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeatmapSlot {
    #[prost(int64, tag = "1")]
    #[serde(with = "int64_text")]
    pub(crate) timestamp: i64,
    #[prost(double, repeated, tag = "2")]
    pub(crate) y_min: Vec<f64>,
    #[prost(int32, repeated, tag = "3")]
    pub(crate) counts: Vec<i32>,
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exemplars: Vec<ExemplarMessage>,
}
