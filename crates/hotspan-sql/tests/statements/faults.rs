//! Statements that ask for what the engine has not thought of.

use hotspan_sql::SqlError;
use hotspan_sql::output::Format;

use crate::store::{store, text};

/// Scenario: functions of values that they are not made for, clauses of other databases, and an id written as text.
/// Guarantee: the statement is told what is wrong with it, without the engine's own view of it, and nobody is asked to report a bug.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_statement_is_at_fault() {
    let (_folder, _lake, engine) = store(1).await;
    for (statement, names) in [
        ("SELECT min(attributes) FROM spans", "not implemented for type Map"),
        ("SELECT min(events) FROM spans", "Uncomparable values"),
        ("SELECT array_resize([1], -1)", "array_resize: failed to convert size"),
        ("SELECT median(name) FROM spans", "No function matches the given name and argument types 'median(Utf8)'"),
        ("SELECT TOP 2 name FROM spans", "not supported: TOP"),
        (
            "SELECT 1 FROM spans s SEMI JOIN traces t ON s.trace_id = t.trace_id",
            "not supported: Unsupported JOIN operator Semi",
        ),
        ("SELECT * FROM spans UNPIVOT (v FOR k IN (duration, kind))", "not supported: Unsupported ast node Unpivot"),
        ("SELECT count(*) FROM spans TABLESAMPLE (10)", "not supported: TABLESAMPLE"),
        (
            "SELECT name FROM spans WHERE trace_id = '0af7651916cd43dd8448eb211c80319c'",
            "ids are bytes: trace_id = X'0af7",
        ),
        ("SELECT approx_median(start_time) FROM spans", "argument types 'approx_median(Timestamp(ns))'"),
    ] {
        match text(&engine, statement, Format::Json).await {
            Err(SqlError::Invalid(message)) => {
                assert!(message.contains(names), "{statement}: {message}");
                let of_a_library = ["bug", "DataFusion", "github", "Internal error", "Error during planning", " { "];
                assert!(!of_a_library.iter().any(|name| message.contains(name)), "{statement}: {message}");
                assert!(!message.ends_with(['.', ' ', '\n']), "{statement}: {message}");
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
}
