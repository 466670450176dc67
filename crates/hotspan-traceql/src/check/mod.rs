//! Types: what can be known to be wrong before any span is seen.
//!
//! An attribute's type is only known at run time, where a mismatch is simply no match; literals and intrinsics have
//! fixed types, and a mismatch between those is a mistake in the query.

mod expr;
mod metrics;

use crate::ast::{
    AggregateOp, CompareOp, Hint, Pipeline, Query, QueryBody, ScalarExpr, Sink, SpansetExpr, SpansetOp, Stage,
};
use crate::error::{SourceRange, TraceqlError};
use expr::{Type, check_compared, check_condition, mentions_a_field, type_of};

type Checked<T> = Result<T, TraceqlError>;

/// Checks a parsed query.
pub(crate) fn check(query: &Query) -> Checked<()> {
    match &query.body {
        QueryBody::Search { pipeline, sink } => {
            check_pipeline(pipeline)?;
            if let Some(Sink::Diff { baseline, .. }) = sink {
                check_pipeline(baseline)?;
            }
        }
        QueryBody::Metrics(metrics) => metrics::check_metrics(metrics)?,
    }
    for hint in &query.hints {
        check_hint(hint)?;
    }
    Ok(())
}

/// Known hints must have values of their type; unknown ones are ignored, as Tempo does.
fn check_hint(hint: &Hint) -> Checked<()> {
    use crate::ast::Literal::{Bool, Float, Int};
    let (fits, expected) = match hint.name.as_str() {
        "most_recent" | "extrapolate" | "precise_quantiles" => (matches!(hint.value, Bool(_)), "true or false"),
        "exemplars" => (matches!(hint.value, Bool(_) | Int(0..)), "true, false or how many"),
        "sample" => {
            let fits =
                matches!(hint.value, Bool(_)) || matches!(hint.value, Float(share) if share > 0.0 && share <= 1.0);
            (fits || matches!(hint.value, Int(1)), "true, false or a share between 0 and 1")
        }
        "span_sample" | "trace_sample" => {
            let fits = matches!(hint.value, Float(share) if share > 0.0 && share <= 1.0);
            (fits || matches!(hint.value, Int(1) | Bool(_)), "a share between 0 and 1")
        }
        _ => return Ok(()),
    };
    if fits {
        return Ok(());
    }
    let message = format!("hint `{}` cannot be `{}`", hint.name, hint.value);
    Err(TraceqlError::at(hint.range, message).expecting(expected))
}

fn check_pipeline(pipeline: &Pipeline) -> Checked<()> {
    check_stages(&pipeline.stages)
}

fn check_stages(stages: &[Stage]) -> Checked<()> {
    for stage in stages {
        match stage {
            Stage::Spanset(spans) => check_spanset(spans)?,
            Stage::By(expr) => {
                let found = type_of(expr)?;
                if found == Type::Nil || found == Type::Parent || !mentions_a_field(expr) {
                    return Err(TraceqlError::at(expr.range, format!("`by({expr})` does not tell spans apart"))
                        .expecting("an expression with a field of the span"));
                }
            }
            Stage::Coalesce(_) => {}
            Stage::Select(fields) => {
                for field in fields {
                    if type_of(field)? == Type::Parent {
                        return Err(TraceqlError::at(field.range, "`parent` has no value of its own")
                            .expecting("one of its attributes, such as `parent.span.x`"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether the stages may leave several spansets of one trace.
fn may_split(stages: &[Stage]) -> bool {
    let mut split = false;
    for stage in stages {
        match stage {
            Stage::By(_) => split = true,
            Stage::Coalesce(_) => split = false,
            Stage::Spanset(_) | Stage::Select(_) => {}
        }
    }
    split
}

fn refuse_split(stages: &[Stage], range: SourceRange, who: &str) -> Checked<()> {
    if may_split(stages) {
        return Err(TraceqlError::at(range, format!("{who} takes one spanset, but `by(…)` makes several"))
            .expecting("`| coalesce()` after `by(…)`"));
    }
    Ok(())
}

fn check_spanset(spans: &SpansetExpr) -> Checked<()> {
    match spans {
        SpansetExpr::Filter { condition: None, .. } => Ok(()),
        SpansetExpr::Filter { condition: Some(condition), .. } => check_condition(condition),
        SpansetExpr::Binary { op, lhs, rhs, .. } => {
            check_spanset(lhs)?;
            check_spanset(rhs)?;
            if let SpansetOp::Structural { .. } = op {
                for side in [lhs, rhs] {
                    if let SpansetExpr::Pipeline(pipeline) = &**side {
                        refuse_split(&pipeline.stages, pipeline.range, &format!("`{}`", op.symbol()))?;
                    }
                }
            }
            Ok(())
        }
        SpansetExpr::ScalarFilter { op, op_range, lhs, rhs } => {
            let (left, right) = (scalar_type(lhs)?, scalar_type(rhs)?);
            if is_constant(lhs) && is_constant(rhs) {
                return Err(TraceqlError::at(spans.range(), "both sides are constants")
                    .expecting("an aggregate such as `count()` on one side"));
            }
            check_compared(left, &lhs.to_string(), *op, *op_range, right, &rhs.to_string(), rhs.range())
        }
        SpansetExpr::Pipeline(pipeline) => check_pipeline(pipeline),
    }
}

fn is_constant(scalar: &ScalarExpr) -> bool {
    match scalar {
        ScalarExpr::Literal { .. } => true,
        ScalarExpr::Aggregate { .. } | ScalarExpr::Pipeline { .. } => false,
        ScalarExpr::Negate { of, .. } => is_constant(of),
        ScalarExpr::Binary { lhs, rhs, .. } => is_constant(lhs) && is_constant(rhs),
    }
}

fn scalar_type(scalar: &ScalarExpr) -> Checked<Type> {
    match scalar {
        ScalarExpr::Literal { value, range } => match Type::of_literal(value) {
            Type::Nil => Err(TraceqlError::at(*range, "an aggregate is never nil").expecting("a number or a duration")),
            found => Ok(found),
        },
        ScalarExpr::Aggregate { op: AggregateOp::Count, .. } | ScalarExpr::Aggregate { of: None, .. } => Ok(Type::Int),
        ScalarExpr::Aggregate { op, of: Some(of), .. } => {
            let found = check_measured(of, op.name())?;
            Ok(if *op == AggregateOp::Avg && found == Type::Int { Type::Float } else { found })
        }
        ScalarExpr::Negate { of, range } => {
            let found = scalar_type(of)?;
            if !found.is_numeric() {
                return Err(TraceqlError::at(*range, format!("`-` does not work on {}", found.name())));
            }
            Ok(found)
        }
        ScalarExpr::Binary { op, lhs, rhs } => {
            let (left, right) = (scalar_type(lhs)?, scalar_type(rhs)?);
            for (found, side) in [(left, lhs), (right, rhs)] {
                if !found.is_numeric() {
                    let message = format!("`{}` does not work on {}", op.symbol(), found.name());
                    return Err(TraceqlError::at(side.range(), message).expecting("a number or a duration"));
                }
            }
            expr::refuse_zero_divisor(
                *op,
                matches!(**rhs, ScalarExpr::Literal { value: crate::ast::Literal::Int(0), .. }),
                rhs.range(),
            )?;
            Ok(Type::of_arithmetic(left, *op, right))
        }
        ScalarExpr::Pipeline { stages, value, range } => {
            check_stages(stages)?;
            refuse_split(stages, *range, "a comparison")?;
            scalar_type(value)
        }
    }
}

/// Checks what an aggregate or an over-time function measures.
fn check_measured(of: &crate::ast::FieldExpr, function: &str) -> Checked<Type> {
    let found = type_of(of)?;
    if !found.is_numeric() {
        let message = format!("`{function}` needs numbers, but `{of}` is {}", found.name());
        return Err(TraceqlError::at(of.range, message).expecting("a number or a duration"));
    }
    if !mentions_a_field(of) {
        return Err(TraceqlError::at(of.range, format!("`{function}({of})` does not depend on the span"))
            .expecting("an expression with a field of the span"));
    }
    Ok(found)
}

/// Series and aggregates know numbers only; this is the comparison of a series with a literal.
fn check_series_filter(op: CompareOp, literal: &crate::ast::Literal, range: SourceRange) -> Checked<()> {
    let found = Type::of_literal(literal);
    if found.is_numeric() {
        return Ok(());
    }
    Err(TraceqlError::at(range, format!("series cannot be compared (`{}`) with {}", op.symbol(), found.name()))
        .expecting("a number or a duration"))
}
