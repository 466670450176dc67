//! Answers: Tempo's API, Pyroscope's API, Hotspan's own, and what operators look at.

mod cohort;
mod error;
mod otlp_json;
mod profile;
mod pyroscope;
mod search;
mod services;
mod status;
mod tempo;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use error::ApiError;

use crate::app::App;
use crate::{page, receive};

/// All routes, for the main listener.
pub(crate) fn everything(app: Arc<App>) -> Router {
    Router::new()
        .merge(receive::otlp_grpc_routes())
        .merge(receive::otlp_http_routes())
        .merge(receive::ingest_routes())
        .merge(receive::push_routes())
        .merge(receive::upload_routes())
        .merge(pyroscope::routes())
        .merge(tempo_routes())
        .merge(health_routes())
        .route("/api/v1/status", get(status::status))
        .route("/api/v1/profile", get(profile::profile))
        .route("/api/v1/services", get(services::services))
        .route("/api/v1/cohort/flame", post(cohort::flame))
        .fallback(get(page::serve))
        .with_state(app)
}

/// Tempo's API.
pub(crate) fn tempo_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/traces/{id}", get(tempo::trace_v1))
        .route("/api/v2/traces/{id}", get(tempo::trace_v2))
        .route("/api/echo", get(tempo::echo))
        .route("/api/search", get(search::search))
        .route("/api/search/tags", get(search::tags_v1))
        .route("/api/v2/search/tags", get(search::tags_v2))
        .route("/api/search/tag/{tag}/values", get(search::tag_values_v1))
        .route("/api/v2/search/tag/{tag}/values", get(search::tag_values_v2))
        .route("/api/metrics/query_range", get(search::query_range))
        .route("/api/metrics/query", get(search::query_instant))
        .route("/api/status/buildinfo", get(search::build_info))
}

/// What operators and load balancers look at.
pub(crate) fn health_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/ready", get(status::ready))
        .route("/healthz", get(status::healthy))
        .route("/metrics", get(status::metrics))
}
