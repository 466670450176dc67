//! A trace as it was received, put together from all segments that hold spans of it.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{TimestampNanosecondType, UInt32Type};
use hashbrown::HashSet;
use hotspan_lake::compaction::attributes::{ColumnType, attribute_field};
use hotspan_lake::segment::id_index::IdKind;
use hotspan_lake::segment::{IdRows, RowRanges};
use hotspan_lake::{IdSet, LakeError, ReadOptions, Segment, Table, arrays};
use hotspan_model::{Exactness, SpanId, SpanKind, StatusCode, TenantId, TraceId, Value, attributes_from_json};

use crate::Engine;
use crate::error::Result;

/// An attribute of a stored span.
pub type StoredAttribute = hotspan_model::Attribute<'static>;

/// A span with everything it came with.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSpan {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// The span that called it.
    pub parent_id: Option<SpanId>,
    /// Start in nanoseconds since 1970.
    pub start: i64,
    /// Length in nanoseconds; none where it has no end, or one before its start.
    pub duration: i64,
    /// The service it belongs to.
    pub service: Arc<str>,
    /// Operation name.
    pub name: String,
    /// Role in a call.
    pub kind: SpanKind,
    /// Outcome.
    pub status: StatusCode,
    /// Description of the outcome.
    pub status_message: String,
    /// W3C trace state.
    pub trace_state: String,
    /// Trace flags.
    pub flags: u32,
    /// The resource, as JSON.
    pub resource: Arc<str>,
    /// The scope, as JSON.
    pub scope: Arc<str>,
    /// Attributes; in no particular order.
    pub attributes: Vec<StoredAttribute>,
    /// Events in the order sent.
    pub events: Vec<StoredEvent>,
    /// Links in the order sent.
    pub links: Vec<StoredLink>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// How many events the sender left out.
    pub dropped_events_count: u32,
    /// How many links the sender left out.
    pub dropped_links_count: u32,
}

/// An event of a stored span.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// When it happened.
    pub time: i64,
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<StoredAttribute>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
}

/// A link of a stored span.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLink {
    /// The other trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// Trace state of the other span.
    pub trace_state: String,
    /// Attributes of the link.
    pub attributes: Vec<StoredAttribute>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// Trace flags of the other span.
    pub flags: u32,
}

/// Spans of a trace, by start time, each once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredTrace {
    /// The spans.
    pub spans: Vec<StoredSpan>,
    /// What they rest on.
    pub exactness: Exactness,
}

/// Spans in a part of a long trace, about.
const PART_SPANS: usize = 10_000;

/// A trace that is read part by part, so that a long one need not fit into memory.
#[derive(Debug)]
pub struct TraceRun {
    engine: Engine,
    tenant: TenantId,
    trace_id: TraceId,
    segments: std::vec::IntoIter<Arc<Segment>>,
    rows: Option<IdRows>,
    /// From the first start to the last end of the spans that were found.
    extent: Option<(i64, i64)>,
    /// A span that was sent twice, and came so late that ingest no longer knew it, counts once.
    seen: HashSet<(SpanId, i8)>,
}

impl Engine {
    /// The spans of a trace; none if there is no such trace.
    pub async fn trace_by_id(&self, tenant: &TenantId, trace_id: TraceId) -> Result<Option<StoredTrace>> {
        let mut run = self.start_trace(tenant, trace_id);
        let mut spans = Vec::new();
        while let Some(part) = run.next_part().await? {
            spans.extend(part);
        }
        spans.sort_by_key(|span| (span.start, span.span_id));
        Ok((!spans.is_empty()).then(|| StoredTrace { spans, exactness: run.exactness() }))
    }

    /// Those spans of a trace that are wanted, whole; of the others only the ids are read.
    pub async fn spans_of_trace(
        &self,
        tenant: &TenantId,
        trace_id: TraceId,
        wanted: &HashSet<SpanId>,
    ) -> Result<StoredTrace> {
        let reader = self.lake().reader();
        let ids = IdSet::traces([trace_id]);
        let mut spans = Vec::new();
        let mut seen = HashSet::new();
        for segment in self.snapshot().segments(tenant, Table::Spans).iter() {
            let mut found = RowRanges::new();
            for rows in in_parts(reader.trace_rows(segment, &ids).await?) {
                let mut row = rows.start;
                for batch in reader.rows(segment, &vec![rows], &["span_id", "kind"]).await? {
                    let ids = arrays::ids(&batch, "span_id")?;
                    let kinds = arrays::int8s(&batch, "kind")?.values();
                    for at in 0..batch.num_rows() {
                        let id = SpanId(arrays::id_at(ids, at));
                        if wanted.contains(&id) && seen.insert((id, kinds[at])) {
                            found.push(row..row + 1);
                        }
                        row += 1;
                    }
                }
                // Whoever asked may have left meanwhile.
                tokio::task::yield_now().await;
            }
            if !found.is_empty() {
                for batch in reader.read_all(segment, ReadOptions::default().rows(found)).await? {
                    read_spans(&batch, &mut spans)?;
                }
            }
        }
        let exactness = self.exactness_of_spans(tenant, spans.len() as u64, extent(&spans));
        Ok(StoredTrace { spans, exactness })
    }

    /// What an answer about the spans of a trace rests on. Of a trace that is not there, nobody knows the time: whatever
    /// was rejected may have been part of it.
    pub(crate) fn exactness_of_spans(&self, tenant: &TenantId, spans: u64, extent: Option<(i64, i64)>) -> Exactness {
        let (from, until) = extent.unwrap_or((i64::MIN, i64::MAX));
        Exactness { spans, dropped: self.lake().rejected().between(tenant, from, until).spans, ..Exactness::default() }
    }

    /// Starts to read a trace part by part.
    pub fn start_trace(&self, tenant: &TenantId, trace_id: TraceId) -> TraceRun {
        let segments = self.snapshot().segments(tenant, Table::Spans).to_vec();
        TraceRun {
            engine: self.clone(),
            tenant: tenant.clone(),
            trace_id,
            segments: segments.into_iter(),
            rows: None,
            extent: None,
            seen: HashSet::new(),
        }
    }
}

/// From the first start to the last end.
fn extent(spans: &[StoredSpan]) -> Option<(i64, i64)> {
    let ends = spans.iter().map(|span| span.start.saturating_add(span.duration.max(0)));
    Some((spans.iter().map(|span| span.start).min()?, ends.max()?))
}

/// Rows in parts that are short enough to be read at once.
fn in_parts(rows: RowRanges) -> impl Iterator<Item = Range<usize>> {
    rows.into_iter().flat_map(|rows| {
        let end = rows.end;
        rows.step_by(PART_SPANS).map(move |first| first..(first + PART_SPANS).min(end))
    })
}

impl TraceRun {
    /// More spans, by start inside the part; none when all have been given. Short traces come in one part.
    pub async fn next_part(&mut self) -> Result<Option<Vec<StoredSpan>>> {
        let mut spans = Vec::new();
        let reader = self.engine.lake().reader();
        while spans.len() < PART_SPANS {
            let rows = match &mut self.rows {
                Some(rows) => rows,
                None => {
                    let Some(segment) = self.segments.next() else { break };
                    let options = ReadOptions::default();
                    self.rows.insert(reader.id_rows(&segment, IdKind::Trace, &self.trace_id.0, &options))
                }
            };
            match rows.next_part(reader).await? {
                None => self.rows = None,
                Some(batches) => {
                    let known = spans.len();
                    for batch in batches {
                        read_spans(&batch, &mut spans)?;
                    }
                    let mut at = 0;
                    spans.retain(|span| {
                        at += 1;
                        at <= known || self.seen.insert((span.span_id, span.kind.number()))
                    });
                    // Whoever asked may have left meanwhile.
                    tokio::task::yield_now().await;
                }
            }
        }
        spans.sort_by_key(|span| (span.start, span.span_id));
        self.extent = match (self.extent, extent(&spans)) {
            (Some(known), Some(part)) => Some((known.0.min(part.0), known.1.max(part.1))),
            (known, part) => known.or(part),
        };
        Ok((!spans.is_empty()).then_some(spans))
    }

    /// What the parts that were given so far rest on.
    pub fn exactness(&self) -> Exactness {
        self.engine.exactness_of_spans(&self.tenant, self.seen.len() as u64, self.extent)
    }
}

/// Reads all rows of a batch of spans.
pub fn read_spans(batch: &RecordBatch, spans: &mut Vec<StoredSpan>) -> Result<()> {
    let trace_ids = arrays::ids(batch, "trace_id")?;
    let span_ids = arrays::ids(batch, "span_id")?;
    let parent_ids = arrays::ids(batch, "parent_span_id")?;
    let starts = arrays::times(batch, "start_time")?.values();
    let durations = arrays::int64s(batch, "duration")?.values();
    let services = arrays::texts(batch, "service")?;
    let names = arrays::texts(batch, "name")?;
    let kinds = arrays::int8s(batch, "kind")?.values();
    let statuses = arrays::int8s(batch, "status")?.values();
    let status_messages = arrays::texts(batch, "status_message")?;
    let trace_states = arrays::texts(batch, "trace_state")?;
    let flags = arrays::uint32s(batch, "flags")?.values();
    let resources = arrays::texts(batch, "resource")?;
    let scopes = arrays::texts(batch, "scope")?;
    let dropped_attributes = arrays::uint32s(batch, "dropped_attributes_count")?.values();
    let dropped_events = arrays::uint32s(batch, "dropped_events_count")?.values();
    let dropped_links = arrays::uint32s(batch, "dropped_links_count")?.values();
    // Spans of a trace share few resources and scopes: each text is kept once.
    let mut shared: HashSet<Arc<str>> = HashSet::new();
    let mut share = |text: &str| -> Arc<str> {
        if let Some(known) = shared.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        shared.insert(Arc::clone(&new));
        new
    };
    for row in 0..batch.num_rows() {
        spans.push(StoredSpan {
            trace_id: TraceId(arrays::id_at(trace_ids, row)),
            span_id: SpanId(arrays::id_at(span_ids, row)),
            parent_id: parent_ids.is_valid(row).then(|| SpanId(arrays::id_at(parent_ids, row))),
            start: starts[row],
            duration: durations[row],
            service: share(services.get(row)),
            name: names.get(row).to_owned(),
            kind: SpanKind::from_number(kinds[row]),
            status: StatusCode::from_number(statuses[row]),
            status_message: status_messages.get(row).to_owned(),
            trace_state: trace_states.get(row).to_owned(),
            flags: flags[row],
            resource: share(resources.get(row)),
            scope: share(scopes.get(row)),
            attributes: read_attributes(batch, row)?,
            events: read_events(batch, row)?,
            links: read_links(batch, row)?,
            dropped_attributes_count: dropped_attributes[row],
            dropped_events_count: dropped_events[row],
            dropped_links_count: dropped_links[row],
        });
    }
    Ok(())
}

/// The attributes of a row: those in columns of their own, and those in the maps.
pub(crate) fn read_attributes(batch: &RecordBatch, row: usize) -> Result<Vec<StoredAttribute>> {
    let mut attributes = Vec::new();
    let mut push = |key: &str, value: Value<'static>| {
        attributes.push(StoredAttribute { key: key.to_owned().into(), value });
    };
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let Some((key, column_type)) = attribute_field(field) else { continue };
        if column.is_null(row) {
            continue;
        }
        let any = column.as_any();
        let value = match column_type {
            ColumnType::Text => {
                any.downcast_ref::<StringArray>().map(|text| Value::String(text.value(row).to_owned().into()))
            }
            ColumnType::Int => any.downcast_ref::<Int64Array>().map(|values| Value::Int(values.value(row))),
            ColumnType::Double => any.downcast_ref::<Float64Array>().map(|values| Value::Double(values.value(row))),
            ColumnType::Bool => any.downcast_ref::<BooleanArray>().map(|values| Value::Bool(values.value(row))),
        };
        if let Some(value) = value {
            push(key, value);
        }
    }
    for (column, is_json) in [("attributes", false), ("attributes_json", true)] {
        let map = arrays::maps(batch, column)?;
        for entry in map.entries_of(row) {
            let value = if is_json {
                Value::from_json(map.value(entry)).unwrap_or_default()
            } else {
                Value::String(map.value(entry).to_owned().into())
            };
            push(map.key(entry), value);
        }
    }
    Ok(attributes)
}

fn damaged(column: &str) -> LakeError {
    LakeError::Damaged { path: format!("column {column}"), reason: "has another type".to_owned() }
}

fn read_events(batch: &RecordBatch, row: usize) -> Result<Vec<StoredEvent>> {
    let events = arrays::lists(batch, "events")?.value(row);
    let events = events.as_struct_opt().ok_or_else(|| damaged("events"))?;
    let times = events.column(0).as_primitive::<TimestampNanosecondType>();
    let names = events.column(1).as_string::<i32>();
    let attributes = events.column(2).as_string::<i32>();
    let dropped = events.column(3).as_primitive::<UInt32Type>();
    let read = |at: usize| StoredEvent {
        time: times.value(at),
        name: names.value(at).to_owned(),
        attributes: attributes_from_json(attributes.value(at)),
        dropped_attributes_count: dropped.value(at),
    };
    Ok((0..events.len()).map(read).collect())
}

fn read_links(batch: &RecordBatch, row: usize) -> Result<Vec<StoredLink>> {
    let links = arrays::lists(batch, "links")?.value(row);
    let links = links.as_struct_opt().ok_or_else(|| damaged("links"))?;
    let trace_ids = links.column(0).as_fixed_size_binary();
    let span_ids = links.column(1).as_fixed_size_binary();
    let trace_states = links.column(2).as_string::<i32>();
    let attributes = links.column(3).as_string::<i32>();
    let dropped = links.column(4).as_primitive::<UInt32Type>();
    let flags = links.column(5).as_primitive::<UInt32Type>();
    let read = |at: usize| StoredLink {
        trace_id: TraceId(arrays::id_at(trace_ids, at)),
        span_id: SpanId(arrays::id_at(span_ids, at)),
        trace_state: trace_states.value(at).to_owned(),
        attributes: attributes_from_json(attributes.value(at)),
        dropped_attributes_count: dropped.value(at),
        flags: flags.value(at),
    };
    Ok((0..links.len()).map(read).collect())
}
