//! Statements over a real store, at every level of compaction.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod arithmetic;
mod catalog;
mod faults;
mod maps;
mod spans_without_end;
mod store;
mod sums;
mod symbol_functions;
mod unions;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hotspan_model::TenantId;
use hotspan_query::Engine;
use hotspan_sql::output::{Encoder, Format};
use hotspan_sql::{SqlEngine, SqlError, SqlOptions};
use store::{SECOND, answers_at_every_level, json, store, text};

/// Statements that touch every table, with filters that are pushed down and such that are not.
const STATEMENTS: [&str; 14] = [
    "SELECT count(*) AS n FROM spans",
    "SELECT service, count(*) AS n, sum(duration) AS total FROM spans GROUP BY service ORDER BY service",
    "SELECT span_id, name FROM spans WHERE trace_id = X'07070707070707070707070707070707' ORDER BY span_id",
    "SELECT start_time FROM spans WHERE start_time >= TIMESTAMP '2023-11-14T22:15:00' ORDER BY start_time",
    "SELECT attributes['customer'] AS customer, attributes_json['attempt'] AS attempt FROM spans ORDER BY start_time",
    "SELECT * FROM traces",
    "SELECT count(*) AS n FROM spans s JOIN samples p ON s.trace_id = p.trace_id AND s.span_id = p.span_id",
    "SELECT sum(value) AS v FROM samples WHERE span_id = X'0202020202020202' AND time < TIMESTAMP '2023-11-14T22:15:00'",
    "SELECT stack(path) AS stack, sum(value) AS v FROM samples GROUP BY path ORDER BY v DESC",
    "SELECT function(path) AS f, location(path) AS l, time, value, count FROM rollup_15s ORDER BY time, value",
    "SELECT time, value, count FROM rollup_1h ORDER BY time, value",
    "SELECT collapsed(flame_merge(path, value)) AS flame FROM samples",
    "SELECT f.function, count(*) AS n FROM nodes n JOIN frames f ON n.frame = f.id GROUP BY f.function ORDER BY 1",
    "SELECT service, profile_type, labels FROM series",
];

/// Scenario: statements over eight flushes, after each step of compaction through all levels.
/// Guarantee: every answer stays byte for byte what it was (R2, R3), and the sums are the true ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_never_changes_an_answer() {
    let (_folder, lake, engine) = store(8).await;
    let answers = answers_at_every_level(&lake, &engine, &STATEMENTS).await;
    assert_eq!(answers[0]["rows"][0]["n"], 16);
    assert_eq!(answers[2]["rows"].as_array().unwrap().len(), 16);
    assert_eq!(answers[3]["rows"].as_array().unwrap().len(), 12);
    assert_eq!(answers[4]["rows"][2], serde_json::json!({"customer": "acme", "attempt": "1"}));
    let trace = &answers[5]["rows"];
    assert_eq!(trace.as_array().unwrap().len(), 1);
    assert_eq!((&trace[0]["spans"], &trace[0]["root_service"]), (&16.into(), &"front".into()));
    assert_eq!(trace[0]["services"], serde_json::json!(["front", "order-service"]));
    assert_eq!(answers[6]["rows"][0]["n"], 24);
    assert_eq!(answers[7]["rows"][0]["v"], 2 * 38);
    assert_eq!(answers[8]["rows"][0], serde_json::json!({"stack": "main;handle;parse", "v": 8 * 33}));
    assert_eq!(answers[9]["rows"].as_array().unwrap().len(), 16);
    assert_eq!(answers[10]["rows"].as_array().unwrap().len(), 2);
    assert_eq!(answers[11]["rows"][0]["flame"], "main;handle;parse 264\nmain;handle;render 40");
    assert_eq!(answers[12]["rows"].as_array().unwrap().len(), 4);
    assert_eq!(answers[13]["rows"].as_array().unwrap().len(), 1);
}

/// Scenario: statements that would write, that are wrong, that reach for files, that need too much.
/// Guarantee: each is refused with a message that names what is wrong, and nothing changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals() {
    let (_folder, lake, engine) = store(2).await;
    let version = lake.catalog().snapshot().version();
    let refused = [
        ("DELETE FROM spans", "read-only"),
        ("INSERT INTO spans SELECT * FROM spans", "read-only"),
        ("CREATE TABLE t AS SELECT 1", "read-only"),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "read-only"),
        ("COPY spans TO '/tmp/x.csv'", "read-only"),
        ("DROP TABLE spans", "read-only"),
        ("SET datafusion.execution.batch_size = 1", "read-only"),
        ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
        ("SELECT nme FROM spans", "line 1, column 8: No field named nme"),
        ("SELECT \"Name\" FROM spans", "No field named \"Name\". Did you mean 'spans.name'?"),
        ("SELECT * FROM span", "line 1, column 15: there is no table span; there are spans, "),
        ("SELECT * FROM hotspan.segment", "no table hotspan.segment; there are spans, "),
        ("SELECT * FROM segments", "hotspan.segments and hotspan.queries"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT name FROM spans WHERE start_time > 1795070325937300903", "to_timestamp_nanos("),
        ("SELEC 1", "line 1, column 1: Expected: an SQL statement, found: SELEC"),
        ("SELECT name\nFROM spans WHERE )", "line 2, column 18: Expected: an expression, found: )"),
        ("SELECT 'name", "line 1, column 8: Unterminated string literal"),
        ("", ""),
    ];
    for (statement, names) in refused {
        match text(&engine, statement, Format::Json).await {
            Err(SqlError::Invalid(message)) => {
                assert!(message.contains(names), "{statement}: {message}");
                let of_a_library = [
                    "enable_ident",
                    "'lake.",
                    "The context",
                    "ParserError",
                    "SQL error",
                    "Error during planning",
                    "Schema error",
                ];
                assert!(!of_a_library.iter().any(|name| message.contains(name)), "{statement}: {message}");
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
    assert_eq!(lake.catalog().snapshot().version(), version);
}

/// Scenario: a cross join that would run for hours, with little time, and a sort of it with little memory.
/// Guarantee: each ends with an error that names the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits() {
    let (_folder, lake, _) = store(8).await;
    let engine = |options| SqlEngine::start(Engine::new(Arc::clone(&lake)), options).unwrap();
    let huge = "SELECT count(*) FROM samples a, samples b, samples c, samples d, samples e, samples f, samples g";
    let hasty = SqlOptions { time_limit: Duration::from_millis(300), ..SqlOptions::default() };
    match text(&engine(hasty), huge, Format::Json).await {
        Err(SqlError::Limit(message)) => assert!(message.contains("sql.time_limit"), "{message}"),
        other => panic!("{other:?}"),
    }
    let small = SqlOptions { memory_bytes: 1 << 20, ..SqlOptions::default() };
    let sorted = "SELECT a.path, b.time FROM samples a, samples b, samples c, samples d ORDER BY 2, 1";
    match text(&engine(small), sorted, Format::Json).await {
        Err(SqlError::Limit(message)) => assert!(message.contains("sql.memory"), "{message}"),
        other => panic!("{other:?}"),
    }
}

/// Scenario: statements that make huge values out of nothing, by every function that can, and modest uses of the same.
/// Guarantee: the huge ones are refused before they are made, with the limit named; the modest ones are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_do_not_grow_without_end() {
    let (_folder, _lake, engine) = store(1).await;
    let huge = [
        "length(repeat('x', 2000000000))",
        "length(lpad('x', 2000000000))",
        "length(rpad('x', 2000000000, 'ab'))",
        "length(replace(repeat('x', 60000), 'x', repeat('y', 60000)))",
        "length(regexp_replace(repeat('x', 60000), 'x', repeat('y', 60000), 'g'))",
        "array_length(array_repeat(1, 2000000000))",
        "array_length(array_resize([1], 2000000000, 0))",
        "array_length(range(0, 2000000000))",
        "array_length(generate_series(0, -2000000000, -1))",
        "array_length(generate_series(timestamp '2020-01-01', timestamp '2021-01-01', interval '1 second'))",
        "array_length(range(date '0001-01-01', date '9999-01-01', interval '1 day'))",
    ];
    for expression in huge {
        match text(&engine, &format!("SELECT {expression}"), Format::Json).await {
            Err(SqlError::Limit(message)) => assert!(message.contains("65536"), "{expression}: {message}"),
            other => panic!("{expression}: {other:?}"),
        }
    }
    let per_row = "SELECT max(length(repeat(cast(value as varchar), value * 100000))) FROM samples WHERE value > 0";
    assert!(matches!(text(&engine, per_row, Format::Json).await, Err(SqlError::Limit(_))));
    let modest = [
        ("repeat('ab', 3)", "ababab"),
        ("lpad('x', 3, '-')", "--x"),
        ("replace('a.b', '.', '::')", "a::b"),
        ("regexp_replace('a1b2', '[0-9]', '', 'g')", "ab"),
        ("array_to_string(range(3), ',')", "0,1,2"),
        ("array_to_string(array_repeat(7, 2), ',')", "7,7"),
    ];
    for (expression, expected) in modest {
        assert_eq!(json(&engine, &format!("SELECT {expression} AS n")).await["rows"][0]["n"], expected);
    }
    let years = "range(date '1500-01-01', date '1503-01-01', interval '1 year')";
    assert_eq!(json(&engine, &format!("SELECT array_length({years}) AS n")).await["rows"][0]["n"], 3);
    let days = "generate_series(timestamp '2020-01-01', timestamp '2020-01-03', interval '1 day')";
    assert_eq!(json(&engine, &format!("SELECT array_length({days}) AS n")).await["rows"][0]["n"], 3);
}

/// Scenario: statements that double a value again and again, of constants and of rows, by every sign and function that joins;
/// many large columns at once; aggregates that keep all they are given; and modest uses of the same.
/// Guarantee: the former need more memory than SQL has and are told so, the latter are answered as ever, and nothing
/// stays counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_joined_is_counted() {
    let (_folder, lake, _engine) = store(1).await;
    let small = SqlOptions { memory_bytes: 8 << 20, ..SqlOptions::default() };
    let engine = SqlEngine::start(Engine::new(lake), small).unwrap();
    let doubled = |first: &str, step: &str, from: &str| {
        let levels = (1..24).map(|level| format!("t{level} AS (SELECT {step} AS s FROM t{})", level - 1));
        let levels = levels.collect::<Vec<_>>().join(", ");
        format!("WITH t0 AS (SELECT {first} AS s{from}), {levels} SELECT * FROM t23")
    };
    let steps = [
        ("name", "s || s"),
        ("name", "concat(s, s)"),
        ("name", "concat_ws('-', s, s)"),
        ("name", "overlay(s placing s from 1 for 0)"),
        ("encode(cast(name AS bytea), 'hex')", "encode(cast(s AS bytea), 'hex')"),
        ("[name]", "s || s"),
        ("[name]", "array_concat(s, s)"),
    ];
    let mut statements = Vec::new();
    for (first, step) in steps {
        statements.push(doubled(first, step, " FROM spans"));
        statements.push(doubled(&first.replace("name", "'name'"), step, ""));
    }
    let wide = "repeat(name || 'x', 5000)";
    let columns: Vec<String> = (0..40).map(|number| format!("{wide} || {number} AS c{number}")).collect();
    statements.push(format!("SELECT {} FROM spans CROSS JOIN range(100)", columns.join(", ")));
    statements.push(format!("SELECT string_agg({wide}, ',') FROM spans CROSS JOIN range(100)"));
    statements.push(format!("SELECT array_agg({wide}) FROM spans CROSS JOIN range(100)"));
    statements.push("SELECT array_to_string(range(60000), repeat('x', 60000))".to_owned());
    statements.push("SELECT array_repeat(repeat('x', 60000), 60000)".to_owned());
    statements.push("SELECT array_replace_all(array_repeat('a', 60000), 'a', repeat('x', 60000))".to_owned());
    statements.push("SELECT array_resize([name], 60000, name) FROM spans".to_owned());
    for statement in &statements {
        match text(&engine, statement, Format::Json).await {
            Err(SqlError::Limit(message)) => assert!(message.contains("sql.memory"), "{statement}: {message}"),
            other => panic!("{statement}: {:?}", other.map(|answer| answer.len())),
        }
    }
    for (expression, expected) in [
        ("'a' || 'b' || 1", serde_json::json!("ab1")),
        ("'a' || null", serde_json::json!(null)),
        ("concat('a', null, 'b')", serde_json::json!("ab")),
        ("concat_ws('-', 'a', 'b')", serde_json::json!("a-b")),
        ("array_to_string([1] || [2, 3] || 4, '+')", serde_json::json!("1+2+3+4")),
        ("array_to_string(0 || [1], '+')", serde_json::json!("0+1")),
        ("encode('a'::bytea, 'hex')", serde_json::json!("61")),
    ] {
        assert_eq!(json(&engine, &format!("SELECT {expression} AS n")).await["rows"][0]["n"], expected, "{expression}");
    }
    let names =
        json(&engine, "SELECT service || '/' || name, count(*) FROM spans GROUP BY service || '/' || name").await;
    assert!(!names["rows"].as_array().unwrap().is_empty(), "{names}");
    // Five megabytes of eight, again and again.
    for _ in 0..4 {
        let large =
            "SELECT sum(length(s || s)) AS n FROM (SELECT repeat(name, 2000) AS s FROM spans CROSS JOIN range(10))";
        assert!(json(&engine, large).await["rows"][0]["n"].as_u64().unwrap() > 0);
    }
}

/// Scenario: statements that nest as deep as a statement may be long, in several ways, and ones that are longer.
/// Guarantee: the first are answered or refused, and the others refused by their length; nothing ends the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_statements_are_survived() {
    let (_folder, lake, engine) = store(1).await;
    let sum = |terms: usize| format!("SELECT 1{} AS n", " + 1".repeat(terms - 1));
    assert_eq!(json(&engine, &sum(200)).await["rows"][0]["n"], 200);
    for deep in [
        sum(4000),
        format!("SELECT {}1{}", "(".repeat(4000), ")".repeat(4000)),
        format!("SELECT {}true", "NOT ".repeat(8000)),
        format!("SELECT count(*) FROM spans WHERE name = 'a'{}", " OR name = 'a'".repeat(1900)),
    ] {
        // They may well take long, which is another matter.
        let options = SqlOptions { time_limit: Duration::from_secs(1), ..SqlOptions::default() };
        let hasty = SqlEngine::start(Engine::new(Arc::clone(&lake)), options).unwrap();
        drop(text(&hasty, &deep, Format::Json).await);
    }
    for long in [sum(5000), format!("SELECT 1 IN (1{})", ", 1".repeat(5000))] {
        match text(&engine, &long, Format::Json).await {
            Err(SqlError::Limit(message)) => assert!(message.contains("8192"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(json(&engine, "SELECT 1 AS n").await["rows"][0]["n"], 1);
}

/// Scenario: statements that never yield, as many as there are threads for them, on a server with one thread for requests.
/// Guarantee: their time is over when it is over, and whoever else runs on that thread is not held up.
#[tokio::test(flavor = "current_thread")]
async fn work_that_never_yields_holds_up_nobody() {
    let (_folder, lake, _) = store(1).await;
    let options = SqlOptions { time_limit: Duration::from_millis(200), ..SqlOptions::default() };
    let engine = SqlEngine::start(Engine::new(Arc::clone(&lake)), options).unwrap();
    // Folded while it is planned: nothing in it can be interrupted.
    let stubborn = format!("SELECT {}", vec!["length(sha512(repeat('x', 65000)))"; 600].join(", "));
    let started = std::time::Instant::now();
    let answer = text(&engine, &stubborn, Format::Json);
    let ticks = async {
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            let before = std::time::Instant::now();
            tokio::time::sleep(Duration::from_millis(5)).await;
            longest = longest.max(before.elapsed());
        }
        longest
    };
    let (answer, longest) = tokio::join!(answer, ticks);
    let taken = started.elapsed();
    match answer {
        Err(SqlError::Limit(message)) => assert!(message.contains("sql.time_limit"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(taken < Duration::from_secs(5), "answered after {taken:?}");
    assert!(longest < Duration::from_secs(2), "held up for {longest:?}");
}

/// Scenario: the system tables, after a good and a bad statement, and one whose answer nobody reads.
/// Guarantee: segments add up to the rows of the tables, and queries say how each ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_tables() {
    let (_folder, _lake, engine) = store(3).await;
    let rows = json(&engine, "SELECT sum(rows) AS n FROM hotspan.segments WHERE \"table\" = 'spans'").await;
    assert_eq!(rows["rows"][0]["n"], 6);
    assert!(text(&engine, "SELECT nothing", Format::Json).await.is_err());
    drop(engine.query(&TenantId::anonymous(), "SELECT * FROM samples").await.unwrap());
    let queries = json(&engine, "SELECT query, status FROM hotspan.queries WHERE kind = 'sql' ORDER BY id").await;
    let ends: Vec<&str> =
        queries["rows"].as_array().unwrap().iter().map(|row| row["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["done", "failed", "cancelled", "running"]);
}

/// Scenario: rows with text, numbers, ids, lists, maps and nothing, in each format.
/// Guarantee: CSV and JSON are what a script expects; Arrow's stream reads back as the same rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn formats() {
    let (_folder, _lake, engine) = store(1).await;
    let statement =
        "SELECT trace_id, name, duration, parent_span_id, attributes, start_time FROM spans ORDER BY span_id";
    let csv = text(&engine, statement, Format::Csv).await.unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "trace_id,name,duration,parent_span_id,attributes,start_time");
    assert_eq!(lines[1], "07070707070707070707070707070707,operation,1000000000,,{customer: acme},2023-11-14T22:13:20");
    let empty = text(&engine, "SELECT name FROM spans WHERE false", Format::Csv).await.unwrap();
    assert_eq!(empty, "name\n");

    let answer = json(&engine, statement).await;
    assert_eq!(answer["columns"][1], serde_json::json!({"name": "name", "type": "Utf8"}));
    let row = &answer["rows"][0];
    assert_eq!(row["attributes"], serde_json::json!({"customer": "acme"}));
    assert_eq!((&row["parent_span_id"], &row["duration"]), (&serde_json::Value::Null, &SECOND.into()));
    assert_eq!(answer["row_count"], 2);

    let mut answer = engine.query(&TenantId::anonymous(), statement).await.unwrap();
    let mut encoder = Encoder::new(Format::Arrow, &answer.schema).unwrap();
    let mut bytes = encoder.begin();
    let mut batches = Vec::new();
    while let Some(batch) = answer.batches.next().await {
        let batch = batch.unwrap();
        bytes.extend(encoder.rows(&batch).unwrap());
        batches.push(batch);
    }
    bytes.extend(encoder.end(None).unwrap());
    let read: Vec<_> =
        arrow::ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap().map(Result::unwrap).collect();
    assert_eq!(read, batches);
}

/// Scenario: another tenant asks. Guarantee: it sees nothing of this one, nor its queries (R6).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_never_meet() {
    let (_folder, _lake, engine) = store(2).await;
    json(&engine, "SELECT 1 AS one").await;
    let other: TenantId = "other".parse().unwrap();
    for table in ["spans", "samples", "traces", "frames", "hotspan.segments"] {
        let mut answer = engine.query(&other, &format!("SELECT count(*) AS n FROM {table}")).await.unwrap();
        let batch = answer.batches.next().await.unwrap().unwrap();
        let count = batch.column(0).as_any().downcast_ref::<arrow::array::Int64Array>().unwrap().value(0);
        assert_eq!(count, 0, "{table}");
    }
    let mut answer = engine.query(&other, "SELECT query FROM hotspan.queries WHERE query LIKE '%one%'").await.unwrap();
    let mut rows = 0;
    while let Some(batch) = answer.batches.next().await {
        rows += batch.unwrap().num_rows();
    }
    // It sees its own question, and only that.
    assert_eq!(rows, 1);
}
