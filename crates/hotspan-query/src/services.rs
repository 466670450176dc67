//! Services: how often each is called, how long it takes, how often it fails.

use std::collections::BTreeMap;

use arrow::array::Array;
use futures::TryStreamExt;
use hashbrown::HashMap;
use hotspan_lake::{ReadOptions, Table, arrays};
use hotspan_model::{Exactness, SpanKind, StatusCode, TenantId};

use crate::Engine;
use crate::by_text::ByText;
use crate::error::Result;
use crate::request_statistics::{PlotSteps, RequestGroups, RequestStatistics};

/// Operations that are told apart, of one service and of all; names that hold an id would have no end (R5).
const MAX_OPERATIONS_OF_SERVICE: usize = 500;
const MAX_OPERATIONS: usize = 5_000;
/// What all further operations of a service are counted under.
pub const OTHER_OPERATIONS: &str = "[other operations]";

/// Every service of a time.
#[derive(Debug, Clone)]
pub struct Services {
    /// The steps that all statistics have.
    pub steps: PlotSteps,
    /// By name.
    pub by_name: BTreeMap<String, ServiceSummary>,
    /// What the numbers rest on.
    pub exactness: Exactness,
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

/// A service while it is read: its operations by their numbers.
#[derive(Debug, Default)]
struct ReadService {
    operations: HashMap<String, usize>,
    spans: u64,
}

impl ReadService {
    /// The number of an operation, or of the others if there are too many.
    fn operation(&mut self, name: &str, groups: &mut RequestGroups) -> usize {
        if let Some(number) = self.operations.get(name) {
            return *number;
        }
        let is_full = self.operations.len() >= MAX_OPERATIONS_OF_SERVICE || groups.len() >= MAX_OPERATIONS;
        let name = if is_full { OTHER_OPERATIONS } else { name };
        *self.operations.entry_ref(name).or_insert_with(|| groups.start_group())
    }
}

impl Engine {
    /// Every service with spans that start in `from..until`.
    ///
    /// A request is a span that answers somebody: a server or consumer span, or one without a parent.
    pub async fn services(&self, tenant: &TenantId, from: i64, until: i64) -> Result<Services> {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut services: Vec<ReadService> = Vec::new();
        let mut groups = RequestGroups::new(from, until);
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
                let mut owners = ByText::new(owners);
                let kinds = arrays::int8s(&batch, "kind")?.values();
                let statuses = arrays::int8s(&batch, "status")?.values();
                let parents = arrays::ids(&batch, "parent_span_id")?;
                for row in 0..batch.num_rows() {
                    let number = owners.get(row, |name| {
                        *numbers.entry_ref(name).or_insert_with(|| {
                            services.push(ReadService::default());
                            services.len() - 1
                        })
                    });
                    let service = &mut services[number];
                    service.spans += 1;
                    let answers = [SpanKind::Server.number(), SpanKind::Consumer.number()].contains(&kinds[row]);
                    if !answers && parents.is_valid(row) {
                        continue;
                    }
                    let operation = service.operation(names.get(row), &mut groups);
                    groups.add(operation, starts[row], durations[row], statuses[row] == StatusCode::Error.number());
                }
            }
        }
        let (steps, mut groups) = groups.finish();
        let summaries = numbers.into_iter().map(|(name, number)| {
            let read = std::mem::take(&mut services[number]);
            let mut summary = ServiceSummary { spans: read.spans, ..ServiceSummary::default() };
            for (operation, number) in read.operations {
                let statistics = std::mem::take(&mut groups[number]);
                summary.requests.merge(&statistics);
                summary.operations.insert(operation, statistics);
            }
            (name, summary)
        });
        let by_name: BTreeMap<String, ServiceSummary> = summaries.collect();
        let spans = by_name.values().map(|summary| summary.spans).sum();
        let exactness = self.exactness_of_search(tenant, (from, until), spans, None);
        Ok(Services { steps, by_name, exactness })
    }
}
