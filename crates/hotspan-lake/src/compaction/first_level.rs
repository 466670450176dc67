//! From level 0 to level 1: young segments become sorted Parquet, and rollups and trace summaries are derived.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use hotspan_model::TenantId;

use super::attributes::AttributeCounts;
use super::keys::SortKeys;
use super::rollup::{RollupSums, window_of};
use super::traces;
use crate::error::Result;
use crate::segment::NewSegment;
use crate::segment::parquet_file::ParquetSegmentWriter;
use crate::table::Table;
use crate::{Lake, arrays};

/// Rows handed to the Parquet writer at a time.
const CHUNK_ROWS: usize = 16 * 1024;

/// Writes the level 1 segments of one table from all its level 0 batches, and those of the tables derived from it.
pub(super) fn write_first_level(
    lake: &Lake,
    tenant: &TenantId,
    table: Table,
    batches: &[RecordBatch],
) -> Result<Vec<NewSegment>> {
    let schema = table.schema();
    let joined = concat_batches(&schema, batches)?;
    let mut written = Vec::new();
    for (partition, rows) in sorted_partitions(table, &joined)? {
        let sorted = take_record_batch(&joined, &UInt32Array::from(rows))?;
        match table {
            Table::Spans => {
                let summaries = traces::summarise(&sorted)?;
                written.extend(write_sorted_by_partition(lake, tenant, Table::Traces, &summaries)?);
                let mut counts = AttributeCounts::default();
                counts.add(&sorted)?;
                let columns = counts.choose();
                written.push(write_segment(lake, tenant, table, partition, &columns.conform(&sorted)?)?);
            }
            Table::Samples => {
                let mut sums = RollupSums::default();
                sums.add_samples(&sorted, window_of(Table::Rollup15s))?;
                let rollup = sums.finish(Table::Rollup15s)?;
                written.extend(write_sorted_by_partition(lake, tenant, Table::Rollup15s, &rollup)?);
                written.push(write_segment(lake, tenant, table, partition, &sorted)?);
            }
            _ => written.push(write_segment(lake, tenant, table, partition, &sorted)?),
        }
    }
    Ok(written)
}

/// The rows of each partition, in the order of the table. Symbols and series that stand twice are left out.
fn sorted_partitions(table: Table, batch: &RecordBatch) -> Result<BTreeMap<i64, Vec<u32>>> {
    let keys = SortKeys::of(table, batch)?;
    let times = arrays::times(batch, table.time_column())?.values();
    let mut partitions: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    let mut last_key: Option<&[u8]> = None;
    for row in keys.sorted_rows() {
        let key = keys.get(row as usize);
        if is_set(table) && last_key == Some(key) {
            continue;
        }
        last_key = Some(key);
        partitions.entry(table.partition_of(times[row as usize])).or_default().push(row);
    }
    Ok(partitions)
}

/// Whether a table holds each key once: writing a symbol twice means nothing.
pub(super) fn is_set(table: Table) -> bool {
    matches!(table, Table::Series | Table::Nodes | Table::Frames)
}

fn write_sorted_by_partition(
    lake: &Lake,
    tenant: &TenantId,
    table: Table,
    batch: &RecordBatch,
) -> Result<Vec<NewSegment>> {
    let mut written = Vec::new();
    for (partition, rows) in sorted_partitions(table, batch)? {
        let sorted = take_record_batch(batch, &UInt32Array::from(rows))?;
        written.push(write_segment(lake, tenant, table, partition, &sorted)?);
    }
    Ok(written)
}

fn write_segment(
    lake: &Lake,
    tenant: &TenantId,
    table: Table,
    partition: i64,
    sorted: &RecordBatch,
) -> Result<NewSegment> {
    let path = lake.new_object_path(tenant, table.name(), Some(partition), "parquet");
    let store = Arc::clone(lake.store());
    let mut writer = ParquetSegmentWriter::create(store.as_ref(), path, table, &sorted.schema(), 1, partition)?;
    for start in (0..sorted.num_rows()).step_by(CHUNK_ROWS) {
        writer.write(&sorted.slice(start, CHUNK_ROWS.min(sorted.num_rows() - start)))?;
    }
    writer.finish(store.as_ref())
}
