//! Statements that ask for what the engine has not thought of.

use hotspan_sql::SqlError;
use hotspan_sql::output::Format;

use crate::store::{store, text};

/// Scenario: functions of values that they are not made for.
/// Guarantee: the statement is told what is wrong with it, and nobody is asked to report a bug of the engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_statement_is_at_fault() {
    let (_folder, _lake, engine) = store(1).await;
    for (statement, names) in [
        ("SELECT min(attributes) FROM spans", "not implemented for type Map"),
        ("SELECT min(events) FROM spans", "Uncomparable values"),
        ("SELECT array_resize([1], -1)", "array_resize: failed to convert size"),
        ("SELECT median(name) FROM spans", "No function matches the given name and argument types 'median(Utf8)'"),
        ("SELECT approx_median(start_time) FROM spans", "argument types 'approx_median(Timestamp(ns))'"),
    ] {
        match text(&engine, statement, Format::Json).await {
            Err(SqlError::Invalid(message)) => {
                assert!(message.contains(names), "{statement}: {message}");
                let of_a_library = ["bug", "DataFusion", "github", "Internal error", "Error during planning"];
                assert!(!of_a_library.iter().any(|name| message.contains(name)), "{statement}: {message}");
                assert!(!message.ends_with(['.', ' ', '\n']), "{statement}: {message}");
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
}
