//! A trace as a waterfall of characters: the tree on the left, times in the middle, bars on the right.

use std::collections::HashSet;

use hotspan_formats::{count_text, counted, duration_text, shortened};
use hotspan_server::time_as_text;
use serde_json::Value;

use super::span_tree::{SpanTree, TreeSpan};

/// Characters for durations and shares.
const NUMBERS: usize = 9;
/// Columns that bars reach to where nobody says how many there are.
const COLUMNS: usize = 120;
/// Bars are at least this wide, however narrow the terminal is.
const NARROWEST_BAR: usize = 16;

/// The waterfall in `width` columns, at most `limit` spans of it (0 is all). Without a width, names are whole. `profile` has sums
/// by span id.
pub(super) fn render(tree: &SpanTree, profile: &Value, width: Option<usize>, limit: usize) -> String {
    let start = tree.spans.iter().map(|span| span.start).min().unwrap_or(0);
    let end = tree.spans.iter().map(|span| span.end).max().unwrap_or(start).max(start + 1);
    let services: HashSet<&str> = tree.spans.iter().map(|span| span.service.as_str()).collect();
    let failed = tree.spans.iter().filter(|span| span.failed).count();
    let mut text = format!(
        "{}, {}, {}, started {}{}\n\n",
        counted(tree.spans.len() as u64, "span"),
        counted(services.len() as u64, "service"),
        duration_text(end - start),
        time_as_text(start),
        if failed > 0 { format!(", {} failed", count_text(failed as u64)) } else { String::new() },
    );
    let shown = if limit == 0 { tree.spans.len() } else { limit.min(tree.spans.len()) };
    let labels: Vec<String> = tree.spans[..shown].iter().map(label).collect();
    let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let fixed = 2 * (NUMBERS + 2);
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(fixed + NARROWEST_BAR + 2));
    let label_width = widest.min(room).max(20);
    let bar_width = width.unwrap_or(COLUMNS).saturating_sub(label_width + fixed + 2).max(NARROWEST_BAR);
    text.push_str(&format!("{:label_width$}  {:>NUMBERS$}  {:>NUMBERS$}\n", "span", "duration", "on CPU"));
    for (span, label) in tree.spans[..shown].iter().zip(&labels) {
        let duration = span.end - span.start;
        let cpu = profile[&span.id]["cpu_ns"].as_i64().filter(|nanos| *nanos > 0);
        let share =
            cpu.filter(|_| duration > 0).map(|nanos| format!("{:.0} %", nanos as f64 * 100.0 / duration as f64));
        let line = format!(
            "{}  {:>NUMBERS$}  {:>NUMBERS$}  {}",
            fitted(label, label_width),
            duration_text(duration),
            share.unwrap_or_else(|| "-".to_owned()),
            bar(span, start, end, bar_width),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if shown < tree.spans.len() {
        text.push_str(&format!(
            "… and {} more spans; --limit 0 draws all\n",
            count_text((tree.spans.len() - shown) as u64)
        ));
    }
    text
}

/// The branches of the tree, the service and the operation.
fn label(span: &TreeSpan) -> String {
    let mut text = String::new();
    if let Some((own, above)) = span.has_next.split_last() {
        above.iter().for_each(|has_next| text.push_str(if *has_next { "│ " } else { "  " }));
        text.push_str(if *own { "├ " } else { "└ " });
    }
    let mark = if span.failed { "✗ " } else { "" };
    // Names come from anybody, and may hold escape sequences.
    let named = format!("{} {}", span.service, span.name);
    let clean: String = named.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("{text}{mark}{clean}")
}

/// Cut or padded to a width.
fn fitted(text: &str, width: usize) -> String {
    let cut = shortened(text, width);
    let length = cut.chars().count();
    cut + &" ".repeat(width - length)
}

/// Eighths of a cell, so that short spans differ.
const PARTS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

fn bar(span: &TreeSpan, start: i64, end: i64, width: usize) -> String {
    let scale = (8 * width) as f64 / (end - start) as f64;
    let place = |time: i64| (((time - start) as f64 * scale).round() as usize).min(8 * width);
    let from = place(span.start).min(8 * width - 1) / 8;
    let until = place(span.end.max(span.start)).max(8 * from + 1);
    let full = (until - 8 * from) / 8;
    let part = PARTS[(until - 8 * from) % 8];
    let rest = if part == ' ' { String::new() } else { part.to_string() };
    format!("{}{}{rest}", " ".repeat(from), "█".repeat(full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    /// Scenario: a root with two children, one of them on the CPU for half its time, in 80 columns.
    /// Guarantee: bars lie where the spans lie, shares are of the span, no line is wider than asked.
    #[test]
    fn bars_lie_where_spans_lie() {
        let id = |number: u8| STANDARD.encode([number; 8]);
        let span = |number: u8, parent: Option<u8>, from: i64, until: i64| {
            json!({
                "spanId": id(number), "parentSpanId": parent.map(id), "name": format!("op{number}"),
                "startTimeUnixNano": (1_700_000_000_000_000_000 + from * 1_000_000).to_string(),
                "endTimeUnixNano": (1_700_000_000_000_000_000 + until * 1_000_000).to_string(),
            })
        };
        let spans = json!([span(1, None, 0, 100), span(3, Some(1), 50, 100), span(2, Some(1), 0, 50)]);
        let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "shop" } }] });
        let answer =
            json!({ "trace": { "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] } });
        let tree = SpanTree::read(&answer).unwrap();
        let profile = json!({ "0303030303030303": { "cpu_ns": 25_000_000 } });
        let text = render(&tree, &profile, Some(80), 0);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert!(lines[0].starts_with("shop op1") && lines[1].starts_with("├ shop op2"), "{text}");
        assert!(lines[2].starts_with("└ shop op3") && lines[2].contains("50 %"), "{text}");
        let width = |line: &str| line.chars().filter(|character| *character == '█').count();
        assert_eq!(width(lines[0]), width(lines[1]) + width(lines[2]), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(render(&tree, &profile, Some(80), 1).contains("2 more spans"));
        let long = "op2 that has much to say about what it does, and does not come to an end before a hundred columns";
        let answer = serde_json::from_str(&answer.to_string().replace("op2", long)).unwrap();
        let tree = SpanTree::read(&answer).unwrap();
        assert!(render(&tree, &profile, Some(80), 0).lines().all(|line| line.chars().count() <= 80));
        assert!(render(&tree, &profile, None, 0).contains(long), "a pipe gets all");
    }
}
