//! Chunks: the rows of a segment whose columns are decoded, kept and scanned together.
//!
//! A chunk is a row group of a file, or a young segment whole. Texts come coded: a condition is tried once for each
//! distinct text instead of once for each row.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hashbrown::HashMap;

use super::column_join::ColumnJoin;
use super::footers::Texts;
use super::parquet_file::SPAN_PAGE_ROWS;
use super::{ReadOptions, RowRanges, Segment, SegmentReader};
use crate::error::{LakeError, Result};
use crate::table::dictionary;

/// Rows that are decoded at once: few enough that the memory of one part is still near when the next one needs it.
const SCANNED_ROWS: usize = 8 << 10;

/// Rows of a segment that are scanned together.
#[derive(Debug, Clone)]
pub struct Chunk {
    segment: Arc<Segment>,
    group: usize,
    rows: Range<usize>,
}

impl Chunk {
    /// Its rows, as the segment counts them.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// The parts of some rows of the segment that lie inside.
    pub fn clip(&self, rows: &RowRanges) -> RowRanges {
        clip(rows, &self.rows)
    }

    /// The segment that it is a part of.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}

/// The schema of a file with its texts in dictionaries.
pub(super) fn coded_schema(schema: &Schema) -> Arc<Schema> {
    let coded = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(dictionary())),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(coded.collect::<Vec<_>>(), schema.metadata().clone()))
}

impl SegmentReader {
    /// The chunks of a segment, in order.
    pub async fn chunks(&self, segment: &Arc<Segment>) -> Result<Vec<Chunk>> {
        let chunk = |group: usize, rows: Range<usize>| Chunk { segment: Arc::clone(segment), group, rows };
        if segment.level == 0 {
            return Ok(vec![chunk(0, 0..segment.rows as usize)]);
        }
        let footer = self.footer(segment).await?;
        let mut first = 0;
        let groups = footer.plain.metadata().row_groups().iter().enumerate();
        Ok(groups
            .map(|(group, metadata)| {
                let rows = first..first + metadata.num_rows() as usize;
                first = rows.end;
                chunk(group, rows)
            })
            .collect())
    }

    /// Columns of a chunk, whole. Names that the segment lacks are left out.
    pub async fn columns<N: AsRef<str>>(&self, chunk: &Chunk, names: &[N]) -> Result<RecordBatch> {
        if chunk.segment.level == 0 {
            let batch = self.level0_batch(&chunk.segment).await?;
            let present = names.iter().filter_map(|name| batch.schema_ref().index_of(name.as_ref()).ok());
            return Ok(batch.project(&present.collect::<Vec<_>>())?);
        }
        let footer = self.footer(&chunk.segment).await?;
        let schema = Arc::clone(footer.coded());
        let mut known: HashMap<&str, ArrayRef> = HashMap::new();
        let mut missing = Vec::new();
        for name in names.iter().map(AsRef::as_ref).filter(|name| schema.index_of(name).is_ok()) {
            match self.columns.get(&chunk.segment.path, chunk.group, name) {
                Some(array) => drop(known.insert(name, array)),
                None => missing.push(name),
            }
        }
        for (name, array) in missing.iter().zip(self.decode(chunk, &missing).await?) {
            known.insert(name, array);
        }
        let present: Vec<(&Arc<Field>, ArrayRef)> = names
            .iter()
            .filter_map(|name| Some((schema.fields().find(name.as_ref())?.1, known.get(name.as_ref())?.clone())))
            .collect();
        let schema = Schema::new(present.iter().map(|(field, _)| Arc::clone(field)).collect::<Vec<_>>());
        let arrays = present.into_iter().map(|(_, array)| array).collect();
        // A segment that lacks all of them has rows nevertheless.
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)?)
    }

    /// Columns of a chunk part by part, in order. What is kept decoded is not read again; the rest is kept only when it is
    /// asked for again: memory that nobody has touched yet is what most of a first scan would cost.
    pub async fn scan<N: AsRef<str>>(
        &self,
        chunk: &Chunk,
        names: &[N],
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut rented = Vec::new();
        if chunk.segment.level > 0 {
            let footer = self.footer(&chunk.segment).await?;
            let (path, rows) = (chunk.segment.path.as_str(), chunk.rows.len());
            let schema = footer.plain.schema();
            for name in names.iter().map(AsRef::as_ref).filter(|name| schema.index_of(name).is_ok()) {
                let place = (path, chunk.group, name);
                if self.columns.get(path, chunk.group, name).is_none()
                    && !self.columns.is_worth_keeping(place, rows, rows, footer.column_bytes(chunk.group, name))
                {
                    rented.push(name);
                }
            }
        }
        let kept: Vec<&str> = names.iter().map(AsRef::as_ref).filter(|name| !rented.contains(name)).collect();
        let kept = self.columns(chunk, &kept).await?;
        if rented.is_empty() {
            return Ok(futures::stream::iter([Ok(kept)]).boxed());
        }
        let mut next_row = 0;
        let parts = self.coded_parts(chunk, &rented, SCANNED_ROWS).await?.map(move |part| {
            let part = part?;
            let beside = kept.slice(next_row, part.num_rows());
            next_row += part.num_rows();
            let fields = part.schema_ref().fields().iter().chain(beside.schema_ref().fields().iter());
            let schema = Schema::new(fields.map(Arc::clone).collect::<Vec<_>>());
            let columns = part.columns().iter().chain(beside.columns()).map(Arc::clone);
            Ok(RecordBatch::try_new(Arc::new(schema), columns.collect())?)
        });
        Ok(parts.boxed())
    }

    /// Decodes columns that the file has, and keeps them.
    async fn decode(&self, chunk: &Chunk, names: &[&str]) -> Result<Vec<ArrayRef>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut joining: Vec<ColumnJoin> = names.iter().map(|_| ColumnJoin::new(chunk.rows.len())).collect();
        let mut parts = self.coded_parts(chunk, names, SCANNED_ROWS).await?;
        while let Some(part) = parts.try_next().await? {
            for (name, joining) in names.iter().zip(&mut joining) {
                if let Some(array) = part.column_by_name(name) {
                    joining.push(array)?;
                }
            }
        }
        let mut arrays = Vec::with_capacity(names.len());
        for (name, joining) in names.iter().zip(joining) {
            let Some(array) = joining.finish()? else { continue };
            self.columns.keep(&chunk.segment.path, chunk.group, name, &array);
            arrays.push(array);
        }
        Ok(arrays)
    }

    /// Columns of a chunk that the file has, with texts in dictionaries, some rows at a time.
    async fn coded_parts(
        &self,
        chunk: &Chunk,
        names: &[&str],
        rows: usize,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let footer = self.footer(&chunk.segment).await?;
        let schema = footer.plain.schema();
        let mut roots: Vec<usize> = names.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        roots.sort_unstable();
        let projection = footer.projection(Texts::Coded, roots)?;
        let parts = self.group_rows(&chunk.segment, &footer, (chunk.group, None), &projection, rows).await?;
        Ok(futures::stream::iter(parts.map(|part| part.map_err(LakeError::from))).boxed())
    }

    /// The columns of some rows, in order, with the types that the segment stores them in. Columns that are kept
    /// decoded are picked from; others are read where the rows are.
    pub async fn rows<N: AsRef<str>>(
        &self,
        segment: &Arc<Segment>,
        rows: &RowRanges,
        names: &[N],
    ) -> Result<Vec<RecordBatch>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        if segment.level == 0 {
            let batch = self.level0_batch(segment).await?;
            let present = names.iter().filter_map(|name| batch.schema_ref().index_of(name.as_ref()).ok());
            let projected = batch.project(&present.collect::<Vec<_>>())?;
            return Ok(vec![take_record_batch(&projected, &positions(rows, 0))?]);
        }
        let mut found = Vec::new();
        for chunk in self.chunks(segment).await? {
            let inside = clip(rows, &chunk.rows);
            if !inside.is_empty() {
                found.push(self.rows_of_chunk(&chunk, inside, names).await?);
            }
        }
        Ok(found)
    }

    async fn rows_of_chunk<N: AsRef<str>>(&self, chunk: &Chunk, rows: RowRanges, names: &[N]) -> Result<RecordBatch> {
        let footer = self.footer(&chunk.segment).await?;
        let schema = footer.plain.schema();
        let present: Vec<&str> = names.iter().map(AsRef::as_ref).filter(|name| schema.index_of(name).is_ok()).collect();
        let path = chunk.segment.path.as_str();
        let pages_rows = (pages_of(&rows) * SPAN_PAGE_ROWS).min(chunk.rows.len());
        let positions = positions(&rows, chunk.rows.start);
        let mut picked: HashMap<&str, ArrayRef> = HashMap::new();
        let (mut bought, mut rented) = (Vec::new(), Vec::new());
        for name in &present {
            if let Some(array) = self.columns.get(path, chunk.group, name) {
                picked.insert(name, pick(&array, &positions, schema.field_with_name(name)?)?);
            } else if self.columns.is_worth_keeping(
                (path, chunk.group, name),
                pages_rows,
                chunk.rows.len(),
                footer.column_bytes(chunk.group, name),
            ) {
                bought.push(*name);
            } else {
                rented.push(*name);
            }
        }
        for (name, array) in bought.iter().zip(self.decode(chunk, &bought).await?) {
            picked.insert(name, pick(&array, &positions, schema.field_with_name(name)?)?);
        }
        if !rented.is_empty() {
            let options = ReadOptions::columns(&rented).rows(rows).batch_rows(positions.len());
            let batches = self.read_all(&chunk.segment, options).await?;
            if let Some(first) = batches.first() {
                let joined = concat_batches(&first.schema(), &batches)?;
                let columns = rented.iter().filter_map(|name| Some((*name, joined.column_by_name(name)?.clone())));
                picked.extend(columns);
            }
        }
        let columns = present.iter().filter_map(|name| picked.get(name).cloned()).collect();
        let fields: Vec<Arc<Field>> =
            present.iter().filter_map(|name| schema.fields().find(name).map(|(_, field)| Arc::clone(field))).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// Rows of a kept column, as the file has them: plain text where it is plain there.
fn pick(array: &ArrayRef, positions: &UInt32Array, field: &Field) -> Result<ArrayRef> {
    let coded = array.as_dictionary_opt::<Int32Type>().filter(|_| *field.data_type() == DataType::Utf8);
    let Some(coded) = coded else { return Ok(take(array.as_ref(), positions, None)?) };
    let texts = coded.values().as_string::<i32>();
    let text_at = |position: usize| coded.key(position).map(|code| texts.value(code));
    Ok(Arc::new(positions.values().iter().map(|position| text_at(*position as usize)).collect::<StringArray>()))
}

/// How many pages hold the rows.
fn pages_of(rows: &RowRanges) -> usize {
    let mut pages = 0;
    let mut behind = 0;
    for range in rows {
        let (first, last) =
            ((range.start / SPAN_PAGE_ROWS).max(behind), range.end.saturating_sub(1) / SPAN_PAGE_ROWS + 1);
        pages += last.saturating_sub(first);
        behind = behind.max(last);
    }
    pages
}

/// Where rows stand in what starts with the row `first`.
fn positions(rows: &RowRanges, first: usize) -> UInt32Array {
    // Chunks and young segments have far fewer than four billion rows.
    rows.iter().cloned().flatten().map(|row| (row - first) as u32).collect::<Vec<_>>().into()
}

/// The parts of the rows that lie inside a range.
fn clip(rows: &RowRanges, inside: &Range<usize>) -> RowRanges {
    let clipped = rows.iter().map(|range| range.start.max(inside.start)..range.end.min(inside.end));
    clipped.filter(|range| !range.is_empty()).collect()
}
