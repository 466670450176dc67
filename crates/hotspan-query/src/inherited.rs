//! Inherited links: a sample that names the local root of its service belongs to the span below it that ran then.
//!
//! Many profilers label only the span by which a request enters a service. Its children are then found by time, and by
//! thread where both sides say one. A sample goes down the tree as long as exactly one child can have run; where two
//! could, it stays with their parent.

use hashbrown::{HashMap, HashSet};
use hotspan_model::{LinkStrength, SpanId, TraceId};

use crate::linked::SampleThread;
use crate::outline::{SpanOutline, children_of};
use crate::owners::{Owner, SampleClaim};

/// The thread of each span that says one.
pub(crate) type SpanThreads = HashMap<(TraceId, SpanId), SampleThread>;

/// Spans whose samples count, and the trees by which samples of local roots come to them.
#[derive(Debug, Default)]
pub struct Inheritance {
    selected: HashSet<(TraceId, SpanId)>,
    trees: HashMap<(TraceId, SpanId), LocalTree>,
    /// The trace of each span, for samples that name none.
    trace_of: HashMap<SpanId, TraceId>,
}

/// What a service did for one request; the first span is the local root.
#[derive(Debug)]
struct LocalTree {
    spans: Vec<LocalSpan>,
}

#[derive(Debug)]
struct LocalSpan {
    span_id: SpanId,
    start: i64,
    end: i64,
    thread: Option<SampleThread>,
    children: Vec<usize>,
}

impl Inheritance {
    /// Whether nobody is asked for.
    pub fn is_empty(&self) -> bool {
        self.selected.is_empty()
    }

    /// Selects a span.
    pub(crate) fn select(&mut self, trace_id: TraceId, span_id: SpanId) {
        self.selected.insert((trace_id, span_id));
        self.trace_of.entry(span_id).or_insert(trace_id);
    }

    /// Adds the local trees of a trace whose services label only local roots and have a selected span.
    pub(crate) fn add_trees(&mut self, trace: &[SpanOutline], services: &HashSet<String>, threads: &SpanThreads) {
        let children = children_of(trace);
        let local_children = |parent: usize| {
            let same_service = |child: &&usize| trace[**child].service == trace[parent].service;
            children[parent].iter().filter(same_service).copied().collect::<Vec<usize>>()
        };
        for root in local_roots(trace, &children) {
            if !services.contains(trace[root].service.as_ref()) {
                continue;
            }
            let mut tree = LocalTree { spans: Vec::new() };
            // Places in the tree of spans that are in it: a circle of parents never gets in twice.
            let mut place: HashMap<usize, usize> = HashMap::from([(root, 0)]);
            let mut order = vec![root];
            let mut at = 0;
            while at < order.len() {
                let span = &trace[order[at]];
                let mut below = Vec::new();
                for child in local_children(order[at]) {
                    if !place.contains_key(&child) {
                        place.insert(child, order.len());
                        below.push(order.len());
                        order.push(child);
                    }
                }
                tree.spans.push(LocalSpan {
                    span_id: span.span_id,
                    start: span.start,
                    end: span.end(),
                    thread: threads.get(&(span.trace_id, span.span_id)).cloned(),
                    children: below,
                });
                at += 1;
            }
            let trace_id = trace[root].trace_id;
            if tree.spans.iter().any(|span| self.selected.contains(&(trace_id, span.span_id))) {
                self.trace_of.entry(trace[root].span_id).or_insert(trace_id);
                self.trees.insert((trace_id, trace[root].span_id), tree);
            }
        }
    }

    /// The spans that samples may name.
    pub(crate) fn named_spans(&self) -> impl Iterator<Item = SpanId> {
        self.trace_of.keys().copied()
    }

    /// The span that a sample belongs to, if it is selected.
    pub(crate) fn owner(&self, claim: &SampleClaim<'_>) -> Option<Owner> {
        let named = claim.span?;
        let trace = claim.trace.or_else(|| self.trace_of.get(&named).copied())?;
        let heir = match self.trees.get(&(trace, named)) {
            Some(tree) if claim.timed => tree.heir(claim),
            _ => named,
        };
        let link = if heir == named { LinkStrength::Exact } else { LinkStrength::Inherited };
        self.selected.contains(&(trace, heir)).then_some((Some(trace), Some(heir), link))
    }
}

impl LocalTree {
    fn heir(&self, claim: &SampleClaim<'_>) -> SpanId {
        let mut at = 0;
        loop {
            let span = &self.spans[at];
            let running = span.children.iter().copied().filter(|child| {
                let child = &self.spans[*child];
                child.start <= claim.time && claim.time < child.end
            });
            // A child that says another thread did not run this.
            let mut possible = running.filter(|child| {
                let thread = self.spans[*child].thread.as_ref();
                thread.is_none_or(|thread| may_be(thread, claim))
            });
            match (possible.next(), possible.next()) {
                (Some(only), None) => at = only,
                _ => return span.span_id,
            }
        }
    }
}

/// Whether a sample can have been taken on a thread: what both say must be equal.
pub(crate) fn may_be(thread: &SampleThread, claim: &SampleClaim<'_>) -> bool {
    match (thread.id, claim.thread_id) {
        (Some(id), Some(other)) => id == other,
        _ => thread.name.is_empty() || claim.thread_name.is_empty() || thread.name.as_ref() == claim.thread_name,
    }
}

/// The spans by which a request enters a service.
pub(crate) fn local_roots(trace: &[SpanOutline], children: &[Vec<usize>]) -> Vec<usize> {
    let mut is_local_child = vec![false; trace.len()];
    for (parent, children) in children.iter().enumerate() {
        for child in children {
            is_local_child[*child] |= trace[*child].service == trace[parent].service;
        }
    }
    (0..trace.len()).filter(|span| !is_local_child[*span]).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotspan_model::{SpanKind, StatusCode};

    use super::*;

    const TRACE: TraceId = TraceId([1; 16]);

    fn span(id: u8, parent: u8, service: &str, start: i64, end: i64) -> SpanOutline {
        SpanOutline {
            trace_id: TRACE,
            span_id: SpanId([id; 8]),
            parent_id: (parent > 0).then_some(SpanId([parent; 8])),
            start,
            duration: end - start,
            service: Arc::from(service),
            name: Arc::from("operation"),
            kind: SpanKind::Internal,
            status: StatusCode::Unset,
            resource: Arc::from(""),
        }
    }

    fn claim(span: u8, time: i64, thread: i64) -> SampleClaim<'static> {
        SampleClaim {
            series: 0,
            time,
            timed: true,
            trace: Some(TRACE),
            span: Some(SpanId([span; 8])),
            thread_id: Some(thread),
            thread_name: "",
        }
    }

    /// Scenario: a request with children one after another, two at once on threads of their own, a grandchild, and a
    /// call to another service. Guarantee: samples of the root go to the one span that can have run them; where two
    /// can, or the sample has no time, they stay; nothing goes to another service.
    #[test]
    fn samples_go_down_the_tree() {
        let trace = [
            span(1, 0, "a", 0, 100),
            span(2, 1, "a", 10, 40),
            span(3, 2, "a", 20, 30),
            span(4, 1, "a", 50, 90),
            span(5, 1, "a", 50, 90),
            span(6, 1, "b", 91, 95),
        ];
        let thread = |id: i64| SampleThread { id: Some(id), name: Arc::from("") };
        let threads: SpanThreads =
            [(4, 7), (5, 8)].into_iter().map(|(id, number)| ((TRACE, SpanId([id; 8])), thread(number))).collect();
        let mut inheritance = Inheritance::default();
        for id in 1..=6 {
            inheritance.select(TRACE, SpanId([id; 8]));
        }
        inheritance.add_trees(&trace, &HashSet::from(["a".to_owned()]), &threads);
        let owner = |claim: &SampleClaim<'_>| {
            let (_, span, link) = inheritance.owner(claim).unwrap();
            (span.unwrap().0[0], link)
        };
        assert_eq!(owner(&claim(1, 5, 1)), (1, LinkStrength::Exact));
        assert_eq!(owner(&claim(1, 15, 1)), (2, LinkStrength::Inherited));
        assert_eq!(owner(&claim(1, 25, 1)), (3, LinkStrength::Inherited));
        assert_eq!(owner(&claim(1, 60, 7)), (4, LinkStrength::Inherited));
        assert_eq!(owner(&claim(1, 60, 8)), (5, LinkStrength::Inherited));
        assert_eq!(owner(&claim(1, 60, 9)), (1, LinkStrength::Exact));
        let nobody_knows = SampleClaim { thread_id: None, ..claim(1, 60, 0) };
        assert_eq!(owner(&nobody_knows), (1, LinkStrength::Exact));
        assert_eq!(owner(&claim(1, 92, 1)), (1, LinkStrength::Exact));
        assert_eq!(owner(&claim(2, 25, 1)), (2, LinkStrength::Exact));
        assert_eq!(owner(&SampleClaim { timed: false, ..claim(1, 25, 1) }), (1, LinkStrength::Exact));
        assert_eq!(owner(&SampleClaim { trace: None, ..claim(1, 25, 1) }), (3, LinkStrength::Inherited));
    }

    /// Scenario: only a child is selected. Guarantee: it gets what it ran, and nothing of its parent's.
    #[test]
    fn only_the_selected_count() {
        let trace = [span(1, 0, "a", 0, 100), span(2, 1, "a", 10, 40)];
        let mut inheritance = Inheritance::default();
        inheritance.select(TRACE, SpanId([2; 8]));
        inheritance.add_trees(&trace, &HashSet::from(["a".to_owned()]), &SpanThreads::new());
        assert!(inheritance.owner(&claim(1, 15, 1)).is_some());
        assert!(inheritance.owner(&claim(1, 5, 1)).is_none());
        assert!(inheritance.named_spans().any(|span| span == SpanId([1; 8])));
    }
}
