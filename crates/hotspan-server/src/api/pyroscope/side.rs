//! What Grafana asks beside profiles: features, settings, rules and the version.

use axum::Json;
use prost::Message;
use serde::Serialize;
use serde_json::{Value, json};

use super::messages::EmptyMessage;
use super::unary::Asked;
use crate::api::ApiError;

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeatureFlagsResponse {
    #[prost(message, repeated, tag = "1")]
    feature_flags: Vec<FeatureFlag>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct FeatureFlag {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "2")]
    enabled: bool,
}

/// What this server can do, by the names that Grafana asks for.
pub(super) async fn feature_flags(_asked: Asked<EmptyMessage>) -> Result<FeatureFlagsResponse, ApiError> {
    // `v2StorageLayer` promises heatmaps and exemplars, which are not answered yet; rules are not evaluated here.
    let flags = [
        ("v2StorageLayer", false),
        ("pyroscopeRuler", false),
        ("pyroscopeRulerFunctions", false),
        ("utf8LabelNames", true),
    ];
    let flag = |(name, enabled): (&str, bool)| FeatureFlag { name: name.to_owned(), enabled };
    Ok(FeatureFlagsResponse { feature_flags: flags.map(flag).to_vec() })
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct SettingsResponse {
    #[prost(message, repeated, tag = "1")]
    settings: Vec<Setting>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Setting {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// No settings are kept: clients fall back to their defaults.
pub(super) async fn settings(_asked: Asked<EmptyMessage>) -> Result<SettingsResponse, ApiError> {
    Ok(SettingsResponse::default())
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
pub(super) struct RecordingRulesResponse {}

/// There are no rules.
pub(super) async fn recording_rules(_asked: Asked<EmptyMessage>) -> Result<RecordingRulesResponse, ApiError> {
    Ok(RecordingRulesResponse {})
}

/// The version, in the shape that Prometheus gave it.
pub(super) async fn build_info() -> Json<Value> {
    let data = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    });
    Json(json!({ "status": "success", "data": data }))
}
