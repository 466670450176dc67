//! Where the time of a cohort goes, and the merged tree of its spans and their code.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hashbrown::HashMap;
use hotspan_analysis::Analysis;
use hotspan_analysis::gather::{ExplainQuery, requests_of};
use hotspan_analysis::ledger_summary::{Reach, ledger_summary};
use hotspan_analysis::merged_tree::{kinds_of_names, merged_tree, short_merged_tree};
use hotspan_formats::counted;
use hotspan_formats::flamebearer::Flamebearer;
use hotspan_formats::text_flame::text_flame;
use hotspan_model::{ProfileType, TenantId};
use hotspan_query::CohortScope;
use serde_json::{Value, json};

use super::request::CohortQuestion;
use crate::api::QuestionError;
use crate::api::explain::exactness;
use crate::api::flame_json::FlameJson;
use crate::api::known_parameters::refuse_other;
use crate::app::Core;

/// The parts of a request's time, which add up to it: with children as parts of their own for the scope of the span,
/// and through all children for the others.
pub(super) async fn ledger(
    core: &Core,
    tenant: &TenantId,
    question: &CohortQuestion,
) -> Result<Response, QuestionError> {
    let format = question.format.as_deref().unwrap_or("json");
    refuse_other("format", format, &["json", "text"])?;
    let analysis = requests(core, tenant, question).await?;
    let reach = if question.scope == CohortScope::Span { Reach::OwnSpan } else { Reach::Through };
    let summary = ledger_summary(&analysis.vocabulary, &analysis.ledger, reach);
    let mut parts: Vec<(&str, Option<&String>, i64)> =
        summary.parts.iter().map(|part| (part.kind, part.label.as_ref(), (part.ms * 1e6).round() as i64)).collect();
    let duration = (summary.duration_ms * 1e6).round() as i64;
    // What rounding leaves goes to the largest part, so that the sum is exact.
    let left = duration - parts.iter().map(|(_, _, ns)| ns).sum::<i64>();
    if let Some(largest) = parts.iter_mut().max_by_key(|(_, _, ns)| *ns) {
        largest.2 += left;
    }
    if format == "text" {
        return Ok(as_text(&analysis, duration, &parts).into_response());
    }
    let parts: Vec<Value> =
        parts.into_iter().map(|(kind, label, ns)| json!({ "kind": kind, "label": label, "ns": ns })).collect();
    let explanation = &analysis.explanation;
    Ok(Json(json!({
        "spans": explanation.slow.spans,
        "matched": explanation.coverage.matched.map(|matched| matched.slow),
        "duration_ns": duration,
        "parts": parts,
        "critical_path": explanation.critical_path,
        "coverage": explanation.coverage,
        "exactness": exactness(&analysis),
    }))
    .into_response())
}

fn as_text(analysis: &Analysis, duration: i64, parts: &[(&str, Option<&String>, i64)]) -> String {
    let requests = counted(analysis.explanation.slow.spans as u64, "request");
    let mut text = format!("{requests}, {:.3} ms on average\n", duration as f64 / 1e6);
    for (kind, label, ns) in parts {
        let share = *ns as f64 / duration.max(1) as f64 * 100.0;
        let label = label.map_or(String::new(), |label| format!("  {label}"));
        text.push_str(&format!("{kind:<12} {:>12.3} ms {share:>5.1} %{label}\n", *ns as f64 / 1e6));
    }
    text
}

/// One icicle: spans above, their code and waits below.
pub(super) async fn merged(
    core: &Core,
    tenant: &TenantId,
    question: &CohortQuestion,
) -> Result<Response, QuestionError> {
    let analysis = requests(core, tenant, question).await?;
    if question.format.as_deref() == Some("merged_text") {
        // A terminal has few lines: what frameworks call on the way to own code would fill them.
        let (tree, pruned) = short_merged_tree(&analysis.vocabulary, &analysis.ledger, 0).pruned(question.max_nodes);
        let options = question.drawing.options("nanoseconds", pruned.nodes);
        return Ok(text_flame(&tree, &options).into_response());
    }
    let whole = merged_tree(&analysis.vocabulary, &analysis.ledger, 0);
    let (tree, pruned) = whole.pruned(question.max_nodes);
    let time = ProfileType::from_parts(["wall", "wall", "nanoseconds", "wall", "nanoseconds"]);
    let mut graph = FlameJson::single(&tree, &time);
    write_kinds(&mut graph.profile.flamebearer, &kinds_of_names(&analysis.vocabulary));
    let mut evidence = exactness(&analysis);
    evidence["pruned_nodes"] = json!(pruned.nodes);
    evidence["pruned_value"] = json!(pruned.value);
    Ok(graph.telling("exactness", evidence).into_response())
}

/// Tells spans and waits from functions, so that they can be drawn in another way.
fn write_kinds(graph: &mut Flamebearer, kinds: &HashMap<String, &'static str>) {
    for (name, facts) in graph.names.iter().zip(&mut graph.frames) {
        if let Some(kind) = kinds.get(name) {
            facts.kind = kind;
        }
    }
}

async fn requests(core: &Core, tenant: &TenantId, question: &CohortQuestion) -> Result<Analysis, QuestionError> {
    let query = ExplainQuery {
        target: question.text.clone(),
        baseline: None,
        range: Some(question.range),
        default_range: question.range,
        measures: Vec::new(),
        own_code: Vec::new(),
        links: question.links,
    };
    Ok(requests_of(&core.engine, tenant, &query).await?)
}
