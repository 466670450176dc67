//! Rows of the table `spans`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int8Array, Int64Array, RecordBatch, TimestampNanosecondArray, UInt32Array};
use arrow::error::ArrowError;
use hotspan_model::attribute::write_json_object;
use hotspan_model::entity_ref::write_entity_refs;
use hotspan_model::labels::UNKNOWN_SERVICE;
use hotspan_model::{Attribute, Event, Resource, Scope, Span, SpanLink, TraceSink, Value};

use super::columns::{DictionaryColumn, IdColumn, ListEnds, MapColumn, TextColumn, struct_array};
use crate::table::{self, Table};

/// Spans on their way into a segment, column by column.
#[derive(Debug, Default)]
pub struct SpanRows {
    trace_id: IdColumn<16>,
    span_id: IdColumn<8>,
    parent_span_id: IdColumn<8>,
    start_time: Vec<i64>,
    duration: Vec<i64>,
    service: DictionaryColumn,
    name: TextColumn,
    kind: Vec<i8>,
    status: Vec<i8>,
    status_message: TextColumn,
    trace_state: TextColumn,
    flags: Vec<u32>,
    resource: DictionaryColumn,
    scope: DictionaryColumn,
    attributes: MapColumn,
    attributes_json: MapColumn,
    events: EventColumns,
    links: LinkColumns,
    dropped_attributes_count: Vec<u32>,
    dropped_events_count: Vec<u32>,
    dropped_links_count: Vec<u32>,
    current: CurrentGroup,
}

/// Dictionary codes of the resource and scope that the next spans belong to.
#[derive(Debug, Default)]
struct CurrentGroup {
    service: i32,
    resource: i32,
    scope: i32,
    scratch: String,
}

#[derive(Debug, Default)]
struct EventColumns {
    ends: ListEnds,
    time: Vec<i64>,
    name: TextColumn,
    attributes: TextColumn,
    dropped: Vec<u32>,
}

#[derive(Debug, Default)]
struct LinkColumns {
    ends: ListEnds,
    trace_id: IdColumn<16>,
    span_id: IdColumn<8>,
    trace_state: TextColumn,
    attributes: TextColumn,
    dropped: Vec<u32>,
    flags: Vec<u32>,
}

/// About what a span takes on the wire.
const TYPICAL_SPAN_BYTES: usize = 320;

impl SpanRows {
    /// Makes room for as many spans as a message of this length may hold. A guess: columns still grow as they need.
    pub fn with_room_for(message_bytes: usize) -> Self {
        let mut spans = Self::default();
        spans.reserve(message_bytes / TYPICAL_SPAN_BYTES);
        spans
    }

    /// Makes room for about this many further spans.
    pub(crate) fn reserve(&mut self, rows: usize) {
        if rows == 0 {
            return;
        }
        self.trace_id.reserve(rows);
        self.span_id.reserve(rows);
        self.parent_span_id.reserve(rows);
        self.start_time.reserve(rows);
        self.duration.reserve(rows);
        self.service.reserve(rows);
        self.name.reserve(rows, 24 * rows);
        self.kind.reserve(rows);
        self.status.reserve(rows);
        self.status_message.reserve(rows, 0);
        self.trace_state.reserve(rows, 0);
        self.flags.reserve(rows);
        self.resource.reserve(rows);
        self.scope.reserve(rows);
        self.attributes.reserve(rows, 6, 96);
        self.attributes_json.reserve(rows, 2, 32);
        self.dropped_attributes_count.reserve(rows);
        self.dropped_events_count.reserve(rows);
        self.dropped_links_count.reserve(rows);
    }

    /// Strings go bare into one map, so that SQL can compare them; everything else goes as JSON into another.
    fn push_attributes(&mut self, attributes: &[Attribute<'_>]) {
        for attribute in attributes {
            match &attribute.value {
                Value::String(text) => self.attributes.entry(&attribute.key, text),
                other => self.attributes_json.entry_with(&attribute.key, &mut self.current.scratch, |text| {
                    other.write_json(text);
                }),
            }
        }
        self.attributes.end_row();
        self.attributes_json.end_row();
    }

    /// How many spans there are.
    pub fn len(&self) -> usize {
        self.start_time.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start_time.is_empty()
    }

    /// Trace and span id of a row, as the key that retried spans are known by.
    pub(crate) fn identity(&self, row: usize) -> (&[u8; 16], &[u8; 8]) {
        (self.trace_id.get(row), self.span_id.get(row))
    }

    /// About how much memory the rows take.
    pub fn size(&self) -> usize {
        let fixed = 16 + 8 + 8 + 8 + 8 + 1 + 1 + 4 + 4 * 3;
        self.len() * fixed
            + self.service.size()
            + self.name.size()
            + self.status_message.size()
            + self.trace_state.size()
            + self.resource.size()
            + self.scope.size()
            + self.attributes.size()
            + self.attributes_json.size()
            + self.events.size()
            + self.links.size()
    }

    /// Joins the spans of another request to these.
    pub(crate) fn append(&mut self, other: &Self) {
        self.trace_id.append(&other.trace_id);
        self.span_id.append(&other.span_id);
        self.parent_span_id.append(&other.parent_span_id);
        self.start_time.extend_from_slice(&other.start_time);
        self.duration.extend_from_slice(&other.duration);
        self.service.append(&other.service);
        self.name.append(&other.name);
        self.kind.extend_from_slice(&other.kind);
        self.status.extend_from_slice(&other.status);
        self.status_message.append(&other.status_message);
        self.trace_state.append(&other.trace_state);
        self.flags.extend_from_slice(&other.flags);
        self.resource.append(&other.resource);
        self.scope.append(&other.scope);
        self.attributes.append(&other.attributes);
        self.attributes_json.append(&other.attributes_json);
        self.events.append(&other.events);
        self.links.append(&other.links);
        self.dropped_attributes_count.extend_from_slice(&other.dropped_attributes_count);
        self.dropped_events_count.extend_from_slice(&other.dropped_events_count);
        self.dropped_links_count.extend_from_slice(&other.dropped_links_count);
    }

    /// The Arrow batch, in the order of [`Table::schema`].
    pub(crate) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.trace_id.finish(false)?),
            Arc::new(self.span_id.finish(false)?),
            Arc::new(self.parent_span_id.finish(true)?),
            Arc::new(TimestampNanosecondArray::from(self.start_time)),
            Arc::new(Int64Array::from(self.duration)),
            Arc::new(self.service.finish(false)?),
            Arc::new(self.name.finish(false)?),
            Arc::new(Int8Array::from(self.kind)),
            Arc::new(Int8Array::from(self.status)),
            Arc::new(self.status_message.finish(true)?),
            Arc::new(self.trace_state.finish(true)?),
            Arc::new(UInt32Array::from(self.flags)),
            Arc::new(self.resource.finish(false)?),
            Arc::new(self.scope.finish(false)?),
            Arc::new(self.attributes.finish()?),
            Arc::new(self.attributes_json.finish()?),
            self.events.finish()?,
            self.links.finish()?,
            Arc::new(UInt32Array::from(self.dropped_attributes_count)),
            Arc::new(UInt32Array::from(self.dropped_events_count)),
            Arc::new(UInt32Array::from(self.dropped_links_count)),
        ];
        RecordBatch::try_new(Table::Spans.schema(), columns)
    }
}

impl TraceSink for SpanRows {
    fn resource(&mut self, resource: &Resource<'_>) {
        let service = resource
            .attributes
            .iter()
            .find(|attribute| attribute.key == "service.name")
            .map_or(std::borrow::Cow::Borrowed(UNKNOWN_SERVICE), |attribute| attribute.value.to_label());
        self.current.service = self.service.intern(if service.is_empty() { UNKNOWN_SERVICE } else { &service });
        self.current.scratch.clear();
        write_resource_json(resource, &mut self.current.scratch);
        self.current.resource = self.resource.intern(&self.current.scratch);
        self.current.scope = 0;
    }

    fn scope(&mut self, scope: &Scope<'_>) {
        self.current.scratch.clear();
        write_scope_json(scope, &mut self.current.scratch);
        self.current.scope = self.scope.intern(&self.current.scratch);
    }

    fn span(&mut self, span: &Span<'_>) {
        self.trace_id.push(&span.trace_id.0);
        self.span_id.push(&span.span_id.0);
        self.parent_span_id.push(&span.parent_id.unwrap_or_default().0);
        self.start_time.push(span.start);
        // A span that has no end, or one before its start, has taken no time that anybody knows of.
        self.duration.push(span.end.saturating_sub(span.start).max(0));
        self.service.push_code(self.current.service);
        self.name.push(span.name);
        self.kind.push(span.kind.number());
        self.status.push(span.status.number());
        self.status_message.push(span.status_message);
        self.trace_state.push(span.trace_state);
        self.flags.push(span.flags);
        self.resource.push_code(self.current.resource);
        self.scope.push_code(self.current.scope);
        self.push_attributes(&span.attributes);
        self.events.push(&span.events, &mut self.current.scratch);
        self.links.push(&span.links, &mut self.current.scratch);
        self.dropped_attributes_count.push(span.dropped_attributes_count);
        self.dropped_events_count.push(span.dropped_events_count);
        self.dropped_links_count.push(span.dropped_links_count);
    }
}

impl EventColumns {
    fn push(&mut self, events: &[Event<'_>], scratch: &mut String) {
        for event in events {
            self.time.push(event.time);
            self.name.push(event.name);
            self.attributes.push_with(scratch, |text| write_json_object(&event.attributes, text));
            self.dropped.push(event.dropped_attributes_count);
        }
        self.ends.end_row(self.time.len());
    }

    fn size(&self) -> usize {
        12 * self.time.len() + self.name.size() + self.attributes.size() + self.ends.size()
    }

    fn append(&mut self, other: &Self) {
        self.ends.append(&other.ends);
        self.time.extend_from_slice(&other.time);
        self.name.append(&other.name);
        self.attributes.append(&other.attributes);
        self.dropped.extend_from_slice(&other.dropped);
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let elements = struct_array(
            table::event_fields(),
            vec![
                Arc::new(TimestampNanosecondArray::from(self.time)),
                Arc::new(self.name.finish(false)?),
                Arc::new(self.attributes.finish(false)?),
                Arc::new(UInt32Array::from(self.dropped)),
            ],
        )?;
        Ok(Arc::new(self.ends.into_list(elements)?))
    }
}

impl LinkColumns {
    fn push(&mut self, links: &[SpanLink<'_>], scratch: &mut String) {
        for link in links {
            self.trace_id.push(&link.trace_id.0);
            self.span_id.push(&link.span_id.0);
            self.trace_state.push(link.trace_state);
            self.attributes.push_with(scratch, |text| write_json_object(&link.attributes, text));
            self.dropped.push(link.dropped_attributes_count);
            self.flags.push(link.flags);
        }
        self.ends.end_row(self.flags.len());
    }

    fn size(&self) -> usize {
        32 * self.flags.len() + self.trace_state.size() + self.attributes.size() + self.ends.size()
    }

    fn append(&mut self, other: &Self) {
        self.ends.append(&other.ends);
        self.trace_id.append(&other.trace_id);
        self.span_id.append(&other.span_id);
        self.trace_state.append(&other.trace_state);
        self.attributes.append(&other.attributes);
        self.dropped.extend_from_slice(&other.dropped);
        self.flags.extend_from_slice(&other.flags);
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let elements = struct_array(
            table::link_fields(),
            vec![
                Arc::new(self.trace_id.finish(false)?),
                Arc::new(self.span_id.finish(false)?),
                Arc::new(self.trace_state.finish(false)?),
                Arc::new(self.attributes.finish(false)?),
                Arc::new(UInt32Array::from(self.dropped)),
                Arc::new(UInt32Array::from(self.flags)),
            ],
        )?;
        Ok(Arc::new(self.ends.into_list(elements)?))
    }
}

/// The text of a resource in the column `resource`: its attributes first, then what is rarely there.
fn write_resource_json(resource: &Resource<'_>, out: &mut String) {
    out.push_str("{\"attributes\":");
    write_json_object(&resource.attributes, out);
    write_rare_fields(resource.dropped_attributes_count, resource.schema_url, out);
    if !resource.entity_refs.is_empty() {
        out.push_str(",\"entity_refs\":");
        write_entity_refs(&resource.entity_refs, out);
    }
    out.push('}');
}

/// The text of a scope in the column `scope`.
fn write_scope_json(scope: &Scope<'_>, out: &mut String) {
    out.push_str("{\"name\":");
    Value::str(scope.name).write_json(out);
    out.push_str(",\"version\":");
    Value::str(scope.version).write_json(out);
    out.push_str(",\"attributes\":");
    write_json_object(&scope.attributes, out);
    write_rare_fields(scope.dropped_attributes_count, scope.schema_url, out);
    out.push('}');
}

fn write_rare_fields(dropped_attributes_count: u32, schema_url: &str, out: &mut String) {
    if dropped_attributes_count > 0 {
        out.push_str(",\"dropped_attributes_count\":");
        Value::Int(i64::from(dropped_attributes_count)).write_json(out);
    }
    if !schema_url.is_empty() {
        out.push_str(",\"schema_url\":");
        Value::str(schema_url).write_json(out);
    }
}
