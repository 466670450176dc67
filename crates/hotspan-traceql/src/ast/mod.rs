//! The syntax tree: what a query says, with the place of every part.
//!
//! `Display` writes any tree in canonical form, such that parsing it again gives an equal tree.

mod display;
mod field;
mod literal;
mod names;
mod visit;

pub use field::{ArithmeticOp, CompareOp, Field, FieldExpr, FieldExprKind, Intrinsic, LogicalOp, Scope};
pub use literal::{Keyword, Kind, Literal, Status};

pub(crate) use display::{write_duration, write_keyword, write_quoted};
pub(crate) use names::{SCOPE_NAMES, all_intrinsic_names, intrinsic_by_name, scope_by_name};

use crate::error::SourceRange;

/// A whole query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What is computed.
    pub body: QueryBody,
    /// The `with(…)` hints in the order written.
    pub hints: Vec<Hint>,
}

/// The two kinds of query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// A search for spans, optionally handed to a profile sink.
    Search {
        /// Selects the spans.
        pipeline: Pipeline,
        /// What Hotspan does with them.
        sink: Option<Sink>,
    },
    /// Time series computed from spans.
    Metrics(MetricsExpr),
}

/// `name = value` inside `with(…)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// The name as written.
    pub name: String,
    /// The value.
    pub value: Literal,
    /// Where it stands.
    pub range: SourceRange,
}

/// Stages separated by `|`, each working on the spansets of the one before.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// The stages in order; at least one.
    pub stages: Vec<Stage>,
    /// Where it stands.
    pub range: SourceRange,
}

/// One stage of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// Filters, structure and scalar comparisons.
    Spanset(SpansetExpr),
    /// `by(expr)`: one spanset for each value.
    By(FieldExpr),
    /// `coalesce()`: all spansets become one.
    Coalesce(SourceRange),
    /// `select(field, …)`: adds fields to the result.
    Select(Vec<FieldExpr>),
}

/// An expression whose value is a set of spans.
#[derive(Debug, Clone, PartialEq)]
pub enum SpansetExpr {
    /// `{ condition }`; no condition means every span.
    Filter {
        /// The condition.
        condition: Option<FieldExpr>,
        /// Where it stands.
        range: SourceRange,
    },
    /// Two sets of spans related to each other.
    Binary {
        /// How.
        op: SpansetOp,
        /// Where the operator stands.
        op_range: SourceRange,
        /// Left side.
        lhs: Box<SpansetExpr>,
        /// Right side.
        rhs: Box<SpansetExpr>,
    },
    /// `count() > 2`: keeps the spanset if the comparison holds.
    ScalarFilter {
        /// The comparison.
        op: CompareOp,
        /// Where the operator stands.
        op_range: SourceRange,
        /// Left side.
        lhs: ScalarExpr,
        /// Right side.
        rhs: ScalarExpr,
    },
    /// A pipeline in parentheses.
    Pipeline(Box<Pipeline>),
}

impl SpansetExpr {
    /// Where it stands.
    pub fn range(&self) -> SourceRange {
        match self {
            Self::Filter { range, .. } => *range,
            Self::Binary { lhs, rhs, .. } => lhs.range().to(rhs.range()),
            Self::ScalarFilter { lhs, rhs, .. } => lhs.range().to(rhs.range()),
            Self::Pipeline(pipeline) => pipeline.range,
        }
    }
}

/// How the two sides of a spanset operator are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpansetOp {
    /// `&&`: both sides have spans; gives the spans of both.
    And,
    /// `||`: either side has spans; gives the spans of both.
    Or,
    /// A relation in the tree of spans.
    Structural {
        /// Which relation the right-hand span has to a left-hand one.
        relation: Relation,
        /// Which spans come out.
        form: StructuralForm,
    },
}

/// What the right-hand span is to the left-hand span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `>`: its direct child.
    Child,
    /// `<`: its direct parent.
    Parent,
    /// `>>`: below it at any depth.
    Descendant,
    /// `<<`: above it at any height.
    Ancestor,
    /// `~`: another child of the same parent.
    Sibling,
}

/// Which spans a structural operator gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StructuralForm {
    /// `>`: right-hand spans that have the relation to some left-hand span.
    Right,
    /// `!>`: right-hand spans that have it to no left-hand span.
    RightWithout,
    /// `&>`: the spans of both sides that take part in the relation.
    Both,
}

/// An expression whose value is one number (or duration, …) for a spanset.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarExpr {
    /// A constant.
    Literal {
        /// Its value.
        value: Literal,
        /// Where it stands.
        range: SourceRange,
    },
    /// `count()`, `avg(expr)`, …
    Aggregate {
        /// Which.
        op: AggregateOp,
        /// Over what; `count()` has none.
        of: Option<FieldExpr>,
        /// Where it stands.
        range: SourceRange,
    },
    /// Arithmetic.
    Binary {
        /// Which.
        op: ArithmeticOp,
        /// Left side.
        lhs: Box<ScalarExpr>,
        /// Right side.
        rhs: Box<ScalarExpr>,
    },
    /// `-expr`.
    Negate {
        /// What is negated.
        of: Box<ScalarExpr>,
        /// Where it stands.
        range: SourceRange,
    },
    /// `( {…} | count() )`: a scalar of spans chosen for it alone.
    Pipeline {
        /// Chooses the spans.
        stages: Vec<Stage>,
        /// What is computed from them.
        value: Box<ScalarExpr>,
        /// Where it stands.
        range: SourceRange,
    },
}

impl ScalarExpr {
    /// Where it stands.
    pub fn range(&self) -> SourceRange {
        match self {
            Self::Literal { range, .. }
            | Self::Aggregate { range, .. }
            | Self::Negate { range, .. }
            | Self::Pipeline { range, .. } => *range,
            Self::Binary { lhs, rhs, .. } => lhs.range().to(rhs.range()),
        }
    }
}

/// How the values of a spanset's spans become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateOp {
    /// Number of spans.
    Count,
    /// Mean.
    Avg,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Sum.
    Sum,
}

/// Hotspan's last stage: what becomes of the cohort of spans.
#[derive(Debug, Clone, PartialEq)]
pub enum Sink {
    /// `flame(TYPE)`: their flame graph.
    Flame {
        /// Profile type: an alias or a five-part id.
        profile_type: String,
    },
    /// `top(N, TYPE)`: their heaviest functions.
    Top {
        /// How many.
        count: u32,
        /// Profile type.
        profile_type: String,
    },
    /// `diff(baseline, TYPE)`: their flame graph against another cohort's.
    Diff {
        /// Selects the other cohort.
        baseline: Box<Pipeline>,
        /// Profile type.
        profile_type: String,
    },
    /// `ledger()`: where their time went.
    Ledger,
}

/// Time series.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricsExpr {
    /// `pipeline | function`.
    Query(Box<MetricsQuery>),
    /// A constant in metrics arithmetic.
    Number {
        /// Its value: an integer or float.
        value: Literal,
        /// Where it stands.
        range: SourceRange,
    },
    /// Arithmetic between series.
    Binary {
        /// Which.
        op: ArithmeticOp,
        /// Where the operator stands.
        op_range: SourceRange,
        /// Left side.
        lhs: Box<MetricsExpr>,
        /// Right side.
        rhs: Box<MetricsExpr>,
    },
    /// Second stages applied to series.
    Staged {
        /// The series.
        of: Box<MetricsExpr>,
        /// What is done with them.
        stage: SecondStage,
        /// Where the stage stands.
        range: SourceRange,
    },
}

/// A spanset pipeline that ends in a metrics function.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsQuery {
    /// Selects the spans.
    pub pipeline: Pipeline,
    /// What is measured.
    pub function: MetricsFunction,
    /// The labels of the series.
    pub by: Vec<FieldExpr>,
    /// Where the function stands.
    pub range: SourceRange,
}

/// What a metrics query measures.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricsFunction {
    /// Spans a second.
    Rate,
    /// Spans an interval.
    CountOverTime,
    /// Smallest value of an interval.
    MinOverTime(FieldExpr),
    /// Largest value of an interval.
    MaxOverTime(FieldExpr),
    /// Sum of the values of an interval.
    SumOverTime(FieldExpr),
    /// Mean of the values of an interval.
    AvgOverTime(FieldExpr),
    /// Quantiles of the values of an interval.
    QuantileOverTime(FieldExpr, Vec<f64>),
    /// How the values of an interval are spread over powers of two.
    HistogramOverTime(FieldExpr),
    /// Which attribute values differ between the selected spans and the others.
    Compare {
        /// Selects; spans it does not select are the baseline.
        selection: Option<FieldExpr>,
        /// Values reported for each attribute.
        top: Option<u32>,
        /// The selection's time window in nanoseconds since 1970: first, and one past the last.
        window: Option<(u64, u64)>,
    },
}

/// What is done with series once computed.
#[derive(Debug, Clone, PartialEq)]
pub enum SecondStage {
    /// The k largest at each point in time.
    TopK(u32),
    /// The k smallest at each point in time.
    BottomK(u32),
    /// Keeps points that compare so with a constant.
    Filter(CompareOp, Literal),
}
