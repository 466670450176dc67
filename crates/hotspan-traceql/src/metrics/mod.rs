//! Time series from spans.
//!
//! A worker folds spans into a [`MetricsState`]; states of any number of files and workers merge in any order; the
//! last one is finished into [`Series`]. Only then do second stages and arithmetic run, because they need final values.

mod combine;
mod compare;
mod finish;
mod grid;
mod histogram;
mod histograms;
mod observe;
mod observe_columns;
mod series;
mod state;
mod weighing;

pub use grid::{MAX_INTERVALS, MetricsError, MetricsLimits, TimeGrid, default_step};
pub use histogram::LogHistogram;
pub use series::{Exemplar, Point, Series};
pub use state::MetricsState;
pub use weighing::adjusted_count;

use crate::arithmetic::calculate;
use crate::ast::{ArithmeticOp, Field, FieldExpr, Intrinsic, MetricsExpr, MetricsFunction, MetricsQuery, SecondStage};
use crate::error::TraceqlError;
use crate::eval::{Lowering, Node, PipelineOp};
use crate::plan::{Hints, Prefilter, requirement_of};
use crate::value::Value;
use weighing::Weighing;

/// A compiled metrics query.
#[derive(Debug, Clone)]
pub struct Metrics {
    leaves: Vec<Leaf>,
    tree: Tree,
    hints: Hints,
}

/// One `pipeline | function` of the query.
#[derive(Debug, Clone)]
struct Leaf {
    pipeline: PipelineOp,
    /// Decides about each span alone, where the pipeline does no more than that.
    condition: Option<Node>,
    function: Function,
    name: &'static str,
    labels: Vec<String>,
    by: Vec<Node>,
    /// For each of these, whether spans have a set of values for it, and so stand in several series.
    by_element: Vec<bool>,
    weighing: Weighing,
}

#[derive(Debug, Clone)]
enum Function {
    Rate,
    Count,
    Min(Node),
    Max(Node),
    Sum(Node),
    Mean(Node),
    Quantiles { of: Node, quantiles: Vec<f64>, precise: bool },
    Histogram(Node),
    Compare { selection: Option<Node>, top: usize, window: Option<(i64, i64)>, intrinsics: Vec<(&'static str, Node)> },
}

/// What is done with the finished leaves.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(usize),
    Number(f64),
    Binary { op: ArithmeticOp, lhs: Box<Tree>, rhs: Box<Tree> },
    Staged { of: Box<Tree>, stage: SecondStage },
}

impl Tree {
    fn is_staged(&self) -> bool {
        match self {
            Self::Leaf(_) | Self::Number(_) => false,
            Self::Binary { lhs, rhs, .. } => lhs.is_staged() || rhs.is_staged(),
            Self::Staged { .. } => true,
        }
    }
}

/// Values of each attribute that `compare()` reports unless told otherwise.
const DEFAULT_COMPARE_TOP: u32 = 10;

impl Metrics {
    pub(crate) fn compile(
        lowering: &mut Lowering,
        expr: &MetricsExpr,
        hints: &Hints,
    ) -> Result<(Self, Prefilter), TraceqlError> {
        let mut metrics = Self { leaves: Vec::new(), tree: Tree::Number(0.0), hints: hints.clone() };
        let mut prefilters = Vec::new();
        metrics.tree = metrics.compile_tree(lowering, expr, &mut prefilters)?;
        Ok((metrics, Prefilter::any(prefilters)))
    }

    fn compile_tree(
        &mut self,
        lowering: &mut Lowering,
        expr: &MetricsExpr,
        prefilters: &mut Vec<Prefilter>,
    ) -> Result<Tree, TraceqlError> {
        Ok(match expr {
            MetricsExpr::Query(query) => {
                prefilters.push(requirement_of(lowering, &query.pipeline.stages));
                let leaf = Leaf::compile(lowering, query, &self.hints)?;
                self.leaves.push(leaf);
                Tree::Leaf(self.leaves.len() - 1)
            }
            MetricsExpr::Number { .. } => Tree::Number(constant(expr).unwrap_or(f64::NAN)),
            MetricsExpr::Binary { op, lhs, rhs, .. } => match constant(expr) {
                Some(number) => Tree::Number(number),
                None => Tree::Binary {
                    op: *op,
                    lhs: Box::new(self.compile_tree(lowering, lhs, prefilters)?),
                    rhs: Box::new(self.compile_tree(lowering, rhs, prefilters)?),
                },
            },
            MetricsExpr::Staged { of, stage, .. } => {
                Tree::Staged { of: Box::new(self.compile_tree(lowering, of, prefilters)?), stage: stage.clone() }
            }
        })
    }

    pub(crate) fn compares(&self) -> bool {
        self.leaves.iter().any(|leaf| matches!(leaf.function, Function::Compare { .. }))
    }

    /// Whether points of a partial result may be missing from the whole one: more spans make another series the
    /// first, or carry a value past what it is compared with.
    pub fn takes_back(&self) -> bool {
        self.compares() || self.tree.is_staged()
    }

    /// An empty state to fold spans into.
    pub fn start(&self, grid: TimeGrid, limits: MetricsLimits) -> MetricsState {
        MetricsState::new(self, grid, limits)
    }
}

/// The value of an expression of numbers only: whole numbers calculate as such, as everywhere in the language.
fn constant(expr: &MetricsExpr) -> Option<f64> {
    fn value(expr: &MetricsExpr) -> Option<Value> {
        match expr {
            MetricsExpr::Number { value, .. } => Some(Value::from_literal(value)),
            MetricsExpr::Binary { op, lhs, rhs, .. } => {
                let (left, right) = (value(lhs)?, value(rhs)?);
                Some(calculate(left.as_field_value(), *op, right.as_field_value()).to_value())
            }
            MetricsExpr::Query(_) | MetricsExpr::Staged { .. } => None,
        }
    }
    value(expr).map(|value| value.as_field_value().as_number().unwrap_or(f64::NAN))
}

impl Leaf {
    fn compile(lowering: &mut Lowering, query: &MetricsQuery, hints: &Hints) -> Result<Self, TraceqlError> {
        let pipeline = lowering.pipeline(&query.pipeline.stages)?;
        let condition = pipeline.as_condition(false);
        lowering.needs.whole_trace |= condition.is_none();
        let function = match &query.function {
            MetricsFunction::Rate => Function::Rate,
            MetricsFunction::CountOverTime => Function::Count,
            MetricsFunction::MinOverTime(of) => Function::Min(lowering.expr(of)?),
            MetricsFunction::MaxOverTime(of) => Function::Max(lowering.expr(of)?),
            MetricsFunction::SumOverTime(of) => Function::Sum(lowering.expr(of)?),
            MetricsFunction::AvgOverTime(of) => Function::Mean(lowering.expr(of)?),
            MetricsFunction::HistogramOverTime(of) => Function::Histogram(lowering.expr(of)?),
            MetricsFunction::QuantileOverTime(of, quantiles) => Function::Quantiles {
                of: lowering.expr(of)?,
                quantiles: quantiles.clone(),
                precise: hints.precise_quantiles,
            },
            MetricsFunction::Compare { selection, top, window } => Function::Compare {
                selection: selection.as_ref().map(|condition| lowering.expr(condition)).transpose()?,
                top: top.unwrap_or(DEFAULT_COMPARE_TOP) as usize,
                window: window.map(|(from, to)| (saturate(from), saturate(to))),
                intrinsics: [Intrinsic::Name, Intrinsic::Kind, Intrinsic::Status, Intrinsic::StatusMessage]
                    .map(|field| (field.name(), Node::Field(lowering.field_ref(&Field::Intrinsic(field)))))
                    .to_vec(),
            },
        };
        let by = query.by.iter().map(|field| lowering.expr(field)).collect::<Result<Vec<_>, _>>()?;
        let labels = query.by.iter().map(ToString::to_string).collect();
        Ok(Self {
            pipeline,
            condition,
            function,
            name: query.function.name(),
            labels,
            by,
            by_element: query.by.iter().map(FieldExpr::is_set).collect(),
            weighing: Weighing::of(hints),
        })
    }
}

fn saturate(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
