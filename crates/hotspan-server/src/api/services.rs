//! `/api/v1/services`: every service with its operations, rates and latencies.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use hotspan_lake::catalog::now_nanos;
use hotspan_query::services::RequestStatistics;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use crate::app::App;
use crate::receive::tenant_of;
use crate::time_text::parse_time;

#[derive(Debug, Deserialize)]
pub(crate) struct RangeParameters {
    #[serde(alias = "from")]
    start: Option<String>,
    #[serde(alias = "until", alias = "to")]
    end: Option<String>,
}

const HOUR: i64 = 3600 * 1_000_000_000;

impl RangeParameters {
    /// The time asked for; the last hour where none is given.
    pub(super) fn range(&self) -> Result<(i64, i64), ApiError> {
        let now = now_nanos();
        let time = |name: &str, text: &Option<String>, fallback: i64| match text {
            Some(text) => parse_time(text, now).map_err(|error| ApiError::invalid(format!("{name}: {error}"))),
            None => Ok(fallback),
        };
        let until = time("end", &self.end, now)?;
        let from = time("start", &self.start, until.saturating_sub(HOUR))?;
        if from >= until {
            return Err(ApiError::invalid("start must be before end"));
        }
        Ok((from, until))
    }
}

/// Answers `/api/v1/services`.
pub(crate) async fn services(
    State(app): State<Arc<App>>,
    Query(parameters): Query<RangeParameters>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let core = app.core()?;
    let tenant = tenant_of(&app, &headers)?;
    let (from, until) = parameters.range()?;
    let seconds = (until - from) as f64 / 1e9;
    let services = core.engine.services(&tenant, from, until).await?;
    let rows = services.iter().map(|(service, summary)| {
        let mut row = statistics_json(&summary.requests, seconds);
        row["service"] = json!(service);
        row["total_spans"] = json!(summary.spans);
        let operations = summary.operations.iter().map(|(operation, statistics)| {
            let mut row = statistics_json(statistics, seconds);
            row["operation"] = json!(operation);
            row
        });
        row["operations"] = operations.collect();
        row
    });
    Ok(Json(json!({ "services": rows.collect::<Vec<_>>(), "start": from, "end": until })))
}

pub(super) fn statistics_json(statistics: &RequestStatistics, seconds: f64) -> Value {
    let step_seconds = seconds / hotspan_query::services::PLOT_STEPS as f64;
    let rates: Vec<f64> = statistics.steps.iter().map(|(count, _)| f64::from(*count) / step_seconds).collect();
    let errors: Vec<u32> = statistics.steps.iter().map(|(_, errors)| *errors).collect();
    json!({
        "requests": statistics.count,
        "error_count": statistics.errors,
        "rate": statistics.count as f64 / seconds,
        "p50_ns": statistics.quantile(0.5),
        "p95_ns": statistics.quantile(0.95),
        "p99_ns": statistics.quantile(0.99),
        "rate_series": rates,
        "errors_series": errors,
    })
}
