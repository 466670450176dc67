//! A source together with what was computed about it.

use std::cell::OnceCell;

use crate::ast::Intrinsic;
use crate::eval::TraceShape;
use crate::plan::Needs;
use crate::source::{SpanSource, TraceSource};
use crate::value::FieldValue;

/// What an absent root is called in a search result, as Tempo does.
pub const ROOT_NOT_YET_RECEIVED: &str = "<root span not yet received>";

/// A trace (or a batch of spans) ready to be asked.
#[derive(Debug)]
pub struct TraceView<'a, S> {
    pub(crate) source: &'a S,
    /// Built when first asked for: most traces fail a filter before anyone asks.
    shape: OnceCell<TraceShape>,
    build_shape: Option<fn(&S) -> TraceShape>,
    trace: Option<TraceFacts>,
    root_name: &'a str,
    root_service: &'a str,
}

/// What a trace is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceFacts {
    /// The earliest span without a parent id.
    pub root: Option<usize>,
    /// Earliest start, in nanoseconds since 1970.
    pub start_nanos: i64,
    /// From the earliest start to the latest end.
    pub duration_nanos: i64,
}

impl TraceFacts {
    /// Looks at every span once.
    pub fn of<S: TraceSource>(source: &S) -> Self {
        let spans = 0..source.span_count();
        let start = spans.clone().map(|span| source.start_nanos(span)).min().unwrap_or(0);
        let end = spans
            .clone()
            .map(|span| source.start_nanos(span).saturating_add(source.duration_nanos(span).max(0)))
            .max()
            .unwrap_or(0);
        let root = spans
            .filter(|span| source.parent_id(*span).is_none())
            .min_by_key(|span| (source.start_nanos(*span), source.span_id(*span)));
        Self { root, start_nanos: start, duration_nanos: end.saturating_sub(start) }
    }
}

impl<'a, S: SpanSource> TraceView<'a, S> {
    /// A batch of spans of any traces, for queries that look at one span at a time.
    pub fn of_batch(source: &'a S) -> Self {
        Self { source, shape: OnceCell::new(), build_shape: None, trace: None, root_name: "", root_service: "" }
    }

    /// The tree, if the query needed it.
    pub fn shape(&self) -> Option<&TraceShape> {
        self.build_shape.map(|build| self.shape.get_or_init(|| build(self.source)))
    }

    /// A field that follows from the trace as a whole.
    pub(crate) fn derived(&self, span: usize, intrinsic: Intrinsic) -> FieldValue<'_> {
        let is_structural =
            !matches!(intrinsic, Intrinsic::TraceDuration | Intrinsic::RootName | Intrinsic::RootService);
        let shape = if is_structural { self.shape() } else { None };
        let number = |of: fn(&TraceShape, usize) -> u32| {
            shape.map_or(FieldValue::Nil, |shape| FieldValue::Int(i64::from(of(shape, span))))
        };
        match intrinsic {
            Intrinsic::NestedSetLeft => number(TraceShape::left),
            Intrinsic::NestedSetRight => number(TraceShape::right),
            Intrinsic::ChildCount => number(TraceShape::child_count),
            Intrinsic::NestedSetParent => shape.map_or(FieldValue::Nil, |shape| {
                FieldValue::Int(shape.parent(span).map_or(-1, |parent| i64::from(shape.left(parent))))
            }),
            Intrinsic::Parent => match self.parent(span) {
                Some(_) => FieldValue::Bool(true),
                None => FieldValue::Nil,
            },
            Intrinsic::TraceDuration => {
                self.trace.map_or(FieldValue::Nil, |trace| FieldValue::Duration(trace.duration_nanos))
            }
            Intrinsic::RootName => FieldValue::Str(self.root_name),
            Intrinsic::RootService => FieldValue::Str(self.root_service),
            _ => FieldValue::Nil,
        }
    }

    #[inline]
    pub(crate) fn parent(&self, span: usize) -> Option<usize> {
        self.shape().and_then(|shape| shape.parent(span))
    }
}

impl<'a, S: TraceSource> TraceView<'a, S> {
    /// A whole trace, with as much computed about it as the query needs.
    pub fn of_trace(source: &'a S, needs: Needs) -> Self {
        let build_shape = needs.structure.then_some(TraceShape::of::<S> as fn(&S) -> TraceShape);
        let trace = needs.trace_facts.then(|| TraceFacts::of(source));
        let root = trace.and_then(|trace| trace.root);
        let root_name = root.map_or("", |root| source.name(root));
        let root_service = root.map_or("", |root| source.service_name(root));
        Self { source, shape: OnceCell::new(), build_shape, trace, root_name, root_service }
    }
}
