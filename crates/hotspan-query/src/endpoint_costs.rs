//! Endpoint costs: what answering a request of each operation takes, and which functions it goes to.
//!
//! A request is a span that answers somebody: of a server or consumer, or one without a parent. What its service does
//! below it, up to the next request, is its cost.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::{Snapshot, Table};
use hotspan_model::{Exactness, ProfileType, SpanId, SpanKind, TenantId, TraceId};

use crate::Engine;
use crate::call_paths::CallPaths;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::linked::LinkedSample;
use crate::outline::{SpanOutline, by_trace};
use crate::owners::SampleOwners;
use crate::services::Services;

/// What an operation costs.
#[derive(Debug, Clone, Default)]
pub struct EndpointCost {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests with at least one sample.
    pub sampled_requests: u64,
    /// What all of them took.
    pub value: i64,
    /// The same by the steps in which the requests began.
    pub value_by_step: Vec<i64>,
    /// How many samples that is.
    pub samples: u64,
    /// The functions that took it, by self value, the largest first.
    pub functions: Vec<(String, i64)>,
}

/// Costs by service and operation.
#[derive(Debug, Clone, Default)]
pub struct EndpointCosts {
    /// Service and operation, with what they cost.
    pub endpoints: HashMap<(Arc<str>, Arc<str>), EndpointCost>,
    /// The part of the time that was looked at: all of it, unless there is too much.
    pub range: (i64, i64),
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// Samples and spans that are looked at; of longer times, the last part counts.
const MAX_ROWS: u64 = 12_000_000;
/// Traces whose shape is looked at in one go.
const TRACES_AT_ONCE: usize = 20_000;

impl Engine {
    /// What each of these requests cost, by operation, with the heaviest `functions` of each.
    pub async fn endpoint_costs(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        profile_type: &ProfileType,
        requests: &Services,
        functions: usize,
    ) -> Result<EndpointCosts> {
        let range = self.affordable(tenant, snapshot, requests.steps.range());
        let query =
            FlameQuery { profile_type: profile_type.clone(), from: range.0, until: range.1, ..FlameQuery::default() };
        let mut costs = EndpointCosts { range, ..EndpointCosts::default() };
        let mut by_span = SpentBySpan { with_paths: functions > 0, ..SpentBySpan::default() };
        let mut add = |sample: &LinkedSample| {
            if let (Some(trace), Some(span)) = (sample.trace_id, sample.span_id) {
                by_span.add((trace, span), sample);
            }
            Ok(())
        };
        let linked = query.linked(SampleOwners::Everybody);
        let tables = self.visit_linked_samples(tenant, snapshot, &linked, &mut add).await?;
        costs.exactness = tables.exactness;
        // Requests without their spans are in no operation.
        let rejected = self.lake().rejected().between(tenant, range.0, range.1);
        costs.exactness.dropped = costs.exactness.dropped.saturating_add(rejected.spans);
        let mut traces: Vec<TraceId> = by_span.numbers.keys().map(|(trace, _)| *trace).collect();
        traces.sort_unstable();
        traces.dedup();
        let mut paths: HashMap<(Arc<str>, Arc<str>), HashMap<u64, i64>> = HashMap::new();
        for traces in traces.chunks(TRACES_AT_ONCE) {
            let spans = self.outlines(tenant, snapshot, traces, range).await?.answer;
            for trace in by_trace(&spans) {
                let request_of = requests_of(trace);
                let mut sampled = vec![false; trace.len()];
                for (at, span) in trace.iter().enumerate() {
                    let Some((spent, spent_paths)) = by_span.get((span.trace_id, span.span_id)) else { continue };
                    let Some(request) = request_of[at].map(|request| &trace[request]) else { continue };
                    let key = (Arc::clone(&request.service), Arc::clone(&request.name));
                    let cost = costs.endpoints.entry_ref(&key).or_default();
                    cost.value = cost.value.saturating_add(spent.value);
                    cost.value_by_step.resize(requests.steps.count(), 0);
                    let step = &mut cost.value_by_step[requests.steps.at(request.start)];
                    *step = step.saturating_add(spent.value);
                    cost.samples += spent.samples;
                    if let Some(request) = request_of[at] {
                        cost.sampled_requests += u64::from(!std::mem::replace(&mut sampled[request], true));
                    }
                    for (path, value) in spent_paths {
                        let sum: &mut i64 = paths.entry(key.clone()).or_default().entry(*path).or_default();
                        *sum = sum.saturating_add(*value);
                    }
                }
            }
        }
        if functions > 0 {
            let distinct: HashSet<u64> = paths.values().flat_map(HashMap::keys).copied().collect();
            let known = self.call_paths(tenant, snapshot, range, &tables.series, distinct).await?;
            costs.exactness.merge(&known.exactness());
            for (key, paths) in paths {
                costs.endpoints.entry(key).or_default().functions = heaviest_functions(&known, &paths, functions);
            }
        }
        // Every request counts, sampled or not: an endpoint that is cheap is cheap because most requests have no sample.
        let latest;
        let counted = if range == requests.steps.range() {
            requests
        } else {
            latest = self.services(tenant, range.0, range.1).await?;
            &latest
        };
        for (service, summary) in &counted.by_name {
            for (operation, statistics) in &summary.operations {
                let key = (Arc::from(service.as_str()), Arc::from(operation.as_str()));
                costs.endpoints.entry(key).or_default().requests = statistics.count();
            }
        }
        Ok(costs)
    }

    /// The last part of a time that has no more rows than can be looked at.
    fn affordable(&self, tenant: &TenantId, snapshot: &Snapshot, (from, until): (i64, i64)) -> (i64, i64) {
        let rows: u64 = [Table::Samples, Table::Spans]
            .into_iter()
            .flat_map(|table| snapshot.segments(tenant, table).iter().cloned().collect::<Vec<_>>())
            .filter(|segment| segment.overlaps(from, until))
            .map(|segment| {
                let length = segment.max_time.saturating_sub(segment.min_time).max(1) as f64;
                let inside = segment.max_time.min(until).saturating_sub(segment.min_time.max(from)).max(1) as f64;
                (segment.rows as f64 * (inside / length).min(1.0)) as u64
            })
            .sum();
        if rows <= MAX_ROWS {
            return (from, until);
        }
        let length = until.saturating_sub(from) as f64 * MAX_ROWS as f64 / rows as f64;
        (until.saturating_sub(length as i64), until)
    }
}

/// The functions at the ends of paths that have the most of their values.
fn heaviest_functions(known: &CallPaths, paths: &HashMap<u64, i64>, limit: usize) -> Vec<(String, i64)> {
    let mut functions: HashMap<&str, i64> = HashMap::new();
    for (path, value) in paths {
        let name = known.frames(*path).next().map_or("[unknown]", |frame| frame.function.as_ref());
        let sum = functions.entry(name).or_default();
        *sum = sum.saturating_add(*value);
    }
    let mut functions: Vec<(String, i64)> =
        functions.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    functions.sort_unstable_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    functions.truncate(limit);
    functions
}

/// What was measured in a span.
#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    value: i64,
    samples: u64,
}

/// What was measured in each span, and along which paths, if functions are asked for.
#[derive(Debug, Default)]
struct SpentBySpan {
    with_paths: bool,
    numbers: HashMap<(TraceId, SpanId), u32>,
    spent: Vec<Spent>,
    paths: Vec<Vec<(u64, i64)>>,
    /// The span of the sample before: samples of a span mostly follow each other.
    last: Option<((TraceId, SpanId), u32)>,
}

impl SpentBySpan {
    fn add(&mut self, span: (TraceId, SpanId), sample: &LinkedSample) {
        let number = match self.last {
            Some((last, number)) if last == span => number,
            _ => *self.numbers.entry(span).or_insert_with(|| {
                self.spent.push(Spent::default());
                if self.with_paths {
                    self.paths.push(Vec::new());
                }
                self.spent.len() as u32 - 1
            }),
        };
        self.last = Some((span, number));
        let spent = &mut self.spent[number as usize];
        spent.value = spent.value.saturating_add(sample.value);
        spent.samples += 1;
        if self.with_paths {
            self.paths[number as usize].push((sample.path, sample.value));
        }
    }

    fn get(&self, span: (TraceId, SpanId)) -> Option<(Spent, &[(u64, i64)])> {
        let number = *self.numbers.get(&span)? as usize;
        Some((self.spent[number], self.paths.get(number).map_or(&[][..], Vec::as_slice)))
    }
}

/// Whether a span answers somebody.
fn is_request(span: &SpanOutline) -> bool {
    matches!(span.kind, SpanKind::Server | SpanKind::Consumer) || span.parent_id.is_none()
}

/// For each span of a trace, the request that it is part of: itself or the nearest one above it in the same service.
fn requests_of(trace: &[SpanOutline]) -> Vec<Option<usize>> {
    let at: HashMap<SpanId, usize> = trace.iter().enumerate().map(|(index, span)| (span.span_id, index)).collect();
    let request = |start: usize| {
        let mut index = start;
        // As many steps as there are spans: parents may form a circle in a broken trace.
        for _ in 0..=trace.len() {
            if is_request(&trace[index]) {
                return Some(index);
            }
            let parent = trace[index].parent_id.and_then(|parent| at.get(&parent)).copied()?;
            if trace[parent].service != trace[start].service {
                return None;
            }
            index = parent;
        }
        None
    };
    (0..trace.len()).map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotspan_model::StatusCode;

    fn span(id: u8, parent: u8, service: &str, kind: SpanKind) -> SpanOutline {
        SpanOutline {
            trace_id: TraceId([1; 16]),
            span_id: SpanId([id; 8]),
            parent_id: (parent > 0).then_some(SpanId([parent; 8])),
            start: 0,
            duration: 1,
            service: Arc::from(service),
            name: Arc::from("operation"),
            kind,
            status: StatusCode::Unset,
            resource: Arc::from(""),
        }
    }

    /// Scenario: a request with inner spans that calls another service; a span whose parent is missing; a circle.
    /// Guarantee: each span belongs to the nearest request above it in its service, or to none; nothing hangs.
    #[test]
    fn spans_belong_to_requests() {
        let trace = [
            span(1, 0, "front", SpanKind::Server),
            span(2, 1, "front", SpanKind::Internal),
            span(3, 2, "front", SpanKind::Client),
            span(4, 3, "order", SpanKind::Server),
            span(5, 4, "order", SpanKind::Internal),
            span(6, 99, "order", SpanKind::Internal),
            span(7, 2, "order", SpanKind::Internal),
            span(8, 9, "order", SpanKind::Internal),
            span(9, 8, "order", SpanKind::Internal),
        ];
        assert_eq!(requests_of(&trace), [Some(0), Some(0), Some(0), Some(3), Some(3), None, None, None, None]);
    }
}
