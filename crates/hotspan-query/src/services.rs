//! Services: how often each is called, how long it takes, how often it fails; and who calls whom.

use std::collections::BTreeMap;

use arrow::array::Array;
use futures::TryStreamExt;
use hashbrown::HashMap;
use hotspan_lake::{ReadOptions, Table, arrays};
use hotspan_model::{SpanKind, StatusCode, TenantId};
use hotspan_traceql::LogHistogram;

use crate::Engine;
use crate::error::Result;

/// Steps that a time range is cut into for small plots.
pub const PLOT_STEPS: usize = 48;

/// Counts and durations of a group of requests.
#[derive(Debug, Clone, Default)]
pub struct RequestStatistics {
    /// How many requests.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    durations: LogHistogram,
    /// Requests and errors in each step of the range.
    pub steps: Vec<(u32, u32)>,
}

impl RequestStatistics {
    pub(crate) fn add(&mut self, duration: i64, failed: bool, step: usize) {
        self.count += 1;
        self.errors += u64::from(failed);
        self.durations.add(duration.max(0) as f64, true);
        if self.steps.is_empty() {
            self.steps = vec![(0, 0); PLOT_STEPS];
        }
        if let Some(counts) = self.steps.get_mut(step) {
            counts.0 += 1;
            counts.1 += u32::from(failed);
        }
    }

    /// A quantile of the durations in nanoseconds, within half a percent.
    pub fn quantile(&self, quantile: f64) -> f64 {
        self.durations.quantile(quantile, true).unwrap_or(0.0)
    }
}

/// A service and its operations.
#[derive(Debug, Clone, Default)]
pub struct ServiceSummary {
    /// All requests that it answered.
    pub requests: RequestStatistics,
    /// The same by operation.
    pub operations: BTreeMap<String, RequestStatistics>,
    /// All of its spans.
    pub spans: u64,
}

impl Engine {
    /// Every service with spans that start in `from..until`.
    ///
    /// A request is a span that answers somebody: a server or consumer span, or one without a parent.
    pub async fn services(&self, tenant: &TenantId, from: i64, until: i64) -> Result<BTreeMap<String, ServiceSummary>> {
        let mut services: HashMap<String, ServiceSummary> = HashMap::new();
        let step_length = (until.saturating_sub(from) / PLOT_STEPS as i64).max(1);
        let columns = ["start_time", "duration", "service", "name", "kind", "status", "parent_span_id"];
        for segment in self.snapshot().segments(tenant, Table::Spans).iter() {
            if !segment.overlaps(from, until) {
                continue;
            }
            let options = ReadOptions::columns(&columns).within("start_time", from, until);
            let mut stream = self.lake().reader().stream(segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let starts = arrays::times(&batch, "start_time")?.values();
                let durations = arrays::int64s(&batch, "duration")?.values();
                let (names, owners) = (arrays::texts(&batch, "name")?, arrays::texts(&batch, "service")?);
                let kinds = arrays::int8s(&batch, "kind")?.values();
                let statuses = arrays::int8s(&batch, "status")?.values();
                let parents = arrays::ids(&batch, "parent_span_id")?;
                for row in 0..batch.num_rows() {
                    let summary = services.entry_ref(owners.get(row)).or_default();
                    summary.spans += 1;
                    let answers = [SpanKind::Server as i8, SpanKind::Consumer as i8].contains(&kinds[row]);
                    if !answers && parents.is_valid(row) {
                        continue;
                    }
                    let failed = statuses[row] == StatusCode::Error as i8;
                    let step = ((starts[row] - from) / step_length) as usize;
                    summary.requests.add(durations[row], failed, step);
                    if !summary.operations.contains_key(names.get(row)) {
                        summary.operations.insert(names.get(row).to_owned(), RequestStatistics::default());
                    }
                    if let Some(operation) = summary.operations.get_mut(names.get(row)) {
                        operation.add(durations[row], failed, step);
                    }
                }
            }
        }
        Ok(services.into_iter().collect())
    }
}
