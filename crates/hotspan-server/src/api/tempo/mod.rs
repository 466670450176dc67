//! Tempo's API: traces by id, search, tags and metrics, over HTTP in JSON or protobuf and as gRPC streams.

mod answer;
mod json_forms;
mod messages;
mod metrics;
mod otlp_messages;
mod parameters;
mod rejected_note;
mod search;
mod stored_trace;
mod streaming;
mod tags;
mod traces;

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hashbrown::HashSet;
use hotspan_query::StoredSpan;
use serde::Serialize;
use serde_json::json;

use crate::app::App;

/// All of Tempo's routes.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/traces/{id}", get(traces::trace_v1))
        .route("/api/v2/traces/{id}", get(traces::trace_v2))
        .route("/api/echo", get(traces::echo))
        .route("/api/search", get(search::search))
        .route("/api/search/tags", get(tags::tags_v1))
        .route("/api/v2/search/tags", get(tags::tags_v2))
        // A tag may have slashes in its name, so the path goes on behind it: `{tag}/values`.
        .route("/api/search/tag/{*tag_values}", get(tags::tag_values_v1))
        .route("/api/v2/search/tag/{*tag_values}", get(tags::tag_values_v2))
        .route("/api/metrics/query_range", get(metrics::query_range))
        .route("/api/metrics/query", get(metrics::query_instant))
        .route("/api/status/buildinfo", get(build_info))
        .merge(streaming_routes())
}

/// Spans in OTLP's JSON, as a trace by id has them.
pub(crate) fn otlp_json(spans: &[StoredSpan]) -> impl Serialize + use<> {
    stored_trace::resource_spans(spans, &HashSet::new())
}

fn streaming_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/tempopb.StreamingQuerier/Search", post(streaming::search))
        .route("/tempopb.StreamingQuerier/SearchTags", post(streaming::search_tags))
        .route("/tempopb.StreamingQuerier/SearchTagsV2", post(streaming::search_tags_v2))
        .route("/tempopb.StreamingQuerier/SearchTagValues", post(streaming::search_tag_values))
        .route("/tempopb.StreamingQuerier/SearchTagValuesV2", post(streaming::search_tag_values_v2))
        .route("/tempopb.StreamingQuerier/MetricsQueryRange", post(streaming::metrics_query_range))
        .route("/tempopb.StreamingQuerier/MetricsQueryInstant", post(streaming::metrics_query_instant))
}

/// `/api/status/buildinfo`, which clients gate features by.
async fn build_info() -> Response {
    axum::Json(json!({
        "version": "3.0.0", "revision": env!("CARGO_PKG_VERSION"), "branch": "hotspan",
        "buildUser": "", "buildDate": "", "goVersion": "",
    }))
    .into_response()
}
