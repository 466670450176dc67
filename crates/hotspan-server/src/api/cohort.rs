//! `/api/v1/cohort/flame`: the code of exactly the spans that a TraceQL search selects.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_lake::catalog::now_nanos;
use hotspan_model::ProfileType;
use hotspan_query::{CohortScope, FlameQuery};
use hotspan_traceql::Program;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::profile::exactness_json;
use crate::app::App;
use crate::receive::tenant_of;
use crate::time_text::parse_time;

#[derive(Debug, Deserialize)]
pub(crate) struct CohortBody {
    query: String,
    #[serde(rename = "type")]
    profile_type: Option<String>,
    from: Option<Value>,
    to: Option<Value>,
    scope: Option<String>,
    max_nodes: Option<usize>,
}

const HOUR: i64 = 3600 * 1_000_000_000;
/// Spans that one cohort holds at most; the answer says when there were more.
const MAX_SPANS: usize = 5000;

/// Answers `/api/v1/cohort/flame`.
pub(crate) async fn flame(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Json(body): Json<CohortBody>,
) -> Result<Response, ApiError> {
    let core = app.core()?;
    let tenant = tenant_of(&app, &headers)?;
    let program = Program::new(&body.query).map_err(|error| ApiError::invalid(error.render(&body.query)))?;
    let profile_type = match &body.profile_type {
        Some(text) => text.parse::<ProfileType>().map_err(|error| ApiError::invalid(format!("type: {error}")))?,
        None => ProfileType::cpu(),
    };
    let scope: CohortScope = body.scope.as_deref().unwrap_or("span").parse()?;
    let now = now_nanos();
    let until = time("to", body.to.as_ref(), now)?.unwrap_or(now);
    let from = time("from", body.from.as_ref(), now)?.unwrap_or(until - HOUR);
    if from >= until {
        return Err(ApiError::invalid("from must be before to"));
    }
    let cohort = core.engine.cohort(&tenant, &program, (from, until), scope, MAX_SPANS).await?;
    let query = FlameQuery {
        profile_type: profile_type.clone(),
        // Spans that start inside the range may run on after it.
        from: from.saturating_sub(HOUR),
        until: until.saturating_add(HOUR),
        spans: cohort.spans.clone(),
        traces: cohort.traces.clone(),
        max_nodes: body.max_nodes.unwrap_or(8192),
        ..FlameQuery::default()
    };
    // Without spans there is nothing to ask for: an empty list would mean "any".
    let answer = if cohort.matched == 0 {
        hotspan_query::FlameAnswer { tree: hotspan_model::FlameTree::default(), exactness: Default::default() }
    } else {
        core.engine.flame(&tenant, &query).await?
    };
    let mut json = serde_json::to_value(FlamebearerProfile::single(&answer.tree, &profile_type)).unwrap_or_default();
    let mut exactness = exactness_json(&answer.exactness);
    exactness["selected_spans"] = json!(cohort.matched);
    exactness["is_cut"] = json!(cohort.is_cut);
    exactness["spans_with_samples"] = exactness["spans"].clone();
    exactness["spans"] = json!(cohort.matched.min(MAX_SPANS as u64));
    json["exactness"] = exactness;
    Ok(Json(json).into_response())
}

/// A time given as text or number.
fn time(name: &str, value: Option<&Value>, now: i64) -> Result<Option<i64>, ApiError> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    parse_time(&text, now).map(Some).map_err(|error| ApiError::invalid(format!("{name}: {error}")))
}
