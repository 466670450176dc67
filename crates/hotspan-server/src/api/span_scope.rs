//! Whose samples count for spans that are named by id: the same choices as for cohorts.

use hotspan_model::{SpanId, TenantId, TraceId};
use hotspan_query::outline::time_of_traces;
use hotspan_query::{Cohort, CohortScope, LinkPolicy, SampleOwners, SpanOutline};
use serde::Deserialize;

use super::ApiError;
use crate::app::Core;

/// The choices, as parameters of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ScopeParameters {
    scope: Option<String>,
    links: Option<String>,
}

impl ScopeParameters {
    /// Whose samples, and how sure their links must be.
    pub(crate) fn read(&self) -> Result<(CohortScope, LinkPolicy), ApiError> {
        let scope = self.scope.as_deref().map_or(Ok(CohortScope::default()), str::parse)?;
        let links = self.links.as_deref().map_or(Ok(LinkPolicy::default()), str::parse)?;
        Ok((scope, links))
    }
}

/// Whose samples count for one span of a trace, or for each of them, and how long it or they ran; none if it is not stored.
pub(crate) async fn owners_in_trace(
    core: &Core,
    tenant: &TenantId,
    spans: &[SpanOutline],
    only: Option<SpanId>,
    (scope, links): (CohortScope, LinkPolicy),
) -> Result<Option<(SampleOwners, i64)>, ApiError> {
    let cohort = Cohort::of(spans.iter().filter(|span| only.is_none_or(|only| span.span_id == only)));
    if cohort.spans.is_empty() {
        return Ok(None);
    }
    let time = if only.is_some() { cohort.time() } else { time_of_traces(spans) };
    let snapshot = core.engine.snapshot();
    let owners = core.engine.cohort_owners_with(tenant, &snapshot, &cohort, scope, links).await?;
    Ok(Some((owners, time)))
}

/// The spans of a trace, wherever it is.
pub(crate) async fn outlines_of(
    core: &Core,
    tenant: &TenantId,
    trace_id: TraceId,
) -> Result<Vec<SpanOutline>, ApiError> {
    let snapshot = core.engine.snapshot();
    Ok(core.engine.outlines(tenant, &snapshot, &[trace_id], (i64::MIN, i64::MAX)).await?.answer)
}
