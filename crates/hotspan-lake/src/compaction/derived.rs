//! The rows that compaction would derive from others, for those who can't wait for it.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;

use super::keys::{KeyWords, sorted_places};
use super::rollup::RollupSums;
use super::traces;
use crate::error::Result;
use crate::table::Table;

/// Rows of a derived table from rows of the table under it: traces from spans, rollups from samples, and hourly
/// rollups also from finer ones. Rows of one trace or window that stand in several batches are several rows.
pub fn derive_rows(table: Table, source: &RecordBatch) -> Result<RecordBatch> {
    match table {
        Table::Traces => {
            let order = sorted_places(&[KeyWords::of(Table::Spans, source)?]);
            let rows: UInt32Array = order.into_iter().map(|(_, row)| row as u32).collect();
            traces::summarise(&take_record_batch(source, &rows)?)
        }
        table => {
            let mut sums = RollupSums::new(table);
            match source.schema_ref().column_with_name("count") {
                Some(_) => sums.add_rollup(source)?,
                None => sums.add_samples(source)?,
            }
            sums.finish()
        }
    }
}
