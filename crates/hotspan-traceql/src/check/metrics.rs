//! Rules of metrics queries.

use super::expr::{Type, check_condition, type_of};
use super::{Checked, check_measured, check_pipeline, check_series_filter};
use crate::ast::{Literal, MetricsExpr, MetricsFunction, MetricsQuery, SecondStage};
use crate::error::TraceqlError;

/// Labels a series may have; functions that add one of their own allow one fewer.
const MAX_GROUP_BY: usize = 5;

pub(super) fn check_metrics(metrics: &MetricsExpr) -> Checked<()> {
    match metrics {
        MetricsExpr::Query(query) => check_query(query),
        MetricsExpr::Number { .. } => Ok(()),
        MetricsExpr::Binary { op, lhs, rhs, .. } => {
            for side in [lhs, rhs] {
                check_metrics(side)?;
                refuse_compare(side, "arithmetic")?;
            }
            let divides_by_zero = matches!(**rhs, MetricsExpr::Number { value: Literal::Int(0), .. });
            super::expr::refuse_zero_divisor(*op, divides_by_zero, rhs.range())
        }
        MetricsExpr::Staged { of, stage, range } => {
            check_metrics(of)?;
            refuse_compare(of, "a second stage")?;
            match stage {
                SecondStage::Filter(op, literal) => check_series_filter(*op, literal, *range),
                SecondStage::TopK(_) | SecondStage::BottomK(_) => Ok(()),
            }
        }
    }
}

fn refuse_compare(of: &MetricsExpr, what: &str) -> Checked<()> {
    if let MetricsExpr::Query(query) = of
        && matches!(query.function, MetricsFunction::Compare { .. })
    {
        return Err(TraceqlError::at(query.range, format!("`compare()` does not take part in {what}")));
    }
    Ok(())
}

fn check_query(query: &MetricsQuery) -> Checked<()> {
    check_pipeline(&query.pipeline)?;
    let most = match &query.function {
        MetricsFunction::Rate | MetricsFunction::CountOverTime => MAX_GROUP_BY,
        MetricsFunction::MinOverTime(of) | MetricsFunction::MaxOverTime(of) | MetricsFunction::SumOverTime(of) => {
            check_measured(of, query.function.name())?;
            MAX_GROUP_BY
        }
        MetricsFunction::AvgOverTime(of)
        | MetricsFunction::QuantileOverTime(of, _)
        | MetricsFunction::HistogramOverTime(of) => {
            check_measured(of, query.function.name())?;
            MAX_GROUP_BY - 1
        }
        MetricsFunction::Compare { selection, .. } => {
            if let Some(condition) = selection {
                check_condition(condition)?;
            }
            0
        }
    };
    for field in &query.by {
        if type_of(field)? == Type::Parent {
            return Err(TraceqlError::at(field.range, "`parent` has no value of its own")
                .expecting("one of its attributes, such as `parent.span.x`"));
        }
    }
    if let Some(extra) = query.by.get(most) {
        let message = format!("`{}` groups by at most {most} fields, not {}", query.function.name(), query.by.len());
        return Err(TraceqlError::at(extra.range, message));
    }
    Ok(())
}
