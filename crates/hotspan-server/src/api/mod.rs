//! Answers: Tempo's API, Pyroscope's API, Hotspan's own, and what operators look at.

mod error;
mod otlp_json;
mod profile;
mod pyroscope;
mod status;
mod tempo;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

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
        .fallback(get(page::serve))
        .with_state(app)
}

/// Tempo's API.
pub(crate) fn tempo_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/traces/{id}", get(tempo::trace_v1))
        .route("/api/v2/traces/{id}", get(tempo::trace_v2))
        .route("/api/echo", get(tempo::echo))
}

/// What operators and load balancers look at.
pub(crate) fn health_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/ready", get(status::ready))
        .route("/healthz", get(status::healthy))
        .route("/metrics", get(status::metrics))
}
