//! What a target is: a trace, a span of a trace, a span, or a search.

use hotspan_model::{SpanId, TraceId};
use hotspan_query::Result;
use hotspan_traceql::Program;

use super::invalid;

/// A target, understood.
#[derive(Debug, Clone)]
pub enum Target {
    /// A trace: its root is in question.
    Trace(TraceId),
    /// A span of a trace.
    Span(TraceId, SpanId),
    /// Sixteen digits: a span, or a short trace id.
    Sixteen(TraceId, SpanId),
    /// A search.
    Search(Box<Program>),
}

impl Target {
    /// Reads a target.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Err(invalid(
                "target: say what to explain: a trace id, TRACE:SPAN, a span id, or a search such as { name = \"checkout\" && duration > 1s }",
            ));
        }
        if text.starts_with(['{', '(']) {
            return search("target", text).map(|program| Self::Search(Box::new(program)));
        }
        let id = |what: &str, part: &str| {
            invalid(format!("target: {part:?} is not a {what} id; it takes hexadecimal digits"))
        };
        let trace =
            |part: &str| padded(part).and_then(|part| part.parse::<TraceId>().ok()).ok_or_else(|| id("trace", part));
        if let Some((trace_text, span_text)) = text.split_once([':', '/']) {
            let span = span_text.parse::<SpanId>().map_err(|_| id("span", span_text))?;
            return Ok(Self::Span(trace(trace_text)?, span));
        }
        match text.parse::<SpanId>() {
            Ok(span) if text.len() == 16 => Ok(Self::Sixteen(trace(text)?, span)),
            _ => Ok(Self::Trace(trace(text)?)),
        }
    }
}

/// Leading zeros of trace ids are often left out.
fn padded(text: &str) -> Option<String> {
    ((8..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| format!("{text:0>32}"))
}

/// Compiles a search that selects spans.
pub(super) fn search(field: &str, text: &str) -> Result<Program> {
    let program = Program::new(text).map_err(|error| invalid(format!("{field}: {}", error.render(text))))?;
    if program.is_metrics() {
        return Err(invalid(format!("{field}: a cohort is selected by a search, not by a metrics query")));
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: targets in every form, and texts that are none.
    /// Guarantee: each is read as what it is, and errors name the target and what would be one.
    #[test]
    fn targets_are_told_apart() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert!(matches!(Target::parse(trace), Ok(Target::Trace(id)) if id.to_string() == trace));
        assert!(matches!(Target::parse(&format!("{trace}:00f067aa0ba902b7")), Ok(Target::Span(..))));
        assert!(matches!(Target::parse("00f067aa0ba902b7"), Ok(Target::Sixteen(..))));
        assert!(matches!(Target::parse("{ duration > 1s }"), Ok(Target::Search(_))));
        for (wrong, said) in
            [("", "trace id"), ("checkout", "hexadecimal"), ("{ duration > }", "target"), ("{} | rate()", "search")]
        {
            let error = Target::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("target") && error.contains(said), "{wrong}: {error}");
        }
    }
}
