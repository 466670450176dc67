//! Unions of different types.

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::DataType;
use futures::StreamExt;
use hotspan_model::TenantId;
use hotspan_sql::SqlEngine;
use hotspan_sql::output::{Encoder, Format};

use crate::store::{json, store, text};

/// What a reader of Arrow's stream makes of an answer.
async fn read_back(engine: &SqlEngine, statement: &str) -> RecordBatch {
    let mut answer = engine.query(&TenantId::anonymous(), statement).await.unwrap();
    let mut encoder = Encoder::new(Format::Arrow, &answer.schema).unwrap();
    let mut bytes = encoder.begin();
    while let Some(batch) = answer.batches.next().await {
        bytes.extend(encoder.rows(&batch.unwrap()).unwrap());
    }
    bytes.extend(encoder.end(None).unwrap());
    let reader = arrow::ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let schema = reader.schema();
    concat_batches(&schema, &reader.map(Result::unwrap).collect::<Vec<_>>()).unwrap()
}

/// Scenario: unions of whole numbers and fractions, of plain and coded texts, of nothing and numbers, of numbers and texts, in each
/// format.
/// Guarantee: each column has one type that holds all of its values, and the values are the true ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_different_types_become_one() {
    let (_folder, _lake, engine) = store(1).await;
    for (statement, kind, expected) in [
        ("SELECT 1 AS x UNION ALL SELECT 1.5", "Float64", ["1.0", "1.5"].as_slice()),
        (
            "SELECT 'total' AS x, count(*) AS n FROM spans UNION ALL SELECT service, count(*) FROM spans GROUP BY 1",
            "Dictionary(Int32, Utf8)",
            &["front", "order-service", "total"],
        ),
        ("SELECT NULL AS x UNION ALL SELECT 1", "Int64", &["", "1"]),
        ("SELECT 1 AS x UNION SELECT 'a'", "Utf8", &["1", "a"]),
        ("SELECT 18446744073709551615 + 1 AS x", "Decimal128(21, 0)", &["18446744073709551616"]),
    ] {
        let answer = json(&engine, statement).await;
        assert_eq!(answer["columns"][0]["type"], kind, "{statement}");
        assert_eq!(answer["row_count"], expected.len(), "{statement}");
        let csv = text(&engine, statement, Format::Csv).await.unwrap();
        let mut in_csv: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        in_csv.sort_unstable();
        let in_csv: Vec<&str> = in_csv.into_iter().map(|text| text.trim_matches('"')).collect();
        assert_eq!(in_csv, expected, "{statement}");
        let batch = read_back(&engine, statement).await;
        assert_eq!(batch.column(0).data_type().to_string(), kind, "{statement}");
        let texts = cast(batch.column(0), &DataType::Utf8).unwrap();
        let mut in_arrow: Vec<&str> = texts.as_string::<i32>().iter().map(Option::unwrap_or_default).collect();
        in_arrow.sort_unstable();
        assert_eq!(in_arrow, expected, "{statement}");
    }
}
