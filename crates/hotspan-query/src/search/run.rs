//! Search: the traces that match a query, most recent first.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use hashbrown::HashMap;
use hotspan_lake::segment::id_index::IdKind;
use hotspan_lake::table::HOUR;
use hotspan_lake::{ReadOptions, Segment, Snapshot, Table};
use hotspan_model::{SpanId, TenantId, TraceId};
use hotspan_traceql::{
    Program, ROOT_NOT_YET_RECEIVED, Search, SpanFilter, SpanSource, TraceFacts, TraceSource, TraceView, Value,
};

use super::binding::{BoundSpans, columns_of};
use super::gather::{gather, join, slices};
use crate::Engine;
use crate::error::{QueryError, Result};

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// Start of the time, in nanoseconds since 1970; a trace counts if one of its spans starts inside.
    pub from: i64,
    /// End of the time, not included.
    pub until: i64,
    /// How many traces to give at most.
    pub limit: usize,
    /// How many spans of a set to give at most.
    pub spans_per_set: usize,
}

/// Traces that match, most recent first, and what was looked at.
#[derive(Debug, Clone, Default)]
pub struct SearchAnswer {
    /// The traces.
    pub traces: Vec<FoundTrace>,
    /// Spans that were evaluated.
    pub inspected_spans: u64,
    /// Traces that were evaluated whole.
    pub inspected_traces: u64,
    /// Bytes of the segments that were opened.
    pub inspected_bytes: u64,
}

/// A trace that matches.
#[derive(Debug, Clone)]
pub struct FoundTrace {
    /// Its id.
    pub trace_id: TraceId,
    /// Service of its root span.
    pub root_service: String,
    /// Name of its root span.
    pub root_name: String,
    /// When it started.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
    /// What matched.
    pub spansets: Vec<FoundSpanset>,
    /// For each service, how many spans and how many of them failed.
    pub services: BTreeMap<String, (u32, u32)>,
}

/// Spans that match together.
#[derive(Debug, Clone)]
pub struct FoundSpanset {
    /// How many matched; `spans` may hold fewer.
    pub matched: usize,
    /// Values of the set as a whole, such as `count()`.
    pub attributes: Vec<(String, Value)>,
    /// The first of the spans.
    pub spans: Vec<FoundSpan>,
}

/// A span that matches.
#[derive(Debug, Clone)]
pub struct FoundSpan {
    /// Its id.
    pub span_id: SpanId,
    /// Its name.
    pub name: String,
    /// When it started.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
    /// What the query looked at or selected.
    pub attributes: Vec<(String, Value)>,
}

/// Spans of a trace may start this long before or after the time asked for and still be found with it.
const TRACE_REACH: i64 = HOUR;

impl Engine {
    /// The traces that match a query.
    pub async fn search(&self, tenant: &TenantId, program: &Program, query: &SearchQuery) -> Result<SearchAnswer> {
        let search = program
            .search()
            .ok_or_else(|| QueryError::Invalid("this is a metrics query; ask /api/metrics/query_range".to_owned()))?;
        let snapshot = self.snapshot();
        let mut answer = match search.span_filter() {
            Some(filter) => self.search_spans(tenant, &snapshot, program, search, filter, query).await?,
            None => self.search_traces(tenant, &snapshot, program, search, query).await?,
        };
        answer.traces.sort_by_key(|trace| (std::cmp::Reverse(trace.start), trace.trace_id));
        answer.traces.truncate(query.limit);
        Ok(answer)
    }

    /// Each span is judged alone: matching spans name the candidates, whose traces are then read whole.
    async fn search_spans(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        program: &Program,
        search: &Search,
        filter: &SpanFilter,
        query: &SearchQuery,
    ) -> Result<SearchAnswer> {
        let mut answer = SearchAnswer::default();
        let columns = columns_of(program.fields());
        let mut candidates = Candidates::new(query.limit);
        for segment in overlapping(snapshot, tenant, query.from, query.until) {
            answer.inspected_bytes += segment.bytes();
            let options = ReadOptions::columns(&columns).within("start_time", query.from, query.until);
            let mut stream = self.lake().reader().stream(&segment, options).await?;
            let mut matches = Vec::new();
            while let Some(batch) = stream.try_next().await? {
                let spans = BoundSpans::bind(batch, program.fields())?;
                answer.inspected_spans += spans.len() as u64;
                matches.clear();
                filter.select(&TraceView::of_batch(&spans), 0..spans.len(), &mut matches);
                for span in &matches {
                    candidates.add(spans.trace_id(*span as usize), spans.start_nanos(*span as usize));
                }
            }
        }
        let segments = overlapping(snapshot, tenant, reach_back(query.from), reach_on(query.until));
        for trace_id in candidates.most_recent() {
            if let Some(spans) = self.trace_spans(&segments, trace_id, program, &columns).await? {
                answer.inspected_traces += 1;
                answer.traces.extend(found(search, program, &spans, query));
            }
        }
        Ok(answer)
    }

    /// Traces are judged whole, a slice of the id space at a time.
    async fn search_traces(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        program: &Program,
        search: &Search,
        query: &SearchQuery,
    ) -> Result<SearchAnswer> {
        let mut answer = SearchAnswer::default();
        let segments = overlapping(snapshot, tenant, reach_back(query.from), reach_on(query.until));
        answer.inspected_bytes = segments.iter().map(|segment| segment.bytes()).sum();
        for slice in slices(&segments) {
            let Some(mut gathered) = gather(self.lake(), &segments, slice, program.fields()).await? else { continue };
            for rows in std::mem::take(&mut gathered.traces) {
                gathered.spans.show(rows);
                answer.inspected_traces += 1;
                answer.inspected_spans += gathered.spans.len() as u64;
                if program.prefilter().may_match(&gathered.spans) {
                    answer.traces.extend(found(search, program, &gathered.spans, query));
                }
            }
            if answer.traces.len() > 4 * query.limit.max(16) {
                answer.traces.sort_by_key(|trace| (std::cmp::Reverse(trace.start), trace.trace_id));
                answer.traces.truncate(query.limit);
            }
        }
        Ok(answer)
    }

    async fn trace_spans(
        &self,
        segments: &[Arc<Segment>],
        trace_id: TraceId,
        program: &Program,
        columns: &[String],
    ) -> Result<Option<BoundSpans>> {
        let options = ReadOptions::columns(columns);
        let mut batches = Vec::new();
        for segment in segments {
            batches.extend(self.lake().reader().rows_with_id(segment, IdKind::Trace, &trace_id.0, &options).await?);
        }
        let Some(joined) = join(batches)? else { return Ok(None) };
        let traces = super::gather::group_by_trace(&joined)?;
        let mut spans = BoundSpans::bind(joined, program.fields())?;
        spans.show(traces.into_iter().next().unwrap_or_default());
        Ok(Some(spans))
    }
}

/// The segments of spans that a time touches.
pub(crate) fn overlapping(snapshot: &Snapshot, tenant: &TenantId, from: i64, until: i64) -> Vec<Arc<Segment>> {
    let segments = snapshot.segments(tenant, Table::Spans);
    segments.iter().filter(|segment| segment.overlaps(from, until)).cloned().collect()
}

pub(crate) fn reach_back(from: i64) -> i64 {
    from.saturating_sub(TRACE_REACH)
}

pub(crate) fn reach_on(until: i64) -> i64 {
    until.saturating_add(TRACE_REACH)
}

/// The traces with the most recent matching spans; older ones are forgotten when there are too many.
struct Candidates {
    starts: HashMap<TraceId, i64>,
    wanted: usize,
}

impl Candidates {
    fn new(limit: usize) -> Self {
        // A trace starts before its matching spans, so the order may still change a little: keep some more.
        Self { starts: HashMap::new(), wanted: limit.saturating_mul(2).saturating_add(100) }
    }

    fn add(&mut self, trace_id: TraceId, start: i64) {
        let earliest = self.starts.entry(trace_id).or_insert(start);
        *earliest = start.min(*earliest);
        if self.starts.len() > 4 * self.wanted {
            let kept = self.most_recent();
            self.starts = kept.into_iter().map(|id| (id, self.starts[&id])).collect();
        }
    }

    fn most_recent(&self) -> Vec<TraceId> {
        let mut ids: Vec<(i64, TraceId)> = self.starts.iter().map(|(id, start)| (*start, *id)).collect();
        ids.sort_unstable_by_key(|(start, id)| (std::cmp::Reverse(*start), *id));
        ids.truncate(self.wanted);
        ids.into_iter().map(|(_, id)| id).collect()
    }
}

/// What a trace gives, if it matches and has a span in the time asked for.
fn found(search: &Search, program: &Program, spans: &BoundSpans, query: &SearchQuery) -> Option<FoundTrace> {
    let in_time = |span: usize| (query.from..query.until).contains(&spans.start_nanos(span));
    if !(0..spans.len()).any(in_time) {
        return None;
    }
    let view = program.view(spans);
    let spansets = search.evaluate(&view);
    if spansets.is_empty() {
        return None;
    }
    let facts = TraceFacts::of(spans);
    let root_text = |text: fn(&BoundSpans, usize) -> &str| {
        facts.root.map_or(ROOT_NOT_YET_RECEIVED.to_owned(), |root| text(spans, root).to_owned())
    };
    let mut services: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for span in 0..spans.len() {
        let counts = services.entry(spans.service_name(span).to_owned()).or_default();
        counts.0 += 1;
        counts.1 += u32::from(spans.is_error(span));
    }
    let spansets = spansets.into_iter().map(|set| FoundSpanset {
        matched: set.spans.len(),
        attributes: set.attributes,
        spans: set
            .spans
            .iter()
            .take(query.spans_per_set)
            .map(|span| {
                let span = *span as usize;
                FoundSpan {
                    span_id: spans.span_id(span),
                    name: spans.name(span).to_owned(),
                    start: spans.start_nanos(span),
                    duration: spans.duration_nanos(span),
                    attributes: search.span_attributes(&view, span),
                }
            })
            .collect(),
    });
    Some(FoundTrace {
        trace_id: spans.trace_id(0),
        root_service: root_text(|spans, root| spans.service_name(root)),
        root_name: root_text(|spans, root| spans.name(root)),
        start: facts.start_nanos,
        duration: facts.duration_nanos,
        spansets: spansets.collect(),
        services,
    })
}
