//! `/api/v1/functions/spans`: which operations and spans spend how much in a function.

use axum::Json;
use hotspan_model::TraceId;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_query::function_spans::{FunctionOperation, FunctionSpan};
use hotspan_query::{Matcher, Selector};
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
pub(crate) struct FunctionParameters {
    /// The function's whole name.
    function: Option<String>,
    /// Or a regular expression for it.
    regex: Option<String>,
    #[serde(rename = "type", alias = "profile_type")]
    profile_type: Option<String>,
    #[serde(alias = "app", alias = "service")]
    service_name: Option<String>,
    limit: Option<usize>,
}

/// Spans given where nothing else is said, and at most.
const SPANS: usize = 50;
const MOST_SPANS: usize = 10_000;

/// Answers `/api/v1/functions/spans`.
pub(crate) async fn spans(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<FunctionParameters>,
    Given(range): Given<RangeParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<FunctionParameters>(), names_of::<RangeParameters>()])?;
    let range = range.range()?;
    let profile_type = type_or_cpu(parameters.profile_type.as_deref())?;
    let is_wanted: Box<dyn Fn(&str) -> bool + Send + Sync> = match (&parameters.function, &parameters.regex) {
        (Some(function), None) if !function.is_empty() => {
            let function = function.clone();
            Box::new(move |name: &str| name == function)
        }
        (None, Some(pattern)) => {
            let pattern =
                hotspan_traceql::Matcher::new(pattern).map_err(|error| ApiError::invalid(format!("regex: {error}")))?;
            Box::new(move |name: &str| pattern.is_match(name))
        }
        _ => return Err(ApiError::invalid("name a function with function=…, or several with regex=…")),
    };
    let mut selector = Selector::default();
    if let Some(service) = &parameters.service_name {
        selector = selector.and(Matcher::equal(SERVICE_NAME, service.as_str()));
    }
    let limit = count_within("limit", parameters.limit, SPANS, 0..=MOST_SPANS)?;
    let snapshot = core.engine.snapshot();
    let found =
        core.engine.function_spans(&tenant, &snapshot, &*is_wanted, &profile_type, &selector, range, limit).await?;
    Ok(Json(json!({
        "function": parameters.function.or(parameters.regex),
        "functions": found.functions,
        "type": profile_type.to_string(),
        "unit": profile_type.sample_unit,
        "value": found.value,
        "unlinked_value": found.unlinked_value,
        "unknown_spans": found.unknown_spans,
        "unknown_value": found.unknown_value,
        "operations": found.operations.iter().map(operation_json).collect::<Vec<_>>(),
        "spans": found.spans.iter().map(span_json).collect::<Vec<_>>(),
        "span_count": found.span_count,
        "exactness": exactness_json(&found.exactness),
    })))
}

fn operation_json(operation: &FunctionOperation) -> Value {
    json!({
        "service": operation.service.as_ref(),
        "operation": operation.operation.as_ref(),
        "value": operation.value,
        "samples": operation.samples,
        "spans": operation.spans,
        "value_per_span": operation.value as f64 / operation.spans.max(1) as f64,
        "traces": operation.traces.iter().map(TraceId::to_string).collect::<Vec<_>>(),
    })
}

fn span_json(span: &FunctionSpan) -> Value {
    json!({
        "trace_id": span.outline.trace_id.to_string(),
        "span_id": span.outline.span_id.to_string(),
        "service": span.outline.service.as_ref(),
        "name": span.outline.name.as_ref(),
        // Nanoseconds since 1970 do not fit into the numbers of JavaScript.
        "start_ns": span.outline.start.to_string(),
        "duration_ns": span.outline.duration,
        "value": span.value,
        "samples": span.samples,
    })
}
