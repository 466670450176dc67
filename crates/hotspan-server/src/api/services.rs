//! `/api/v1/services`: every service with its operations, rates and latencies.

use std::sync::Arc;

use axum::Json;
use hashbrown::HashMap;
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Exactness, ProfileType, TenantId};
use hotspan_query::endpoint_costs::{EndpointCost, EndpointCosts};
use hotspan_query::request_statistics::{PlotSteps, RequestStatistics};
use hotspan_query::services::{OTHER_OPERATIONS, Services};
use hotspan_query::{FlameQuery, TimelineQuery};
use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::exactness_json;
use super::known_parameters::{names_of, refuse_unknown};
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
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<RangeParameters>()])?;
    let (from, until) = parameters.range()?;
    let services = core.engine.services(&tenant, from, until).await?;
    let cpu = Cpu::read(&core, &tenant, &services).await?;
    let rows = services.by_name.iter().map(|(service, summary)| {
        let mut row = statistics_json(&summary.requests, &services.steps);
        if let Some(spent) = cpu.by_service.get(service) {
            cpu.write_service(&mut row, spent, &summary.requests);
        }
        row["service"] = json!(service);
        row["total_spans"] = json!(summary.spans);
        let operations = summary.operations.iter().map(|(operation, statistics)| {
            let mut row = statistics_json(statistics, &services.steps);
            row["operation"] = json!(operation);
            if operation == OTHER_OPERATIONS {
                row["is_rest"] = json!(true);
            }
            let key = (Arc::from(service.as_str()), Arc::from(operation.as_str()));
            if let Some(cost) = cpu.costs.endpoints.get(&key).filter(|cost| cost.samples > 0) {
                cpu.write_operation(&mut row, cost, statistics);
            }
            row
        });
        row["operations"] = operations.collect();
        row
    });
    let costs_range = cpu.costs.range;
    // Rates and latencies rest on spans, costs on samples as well.
    let mut exactness = services.exactness;
    exactness.merge(&cpu.exactness);
    Ok(Json(json!({
        "services": rows.collect::<Vec<_>>(),
        "start": from,
        "end": until,
        // How long each step of the series is; fewer and longer ones where there is too much to keep apart.
        "step_ns": services.steps.length(),
        // Costs of operations may rest on the latest part of the time only, if there are too many samples in it.
        "is_cut": costs_range != (from, until),
        "costs_start": costs_range.0,
        "costs_end": costs_range.1,
        "exactness": exactness_json(&exactness),
    })))
}

/// What services and operations do on the processor.
struct Cpu {
    steps: PlotSteps,
    /// Nanoseconds in each step, by service; nothing where nothing was measured.
    by_service: HashMap<String, Vec<Option<f64>>>,
    /// What requests cost, by service and operation.
    costs: EndpointCosts,
    /// What the nanoseconds of services rest on.
    exactness: Exactness,
}

impl Cpu {
    async fn read(core: &Core, tenant: &TenantId, services: &Services) -> Result<Self, ApiError> {
        let steps = services.steps;
        let (from, until) = steps.range();
        let step = steps.length().max(1_000_000);
        let query = TimelineQuery {
            samples: FlameQuery { profile_type: ProfileType::cpu(), from, until, ..FlameQuery::default() },
            step,
            group_by: vec![SERVICE_NAME.to_owned()],
            ..TimelineQuery::default()
        };
        let mut by_service = HashMap::new();
        let timelines = core.engine.timelines(tenant, &query).await?;
        for timeline in timelines.groups {
            let mut spent = vec![None; steps.count()];
            for (end, value) in timeline.points {
                // Steps may lie on the grid of rollups, a little beside the range.
                *spent[steps.at(end - step / 2)].get_or_insert(0.0) += value;
            }
            by_service.insert(timeline.labels.service().into_owned(), spent);
        }
        let snapshot = core.engine.snapshot();
        let costs = core.engine.endpoint_costs(tenant, &snapshot, &ProfileType::cpu(), services, 0).await?;
        Ok(Self { steps, by_service, costs, exactness: timelines.exactness })
    }

    /// Everything that a service did, also between requests.
    fn write_service(&self, row: &mut Value, spent: &[Option<f64>], requests: &RequestStatistics) {
        let length = self.steps.length() as f64;
        let cores: Vec<_> = spent.iter().map(|spent| spent.map(|nanos| rounded(nanos / length))).collect();
        let per_request = spent.iter().zip(&requests.steps).map(|(spent, step)| per_request((*spent)?, step.count));
        row["cpu_series"] = json!(cores);
        row["cpu_ns_per_request_series"] = per_request.collect();
        row["cpu_ns_per_request"] = json!(spent.iter().flatten().sum::<f64>() / requests.count().max(1) as f64);
    }

    fn write_operation(&self, row: &mut Value, cost: &EndpointCost, requests: &RequestStatistics) {
        let known_from = self.steps.at(self.costs.range.0);
        let steps = cost.value_by_step.iter().zip(&requests.steps).enumerate();
        let per_request = steps.map(|(at, (spent, step))| match at < known_from {
            true => None,
            false => per_request(*spent as f64, step.count),
        });
        row["cpu_ns_per_request_series"] = per_request.collect();
        let requests = cost.requests.max(cost.sampled_requests).max(1) as f64;
        row["cpu_ns_per_request"] = json!(cost.value as f64 / requests);
    }
}

/// Whole nanoseconds a request; nothing where there was none.
fn per_request(nanos: f64, requests: u64) -> Option<u64> {
    (requests > 0).then(|| (nanos / requests as f64).round() as u64)
}

/// Six places are more than a plot can show, and a third of the bytes.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Counts and latencies of a group of requests, as a whole and over time; steps without a request have no latency.
pub(super) fn statistics_json(statistics: &RequestStatistics, steps: &PlotSteps) -> Value {
    let whole = statistics.whole();
    let (from, until) = steps.range();
    let step_seconds = steps.length() as f64 / 1e9;
    let quantile = |quantile: f64| whole.quantile(quantile).unwrap_or(0.0);
    let series = |quantile: f64| -> Vec<Option<u64>> {
        statistics.steps.iter().map(|step| step.quantile(quantile).map(|nanos| nanos.round() as u64)).collect()
    };
    let rates: Vec<f64> = statistics.steps.iter().map(|step| rounded(step.count as f64 / step_seconds)).collect();
    let errors: Vec<u64> = statistics.steps.iter().map(|step| step.errors).collect();
    json!({
        "requests": whole.count,
        "error_count": whole.errors,
        "rate": whole.count as f64 / ((until - from) as f64 / 1e9),
        "p50_ns": quantile(0.5),
        "p95_ns": quantile(0.95),
        "p99_ns": quantile(0.99),
        "rate_series": rates,
        "errors_series": errors,
        "p50_series": series(0.5),
        "p95_series": series(0.95),
        "p99_series": series(0.99),
    })
}
