//! Point look-ups: the rows of one trace or span, without reading the rest of the segment.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};

use super::id_index::IdKind;
use super::{ReadOptions, RowRanges, Segment, SegmentReader};
use crate::arrays;
use crate::error::Result;

/// Rows read behind the start of a run before looking whether it goes on. Most traces and spans are shorter.
const FIRST_STRETCH: usize = 128;

impl IdKind {
    /// The column that holds ids of this kind.
    pub fn column(self) -> &'static str {
        match self {
            Self::Trace => "trace_id",
            Self::Span => "span_id",
        }
    }
}

/// Rows read at once at most, however long a run is: what bounds the memory of whoever reads part by part.
const LONGEST_STRETCH: usize = 16 << 10;

/// The rows of one id in a segment, read part by part.
#[derive(Debug)]
pub struct IdRows {
    segment: Arc<Segment>,
    kind: IdKind,
    id: Vec<u8>,
    options: ReadOptions,
    pending: Pending,
}

#[derive(Debug)]
enum Pending {
    /// Nothing has been read.
    All,
    /// Ranges in ascending order that may hold rows of the id.
    Ranges(RowRanges),
}

impl IdRows {
    /// More rows; none when all have been given.
    pub async fn next_part(&mut self, reader: &SegmentReader) -> Result<Option<Vec<RecordBatch>>> {
        let column = self.kind.column();
        let ranges = match &mut self.pending {
            Pending::Ranges(ranges) => ranges,
            Pending::All => {
                let Some(index) = reader.id_index(&self.segment).await? else {
                    self.pending = Pending::Ranges(RowRanges::new());
                    let id = self.id.clone();
                    let options = self.options.clone().matching(&[column], move |batch| has_id(batch, column, &id));
                    return Ok(Some(reader.read_all(&self.segment, options).await?));
                };
                let starts = index.rows_of(reader.store(), self.kind, &self.id).await?;
                self.pending =
                    Pending::Ranges(join(starts.into_iter().map(|row| row as usize..row as usize + FIRST_STRETCH)));
                let Pending::Ranges(ranges) = &mut self.pending else { return Ok(None) };
                ranges
            }
        };
        if ranges.is_empty() {
            return Ok(None);
        }
        let range = ranges.remove(0);
        let range = range.start..range.end.min(self.segment.rows as usize);
        let batches = reader.read_all(&self.segment, self.options.clone().rows(vec![range.clone()])).await?;
        let mut found = Vec::new();
        let mut goes_on = false;
        for batch in batches {
            let matches = has_id(&batch, column, &self.id);
            goes_on = !matches.is_empty() && matches.value(matches.len() - 1);
            if matches.true_count() == batch.num_rows() {
                found.push(batch);
            } else if matches.true_count() > 0 {
                found.push(arrow::compute::filter_record_batch(&batch, &matches)?);
            }
        }
        if goes_on && range.end < self.segment.rows as usize {
            let longer = range.end..range.end + (8 * range.len()).min(LONGEST_STRETCH);
            let rest = std::mem::take(ranges);
            *ranges = join(std::iter::once(longer).chain(rest));
        }
        Ok(Some(found))
    }
}

impl SegmentReader {
    /// The rows of a segment that have this id, part by part. The columns asked for must hold the id's own column.
    pub fn id_rows(&self, segment: &Arc<Segment>, kind: IdKind, id: &[u8], options: &ReadOptions) -> IdRows {
        IdRows {
            segment: Arc::clone(segment),
            kind,
            id: id.to_owned(),
            options: options.clone(),
            pending: Pending::All,
        }
    }

    /// The rows of a segment that have this id. The columns asked for must hold the id's own column.
    pub async fn rows_with_id(
        &self,
        segment: &Arc<Segment>,
        kind: IdKind,
        id: &[u8],
        options: &ReadOptions,
    ) -> Result<Vec<RecordBatch>> {
        let mut rows = self.id_rows(segment, kind, id, options);
        let mut found = Vec::new();
        while let Some(part) = rows.next_part(self).await? {
            found.extend(part);
        }
        Ok(found)
    }
}

/// Ranges in ascending order without overlaps, so that no row is read twice.
pub(super) fn join(ranges: impl Iterator<Item = std::ops::Range<usize>>) -> RowRanges {
    let mut joined = RowRanges::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn has_id(batch: &RecordBatch, column: &str, id: &[u8]) -> BooleanArray {
    match arrays::ids(batch, column) {
        Ok(ids) => (0..ids.len()).map(|row| Some(ids.is_valid(row) && ids.value(row) == id)).collect(),
        Err(_) => std::iter::repeat_n(Some(false), batch.num_rows()).collect(),
    }
}
