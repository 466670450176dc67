//! `ExportTraceServiceRequest`.

use hotspan_model::{Event, Span, SpanLink};

use super::attributes::{write_attributes, write_resource, write_scope};
use super::protobuf::Writer;
use crate::workload::{GeneratedSpan, Window};

/// The spans of a window as a collector sends them: batches by time, each grouped by service.
pub fn trace_requests<'a>(window: &'a Window<'_>, spans_per_request: usize) -> impl Iterator<Item = TraceRequest> + 'a {
    let spans = window.spans_by_end();
    let size = spans_per_request.max(1);
    let batches = spans.len().div_ceil(size);
    (0..batches).map(move |batch| {
        let first = batch * size;
        let batch = &spans[first..(first + size).min(spans.len())];
        TraceRequest { spans: batch.len(), bytes: trace_request(window, batch) }
    })
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRequest {
    /// How many spans it holds.
    pub spans: usize,
    /// Its protobuf.
    pub bytes: Vec<u8>,
}

fn trace_request(window: &Window<'_>, batch: &[&GeneratedSpan<'_>]) -> Vec<u8> {
    let mut by_service: Vec<&GeneratedSpan<'_>> = batch.to_vec();
    // Stable, so that inside a service the order of time stays.
    by_service.sort_by_key(|span| span.service);
    let mut out = Writer::default();
    for group in by_service.chunk_by(|left, right| left.service == right.service) {
        let service = &window.workload.fleet().services[usize::from(group[0].service)];
        out.message(1, |resource_spans| {
            write_resource(resource_spans, &service.resource);
            resource_spans.message(2, |scope_spans| {
                write_scope(scope_spans, service.language.name());
                for span in group {
                    scope_spans.message(2, |message| write_span(message, &span.span));
                }
            });
            resource_spans.text(3, service.resource.schema_url);
        });
    }
    out.into_bytes()
}

fn write_span(out: &mut Writer, span: &Span<'_>) {
    out.bytes(1, &span.trace_id.0);
    out.bytes(2, &span.span_id.0);
    out.text(3, span.trace_state);
    if let Some(parent) = span.parent_id {
        out.bytes(4, &parent.0);
    }
    out.text(5, span.name);
    out.varint(6, span.kind.number() as u64);
    out.fixed64(7, span.start as u64);
    out.fixed64(8, span.end as u64);
    write_attributes(out, 9, &span.attributes);
    for event in &span.events {
        out.message(11, |message| write_event(message, event));
    }
    for link in &span.links {
        out.message(13, |message| write_link(message, link));
    }
    if span.status.number() != 0 {
        out.message(15, |status| {
            status.text(2, span.status_message);
            status.varint(3, span.status.number() as u64);
        });
    }
    out.fixed32(16, span.flags);
}

fn write_event(out: &mut Writer, event: &Event<'_>) {
    out.fixed64(1, event.time as u64);
    out.text(2, event.name);
    write_attributes(out, 3, &event.attributes);
}

fn write_link(out: &mut Writer, link: &SpanLink<'_>) {
    out.bytes(1, &link.trace_id.0);
    out.bytes(2, &link.span_id.0);
    out.text(3, link.trace_state);
    write_attributes(out, 4, &link.attributes);
}
