//! What a search finds: traces with the spans that matched.

use std::collections::BTreeMap;

use hotspan_model::{SpanId, TraceId};
use hotspan_traceql::{Program, ROOT_NOT_YET_RECEIVED, SpanSource, Spanset, TraceFacts, TraceSource, Value};

use super::SearchQuery;
use super::binding::BoundSpans;

/// A trace that matches.
#[derive(Debug, Clone)]
pub struct FoundTrace {
    /// Its id.
    pub trace_id: TraceId,
    /// Service of its root span.
    pub root_service: String,
    /// Name of its root span.
    pub root_name: String,
    /// When it started.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
    /// What matched.
    pub spansets: Vec<FoundSpanset>,
    /// For each service, how many spans and how many of them failed.
    pub services: BTreeMap<String, (u32, u32)>,
}

/// Spans that match together.
#[derive(Debug, Clone)]
pub struct FoundSpanset {
    /// How many matched; `spans` may hold fewer.
    pub matched: usize,
    /// Values of the set as a whole, such as `count()`.
    pub attributes: Vec<(String, Value)>,
    /// The first of the spans.
    pub spans: Vec<FoundSpan>,
}

/// A span that matches.
#[derive(Debug, Clone)]
pub struct FoundSpan {
    /// Its id.
    pub span_id: SpanId,
    /// Its name.
    pub name: String,
    /// When it started.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
    /// What the query looked at or selected.
    pub attributes: Vec<(String, Value)>,
}

/// What matches of a trace, if anything does and a span is in the time asked for.
pub(super) fn matched(program: &Program, spans: &BoundSpans, query: &SearchQuery) -> Option<Vec<Spanset>> {
    let in_time = |span: usize| (query.from..query.until).contains(&spans.start_nanos(span));
    if !(0..spans.len()).any(in_time) {
        return None;
    }
    let spansets = program.search()?.evaluate(&program.view(spans));
    (!spansets.is_empty()).then_some(spansets)
}

/// What is shown of a trace, if it matches.
pub(super) fn found(program: &Program, spans: &BoundSpans, query: &SearchQuery) -> Option<FoundTrace> {
    let spansets = matched(program, spans, query)?;
    let search = program.search()?;
    let view = program.view(spans);
    let facts = TraceFacts::of(spans);
    let root_text = |text: fn(&BoundSpans, usize) -> &str| {
        facts.root.map_or(ROOT_NOT_YET_RECEIVED.to_owned(), |root| text(spans, root).to_owned())
    };
    let mut services: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for span in 0..spans.len() {
        if !services.contains_key(spans.service_name(span)) {
            services.insert(spans.service_name(span).to_owned(), (0, 0));
        }
        if let Some(counts) = services.get_mut(spans.service_name(span)) {
            counts.0 += 1;
            counts.1 += u32::from(spans.is_error(span));
        }
    }
    let spansets = spansets.into_iter().map(|set| FoundSpanset {
        matched: set.spans.len(),
        attributes: set.attributes,
        spans: set
            .spans
            .iter()
            .take(query.spans_per_set)
            .map(|span| {
                let span = *span as usize;
                FoundSpan {
                    span_id: spans.span_id(span),
                    name: spans.name(span).to_owned(),
                    start: spans.start_nanos(span),
                    duration: spans.duration_nanos(span),
                    attributes: search.span_attributes(&view, span),
                }
            })
            .collect(),
    });
    Some(FoundTrace {
        trace_id: spans.trace_id(0),
        root_service: root_text(|spans, root| spans.service_name(root)),
        root_name: root_text(|spans, root| spans.name(root)),
        start: facts.start_nanos,
        duration: facts.duration_nanos,
        spansets: spansets.collect(),
        services,
    })
}
