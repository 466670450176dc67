//! A long trace in the order of a waterfall: `/api/v1/trace/{id}/spans` gives a window of it, `/outline` all of it by
//! columns, `/details` attributes, events and links of the spans that are looked at.

use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::JsonRejection;
use hashbrown::{HashMap, HashSet};
use hotspan_model::ids::IdError;
use hotspan_model::{SpanId, StatusCode as SpanStatus, TraceId};
use hotspan_query::{PlacedSpan, Waterfall};
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::exactness_json;
use super::known_parameters::{count_within, names_of, refuse_unknown};
use super::tempo::otlp_json;

/// Which spans to show.
#[derive(Debug, Deserialize)]
pub(crate) struct WindowParameters {
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
    /// Spans deeper than this are folded away; their parents tell how many there are.
    max_depth: Option<u32>,
}

const DEFAULT_LIMIT: usize = 1000;
const MAX_LIMIT: usize = 20_000;
/// Spans whose details are told at once: more than any screen shows.
const MAX_DETAILS: usize = 2000;

/// Answers `/api/v1/trace/{id}/spans`.
pub(crate) async fn trace_window(
    asker: Asker,
    Path(id): Path<String>,
    Given(parameters): Given<WindowParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<WindowParameters>()])?;
    let limit = count_within("limit", parameters.limit, DEFAULT_LIMIT, 0..=MAX_LIMIT)?;
    let (trace_id, waterfall) = waterfall_of(&asker, &id).await?;
    let (placed, (start, end)) = (&waterfall.spans, waterfall.extent().unwrap_or_default());
    let errors = placed.iter().filter(|placed| placed.span.status == SpanStatus::Error).count();
    let shown = placed.iter().filter(|placed| parameters.max_depth.is_none_or(|most| placed.depth <= most));
    let total = shown.clone().count();
    let window: Vec<Value> = shown.skip(parameters.offset).take(limit).map(|placed| span_json(placed, start)).collect();
    Ok(Json(json!({
        "trace_id": trace_id.to_string(),
        "start_ns": start.to_string(),
        "duration_ns": end - start,
        "total_spans": placed.len(),
        "error_count": errors,
        "rows": total,
        "offset": parameters.offset,
        "spans": window,
        "exactness": exactness_json(&waterfall.exactness),
    })))
}

/// Answers `/api/v1/trace/{id}/outline`: every span in a few bytes, in the order of a waterfall.
pub(crate) async fn trace_outline(asker: Asker, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let (trace_id, waterfall) = waterfall_of(&asker, &id).await?;
    let (placed, (start, end)) = (&waterfall.spans, waterfall.extent().unwrap_or_default());
    let mut services = Names::default();
    let mut names = Names::default();
    let service_of: Vec<u32> = placed.iter().map(|placed| services.number_of(&placed.span.service)).collect();
    let name_of: Vec<u32> = placed.iter().map(|placed| names.number_of(&placed.span.name)).collect();
    let is_failed = |(at, placed): (usize, &PlacedSpan)| (placed.span.status == SpanStatus::Error).then_some(at);
    Ok(Json(json!({
        "trace_id": trace_id.to_string(),
        "start_ns": start.to_string(),
        "duration_ns": end - start,
        "total_spans": placed.len(),
        "services": services.list,
        "names": names.list,
        // Sixteen characters each.
        "span_ids": placed.iter().map(|placed| placed.span.span_id.to_string()).collect::<String>(),
        "service": service_of,
        "name": name_of,
        "start": placed.iter().map(|placed| placed.span.start - start).collect::<Vec<_>>(),
        "duration": placed.iter().map(|placed| placed.span.duration.max(0)).collect::<Vec<_>>(),
        "depth": placed.iter().map(|placed| placed.depth).collect::<Vec<_>>(),
        "failed": placed.iter().enumerate().filter_map(is_failed).collect::<Vec<_>>(),
        "exactness": exactness_json(&waterfall.exactness),
    })))
}

/// Distinct texts, each with a number.
#[derive(Debug, Default)]
struct Names {
    list: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Names {
    fn number_of(&mut self, name: &Arc<str>) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(Arc::clone(name));
        self.numbers.insert(Arc::clone(name), number);
        number
    }
}

/// Which spans to tell everything about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DetailsBody {
    spans: Vec<String>,
}

/// Answers `/api/v1/trace/{id}/details`, in the form of `/api/v2/traces/{id}`.
pub(crate) async fn trace_details(
    Asker { core, tenant }: Asker,
    Path(id): Path<String>,
    body: Result<Json<DetailsBody>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let trace_id = parse_trace_id(&id)?;
    let Json(body) = body.map_err(|error| ApiError::invalid(error.body_text()))?;
    if body.spans.len() > MAX_DETAILS {
        let asked = body.spans.len();
        return Err(ApiError::invalid(format!("spans: {asked} are more than {MAX_DETAILS}, the most at once")));
    }
    let parse = |text: &String| text.parse().map_err(|error| ApiError::invalid(format!("spans: {text:?}: {error}")));
    let wanted: HashSet<SpanId> = body.spans.iter().map(parse).collect::<Result<_, ApiError>>()?;
    let found = core.engine.spans_of_trace(&tenant, trace_id, &wanted).await?;
    let exactness = exactness_json(&found.exactness);
    Ok(Json(json!({ "trace": { "resourceSpans": otlp_json(&found.spans) }, "exactness": exactness })))
}

fn parse_trace_id(text: &str) -> Result<TraceId, ApiError> {
    text.parse().map_err(|error: IdError| ApiError::invalid(error.to_string()))
}

/// All spans of a trace in order, or that there are none.
async fn waterfall_of(Asker { core, tenant }: &Asker, id: &str) -> Result<(TraceId, Waterfall), ApiError> {
    let trace_id = parse_trace_id(id)?;
    let waterfall = core.engine.waterfall(tenant, trace_id).await?;
    if waterfall.spans.is_empty() {
        return Err(ApiError { status: StatusCode::NOT_FOUND, message: format!("there is no trace {trace_id}") });
    }
    Ok((trace_id, waterfall))
}

fn span_json(placed: &PlacedSpan, trace_start: i64) -> Value {
    let span = &placed.span;
    json!({
        "span_id": span.span_id.to_string(),
        "parent_id": span.parent_id.map(|parent| parent.to_string()),
        "service": &*span.service,
        "name": &*span.name,
        "kind": span.kind.number(),
        "failed": span.status == SpanStatus::Error,
        // Since the trace began: numbers that a browser can hold exactly.
        "start_ns": span.start - trace_start,
        "duration_ns": span.duration,
        "depth": placed.depth,
        "descendants": placed.descendants,
    })
}
