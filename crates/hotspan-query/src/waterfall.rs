//! A trace in the order of a waterfall: each span behind the one that called it, siblings by start.
//!
//! A trace of hundreds of thousands of spans is some megabytes in this form, of which a page asks for a window.

use hashbrown::HashMap;
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::outline::SpanOutline;
use crate::told::Told;

/// A span and its place in a waterfall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSpan {
    /// The span.
    pub span: SpanOutline,
    /// How many spans are above it.
    pub depth: u32,
    /// How many of the spans that follow it called, itself or through others.
    pub descendants: u32,
}

/// A trace in the order of a waterfall.
#[derive(Debug, Clone, Default)]
pub struct Waterfall {
    /// The spans.
    pub spans: Vec<PlacedSpan>,
    /// What they rest on.
    pub exactness: Exactness,
}

impl Waterfall {
    /// From the first start to the last end.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let ends = self.spans.iter().map(|placed| placed.span.end());
        Some((self.spans.iter().map(|placed| placed.span.start).min()?, ends.max()?))
    }
}

/// Most spans that are put in order: what bounds the memory.
const MAX_SPANS: usize = 2_000_000;

impl Engine {
    /// The spans of a trace in the order of a waterfall; none if there is no such trace.
    pub async fn waterfall(&self, tenant: &TenantId, trace_id: TraceId) -> Result<Waterfall> {
        let whenever = (i64::MIN, i64::MAX);
        let Told { answer: spans, exactness } = self.outlines(tenant, &self.snapshot(), &[trace_id], whenever).await?;
        if spans.len() > MAX_SPANS {
            let message = format!("the trace has {} spans; at most {MAX_SPANS} are put in order", spans.len());
            return Err(QueryError::Limit(format!("{message} (limit: spans of a waterfall)")));
        }
        Ok(Waterfall { spans: depth_first(spans), exactness })
    }
}

/// Orders spans by depth first. A span whose parent is missing is a root; of spans that call each other in a circle,
/// the first is.
fn depth_first(spans: Vec<SpanOutline>) -> Vec<PlacedSpan> {
    let at: HashMap<SpanId, usize> = spans.iter().enumerate().map(|(at, span)| (span.span_id, at)).collect();
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut starts = Vec::new();
    for (child, span) in spans.iter().enumerate() {
        match span.parent_id.and_then(|parent| at.get(&parent).copied()).filter(|parent| *parent != child) {
            Some(parent) => children.entry(parent).or_default().push(child),
            None => starts.push(child),
        }
    }
    // What no root leads to is part of a circle.
    starts.extend(0..spans.len());
    let mut spans: Vec<Option<SpanOutline>> = spans.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(spans.len());
    for start in starts {
        let mut pending = vec![(start, 0)];
        while let Some((at, depth)) = pending.pop() {
            let Some(span) = spans[at].take() else { continue };
            ordered.push(PlacedSpan { span, depth, descendants: 0 });
            let own = children.get(&at).into_iter().flatten().rev();
            pending.extend(own.map(|child| (*child, depth + 1)));
        }
    }
    count_descendants(&mut ordered);
    ordered
}

fn count_descendants(ordered: &mut [PlacedSpan]) {
    let mut open: Vec<usize> = Vec::new();
    for at in 0..=ordered.len() {
        let depth = ordered.get(at).map_or(0, |placed| placed.depth);
        while let Some(last) = open.pop_if(|last| at == ordered.len() || ordered[*last].depth >= depth) {
            ordered[last].descendants = (at - last - 1) as u32;
        }
        open.push(at);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotspan_model::{SpanKind, StatusCode};

    use super::*;

    fn span(id: u8, parent: Option<u8>, start: i64) -> SpanOutline {
        SpanOutline {
            trace_id: TraceId([1; 16]),
            span_id: SpanId([id; 8]),
            parent_id: parent.map(|parent| SpanId([parent; 8])),
            start,
            duration: 1,
            service: Arc::from(""),
            name: Arc::from(""),
            kind: SpanKind::Internal,
            status: StatusCode::Unset,
            resource: Arc::from(""),
        }
    }

    /// Scenario: a tree, an orphan and a circle, by start. Guarantee: each span once, depths and counts as drawn.
    #[test]
    fn every_span_has_its_place() {
        let spans = vec![
            span(1, None, 1),
            span(2, Some(1), 2),
            span(3, Some(2), 3),
            span(4, Some(1), 4),
            span(9, Some(8), 9),
            span(6, Some(7), 20),
            span(7, Some(6), 21),
        ];
        let placed = depth_first(spans);
        let places: Vec<(u8, u32, u32)> =
            placed.iter().map(|placed| (placed.span.span_id.0[0], placed.depth, placed.descendants)).collect();
        assert_eq!(places, [(1, 0, 3), (2, 1, 1), (3, 2, 0), (4, 1, 0), (9, 0, 0), (6, 0, 1), (7, 1, 0)]);
        assert!(depth_first(Vec::new()).is_empty());
    }
}
