//! Answers: Tempo's API, Pyroscope's API, Hotspan's own, and what operators look at.

mod asker;
mod cohort;
mod diff;
mod endpoints;
mod error;
mod exactness;
mod explain;
mod flame_json;
mod functions;
mod known_parameters;
mod mistake;
mod no_samples;
mod policy;
mod profile;
mod pyroscope;
mod service_graph;
mod services;
mod short_types;
mod snapshot_sums;
mod source;
mod span_metrics;
mod span_scope;
mod sql;
mod status;
mod tempo;
mod trace_summary;
mod trace_window;
mod wrong_method;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

pub(crate) use error::{ApiError, WhyNot};
pub(crate) use mistake::QuestionError;
pub(crate) use wrong_method::naming_methods;

use crate::app::App;
use crate::query_counts::count_queries;
use crate::rpc::unknown_method;
use crate::{page, receive};

/// All routes, for the main listener.
pub(crate) fn everything(app: Arc<App>) -> Router {
    Router::new()
        .merge(receive::otlp_routes())
        .merge(receive::ingest_routes())
        .merge(receive::push_routes())
        .merge(receive::upload_routes())
        .merge(pyroscope::routes())
        .merge(tempo::routes())
        .merge(health_routes())
        .route("/api/v1/status", get(status::status))
        .route("/api/v1/targets", get(status::targets))
        .route("/api/v1/profile", get(profile::profile))
        .route("/api/v1/diff", get(diff::diff))
        .route("/api/v1/services", get(services::services))
        .route("/api/v1/service-graph", get(service_graph::service_graph))
        .route("/metrics/spans", get(span_metrics::span_metrics))
        .route("/api/v1/endpoints", get(endpoints::endpoints))
        .route("/api/v1/functions/spans", get(functions::spans))
        .route("/api/v1/trace/{id}/profile-summary", get(trace_summary::profile_summary))
        .merge(cohort::routes())
        .route("/api/v1/source", get(source::source))
        .route(
            "/api/v1/profiling/policy",
            get(policy::get).put(policy::put).patch(policy::patch).delete(policy::delete),
        )
        .route("/api/v1/trace/{id}/spans", get(trace_window::trace_window))
        .route("/api/v1/trace/{id}/outline", get(trace_window::trace_outline))
        .route("/api/v1/trace/{id}/details", post(trace_window::trace_details))
        .merge(explain::routes())
        .route("/api/v1/sql", post(sql::sql))
        .fallback(get(page::serve).post(unknown_method))
        .layer(from_fn_with_state(Arc::clone(&app), count_queries))
        .with_state(app)
}

/// Tempo's API, for the listener that has nothing else.
pub(crate) fn tempo_alone(app: Arc<App>) -> Router {
    let routes = tempo::routes().merge(health_routes());
    routes.layer(from_fn_with_state(Arc::clone(&app), count_queries)).with_state(app)
}

/// What operators and load balancers look at.
fn health_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/ready", get(status::ready))
        .route("/healthz", get(status::healthy))
        .route("/metrics", get(status::metrics))
}
