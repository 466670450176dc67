//! From the words of a request to a question: types, selectors, ids and times, each checked once, here.

use hotspan_formats::profile_query::{ProfileQuery, SampleIds};
use hotspan_formats::span_identity::{parse_span_id, parse_trace_id};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::{ProfileId, ProfileType, SpanId, TraceId};
use hotspan_query::FlameQuery;

use crate::api::ApiError;

/// Nodes of a flame graph where the asker does not say.
pub(super) const DEFAULT_NODES: usize = 8192;
const MOST_NODES: i64 = 1 << 20;
const HOUR: i64 = 3600 * 1_000_000_000;

/// A range of milliseconds, both ends included, in nanoseconds with the end excluded. Without either, the last hour.
pub(super) fn time_range(start: i64, end: i64) -> Result<(i64, i64), ApiError> {
    let nanos = |millis: i64| millis.saturating_mul(1_000_000);
    if start == 0 && end == 0 {
        let now = now_nanos();
        // What was just pushed carries the sender's clock, which may be a little ahead.
        return Ok((now.saturating_sub(HOUR), now.saturating_add(60 * 1_000_000_000)));
    }
    if start > end {
        return Err(ApiError::invalid(format!("start ({start}) must not be after end ({end})")));
    }
    Ok((nanos(start), nanos(end.saturating_add(1))))
}

/// How many nodes to keep, for every address that takes a number of them.
pub(in crate::api) fn max_nodes(asked: Option<i64>) -> Result<usize, ApiError> {
    match asked {
        None | Some(0) => Ok(DEFAULT_NODES),
        Some(nodes) if (1..=MOST_NODES).contains(&nodes) => Ok(nodes as usize),
        Some(nodes) => {
            Err(ApiError::invalid(format!("max_nodes is {nodes}; it may be 1 to {MOST_NODES}, or 0 for the default")))
        }
    }
}

/// A five-part id or a short name.
pub(super) fn profile_type(text: &str) -> Result<ProfileType, ApiError> {
    text.parse().map_err(|error: hotspan_model::profile_type::ProfileTypeError| ApiError::invalid(error.to_string()))
}

/// Span ids as people and scripts write them.
pub(super) fn span_ids(texts: &[String]) -> Result<Vec<SpanId>, ApiError> {
    let id = |text: &String| {
        parse_span_id(text).ok_or_else(|| ApiError::invalid(format!("span id {text:?} is neither hex nor base64")))
    };
    // A dashboard's variable that is not set comes as an empty text.
    texts.iter().filter(|text| !text.is_empty()).map(id).collect()
}

/// Trace ids as people and scripts write them.
pub(super) fn trace_ids(texts: &[String]) -> Result<Vec<TraceId>, ApiError> {
    let id = |text: &String| {
        parse_trace_id(text).ok_or_else(|| ApiError::invalid(format!("trace id {text:?} is neither hex nor base64")))
    };
    texts.iter().filter(|text| !text.is_empty()).map(id).collect()
}

/// Profile ids: 32 hexadecimal digits, with or without the dashes of a UUID.
pub(super) fn profile_ids(texts: &[String]) -> Result<Vec<ProfileId>, ApiError> {
    let id = |text: &String| {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        digits.parse::<ProfileId>().map_err(|error| ApiError::invalid(error.to_string()))
    };
    texts.iter().filter(|text| !text.is_empty()).map(id).collect()
}

/// Takes ids out of the selector of a question and makes them what they are: `{span_id="…"}` never is a label.
pub(in crate::api) fn take_ids(query: &mut FlameQuery) -> Result<(), ApiError> {
    let ids = SampleIds::take_from(&mut query.selector)?;
    query.spans.extend(ids.spans);
    query.traces.extend(ids.traces);
    Ok(())
}

/// The question that `<type>{matchers}` asks.
pub(super) fn written_query(text: &str) -> Result<FlameQuery, ApiError> {
    let ProfileQuery { profile_type, any_period, selector, ids: SampleIds { spans, traces } } =
        ProfileQuery::parse(text)?;
    Ok(FlameQuery { profile_type, any_period, selector, spans, traces, ..FlameQuery::default() })
}
