//! TraceQL metrics: series over time, or one value each.

use axum::response::Response;
use hotspan_query::search::{MetricsAnswer, MetricsRun};
use hotspan_traceql::{MetricsLimits, Series, TimeGrid, default_step};
use http::HeaderMap;

use super::answer::{Form, Plain, TextError};
use super::messages::{Exemplar, InstantSeries, PARTIAL, QueryInstantResponse, QueryRangeResponse, Sample, TimeSeries};
use super::otlp_messages::ValueKind;
use super::parameters::{HOUR, Parameters};
use super::rejected_note::rejected_note;
use super::search::{label_messages, metrics_message};
use crate::api::ApiError;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::with_exactness;
use crate::time_text::parse_duration;

/// `/api/metrics/query_range`.
pub(super) async fn query_range(
    Plain(asker): Plain<Asker>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let run = start_range(&asker, &parameters)?;
    let answer = last_part(run).await?;
    let message = range_message(&answer, parameters.max_series);
    Ok(with_exactness(Form::asked_for(&headers).answer(&message)?, &answer.exactness))
}

/// `/api/metrics/query`.
pub(super) async fn query_instant(
    Plain(asker): Plain<Asker>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let run = start_instant(&asker, &parameters)?;
    let answer = last_part(run).await?;
    let message = instant_message(&answer, parameters.max_series);
    Ok(with_exactness(Form::asked_for(&headers).answer(&message)?, &answer.exactness))
}

async fn last_part(run: MetricsRun) -> Result<MetricsAnswer, ApiError> {
    Ok(run.into_answer().await?)
}

pub(super) fn start_range(asker: &Asker, parameters: &Parameters) -> Result<MetricsRun, ApiError> {
    let (from, until) = parameters.range(Some(HOUR))?;
    let step = match parameters.step.as_deref().filter(|step| !step.is_empty()) {
        Some(text) => step_nanos(text)?,
        None => default_step(from, until),
    };
    let grid = TimeGrid::range(from, until, step).map_err(|error| ApiError::invalid(error.to_string()))?;
    start(asker, parameters, grid, (from, until))
}

pub(super) fn start_instant(asker: &Asker, parameters: &Parameters) -> Result<MetricsRun, ApiError> {
    let (from, until) = parameters.range(Some(HOUR))?;
    let grid = TimeGrid::instant(from, until).map_err(|error| ApiError::invalid(error.to_string()))?;
    start(asker, parameters, grid, (from, until))
}

fn start(
    Asker { core, tenant }: &Asker,
    parameters: &Parameters,
    grid: TimeGrid,
    range: (i64, i64),
) -> Result<MetricsRun, ApiError> {
    let program = parameters.program()?;
    let defaults = MetricsLimits::default();
    let exemplars = parameters.exemplars.map_or(defaults.exemplars, |count| count.min(defaults.exemplars));
    let limits = MetricsLimits { exemplars, ..defaults };
    Ok(core.engine.start_metrics(tenant, &program, grid, range, limits)?)
}

/// What is left of the series, and what to say about those that are not.
fn at_most(answer: &MetricsAnswer, most: Option<usize>) -> (&[Series], i32, String) {
    let MetricsAnswer { series, notes, exactness, .. } = answer;
    let most = most.filter(|most| *most > 0 && *most < series.len());
    let cut = most.map(|most| format!("{} of {} series are shown (limit: maxSeries)", most, series.len()));
    let message = notes.iter().cloned().chain(cut).chain(rejected_note(exactness)).collect::<Vec<_>>().join("; ");
    (&series[..most.unwrap_or(series.len())], if message.is_empty() { 0 } else { PARTIAL }, message)
}

pub(super) fn range_message(answer: &MetricsAnswer, max_series: Option<usize>) -> QueryRangeResponse {
    let (series, status, message) = at_most(answer, max_series);
    QueryRangeResponse {
        series: series.iter().map(series_message).collect(),
        metrics: Some(metrics_message(&answer.inspected)),
        status,
        message,
    }
}

pub(super) fn instant_message(answer: &MetricsAnswer, max_series: Option<usize>) -> QueryInstantResponse {
    let (series, status, message) = at_most(answer, max_series);
    let values = series.iter().filter_map(|series| {
        let value = series.points.first()?.value;
        Some(InstantSeries { labels: label_messages(&series.labels), value })
    });
    QueryInstantResponse {
        series: values.collect(),
        metrics: Some(metrics_message(&answer.inspected)),
        status,
        message,
    }
}

fn series_message(series: &Series) -> TimeSeries {
    let samples = series
        .points
        .iter()
        .map(|point| Sample { timestamp_ms: point.timestamp_nanos.div_euclid(1_000_000), value: point.value });
    let exemplars = series.exemplars.iter().map(|exemplar| Exemplar {
        labels: vec![
            ValueKind::StringValue(exemplar.trace_id.to_string()).under("trace:id"),
            ValueKind::StringValue(exemplar.span_id.to_string()).under("span:id"),
        ],
        value: exemplar.value,
        timestamp_ms: exemplar.timestamp_nanos.div_euclid(1_000_000),
    });
    TimeSeries { labels: label_messages(&series.labels), samples: samples.collect(), exemplars: exemplars.collect() }
}

fn step_nanos(text: &str) -> Result<i64, ApiError> {
    let seconds = text.parse::<f64>().ok().map(|seconds| (seconds * 1e9) as i64);
    let nanos = seconds.or_else(|| parse_duration(text).and_then(|step| i64::try_from(step.as_nanos()).ok()));
    nanos
        .filter(|nanos| *nanos > 0)
        .ok_or_else(|| ApiError::invalid(format!("step: {text:?} is not a length such as 15s")))
}
