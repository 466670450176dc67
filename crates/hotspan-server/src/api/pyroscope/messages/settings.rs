//! Settings that a client keeps with the server.

use prost::Message;
use serde::{Deserialize, Serialize};

use super::super::json_forms::int64_text;

/// A name and its value. `modified_at` is in milliseconds since 1970.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Setting {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
    #[prost(int64, tag = "3")]
    #[serde(with = "int64_text")]
    pub(crate) modified_at: i64,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SettingsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) settings: Vec<Setting>,
}

/// One setting: what is to be set, and what was.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SettingMessage {
    #[prost(message, optional, tag = "1")]
    pub(crate) setting: Option<Setting>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DeleteSettingRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}
