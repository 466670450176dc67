//! Maps, taken apart.

use hotspan_lake::rows::Rows;
use hotspan_model::{Attribute, Resource, Scope, Span, SpanId, TraceId, TraceSink as _, Value};
use serde_json::json;

use crate::store::{START, answers_at_every_level, store, store_of};

/// Scenario: attributes and labels as lists of entries, keys and values, a row for each, and looked up, at every level of
/// compaction.
/// Guarantee: each entry is there, in every form.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_entry_is_there() {
    let (_folder, lake, engine) = store(2).await;
    let statements = [
        "SELECT map_entries(attributes) AS entries FROM spans LIMIT 1",
        "SELECT unnest(map_entries(attributes)) AS entry FROM spans LIMIT 1",
        "SELECT e['key'] AS k, e['value'] AS v, count(*) AS n \
         FROM (SELECT unnest(map_entries(attributes_json)) AS e FROM spans) GROUP BY 1, 2 ORDER BY v",
        "SELECT e['value'] AS v FROM (SELECT unnest(map_entries(labels)) AS e FROM series) WHERE e['key'] = 'service_name'",
        "SELECT map_keys(attributes) AS k, map_values(attributes) AS v, map_extract(attributes, 'customer') AS e, \
         attributes['customer'] AS c, cardinality(attributes) AS n, attributes AS a FROM spans LIMIT 1",
    ];
    let answers = answers_at_every_level(&lake, &engine, &statements).await;
    let customer = json!({"key": "customer", "value": "acme"});
    assert_eq!(answers[0]["rows"], json!([{ "entries": [customer] }]));
    assert_eq!(answers[1]["rows"], json!([{ "entry": customer }]));
    let attempts = json!([{"k": "attempt", "v": "0", "n": 2}, {"k": "attempt", "v": "1", "n": 2}]);
    assert_eq!(answers[2]["rows"], attempts);
    assert_eq!(answers[3]["rows"], json!([{"v": "order-service"}]));
    let apart =
        json!({"k": ["customer"], "v": ["acme"], "e": ["acme"], "c": "acme", "n": 1, "a": {"customer": "acme"}});
    assert_eq!(answers[4]["rows"], json!([apart]));
}

/// Scenario: spans with the same attributes in other orders, some of which most spans have, so that they get columns of their own; at
/// every level of compaction.
/// Guarantee: keys are shown in their order, so that equal attributes are one group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_in_order() {
    let rows_of = |number: i64| {
        let mut rows = Rows::default();
        rows.spans.resource(&Resource::default());
        rows.spans.scope(&Scope::default());
        let mut attributes: Vec<Attribute<'_>> =
            ["zone", "area", "map"].map(|key| Attribute::new(key, Value::str(key))).to_vec();
        attributes.rotate_left(number as usize % 3);
        attributes.push(Attribute::new(if number == 5 { "rare" } else { "often" }, Value::str("x")));
        let (trace_id, span_id) = (TraceId([7; 16]), SpanId([number as u8 + 1; 8]));
        rows.spans.span(&Span { trace_id, span_id, start: START, end: START, attributes, ..Span::default() });
        rows
    };
    let (_folder, lake, engine) = store_of(6, |number, _, _| rows_of(number)).await;
    let statement = "SELECT map_keys(attributes) AS k, count(*) AS n FROM spans GROUP BY k ORDER BY n";
    let answers = answers_at_every_level(&lake, &engine, &[statement]).await;
    let expected = json!([
        {"k": ["area", "map", "rare", "zone"], "n": 1},
        {"k": ["area", "map", "often", "zone"], "n": 5},
    ]);
    assert_eq!(answers[0]["rows"], expected);
}
