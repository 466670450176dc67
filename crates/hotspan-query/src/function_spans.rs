//! Code to traces: which spans, operations and services spend how much in a function.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::Snapshot;
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, ProfileType, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::linked::LinkedSample;
use crate::outline::SpanOutline;
use crate::owners::SampleOwners;
use crate::symbols::Node;

/// What a span spends in a function.
#[derive(Debug, Clone)]
pub struct FunctionSpan {
    /// The span.
    pub outline: SpanOutline,
    /// What was measured in the function and below it.
    pub value: i64,
    /// How many samples that is.
    pub samples: u64,
}

/// What the spans of an operation spend in a function.
#[derive(Debug, Clone)]
pub struct FunctionOperation {
    /// The service.
    pub service: Arc<str>,
    /// The operation.
    pub operation: Arc<str>,
    /// What was measured in the function and below it.
    pub value: i64,
    /// How many samples that is.
    pub samples: u64,
    /// How many spans ran the function while a sample was taken.
    pub spans: u64,
    /// Traces that spend the most in it, the first the most.
    pub traces: Vec<TraceId>,
}

/// Who spends how much in a function.
#[derive(Debug, Clone, Default)]
pub struct FunctionSpans {
    /// Functions that match, as stored.
    pub functions: Vec<String>,
    /// Operations, those that spend the most first.
    pub operations: Vec<FunctionOperation>,
    /// Spans, those that spend the most first.
    pub spans: Vec<FunctionSpan>,
    /// How many spans there are.
    pub span_count: u64,
    /// What was measured in the function and below it, in spans and outside.
    pub value: i64,
    /// The part of it that belongs to no span.
    pub unlinked_value: i64,
    /// Spans that samples name and that are not stored, so that nobody knows their operations.
    pub unknown_spans: u64,
    /// The part of the value that belongs to them.
    pub unknown_value: i64,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// Example traces of an operation.
const EXAMPLES: usize = 5;
/// Spans of which more is looked up than their ids: the most expensive ones. Operations are named from these.
const MAX_SPANS: usize = 100_000;

/// A span, and the value and samples that it spent in a function.
type SpanCost = ((TraceId, SpanId), (i64, u64));

impl Engine {
    /// Who spends how much in the functions that `is_wanted` accepts, in `from..until`; the `limit` most expensive spans.
    #[expect(clippy::too_many_arguments, reason = "a question has this many sides")]
    pub async fn function_spans(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        is_wanted: &(dyn Fn(&str) -> bool + Sync),
        profile_type: &ProfileType,
        selector: &Selector,
        (from, until): (i64, i64),
        limit: usize,
    ) -> Result<FunctionSpans> {
        let query = FlameQuery {
            profile_type: profile_type.clone(),
            selector: selector.clone(),
            from,
            until,
            ..FlameQuery::default()
        };
        // Which paths lead through the function: rollups name every path of the time.
        let sums = self.path_sums(tenant, snapshot, &query).await?;
        // The function was looked for in all samples of the time, whether spans ran it or not.
        let coverage = sums.exactness.coverage;
        let nowhere = Exactness { samples: 0, ..sums.exactness };
        let mut found = FunctionSpans { exactness: nowhere, ..FunctionSpans::default() };
        let mut wanted: HashSet<u64> = HashSet::new();
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        for (symbols, values) in sums.symbols.services().zip(&sums.values) {
            let through = symbols.places_through(is_wanted);
            for (node, value) in values.iter().enumerate().filter(|(_, value)| **value != 0) {
                let place = symbols.place_of(node as Node);
                if through[place as usize] {
                    names.extend(symbols.functions_to(place).filter(|name| is_wanted(name)).cloned());
                    wanted.insert(symbols.path_of(node as Node));
                    found.value = found.value.saturating_add(*value);
                }
            }
        }
        found.functions = names.iter().map(|name| name.as_ref().to_owned()).collect();
        if wanted.is_empty() {
            return Ok(found);
        }
        let mut by_span: HashMap<(TraceId, SpanId), (i64, u64)> = HashMap::new();
        let mut linked = 0i64;
        let mut add = |sample: &LinkedSample| {
            if !wanted.contains(&sample.path) {
                return Ok(());
            }
            let (Some(trace), Some(span)) = (sample.trace_id, sample.span_id) else { return Ok(()) };
            linked = linked.saturating_add(sample.value);
            let sum = by_span.entry((trace, span)).or_default();
            *sum = (sum.0.saturating_add(sample.value), sum.1 + 1);
            Ok(())
        };
        let linked_query = query.linked(SampleOwners::Everybody);
        let tables = self.visit_linked_samples(tenant, snapshot, &linked_query, &mut add).await?;
        found.exactness = Exactness { coverage, ..tables.exactness };
        // Samples whose span was rejected are in no operation.
        let rejected = self.lake().rejected().between(tenant, from, until);
        found.exactness.dropped = found.exactness.dropped.saturating_add(rejected.spans);
        found.exactness.samples = by_span.values().map(|(_, samples)| samples).sum();
        found.exactness.linked_samples = found.exactness.samples;
        found.exactness.spans = by_span.len() as u64;
        found.span_count = by_span.len() as u64;
        found.unlinked_value = found.value.saturating_sub(linked);
        let mut heaviest: Vec<((TraceId, SpanId), (i64, u64))> = by_span.into_iter().collect();
        heaviest.sort_unstable_by_key(|(id, (value, _))| (std::cmp::Reverse(*value), *id));
        heaviest.truncate(MAX_SPANS);
        self.name_spans(tenant, snapshot, (from, until), &heaviest, &mut found).await?;
        found.spans.truncate(limit);
        Ok(found)
    }

    /// Looks up what spans are called, and sums them up by operation.
    async fn name_spans(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        range: (i64, i64),
        heaviest: &[SpanCost],
        found: &mut FunctionSpans,
    ) -> Result<()> {
        let mut traces: Vec<TraceId> = heaviest.iter().map(|((trace, _), _)| *trace).collect();
        traces.sort_unstable();
        traces.dedup();
        let outlines = self.outlines(tenant, snapshot, &traces, range).await?.answer;
        let known: HashMap<(TraceId, SpanId), &SpanOutline> =
            outlines.iter().map(|span| ((span.trace_id, span.span_id), span)).collect();
        let mut operations: HashMap<(Arc<str>, Arc<str>), FunctionOperation> = HashMap::new();
        for (id, (value, samples)) in heaviest {
            let Some(outline) = known.get(id) else {
                found.unknown_spans += 1;
                found.unknown_value = found.unknown_value.saturating_add(*value);
                continue;
            };
            let key = (Arc::clone(&outline.service), Arc::clone(&outline.name));
            let operation = operations.entry(key).or_insert_with(|| FunctionOperation {
                service: Arc::clone(&outline.service),
                operation: Arc::clone(&outline.name),
                value: 0,
                samples: 0,
                spans: 0,
                traces: Vec::new(),
            });
            operation.value = operation.value.saturating_add(*value);
            operation.samples += samples;
            operation.spans += 1;
            if operation.traces.len() < EXAMPLES && !operation.traces.contains(&id.0) {
                operation.traces.push(id.0);
            }
            found.spans.push(FunctionSpan { outline: (*outline).clone(), value: *value, samples: *samples });
        }
        found.operations = operations.into_values().collect();
        found.operations.sort_by(|a, b| {
            b.value.cmp(&a.value).then_with(|| (&a.service, &a.operation).cmp(&(&b.service, &b.operation)))
        });
        Ok(())
    }
}
