//! How much a query would read.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::super::json_forms::{int64_text, uint64_text};

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AnalyzeQueryRequest {
    #[prost(int64, tag = "2")]
    #[serde(with = "int64_text")]
    pub(crate) start: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) end: i64,
    #[prost(string, tag = "4")]
    pub(crate) query: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnalyzeQueryResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) query_scopes: Vec<QueryScope>,
    #[prost(message, optional, tag = "2")]
    pub(crate) query_impact: Option<QueryImpact>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryScope {
    #[prost(string, tag = "1")]
    pub(crate) component_type: String,
    #[prost(uint64, tag = "2")]
    #[serde(with = "uint64_text")]
    pub(crate) component_count: u64,
    #[prost(uint64, tag = "3")]
    #[serde(with = "uint64_text")]
    pub(crate) block_count: u64,
    #[prost(uint64, tag = "4")]
    #[serde(with = "uint64_text")]
    pub(crate) series_count: u64,
    #[prost(uint64, tag = "5")]
    #[serde(with = "uint64_text")]
    pub(crate) profile_count: u64,
    #[prost(uint64, tag = "6")]
    #[serde(with = "uint64_text")]
    pub(crate) sample_count: u64,
    #[prost(uint64, tag = "7")]
    #[serde(with = "uint64_text")]
    pub(crate) index_bytes: u64,
    #[prost(uint64, tag = "8")]
    #[serde(with = "uint64_text")]
    pub(crate) profile_bytes: u64,
    #[prost(uint64, tag = "9")]
    #[serde(with = "uint64_text")]
    pub(crate) symbol_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryImpact {
    #[prost(uint64, tag = "2")]
    #[serde(with = "uint64_text")]
    pub(crate) total_bytes_in_time_range: u64,
    #[prost(uint64, tag = "3")]
    #[serde(with = "uint64_text")]
    pub(crate) total_queried_series: u64,
    #[prost(bool, tag = "4")]
    pub(crate) deduplication_needed: bool,
}
