//! From level to level: sorted files of one partition become one, row group by row group, in bounded memory.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::stream::BoxStream;
use hashbrown::HashMap;

use super::absent_columns::with_absent_columns;
use super::attribute_counts::AttributeCounts;
use super::attributes::{ATTRIBUTE_PREFIX, AttributeColumns, ColumnType, attribute_field};
use super::destination::Destination;
use super::first_level::{is_set, write_segment};
use super::gather::{Codebooks, Gather, Place};
use super::keys::SortKeys;
use super::rollup::{RollupRow, RollupSums, rollup_batch};
use crate::error::Result;
use crate::segment::coded_columns::CodedColumns;
use crate::segment::dense_columns::DenseColumns;
use crate::segment::parquet_file::{FilePlan, ParquetSegmentWriter};
use crate::segment::{Piece, ReadOptions, Segment};
use crate::table::Table;
use crate::{Lake, arrays};

/// Rows read from an input, and written to the output, at a time.
const BATCH_ROWS: usize = 8192;

/// A file that grows past this is closed, and the rest goes into the next one.
const MAX_FILE_BYTES: usize = 384 << 20;

/// One input of a merge: its rows from the current one on.
struct Input {
    stream: BoxStream<'static, Result<RecordBatch>>,
    conform: Option<Arc<AttributeColumns>>,
    table: Table,
    level: u8,
    batch: RecordBatch,
    keys: SortKeys,
    row: usize,
    finished: bool,
}

impl Input {
    async fn open(
        lake: &Lake,
        segment: &Arc<Segment>,
        conform: Option<Arc<AttributeColumns>>,
        coded: &Arc<CodedColumns>,
    ) -> Result<Self> {
        let options = ReadOptions::default().batch_rows(BATCH_ROWS).coded(Arc::clone(coded));
        let stream = lake.reader().stream(segment, options).await?;
        let mut input = Self {
            stream,
            conform,
            table: segment.table,
            level: segment.level,
            batch: RecordBatch::new_empty(segment.table.schema()),
            keys: SortKeys::default(),
            row: 0,
            finished: false,
        };
        input.next_batch().await?;
        Ok(input)
    }

    async fn next_batch(&mut self) -> Result<()> {
        loop {
            let Some(batch) = self.stream.next().await else {
                self.finished = true;
                return Ok(());
            };
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            self.batch = match &self.conform {
                Some(columns) => columns.conform(&batch)?,
                None => with_absent_columns(self.table, batch)?,
            };
            self.keys = SortKeys::of(self.table, &self.batch)?;
            self.row = 0;
            return Ok(());
        }
    }

    fn key(&self) -> &[u64] {
        self.keys.get(self.row)
    }
}

/// Merges sorted segments of one table and partition. Rollups of level 1 also feed the coarser rollup.
pub(super) async fn merge_segments(
    lake: &Lake,
    destination: &Destination,
    inputs: &[Arc<Segment>],
    level: u8,
) -> Result<Vec<Piece>> {
    let Some(first) = inputs.first() else { return Ok(Vec::new()) };
    let (table, partition) = (first.table, first.partition.unwrap_or_default());
    let columns = match table {
        Table::Spans => Some(Arc::new(choose_attribute_columns(lake, inputs).await?)),
        _ => None,
    };
    let schema = columns.as_ref().map_or_else(|| table.schema(), |columns| Arc::clone(columns.schema()));
    // Nearly always the inputs have the very columns of the output. Then nothing looks into texts on their way.
    let is_same = lake.reader().all_have_schema(inputs, &schema).await?;
    let coded = if is_same { lake.reader().coded_columns(inputs).await? } else { CodedColumns::default() };
    let (columns, coded) = (columns.filter(|_| !is_same), Arc::new(coded));
    let mut opened = Vec::with_capacity(inputs.len());
    for segment in inputs {
        opened.push(Input::open(lake, segment, columns.clone(), &coded).await?);
    }
    let dense = lake.reader().dense_columns(inputs).await?;
    let gathered = coded.in_schema(&schema);
    let mut output =
        Output { destination, table, partition, level, schema, gathered, dense, writer: None, written: Vec::new() };
    match table {
        Table::Rollup15s => {
            let mut hours = RollupSums::new(Table::Rollup1h);
            merge_sums(opened, Some(&mut hours), &mut output).await?;
            output.written.extend(write_hours(destination, partition, hours)?);
        }
        Table::Rollup1h => merge_sums(opened, None, &mut output).await?,
        _ => merge_rows(opened, &mut output).await?,
    }
    output.finish()
}

/// The files that a merge writes.
struct Output<'a> {
    destination: &'a Destination,
    table: Table,
    partition: i64,
    level: u8,
    schema: SchemaRef,
    /// The same with some texts in dictionaries.
    gathered: SchemaRef,
    dense: DenseColumns,
    writer: Option<ParquetSegmentWriter>,
    written: Vec<Piece>,
}

impl Output<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let (table, level, partition) = (self.table, self.level, self.partition);
                let plan = FilePlan { table, level, partition, schema: &self.schema, dense: &self.dense };
                self.destination.create(&plan)?
            }
        };
        writer.write(batch)?;
        if writer.bytes_so_far() > MAX_FILE_BYTES {
            self.written.push(self.destination.finish(writer)?);
        } else {
            self.writer = Some(writer);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Piece>> {
        if let Some(writer) = self.writer.take() {
            self.written.push(self.destination.finish(writer)?);
        }
        Ok(self.written)
    }
}

/// The input whose next row comes first, and the row that its run may not pass: the next row of the others.
fn next_run(inputs: &[Input]) -> Option<(usize, Option<usize>)> {
    let mut first: Option<usize> = None;
    let mut second: Option<usize> = None;
    for (at, input) in inputs.iter().enumerate().filter(|(_, input)| !input.finished) {
        match first {
            Some(best) if inputs[best].key() <= input.key() => {
                if second.is_none_or(|other| input.key() < inputs[other].key()) {
                    second = Some(at);
                }
            }
            _ => (second, first) = (first, Some(at)),
        }
    }
    first.map(|first| (first, second))
}

async fn merge_rows(mut inputs: Vec<Input>, output: &mut Output<'_>) -> Result<()> {
    let mut batches: Vec<RecordBatch> = Vec::new();
    // For each input, where its current batch stands in `batches`.
    let mut places: Vec<Option<usize>> = vec![None; inputs.len()];
    let mut picked: Vec<Place> = Vec::with_capacity(BATCH_ROWS);
    let mut last_key: Vec<u64> = Vec::new();
    let mut codebooks = Codebooks::default();
    while let Some((first, second)) = next_run(&inputs) {
        let end = match second {
            Some(second) => inputs[first].keys.end_of_run(inputs[first].row, inputs[second].key()),
            None => inputs[first].keys.len(),
        };
        let place = *places[first].get_or_insert_with(|| {
            batches.push(inputs[first].batch.clone());
            batches.len() - 1
        });
        for row in inputs[first].row..end {
            let key = inputs[first].keys.get(row);
            if is_set(output.table) {
                if last_key == key {
                    continue;
                }
                last_key.clear();
                last_key.extend_from_slice(key);
            }
            picked.push((place, row));
        }
        inputs[first].row = end;
        if end == inputs[first].keys.len() {
            inputs[first].next_batch().await?;
            places[first] = None;
        }
        if picked.len() >= BATCH_ROWS {
            flush_picked(&mut batches, &mut picked, &mut codebooks, output)?;
            places.fill(None);
        }
    }
    flush_picked(&mut batches, &mut picked, &mut codebooks, output)
}

fn flush_picked(
    batches: &mut Vec<RecordBatch>,
    picked: &mut Vec<Place>,
    codebooks: &mut Codebooks,
    output: &mut Output<'_>,
) -> Result<()> {
    if !picked.is_empty() {
        let rows = Gather::with_codebooks(&output.gathered, batches, codebooks)?.rows(picked)?;
        output.write(&rows)?;
    }
    batches.clear();
    picked.clear();
    Ok(())
}

/// Merges rollups: rows with equal keys become one row with their sum. Rows that leave level 1 are counted into `hours`;
/// those of higher levels have been, when they left it.
async fn merge_sums(mut inputs: Vec<Input>, mut hours: Option<&mut RollupSums>, output: &mut Output<'_>) -> Result<()> {
    let mut rows: Vec<RollupRow> = Vec::with_capacity(BATCH_ROWS);
    while let Some((first, second)) = next_run(&inputs) {
        let input = &inputs[first];
        let end = match second {
            Some(second) => input.keys.end_of_run(input.row, inputs[second].key()),
            None => input.keys.len(),
        };
        let series = arrays::uint64s(&input.batch, "series")?.values();
        let times = arrays::times(&input.batch, "time")?.values();
        let paths = arrays::uint64s(&input.batch, "path")?.values();
        let values = arrays::int64s(&input.batch, "value")?.values();
        let counts = arrays::uint32s(&input.batch, "count")?.values();
        for row in input.row..end {
            let next = RollupRow {
                series: series[row],
                time: times[row],
                path: paths[row],
                value: values[row],
                count: counts[row],
            };
            if let Some(hours) = hours.as_mut().filter(|_| input.level == 1) {
                hours.add(next.series, next.time, next.path, next.value, next.count);
            }
            if !rows.last_mut().is_some_and(|last| last.absorb(&next)) {
                rows.push(next);
            }
        }
        inputs[first].row = end;
        if end == inputs[first].keys.len() {
            inputs[first].next_batch().await?;
        }
        if rows.len() > BATCH_ROWS {
            // The last row may still grow.
            let open = rows.split_off(rows.len() - 1);
            output.write(&rollup_batch(output.table, std::mem::replace(&mut rows, open).into_iter())?)?;
        }
    }
    output.write(&rollup_batch(output.table, rows.into_iter())?)
}

/// Writes the hourly sums of a partition of 15 s rollups, which lies in one day.
fn write_hours(destination: &Destination, partition: i64, hours: RollupSums) -> Result<Option<Piece>> {
    let batch = hours.finish()?;
    if batch.num_rows() == 0 {
        return Ok(None);
    }
    let partition = Table::Rollup1h.partition_of(partition);
    write_segment(destination, Table::Rollup1h, partition, &batch).map(Some)
}

/// The attribute columns for a merged file: those that all inputs have, and what else deserves one by what they hold. The
/// first are not counted again, since that would mean to read them once more.
async fn choose_attribute_columns(lake: &Lake, inputs: &[Arc<Segment>]) -> Result<AttributeColumns> {
    let mut inputs_with: HashMap<(String, ColumnType), usize> = HashMap::new();
    for segment in inputs {
        let schema = lake.reader().schema_of(segment).await?;
        for (key, column_type) in schema.fields().iter().filter_map(|field| attribute_field(field)) {
            *inputs_with.entry((key.to_owned(), column_type)).or_default() += 1;
        }
    }
    let mut counts = AttributeCounts::default();
    let mut counted = vec!["attributes".to_owned(), "attributes_json".to_owned()];
    for ((key, column_type), having) in inputs_with {
        if having == inputs.len() {
            counts.keep(&key, column_type);
        } else {
            counted.push(format!("{ATTRIBUTE_PREFIX}{key}"));
        }
    }
    for segment in inputs {
        let mut stream = lake.reader().stream(segment, ReadOptions::columns(&counted)).await?;
        while let Some(batch) = stream.next().await {
            counts.add(&batch?)?;
        }
    }
    Ok(counts.choose())
}
