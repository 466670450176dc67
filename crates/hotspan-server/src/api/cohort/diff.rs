//! A cohort's flame graph over another's, by request: a slow cohort has fewer requests, not less code.

use axum::response::{IntoResponse, Response};
use hotspan_formats::change_table::{changes_text, function_changes};
use hotspan_formats::diff_tree::DiffTree;
use hotspan_formats::measure::Measure;
use hotspan_formats::{count_text, counted};
use hotspan_model::{FlameTree, TenantId};
use hotspan_query::FlameQuery;
use serde_json::{Value, json};

use super::request::CohortQuestion;
use super::selected::{Selected, Side};
use crate::api::QuestionError;
use crate::api::exactness::exactness_of_both;
use crate::api::flame_json::FlameJson;
use crate::app::Core;

/// The comparison, the baseline on the left. Values are of one request; where they are counts, of a thousand, since
/// a request may have less than one.
pub(super) async fn diff(core: &Core, tenant: &TenantId, question: &CohortQuestion) -> Result<Response, QuestionError> {
    let snapshot = core.engine.snapshot();
    let left = Selected::find(core, tenant, &snapshot, question, Side::Baseline).await?;
    let right = Selected::find(core, tenant, &snapshot, question, Side::Asked).await?;
    let unpruned = |selected: &Selected| FlameQuery { max_nodes: 0, ..selected.query.clone() };
    let mut left_answer = core.engine.flame(tenant, &unpruned(&left)).await?;
    let mut right_answer = core.engine.flame(tenant, &unpruned(&right)).await?;
    let unit = question.profile_type.sample_unit.as_str();
    let per = if question.profile_type.is_time() || unit == "bytes" { 1.0 } else { 1000.0 };
    let units = |selected: &Selected| selected.requests().max(1) as f64 / per;
    let measure = Measure { left: units(&left), right: units(&right), noun: "" };
    let tree = DiffTree::new(&left_answer.tree, &right_answer.tree).measured_by(measure);
    match question.format.as_deref() {
        None | Some("json" | "flamebearer") => {}
        Some("text" | "table") => {
            let (left, right) = (count_text(left.requests() as u64), counted(right.requests() as u64, "span"));
            let mut text = format!("per {}, {right} against {left}\n\n", requests_text(per));
            let changes = function_changes(&tree);
            text.push_str(&changes_text(&changes, unit, question.limit, question.drawing.width(), false));
            return Ok(text.into_response());
        }
        Some(other) => return Err(QuestionError::invalid(format!("format {other:?} is not known; use json or text"))),
    }
    let side = |selected: &Selected, tree: &FlameTree| -> Value {
        json!({
            "spans": selected.requests(),
            "value": tree.total(),
            "per_request": tree.total() as f64 / selected.requests().max(1) as f64,
        })
    };
    let tree = tree.pruned(question.max_nodes);
    exactness_of_both(&mut left_answer.exactness, &mut right_answer.exactness, &tree.folded());
    let bars = tree.scaled((1.0 / measure.left, 1.0 / measure.right));
    let graph = FlameJson::double(&bars, [&right_answer.tree, &left_answer.tree], &question.profile_type)
        .telling("per_requests", per)
        .telling("left", side(&left, &left_answer.tree))
        .telling("right", side(&right, &right_answer.tree))
        .telling("exactness", right.exactness(&right_answer.exactness))
        .telling("baseline_exactness", left.exactness(&left_answer.exactness));
    Ok(graph.into_response())
}

fn requests_text(per: f64) -> String {
    if per == 1.0 { "request".to_owned() } else { format!("{per} requests") }
}
