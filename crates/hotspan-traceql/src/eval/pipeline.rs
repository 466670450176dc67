//! Pipelines over the spansets of one trace.

use hashbrown::HashMap;

use super::aggregate::aggregate;
use super::structural::{relate, union};
use crate::arithmetic::{calculate, negate};
use crate::ast::{AggregateOp, ArithmeticOp, CompareOp, Relation, StructuralForm};
use crate::eval::{Node, TraceView};
use crate::source::SpanSource;
use crate::value::{Value, compare};

/// Spans that belong together, with what was computed about them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spanset {
    /// Positions of the spans in the source, ascending.
    pub spans: Vec<u32>,
    /// Aggregates and groups, such as `count()` or `by(name)`, in the order computed.
    pub attributes: Vec<(String, Value)>,
}

impl Spanset {
    fn with_spans(&self, spans: Vec<u32>) -> Self {
        Self { spans, attributes: self.attributes.clone() }
    }

    fn set_attribute(&mut self, name: &str, value: Value) {
        match self.attributes.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((name.to_owned(), value)),
        }
    }
}

/// A pipeline ready to run.
#[derive(Debug, Clone)]
pub(crate) struct PipelineOp {
    pub(crate) stages: Vec<StageOp>,
}

#[derive(Debug, Clone)]
pub(crate) enum StageOp {
    Spans(SpansOp),
    By { label: String, expr: Node, by_element: bool },
    Coalesce,
}

#[derive(Debug, Clone)]
pub(crate) enum SpansOp {
    Every,
    Filter(Node),
    And(Box<SpansOp>, Box<SpansOp>),
    Or(Box<SpansOp>, Box<SpansOp>),
    Structural { relation: Relation, form: StructuralForm, lhs: Box<SpansOp>, rhs: Box<SpansOp> },
    Scalar { op: CompareOp, lhs: ScalarSide, rhs: ScalarSide },
    Pipeline(PipelineOp),
}

#[derive(Debug, Clone)]
pub(crate) struct ScalarSide {
    pub(crate) expr: ScalarOp,
    /// Under which name the value is shown; constants are not.
    pub(crate) label: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum ScalarOp {
    Constant(Value),
    Aggregate { op: AggregateOp, of: Option<Node> },
    Negate(Box<ScalarOp>),
    Arithmetic { op: ArithmeticOp, lhs: Box<ScalarOp>, rhs: Box<ScalarOp> },
    Pipeline { pipeline: PipelineOp, value: Box<ScalarOp> },
}

impl PipelineOp {
    /// The spansets that come out when all spans go in.
    pub(crate) fn run<S: SpanSource>(&self, view: &TraceView<'_, S>, span_count: usize) -> Vec<Spanset> {
        if span_count == 0 {
            return Vec::new();
        }
        // The first filter reads the source in order instead of a list of every span.
        if let Some(StageOp::Spans(SpansOp::Filter(node))) = self.stages.first() {
            let spans: Vec<u32> =
                (0..span_count).filter(|span| node.holds(view, *span)).map(|span| span as u32).collect();
            if spans.is_empty() {
                return Vec::new();
            }
            return run_stages(&self.stages[1..], view, vec![Spanset { spans, attributes: Vec::new() }]);
        }
        let every = Spanset { spans: (0..span_count as u32).collect(), attributes: Vec::new() };
        run_stages(&self.stages, view, vec![every])
    }
}

fn run_stages<S: SpanSource>(stages: &[StageOp], view: &TraceView<'_, S>, mut sets: Vec<Spanset>) -> Vec<Spanset> {
    for stage in stages {
        if sets.is_empty() {
            return sets;
        }
        sets = match stage {
            StageOp::Spans(spans) => sets.iter().flat_map(|set| spans.run(view, set)).collect(),
            StageOp::By { label, expr, by_element } => {
                sets.iter().flat_map(|set| group((label, expr, *by_element), view, set)).collect()
            }
            StageOp::Coalesce => vec![Spanset { spans: merged(&sets), attributes: Vec::new() }],
        };
    }
    sets
}

/// One spanset for each value, in the order the values first appear. A span with a set of values is in several.
fn group<S: SpanSource>(
    (label, expr, by_element): (&str, &Node, bool),
    view: &TraceView<'_, S>,
    set: &Spanset,
) -> Vec<Spanset> {
    let mut groups: Vec<Spanset> = Vec::new();
    let mut by_value: HashMap<Value, usize> = HashMap::new();
    for span in &set.spans {
        let values = match by_element {
            true => expr.distinct_values(view, *span as usize),
            false => vec![expr.owned_value(view, *span as usize)],
        };
        for value in values {
            let at = *by_value.entry(value).or_insert_with_key(|value| {
                let mut fresh = set.with_spans(Vec::new());
                fresh.set_attribute(label, value.clone());
                groups.push(fresh);
                groups.len() - 1
            });
            groups[at].spans.push(*span);
        }
    }
    groups
}

/// The spans of all sets, each once, ascending.
fn merged(sets: &[Spanset]) -> Vec<u32> {
    match sets {
        [only] => only.spans.clone(),
        sets => {
            let mut spans: Vec<u32> = sets.iter().flat_map(|set| set.spans.iter().copied()).collect();
            spans.sort_unstable();
            spans.dedup();
            spans
        }
    }
}

impl SpansOp {
    fn run<S: SpanSource>(&self, view: &TraceView<'_, S>, input: &Spanset) -> Vec<Spanset> {
        let result = match self {
            Self::Every => input.clone(),
            Self::Filter(node) => {
                let matching = input.spans.iter().copied().filter(|span| node.holds(view, *span as usize));
                input.with_spans(matching.collect())
            }
            Self::And(lhs, rhs) => {
                let left = lhs.run(view, input);
                if left.is_empty() {
                    return Vec::new();
                }
                let right = rhs.run(view, input);
                if right.is_empty() {
                    return Vec::new();
                }
                join(input, &left, &right)
            }
            Self::Or(lhs, rhs) => join(input, &lhs.run(view, input), &rhs.run(view, input)),
            Self::Structural { relation, form, lhs, rhs } => {
                let right = rhs.run(view, input);
                if right.is_empty() {
                    return Vec::new();
                }
                let left = lhs.run(view, input);
                // Without left-hand spans nothing is related, whatever the tree looks like.
                if left.is_empty() {
                    return match form {
                        StructuralForm::RightWithout => vec![input.with_spans(merged(&right))],
                        StructuralForm::Right | StructuralForm::Both => Vec::new(),
                    };
                }
                let spans = view
                    .shape()
                    .map_or_else(Vec::new, |shape| relate(shape, *relation, *form, &merged(&left), &merged(&right)));
                input.with_spans(spans)
            }
            Self::Scalar { op, lhs, rhs } => match compare_scalars(*op, lhs, rhs, view, input) {
                Some(kept) => kept,
                None => return Vec::new(),
            },
            Self::Pipeline(pipeline) => return run_stages(&pipeline.stages, view, vec![input.clone()]),
        };
        if result.spans.is_empty() { Vec::new() } else { vec![result] }
    }
}

/// The spans of both sides as one spanset that keeps what either side computed.
fn join(input: &Spanset, left: &[Spanset], right: &[Spanset]) -> Spanset {
    let mut joined = input.with_spans(union(&merged(left), &merged(right)));
    for set in left.iter().chain(right) {
        for (name, value) in &set.attributes {
            joined.set_attribute(name, value.clone());
        }
    }
    joined
}

fn compare_scalars<S: SpanSource>(
    op: CompareOp,
    lhs: &ScalarSide,
    rhs: &ScalarSide,
    view: &TraceView<'_, S>,
    input: &Spanset,
) -> Option<Spanset> {
    let mut used = UsedSpans::default();
    let left = lhs.expr.value(view, &input.spans, &mut used, true);
    let right = rhs.expr.value(view, &input.spans, &mut used, true);
    if !compare(left.as_field_value(), op, right.as_field_value()) {
        return None;
    }
    // What was computed from spans of its own shows those; what was computed from the spanset passes it on.
    let spans = if used.input { input.spans.clone() } else { union(&used.spans, &[]) };
    let mut kept = input.with_spans(spans);
    for (side, value) in [(lhs, left), (rhs, right)] {
        if let Some(label) = &side.label {
            kept.set_attribute(label, value);
        }
    }
    Some(kept)
}

/// Which spans the sides of a comparison were computed from.
#[derive(Default)]
struct UsedSpans {
    input: bool,
    spans: Vec<u32>,
}

impl ScalarOp {
    fn value<S: SpanSource>(
        &self,
        view: &TraceView<'_, S>,
        spans: &[u32],
        used: &mut UsedSpans,
        spans_are_input: bool,
    ) -> Value {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Aggregate { op, of } => {
                used.input |= spans_are_input;
                aggregate(*op, of.as_ref(), view, spans)
            }
            Self::Negate(of) => {
                let value = of.value(view, spans, used, spans_are_input);
                negate(value.as_field_value()).to_value()
            }
            Self::Arithmetic { op, lhs, rhs } => {
                let left = lhs.value(view, spans, used, spans_are_input);
                let right = rhs.value(view, spans, used, spans_are_input);
                calculate(left.as_field_value(), *op, right.as_field_value()).to_value()
            }
            Self::Pipeline { pipeline, value } => {
                let input = Spanset { spans: spans.to_vec(), attributes: Vec::new() };
                let chosen = merged(&run_stages(&pipeline.stages, view, vec![input]));
                used.spans.extend_from_slice(&chosen);
                value.value(view, &chosen, used, false)
            }
        }
    }
}
