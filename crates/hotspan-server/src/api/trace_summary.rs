//! `/api/v1/trace/{id}/profile-summary`: what profiles know of each span of a trace, for painting a waterfall.

use axum::Json;
use axum::extract::Path;
use hotspan_model::{Coverage, CoverageOf, TraceId};
use hotspan_query::outline::extent;
use hotspan_query::span_facts::SpanFacts;
use http::{StatusCode, Uri};
use serde_json::{Map, Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::exactness_json;
use super::known_parameters::{names_of, refuse_unknown};
use super::span_scope::{ScopeParameters, outlines_of, owners_in_trace};

/// Answers `/api/v1/trace/{id}/profile-summary`: spans without samples are left out.
pub(crate) async fn profile_summary(
    Asker { core, tenant }: Asker,
    Path(id): Path<String>,
    Given(scope): Given<ScopeParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<ScopeParameters>()])?;
    let trace_id: TraceId =
        id.parse().map_err(|error: hotspan_model::ids::IdError| ApiError::invalid(error.to_string()))?;
    let snapshot = core.engine.snapshot();
    let spans = outlines_of(&core, &tenant, trace_id).await?;
    let Some((owners, time)) = owners_in_trace(&core, &tenant, &spans, None, scope.read()?).await? else {
        return Err(ApiError { status: StatusCode::NOT_FOUND, message: format!("there is no trace {trace_id}") });
    };
    // A trace is found wherever it is.
    let (facts, mut exactness) = core.engine.span_facts(&tenant, &snapshot, owners, (i64::MIN, i64::MAX)).await?;
    let mut sum = SpanFacts::default();
    let mut by_span = Map::new();
    for ((_, span), facts) in &facts {
        sum.join(facts);
        by_span.insert(span.to_string(), facts_json(facts));
    }
    // Samples may name spans that never came.
    let has_samples = |trace, span| facts.contains_key(&(trace, span));
    exactness.coverage = Coverage::new(CoverageOf::Spans, sum.time(), time);
    let (start, end) = extent(&spans).unwrap_or((i64::MIN, i64::MAX));
    let rejected = core.engine.lake().rejected().between(&tenant, start, end);
    exactness.dropped = rejected.spans.saturating_add(rejected.samples);
    let mut exactness = exactness_json(&exactness);
    exactness["spans"] = json!(spans.len());
    exactness["spans_with_samples"] =
        json!(spans.iter().filter(|span| has_samples(span.trace_id, span.span_id)).count());
    Ok(Json(json!({
        "trace_id": trace_id.to_string(),
        "spans": by_span,
        "total": facts_json(&sum),
        "exactness": exactness,
    })))
}

/// What profiles know of a span or of several, as JSON.
pub(super) fn facts_json(facts: &SpanFacts) -> Value {
    json!({
        "cpu_ns": facts.cpu,
        "wall_ns": facts.wall,
        "wait_ns": facts.waiting(),
        "lock_ns": facts.lock,
        "allocated_bytes": facts.allocated,
        "samples": facts.samples,
        "inherited": facts.inherited,
        "inferred": facts.inferred,
    })
}
