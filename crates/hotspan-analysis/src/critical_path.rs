//! The critical path: the stretches of time in which a request would have ended sooner had its span worked faster.
//!
//! From the end of the span in question backwards, always into the child that ended last before the current point;
//! a span's own stretches are those where no child on the path runs. Children are clipped to their callers, so that
//! the stretches of all spans together are exactly the duration, and never more. A child that goes on after its caller
//! has ended was not waited for, and is not on the path.

use hotspan_model::SpanKind;

use crate::request::{Request, RequestSpan};

/// A stretch of the critical path that is one span's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the span.
    pub span: u32,
    /// Start.
    pub from: i64,
    /// End.
    pub to: i64,
}

/// The stretches of a request's critical path, from its end to its start.
pub fn critical_path(request: &Request) -> Vec<Stretch> {
    let spans = &request.spans;
    let mut stretches = Vec::new();
    if spans.is_empty() {
        return stretches;
    }
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); spans.len()];
    for (index, span) in spans.iter().enumerate().skip(1) {
        if let Some(parent) = span.parent
            && is_waited_for(&spans[parent as usize], span)
        {
            children[parent as usize].push(index as u32);
        }
    }
    for siblings in &mut children {
        // The order of equal ends must not depend on how the spans were stored (R3).
        siblings.sort_unstable_by_key(|child| {
            let span = &spans[*child as usize];
            (std::cmp::Reverse(span.end), std::cmp::Reverse(span.start), span.span_id)
        });
    }
    let mut pending = vec![(0u32, spans[0].start, spans[0].end.max(spans[0].start))];
    while let Some((span, from, to)) = pending.pop() {
        let mut point = to;
        for child in &children[span as usize] {
            let (start, end) = (spans[*child as usize].start, spans[*child as usize].end);
            let (start, end) = (start.max(from), end.min(point));
            if start >= end {
                continue;
            }
            if end < point {
                stretches.push(Stretch { span, from: end, to: point });
            }
            pending.push((*child, start, end));
            point = start;
        }
        if from < point {
            stretches.push(Stretch { span, from, to: point });
        }
    }
    stretches.sort_unstable_by_key(|stretch| (std::cmp::Reverse(stretch.to), stretch.from));
    stretches
}

/// Clocks are read one after the other, and not always in order.
const LEAST_OVERTIME: i64 = 1_000_000;

fn is_waited_for(caller: &RequestSpan, child: &RequestSpan) -> bool {
    // A call is answered before it ends, whatever the clocks of the two sides say.
    let is_call = caller.role == SpanKind::Client && child.role == SpanKind::Server;
    let overtime = child.end.saturating_sub(caller.end);
    is_call || overtime <= LEAST_OVERTIME.max((caller.end - caller.start) / 100)
}
