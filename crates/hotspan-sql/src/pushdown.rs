//! What a statement's filters say about where its rows can be: a range of time, or one id.
//!
//! Only narrows what is read; DataFusion still filters the rows, so a filter that is not understood costs time and
//! nothing else.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};
use hotspan_lake::Table;
use hotspan_lake::segment::id_index::IdKind;

/// Where the rows can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// Times from the first up to, not including, the second.
    pub(crate) time: (i64, i64),
    /// Rows with this id alone.
    pub(crate) id: Option<(IdKind, Vec<u8>)>,
}

impl Default for Narrowing {
    fn default() -> Self {
        Self { time: (i64::MIN, i64::MAX), id: None }
    }
}

impl Narrowing {
    /// What all of these filters say of a table's rows.
    pub(crate) fn of(table: Table, filters: &[Expr]) -> Self {
        let mut narrowing = Self::default();
        for filter in filters {
            narrowing.add(table, filter);
        }
        narrowing
    }

    /// Whether a filter says anything.
    pub(crate) fn understands(table: Table, filter: &Expr) -> bool {
        Self::of(table, std::slice::from_ref(filter)) != Self::default()
    }

    fn add(&mut self, table: Table, filter: &Expr) {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                self.add(table, left);
                self.add(table, right);
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let (Some(column), Some(value)) = (column_of(left), literal_of(right)) {
                    self.compare(table, column, *op, value);
                } else if let (Some(value), Some(column)) = (literal_of(left), column_of(right))
                    && let Some(op) = op.swap()
                {
                    self.compare(table, column, op, value);
                }
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                if let (Some(column), Some(low), Some(high)) = (column_of(expr), literal_of(low), literal_of(high)) {
                    self.compare(table, column, Operator::GtEq, low);
                    self.compare(table, column, Operator::LtEq, high);
                }
            }
            _ => {}
        }
    }

    fn compare(&mut self, table: Table, column: &str, op: Operator, value: &ScalarValue) {
        if column == table.time_column() {
            if let Some(time) = nanos_of(value) {
                self.compare_time(op, time);
            }
        } else if op == Operator::Eq
            && let Some(kind) = indexed_id(table, column)
            && let Some(id) = bytes_of(value)
        {
            self.id = Some((kind, id.to_vec()));
        }
    }

    fn compare_time(&mut self, op: Operator, time: i64) {
        let (from, until) = &mut self.time;
        match op {
            Operator::Gt => *from = (*from).max(time.saturating_add(1)),
            Operator::GtEq => *from = (*from).max(time),
            Operator::Lt => *until = (*until).min(time),
            Operator::LtEq => *until = (*until).min(time.saturating_add(1)),
            Operator::Eq => {
                *from = (*from).max(time);
                *until = (*until).min(time.saturating_add(1));
            }
            _ => {}
        }
    }
}

/// The kind of id that a column holds, where the table has an index of it.
fn indexed_id(table: Table, column: &str) -> Option<IdKind> {
    match (table, column) {
        (Table::Spans | Table::Samples, "trace_id") => Some(IdKind::Trace),
        (Table::Samples, "span_id") => Some(IdKind::Span),
        _ => None,
    }
}

/// The column under casts that keep the order of times and the equality of ids.
fn column_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(column.name()),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => match expr.as_ref() {
            Expr::Column(column) => Some(column.name()),
            _ => None,
        },
        _ => None,
    }
}

fn literal_of(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn nanos_of(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampNanosecond(time, _) => *time,
        // Coarser times are exact only if the column was not cut down to them first.
        _ => None,
    }
}

fn bytes_of(value: &ScalarValue) -> Option<&[u8]> {
    match value {
        ScalarValue::FixedSizeBinary(_, bytes)
        | ScalarValue::Binary(bytes)
        | ScalarValue::LargeBinary(bytes)
        | ScalarValue::BinaryView(bytes) => bytes.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn time(nanos: i64) -> Expr {
        lit(ScalarValue::TimestampNanosecond(Some(nanos), None))
    }

    /// Scenario: comparisons of the time column, either way round, joined by AND. Guarantee: the range they leave.
    #[test]
    fn time_ranges() {
        let of = |expr: Expr| Narrowing::of(Table::Samples, &[expr]).time;
        assert_eq!(of(col("time").gt_eq(time(10)).and(col("time").lt(time(20)))), (10, 20));
        assert_eq!(of(time(10).lt(col("time")).and(time(20).gt_eq(col("time")))), (11, 21));
        assert_eq!(of(col("time").between(time(5), time(6))), (5, 7));
        assert_eq!(of(col("time").eq(time(i64::MAX))), (i64::MAX, i64::MAX));
        assert_eq!(of(col("time").gt(time(1)).or(col("value").gt(lit(3)))), (i64::MIN, i64::MAX));
        assert_eq!(of(col("start_time").gt(time(1))), (i64::MIN, i64::MAX));
    }

    /// Scenario: equality with ids. Guarantee: only ids that an index finds narrow anything.
    #[test]
    fn ids() {
        let id = lit(ScalarValue::Binary(Some(vec![7; 16])));
        let narrowed = Narrowing::of(Table::Spans, &[col("trace_id").eq(id.clone())]);
        assert_eq!(narrowed.id, Some((IdKind::Trace, vec![7; 16])));
        assert!(!Narrowing::understands(Table::Spans, &col("span_id").eq(id.clone())));
        assert!(!Narrowing::understands(Table::Spans, &col("trace_id").not_eq(id)));
    }
}
