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

impl SegmentReader {
    /// The rows of a segment that have this id. The columns asked for must hold the id's own column.
    pub async fn rows_with_id(
        &self,
        segment: &Arc<Segment>,
        kind: IdKind,
        id: &[u8],
        options: &ReadOptions,
    ) -> Result<Vec<RecordBatch>> {
        let column = kind.column();
        let Some(index) = self.id_index(segment).await? else {
            let id = id.to_owned();
            let options = options.clone().matching(&[column], move |batch| has_id(batch, column, &id));
            return self.read_all(segment, options).await;
        };
        let starts = index.rows_of(self.store(), kind, id).await?;
        let mut found = Vec::new();
        let mut pending: RowRanges = join(starts.into_iter().map(|row| row as usize..row as usize + FIRST_STRETCH));
        while !pending.is_empty() {
            let mut longer = RowRanges::new();
            for range in pending {
                let range = range.start..range.end.min(segment.rows as usize);
                let batches = self.read_all(segment, options.clone().rows(vec![range.clone()])).await?;
                let mut goes_on = false;
                for batch in batches {
                    let matches = has_id(&batch, column, id);
                    goes_on = !matches.is_empty() && matches.value(matches.len() - 1);
                    if matches.true_count() > 0 {
                        found.push(arrow::compute::filter_record_batch(&batch, &matches)?);
                    }
                }
                if goes_on && range.end < segment.rows as usize {
                    longer.push(range.end..range.end + 8 * range.len());
                }
            }
            pending = join(longer.into_iter());
        }
        Ok(found)
    }
}

/// Ranges in ascending order without overlaps, so that no row is read twice.
fn join(ranges: impl Iterator<Item = std::ops::Range<usize>>) -> RowRanges {
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
