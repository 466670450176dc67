//! The spans of a trace in the order of a waterfall: each behind its parent, siblings by start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// A span, as far as a waterfall shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TreeSpan {
    /// In hexadecimal digits.
    pub(super) id: String,
    parent: String,
    pub(super) service: String,
    pub(super) name: String,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) failed: bool,
    /// For each level above, whether more siblings follow there; the last entry is the span's own.
    pub(super) has_next: Vec<bool>,
}

/// All spans of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct SpanTree {
    pub(super) spans: Vec<TreeSpan>,
}

impl SpanTree {
    /// Reads what `/api/v2/traces/{id}` answers; none if it is something else.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        answer["trace"].as_object()?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut spans = Vec::new();
        for group in list(&answer["trace"]["resourceSpans"]) {
            let attributes = list(&group["resource"]["attributes"]);
            let service = attributes.iter().find(|attribute| attribute["key"] == "service.name");
            let service = service.and_then(|attribute| attribute["value"]["stringValue"].as_str()).unwrap_or_default();
            for span in list(&group["scopeSpans"]).iter().flat_map(|scope| list(&scope["spans"])) {
                spans.push(read_span(&span, service));
            }
        }
        Some(Self { spans: in_order(spans) })
    }
}

fn read_span(span: &Value, service: &str) -> TreeSpan {
    let id = |key: &str| {
        let bytes = STANDARD.decode(span[key].as_str().unwrap_or_default()).unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let time = |key: &str| span[key].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    TreeSpan {
        id: id("spanId"),
        parent: id("parentSpanId"),
        service: service.to_owned(),
        name: span["name"].as_str().unwrap_or_default().to_owned(),
        start: time("startTimeUnixNano"),
        end: time("endTimeUnixNano"),
        failed: span["status"]["code"] == "STATUS_CODE_ERROR",
        has_next: Vec::new(),
    }
}

/// Depth first. A span whose parent is missing is a root; spans that call each other in a circle hang on their first.
fn in_order(mut spans: Vec<TreeSpan>) -> Vec<TreeSpan> {
    spans.sort_by(|left, right| (left.start, &left.id).cmp(&(right.start, &right.id)));
    let at: HashMap<String, usize> = spans.iter().enumerate().map(|(at, span)| (span.id.clone(), at)).collect();
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (child, span) in spans.iter().enumerate() {
        let parent = at.get(&span.parent).copied().filter(|parent| *parent != child);
        children.entry(parent).or_default().push(child);
    }
    let mut ordered: Vec<TreeSpan> = Vec::with_capacity(spans.len());
    let mut placed: HashSet<usize> = HashSet::new();
    let mut starts = children.get(&None).cloned().unwrap_or_default();
    // What no root leads to is part of a circle.
    starts.extend(0..spans.len());
    for start in starts {
        let mut pending = vec![(start, Vec::new())];
        while let Some((span, has_next)) = pending.pop() {
            if !placed.insert(span) {
                continue;
            }
            ordered.push(TreeSpan { has_next: has_next.clone(), ..spans[span].clone() });
            let own: &[usize] = children.get(&Some(span)).map_or(&[], Vec::as_slice);
            for (place, child) in own.iter().enumerate().rev() {
                let mut levels = has_next.clone();
                levels.push(place + 1 < own.len());
                pending.push((*child, levels));
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: &str, start: i64) -> TreeSpan {
        TreeSpan {
            id: id.to_owned(),
            parent: parent.to_owned(),
            service: String::new(),
            name: String::new(),
            start,
            end: start,
            failed: false,
            has_next: Vec::new(),
        }
    }

    /// Scenario: children before parents, an orphan, and a circle. Guarantee: every span once, parents first.
    #[test]
    fn parents_come_first() {
        let spans =
            vec![span("c", "b", 3), span("b", "a", 2), span("d", "a", 4), span("a", "", 1), span("o", "gone", 9)];
        let order: Vec<String> = in_order(spans).into_iter().map(|span| span.id).collect();
        assert_eq!(order, ["a", "b", "c", "d", "o"]);
        let circle = vec![span("x", "y", 1), span("y", "x", 2), span("z", "z", 3)];
        let order: Vec<String> = in_order(circle).into_iter().map(|span| span.id).collect();
        assert_eq!(order, ["z", "x", "y"]);
    }
}
