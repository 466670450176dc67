//! Where several traces lie in a segment of spans, found together.
//!
//! A file is sorted by trace, so a trace is one run of rows: its index says where the run starts, and the ids themselves
//! say where it ends. In a young segment spans lie as they came.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};

use super::lookup::join;
use super::{IdSet, RowRanges, Segment, SegmentReader};
use crate::arrays;
use crate::error::Result;

/// Rows looked at behind the start of a run before looking on: more than most traces have.
const FIRST_STRETCH: usize = 64;

impl SegmentReader {
    /// The rows of a segment of spans that belong to the traces, in ascending order.
    pub async fn trace_rows(&self, segment: &Arc<Segment>, traces: &IdSet) -> Result<RowRanges> {
        let Some(index) = self.id_index(segment).await? else {
            let mut found = RowRanges::new();
            for chunk in self.chunks(segment).await? {
                let ids = self.columns(&chunk, &[traces.kind().column()]).await?;
                find_runs(arrays::ids(&ids, traces.kind().column())?, traces, chunk.rows().start, &mut found);
            }
            return Ok(found);
        };
        let rows = segment.rows as usize;
        let stretch = |start: usize, length: usize| start..start.saturating_add(length).min(rows);
        let starts = index.rows_of_all(self.store(), traces.kind(), traces.hashes()).await?;
        let mut found = RowRanges::new();
        let mut length = FIRST_STRETCH;
        let mut pending = join(starts.iter().map(|start| stretch(*start as usize, length)));
        while !pending.is_empty() {
            length *= 8;
            let batches = self.rows(segment, &pending, &[traces.kind().column()]).await?;
            let mut longer = Vec::new();
            let mut at = Rows { batches: &batches, kind: traces.kind().column(), batch: 0, row: 0 };
            for range in pending {
                at.find_runs(range.clone(), traces, &mut found)?;
                // What goes on from the stretch before is joined to it: where the last run ends tells.
                let goes_on = found.last().is_some_and(|run| run.end == range.end);
                if goes_on && range.end < rows {
                    longer.push(stretch(range.end, length));
                }
            }
            pending = join(longer.into_iter());
        }
        found.sort_unstable_by_key(|run| run.start);
        Ok(join(found.into_iter()))
    }
}

/// A place in batches that hold one range of rows after another.
struct Rows<'a> {
    batches: &'a [RecordBatch],
    kind: &'static str,
    batch: usize,
    row: usize,
}

impl Rows<'_> {
    /// Appends the runs in the next rows, which stand for `range`; a range may go on in the next batch.
    fn find_runs(&mut self, range: Range<usize>, traces: &IdSet, found: &mut RowRanges) -> Result<()> {
        let mut first = range.start;
        while first < range.end
            && let Some(batch) = self.batches.get(self.batch)
        {
            let count = (range.end - first).min(batch.num_rows() - self.row);
            let ids = arrays::ids(batch, self.kind)?.slice(self.row, count);
            find_runs(&ids, traces, first, found);
            first += count;
            self.row += count;
            if self.row == batch.num_rows() {
                self.batch += 1;
                self.row = 0;
            }
        }
        Ok(())
    }
}

/// Appends the runs of ids that are in the set; `first` is the row of the first id. A run that goes on from the last
/// one found is joined to it.
fn find_runs(ids: &FixedSizeBinaryArray, traces: &IdSet, first: usize, found: &mut RowRanges) {
    let mut row = 0;
    while row < ids.len() {
        let start = row;
        while row < ids.len() && ids.value(row) == ids.value(start) {
            row += 1;
        }
        if traces.holds(ids.value(start)) {
            match found.last_mut() {
                Some(last) if last.end == first + start => last.end = first + row,
                _ => found.push(first + start..first + row),
            }
        }
    }
}
