//! Metrics as text: OpenMetrics for whoever asks for it, and Prometheus' own, older text for everybody else.
//!
//! Everything is written as OpenMetrics once. The older text differs in little: a counter's family is called as its samples
//! are, with `_total`, and there are neither units nor a mark at the end.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};

use crate::accept::Accept;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers with metrics, given as OpenMetrics, in the text that the asker reads.
pub(crate) fn metrics_response(openmetrics: String, headers: &HeaderMap) -> Response {
    match Accept::of(headers).best(&[PROMETHEUS, OPENMETRICS]) {
        Some(OPENMETRICS) => ([(header::CONTENT_TYPE, OPENMETRICS)], openmetrics).into_response(),
        _ => ([(header::CONTENT_TYPE, PROMETHEUS)], prometheus_text(&openmetrics)).into_response(),
    }
}

/// OpenMetrics in the older text.
fn prometheus_text(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len() + openmetrics.len() / 16);
    let mut help = None;
    for line in openmetrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            // What a family is called is known when its type is.
            (Some("#"), Some("HELP"), Some(family), told) => help = Some((family, told.unwrap_or_default())),
            (Some("#"), Some("TYPE"), Some(family), Some(kind)) => {
                let ending = if kind == "counter" { "_total" } else { "" };
                if let Some((_, told)) = help.take().filter(|(helped, _)| *helped == family) {
                    text.push_str(&format!("# HELP {family}{ending} {told}\n"));
                }
                let kind = if kind == "unknown" { "untyped" } else { kind };
                text.push_str(&format!("# TYPE {family}{ending} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a counter, a gauge with a unit, and a histogram whose label holds what looks like a comment.
    /// Guarantee: the counter's family is called as its samples are; unit and end are gone; samples are as they were.
    #[test]
    fn families_are_called_as_their_samples() {
        let openmetrics = "# HELP a Some a.\n# TYPE a counter\na_total{x=\"# TYPE a counter\"} 1\n\
                           # HELP b_seconds Some b.\n# TYPE b_seconds gauge\n# UNIT b_seconds seconds\nb_seconds 2\n\
                           # TYPE c histogram\nc_bucket{le=\"+Inf\"} 3\nc_sum 4.5\nc_count 3\n# EOF\n";
        let expected = "# HELP a_total Some a.\n# TYPE a_total counter\na_total{x=\"# TYPE a counter\"} 1\n\
                        # HELP b_seconds Some b.\n# TYPE b_seconds gauge\nb_seconds 2\n\
                        # TYPE c histogram\nc_bucket{le=\"+Inf\"} 3\nc_sum 4.5\nc_count 3\n";
        assert_eq!(prometheus_text(openmetrics), expected);
    }
}
