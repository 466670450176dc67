//! Arithmetic of whole numbers, within what their types hold and beyond.

use hotspan_sql::SqlError;
use hotspan_sql::output::Format;
use serde_json::json;

use crate::store::{json, store, text};

const MOST: i64 = i64::MAX;

/// Scenario: sums, differences, products and negations that do not fit, of constants and of rows, signed and not, narrow and
/// wide, wherever an expression may stand.
/// Guarantee: each is refused with the numbers that it was made of and with a way around it; none wraps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_do_not_fit_are_refused() {
    let (_folder, _lake, engine) = store(1).await;
    let rows = format!("(VALUES ({MOST}), (2)) AS t(x)");
    for (statement, numbers) in [
        (format!("SELECT {MOST} + 1"), format!("{MOST} + 1")),
        (format!("SELECT 1 + {MOST} - 1"), format!("1 + {MOST}")),
        (format!("SELECT -{MOST} - 2"), format!("-{MOST} - 2")),
        (format!("SELECT {MOST} * 2"), format!("{MOST} * 2")),
        ("SELECT -(x - 1) FROM (SELECT -9223372036854775807 AS x)".to_owned(), format!("- {}", i64::MIN)),
        (format!("SELECT * FROM (VALUES ({MOST} + 1))"), format!("{MOST} + 1")),
        (format!("SELECT x + 1 FROM {rows}"), format!("{MOST} + 1")),
        (format!("SELECT x FROM {rows} WHERE x * 3 > 0"), format!("{MOST} * 3")),
        (format!("SELECT count(*) FROM {rows} GROUP BY x + 1"), format!("{MOST} + 1")),
        (format!("SELECT max(x + 1) FROM {rows}"), format!("{MOST} + 1")),
        (format!("SELECT max(x) + 1 FROM {rows}"), format!("{MOST} + 1")),
        (format!("SELECT x FROM {rows} ORDER BY x + 1"), format!("{MOST} + 1")),
        (format!("SELECT count(*) FROM {rows} JOIN (VALUES (3)) AS u(y) ON x + 1 = y"), format!("{MOST} + 1")),
        (format!("SELECT (SELECT max(x) + 1 FROM {rows})"), format!("{MOST} + 1")),
        (format!("SELECT CASE WHEN x > 1 THEN x + 1 END FROM {rows}"), format!("{MOST} + 1")),
        (format!("SELECT * FROM range({MOST} + 1, 5)"), format!("{MOST} + 1")),
        (format!("SELECT * FROM generate_series(1, 2 * (abs({MOST}) - 1))"), format!("2 * {}", MOST - 1)),
        (format!("SELECT * FROM range(-{MOST} - 2)"), format!("-{MOST} - 2")),
        (format!("SELECT * FROM range(CAST(1 AS INT) + {MOST})"), format!("1 + {MOST}")),
        (format!("SELECT duration * {MOST} FROM spans"), format!("1000000000 * {MOST}")),
        ("SELECT arrow_cast(0, 'UInt64') - arrow_cast(1, 'UInt64')".to_owned(), "0 - 1".to_owned()),
        ("SELECT arrow_cast(100, 'Int8') + arrow_cast(100, 'Int8')".to_owned(), "100 + 100".to_owned()),
    ] {
        match text(&engine, &statement, Format::Json).await {
            Err(SqlError::Invalid(message)) => {
                let told = format!("a number overflows: {numbers} does not fit");
                assert!(message.contains(&told) && message.contains("DOUBLE"), "{statement}: {message}");
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
}

/// Scenario: the same signs where everything fits or is missing, next to what no row reaches, and between times.
/// Guarantee: the answers, the names of their columns and their types are what they have always been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_fit_are_exact() {
    let (_folder, _lake, engine) = store(1).await;
    for (expression, expected) in [
        (format!("{MOST} + 0"), json!(MOST)),
        (format!("-{MOST} - 1"), json!(i64::MIN)),
        (i64::MIN.to_string(), json!(i64::MIN)),
        ("(-9223372036854775807 - 1) % -1".to_owned(), json!(0)),
        ("2 * 3 - -4".to_owned(), json!(10)),
        ("2 * 3 + 0.5".to_owned(), json!(6.5)),
        ("CAST(9223372036854775807 AS DOUBLE) * 2".to_owned(), json!(18_446_744_073_709_551_614.0)),
        (
            format!("CAST(CAST({MOST} AS DECIMAL(38, 0)) * {MOST} AS VARCHAR)"),
            json!((i128::from(MOST).pow(2)).to_string()),
        ),
        ("1 + NULL".to_owned(), json!(null)),
        ("arrow_typeof(arrow_cast(1, 'Int8') + arrow_cast(1, 'Int8'))".to_owned(), json!("Int8")),
        ("arrow_typeof(1 + 1)".to_owned(), json!("Int64")),
        ("DATE '2024-03-01' - DATE '2024-02-28'".to_owned(), json!(2)),
        ("DATE '2024-02-28' + INTERVAL '2 days'".to_owned(), json!("2024-03-01")),
    ] {
        let answer = json(&engine, &format!("SELECT {expression} AS n")).await;
        assert_eq!(answer["rows"][0]["n"], expected, "{expression}");
    }
    let unreached =
        format!("SELECT CASE WHEN x < {MOST} THEN x + 1 ELSE x END AS n FROM (VALUES ({MOST}), (1)) AS t(x)");
    assert_eq!(json(&engine, &unreached).await["rows"], json!([{"n": MOST}, {"n": 2}]));
    let rows = json!([{"value": 3}, {"value": 5}]);
    assert_eq!(json(&engine, "SELECT value FROM range(1 + 2, 2 * (7 - 3) - 1, 4 - 2)").await["rows"], rows);
    let counting = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT n FROM t";
    assert_eq!(json(&engine, counting).await["rows"], json!([{"n": 1}, {"n": 2}, {"n": 3}]));
    let named = "SELECT duration + 1, -duration, 2 * (1 + 1), count(*) - 1 FROM spans GROUP BY duration + 1, -duration";
    let named = json(&engine, named).await;
    let expected = json!({
        "spans.duration + Int64(1)": 1_000_000_001,
        "(- spans.duration)": -1_000_000_000,
        "Int64(2) * Int64(1) + Int64(1)": 4,
        "count(*) - Int64(1)": 1,
    });
    assert_eq!(named["rows"], json!([expected]));
}
