//! `function(path)`, `location(path)`, `stack(path)` and `collapsed(…)`, wherever an expression may stand.

use serde_json::{Value, json as value};

use crate::store::{answers_at_every_level, json, store};

/// Per flush: 30 and 3 in `parse`, 5 in `render`.
const FLUSHES: i64 = 4;

/// Scenario: names of code in groups, orders, filters, aggregates of every kind, windows, joins, subqueries and cases, at
/// every level of compaction.
/// Guarantee: each is answered, with the numbers that grouping by path would give.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_stand_wherever_expressions_do() {
    let (_folder, lake, engine) = store(FLUSHES).await;
    let of_each = value!([{"f": "parse", "n": 132}, {"f": "render", "n": 20}]);
    let cases: Vec<(&str, Value)> = vec![
        (
            "SELECT function(path) AS f, sum(value) AS n FROM samples GROUP BY function(path) ORDER BY n DESC",
            of_each.clone(),
        ),
        ("SELECT function(path) AS f, sum(value) AS n FROM samples GROUP BY f ORDER BY f", of_each.clone()),
        ("SELECT function(path) AS f, sum(value) AS n FROM samples GROUP BY 1 ORDER BY 1", of_each.clone()),
        (
            "SELECT upper(function(path)) AS f, sum(value) AS n FROM samples GROUP BY upper(function(path)) ORDER BY 2",
            value!([{"f": "RENDER", "n": 20}, {"f": "PARSE", "n": 132}]),
        ),
        (
            "SELECT stack(path) AS s, count(*) AS n FROM samples GROUP BY stack(path) HAVING stack(path) LIKE '%render'",
            value!([{"s": "main;handle;render", "n": 4}]),
        ),
        (
            "SELECT function(path) AS f FROM samples GROUP BY function(path) \
             HAVING sum(length(function(path))) > 24 ORDER BY 1",
            value!([{"f": "parse"}]),
        ),
        ("SELECT value AS n FROM samples ORDER BY stack(path) DESC, value LIMIT 1", value!([{"n": 5}])),
        ("SELECT DISTINCT function(path) AS f FROM samples ORDER BY f", value!([{"f": "parse"}, {"f": "render"}])),
        (
            "SELECT DISTINCT ON (function(path)) function(path) AS f, value AS n FROM samples \
          ORDER BY function(path), value",
            value!([{"f": "parse", "n": 3}, {"f": "render", "n": 5}]),
        ),
        ("SELECT count(DISTINCT function(path)) AS n FROM samples", value!([{"n": 2}])),
        (
            "SELECT count(DISTINCT function(path)) AS n, count(DISTINCT value) AS m FROM samples",
            value!([{"n": 2, "m": 3}]),
        ),
        ("SELECT sum(value) FILTER (WHERE function(path) = 'render') AS n FROM samples", value!([{"n": 20}])),
        (
            "SELECT max(function(path)) AS f, min(location(path)) AS l FROM samples",
            value!([{"f": "render", "l": ":4"}]),
        ),
        (
            "SELECT array_to_string(array_agg(DISTINCT function(path) ORDER BY function(path) DESC), '+') AS f FROM samples",
            value!([{"f": "render+parse"}]),
        ),
        (
            "SELECT DISTINCT function(path) AS f, sum(value) OVER (PARTITION BY function(path)) AS n \
             FROM samples ORDER BY n DESC",
            of_each.clone(),
        ),
        (
            "SELECT function(path) AS f, row_number() OVER (ORDER BY stack(path) DESC, value, time) AS n \
             FROM samples ORDER BY n LIMIT 1",
            value!([{"f": "render", "n": 1}]),
        ),
        ("SELECT sum(value) AS n FROM samples WHERE function(path) IN ('parse', 'other')", value!([{"n": 132}])),
        (
            "SELECT sum(CASE WHEN function(path) = 'parse' THEN value ELSE 0 END) AS n, \
             max(CASE WHEN value = 5 THEN function(path) END) AS f FROM samples",
            value!([{"n": 132, "f": "render"}]),
        ),
        (
            "SELECT CASE function(path) WHEN 'parse' THEN 'own' ELSE 'theirs' END AS f, sum(value) AS n \
             FROM samples GROUP BY 1 ORDER BY 1",
            value!([{"f": "own", "n": 132}, {"f": "theirs", "n": 20}]),
        ),
        (
            "SELECT t.k AS f, sum(s.value) AS n FROM samples s JOIN (VALUES ('parse'), ('other')) AS t(k) \
             ON function(s.path) = t.k GROUP BY t.k",
            value!([{"f": "parse", "n": 132}]),
        ),
        (
            "SELECT count(*) AS n FROM samples a JOIN samples b ON function(a.path) = function(b.path) AND a.value < b.value",
            value!([{"n": FLUSHES * FLUSHES}]),
        ),
        (
            "SELECT count(*) AS n FROM samples a LEFT JOIN samples b ON a.value = b.value \
             AND function(a.path) || function(b.path) = 'parseparse'",
            value!([{"n": 2 * FLUSHES * FLUSHES + FLUSHES}]),
        ),
        (
            "SELECT sum(value) AS n FROM samples WHERE function(path) IN \
             (SELECT function(path) FROM samples GROUP BY function(path) ORDER BY sum(value) LIMIT 1)",
            value!([{"n": 20}]),
        ),
        (
            "SELECT f.function AS f, sum(n.value) AS n FROM frames f \
             JOIN (SELECT function(path) AS name, value FROM samples) n ON f.function = n.name \
             GROUP BY ROLLUP (f.function) ORDER BY f.function NULLS LAST",
            value!([{"f": "parse", "n": 132}, {"f": "render", "n": 20}, {"f": null, "n": 152}]),
        ),
        (
            "SELECT function(path) AS f FROM samples WHERE value = 5 UNION SELECT function(path) FROM rollup_1h WHERE value = 20",
            value!([{"f": "render"}]),
        ),
        (
            "SELECT function(path) AS f FROM samples GROUP BY path HAVING collapsed(flame_merge(path, value)) LIKE '% 20'",
            value!([{"f": "render"}]),
        ),
        ("SELECT function(null) AS f, stack(arrow_cast(1, 'UInt64')) AS s", value!([{"f": null, "s": null}])),
    ];
    let statements: Vec<&str> = cases.iter().map(|(statement, _)| *statement).collect();
    let answers = answers_at_every_level(&lake, &engine, &statements).await;
    for ((statement, expected), answer) in cases.iter().zip(answers) {
        assert_eq!(&answer["rows"], expected, "{statement}");
    }
}

/// Scenario: many statements at once that all wait for names, more than there are threads.
/// Guarantee: all are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_wait_for_names() {
    let (_folder, _lake, engine) = store(FLUSHES).await;
    let statement = "SELECT function(path) AS f, sum(value) AS n FROM samples GROUP BY 1 ORDER BY 1";
    let asked = (0..64).map(|_| json(&engine, statement));
    for answer in futures::future::join_all(asked).await {
        assert_eq!(answer["rows"][0], value!({"f": "parse", "n": 33 * FLUSHES}));
    }
}
