//! What Grafana asks beside profiles: features, rules and the version.

use axum::Json;
use http::StatusCode;
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
    // `v2StorageLayer` promises heatmaps, exemplars and selectors by profile id; rules are not evaluated here.
    let flags = [
        ("v2StorageLayer", true),
        ("pyroscopeRuler", false),
        ("pyroscopeRulerFunctions", false),
        ("utf8LabelNames", true),
    ];
    let flag = |(name, enabled): (&str, bool)| FeatureFlag { name: name.to_owned(), enabled };
    Ok(FeatureFlagsResponse { feature_flags: flags.map(flag).to_vec() })
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
pub(super) struct RecordingRulesResponse {}

/// There are no rules.
pub(super) async fn recording_rules(_asked: Asked<EmptyMessage>) -> Result<RecordingRulesResponse, ApiError> {
    Ok(RecordingRulesResponse {})
}

/// No rules are kept either; a client that tries learns so, instead of believing that one is.
pub(super) async fn no_recording_rules(_asked: Asked<EmptyMessage>) -> Result<RecordingRulesResponse, ApiError> {
    let message = "recording rules are not evaluated here; ask for series with SelectSeries";
    Err(ApiError { status: StatusCode::NOT_IMPLEMENTED, message: message.to_owned() })
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
