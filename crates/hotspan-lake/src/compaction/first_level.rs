//! From level 0 to level 1: young segments become sorted Parquet, and rollups and trace summaries are derived.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use hotspan_model::TenantId;

use super::attributes::AttributeCounts;
use super::keys::SortKeys;
use super::rollup::RollupSums;
use super::traces;
use crate::error::Result;
use crate::segment::Piece;
use crate::segment::dense_columns::DenseColumns;
use crate::segment::parquet_file::{FilePlan, ParquetSegmentWriter};
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
) -> Result<Vec<Piece>> {
    let schema = table.schema();
    let joined = concat_batches(&schema, batches)?;
    let mut written = Vec::new();
    for (partition, rows) in sorted_partitions(table, &joined)? {
        let rows = UInt32Array::from(rows);
        let sorted = match table {
            Table::Spans => {
                let sorted = take_record_batch(&without_attributes(&joined)?, &rows)?;
                let summaries = traces::summarise(&sorted)?;
                written.extend(write_sorted_by_partition(lake, tenant, Table::Traces, &summaries)?);
                let mut counts = AttributeCounts::default();
                counts.add(&joined)?;
                counts.choose().conform_rows(&joined, &sorted, rows.values())?
            }
            Table::Samples => {
                let sorted = take_record_batch(&joined, &rows)?;
                let mut sums = RollupSums::new(Table::Rollup15s);
                sums.add_samples(&sorted)?;
                written.extend(write_sorted_by_partition(lake, tenant, Table::Rollup15s, &sums.finish()?)?);
                sorted
            }
            _ => take_record_batch(&joined, &rows)?,
        };
        written.push(write_segment(lake, tenant, table, partition, &sorted)?);
    }
    Ok(written)
}

/// Spans without the maps of their attributes.
fn without_attributes(spans: &RecordBatch) -> Result<RecordBatch> {
    let is_map = |name: &str| matches!(name, "attributes" | "attributes_json");
    let schema = spans.schema_ref();
    let others: Vec<usize> = (0..schema.fields().len()).filter(|at| !is_map(schema.field(*at).name())).collect();
    Ok(spans.project(&others)?)
}

/// The rows of each partition, in the order of the table. Symbols and series that stand twice are left out.
fn sorted_partitions(table: Table, batch: &RecordBatch) -> Result<BTreeMap<i64, Vec<u32>>> {
    let keys = SortKeys::of(table, batch)?;
    let times = arrays::times(batch, table.time_column())?.values();
    let mut rows = keys.sorted_rows();
    if is_set(table) {
        rows.dedup_by(|next, row| keys.get(*next as usize) == keys.get(*row as usize));
    }
    let mut partitions: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    let (Some(earliest), Some(latest)) = (times.iter().min(), times.iter().max()) else { return Ok(partitions) };
    if table.partition_of(*earliest) == table.partition_of(*latest) {
        // Nearly always: flushes of some seconds lie in one hour.
        partitions.insert(table.partition_of(*latest), rows);
        return Ok(partitions);
    }
    for row in rows {
        partitions.entry(table.partition_of(times[row as usize])).or_default().push(row);
    }
    Ok(partitions)
}

/// Whether a table holds each key once: writing a symbol twice means nothing.
pub(super) fn is_set(table: Table) -> bool {
    matches!(table, Table::Series | Table::Nodes | Table::Frames)
}

fn write_sorted_by_partition(lake: &Lake, tenant: &TenantId, table: Table, batch: &RecordBatch) -> Result<Vec<Piece>> {
    let mut written = Vec::new();
    for (partition, rows) in sorted_partitions(table, batch)? {
        let sorted = take_record_batch(batch, &UInt32Array::from(rows))?;
        written.push(write_segment(lake, tenant, table, partition, &sorted)?);
    }
    Ok(written)
}

pub(super) fn write_segment(
    lake: &Lake,
    tenant: &TenantId,
    table: Table,
    partition: i64,
    sorted: &RecordBatch,
) -> Result<Piece> {
    let path = lake.new_object_path(tenant, table.name(), Some(partition), "parquet");
    let store = Arc::clone(lake.store());
    let schema = sorted.schema();
    let dense = DenseColumns::expected(table, &schema);
    let plan = FilePlan { table, level: 1, partition, schema: &schema, dense: &dense };
    let mut writer = ParquetSegmentWriter::create(store.as_ref(), path, &plan)?;
    for start in (0..sorted.num_rows()).step_by(CHUNK_ROWS) {
        writer.write(&sorted.slice(start, CHUNK_ROWS.min(sorted.num_rows() - start)))?;
    }
    writer.finish(store.as_ref())
}
