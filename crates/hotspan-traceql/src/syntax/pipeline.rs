//! Everything outside `{ }`: spanset expressions, stages, metrics and sinks.
//!
//! `>` between spansets asks for children, between values it compares; one rule reads both and the operands decide.

use super::field_expr::arithmetic_op;
use super::parser::{AGGREGATES, METRICS_FUNCTIONS, Parsed, Parser, SECOND_STAGES, SINKS, SPANSET_STAGES, Tall};
use super::token::{Symbol, TokenKind};
use crate::ast::{
    AggregateOp, ArithmeticOp, CompareOp, FieldExpr, FieldExprKind, Literal, MetricsExpr, Pipeline, Relation,
    ScalarExpr, SecondStage, Sink, SpansetExpr, SpansetOp, Stage, StructuralForm,
};
use crate::error::{SourceRange, TraceqlError};
use crate::suggest::nearest;

const LOGICAL: u8 = 1;
const RELATE: u8 = 2;

/// What stands on one side of an operator outside `{ }`.
pub(super) enum Operand {
    Spans(Tall<SpansetExpr>),
    Scalar(Tall<ScalarExpr>),
    Metrics(Tall<MetricsExpr>),
}

impl Operand {
    pub(super) fn range(&self) -> SourceRange {
        match self {
            Self::Spans(spans) => spans.node.range(),
            Self::Scalar(scalar) => scalar.node.range(),
            Self::Metrics(metrics) => metrics.node.range(),
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Spans(_) => "a spanset",
            Self::Scalar(_) => "a value",
            Self::Metrics(_) => "a metrics query",
        }
    }
}

/// An operator outside `{ }`.
#[derive(Clone, Copy)]
enum Infix {
    Spanset(SpansetOp),
    /// `>` or `<`: structure between spansets, comparison between values.
    Either(SpansetOp, CompareOp),
    Compare(CompareOp),
    Arithmetic(ArithmeticOp),
}

/// A spanset expression as the pipeline it stands for.
pub(super) fn into_pipeline(spans: SpansetExpr) -> Pipeline {
    match spans {
        SpansetExpr::Pipeline(pipeline) => *pipeline,
        other => Pipeline { range: other.range(), stages: vec![Stage::Spanset(other)] },
    }
}

/// A pipeline as an operand; parentheses around a single expression leave no trace.
fn from_stages(mut stages: Vec<Stage>, range: SourceRange) -> SpansetExpr {
    if stages.len() == 1 {
        match stages.remove(0) {
            Stage::Spanset(spans) => return spans,
            other => stages.push(other),
        }
    }
    SpansetExpr::Pipeline(Box::new(Pipeline { stages, range }))
}

impl Parser<'_> {
    /// Stages separated by `|`. Sinks are only allowed where `sink` is given.
    pub(super) fn pipeline(&mut self, mut sink: Option<&mut Option<Sink>>) -> Parsed<Operand> {
        let start = self.range();
        let mut stages = Vec::new();
        let mut height = 0;
        let mut metrics: Option<Tall<MetricsExpr>> = None;
        loop {
            if let Some(series) = metrics.take() {
                metrics = Some(self.second_stage(series)?);
            } else {
                let word = self.word().unwrap_or_default();
                let stage_range = self.range();
                if SPANSET_STAGES.contains(&word) {
                    let stage = self.spanset_stage(word, stages.is_empty())?;
                    height = height.max(stage.height);
                    stages.push(stage.node);
                } else if METRICS_FUNCTIONS.contains(&word) {
                    if stages.is_empty() {
                        return Err(TraceqlError::at(stage_range, format!("`{word}` needs spans to work on"))
                            .expecting(format!("a spanset before it, such as `{{ }} | {word}(…)`")));
                    }
                    let pipeline = Pipeline { stages: std::mem::take(&mut stages), range: start.to(self.last_range()) };
                    let query = self.metrics_function(pipeline, height)?;
                    metrics = Some(self.trailing_filters(query)?);
                } else if SINKS.contains(&word) {
                    let Some(slot) = sink.as_deref_mut() else {
                        return Err(TraceqlError::at(
                            stage_range,
                            format!("`{word}` may only be the last stage of a query"),
                        ));
                    };
                    if stages.is_empty() {
                        return Err(TraceqlError::at(stage_range, format!("`{word}` needs spans to work on"))
                            .expecting(format!("a spanset before it, such as `{{ }} | {word}(…)`")));
                    }
                    *slot = Some(self.sink(word)?);
                    if self.is_symbol(Symbol::Pipe) {
                        return Err(TraceqlError::at(stage_range, format!("`{word}` must be the last stage")));
                    }
                } else {
                    match self.term(LOGICAL)? {
                        Operand::Spans(spans) => {
                            height = height.max(spans.height);
                            stages.push(Stage::Spanset(spans.node));
                        }
                        Operand::Metrics(series) if stages.is_empty() => metrics = Some(series),
                        Operand::Metrics(series) => {
                            return Err(TraceqlError::at(
                                series.node.range(),
                                "a metrics query cannot be a later stage",
                            ));
                        }
                        Operand::Scalar(scalar) => {
                            if self.is_symbol(Symbol::Pipe) {
                                return Err(TraceqlError::at(scalar.node.range(), "a value cannot be piped on")
                                    .expecting("a comparison, such as `count() > 2`"));
                            }
                            if stages.is_empty() {
                                return Ok(Operand::Scalar(scalar));
                            }
                            let range = start.to(self.last_range());
                            let value = Box::new(scalar.node);
                            let node = ScalarExpr::Pipeline { stages, value, range };
                            return Ok(Operand::Scalar(self.above(node, &[height, scalar.height])?));
                        }
                    }
                }
            }
            if !self.take_symbol(Symbol::Pipe) {
                break;
            }
        }
        if let Some(series) = metrics {
            if let TokenKind::Symbol(symbol) = self.kind()
                && arithmetic_op(*symbol).is_some()
            {
                return Err(TraceqlError::at(self.range(), "arithmetic needs parentheses around a metrics query")
                    .expecting(format!("`({{ … }} | rate()) {} …`", symbol.text())));
            }
            return Ok(Operand::Metrics(series));
        }
        let range = start.to(self.last_range());
        Ok(Operand::Spans(self.above(from_stages(stages, range), &[height])?))
    }

    fn infix(&self) -> Option<(Infix, u8)> {
        use Relation::{Ancestor, Child, Descendant, Parent, Sibling};
        use StructuralForm::{Both, Right, RightWithout};
        let TokenKind::Symbol(symbol) = self.kind() else { return None };
        let structural = |relation, form| SpansetOp::Structural { relation, form };
        let op = match symbol {
            Symbol::And => return Some((Infix::Spanset(SpansetOp::And), LOGICAL)),
            Symbol::Or => return Some((Infix::Spanset(SpansetOp::Or), LOGICAL)),
            Symbol::Greater => Infix::Either(structural(Child, Right), CompareOp::Greater),
            Symbol::Less => Infix::Either(structural(Parent, Right), CompareOp::Less),
            Symbol::Descendant => Infix::Spanset(structural(Descendant, Right)),
            Symbol::Ancestor => Infix::Spanset(structural(Ancestor, Right)),
            Symbol::Sibling => Infix::Spanset(structural(Sibling, Right)),
            Symbol::NotChild => Infix::Spanset(structural(Child, RightWithout)),
            Symbol::NotParent => Infix::Spanset(structural(Parent, RightWithout)),
            Symbol::NotDescendant => Infix::Spanset(structural(Descendant, RightWithout)),
            Symbol::NotAncestor => Infix::Spanset(structural(Ancestor, RightWithout)),
            Symbol::NotMatch => Infix::Spanset(structural(Sibling, RightWithout)),
            Symbol::UnionChild => Infix::Spanset(structural(Child, Both)),
            Symbol::UnionParent => Infix::Spanset(structural(Parent, Both)),
            Symbol::UnionDescendant => Infix::Spanset(structural(Descendant, Both)),
            Symbol::UnionAncestor => Infix::Spanset(structural(Ancestor, Both)),
            Symbol::UnionSibling => Infix::Spanset(structural(Sibling, Both)),
            symbol => match (self.compare_op(), arithmetic_op(*symbol)) {
                (Some(op), _) => Infix::Compare(op),
                (None, Some((op, strength))) => return Some((Infix::Arithmetic(op), strength)),
                (None, None) => return None,
            },
        };
        Some((op, RELATE))
    }

    /// An expression of spansets, values and series.
    fn term(&mut self, least: u8) -> Parsed<Operand> {
        self.deeper(|parser| {
            let mut lhs = parser.term_prefix()?;
            while let Some((infix, strength)) = parser.infix() {
                if strength < least {
                    break;
                }
                let op_range = parser.range();
                parser.advance();
                let right_associative = matches!(infix, Infix::Arithmetic(ArithmeticOp::Pow));
                let rhs = parser.term(if right_associative { strength } else { strength + 1 })?;
                lhs = parser.relate(infix, op_range, lhs, rhs)?;
            }
            Ok(lhs)
        })
    }

    fn relate(&self, infix: Infix, op_range: SourceRange, lhs: Operand, rhs: Operand) -> Parsed<Operand> {
        use Operand::{Metrics, Scalar, Spans};
        match (infix, lhs, rhs) {
            (Infix::Spanset(op) | Infix::Either(op, _), Spans(lhs), Spans(rhs)) => {
                let heights = [lhs.height, rhs.height];
                let (lhs, rhs) = (Box::new(lhs.node), Box::new(rhs.node));
                Ok(Spans(self.above(SpansetExpr::Binary { op, op_range, lhs, rhs }, &heights)?))
            }
            (Infix::Compare(op) | Infix::Either(_, op), Scalar(lhs), Scalar(rhs)) if !op.is_regex() => {
                let heights = [lhs.height, rhs.height];
                let (lhs, rhs) = (lhs.node, rhs.node);
                Ok(Spans(self.above(SpansetExpr::ScalarFilter { op, op_range, lhs, rhs }, &heights)?))
            }
            (Infix::Compare(op) | Infix::Either(_, op), Metrics(of), Scalar(Tall { node, .. })) if !op.is_regex() => {
                let ScalarExpr::Literal { value, range } = node else {
                    return Err(TraceqlError::at(node.range(), "series can only be compared with a constant"));
                };
                let stage = SecondStage::Filter(op, value);
                let staged = MetricsExpr::Staged { of: Box::new(of.node), stage, range: op_range.to(range) };
                Ok(Metrics(self.above(staged, &[of.height])?))
            }
            (Infix::Arithmetic(op), Scalar(lhs), Scalar(rhs)) => {
                let heights = [lhs.height, rhs.height];
                let (lhs, rhs) = (Box::new(lhs.node), Box::new(rhs.node));
                Ok(Scalar(self.above(ScalarExpr::Binary { op, lhs, rhs }, &heights)?))
            }
            (Infix::Arithmetic(op), lhs @ (Metrics(_) | Scalar(_)), rhs @ (Metrics(_) | Scalar(_))) => {
                if matches!(op, ArithmeticOp::Mod | ArithmeticOp::Pow) {
                    return Err(TraceqlError::at(op_range, format!("`{}` does not work on series", op.symbol()))
                        .expecting("`+`, `-`, `*` or `/`"));
                }
                let lhs = self.series_operand(lhs)?;
                let rhs = self.series_operand(rhs)?;
                let heights = [lhs.height, rhs.height];
                let (lhs, rhs) = (Box::new(lhs.node), Box::new(rhs.node));
                Ok(Metrics(self.above(MetricsExpr::Binary { op, op_range, lhs, rhs }, &heights)?))
            }
            (_, lhs, rhs) => {
                let symbol = &self.text[op_range.start..op_range.end];
                let message = format!("`{symbol}` does not work between {} and {}", lhs.describe(), rhs.describe());
                Err(TraceqlError::at(op_range, message))
            }
        }
    }

    /// A side of metrics arithmetic: series, or a constant expression of numbers.
    fn series_operand(&self, operand: Operand) -> Parsed<Tall<MetricsExpr>> {
        let scalar = match operand {
            Operand::Metrics(metrics) => return Ok(metrics),
            Operand::Scalar(scalar) => scalar,
            Operand::Spans(spans) => {
                return Err(TraceqlError::at(spans.node.range(), "a spanset is no operand of metrics arithmetic"));
            }
        };
        let range = scalar.node.range();
        match scalar.node {
            ScalarExpr::Literal { value: value @ (Literal::Int(_) | Literal::Float(_)), range } => {
                Ok(Tall::leaf(MetricsExpr::Number { value, range }))
            }
            ScalarExpr::Binary { op, lhs, rhs } if !matches!(op, ArithmeticOp::Mod | ArithmeticOp::Pow) => {
                let height = scalar.height;
                let lhs = self.series_operand(Operand::Scalar(Tall { node: *lhs, height }))?.node;
                let rhs = self.series_operand(Operand::Scalar(Tall { node: *rhs, height }))?.node;
                let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
                Ok(Tall { node: MetricsExpr::Binary { op, op_range: range, lhs, rhs }, height })
            }
            ScalarExpr::Literal { value, .. } => {
                Err(TraceqlError::at(range, format!("`{value}` is no operand of metrics arithmetic"))
                    .expecting("a number or a metrics query in parentheses"))
            }
            _ => Err(TraceqlError::at(range, "only constants and metrics queries can be combined here")
                .expecting("a number or a metrics query in parentheses")),
        }
    }

    fn term_prefix(&mut self) -> Parsed<Operand> {
        let start = self.range();
        if let Some(value) = self.literal()? {
            let range = start.to(self.last_range());
            return Ok(Operand::Scalar(Tall::leaf(ScalarExpr::Literal { value, range })));
        }
        match self.kind() {
            TokenKind::Symbol(Symbol::OpenBrace) => {
                let filter = self.filter()?;
                let range = start.to(self.last_range());
                let (condition, height) = filter.map_or((None, 0), |tall| (Some(tall.node), tall.height));
                Ok(Operand::Spans(self.above(SpansetExpr::Filter { condition, range }, &[height])?))
            }
            TokenKind::Symbol(Symbol::OpenParen) => {
                self.advance();
                let inner = self.pipeline(None)?;
                if !self.is_symbol(Symbol::CloseParen) {
                    return Err(self.unexpected("`)`, `|` or an operator"));
                }
                self.advance();
                Ok(inner)
            }
            TokenKind::Symbol(Symbol::Minus) => {
                self.advance();
                let operand = self.term(super::field_expr::UNARY)?;
                let Operand::Scalar(of) = operand else {
                    return Err(TraceqlError::at(start, format!("`-` does not work on {}", operand.describe())));
                };
                let range = start.to(of.node.range());
                Ok(Operand::Scalar(self.above(ScalarExpr::Negate { of: Box::new(of.node), range }, &[of.height])?))
            }
            TokenKind::Word => self.aggregate(),
            TokenKind::Field(_) => Err(TraceqlError::at(start, "a field must stand inside `{ }`")
                .expecting(format!("`{{ {} … }}`", self.written()))),
            _ => Err(self.unexpected("`{`, `(`, a function or a value")),
        }
    }

    /// `{ condition }`.
    pub(super) fn filter(&mut self) -> Parsed<Option<Tall<FieldExpr>>> {
        self.expect_symbol(Symbol::OpenBrace)?;
        if self.take_symbol(Symbol::CloseBrace) {
            return Ok(None);
        }
        let condition = self.field_expr()?;
        if !self.is_symbol(Symbol::CloseBrace) {
            return Err(self.unexpected("an operator or `}`"));
        }
        self.advance();
        Ok(Some(condition))
    }

    fn aggregate(&mut self) -> Parsed<Operand> {
        let start = self.range();
        let op = match self.written() {
            "count" => AggregateOp::Count,
            "avg" => AggregateOp::Avg,
            "min" => AggregateOp::Min,
            "max" => AggregateOp::Max,
            "sum" => AggregateOp::Sum,
            _ => return Err(self.unknown_stage()),
        };
        self.advance();
        self.expect_symbol(Symbol::OpenParen)?;
        let of = if op == AggregateOp::Count { None } else { Some(self.field_expr()?) };
        self.expect_symbol(Symbol::CloseParen)?;
        let range = start.to(self.last_range());
        let (of, height) = of.map_or((None, 0), |tall| (Some(tall.node), tall.height));
        Ok(Operand::Scalar(self.above(ScalarExpr::Aggregate { op, of, range }, &[height])?))
    }

    /// The error for a word that begins no stage.
    fn unknown_stage(&self) -> TraceqlError {
        let word = self.written();
        if self.intrinsic().is_some() {
            return TraceqlError::at(self.range(), "a field must stand inside `{ }`")
                .expecting(format!("`{{ {word} … }}`"));
        }
        if SECOND_STAGES.contains(&word) {
            return TraceqlError::at(self.range(), format!("`{word}` works on series"))
                .expecting("a metrics function such as `rate()` before it");
        }
        let known =
            SPANSET_STAGES.into_iter().chain(AGGREGATES).chain(METRICS_FUNCTIONS).chain(SECOND_STAGES).chain(SINKS);
        let error = TraceqlError::at(self.range(), format!("unknown function `{word}`"));
        match nearest(word, known) {
            Some(meant) => error.suggesting(Some(meant.to_owned())),
            None => error.expecting("`{`, `(`, an aggregate, a stage or a metrics function"),
        }
    }

    fn spanset_stage(&mut self, word: &str, is_first: bool) -> Parsed<Tall<Stage>> {
        let start = self.range();
        self.advance();
        self.expect_symbol(Symbol::OpenParen)?;
        let stage = match word {
            "by" => {
                let expr = self.field_expr()?;
                if self.is_symbol(Symbol::Comma) {
                    return Err(self.unexpected("`)`: for several fields, write `| by(a) | by(b)`"));
                }
                Tall { node: Stage::By(expr.node), height: expr.height }
            }
            "coalesce" => {
                if is_first {
                    return Err(TraceqlError::at(start, "`coalesce()` needs spansets to merge")
                        .expecting("a spanset or `by(…)` before it"));
                }
                Tall::leaf(Stage::Coalesce(start))
            }
            _ => {
                let fields = self.field_list("a field to select")?;
                Tall::leaf(Stage::Select(fields))
            }
        };
        self.expect_symbol(Symbol::CloseParen)?;
        Ok(stage)
    }

    /// Fields separated by commas; not general expressions, because a result shows them under their names.
    pub(super) fn field_list(&mut self, expected: &str) -> Parsed<Vec<FieldExpr>> {
        let mut fields = Vec::new();
        loop {
            if matches!(self.kind(), TokenKind::Symbol(_) | TokenKind::End) {
                return Err(self.unexpected(expected));
            }
            let field = self.field_expr()?.node;
            if !matches!(field.kind, FieldExprKind::Field(_)) {
                return Err(TraceqlError::at(field.range, format!("`{field}` is not a field")).expecting(expected));
            }
            fields.push(field);
            if !self.take_symbol(Symbol::Comma) {
                return Ok(fields);
            }
        }
    }
}
