//! Clauses that the parser knows and the planner leaves out without a word: what somebody asked of a tenth of the rows would be
//! answered from all of them.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, OrderByKind, Query, Select, Statement, TableFactor, Visit, Visitor,
};

use crate::error::SqlError;

/// Refuses a statement with a clause that would be left out, anywhere in it.
pub(crate) fn refuse_left_out(parsed: &Parsed) -> Result<(), SqlError> {
    match parsed {
        Parsed::Explain(explained) => refuse_left_out(&explained.statement),
        Parsed::Statement(statement) => refuse_left_out_in(statement),
        _ => Ok(()),
    }
}

fn refuse_left_out_in(statement: &Statement) -> Result<(), SqlError> {
    match statement.visit(&mut Clauses) {
        ControlFlow::Break(clause) => Err(SqlError::Invalid(format!("not supported: {clause}"))),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Stops at the first clause that is left out.
struct Clauses;

impl Visitor for Clauses {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let order = query.order_by.as_ref();
        let fills = order.is_some_and(|order| match &order.kind {
            OrderByKind::Expressions(exprs) => exprs.iter().any(|expr| expr.with_fill.is_some()),
            OrderByKind::All(_) => false,
        });
        stop_at(&[
            ("WITH FILL", fills),
            ("INTERPOLATE", order.is_some_and(|order| order.interpolate.is_some())),
            ("FOR UPDATE and FOR SHARE", !query.locks.is_empty()),
            ("FOR XML, FOR JSON and FOR BROWSE", query.for_clause.is_some()),
            ("SETTINGS", query.settings.is_some()),
            ("FORMAT", query.format_clause.is_some()),
        ])
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &select.group_by;
        stop_at(&[
            ("PREWHERE", select.prewhere.is_some()),
            ("CONNECT BY and START WITH", !select.connect_by.is_empty()),
            ("WITH behind GROUP BY", !modifiers.is_empty()),
        ])
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            TableFactor::Table {
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => stop_at(&[
                ("TABLESAMPLE", sample.is_some()),
                ("PARTITION", !partitions.is_empty()),
                ("WITH ORDINALITY", *with_ordinality),
                ("a version of a table", version.is_some()),
                ("a path into a table", json_path.is_some()),
                ("WITH behind a table", !with_hints.is_empty()),
                ("a hint behind a table", !index_hints.is_empty()),
            ]),
            TableFactor::Derived { sample, .. } => stop_at(&[("TABLESAMPLE", sample.is_some())]),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn stop_at(clauses: &[(&'static str, bool)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(_, is_there)| *is_there) {
        Some((clause, _)) => ControlFlow::Break(clause),
        None => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::sql::parser::DFParser;

    use super::*;

    fn check(statement: &str) -> Result<(), SqlError> {
        refuse_left_out(DFParser::parse_sql(statement).unwrap().front().unwrap())
    }

    /// Scenario: clauses of other databases that the planner would leave out, at the top of a statement, explained, and deep in it.
    /// Guarantee: each is refused by its name; statements without them pass.
    #[test]
    fn what_would_be_left_out_is_refused() {
        for (statement, clause) in [
            ("SELECT count(*) FROM spans TABLESAMPLE (10)", "TABLESAMPLE"),
            ("EXPLAIN SELECT count(*) FROM spans TABLESAMPLE (10)", "TABLESAMPLE"),
            ("SELECT 1 WHERE 1 IN (SELECT kind FROM (SELECT kind FROM spans) TABLESAMPLE (10))", "TABLESAMPLE"),
            ("SELECT 1 UNION ALL SELECT count(*) FROM spans PREWHERE duration > 5", "PREWHERE"),
            ("SELECT name FROM spans CONNECT BY PRIOR span_id = parent_span_id", "CONNECT BY"),
            ("SELECT service, count(*) FROM spans GROUP BY service WITH TOTALS", "GROUP BY"),
            ("WITH a AS (SELECT kind FROM spans ORDER BY kind WITH FILL) SELECT * FROM a", "WITH FILL"),
            ("SELECT count(*) FROM spans PARTITION (p0)", "PARTITION"),
            ("SELECT count(*) FROM spans WITH (NOLOCK)", "WITH behind a table"),
            ("SELECT count(*) FROM spans FOR UPDATE", "FOR UPDATE"),
            ("SELECT count(*) FROM spans SETTINGS a = 1", "SETTINGS"),
        ] {
            let told = check(statement).unwrap_err().to_string();
            assert!(told.starts_with("not supported: ") && told.contains(clause), "{statement}: {told}");
        }
        for statement in [
            "SELECT DISTINCT ON (service) service, name FROM spans s ORDER BY service LIMIT 2 OFFSET 1",
            "SELECT service, count(*) FROM spans GROUP BY ROLLUP(service)",
            "WITH a AS (SELECT 1) SELECT * FROM a JOIN (SELECT 2) AS b ON true, range(3)",
            "SHOW TABLES",
        ] {
            assert!(check(statement).is_ok(), "{statement}");
        }
    }
}
