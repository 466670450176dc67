//! Which tables there are, as SQL tells it.

use hotspan_sql::output::Format;

use crate::store::{json, store, text};

/// Scenario: every way to list schemas, tables, columns and functions, and a look at what the views are made of.
/// Guarantee: all tables of docs/sql.md are there, and nothing that is only used inside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_can_be_asked_is_listed() {
    let (_folder, _lake, engine) = store(1).await;
    for listing in [
        "SHOW TABLES",
        "SELECT * FROM information_schema.schemata",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.views",
        "SELECT table_schema, table_name, column_name FROM information_schema.columns",
        "SHOW FUNCTIONS",
    ] {
        let told = json(&engine, listing).await.to_string();
        assert!(!told.contains("pieces") && !told.contains("saturating"), "{listing}: {told}");
    }
    let tables = json(&engine, "SHOW TABLES").await;
    let names: Vec<&str> = tables["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["table_schema"] != "information_schema")
        .map(|row| row["table_name"].as_str().unwrap())
        .collect();
    for name in ["spans", "traces", "samples", "rollup_15s", "rollup_1h", "profiles", "series", "nodes", "frames"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for table in ["pieces.traces", "lake.pieces.rollup_1h"] {
        let refusal = text(&engine, &format!("SELECT * FROM {table}"), Format::Json).await.unwrap_err();
        assert!(refusal.to_string().contains("there is no table"), "{refusal}");
    }
}
