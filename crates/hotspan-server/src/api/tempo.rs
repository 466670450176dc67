//! Tempo's trace API.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hotspan_model::TraceId;
use hotspan_query::StoredTrace;
use http::{HeaderMap, StatusCode, header};
use serde_json::json;

use super::ApiError;
use super::otlp_json::resource_spans;
use crate::app::App;
use crate::receive::tenant_of;

/// Grafana's "save and test".
pub(crate) async fn echo() -> &'static str {
    "echo\n"
}

/// `/api/traces/{id}`: 404 without a body if there is no such trace.
pub(crate) async fn trace_v1(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Ok(match find(&app, &id, &headers).await? {
        Some(trace) => json_response(&json!({ "batches": resource_spans(&trace) })),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

/// `/api/v2/traces/{id}`: an empty trace if there is none.
pub(crate) async fn trace_v2(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let trace = match find(&app, &id, &headers).await? {
        Some(trace) => json!({ "resourceSpans": resource_spans(&trace) }),
        None => json!({}),
    };
    Ok(json_response(&json!({ "trace": trace, "metrics": {} })))
}

async fn find(app: &App, id: &str, headers: &HeaderMap) -> Result<Option<StoredTrace>, ApiError> {
    let core = app.core()?;
    let tenant = tenant_of(app, headers)?;
    let trace_id: TraceId =
        id.parse().map_err(|error: hotspan_model::ids::IdError| ApiError::invalid(error.to_string()))?;
    Ok(core.engine.trace_by_id(&tenant, trace_id).await?)
}

fn json_response(body: &serde_json::Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
