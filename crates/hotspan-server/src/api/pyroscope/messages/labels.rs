//! What there is: profile types, labels and series.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::super::json_forms::int64_text;

/// Start and end, both in milliseconds since 1970.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProfileTypesRequest {
    #[prost(int64, tag = "1")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileTypesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) profile_types: Vec<ProfileTypeMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ProfileTypeMessage {
    #[prost(string, tag = "1")]
    #[serde(rename = "ID")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) sample_type: String,
    #[prost(string, tag = "5")]
    pub(crate) sample_unit: String,
    #[prost(string, tag = "6")]
    pub(crate) period_type: String,
    #[prost(string, tag = "7")]
    pub(crate) period_unit: String,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) matchers: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LabelNamesRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) matchers: Vec<String>,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
}

/// Names of labels, or values of one.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NamesResponse {
    #[prost(string, repeated, tag = "1")]
    pub(crate) names: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SeriesRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) matchers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(alias = "label_names")]
    pub(crate) label_names: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SeriesResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) labels_set: Vec<LabelsMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LabelsMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<LabelPair>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
pub(crate) struct EmptyMessage {}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileStatsResponse {
    #[prost(bool, tag = "1")]
    pub(crate) data_ingested: bool,
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(crate) oldest_profile_time: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) newest_profile_time: i64,
}
