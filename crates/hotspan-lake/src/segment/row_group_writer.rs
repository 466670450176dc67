//! Writing a Parquet file row group by row group.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::column_writer::{ColumnWriter, PageCompressor, leaf_types, leaves_of, lists_of};

/// A Parquet file being written.
pub(super) struct RowGroupWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    schema: SchemaRef,
    compressor: PageCompressor,
    group: Option<RowGroup>,
}

/// The row group that is being filled.
struct RowGroup {
    rows: usize,
    leaves: Vec<ColumnWriter>,
}

impl<W: Write + Send> RowGroupWriter<W> {
    /// A writer for batches of a schema; pages are compressed as hard as the level says.
    pub(super) fn new(sink: W, schema: &SchemaRef, properties: WriterProperties, zstd_level: i32) -> Result<Self> {
        // It knows how Arrow's types are told in a footer.
        let (file, _) = ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties))?.into_serialized_writer()?;
        Ok(Self { file, schema: Arc::clone(schema), compressor: PageCompressor::new(zstd_level)?, group: None })
    }

    /// Appends rows. Texts may be coded where the schema has plain ones.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let most_rows = self.file.properties().max_row_group_row_count().unwrap_or(usize::MAX);
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => self.new_group()?,
            };
            let part = rest.slice(0, rest.num_rows().min(most_rows - group.rows));
            group.write(&part, &mut self.compressor)?;
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
        self.file.bytes_written() + leaves.map(ColumnWriter::bytes_so_far).sum::<usize>()
    }

    /// Writes what is left, and the footer.
    pub(super) fn close(mut self) -> Result<()> {
        self.end_group()?;
        self.file.close()?;
        Ok(())
    }

    fn new_group(&self) -> Result<RowGroup> {
        let types = self.schema.fields().iter().flat_map(|field| leaf_types(field.data_type()));
        let columns = self.file.schema_descr().columns().iter().zip(types);
        let leaves = columns.map(|(column, data_type)| ColumnWriter::new(column, &data_type, self.file.properties()));
        Ok(RowGroup { rows: 0, leaves: leaves.collect::<Result<_>>()? })
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut writer = self.file.next_row_group()?;
        for leaf in group.leaves {
            let (bytes, close) = leaf.close(&mut self.compressor)?;
            writer.append_column(&bytes, close)?;
        }
        writer.close()?;
        Ok(())
    }
}

impl RowGroup {
    fn write(&mut self, batch: &RecordBatch, compressor: &mut PageCompressor) -> Result<()> {
        let mut writers = self.leaves.iter_mut();
        for column in batch.columns() {
            let lists = lists_of(column);
            for leaf in leaves_of(column, lists.as_ref()) {
                let writer = writers.next();
                let too_many = || ParquetError::General("a batch has more columns than its file".to_owned());
                writer.ok_or_else(too_many)?.write(&leaf, batch.num_rows(), compressor)?;
            }
        }
        self.rows += batch.num_rows();
        Ok(())
    }
}
