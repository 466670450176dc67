//! Traces that a search found, as a table: one line each, the spans that matched behind it.

use hotspan_formats::{count_text, counted, duration_text};
use hotspan_server::time_as_text;
use serde_json::Value;

use crate::table::{Column, Table};

/// The lines of the table for a screen of this width, if there is one, and what there is to say about it.
pub(super) fn render(answer: &Value, limit: usize, screen: Option<usize>) -> String {
    let traces = answer["traces"].as_array().map_or(&[][..], Vec::as_slice);
    if traces.is_empty() {
        let inspected = answer["metrics"]["inspectedSpans"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        return format!("no trace matches (looked at {})\n", counted(inspected, "span"));
    }
    let mut table = Table::new(&[
        ("started", Column::Id),
        ("duration", Column::Number),
        ("spans", Column::Number),
        ("root", Column::Text),
        ("matched", Column::Text),
        ("trace", Column::Id),
    ]);
    traces.iter().for_each(|trace| table.row(row(trace)));
    let mut text = table.draw(screen);
    if traces.len() >= limit {
        text.push_str(&format!("these are the first {limit}; --limit shows more\n"));
    }
    text
}

fn row(trace: &Value) -> [String; 6] {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    let services = trace["serviceStats"].as_object();
    let count = |key: &str| -> u64 {
        services.map_or(0, |services| services.values().filter_map(|stats| stats[key].as_u64()).sum())
    };
    let (spans, errors) = (count("spanCount"), count("errorCount"));
    let text = |key: &str| trace[key].as_str().unwrap_or_default();
    let duration = trace["durationMs"].as_i64().unwrap_or(0).saturating_mul(1_000_000);
    [
        time_as_text(number(&trace["startTimeUnixNano"])),
        if duration > 0 { duration_text(duration) } else { "< 1 ms".to_owned() },
        if errors > 0 { format!("{} ({} failed)", count_text(spans), count_text(errors)) } else { count_text(spans) },
        root(text("rootServiceName"), text("rootTraceName")),
        matched(&trace["spanSets"]),
        text("traceID").to_owned(),
    ]
}

/// Service and name of the root; a root that has not come is told once.
fn root(service: &str, name: &str) -> String {
    if service == name { name.to_owned() } else { format!("{service} {name}").trim().to_owned() }
}

/// How many spans matched, and the longest of those that were sent.
fn matched(sets: &Value) -> String {
    let sets = sets.as_array().map_or(&[][..], Vec::as_slice);
    let count: u64 = sets.iter().filter_map(|set| set["matched"].as_u64()).sum();
    let spans = sets.iter().flat_map(|set| set["spans"].as_array().into_iter().flatten());
    let nanos = |span: &Value| span["durationNanos"].as_str().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    match spans.max_by_key(|span| nanos(span)) {
        Some(longest) => {
            let name = longest["name"].as_str().unwrap_or_default();
            let length = duration_text(nanos(longest));
            if count > 1 {
                format!("{}, longest {name} {length}", count_text(count))
            } else {
                format!("{name} {length}")
            }
        }
        None => count_text(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Scenario: two traces, one with a failed span, and none. Guarantee: columns line up, ids can be copied, and rows
    /// fit 80 columns.
    #[test]
    fn a_line_for_each_trace() {
        let spans = json!([{ "name": "pay", "durationNanos": "900000000" }, { "name": "cart", "durationNanos": "5" }]);
        let trace = |id: &str, errors: u64| {
            json!({
                "traceID": id, "rootServiceName": "shop", "rootTraceName": "GET /", "durationMs": 1520,
                "startTimeUnixNano": "1700000000000000000", "serviceStats": { "shop": { "spanCount": 7, "errorCount": errors } },
                "spanSets": [{ "matched": 2, "spans": spans }],
            })
        };
        let text = render(&json!({ "traces": [trace("aa", 1), trace("bb", 0)] }), 20, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("started") && lines[1].ends_with("2, longest pay 900 ms  aa"), "{text}");
        assert!(lines[1].contains("1.52 s  7 (1 failed)  shop GET /"), "{text}");
        assert!(render(&json!({ "traces": [] }), 20, None).contains("no trace matches"));
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let narrow = render(&json!({ "traces": [trace(id, 1)] }), 20, Some(80));
        assert!(narrow.contains(id) && narrow.contains("2, longest pay 900 ms"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert_eq!(
            root("<root span not yet received>", "<root span not yet received>"),
            "<root span not yet received>"
        );
    }
}
