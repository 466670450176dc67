//! `/api/v1/service-graph`: who calls whom, with rates and latencies.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use http::HeaderMap;
use serde_json::{Value, json};

use super::ApiError;
use super::services::{RangeParameters, statistics_json};
use crate::app::App;
use crate::receive::tenant_of;

/// Answers `/api/v1/service-graph`.
pub(crate) async fn service_graph(
    State(app): State<Arc<App>>,
    Query(parameters): Query<RangeParameters>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let core = app.core()?;
    let tenant = tenant_of(&app, &headers)?;
    let (from, until) = parameters.range()?;
    let seconds = (until - from) as f64 / 1e9;
    let edges = core.engine.service_graph(&tenant, from, until).await?;
    let rows = edges.iter().map(|(edge, statistics)| {
        let mut row = statistics_json(statistics, seconds);
        row["client"] = json!(edge.client);
        row["server"] = json!(edge.server);
        row["connection_type"] = json!(edge.connection.label());
        row
    });
    Ok(Json(json!({ "edges": rows.collect::<Vec<_>>(), "start": from, "end": until })))
}
