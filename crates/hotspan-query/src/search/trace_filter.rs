//! Which spans of one trace a query keeps, with as much of the tree around them as is asked for.

use std::sync::Arc;

use hashbrown::HashSet;
use hotspan_lake::{IdSet, Table};
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};
use hotspan_traceql::{Program, SpanSource, TraceShape, TraceSource};

use super::binding::BoundSpans;
use super::gather::{group_by_trace, join};
use super::query_columns::columns_of;
use crate::Engine;
use crate::error::{QueryError, Result};

/// A query over the spans of one trace.
#[derive(Debug, Clone)]
pub struct TraceFilter {
    /// A search: the spans of all its spansets match.
    pub program: Arc<Program>,
    /// How many generations above a match are kept; none means all of them.
    pub ancestors: Option<usize>,
    /// How many generations below a match are kept; none means all of them.
    pub descendants: Option<usize>,
}

/// What is left of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptSpans {
    /// The spans that are kept.
    pub spans: HashSet<SpanId>,
    /// How many are not.
    pub left_out: usize,
    /// What was looked at.
    pub exactness: Exactness,
}

impl Engine {
    /// The spans of a trace that a filter keeps; none at all if there is no such trace.
    pub async fn kept_spans(&self, tenant: &TenantId, trace_id: TraceId, filter: &TraceFilter) -> Result<KeptSpans> {
        let TraceFilter { program, .. } = filter;
        let search = program
            .search()
            .filter(|_| program.sink().is_none())
            .ok_or_else(|| QueryError::Invalid("a trace is filtered by a search such as { status = error }".into()))?;
        let snapshot = self.snapshot();
        let (ids, columns) = (IdSet::traces([trace_id]), columns_of(program.fields()));
        let reader = self.lake().reader();
        let mut batches = Vec::new();
        for segment in snapshot.segments(tenant, Table::Spans).iter() {
            let rows = reader.trace_rows(segment, &ids).await?;
            batches.extend(reader.rows(segment, &rows, &columns).await?);
        }
        let Some(joined) = join(batches)? else { return Ok(KeptSpans::default()) };
        let mut traces = group_by_trace(&joined)?;
        let mut spans = BoundSpans::bind(joined, program.fields())?;
        let Some(rows) = traces.pop() else { return Ok(KeptSpans::default()) };
        spans.show(rows);
        let starts = || (0..spans.span_count()).map(|span| spans.start_nanos(span));
        let range = (starts().min().unwrap_or(0), starts().max().unwrap_or(0).saturating_add(1));
        let profiles = self.profile_fields(tenant, &snapshot, program.fields(), range).await?;
        let spans = spans.with_profiles(profiles.as_ref());
        let sets = search.evaluate(&program.view(&spans));
        let matched = sets.iter().flat_map(|set| set.spans.iter().map(|span| *span as usize));
        let kept = filter.with_family(&TraceShape::of(&spans), matched, spans.span_count());
        let left_out = kept.iter().filter(|kept| !**kept).count();
        let ids = (0..kept.len()).filter(|span| kept[*span]).map(|span| spans.span_id(span));
        let exactness = self.exactness_of_search(tenant, range, kept.len() as u64, profiles.as_deref());
        Ok(KeptSpans { spans: ids.collect(), left_out, exactness })
    }
}

impl TraceFilter {
    /// Marks the spans that match, and those above and below them that are near enough.
    fn with_family(&self, shape: &TraceShape, matched: impl Iterator<Item = usize>, count: usize) -> Vec<bool> {
        // How many generations a span is away from its nearest match, upwards and downwards.
        let (mut above, mut below) = (vec![usize::MAX; count], vec![usize::MAX; count]);
        for span in matched {
            (above[span], below[span]) = (0, 0);
        }
        // A parent has a lower number than its children: one pass in each direction reaches everybody.
        let mut by_depth: Vec<usize> = (0..count).collect();
        by_depth.sort_unstable_by_key(|span| shape.left(*span));
        for span in by_depth.iter().rev().copied() {
            if let Some(parent) = shape.parent(span) {
                above[parent] = above[parent].min(above[span].saturating_add(1));
            }
        }
        for span in by_depth {
            if let Some(parent) = shape.parent(span) {
                below[span] = below[span].min(below[parent].saturating_add(1));
            }
        }
        let near = |distance: usize, most: Option<usize>| distance <= most.unwrap_or(usize::MAX - 1);
        (0..count).map(|span| near(above[span], self.ancestors) || near(below[span], self.descendants)).collect()
    }
}

#[cfg(test)]
mod tests {
    use hotspan_traceql::memory::{MemorySpan, MemoryTrace};

    use super::*;

    /// Scenario: a trace with two branches, of which a span in the middle of one matches, kept with some or all of
    /// the generations above and below. Guarantee: exactly those spans, and never the other branch.
    #[test]
    fn families() {
        let span = |id: u8, parent: u8| MemorySpan {
            id: SpanId([id; 8]),
            parent_id: (parent > 0).then_some(SpanId([parent; 8])),
            start_nanos: i64::from(id),
            ..MemorySpan::default()
        };
        // 1 -> 2 -> 3 -> 4 -> 5, and 1 -> 6.
        let spans = vec![span(1, 0), span(2, 1), span(3, 2), span(4, 3), span(5, 4), span(6, 1)];
        let trace = MemoryTrace { spans, ..MemoryTrace::default() };
        let program = Arc::new(Program::new("{ }").unwrap());
        let shape = TraceShape::of(&trace.bind(program.fields()));
        let kept = |ancestors, descendants| {
            let filter = TraceFilter { program: Arc::clone(&program), ancestors, descendants };
            let kept = filter.with_family(&shape, [2].into_iter(), 6);
            (1..=6).filter(|number| kept[number - 1]).collect::<Vec<_>>()
        };
        assert_eq!(kept(Some(0), Some(0)), [3]);
        assert_eq!(kept(Some(1), Some(0)), [2, 3]);
        assert_eq!(kept(None, Some(0)), [1, 2, 3]);
        assert_eq!(kept(Some(0), Some(1)), [3, 4]);
        assert_eq!(kept(None, None), [1, 2, 3, 4, 5]);
        let nothing = TraceFilter { program: Arc::clone(&program), ancestors: None, descendants: None };
        assert_eq!(nothing.with_family(&shape, std::iter::empty(), 6), [false; 6]);
    }
}
