//! `/api/v1/service-graph`: who calls whom, with rates and latencies.

use axum::Json;
use http::Uri;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::exactness_json;
use super::known_parameters::{names_of, refuse_unknown};
use super::services::{RangeParameters, statistics_json};

/// Answers `/api/v1/service-graph`.
pub(crate) async fn service_graph(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<RangeParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<RangeParameters>()])?;
    let (from, until) = parameters.range()?;
    let graph = core.engine.service_graph(&tenant, from, until).await?;
    let rows = graph.edges.iter().map(|(edge, statistics)| {
        let mut row = statistics_json(statistics, &graph.steps);
        row["client"] = json!(edge.client);
        row["server"] = json!(edge.server);
        row["connection_type"] = json!(edge.connection.label());
        row
    });
    let rows: Vec<Value> = rows.collect();
    Ok(Json(json!({
        "edges": rows,
        "start": from,
        "end": until,
        "exactness": exactness_json(&graph.exactness),
    })))
}
