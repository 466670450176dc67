//! A cohort with its samples: what every answer is made of.

use std::sync::Arc;

use hotspan_formats::counted;
use hotspan_lake::Snapshot;
use hotspan_model::{Exactness, TenantId};
use hotspan_query::{Cohort, CohortScope, FlameQuery, MAX_COHORT_SPANS};
use serde_json::{Value, json};

use super::request::CohortQuestion;
use crate::api::QuestionError;
use crate::api::exactness::exactness_json;
use crate::app::Core;

/// A profile without times of its own may begin long before the spans that it holds samples of, and end after them.
pub(super) const REACH: i64 = 3600 * 1_000_000_000;

/// Which of the two searches of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The spans in question.
    Asked,
    /// Those that they are compared with.
    Baseline,
}

/// Spans, and the question about their samples.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) cohort: Cohort,
    pub(super) query: FlameQuery,
    scope: CohortScope,
}

impl Selected {
    /// Runs a search, and finds out whose samples count.
    pub(super) async fn find(
        core: &Core,
        tenant: &TenantId,
        snapshot: &Arc<Snapshot>,
        question: &CohortQuestion,
        side: Side,
    ) -> Result<Self, QuestionError> {
        let (program, range) = match (side, &question.baseline) {
            (Side::Baseline, Some(baseline)) => (baseline, question.baseline_range),
            _ => (&question.program, question.range),
        };
        let cohort = core.engine.cohort(tenant, snapshot, program, range, MAX_COHORT_SPANS).await?;
        let (scope, links) = (question.scope, question.links);
        let owners = core.engine.cohort_owners_with(tenant, snapshot, &cohort, scope, links).await?;
        let (from, until) = cohort.range();
        let query = FlameQuery {
            profile_type: question.profile_type.clone(),
            from: from.saturating_sub(REACH),
            until: until.saturating_add(REACH),
            owners: Some(owners),
            owners_time: Some(cohort.time()),
            max_nodes: question.max_nodes,
            ..FlameQuery::default()
        };
        Ok(Self { cohort, query, scope })
    }

    /// How many requests the values are of.
    pub(super) fn requests(&self) -> usize {
        self.cohort.spans.len()
    }

    /// What a person is told if no sample answers: how many spans there are, and whose samples there may be instead.
    pub(super) fn no_samples(&self, scope: CohortScope) -> String {
        let profile_type = &self.query.profile_type;
        let spans = counted(self.requests() as u64, "span");
        let none_has =
            if self.requests() == 1 { "the span has no".to_owned() } else { format!("none of the {spans} has") };
        match (self.requests(), scope) {
            (0, _) => "no span matches in this time\n".to_owned(),
            (_, CohortScope::Span) => format!(
                "{none_has} samples of {profile_type} of its own\n\
                 those of the spans they called count with scope subtree, the whole traces' with scope trace\n"
            ),
            _ => format!("no samples of {profile_type} belong to the {spans} in this scope\n"),
        }
    }

    /// What an answer about this cohort rests on.
    pub(super) fn exactness(&self, exactness: &Exactness) -> Value {
        // Neither the samples nor the spans that were rejected are in it.
        let dropped = exactness.dropped.saturating_add(self.cohort.exactness.dropped);
        let mut json = exactness_json(&Exactness { dropped, ..*exactness });
        json["selected_spans"] = json!(self.cohort.matched);
        json["spans"] = json!(self.cohort.spans.len());
        // Beyond the spans themselves, those below and beside them have samples, too.
        let with_samples =
            if self.scope == CohortScope::Span { "spans_with_samples" } else { "scope_spans_with_samples" };
        json[with_samples] = json!(exactness.spans);
        if exactness.samples > 0 {
            json["exact_share"] = json!(exactness.linked_samples as f64 / exactness.samples as f64);
        }
        json["is_cut"] = json!(self.cohort.is_cut());
        json
    }
}
