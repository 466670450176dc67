//! From level 0 to level 1: young segments become sorted Parquet, and rollups and trace summaries are derived.
//!
//! The rows of all segments are sorted by their keys alone, and then gathered and written some thousand at a time, so that
//! what they take once more is small and used over and over.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};

use super::attribute_counts::AttributeCounts;
use super::destination::Destination;
use super::gather::{Gather, Place};
use super::keys::{KeyWords, sorted_places};
use super::rollup::RollupSums;
use super::traces::TraceSummaries;
use crate::arrays;
use crate::error::Result;
use crate::segment::Piece;
use crate::segment::dense_columns::DenseColumns;
use crate::segment::parquet_file::{FilePlan, ParquetSegmentWriter};
use crate::table::Table;

/// Rows handed to the Parquet writer at a time.
const CHUNK_ROWS: usize = 16 * 1024;

/// Writes the level 1 segments of one table from all its level 0 batches, and those of the tables derived from it.
pub(super) fn write_first_level(
    destination: &Destination,
    table: Table,
    batches: &[RecordBatch],
) -> Result<Vec<Piece>> {
    let keys = batches.iter().map(|batch| KeyWords::of(table, batch)).collect::<Result<Vec<_>>>()?;
    let mut written = Vec::new();
    for (partition, places) in sorted_partitions(table, batches, &keys)? {
        let target = Target { destination, partition };
        match table {
            Table::Spans => written.extend(write_spans(target, batches, &keys, &places)?),
            Table::Samples => written.extend(write_samples(target, batches, &places)?),
            _ => written.push(write_rows(target, table, batches, &places)?),
        }
    }
    Ok(written)
}

/// Where segments are written, and for which partition.
#[derive(Clone, Copy)]
struct Target<'d> {
    destination: &'d Destination,
    partition: i64,
}

fn write_spans(
    target: Target<'_>,
    batches: &[RecordBatch],
    keys: &[KeyWords<'_>],
    places: &[Place],
) -> Result<Vec<Piece>> {
    let mut counts = AttributeCounts::default();
    for batch in batches {
        counts.add(batch)?;
    }
    let columns = counts.choose();
    let attributes = batches.iter().map(|batch| columns.source(batch)).collect::<Result<Vec<_>>>()?;
    let gather = Gather::new(&without_attributes(&Table::Spans.schema()), batches)?;
    let mut summaries = TraceSummaries::default();
    let mut file = target.create(Table::Spans, columns.schema())?;
    let trace_of = |(batch, row): &Place| keys[*batch].first_words::<2>(*row);
    let mut rest = places;
    while !rest.is_empty() {
        // A trace stays in one piece, for its summary.
        let mut end = CHUNK_ROWS.min(rest.len());
        while end < rest.len() && trace_of(&rest[end]) == trace_of(&rest[end - 1]) {
            end += 1;
        }
        let (chunk, others) = rest.split_at(end);
        rest = others;
        let spans = gather.rows(chunk)?;
        summaries.add(&spans)?;
        file.write(&columns.conform_rows(&attributes, &spans, chunk)?)?;
    }
    let mut written = write_derived(target, Table::Traces, summaries.finish()?)?;
    written.push(target.destination.finish(file)?);
    Ok(written)
}

fn write_samples(target: Target<'_>, batches: &[RecordBatch], places: &[Place]) -> Result<Vec<Piece>> {
    let schema = Table::Samples.schema();
    let gather = Gather::new(&schema, batches)?;
    // Samples of a partition lie in the windows of the same partition, and come in the order of these.
    let (rollup, rollup_schema) = (Table::Rollup15s, Table::Rollup15s.schema());
    let mut sums = RollupSums::new(rollup);
    let mut sums_file = target.create(rollup, &rollup_schema)?;
    let mut file = target.create(Table::Samples, &schema)?;
    for chunk in places.chunks(CHUNK_ROWS) {
        let samples = gather.rows(chunk)?;
        sums.add_samples(&samples)?;
        if let Some(complete) = sums.take_complete(CHUNK_ROWS)? {
            sums_file.write(&complete)?;
        }
        file.write(&samples)?;
    }
    sums_file.write(&sums.finish()?)?;
    Ok(vec![target.destination.finish(sums_file)?, target.destination.finish(file)?])
}

fn write_rows(target: Target<'_>, table: Table, batches: &[RecordBatch], places: &[Place]) -> Result<Piece> {
    let schema = table.schema();
    let gather = Gather::new(&schema, batches)?;
    let mut file = target.create(table, &schema)?;
    for chunk in places.chunks(CHUNK_ROWS) {
        file.write(&gather.rows(chunk)?)?;
    }
    target.destination.finish(file)
}

/// Writes rows that were derived from those of one partition, each to its own.
fn write_derived(target: Target<'_>, table: Table, rows: RecordBatch) -> Result<Vec<Piece>> {
    let batches = [rows];
    let keys = [KeyWords::of(table, &batches[0])?];
    let partitions = sorted_partitions(table, &batches, &keys)?;
    let write =
        |(partition, places): (i64, Vec<Place>)| write_rows(Target { partition, ..target }, table, &batches, &places);
    partitions.into_iter().map(write).collect()
}

/// Spans without the maps of their attributes.
fn without_attributes(schema: &Schema) -> SchemaRef {
    let is_map = |name: &str| matches!(name, "attributes" | "attributes_json");
    let others = schema.fields().iter().filter(|field| !is_map(field.name())).cloned();
    Arc::new(Schema::new(others.collect::<Vec<_>>()))
}

/// The rows of each partition, in the order of the table. Symbols and series that stand twice are left out.
fn sorted_partitions(
    table: Table,
    batches: &[RecordBatch],
    keys: &[KeyWords<'_>],
) -> Result<BTreeMap<i64, Vec<Place>>> {
    let times = batches.iter().map(|batch| Ok(arrays::times(batch, table.time_column())?.values()));
    let times = times.collect::<Result<Vec<_>>>()?;
    let mut places = sorted_places(keys);
    if is_set(table) {
        places.dedup_by(|next, place| keys[next.0].are_same(next.1, &keys[place.0], place.1));
    }
    let mut partitions: BTreeMap<i64, Vec<Place>> = BTreeMap::new();
    let all_times = || times.iter().flat_map(|times| times.iter());
    let (Some(earliest), Some(latest)) = (all_times().min(), all_times().max()) else { return Ok(partitions) };
    if table.partition_of(*earliest) == table.partition_of(*latest) {
        // Nearly always: flushes of some seconds lie in one hour.
        partitions.insert(table.partition_of(*latest), places);
        return Ok(partitions);
    }
    for (batch, row) in places {
        partitions.entry(table.partition_of(times[batch][row])).or_default().push((batch, row));
    }
    Ok(partitions)
}

/// Whether a table holds each key once: writing a symbol twice means nothing.
pub(super) fn is_set(table: Table) -> bool {
    matches!(table, Table::Series | Table::Nodes | Table::Frames)
}

/// Writes rows that are sorted already.
pub(super) fn write_segment(
    destination: &Destination,
    table: Table,
    partition: i64,
    sorted: &RecordBatch,
) -> Result<Piece> {
    let mut file = Target { destination, partition }.create(table, sorted.schema_ref())?;
    for start in (0..sorted.num_rows()).step_by(CHUNK_ROWS) {
        file.write(&sorted.slice(start, CHUNK_ROWS.min(sorted.num_rows() - start)))?;
    }
    destination.finish(file)
}

impl Target<'_> {
    fn create(self, table: Table, schema: &SchemaRef) -> Result<ParquetSegmentWriter> {
        let dense = DenseColumns::expected(table, schema);
        self.destination.create(&FilePlan { table, level: 1, partition: self.partition, schema, dense: &dense })
    }
}
