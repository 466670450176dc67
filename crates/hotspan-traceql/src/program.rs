//! A query ready to run, and everything an engine asks about it.

use crate::ast::{Field, Intrinsic, Query, QueryBody, Sink};
use crate::error::TraceqlError;
use crate::eval::{Lowering, Node, PipelineOp, Spanset, TraceView};
use crate::metrics::Metrics;
use crate::plan::{FieldTable, Hints, Needs, Prefilter, SpanCondition, condition_of, requirement_of};
use crate::source::{SpanSource, TraceSource};
use crate::value::Value;

/// A compiled query. Compile once, run over any number of traces, from any number of threads.
#[derive(Debug, Clone)]
pub struct Program {
    fields: FieldTable,
    needs: Needs,
    prefilter: Prefilter,
    hints: Hints,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Search(Box<Search>),
    Metrics(Box<Metrics>),
}

impl Program {
    /// Parses, checks and compiles a query.
    pub fn new(text: &str) -> Result<Self, TraceqlError> {
        Self::compile(&crate::parse(text)?).map_err(|error| error.locate(text))
    }

    /// Compiles a query that [`parse`](crate::parse) accepted.
    pub fn compile(query: &Query) -> Result<Self, TraceqlError> {
        let hints = Hints::of(&query.hints);
        let mut lowering = Lowering::default();
        let (body, prefilter) = match &query.body {
            QueryBody::Search { pipeline, sink } => {
                let search = Search::compile(&mut lowering, &pipeline.stages, sink.clone())?;
                let prefilter = requirement_of(&mut lowering, &pipeline.stages);
                (Body::Search(Box::new(search)), prefilter)
            }
            QueryBody::Metrics(metrics) => {
                let (metrics, prefilter) = Metrics::compile(&mut lowering, metrics, &hints)?;
                (Body::Metrics(Box::new(metrics)), prefilter)
            }
        };
        Ok(Self { fields: lowering.fields, needs: lowering.needs, prefilter, hints, body })
    }

    /// The fields a source must answer.
    pub fn fields(&self) -> &FieldTable {
        &self.fields
    }

    /// How much of a trace must be seen together.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// What a trace must have to be worth reading.
    pub fn prefilter(&self) -> &Prefilter {
        &self.prefilter
    }

    /// The hints.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Whether the answer is time series.
    pub fn is_metrics(&self) -> bool {
        matches!(self.body, Body::Metrics(_))
    }

    /// The search, unless it is a metrics query.
    pub fn search(&self) -> Option<&Search> {
        match &self.body {
            Body::Search(search) => Some(search),
            Body::Metrics(_) => None,
        }
    }

    /// The metrics, unless it is a search.
    pub fn metrics(&self) -> Option<&Metrics> {
        match &self.body {
            Body::Metrics(metrics) => Some(metrics),
            Body::Search(_) => None,
        }
    }

    /// Whether every attribute of a span is asked for, named or not: only `compare()` does.
    pub fn reads_every_attribute(&self) -> bool {
        self.metrics().is_some_and(Metrics::compares)
    }

    /// What becomes of the spans found: Hotspan's last stage.
    pub fn sink(&self) -> Option<&Sink> {
        self.search().and_then(|search| search.sink.as_ref())
    }

    /// The query that selects the baseline of `diff(…)`, ready to run by itself.
    pub fn baseline(&self) -> Option<Result<Self, TraceqlError>> {
        match self.sink() {
            Some(Sink::Diff { baseline, .. }) => {
                let body = QueryBody::Search { pipeline: (**baseline).clone(), sink: None };
                Some(Self::compile(&Query { body, hints: Vec::new() }))
            }
            _ => None,
        }
    }

    /// Prepares a trace to be asked by this query.
    pub fn view<'a, S: TraceSource>(&self, source: &'a S) -> TraceView<'a, S> {
        TraceView::of_trace(source, self.needs)
    }
}

/// A compiled search.
#[derive(Debug, Clone)]
pub struct Search {
    pipeline: PipelineOp,
    span_filter: Option<SpanFilter>,
    shown: Vec<Shown>,
    sink: Option<Sink>,
}

/// A field that a search result shows.
#[derive(Debug, Clone)]
struct Shown {
    name: String,
    node: Node,
    /// Whether a span has one for each of its events or links.
    is_repeated: bool,
}

/// A search that judges each span alone.
#[derive(Debug, Clone)]
pub struct SpanFilter {
    node: Node,
    condition: SpanCondition,
    is_exact: bool,
}

impl SpanFilter {
    /// Whether a span matches.
    #[inline]
    pub fn matches<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> bool {
        self.node.holds(view, span)
    }

    /// Appends the matching spans of a range to `out`.
    pub fn select<S: SpanSource>(&self, view: &TraceView<'_, S>, spans: std::ops::Range<usize>, out: &mut Vec<u32>) {
        out.extend(spans.filter(|span| self.node.holds(view, *span)).map(|span| span as u32));
    }

    /// The filter as predicates that a scan can push down.
    pub fn condition(&self) -> &SpanCondition {
        &self.condition
    }

    /// Whether [`SpanFilter::condition`] says all: a span that passes it matches.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }
}

/// Fields that a search result shows in places of their own, so that they are not repeated among the attributes.
fn has_its_own_place(field: &Field) -> bool {
    matches!(
        field,
        Field::Intrinsic(
            Intrinsic::Name
                | Intrinsic::Duration
                | Intrinsic::SpanId
                | Intrinsic::TraceId
                | Intrinsic::Parent
                | Intrinsic::TraceDuration
                | Intrinsic::RootName
                | Intrinsic::RootService
        )
    )
}

impl Search {
    fn compile(
        lowering: &mut Lowering,
        stages: &[crate::ast::Stage],
        sink: Option<Sink>,
    ) -> Result<Self, TraceqlError> {
        let pipeline = lowering.pipeline(stages)?;
        let node = if lowering.needs.whole_trace { None } else { pipeline.as_condition(true) };
        let span_filter = node.map(|node| {
            let (condition, is_exact) = stages_condition(lowering, stages);
            SpanFilter { node, condition, is_exact }
        });
        lowering.needs.whole_trace |= span_filter.is_none();
        let shown = std::mem::take(&mut lowering.shown);
        let shown = shown
            .iter()
            .filter(|field| !has_its_own_place(field))
            .map(|field| Shown {
                name: field.unscoped_name(),
                node: Node::Field(lowering.field_ref(field)),
                is_repeated: field.is_repeated(),
            })
            .collect();
        Ok(Self { pipeline, span_filter, shown, sink })
    }

    /// The spansets of a trace; none if it does not match.
    pub fn evaluate<S: TraceSource>(&self, view: &TraceView<'_, S>) -> Vec<Spanset> {
        self.pipeline.run(view, view.source.span_count())
    }

    /// The filter, if each span can be judged alone; a trace's result is then one spanset of its matching spans.
    pub fn span_filter(&self) -> Option<&SpanFilter> {
        self.span_filter.as_ref()
    }

    /// The fields a search result shows for a span: what the query touched or selected, under names without scope.
    /// Of several events or links the last that has the field is shown, as one value that can be searched for.
    pub fn span_attributes<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> Vec<(String, Value)> {
        let mut attributes: Vec<(String, Value)> = Vec::new();
        for Shown { name, node, is_repeated } in &self.shown {
            let value = match node.owned_value(view, span) {
                Value::Array(values) if *is_repeated => values.into_iter().next_back().unwrap_or(Value::Nil),
                value => value,
            };
            if value != Value::Nil && !attributes.iter().any(|(known, _)| known == name) {
                attributes.push((name.clone(), value));
            }
        }
        attributes
    }
}

/// The condition of filters in a row; what cannot be said is left out.
fn stages_condition(lowering: &mut Lowering, stages: &[crate::ast::Stage]) -> (SpanCondition, bool) {
    use crate::ast::{SpansetExpr, Stage};
    let mut parts = Vec::new();
    let mut is_exact = true;
    for stage in stages {
        match stage {
            Stage::Spanset(SpansetExpr::Filter { condition: Some(condition), .. }) => {
                let (part, exact) = condition_of(lowering, condition);
                parts.push(part);
                is_exact &= exact;
            }
            Stage::Spanset(SpansetExpr::Filter { condition: None, .. }) | Stage::Select(_) => {}
            Stage::Spanset(spans) => {
                let (part, exact) = union_condition(lowering, spans);
                parts.push(part);
                is_exact &= exact;
            }
            Stage::By(_) | Stage::Coalesce(_) => is_exact = false,
        }
    }
    (SpanCondition::all(parts), is_exact)
}

fn union_condition(lowering: &mut Lowering, spans: &crate::ast::SpansetExpr) -> (SpanCondition, bool) {
    use crate::ast::{SpansetExpr, SpansetOp};
    match spans {
        SpansetExpr::Filter { condition: Some(condition), .. } => condition_of(lowering, condition),
        SpansetExpr::Filter { condition: None, .. } => (SpanCondition::True, true),
        SpansetExpr::Binary { op: SpansetOp::Or, lhs, rhs, .. } => {
            let (left, left_exact) = union_condition(lowering, lhs);
            let (right, right_exact) = union_condition(lowering, rhs);
            (SpanCondition::any([left, right]), left_exact && right_exact)
        }
        SpansetExpr::Pipeline(pipeline) => stages_condition(lowering, &pipeline.stages),
        SpansetExpr::Binary { .. } | SpansetExpr::ScalarFilter { .. } => (SpanCondition::True, false),
    }
}
