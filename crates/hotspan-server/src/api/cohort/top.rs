//! The heaviest functions of a cohort.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hashbrown::HashMap;
use hotspan_formats::top_table::{top_functions, top_text};
use hotspan_model::{FlameTree, TenantId};
use hotspan_query::FlameQuery;
use serde_json::json;

use super::request::CohortQuestion;
use super::selected::{Selected, Side};
use crate::api::QuestionError;
use crate::app::Core;

/// Functions with their own and their total values, of all requests and of one.
pub(super) async fn top(core: &Core, tenant: &TenantId, question: &CohortQuestion) -> Result<Response, QuestionError> {
    let snapshot = core.engine.snapshot();
    let selected = Selected::find(core, tenant, &snapshot, question, Side::Asked).await?;
    // Every function counts, however small.
    let query = FlameQuery { max_nodes: 0, ..selected.query.clone() };
    let answer = core.engine.flame(tenant, &query).await?;
    let tree = &answer.tree;
    match question.format.as_deref() {
        None | Some("json") => {}
        Some("text" | "table") if answer.exactness.samples == 0 => {
            return Ok(selected.no_samples(question.scope).into_response());
        }
        Some("text" | "table") => {
            let unit = &question.profile_type.sample_unit;
            return Ok(top_text(tree, unit, question.limit, question.drawing.width()).into_response());
        }
        Some(other) => return Err(QuestionError::invalid(format!("format {other:?} is not known; use json or text"))),
    }
    let rows = top_functions(tree);
    let places = places(tree);
    let requests = selected.requests().max(1) as f64;
    let share = |value: i64| if tree.total() == 0 { 0.0 } else { value as f64 / tree.total() as f64 };
    let functions: Vec<_> = rows
        .iter()
        .take(question.limit)
        .map(|row| {
            let (file, line) = places.get(row.name.as_str()).copied().unwrap_or(("", 0));
            json!({
                "function": row.name,
                "file": file,
                "line": line,
                "self": row.self_value,
                "total": row.total,
                "self_share": share(row.self_value),
                "total_share": share(row.total),
                "self_per_request": row.self_value as f64 / requests,
                "total_per_request": row.total as f64 / requests,
            })
        })
        .collect();
    let body = json!({
        "functions": functions,
        "left_out": rows.len().saturating_sub(question.limit),
        "total": tree.total(),
        "type": question.profile_type.to_string(),
        "unit": question.profile_type.sample_unit,
        "exactness": selected.exactness(&answer.exactness),
    });
    Ok(Json(body).into_response())
}

/// The file and line of each function that carry the most.
fn places(tree: &FlameTree) -> HashMap<&str, (&str, u32)> {
    let mut heaviest: HashMap<&str, (i64, &str, u32)> = HashMap::new();
    for node in tree.nodes().iter().skip(1).filter(|node| node.file != 0) {
        let place = (node.self_value.max(0), tree.name(node.file), node.line);
        let best = heaviest.entry(tree.name(node.name)).or_insert(place);
        *best = (*best).max(place);
    }
    heaviest.into_iter().map(|(name, (_, file, line))| (name, (file, line))).collect()
}
