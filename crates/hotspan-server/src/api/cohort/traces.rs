//! What the whole traces of a cohort cost: time on the CPU, time waiting and samples of each.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hashbrown::HashMap;
use hotspan_model::{Coverage, CoverageOf, TenantId, TraceId};
use hotspan_query::span_facts::SpanFacts;
use hotspan_query::{CohortScope, MAX_COHORT_SPANS};
use serde_json::{Map, json};

use super::request::CohortQuestion;
use super::selected::REACH;
use crate::api::QuestionError;
use crate::api::exactness::exactness_json;
use crate::api::known_parameters::refuse_other;
use crate::api::trace_summary::facts_json;
use crate::app::Core;

/// Facts by trace; traces without samples are left out.
pub(super) async fn traces(
    core: &Core,
    tenant: &TenantId,
    question: &CohortQuestion,
) -> Result<Response, QuestionError> {
    refuse_other("format", question.format.as_deref().unwrap_or("json"), &["json"])?;
    let snapshot = core.engine.snapshot();
    let cohort = core.engine.cohort(tenant, &snapshot, &question.program, question.range, MAX_COHORT_SPANS).await?;
    let owners = core.engine.cohort_owners_with(tenant, &snapshot, &cohort, CohortScope::Trace, question.links).await?;
    let (from, until) = cohort.range();
    let range = (from.saturating_sub(REACH), until.saturating_add(REACH));
    let (facts, mut exactness) = core.engine.span_facts(tenant, &snapshot, owners, range).await?;
    let mut by_trace: HashMap<TraceId, SpanFacts> = HashMap::new();
    for ((trace, _), facts) in &facts {
        by_trace.entry(*trace).or_default().join(facts);
    }
    let mut sum = SpanFacts::default();
    by_trace.values().for_each(|facts| sum.join(facts));
    exactness.coverage = Coverage::new(CoverageOf::Spans, sum.time(), cohort.time());
    exactness.dropped = exactness.dropped.saturating_add(cohort.exactness.dropped);
    let mut evidence = exactness_json(&exactness);
    evidence["selected_spans"] = json!(cohort.matched);
    evidence["spans"] = json!(cohort.spans.len());
    evidence["is_cut"] = json!(cohort.is_cut());
    let traces: Map<_, _> = by_trace.iter().map(|(trace, facts)| (trace.to_string(), facts_json(facts))).collect();
    Ok(Json(json!({ "traces": traces, "exactness": evidence })).into_response())
}
