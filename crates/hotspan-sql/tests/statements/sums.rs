//! Sums that 64 bits do not hold.

use hotspan_lake::Ingest;
use hotspan_lake::rows::Rows;
use hotspan_model::{Frame, Labels, Profile, ProfileSet, ProfileType, Sample, TenantId};
use hotspan_sql::SqlError;
use hotspan_sql::output::Format;

use crate::store::{START, answers_at_every_level, json, store, store_of, text};

const MOST: i64 = i64::MAX;

/// Scenario: sums beyond 64 bits, signed and not: of all rows, by group, of distinct values, in windows of both kinds.
/// Guarantee: each is refused with the sum that it would have been, and none wraps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_that_do_not_fit_are_refused() {
    let (_folder, _lake, engine) = store(1).await;
    let rows = format!("(VALUES ('a', {MOST}), ('a', 1), ('b', 2)) AS t(k, x)");
    let beyond = "a sum overflows: it is 92233720368547758";
    for statement in [
        format!("SELECT sum(x) FROM {rows}"),
        format!("SELECT k, sum(x) FROM {rows} GROUP BY k"),
        format!("SELECT sum(DISTINCT x) FROM {rows}"),
        format!("SELECT k, sum(DISTINCT x), count(DISTINCT k), max(x) FROM {rows} GROUP BY k"),
        format!("SELECT sum(x) FILTER (WHERE k = 'a') FROM {rows}"),
        format!("SELECT sum(x) OVER (PARTITION BY k) FROM {rows}"),
        format!("SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM {rows}"),
        format!("SELECT sum(x + 1) FROM (VALUES ({}), (1)) AS t(x)", MOST - 1),
        format!("SELECT sum(-x - 1) FROM {rows}"),
    ] {
        match text(&engine, &statement, Format::Json).await {
            Err(SqlError::Invalid(message)) => {
                assert!(
                    message.replace('-', "").contains(beyond) && message.contains("DOUBLE"),
                    "{statement}: {message}"
                );
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
    let unsigned = "SELECT sum(x) FROM (SELECT arrow_cast(18446744073709551615, 'UInt64') AS x FROM range(2))";
    let refusal = text(&engine, unsigned, Format::Json).await.unwrap_err().to_string();
    assert!(refusal.contains("it is 36893488147419103230"), "{refusal}");
}

/// Scenario: sums that fit although the rows on the way to them do not, sums of nothing, of fractions and of decimals, sums by many
/// groups, and those that windows slide over.
/// Guarantee: each is exact, whatever the order of the rows, and has the type that it has always had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_that_fit_are_exact() {
    let (_folder, _lake, engine) = store(1).await;
    let there_and_back = format!("(VALUES ({MOST}), ({MOST}), (-{MOST}), (null)) AS t(x)");
    for (expression, from, expected) in [
        ("sum(x)", there_and_back.as_str(), serde_json::json!(MOST)),
        ("sum(DISTINCT x)", &there_and_back, serde_json::json!(0)),
        ("sum(x)", "(VALUES (1), (2)) AS t(x) WHERE x > 5", serde_json::json!(null)),
        ("sum(x)", "(VALUES (1.5), (2.0)) AS t(x)", serde_json::json!(3.5)),
        ("sum(CAST(x AS DOUBLE))", &there_and_back, serde_json::json!(9_223_372_036_854_775_807.0)),
        ("arrow_typeof(sum(x))", "(VALUES (1), (2)) AS t(x)", serde_json::json!("Int64")),
    ] {
        let answer = json(&engine, &format!("SELECT {expression} AS n FROM {from}")).await;
        assert_eq!(answer["rows"][0]["n"], expected, "{expression} of {from}");
    }
    let exactly = "SELECT CAST(sum(CAST(x AS DECIMAL(38, 0))) AS VARCHAR) AS n FROM";
    let answer = json(&engine, &format!("{exactly} (VALUES ({MOST}), ({MOST})) AS t(x)")).await;
    assert_eq!(answer["rows"][0]["n"], "18446744073709551614");
    let by_group = "SELECT max(n) AS most, min(n) AS least, count(*) AS groups FROM \
                    (SELECT value % 30000 AS k, sum(value) AS n FROM range(60000) GROUP BY k)";
    let expected = serde_json::json!([{"most": 89_998, "least": 30_000, "groups": 30_000}]);
    assert_eq!(json(&engine, by_group).await["rows"], expected);
    let sliding = "SELECT sum(value) OVER (ORDER BY value ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM range(5)";
    let expected = serde_json::json!([{"n": 0}, {"n": 1}, {"n": 3}, {"n": 6}, {"n": 9}]);
    assert_eq!(json(&engine, sliding).await["rows"], expected);
}

/// A profile whose every sample is as large as a number can be.
fn huge_samples(number: i64, ingest: &Ingest, tenant: &TenantId) -> Rows {
    let mut set = ProfileSet::default();
    let frame = set.paths.frame(Frame::named("main"));
    let path = set.paths.path(&[frame]);
    let (time, link) = (START + number, 0);
    let sample = Sample { path, value: MOST, time, timed: true, link, thread: 0, labels: 0, attributes: 0 };
    set.profiles.push(Profile {
        profile_type: ProfileType::cpu(),
        labels: Labels::from_pairs([("service_name", "shop".to_owned())]),
        time,
        samples: vec![sample],
        ..Profile::default()
    });
    let mut rows = Rows::default();
    rows.profiles.push(&set, &ingest.known().of(tenant));
    rows
}

/// Scenario: rollups of values whose sum does not fit, at every level of compaction.
/// Guarantee: they stay at the largest number, derived on the fly as well as written; summing samples says that it can't.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollups_stay_at_the_largest_number() {
    let (_folder, lake, engine) = store_of(3, huge_samples).await;
    let statements = ["SELECT value FROM rollup_15s", "SELECT value FROM rollup_1h"];
    for answer in answers_at_every_level(&lake, &engine, &statements).await {
        assert_eq!(answer["rows"], serde_json::json!([{"value": MOST}]));
    }
    let refusal = text(&engine, "SELECT sum(value) FROM samples", Format::Json).await.unwrap_err();
    assert!(refusal.to_string().contains("overflows"), "{refusal}");
}
