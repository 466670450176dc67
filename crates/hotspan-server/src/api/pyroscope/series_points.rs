//! `SelectSeries` and `SelectHeatmap`: values over time, and how they are spread.

use hotspan_formats::profile_query::parse_selector;
use hotspan_model::{Labels, ProfileId};
use hotspan_query::{
    Exemplars, FlameQuery, HeatmapGroup, Individual, IndividualKind, StepValue, Timeline, TimelineQuery,
};

use super::labels::pairs;
use super::messages::{
    ExemplarMessage, HeatmapRequest, HeatmapResponse, HeatmapSeries, HeatmapSlot, PointMessage, SelectSeriesRequest,
    SelectSeriesResponse, SeriesMessage,
};
use super::selection::{profile_type, take_ids, time_range};
use super::stack_selector::stack_filter;
use super::unary::{Asked, Resting};
use crate::api::ApiError;

pub(super) async fn select_series(
    asked: Asked<SelectSeriesRequest>,
) -> Result<Resting<SelectSeriesResponse>, ApiError> {
    let request = &asked.message;
    let (from, until) = time_range(request.start, request.end)?;
    let step_value = match request.aggregation {
        None | Some(0) => StepValue::Sum,
        Some(1) => StepValue::MeanOfProfiles,
        Some(other) => {
            let message = format!("aggregation {other} is not known here; 0 is sum, 1 average");
            return Err(ApiError::unimplemented(message));
        }
    };
    let stacks = stack_filter(request.stack_trace_selector.as_ref())?;
    let samples = samples_of(&request.profile_type_id, &request.label_selector, (from, until))?;
    let query = TimelineQuery {
        samples: FlameQuery { stacks, ..samples },
        step: step_nanos(request.step)?,
        last_point: last_point(request.end),
        step_value,
        group_by: request.group_by.clone(),
        max_groups: max_groups(request.limit),
        ..TimelineQuery::default()
    };
    let timelines = asked.core.engine.timelines(&asked.tenant, &query).await?;
    let exemplars = match exemplar_kind(request.exemplar_type)? {
        Some(kind) => asked.core.engine.exemplars(&asked.tenant, &query, kind).await?,
        None => Exemplars::default(),
    };
    let series = timelines.groups.iter().map(|timeline| series_message(timeline, &exemplars)).collect();
    Ok(Resting { answer: SelectSeriesResponse { series }, exactness: timelines.exactness })
}

/// The samples that a request selects, ids in its selector among it.
fn samples_of(kind: &str, label_selector: &str, (from, until): (i64, i64)) -> Result<FlameQuery, ApiError> {
    let (profile_type, selector) = (profile_type(kind)?, parse_selector(label_selector)?);
    let mut samples = FlameQuery { profile_type, selector, from, until, ..FlameQuery::default() };
    take_ids(&mut samples)?;
    Ok(samples)
}

fn series_message(timeline: &Timeline, exemplars: &Exemplars) -> SeriesMessage {
    let point = |(time, value): &(i64, f64)| {
        let exemplar = exemplars.largest.get(&(timeline.labels.clone(), *time));
        PointMessage {
            value: *value,
            timestamp: time.div_euclid(1_000_000),
            exemplars: exemplar.map(|one| exemplar_message(one, &timeline.labels)).into_iter().collect(),
        }
    };
    SeriesMessage { labels: pairs(&timeline.labels), points: timeline.points.iter().map(point).collect() }
}

pub(super) async fn select_heatmap(asked: Asked<HeatmapRequest>) -> Result<Resting<HeatmapResponse>, ApiError> {
    let request = &asked.message;
    let (from, until) = time_range(request.start, request.end)?;
    let kind = match request.query_type {
        0 | 1 => IndividualKind::Profile,
        2 => IndividualKind::Span,
        other => {
            let message = format!("query_type {other} is not known here; 1 is individual, 2 span");
            return Err(ApiError::unimplemented(message));
        }
    };
    let with_exemplars = match exemplar_kind(request.exemplar_type)? {
        Some(exemplars) if exemplars != kind => {
            return Err(ApiError::invalid("exemplar_type must be the same as query_type, or none"));
        }
        exemplars => exemplars.is_some(),
    };
    let query = TimelineQuery {
        samples: samples_of(&request.profile_type_id, &request.label_selector, (from, until))?,
        step: step_nanos(request.step)?,
        last_point: last_point(request.end),
        group_by: request.group_by.clone(),
        max_groups: max_groups(request.limit),
        ..TimelineQuery::default()
    };
    let heatmap = asked.core.engine.heatmap(&asked.tenant, &query, kind).await?;
    let series = heatmap.groups.iter().map(|group| heatmap_message(group, &heatmap.bands, with_exemplars));
    Ok(Resting { answer: HeatmapResponse { series: series.collect() }, exactness: heatmap.exactness })
}

fn heatmap_message(group: &HeatmapGroup, bands: &[f64], with_exemplars: bool) -> HeatmapSeries {
    let slots = group.slots.iter().map(|(end, cells)| {
        let largest = cells.iter().filter_map(|cell| cell.largest.as_ref()).filter(|_| with_exemplars);
        HeatmapSlot {
            timestamp: end.div_euclid(1_000_000),
            y_min: bands.to_vec(),
            counts: cells.iter().map(|cell| i32::try_from(cell.count).unwrap_or(i32::MAX)).collect(),
            exemplars: largest.map(|one| exemplar_message(one, &group.labels)).collect(),
        }
    });
    HeatmapSeries { labels: pairs(&group.labels), slots: slots.collect() }
}

/// An exemplar with the labels that its series does not say already.
fn exemplar_message(one: &Individual, known: &Labels) -> ExemplarMessage {
    let further = one.labels.iter().filter(|(name, _)| known.get(name).is_none() && !name.starts_with("__"));
    ExemplarMessage {
        timestamp: one.time.div_euclid(1_000_000),
        profile_id: uuid(one.profile_id),
        span_id: one.span_id.map(|id| id.to_string()).unwrap_or_default(),
        value: one.value,
        labels: pairs(&Labels::from_pairs(further)),
        trace_id: one.trace_id.map(|id| id.to_string()).unwrap_or_default(),
    }
}

/// An id as Grafana shows it and hands it back.
fn uuid(id: ProfileId) -> String {
    let hex = id.to_string();
    match hex.is_ascii() && hex.len() == 32 {
        true => format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]),
        false => hex,
    }
}

/// What exemplars are of.
fn exemplar_kind(number: i32) -> Result<Option<IndividualKind>, ApiError> {
    match number {
        0 | 1 => Ok(None),
        2 => Ok(Some(IndividualKind::Profile)),
        3 => Ok(Some(IndividualKind::Span)),
        other => {
            let message = format!("exemplar_type {other} is not known here; 1 is none, 2 individual, 3 span");
            Err(ApiError::unimplemented(message))
        }
    }
}

/// Whole milliseconds, so that steps of whole seconds stay so.
fn step_nanos(seconds: f64) -> Result<i64, ApiError> {
    if (0.001..=1e9).contains(&seconds) {
        return Ok((seconds * 1000.0).round() as i64 * 1_000_000);
    }
    Err(ApiError::invalid(format!("step is {seconds} s; it may be 0.001 s to 1,000,000,000 s")))
}

/// Points lie within the time that is asked for: dashboards cut off those that are not.
fn last_point(end_millis: i64) -> Option<i64> {
    (end_millis > 0).then(|| end_millis.saturating_mul(1_000_000))
}

fn max_groups(limit: Option<i64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0)
}
