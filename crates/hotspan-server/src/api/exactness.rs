//! What an answer rests on, as every API tells it: JSON, a sentence, or a header where the answer's format is somebody
//! else's and has no room for it.

use axum::response::{IntoResponse, Response};
use hotspan_formats::diff_tree::Folded;
use hotspan_formats::{count_text, counted};
use hotspan_model::{CoverageOf, Exactness};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

/// The header that tells [`exactness_json`] of answers in the formats of Tempo, Pyroscope and other tools.
pub(crate) const EXACTNESS_HEADER: HeaderName = HeaderName::from_static("hotspan-exactness");

/// What an answer rests on. Coverage is left out where it can't be said.
pub(crate) fn exactness_json(exactness: &Exactness) -> Value {
    let mut json = json!({
        "samples": exactness.samples,
        "spans": exactness.spans,
        "linked_samples": exactness.linked_samples,
        "inherited": exactness.inherited_samples,
        "inferred": exactness.inferred_samples,
        "pruned_nodes": exactness.pruned_nodes,
        "pruned_value": exactness.pruned_value,
        "unresolved_paths": exactness.unresolved_paths,
        "rounded_edges": exactness.rounded_edges,
        "dropped": exactness.dropped,
        "segments_read": exactness.segments_read,
        "segments_pruned": exactness.segments_pruned,
    });
    if let Some(coverage) = exactness.coverage {
        json["coverage"] = json!(coverage.share());
        json["coverage_of"] = json!(coverage.of.name());
    }
    json
}

/// An answer with a header that says what it rests on.
pub(crate) fn with_exactness(answer: impl IntoResponse, exactness: &Exactness) -> Response {
    let mut response = answer.into_response();
    if let Ok(value) = HeaderValue::try_from(exactness_json(exactness).to_string()) {
        response.headers_mut().insert(EXACTNESS_HEADER, value);
    }
    response
}

/// What a comparison rests on: both sides together. Each side is told what was folded of it.
pub(crate) fn exactness_of_both(left: &mut Exactness, right: &mut Exactness, folded: &Folded) -> Exactness {
    for (side, folded) in [(&mut *left, folded.left), (&mut *right, folded.right)] {
        (side.pruned_nodes, side.pruned_value) = (folded.nodes, folded.value);
    }
    let mut both = *left;
    both.merge(right);
    // A node that is on both sides is one.
    both.pruned_nodes = folded.nodes;
    both
}

/// How many samples, of how many spans, how much they cover, and what is missing.
pub(crate) fn evidence_text(exactness: &Exactness) -> String {
    let Exactness { samples, linked_samples, spans, dropped, .. } = *exactness;
    let mut text = counted(samples, "sample");
    if linked_samples > 0 {
        let of_them =
            if linked_samples == samples { String::new() } else { format!("{} of them ", count_text(linked_samples)) };
        text.push_str(&format!(", {of_them}in {}", counted(spans, "span")));
    }
    if let Some(coverage) = coverage_text(exactness) {
        text.push_str(&format!(", {coverage}"));
    }
    if dropped > 0 {
        text.push_str(&format!(", {} rejected when they came in", count_text(dropped)));
    }
    text
}

/// How much of what was asked about is in samples, where that can be said.
pub(crate) fn coverage_text(exactness: &Exactness) -> Option<String> {
    let coverage = exactness.coverage?;
    let percent = coverage.share() * 100.0;
    Some(match coverage.of {
        CoverageOf::Spans => format!("{percent:.1}% of the spans' time"),
        CoverageOf::Range => format!("in {percent:.1}% of the time asked about"),
    })
}

#[cfg(test)]
mod tests {
    use hotspan_model::Coverage;
    use hotspan_model::flame::Pruned;

    use super::*;

    /// Scenario: a comparison of which three nodes were folded, one of them on both sides.
    /// Guarantee: each side has its own nodes and value; both together have three nodes, and both values.
    #[test]
    fn what_is_folded_of_a_comparison() {
        let (mut left, mut right) =
            (Exactness { samples: 7, ..Exactness::default() }, Exactness { samples: 2, ..Exactness::default() });
        let (on_left, on_right) = (Pruned { nodes: 1, value: 10 }, Pruned { nodes: 3, value: 5 });
        let both = exactness_of_both(&mut left, &mut right, &Folded { nodes: 3, left: on_left, right: on_right });
        let told = |of: &Exactness| (of.samples, of.pruned_nodes, of.pruned_value);
        assert_eq!((told(&left), told(&right), told(&both)), ((7, 1, 10), (2, 3, 5), (9, 3, 15)));
    }

    /// Scenario: one sample of one span, thousands of which some are of spans, and thousands that all are.
    /// Guarantee: numbers and nouns as people write them.
    #[test]
    fn samples_and_spans_are_counted() {
        let told = |samples, linked_samples, spans| {
            evidence_text(&Exactness { samples, linked_samples, spans, ..Exactness::default() })
        };
        assert_eq!(told(1, 1, 1), "1 sample, in 1 span");
        assert_eq!(told(12_345, 1, 1), "12,345 samples, 1 of them in 1 span");
        assert_eq!(told(12_345, 12_345, 2_000), "12,345 samples, in 2,000 spans");
    }

    /// Scenario: answers about a time, about spans, and about something whose coverage nobody knows.
    /// Guarantee: each says its share and of what, in JSON and in words; the last says nothing of it.
    #[test]
    fn coverage_is_told() {
        let told = |of: Option<CoverageOf>, dropped| {
            let coverage = of.and_then(|of| Coverage::new(of, 1, 3));
            let exactness = Exactness { samples: 7, coverage, dropped, ..Exactness::default() };
            (exactness_json(&exactness), evidence_text(&exactness))
        };
        let (json, text) = told(Some(CoverageOf::Range), 2);
        assert_eq!((&json["coverage"], &json["coverage_of"]), (&json!(1.0 / 3.0), &json!("range")));
        assert_eq!(text, "7 samples, in 33.3% of the time asked about, 2 rejected when they came in");
        let (json, text) = told(Some(CoverageOf::Spans), 0);
        assert_eq!(json["coverage_of"], "spans");
        assert_eq!(text, "7 samples, 33.3% of the spans' time");
        let (json, text) = told(None, 0);
        assert!(json.get("coverage").is_none() && json.get("coverage_of").is_none(), "{json}");
        assert_eq!(text, "7 samples");
    }
}
