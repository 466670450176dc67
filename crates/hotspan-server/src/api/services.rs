//! `/api/v1/services`: every service with its operations, rates and latencies.

use std::sync::Arc;

use axum::Json;
use hashbrown::HashMap;
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{ProfileType, TenantId};
use hotspan_query::services::{PLOT_STEPS, RequestStatistics};
use hotspan_query::{FlameQuery, TimelineQuery};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use crate::app::Core;
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
    Asker { core, tenant }: Asker,
    Given(parameters): Given<RangeParameters>,
) -> Result<Json<Value>, ApiError> {
    let (from, until) = parameters.range()?;
    let seconds = (until - from) as f64 / 1e9;
    let services = core.engine.services(&tenant, from, until).await?;
    let cpu = Cpu::read(&core, &tenant, (from, until)).await?;
    let rows = services.iter().map(|(service, summary)| {
        let mut row = statistics_json(&summary.requests, seconds);
        if let Some(series) = cpu.series.get(service) {
            // Everything that the service did, also between requests.
            let total: f64 = series.iter().flatten().sum::<f64>() * seconds / PLOT_STEPS as f64 * 1e9;
            row["cpu_series"] = json!(series);
            row["cpu_ns_per_request"] = json!(total / summary.requests.count.max(1) as f64);
        }
        row["service"] = json!(service);
        row["total_spans"] = json!(summary.spans);
        let operations = summary.operations.iter().map(|(operation, statistics)| {
            let mut row = statistics_json(statistics, seconds);
            row["operation"] = json!(operation);
            if let Some(cost) = cpu.costs.get(service.as_str()).and_then(|costs| costs.get(operation.as_str())) {
                row["cpu_ns_per_request"] = json!(cost);
            }
            row
        });
        row["operations"] = operations.collect();
        row
    });
    Ok(Json(json!({
        "services": rows.collect::<Vec<_>>(),
        "start": from,
        "end": until,
        // Costs of operations may rest on the latest part of the time only, if there are too many samples in it.
        "is_cut": cpu.costs_range != (from, until),
        "costs_start": cpu.costs_range.0,
        "costs_end": cpu.costs_range.1,
    })))
}

/// What services and operations do on the processor.
struct Cpu {
    /// Cores in use in each step of the range, by service; nothing where nothing was measured.
    series: HashMap<String, Vec<Option<f64>>>,
    /// Nanoseconds a request, by service and operation.
    costs: HashMap<Arc<str>, HashMap<Arc<str>, f64>>,
    /// The part of the time that the costs rest on.
    costs_range: (i64, i64),
}

impl Cpu {
    async fn read(core: &Core, tenant: &TenantId, (from, until): (i64, i64)) -> Result<Self, ApiError> {
        let step = ((until - from) / PLOT_STEPS as i64).max(1_000_000);
        let query = TimelineQuery {
            samples: FlameQuery { profile_type: ProfileType::cpu(), from, until, ..FlameQuery::default() },
            step,
            group_by: vec![SERVICE_NAME.to_owned()],
            ..TimelineQuery::default()
        };
        let mut series = HashMap::new();
        for timeline in core.engine.timelines(tenant, &query).await? {
            let mut cores = vec![None; PLOT_STEPS];
            for (end, value) in timeline.points {
                // Steps may lie on the grid of rollups, a little beside the range.
                let at = (((end - step / 2 - from) / step).max(0) as usize).min(PLOT_STEPS - 1);
                *cores[at].get_or_insert(0.0) += value / step as f64;
            }
            series.insert(timeline.labels.service().into_owned(), cores);
        }
        let snapshot = core.engine.snapshot();
        let found = core.engine.endpoint_costs(tenant, &snapshot, &ProfileType::cpu(), (from, until), 0).await?;
        let mut costs: HashMap<Arc<str>, HashMap<Arc<str>, f64>> = HashMap::new();
        for ((service, operation), cost) in found.endpoints {
            if cost.samples > 0 {
                let requests = cost.requests.max(cost.sampled_requests).max(1) as f64;
                costs.entry(service).or_default().insert(operation, cost.value as f64 / requests);
            }
        }
        Ok(Self { series, costs, costs_range: found.range })
    }
}

pub(super) fn statistics_json(statistics: &RequestStatistics, seconds: f64) -> Value {
    let step_seconds = seconds / PLOT_STEPS as f64;
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
