//! Random trace requests in the generated types.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

use crate::dice::Dice;

pub(crate) fn request(dice: &mut Dice<'_>) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest { resource_spans: dice.many(3, resource_spans) }
}

fn resource_spans(dice: &mut Dice<'_>) -> ResourceSpans {
    let resource = (!dice.rarely(4)).then(|| Resource {
        attributes: dice.attributes(),
        dropped_attributes_count: dice.count(),
        entity_refs: dice.entity_refs(),
    });
    ResourceSpans { resource, scope_spans: dice.many(3, scope_spans), schema_url: dice.text() }
}

fn scope_spans(dice: &mut Dice<'_>) -> ScopeSpans {
    let scope = (!dice.rarely(4)).then(|| InstrumentationScope {
        name: dice.text(),
        version: dice.text(),
        attributes: dice.attributes(),
        dropped_attributes_count: dice.count(),
    });
    ScopeSpans { scope, spans: dice.many(4, span), schema_url: dice.text() }
}

fn span(dice: &mut Dice<'_>) -> Span {
    Span {
        trace_id: dice.id(16),
        span_id: dice.id(8),
        trace_state: dice.text(),
        parent_span_id: dice.id(8),
        flags: dice.count(),
        name: dice.text(),
        kind: dice.roll(9) as i32 - 1,
        start_time_unix_nano: dice.u64(),
        end_time_unix_nano: dice.u64(),
        attributes: dice.attributes(),
        dropped_attributes_count: dice.count(),
        events: dice.many(2, event),
        dropped_events_count: dice.count(),
        links: dice.many(2, link),
        dropped_links_count: dice.count(),
        status: dice.rarely(2).then(|| Status { message: dice.text(), code: dice.roll(5) as i32 - 1 }),
    }
}

fn event(dice: &mut Dice<'_>) -> Event {
    Event {
        time_unix_nano: dice.u64(),
        name: dice.text(),
        attributes: dice.attributes(),
        dropped_attributes_count: dice.count(),
    }
}

fn link(dice: &mut Dice<'_>) -> Link {
    Link {
        trace_id: dice.id(16),
        span_id: dice.id(8),
        trace_state: dice.text(),
        attributes: dice.attributes(),
        dropped_attributes_count: dice.count(),
        flags: dice.count(),
    }
}
