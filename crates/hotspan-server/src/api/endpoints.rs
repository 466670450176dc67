//! `/api/v1/endpoints`: what a request of each operation costs, and the functions behind it.

use axum::Json;
use hotspan_query::endpoint_costs::EndpointCost;
use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::exactness_json;
use super::known_parameters::{count_within, names_of, refuse_unknown};
use super::profile::type_or_cpu;
use super::services::RangeParameters;

#[derive(Debug, Deserialize)]
pub(crate) struct EndpointParameters {
    #[serde(rename = "type", alias = "profile_type")]
    profile_type: Option<String>,
    #[serde(alias = "app", alias = "service")]
    service_name: Option<String>,
    /// How many functions of each operation to name.
    functions: Option<usize>,
}

/// Functions of an operation where nothing is said, and at most.
const FUNCTIONS: usize = 5;
const MOST_FUNCTIONS: usize = 100;

/// Answers `/api/v1/endpoints`: the most expensive operations first.
pub(crate) async fn endpoints(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<EndpointParameters>,
    Given(range): Given<RangeParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<EndpointParameters>(), names_of::<RangeParameters>()])?;
    let range = range.range()?;
    let profile_type = type_or_cpu(parameters.profile_type.as_deref())?;
    let functions = count_within("functions", parameters.functions, FUNCTIONS, 0..=MOST_FUNCTIONS)?;
    let snapshot = core.engine.snapshot();
    let requests = core.engine.services(&tenant, range.0, range.1).await?;
    let costs = core.engine.endpoint_costs(&tenant, &snapshot, &profile_type, &requests, functions).await?;
    let seconds = (costs.range.1 - costs.range.0).max(1) as f64 / 1e9;
    let mut rows: Vec<_> = costs.endpoints.iter().collect();
    if let Some(service) = &parameters.service_name {
        rows.retain(|((owner, _), _)| owner.as_ref() == service);
    }
    rows.sort_by(|(a, left), (b, right)| right.value.cmp(&left.value).then_with(|| a.cmp(b)));
    let rows = rows.into_iter().map(|((service, operation), cost)| {
        let mut row = cost_json(cost, seconds);
        row["service"] = json!(service.as_ref());
        row["operation"] = json!(operation.as_ref());
        row
    });
    Ok(Json(json!({
        "endpoints": rows.collect::<Vec<_>>(),
        "type": profile_type.to_string(),
        "unit": profile_type.sample_unit,
        "start": costs.range.0,
        "end": costs.range.1,
        "is_cut": costs.range != range,
        "exactness": exactness_json(&costs.exactness),
    })))
}

fn cost_json(cost: &EndpointCost, seconds: f64) -> Value {
    let requests = cost.requests.max(cost.sampled_requests).max(1) as f64;
    let function = |(name, value): &(String, i64)| json!({ "function": name, "self": value, "self_per_request": *value as f64 / requests });
    json!({
        "requests": cost.requests,
        "sampled_requests": cost.sampled_requests,
        "value": cost.value,
        "per_request": cost.value as f64 / requests,
        "per_second": cost.value as f64 / seconds,
        "samples": cost.samples,
        "functions": cost.functions.iter().map(function).collect::<Vec<_>>(),
    })
}
