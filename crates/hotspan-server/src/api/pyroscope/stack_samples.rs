//! `GET /api/v1/profiles`: the samples of a trace or span, one by one.

use axum::Json;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_query::{FARTHEST_SAMPLE, FlameQuery, Matcher, SampleRow, Selector};
use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::selection::{span_ids, trace_ids};
use crate::api::ApiError;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::exactness_json;
use crate::api::known_parameters::{count_within, names_of, refuse_unknown};
use crate::api::short_types::settle_type;
use crate::time_text::parse_time;

/// Samples of one page where the asker does not say, and at most.
const PAGE: usize = 1000;
const LARGEST_PAGE: usize = 10_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SampleParameters {
    trace_id: Option<String>,
    span_id: Option<String>,
    #[serde(alias = "app", alias = "service")]
    service_name: Option<String>,
    #[serde(rename = "type", alias = "profile_type")]
    kind: Option<String>,
    #[serde(alias = "from", alias = "start")]
    start_time: Option<String>,
    #[serde(alias = "until", alias = "end")]
    end_time: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// Samples in order of time, a page at a time.
pub(super) async fn samples(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<SampleParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<SampleParameters>()])?;
    let ids = [("trace_id", &parameters.trace_id), ("span_id", &parameters.span_id)];
    if ids.iter().all(|(_, id)| id.is_none()) {
        return Err(ApiError::invalid("trace_id or span_id is missing"));
    }
    if let Some((name, _)) = ids.iter().find(|(_, id)| id.as_ref().is_some_and(String::is_empty)) {
        return Err(ApiError::invalid(format!("{name} is empty")));
    }
    let now = hotspan_lake::catalog::now_nanos();
    let time = |name: &str, text: &Option<String>, default: i64| match text {
        Some(text) => parse_time(text, now).map_err(|error| ApiError::invalid(format!("{name}: {error}"))),
        None => Ok(default),
    };
    let mut selector = Selector::default();
    if let Some(service) = &parameters.service_name {
        selector = selector.and(Matcher::equal(SERVICE_NAME, service.as_str()));
    }
    let mut query = FlameQuery {
        selector,
        from: time("start_time", &parameters.start_time, 0)?,
        until: time("end_time", &parameters.end_time, i64::MAX)?,
        spans: span_ids(parameters.span_id.as_slice())?,
        traces: trace_ids(parameters.trace_id.as_slice())?,
        ..FlameQuery::default()
    };
    if query.from >= query.until {
        return Err(ApiError::invalid("start_time must be before end_time"));
    }
    if let Some(kind) = &parameters.kind {
        settle_type(&core, &tenant, kind, &mut query).await?;
    }
    let offset = parameters.offset.unwrap_or(0).min(FARTHEST_SAMPLE);
    let limit = count_within("limit", parameters.limit, PAGE, 1..=LARGEST_PAGE)?;
    if offset + limit > FARTHEST_SAMPLE {
        return Err(ApiError::invalid(format!(
            "offset: pages end after {FARTHEST_SAMPLE} samples (limit: samples on pages); give a later start_time"
        )));
    }
    let page = core.engine.samples(&tenant, &query, offset, limit).await?;
    let end = offset + page.rows.len();
    let next = if end < page.total { json!(end) } else { Value::Null };
    let rows: Vec<Value> = page.rows.iter().map(sample_json).collect();
    Ok(Json(json!({
        "samples": rows,
        "total": page.total,
        "offset": offset,
        "next_offset": next,
        "exactness": exactness_json(&page.exactness),
    })))
}

fn sample_json(sample: &SampleRow) -> Value {
    let frame = |frame: &hotspan_query::SampleFrame| json!({ "function": frame.function, "file": frame.file, "line": frame.line });
    json!({
        "trace_id": sample.trace_id.map(|id| id.to_string()),
        "span_id": sample.span_id.map(|id| id.to_string()),
        // Nanoseconds do not fit into the numbers of JavaScript.
        "timestamp": sample.time.to_string(),
        "value": sample.value,
        "profile_type": sample.labels.get(hotspan_model::labels::PROFILE_TYPE),
        "service_name": sample.labels.get(SERVICE_NAME),
        "thread_name": sample.thread_name,
        "profile_id": sample.profile_id.to_string(),
        "stack_trace": sample.frames.iter().map(frame).collect::<Vec<_>>(),
    })
}
