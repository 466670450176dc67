//! `SelectSeries`: values over time.

use hotspan_query::{FlameQuery, StepValue, TimelineQuery};

use super::labels::pairs;
use super::merge::call_site;
use super::messages::{PointMessage, SelectSeriesRequest, SelectSeriesResponse, SeriesMessage};
use super::selection::{profile_type, selector, time_range};
use super::unary::Asked;
use crate::api::ApiError;

pub(super) async fn select_series(asked: Asked<SelectSeriesRequest>) -> Result<SelectSeriesResponse, ApiError> {
    let request = &asked.message;
    let (from, until) = time_range(request.start, request.end)?;
    if !(request.step >= 0.001 && request.step <= 1e9) {
        return Err(ApiError::invalid(format!("step is {} s; it must be at least 0.001 s", request.step)));
    }
    let step_value = match request.aggregation {
        None | Some(0) => StepValue::Sum,
        Some(1) => StepValue::MeanOfProfiles,
        Some(other) => {
            return Err(ApiError::invalid(format!("aggregation {other} is not known; 0 is sum, 1 average")));
        }
    };
    let query = TimelineQuery {
        samples: FlameQuery {
            profile_type: profile_type(&request.profile_type_id)?,
            selector: selector(&request.label_selector)?,
            from,
            until,
            call_site: call_site(request.stack_trace_selector.as_ref()),
            ..FlameQuery::default()
        },
        // Whole milliseconds, so that steps of whole seconds stay so.
        step: (request.step * 1000.0).round() as i64 * 1_000_000,
        step_value,
        group_by: request.group_by.clone(),
        max_groups: request.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0),
    };
    let timelines = asked.core.engine.timelines(&asked.tenant, &query).await?;
    let point = |(time, value): &(i64, f64)| PointMessage { value: *value, timestamp: time.div_euclid(1_000_000) };
    let series = timelines.iter().map(|timeline| SeriesMessage {
        labels: pairs(&timeline.labels),
        points: timeline.points.iter().map(point).collect(),
    });
    Ok(SelectSeriesResponse { series: series.collect() })
}
