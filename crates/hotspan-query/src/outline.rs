//! The shapes of many traces at once: who called whom, when and where, without attributes.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::{Exactness, SpanId, SpanKind, StatusCode, TenantId, TraceId};

use crate::Engine;
use crate::by_text::ByText;
use crate::error::Result;
use crate::process::united_length;
use crate::search::{reach_back, reach_on};
use crate::side_by_side::side_by_side;
use crate::told::Told;

/// A span of a trace, as far as its place in the trace goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanOutline {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// The span that called it.
    pub parent_id: Option<SpanId>,
    /// Start in nanoseconds since 1970.
    pub start: i64,
    /// Length in nanoseconds; negative when a clock jumped.
    pub duration: i64,
    /// The service it belongs to.
    pub service: Arc<str>,
    /// Operation name.
    pub name: Arc<str>,
    /// Role in a call.
    pub kind: SpanKind,
    /// Outcome.
    pub status: StatusCode,
    /// The resource, as JSON.
    pub resource: Arc<str>,
}

impl SpanOutline {
    /// When it ended; not before it started.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration.max(0))
    }
}

const COLUMNS: [&str; 10] = [
    "trace_id",
    "span_id",
    "parent_span_id",
    "start_time",
    "duration",
    "service",
    "name",
    "kind",
    "status",
    "resource",
];

impl Engine {
    /// The spans of these traces by trace and start, each once, as far as they start within an hour of `from..until`.
    pub async fn outlines(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        traces: &[TraceId],
        (from, until): (i64, i64),
    ) -> Result<Told<Vec<SpanOutline>>> {
        let ids = Arc::new(IdSet::traces(traces.iter().copied()));
        let range = (reach_back(from), reach_on(until));
        let options = ReadOptions::columns(&COLUMNS);
        let mut read = Exactness::default();
        let jobs = self.id_jobs(tenant, snapshot, Table::Spans, &ids, range, &options, &mut read).await?;
        let mut spans = Vec::new();
        let mut texts = SharedTexts::default();
        side_by_side(jobs, &mut |batch| read_outlines(&batch, &mut texts, &mut spans)).await?;
        spans.sort_unstable_by_key(|span| (span.trace_id, span.start, span.span_id));
        // A span that was sent twice, and came so late that ingest no longer knew it, counts once.
        let mut seen: HashSet<SpanId> = HashSet::new();
        let mut trace: Option<TraceId> = None;
        spans.retain(|span| {
            if trace != Some(span.trace_id) {
                trace = Some(span.trace_id);
                seen.clear();
            }
            seen.insert(span.span_id)
        });
        let mut exactness = self.exactness_of_spans(tenant, spans.len() as u64, extent(&spans).or(Some((from, until))));
        exactness.merge(&read);
        Ok(Told { answer: spans, exactness })
    }
}

/// Texts that many rows share, each kept once.
#[derive(Debug, Default)]
pub(crate) struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&new));
        new
    }
}

fn read_outlines(batch: &RecordBatch, texts: &mut SharedTexts, spans: &mut Vec<SpanOutline>) -> Result<()> {
    let trace_ids = arrays::ids(batch, "trace_id")?;
    let span_ids = arrays::ids(batch, "span_id")?;
    let parent_ids = arrays::ids(batch, "parent_span_id")?;
    let starts = arrays::times(batch, "start_time")?.values();
    let durations = arrays::int64s(batch, "duration")?.values();
    let mut services = ByText::new(arrays::texts(batch, "service")?);
    let mut names = ByText::new(arrays::texts(batch, "name")?);
    let mut resources = ByText::new(arrays::texts(batch, "resource")?);
    let kinds = arrays::int8s(batch, "kind")?.values();
    let statuses = arrays::int8s(batch, "status")?.values();
    for row in 0..batch.num_rows() {
        spans.push(SpanOutline {
            trace_id: TraceId(arrays::id_at(trace_ids, row)),
            span_id: SpanId(arrays::id_at(span_ids, row)),
            parent_id: parent_ids.is_valid(row).then(|| SpanId(arrays::id_at(parent_ids, row))),
            start: starts[row],
            duration: durations[row],
            service: services.get(row, |text| texts.share(text)),
            name: names.get(row, |text| texts.share(text)),
            kind: SpanKind::from_number(kinds[row]),
            status: StatusCode::from_number(statuses[row]),
            resource: resources.get(row, |text| texts.share(text)),
        });
    }
    Ok(())
}

/// From the first start to the last end.
pub fn extent(spans: &[SpanOutline]) -> Option<(i64, i64)> {
    Some((spans.iter().map(|span| span.start).min()?, spans.iter().map(SpanOutline::end).max()?))
}

/// The spans of each trace, of spans that are sorted by trace.
pub fn by_trace(spans: &[SpanOutline]) -> impl Iterator<Item = &[SpanOutline]> {
    spans.chunk_by(|a, b| a.trace_id == b.trace_id)
}

/// How long traces took, of spans that are sorted by trace: the times in which one of its spans ran, of each.
pub fn time_of_traces(spans: &[SpanOutline]) -> i64 {
    let times = |trace: &[SpanOutline]| trace.iter().map(|span| (span.start, span.end())).collect();
    by_trace(spans).map(|trace| united_length(times(trace))).fold(0, i64::saturating_add)
}

/// The children of each span of one trace, as indexes.
pub fn children_of(trace: &[SpanOutline]) -> Vec<Vec<usize>> {
    let at: HashMap<SpanId, usize> = trace.iter().enumerate().map(|(index, span)| (span.span_id, index)).collect();
    let mut children = vec![Vec::new(); trace.len()];
    for (index, span) in trace.iter().enumerate() {
        if let Some(parent) = span.parent_id.and_then(|parent| at.get(&parent))
            && *parent != index
        {
            children[*parent].push(index);
        }
    }
    children
}

/// Marks the spans below the marked ones.
pub(crate) fn mark_descendants(children: &[Vec<usize>], marked: &mut [bool]) {
    let mut pending: Vec<usize> = (0..marked.len()).filter(|index| marked[*index]).collect();
    while let Some(index) = pending.pop() {
        for child in &children[index] {
            // What is marked has been walked: a circle of parents in a broken trace ends here.
            if !marked[*child] {
                marked[*child] = true;
                pending.push(*child);
            }
        }
    }
}
