//! `/pyroscope/render` and its neighbours: the older GET endpoints that dashboards and scripts still use.

use axum::Json;
use axum::response::Response;
use hotspan_formats::dot;
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_lake::catalog::now_nanos;
use hotspan_query::{FlameQuery, Selector, StepValue, Timeline, TimelineQuery};
use http::{HeaderValue, header};
use serde::Deserialize;
use std::collections::BTreeMap;

use super::merge::{diff_tree, dot_functions};
use super::selection::{max_nodes, written_query};
use super::timeline_bars::BarAxis;
use crate::api::ApiError;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::with_exactness;
use crate::api::short_types::settle_query;
use crate::time_text::parse_time;

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;
/// Time looked at when none is given.
const DEFAULT_RANGE: i64 = 3600 * SECOND;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RenderParameters {
    query: Option<String>,
    from: Option<String>,
    until: Option<String>,
    #[serde(alias = "maxNodes", rename = "max-nodes")]
    max_nodes: Option<i64>,
    #[serde(rename = "groupBy")]
    group_by: Option<String>,
    aggregation: Option<String>,
    format: Option<String>,
}

/// The flame graph of a query, with its values over time.
pub(super) async fn render(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<RenderParameters>,
) -> Result<Response, ApiError> {
    let text = parameters.query.as_deref().ok_or_else(|| ApiError::invalid("query is missing"))?;
    let mut query = query_of_pyroscope(text, &parameters.from, &parameters.until, parameters.max_nodes)?;
    settle_query(&core, &tenant, text, &mut query).await?;
    if parameters.format.as_deref() == Some("dot") {
        // Functions are summed over all paths.
        let answer = core.engine.flame(&tenant, &FlameQuery { max_nodes: 0, ..query.clone() }).await?;
        let functions = dot_functions(parameters.max_nodes)?;
        let text = dot::encode(&answer.tree, &query.profile_type.sample_unit, functions);
        let content_type = HeaderValue::from_static("text/vnd.graphviz");
        return Ok(with_exactness(([(header::CONTENT_TYPE, content_type)], text), &answer.exactness));
    }
    let answer = core.engine.flame(&tenant, &query).await?;
    let mut profile = FlamebearerProfile::single(&answer.tree, &query.profile_type);
    let step_value = match parameters.aggregation.as_deref() {
        None | Some("" | "sum") => StepValue::Sum,
        Some("avg" | "average") => StepValue::MeanOfProfiles,
        Some(other) => return Err(ApiError::invalid(format!("aggregation {other:?} is not known; use sum or avg"))),
    };
    let is_open = query.until == i64::MAX;
    let mut axis = BarAxis::of((query.from, query.until));
    let step = if is_open { BarAxis::SHORTEST } else { axis.step() };
    let mut timeline = TimelineQuery { samples: query, step, aligned: true, step_value, ..TimelineQuery::default() };
    let mut whole = core.engine.timelines(&tenant, &timeline).await?.groups;
    // A span or trace that is found at any time has a timeline where its samples are.
    if is_open && let Some(range) = whole.first().and_then(|whole| range_of(whole, step)) {
        axis = BarAxis::of(range);
        if axis.step() != step {
            timeline.step = axis.step();
            whole = core.engine.timelines(&tenant, &timeline).await?.groups;
        }
    }
    profile.timeline = (!is_open || !whole.is_empty()).then(|| axis.bars(whole.first()));
    if let Some(label) = parameters.group_by.filter(|label| !label.is_empty()) {
        timeline.group_by = vec![label.clone()];
        let groups = core.engine.timelines(&tenant, &timeline).await?.groups;
        // Pyroscope's name for what has no such label.
        let named = |group: &Timeline| (group.labels.get(&label).unwrap_or("*").to_owned(), axis.bars(Some(group)));
        profile.groups = Some(groups.iter().map(named).collect::<BTreeMap<_, _>>());
    }
    Ok(with_exactness(Json(profile), &answer.exactness))
}

/// From the start of a timeline's first step to the last moment of its last one.
fn range_of(timeline: &Timeline, step: i64) -> Option<(i64, i64)> {
    let ((first, _), (last, _)) = (timeline.points.first()?, timeline.points.last()?);
    Some((first.saturating_sub(step), last - 1))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RenderDiffParameters {
    left_query: Option<String>,
    left_from: Option<String>,
    left_until: Option<String>,
    right_query: Option<String>,
    right_from: Option<String>,
    right_until: Option<String>,
    #[serde(alias = "max-nodes")]
    max_nodes: Option<i64>,
}

/// The flame graph of two queries.
pub(super) async fn render_diff(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<RenderDiffParameters>,
) -> Result<Response, ApiError> {
    let side = |name: &str, query: &Option<String>, from, until| {
        let text = query.as_deref().ok_or_else(|| ApiError::invalid(format!("{name} is missing")))?;
        Ok::<_, ApiError>((text.to_owned(), query_of_pyroscope(text, from, until, parameters.max_nodes)?))
    };
    let mut left = side("leftQuery", &parameters.left_query, &parameters.left_from, &parameters.left_until)?;
    let mut right = side("rightQuery", &parameters.right_query, &parameters.right_from, &parameters.right_until)?;
    for (text, query) in [&mut left, &mut right] {
        settle_query(&core, &tenant, text, query).await?;
    }
    let ((_, left), (_, right)) = (left, right);
    let (tree, exactness) = diff_tree(&core.engine, &tenant, &left, &right).await?;
    Ok(with_exactness(Json(FlamebearerProfile::double(&tree, &left.profile_type)), &exactness))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LabelValuesParameters {
    label: Option<String>,
    from: Option<String>,
    until: Option<String>,
}

/// The values of a label; `__name__` lists profile types.
pub(super) async fn label_values(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<LabelValuesParameters>,
) -> Result<Response, ApiError> {
    let label = parameters.label.as_deref().filter(|label| !label.is_empty());
    let label = label.ok_or_else(|| ApiError::invalid("label is missing"))?;
    let (from, until) = time_range(&parameters.from, &parameters.until)?;
    let until = end_of_millisecond(until);
    let values = match label {
        "__name__" => core.engine.profile_types(&tenant, from, until).await?,
        label => core.engine.label_values(&tenant, label, &[Selector::default()], from, until).await?,
    };
    Ok(with_exactness(Json(values.answer), &values.exactness))
}

/// A query of an address of our own, with its time, whose end is not part of it.
pub(in crate::api) fn ranged_query(
    text: &str,
    from: &Option<String>,
    until: &Option<String>,
    nodes: Option<i64>,
) -> Result<FlameQuery, ApiError> {
    let query = timed_query(text, from, until, nodes)?;
    if query.from == query.until {
        return Err(ApiError::invalid("from must be before until"));
    }
    Ok(query)
}

/// A query of an address of Pyroscope's, which counts in milliseconds: that in which the time ends is part of it.
fn query_of_pyroscope(
    text: &str,
    from: &Option<String>,
    until: &Option<String>,
    nodes: Option<i64>,
) -> Result<FlameQuery, ApiError> {
    let query = timed_query(text, from, until, nodes)?;
    Ok(FlameQuery { until: end_of_millisecond(query.until), ..query })
}

fn end_of_millisecond(time: i64) -> i64 {
    time.div_euclid(MILLISECOND).saturating_add(1).saturating_mul(MILLISECOND)
}

/// A query with its time; one about spans or traces finds them wherever they are.
fn timed_query(
    text: &str,
    from: &Option<String>,
    until: &Option<String>,
    nodes: Option<i64>,
) -> Result<FlameQuery, ApiError> {
    let mut query = written_query(text)?;
    query.max_nodes = max_nodes(nodes)?;
    let has_ids = !query.spans.is_empty() || !query.traces.is_empty();
    (query.from, query.until) = match (from, until) {
        (None, None) if has_ids => (0, i64::MAX),
        _ => time_range(from, until)?,
    };
    Ok(query)
}

fn time_range(from: &Option<String>, until: &Option<String>) -> Result<(i64, i64), ApiError> {
    let now = now_nanos();
    let time = |name: &str, text: &Option<String>, default: i64| match text.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => parse_time(text, now).map_err(|error| ApiError::invalid(format!("{name}: {error}"))),
        None => Ok(default),
    };
    let until = time("until", until, now)?;
    let from = time("from", from, until.saturating_sub(DEFAULT_RANGE))?;
    if from > until {
        return Err(ApiError::invalid("from must not be after until"));
    }
    Ok((from, until))
}
