//! Gathering: the spans of whole traces, from all segments, a slice of the id space at a time.
//!
//! Files are sorted by trace id, so a slice of ids is a stretch of pages in each. A trace lies in one slice
//! whole, however many files hold its spans (R3), and a slice is small enough for memory (R5).

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use futures::TryStreamExt;
use hashbrown::HashSet;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_lake::{Lake, ReadOptions, Segment, arrays};
use hotspan_traceql::FieldTable;

use super::binding::BoundSpans;
use super::query_columns::columns_of;
use crate::error::Result;

/// Rows in a slice, about.
const SLICE_ROWS: u64 = 500_000;

/// A part of the space of trace ids: those whose first two bytes, as a number, lie in the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    first: u32,
    last: u32,
}

/// Cuts the id space into slices that hold about [`SLICE_ROWS`] rows each.
pub(crate) fn slices(segments: &[Arc<Segment>]) -> Vec<Slice> {
    let rows: u64 = segments.iter().map(|segment| segment.rows).sum();
    let count = rows.div_ceil(SLICE_ROWS).clamp(1, 4096) as u32;
    let edge = |number: u32| (u64::from(number) * 65536 / u64::from(count)) as u32;
    (0..count).map(|number| Slice { first: edge(number), last: edge(number + 1) }).collect()
}

impl Slice {
    fn holds(self, trace_id: &[u8]) -> bool {
        let number = u32::from(trace_id[0]) << 8 | u32::from(trace_id[1]);
        (self.first..self.last).contains(&number)
    }

    fn least(self) -> [u8; 16] {
        let mut id = [0; 16];
        id[0..2].copy_from_slice(&(self.first as u16).to_be_bytes());
        id
    }

    fn greatest(self) -> [u8; 16] {
        let mut id = [0xff; 16];
        id[0..2].copy_from_slice(&((self.last - 1) as u16).to_be_bytes());
        id
    }
}

/// The spans of a slice, bound to the query's fields, and the rows of each trace.
#[derive(Debug)]
pub(crate) struct GatheredTraces {
    pub(crate) spans: BoundSpans,
    /// The rows of each trace, by start.
    pub(crate) traces: Vec<Vec<u32>>,
}

/// Reads the traces of a slice; none if there is no span in it.
pub(crate) async fn gather(
    lake: &Lake,
    segments: &[Arc<Segment>],
    slice: Slice,
    fields: &FieldTable,
) -> Result<Option<GatheredTraces>> {
    gather_with(lake, segments, slice, fields, &ReadOptions::columns(&columns_of(fields))).await
}

/// The same, with columns that the fields do not ask for.
pub(super) async fn gather_with(
    lake: &Lake,
    segments: &[Arc<Segment>],
    slice: Slice,
    fields: &FieldTable,
    columns: &ReadOptions,
) -> Result<Option<GatheredTraces>> {
    let mut batches = Vec::new();
    for segment in segments {
        let options = columns
            .clone()
            .between_ids("trace_id", slice.least(), slice.greatest())
            .matching(&["trace_id"], move |batch| in_slice(batch, slice));
        let mut stream = lake.reader().stream(segment, options).await?;
        while let Some(batch) = stream.try_next().await? {
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
    }
    let Some(joined) = join(batches)? else { return Ok(None) };
    let traces = group_by_trace(&joined)?;
    Ok(Some(GatheredTraces { spans: BoundSpans::bind(joined, fields)?, traces }))
}

fn in_slice(batch: &RecordBatch, slice: Slice) -> BooleanArray {
    match arrays::ids(batch, "trace_id") {
        Ok(ids) => (0..ids.len()).map(|row| Some(slice.holds(ids.value(row)))).collect(),
        Err(_) => std::iter::repeat_n(Some(false), batch.num_rows()).collect(),
    }
}

/// One batch from batches whose attribute columns differ: what a file has no column for is in its maps. A column
/// whose type differs from the first file's is kept under its name and type; see [`holds_attribute`].
pub(super) fn join(batches: Vec<RecordBatch>) -> Result<Option<RecordBatch>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let mut fields: Vec<Arc<Field>> = first.schema_ref().fields().iter().cloned().collect();
    fields.retain(|field| !field.name().starts_with(ATTRIBUTE_PREFIX));
    let mut attributes: Vec<(String, DataType)> = Vec::new();
    for field in batches.iter().flat_map(|batch| batch.schema_ref().fields().iter()) {
        let column = (field.name().clone(), field.data_type().clone());
        if field.name().starts_with(ATTRIBUTE_PREFIX) && !attributes.contains(&column) {
            attributes.push(column);
        }
    }
    for (at, (name, data_type)) in attributes.iter().enumerate() {
        let is_second = attributes[..at].iter().any(|(other, _)| other == name);
        let name = if is_second { format!("{name}{TYPE_MARK}{data_type}") } else { name.clone() };
        fields.push(Arc::new(Field::new(name, data_type.clone(), true)));
    }
    let schema = Arc::new(Schema::new(fields));
    let conformed = batches.into_iter().map(|batch| {
        let columns = schema.fields().iter().map(|field| {
            let name = field.name().split(TYPE_MARK).next().unwrap_or_default();
            match batch.column_by_name(name).filter(|column| column.data_type() == field.data_type()) {
                Some(column) => Arc::clone(column),
                None => arrow::array::new_null_array(field.data_type(), batch.num_rows()),
            }
        });
        RecordBatch::try_new(Arc::clone(&schema), columns.collect())
    });
    let conformed: Vec<RecordBatch> =
        conformed.collect::<std::result::Result<_, _>>().map_err(hotspan_lake::LakeError::from)?;
    let joined = concat_batches(&schema, &conformed).map_err(hotspan_lake::LakeError::from)?;
    Ok(Some(joined))
}

/// Stands between the name of a column and its type, where two files have different types for one attribute.
const TYPE_MARK: char = '\u{0}';

/// Whether a column of a joined batch holds the attribute `key`.
pub(super) fn holds_attribute(column: &str, key: &str) -> bool {
    let name = column.strip_prefix(ATTRIBUTE_PREFIX).and_then(|name| name.strip_prefix(key));
    name.is_some_and(|rest| rest.is_empty() || rest.starts_with(TYPE_MARK))
}

/// The rows of each trace by start; a span that was stored twice stands once, if the batch says which span is which.
pub(super) fn group_by_trace(batch: &RecordBatch) -> Result<Vec<Vec<u32>>> {
    let trace_ids = arrays::ids(batch, "trace_id")?;
    let span_ids = arrays::ids(batch, "span_id").ok();
    let starts = arrays::times(batch, "start_time")?.values();
    let mut rows: Vec<u32> = (0..batch.num_rows() as u32).collect();
    rows.sort_unstable_by_key(|row| {
        let at = *row as usize;
        (u128::from_be_bytes(arrays::id_at(trace_ids, at)), starts[at], *row)
    });
    let mut traces: Vec<Vec<u32>> = Vec::new();
    let mut seen: HashSet<[u8; 8]> = HashSet::new();
    let mut last: Option<u32> = None;
    for row in rows {
        let same = last.is_some_and(|last| trace_ids.value(last as usize) == trace_ids.value(row as usize));
        if !same {
            traces.push(Vec::new());
            seen.clear();
        }
        last = Some(row);
        if span_ids.is_none_or(|ids| seen.insert(arrays::id_at(ids, row as usize)))
            && let Some(trace) = traces.last_mut()
        {
            trace.push(row);
        }
    }
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: cuts of the id space. Guarantee: every id lies in exactly one slice, inside its bounds.
    #[test]
    fn slices_cover_the_space() {
        for count in [1u32, 2, 3, 7, 100] {
            let edge = |number: u32| (u64::from(number) * 65536 / u64::from(count)) as u32;
            let cut: Vec<Slice> =
                (0..count).map(|number| Slice { first: edge(number), last: edge(number + 1) }).collect();
            for first_bytes in [0u16, 1, 255, 256, 32767, 65534, 65535] {
                let mut id = [7; 16];
                id[0..2].copy_from_slice(&first_bytes.to_be_bytes());
                let holding: Vec<&Slice> = cut.iter().filter(|slice| slice.holds(&id)).collect();
                assert_eq!(holding.len(), 1);
                assert!(holding[0].least() <= id && id <= holding[0].greatest());
            }
        }
    }
}
