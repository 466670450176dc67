//! Statements that are no questions are refused as such, before anybody tries to plan them: a planner would rather find fault
//! with the values of an `INSERT` than say that nothing can be inserted.

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement};

use crate::error::SqlError;

/// What may be asked.
pub(crate) const QUESTIONS: &str = "SELECT, WITH, EXPLAIN, SHOW and DESCRIBE";

/// Refuses a statement that would change something.
pub(crate) fn refuse_writing(parsed: &Parsed) -> Result<(), SqlError> {
    match parsed {
        Parsed::Explain(explained) => refuse_writing(&explained.statement),
        Parsed::Statement(statement) => refuse_writing_in(statement),
        other => Err(refusal(&other.to_string())),
    }
}

fn refuse_writing_in(statement: &Statement) -> Result<(), SqlError> {
    match statement {
        Statement::Query(query) => match query.body.as_ref() {
            SetExpr::Insert(written)
            | SetExpr::Update(written)
            | SetExpr::Delete(written)
            | SetExpr::Merge(written) => Err(refusal(&written.to_string())),
            _ => Ok(()),
        },
        Statement::Explain { statement, .. } => refuse_writing_in(statement),
        Statement::ExplainTable { .. }
        | Statement::ShowCatalogs { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowCreate { .. }
        | Statement::ShowDatabases { .. }
        | Statement::ShowFunctions { .. }
        | Statement::ShowSchemas { .. }
        | Statement::ShowTables { .. }
        | Statement::ShowVariable { .. }
        | Statement::ShowVariables { .. }
        | Statement::ShowViews { .. } => Ok(()),
        other => Err(refusal(&other.to_string())),
    }
}

fn refusal(statement: &str) -> SqlError {
    let word = statement.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    SqlError::Invalid(format!("SQL is read-only here: {word} is not possible; there are {QUESTIONS}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::sql::parser::DFParser;

    use super::*;

    fn check(statement: &str) -> Result<(), SqlError> {
        refuse_writing(DFParser::parse_sql(statement).unwrap().front().unwrap())
    }

    /// Scenario: questions of every kind, and statements that would write, plain, explained and behind a `WITH`.
    /// Guarantee: questions pass; all others are told that SQL is read-only, and which word was meant.
    #[test]
    fn only_questions_pass() {
        for question in [
            "SELECT 1",
            "(SELECT 1) UNION ALL SELECT 2",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES (1)",
            "EXPLAIN SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
            "SHOW TABLES",
            "SHOW COLUMNS FROM spans",
            "SHOW ALL",
            "DESCRIBE spans",
        ] {
            assert!(check(question).is_ok(), "{question}");
        }
        for (statement, word) in [
            ("insert into spans values (1)", "INSERT"),
            ("EXPLAIN INSERT INTO spans VALUES (1)", "INSERT"),
            ("WITH a AS (SELECT 1) INSERT INTO spans SELECT * FROM a", "INSERT"),
            ("UPDATE spans SET name = 'a'", "UPDATE"),
            ("DELETE FROM spans", "DELETE"),
            ("CREATE TABLE a (b INT)", "CREATE"),
            ("CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '/tmp/a'", "CREATE"),
            ("COPY spans TO '/tmp/a.csv'", "COPY"),
            ("DROP TABLE spans", "DROP"),
            ("SET a = 1", "SET"),
            ("TRUNCATE TABLE spans", "TRUNCATE"),
        ] {
            let told = check(statement).unwrap_err().to_string();
            assert!(told.contains("read-only") && told.contains(&format!(": {word} is")), "{statement}: {told}");
        }
    }
}
