//! `/api/v1/trace/{id}/spans?offset=…&limit=…`: a window of a long trace, in the order of a waterfall.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use hotspan_model::{StatusCode as SpanStatus, TraceId};
use hotspan_query::PlacedSpan;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use crate::app::App;
use crate::receive::tenant_of;

/// Which spans to show.
#[derive(Debug, Deserialize)]
pub(crate) struct WindowParameters {
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
    /// Spans deeper than this are folded away; their parents tell how many there are.
    max_depth: Option<u32>,
}

const DEFAULT_LIMIT: usize = 1000;
const MAX_LIMIT: usize = 20_000;

/// Answers `/api/v1/trace/{id}/spans`.
pub(crate) async fn trace_window(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(parameters): Query<WindowParameters>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let core = app.core()?;
    let tenant = tenant_of(&app, &headers)?;
    let trace_id: TraceId =
        id.parse().map_err(|error: hotspan_model::ids::IdError| ApiError::invalid(error.to_string()))?;
    let limit = parameters.limit.unwrap_or(DEFAULT_LIMIT);
    if limit > MAX_LIMIT {
        return Err(ApiError::invalid(format!("limit: {limit} is more than {MAX_LIMIT}, the largest window")));
    }
    let placed = core.engine.waterfall(&tenant, trace_id).await?;
    if placed.is_empty() {
        return Err(ApiError { status: StatusCode::NOT_FOUND, message: format!("there is no trace {trace_id}") });
    }
    let start = placed.iter().map(|placed| placed.span.start).min().unwrap_or(0);
    let end = placed.iter().map(|placed| placed.span.end()).max().unwrap_or(start);
    let errors = placed.iter().filter(|placed| placed.span.status == SpanStatus::Error).count();
    let shown = placed.iter().filter(|placed| parameters.max_depth.is_none_or(|most| placed.depth <= most));
    let total = shown.clone().count();
    let window: Vec<Value> = shown.skip(parameters.offset).take(limit).map(|placed| span_json(placed, start)).collect();
    Ok(Json(json!({
        "trace_id": trace_id.to_string(),
        "start_ns": start.to_string(),
        "duration_ns": end - start,
        "total_spans": placed.len(),
        "error_count": errors,
        "rows": total,
        "offset": parameters.offset,
        "spans": window,
    })))
}

fn span_json(placed: &PlacedSpan, trace_start: i64) -> Value {
    let span = &placed.span;
    json!({
        "span_id": span.span_id.to_string(),
        "parent_id": span.parent_id.map(|parent| parent.to_string()),
        "service": &*span.service,
        "name": &*span.name,
        "kind": span.kind as i8,
        "failed": span.status == SpanStatus::Error,
        // Since the trace began: numbers that a browser can hold exactly.
        "start_ns": span.start - trace_start,
        "duration_ns": span.duration,
        "depth": placed.depth,
        "descendants": placed.descendants,
    })
}
