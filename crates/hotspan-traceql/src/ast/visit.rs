//! Walking over every field expression of a query.

use super::{
    Field, FieldExpr, FieldExprKind, MetricsExpr, MetricsFunction, Query, QueryBody, ScalarExpr, Sink, SpansetExpr,
    Stage,
};
use crate::error::SourceRange;

impl Query {
    /// Calls `visit` for every mention of a field, with its place; the baseline of `diff(…)` included.
    pub fn for_each_field<'a>(&'a self, visit: &mut dyn FnMut(&'a Field, SourceRange)) {
        match &self.body {
            QueryBody::Search { pipeline, sink } => {
                stages(&pipeline.stages, visit);
                if let Some(Sink::Diff { baseline, .. }) = sink {
                    stages(&baseline.stages, visit);
                }
            }
            QueryBody::Metrics(of) => metrics(of, visit),
        }
    }
}

type Visit<'v, 'a> = &'v mut dyn FnMut(&'a Field, SourceRange);

fn expr<'a>(of: &'a FieldExpr, visit: Visit<'_, 'a>) {
    match &of.kind {
        FieldExprKind::Literal(_) => {}
        FieldExprKind::Field(field) => visit(field, of.range),
        FieldExprKind::Not(inner) | FieldExprKind::Negate(inner) => expr(inner, visit),
        FieldExprKind::Logical { operands, .. } => operands.iter().for_each(|operand| expr(operand, visit)),
        FieldExprKind::Compare { lhs, rhs, .. } | FieldExprKind::Arithmetic { lhs, rhs, .. } => {
            expr(lhs, visit);
            expr(rhs, visit);
        }
    }
}

fn stages<'a>(all: &'a [Stage], visit: Visit<'_, 'a>) {
    for stage in all {
        match stage {
            Stage::Spanset(spans) => spanset(spans, visit),
            Stage::By(of) => expr(of, visit),
            Stage::Coalesce(_) => {}
            Stage::Select(fields) => fields.iter().for_each(|field| expr(field, visit)),
        }
    }
}

fn spanset<'a>(spans: &'a SpansetExpr, visit: Visit<'_, 'a>) {
    match spans {
        SpansetExpr::Filter { condition, .. } => condition.iter().for_each(|condition| expr(condition, visit)),
        SpansetExpr::Binary { lhs, rhs, .. } => {
            spanset(lhs, visit);
            spanset(rhs, visit);
        }
        SpansetExpr::ScalarFilter { lhs, rhs, .. } => {
            scalar(lhs, visit);
            scalar(rhs, visit);
        }
        SpansetExpr::Pipeline(pipeline) => stages(&pipeline.stages, visit),
    }
}

fn scalar<'a>(of: &'a ScalarExpr, visit: Visit<'_, 'a>) {
    match of {
        ScalarExpr::Literal { .. } => {}
        ScalarExpr::Aggregate { of, .. } => of.iter().for_each(|of| expr(of, visit)),
        ScalarExpr::Negate { of, .. } => scalar(of, visit),
        ScalarExpr::Binary { lhs, rhs, .. } => {
            scalar(lhs, visit);
            scalar(rhs, visit);
        }
        ScalarExpr::Pipeline { stages: inner, value, .. } => {
            stages(inner, visit);
            scalar(value, visit);
        }
    }
}

fn metrics<'a>(of: &'a MetricsExpr, visit: Visit<'_, 'a>) {
    match of {
        MetricsExpr::Number { .. } => {}
        MetricsExpr::Binary { lhs, rhs, .. } => {
            metrics(lhs, visit);
            metrics(rhs, visit);
        }
        MetricsExpr::Staged { of, .. } => metrics(of, visit),
        MetricsExpr::Query(query) => {
            stages(&query.pipeline.stages, visit);
            match &query.function {
                MetricsFunction::Rate | MetricsFunction::CountOverTime => {}
                MetricsFunction::MinOverTime(of)
                | MetricsFunction::MaxOverTime(of)
                | MetricsFunction::SumOverTime(of)
                | MetricsFunction::AvgOverTime(of)
                | MetricsFunction::HistogramOverTime(of)
                | MetricsFunction::QuantileOverTime(of, _) => expr(of, visit),
                MetricsFunction::Compare { selection, .. } => {
                    selection.iter().for_each(|condition| expr(condition, visit));
                }
            }
            query.by.iter().for_each(|field| expr(field, visit));
        }
    }
}
