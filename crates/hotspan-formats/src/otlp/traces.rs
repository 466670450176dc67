//! `ExportTraceServiceRequest` (and `TracesData`, which has the same bytes) into spans.
//!
//! Spans are handed out one by one through a scratch that is filled again and again, so that reading a span
//! allocates nothing that an earlier span has not allocated.

use hotspan_model::{Event, Resource, Scope, Span, SpanId, SpanKind, SpanLink, StatusCode, TraceId, TraceSink};

use super::attributes::{ItemReader, Repairs};
use super::fault::{Fault, Locate as _, Problem, Read};
use super::outcome::Outcome;
use super::resource::{merge_resource, merge_scope};
use super::wire::{BYTES, FIXED64, Field, Reader, VARINT};
use crate::{DecodeError, Limits};

/// Reads a request. Spans that make no sense are left out and counted.
///
/// On an error the request is broken as a whole: what the sink was given until then has to be thrown away (R7).
pub fn decode_traces(bytes: &[u8], limits: &Limits, sink: &mut dyn TraceSink) -> Result<Outcome, DecodeError> {
    if bytes.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge { found: bytes.len(), limit: limits.max_bytes });
    }
    let repairs = Repairs::default();
    let mut decoder = Decoder {
        items: ItemReader::new(limits, &repairs, &[]),
        outcome: Outcome::default(),
        span: Span::default(),
        sink,
    };
    decoder.request(Reader::new(bytes)).map_err(|fault| fault.into_error(bytes))?;
    Ok(decoder.outcome)
}

struct Decoder<'a, 'l> {
    items: ItemReader<'a, 'l>,
    outcome: Outcome,
    span: Span<'a>,
    sink: &'l mut dyn TraceSink,
}

impl<'a> Decoder<'a, '_> {
    fn request(&mut self, mut request: Reader<'a>) -> Read<()> {
        let mut index = 0;
        while let Some(field) = request.field()? {
            if field.number == 1 {
                let group = request.message(field).element("resource_spans", index)?;
                self.resource_spans(group, index).element("resource_spans", index)?;
                index += 1;
            } else {
                request.skip(field)?;
            }
        }
        Ok(())
    }

    fn resource_spans(&mut self, group: Reader<'a>, group_index: usize) -> Read<()> {
        // The schema URL stands behind the spans it is about, so that the group is walked twice.
        self.items.start_item();
        let mut resource = Resource::default();
        let mut refused = None;
        let mut walk = group;
        while let Some(field) = walk.field()? {
            let read = match field.number {
                1 => walk
                    .message(field)
                    .and_then(|message| merge_resource(message, &mut self.items, &mut resource))
                    .field("resource"),
                3 => text_field(&mut self.items, &mut walk, field, &mut resource.schema_url).field("schema_url"),
                _ => walk.skip(field),
            };
            if let Err(fault) = read {
                if fault.problem.is_fatal() {
                    return Err(fault);
                }
                refused = Some(fault);
            }
        }
        let locate = |fault: Box<Fault>| fault.element("resource_spans", group_index);
        self.items.note_repairs(&mut self.outcome, |fault| locate(fault.field("resource")));
        if refused.is_none() {
            self.sink.resource(&resource);
        }
        let refused = refused.map(locate);

        let mut walk = group;
        let mut index = 0;
        while let Some(field) = walk.field()? {
            if field.number == 2 {
                let scope = walk.message(field).element("scope_spans", index)?;
                let place = Place { group: group_index, scope: index };
                self.scope_spans(scope, place, refused.as_deref()).element("scope_spans", index)?;
                index += 1;
            } else {
                walk.skip(field)?;
            }
        }
        Ok(())
    }

    fn scope_spans(&mut self, group: Reader<'a>, place: Place, refused: Option<&Fault>) -> Read<()> {
        self.items.start_item();
        let mut scope = Scope::default();
        let mut scope_refused = None;
        let mut spans = 0;
        let mut walk = group;
        while let Some(field) = walk.field()? {
            let read = match field.number {
                1 => walk
                    .message(field)
                    .and_then(|message| merge_scope(message, &mut self.items, &mut scope))
                    .field("scope"),
                2 => {
                    spans += 1;
                    walk.skip(field)
                }
                3 => text_field(&mut self.items, &mut walk, field, &mut scope.schema_url).field("schema_url"),
                _ => walk.skip(field),
            };
            if let Err(fault) = read {
                if fault.problem.is_fatal() {
                    return Err(fault);
                }
                scope_refused = Some(fault);
            }
        }
        self.items.note_repairs(&mut self.outcome, |fault| place.locate(fault.field("scope")));
        // Spans without the resource or scope they belong to would be misleading.
        let scope_refused = scope_refused.map(|fault| place.locate(fault));
        if let Some(fault) = refused.or(scope_refused.as_deref()) {
            self.outcome.rejected += spans;
            self.outcome.note_many(fault, spans);
            return self.note_times(group);
        }
        self.sink.scope(&scope);

        let mut walk = group;
        let mut index = 0;
        while let Some(field) = walk.field()? {
            if field.number != 2 {
                walk.skip(field)?;
                continue;
            }
            let message = walk.message(field).element("spans", index)?;
            self.clear_span();
            match read_span(message, &mut self.items, &mut self.span) {
                Ok(()) => {
                    self.outcome.accepted += 1;
                    self.items.note_repairs(&mut self.outcome, |fault| place.locate(fault.element("spans", index)));
                    self.sink.span(&self.span);
                }
                Err(fault) if fault.problem.is_fatal() => return Err(fault.element("spans", index)),
                Err(fault) => {
                    self.outcome.rejected += 1;
                    self.outcome.untimely += u64::from(fault.problem.is_untimely());
                    self.outcome.note_time(start_of(message), 1);
                    let fault = fault.element("spans", index);
                    if !self.outcome.count_known(&fault) {
                        self.outcome.note(&place.locate(fault));
                    }
                }
            }
            index += 1;
        }
        Ok(())
    }

    /// Takes down when the spans of a scope had happened that is refused as a whole.
    fn note_times(&mut self, mut scope: Reader<'a>) -> Read<()> {
        while let Some(field) = scope.field()? {
            match field.number {
                2 => {
                    let span = scope.message(field)?;
                    self.outcome.note_time(start_of(span), 1);
                }
                _ => scope.skip(field)?,
            }
        }
        Ok(())
    }

    /// Makes the scratch ready for the next span. Field by field, since a span is long to move.
    fn clear_span(&mut self) {
        self.items.start_item();
        let span = &mut self.span;
        span.attributes.clear();
        for event in span.events.drain(..) {
            self.items.give_back(event.attributes);
        }
        for link in span.links.drain(..) {
            self.items.give_back(link.attributes);
        }
        // Ids, parent and times are set by every span.
        (span.trace_state, span.name, span.status_message) = ("", "", "");
        (span.kind, span.status, span.flags) = (SpanKind::Unspecified, StatusCode::Unset, 0);
        span.dropped_attributes_count = 0;
        span.dropped_events_count = 0;
        span.dropped_links_count = 0;
    }
}

/// The scope that spans are in.
#[derive(Clone, Copy)]
struct Place {
    group: usize,
    scope: usize,
}

impl Place {
    fn locate(self, fault: Box<Fault>) -> Box<Fault> {
        fault.element("scope_spans", self.scope).element("resource_spans", self.group)
    }
}

fn read_span<'a>(mut message: Reader<'a>, items: &mut ItemReader<'a, '_>, span: &mut Span<'a>) -> Read<()> {
    let (mut trace_id, mut span_id, mut parent_id) = (&[][..], &[][..], &[][..]);
    let (mut start, mut end) = (0, 0);
    if message.next_is(1, BYTES) {
        trace_id = message.raw_bytes().field("trace_id")?;
    }
    if message.next_is(2, BYTES) {
        span_id = message.raw_bytes().field("span_id")?;
    }
    if message.next_is(4, BYTES) {
        parent_id = message.raw_bytes().field("parent_span_id")?;
    }
    if message.next_is(5, BYTES) {
        span.name = message.raw_bytes().and_then(|bytes| items.borrowed_text(bytes)).field("name")?;
    }
    if message.next_is(6, VARINT) {
        span.kind = SpanKind::from_number(items.code(message.raw_varint().field("kind")? as i32));
    }
    if message.next_is(7, FIXED64) {
        start = message.raw_fixed64().field("start_time_unix_nano")?;
    }
    if message.next_is(8, FIXED64) {
        end = message.raw_fixed64().field("end_time_unix_nano")?;
    }
    while let Some(field) = message.field()? {
        match field.number {
            1 => trace_id = message.bytes(field).field("trace_id")?,
            2 => span_id = message.bytes(field).field("span_id")?,
            3 => text_field(items, &mut message, field, &mut span.trace_state).field("trace_state")?,
            4 => parent_id = message.bytes(field).field("parent_span_id")?,
            5 => text_field(items, &mut message, field, &mut span.name).field("name")?,
            6 => span.kind = SpanKind::from_number(items.code(message.int32(field).field("kind")?)),
            7 => start = message.fixed64(field).field("start_time_unix_nano")?,
            8 => end = message.fixed64(field).field("end_time_unix_nano")?,
            9 => items.attribute(&mut message, field, &mut span.attributes)?,
            10 => span.dropped_attributes_count = message.varint(field).field("dropped_attributes_count")? as u32,
            11 => {
                let index = span.events.len();
                let event = message.message(field).element("events", index)?;
                span.events.push(read_event(event, items).element("events", index)?);
            }
            12 => span.dropped_events_count = message.varint(field).field("dropped_events_count")? as u32,
            13 => {
                let index = span.links.len();
                let link = message.message(field).element("links", index)?;
                span.links.push(read_link(link, items).element("links", index)?);
            }
            14 => span.dropped_links_count = message.varint(field).field("dropped_links_count")? as u32,
            15 => {
                let status = message.message(field).field("status")?;
                merge_status(status, items, span).field("status")?;
            }
            16 => span.flags = message.fixed32(field).field("flags")?,
            _ => message.skip(field)?,
        }
    }
    span.trace_id = TraceId(fixed_id(trace_id, false).field("trace_id")?);
    span.span_id = SpanId(fixed_id(span_id, false).field("span_id")?);
    let parent = SpanId(fixed_id(parent_id, true).field("parent_span_id")?);
    span.parent_id = (!parent.is_zero()).then_some(parent);
    span.start = nanoseconds(start).field("start_time_unix_nano")?;
    span.end = nanoseconds(end).field("end_time_unix_nano")?;
    items.check_time(span.start).field("start_time_unix_nano")?;
    Ok(())
}

/// The start of a span that is refused, as far as it can be read.
#[cold]
fn start_of(mut message: Reader<'_>) -> Option<u64> {
    let mut start = None;
    while let Ok(Some(field)) = message.field() {
        match field.number {
            7 => start = Some(message.fixed64(field).ok()?),
            _ => message.skip(field).ok()?,
        }
    }
    start
}

fn read_event<'a>(mut message: Reader<'a>, items: &mut ItemReader<'a, '_>) -> Read<Event<'a>> {
    items.charge(size_of::<Event<'_>>())?;
    let mut event = Event { attributes: items.spare_vec(), ..Event::default() };
    while let Some(field) = message.field()? {
        match field.number {
            1 => event.time = nanoseconds(message.fixed64(field).field("time_unix_nano")?).field("time_unix_nano")?,
            2 => text_field(items, &mut message, field, &mut event.name).field("name")?,
            3 => items.attribute(&mut message, field, &mut event.attributes)?,
            4 => event.dropped_attributes_count = message.varint(field).field("dropped_attributes_count")? as u32,
            _ => message.skip(field)?,
        }
    }
    Ok(event)
}

fn read_link<'a>(mut message: Reader<'a>, items: &mut ItemReader<'a, '_>) -> Read<SpanLink<'a>> {
    items.charge(size_of::<SpanLink<'_>>())?;
    let mut link = SpanLink { attributes: items.spare_vec(), ..SpanLink::default() };
    while let Some(field) = message.field()? {
        match field.number {
            // A link to nowhere is odd, but harmless: its attributes may still say something.
            1 => link.trace_id = TraceId(message.bytes(field).and_then(|id| fixed_id(id, true)).field("trace_id")?),
            2 => link.span_id = SpanId(message.bytes(field).and_then(|id| fixed_id(id, true)).field("span_id")?),
            3 => text_field(items, &mut message, field, &mut link.trace_state).field("trace_state")?,
            4 => items.attribute(&mut message, field, &mut link.attributes)?,
            5 => link.dropped_attributes_count = message.varint(field).field("dropped_attributes_count")? as u32,
            6 => link.flags = message.fixed32(field).field("flags")?,
            _ => message.skip(field)?,
        }
    }
    Ok(link)
}

fn merge_status<'a>(mut message: Reader<'a>, items: &mut ItemReader<'a, '_>, span: &mut Span<'a>) -> Read<()> {
    while let Some(field) = message.field()? {
        match field.number {
            2 => text_field(items, &mut message, field, &mut span.status_message).field("message")?,
            3 => span.status = StatusCode::from_number(items.code(message.int32(field).field("code")?)),
            _ => message.skip(field)?,
        }
    }
    Ok(())
}

#[inline]
fn text_field<'a>(
    items: &mut ItemReader<'a, '_>,
    message: &mut Reader<'a>,
    field: Field,
    into: &mut &'a str,
) -> Read<()> {
    *into = items.borrowed_text(message.bytes(field)?)?;
    Ok(())
}

/// The bytes of an id; where it may be absent, no bytes and only zeros mean the same.
#[inline]
fn fixed_id<const N: usize>(bytes: &[u8], optional: bool) -> Read<[u8; N]> {
    match <[u8; N]>::try_from(bytes) {
        Ok(id) if optional || id != [0; N] => Ok(id),
        Ok(_) => Err(Fault::new(Problem::ZeroId)),
        Err(_) if optional && bytes.is_empty() => Ok([0; N]),
        Err(_) => Err(Fault::new(Problem::IdSize { found: bytes.len(), expected: N })),
    }
}

/// A time on the wire, which reaches twice as far as ours.
#[inline]
fn nanoseconds(time: u64) -> Read<i64> {
    i64::try_from(time).map_err(|_| Fault::new(Problem::Time { found: time }))
}
