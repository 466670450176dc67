//! Writing a Parquet file row group by row group, each column by the writer that suits it.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;

use super::column_writer::{ColumnWriter, PageCompressor, leaf_types, leaves_of, lists_of};

/// A Parquet file being written.
pub(super) struct RowGroupWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    properties: WriterPropertiesPtr,
    schema: SchemaRef,
    compressor: PageCompressor,
    group: Option<RowGroup>,
}

/// The row group that is being filled.
struct RowGroup {
    rows: usize,
    leaves: Vec<LeafWriter>,
}

/// Who writes a leaf column.
enum LeafWriter {
    /// This crate does.
    Ours(Box<ColumnWriter>),
    /// The parquet crate does.
    Theirs(Box<ArrowColumnWriter>),
}

impl<W: Write + Send> RowGroupWriter<W> {
    /// A writer for batches of a schema; pages are compressed as hard as the level says.
    pub(super) fn new(sink: W, schema: &SchemaRef, properties: WriterProperties, zstd_level: i32) -> Result<Self> {
        let (file, factory) =
            ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties))?.into_serialized_writer()?;
        let properties = Arc::clone(file.properties());
        let compressor = PageCompressor::new(zstd_level)?;
        Ok(Self { file, factory, properties, schema: Arc::clone(schema), compressor, group: None })
    }

    /// Appends rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let most_rows = self.properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => self.new_group()?,
            };
            let part = rest.slice(0, rest.num_rows().min(most_rows - group.rows));
            for_each_column(&self.schema, &part, &mut group.leaves, &mut self.compressor)?;
            group.rows += part.num_rows();
            rest = rest.slice(part.num_rows(), rest.num_rows() - part.num_rows());
            let is_full = group.rows >= most_rows;
            self.group = Some(group);
            if is_full {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// About how large the file is so far.
    pub(super) fn bytes_so_far(&self) -> usize {
        let leaves = self.group.iter().flat_map(|group| &group.leaves);
        let buffered = leaves.map(|leaf| match leaf {
            LeafWriter::Ours(writer) => writer.bytes_so_far(),
            LeafWriter::Theirs(writer) => writer.get_estimated_total_bytes(),
        });
        self.file.bytes_written() + buffered.sum::<usize>()
    }

    /// Writes what is left, and the footer.
    pub(super) fn close(mut self) -> Result<()> {
        self.end_group()?;
        self.file.close()?;
        Ok(())
    }

    fn new_group(&self) -> Result<RowGroup> {
        let types = self.schema.fields().iter().flat_map(|field| leaf_types(field.data_type()));
        let columns = self.file.schema_descr().columns();
        let theirs = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        let leaves =
            columns.iter().zip(types).zip(theirs).map(|((column, data_type), theirs)| {
                match ColumnWriter::new(column, &data_type, &self.properties) {
                    Some(ours) => LeafWriter::Ours(Box::new(ours)),
                    None => LeafWriter::Theirs(Box::new(theirs)),
                }
            });
        Ok(RowGroup { rows: 0, leaves: leaves.collect() })
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut writer = self.file.next_row_group()?;
        for leaf in group.leaves {
            match leaf {
                LeafWriter::Ours(ours) => {
                    let (bytes, close) = ours.close(&mut self.compressor)?;
                    writer.append_column(&bytes, close)?;
                }
                LeafWriter::Theirs(theirs) => theirs.close()?.append_to_row_group(&mut writer)?,
            }
        }
        writer.close()?;
        Ok(())
    }
}

fn for_each_column(
    schema: &SchemaRef,
    batch: &RecordBatch,
    mut leaves: &mut [LeafWriter],
    compressor: &mut PageCompressor,
) -> Result<()> {
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let (of_column, others) = leaves
            .split_at_mut_checked(leaf_types(field.data_type()).len())
            .ok_or_else(|| ParquetError::General(format!("column {} has no writer", field.name())))?;
        write_column(field, column, of_column, compressor)?;
        leaves = others;
    }
    Ok(())
}

fn write_column(
    field: &Field,
    column: &ArrayRef,
    writers: &mut [LeafWriter],
    compressor: &mut PageCompressor,
) -> Result<()> {
    let lists = lists_of(column);
    let ours = leaves_of(column, lists.as_ref());
    let needs_theirs = writers.iter().any(|writer| matches!(writer, LeafWriter::Theirs(_)));
    let theirs = if needs_theirs { compute_leaves(field, column)? } else { Vec::new() };
    for (at, writer) in writers.iter_mut().enumerate() {
        match writer {
            LeafWriter::Ours(writer) => writer.write(&ours[at], column.len(), compressor)?,
            LeafWriter::Theirs(writer) => writer.write(&theirs[at])?,
        }
    }
    Ok(())
}
