//! `/api/v1/query`: what runbooks ask with curl, `order-service.cpu{span_id="…"}` and `topk(10, …)`.

use axum::Json;
use axum::response::Response;
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_formats::profile_query::top_query;
use hotspan_formats::top_table::{top_functions, top_text};
use hotspan_formats::wrapped;
use hotspan_query::FlameQuery;
use http::{HeaderMap, Uri, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::render::ranged_query;
use crate::api::ApiError;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::with_exactness;
use crate::api::known_parameters::{names_of, refuse_other, refuse_unknown};
use crate::api::no_samples::no_samples;
use crate::api::profile::{AskedFlame, TextParameters, flame_response};
use crate::api::short_types::settle_query;
use crate::api::snapshot_sums::{snapshots_summed, snapshots_text, told_exactness};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QueryParameters {
    query: Option<String>,
    #[serde(alias = "start", alias = "start_time")]
    from: Option<String>,
    #[serde(alias = "to", alias = "end", alias = "end_time")]
    until: Option<String>,
    #[serde(alias = "maxNodes", alias = "max-nodes")]
    max_nodes: Option<i64>,
    format: Option<String>,
}

/// A flame graph whose names are ordered by self value, or the top functions.
pub(super) async fn query(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<QueryParameters>,
    Given(drawing): Given<TextParameters>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    refuse_unknown(&uri, &[names_of::<QueryParameters>(), names_of::<TextParameters>()])?;
    let text = parameters.query.as_deref().ok_or_else(|| ApiError::invalid("query is missing"))?;
    let (text, top) = top_query(text)?;
    let mut query = ranged_query(text, &parameters.from, &parameters.until, parameters.max_nodes)?;
    settle_query(&core, &tenant, text, &mut query).await?;
    // Sums by function need every path: one that is called from everywhere may have small paths alone.
    let whole = FlameQuery { max_nodes: 0, ..query.clone() };
    if let Some(count) = top {
        let format = parameters.format.as_deref().filter(|format| !format.is_empty()).unwrap_or("json");
        refuse_other("format", format, &["json", "text"])
            .map_err(|error| ApiError { message: format!("{} for topk(…)", error.message), ..error })?;
        let answer = core.engine.flame(&tenant, &whole).await?;
        let summed = snapshots_summed(&core, &tenant, &whole).await?;
        if format == "text" {
            let mut table = match answer.exactness.samples {
                0 => no_samples(&core, &tenant, &whole).await?,
                _ => top_text(&answer.tree, &whole.profile_type.sample_unit, count, drawing.width()),
            };
            if let Some(profiles) = summed {
                let note = snapshots_text(profiles, answer.tree.total(), &whole.profile_type.sample_unit);
                table.push_str(&wrapped(&note, 0, drawing.width()));
            }
            let table = ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], table);
            return Ok(with_exactness(table, &answer.exactness));
        }
        let total = answer.tree.total();
        let row = |row: &hotspan_formats::top_table::TopRow| {
            let share = if total == 0 { 0.0 } else { row.self_value as f64 / total as f64 };
            json!({ "name": row.name, "self": row.self_value, "total": row.total, "share": share, "place": row.place })
        };
        let functions: Vec<Value> = top_functions(&answer.tree).iter().take(count).map(row).collect();
        let unit = whole.profile_type.sample_unit;
        let exactness = told_exactness(&answer.exactness, summed);
        let table = json!({ "functions": functions, "total": total, "unit": unit, "exactness": exactness });
        return Ok(with_exactness(Json(table), &answer.exactness));
    }
    match parameters.format.as_deref() {
        None | Some("" | "json") => {
            let whole = core.engine.flame(&tenant, &whole).await?;
            let answer = whole.pruned(query.max_nodes);
            let summed = snapshots_summed(&core, &tenant, &query).await?;
            let mut profile = FlamebearerProfile::single(&answer.tree, &query.profile_type);
            // Scripts print the first names as the top functions.
            profile.flamebearer = profile.flamebearer.with_names_by_self(&whole.tree, query.max_nodes);
            let mut json = serde_json::to_value(profile).unwrap_or_default();
            json["exactness"] = told_exactness(&answer.exactness, summed);
            Ok(with_exactness(Json(json), &answer.exactness))
        }
        Some(format) => {
            let asked =
                AskedFlame { query: &query, format, text: &drawing, uri: &uri, headers: &headers, if_empty: None };
            flame_response(&core, &tenant, &asked).await
        }
    }
}
