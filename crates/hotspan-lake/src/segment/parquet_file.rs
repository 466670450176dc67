//! Writing a sorted Parquet segment together with its id index.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use xxhash_rust::xxh3::Xxh3;

use super::Piece;
use super::dense_columns::DenseColumns;
use super::id_index::{IdIndexBuilder, IdKind};
use super::l0::time_range;
use super::row_group_writer::RowGroupWriter;
use crate::compaction::attributes::ATTRIBUTE_PREFIX;
use crate::error::{LakeError, Result};
use crate::object_name::index_path;
use crate::store::{BlobStore, BlobWriter};
use crate::table::Table;

/// Rows in a row group: what a reader of a narrow range has to open at least.
const ROW_GROUP_ROWS: usize = 256 * 1024;
/// The same for symbols, of which most questions read those of one service: the frames of some services are a dictionary.
const SYMBOL_ROW_GROUP_ROWS: usize = 128 * 1024;
/// Rows in a page: what a point look-up has to decode at least.
const PAGE_ROWS: usize = 4096;
/// The same for spans, which are looked up trace by trace with all their columns.
pub(super) const SPAN_PAGE_ROWS: usize = 2048;
/// A dictionary is decoded whole before the first row of its column can be: texts that are nearly all different must not
/// grow one that a look-up would notice.
const TEXT_DICTIONARY_BYTES: usize = 64 << 10;
/// The same for numbers, which are decoded faster.
const NUMBER_DICTIONARY_BYTES: usize = 256 << 10;

/// What a file is to hold, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilePlan<'a> {
    pub(crate) table: Table,
    pub(crate) level: u8,
    pub(crate) partition: i64,
    pub(crate) schema: &'a SchemaRef,
    pub(crate) dense: &'a DenseColumns,
}

/// A Parquet segment being written.
pub(crate) struct ParquetSegmentWriter {
    table: Table,
    level: u8,
    partition: i64,
    path: String,
    writer: RowGroupWriter<SharedWriter>,
    object: SharedWriter,
    index: Option<IndexedIds>,
    rows: u64,
    min_time: i64,
    max_time: i64,
}

/// Ids that the index maps, with the last one seen, so that only the first row of a run is entered.
struct IndexedIds {
    builder: IdIndexBuilder,
    columns: Vec<(IdKind, &'static str, Vec<u8>)>,
}

impl ParquetSegmentWriter {
    pub(crate) fn create(store: &dyn BlobStore, path: String, plan: &FilePlan<'_>) -> Result<Self> {
        let object = SharedWriter::new(store.create(&path)?);
        let level = zstd_level(plan.table, plan.level);
        let writer = RowGroupWriter::new(object.clone(), plan.schema, writer_properties(plan), level)?;
        Ok(Self {
            table: plan.table,
            level: plan.level,
            partition: plan.partition,
            path,
            writer,
            object,
            index: indexed_ids(plan.table),
            rows: 0,
            min_time: i64::MAX,
            max_time: i64::MIN,
        })
    }

    /// Appends rows, which must continue the table's order.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let (min_time, max_time) = time_range(self.table, batch)?;
        self.min_time = self.min_time.min(min_time);
        self.max_time = self.max_time.max(max_time);
        if let Some(index) = &mut self.index {
            index.add(batch, self.rows)?;
        }
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch)?;
        Ok(())
    }

    /// About how large the file is so far.
    pub(crate) fn bytes_so_far(&self) -> usize {
        self.writer.bytes_so_far()
    }

    /// Makes the file and its index durable.
    pub(crate) fn finish(self, store: &dyn BlobStore) -> Result<Piece> {
        self.writer.close()?;
        let (size, checksum) = self.object.finish()?;
        let index = match self.index {
            Some(index) => {
                let bytes = Bytes::from(index.builder.finish());
                let path = index_path(&self.path);
                let size = bytes.len() as u64;
                let mut writer = store.create(&path)?;
                writer.write_all(&bytes).map_err(|source| LakeError::Storage {
                    action: "writing",
                    path: path.clone(),
                    source,
                })?;
                writer.finish()?;
                Some((path, size))
            }
            None => None,
        };
        Ok(Piece {
            table: self.table,
            level: self.level,
            partition: Some(self.partition),
            path: self.path,
            range: 0..size,
            checksum,
            rows: self.rows,
            min_time: self.min_time,
            max_time: self.max_time,
            index,
            resident: None,
            resident_bytes: 0,
        })
    }
}

fn indexed_ids(table: Table) -> Option<IndexedIds> {
    let columns: &[(IdKind, &'static str)] = match table {
        Table::Spans => &[(IdKind::Trace, "trace_id")],
        Table::Samples => &[(IdKind::Trace, "trace_id"), (IdKind::Span, "span_id")],
        _ => return None,
    };
    let kinds: Vec<IdKind> = columns.iter().map(|(kind, _)| *kind).collect();
    Some(IndexedIds {
        builder: IdIndexBuilder::new(&kinds),
        columns: columns.iter().map(|(kind, name)| (*kind, *name, Vec::new())).collect(),
    })
}

impl IndexedIds {
    fn add(&mut self, batch: &RecordBatch, first_row: u64) -> Result<()> {
        for (kind, name, last) in &mut self.columns {
            let ids: &FixedSizeBinaryArray = crate::arrays::ids(batch, name)?;
            for row in 0..ids.len() {
                if ids.is_null(row) {
                    last.clear();
                    continue;
                }
                let id = ids.value(row);
                if id != last.as_slice() {
                    last.clear();
                    last.extend_from_slice(id);
                    // Files are cut long before they have four billion rows.
                    self.builder.add(*kind, id, (first_row + row as u64) as u32);
                }
            }
        }
        Ok(())
    }
}

fn writer_properties(plan: &FilePlan<'_>) -> WriterProperties {
    let FilePlan { table, level, schema, dense, .. } = *plan;
    let zstd = ZstdLevel::try_new(zstd_level(table, level)).unwrap_or_default();
    let is_symbols = matches!(table, Table::Nodes | Table::Frames);
    let row_group_rows = if is_symbols { SYMBOL_ROW_GROUP_ROWS } else { ROW_GROUP_ROWS };
    let page_rows = if table == Table::Spans { SPAN_PAGE_ROWS } else { PAGE_ROWS };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("hotspan {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(zstd))
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .set_dictionary_page_size_limit(4 << 20)
        .set_statistics_truncate_length(Some(64))
        .set_sorting_columns(Some(sorting_columns(table, schema)));
    for field in schema.fields() {
        let path = ColumnPath::from(field.name().as_str());
        // What grows from row to row, or by little: times, and the ids that symbols are sorted by.
        let is_sorted_id = is_symbols && field.name() == "id";
        // Spans of one trace start close together, but the step to the next trace is long, and differences are packed as wide
        // as the widest among their neighbours: as they are, they compress to a fifth less. Split into streams of bytes they
        // would to no less, and DuckDB reads those of floating-point numbers alone.
        let starts_of_traces = table == Table::Spans && field.name() == table.time_column();
        if starts_of_traces {
            properties = properties.set_column_dictionary_enabled(path.clone(), false);
        } else if field.name() == table.time_column() || field.name() == "duration" || is_sorted_id {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        // Unique ids gain nothing from a dictionary but pay for its hashing.
        let unique = match table {
            Table::Nodes => field.name() == "parent",
            Table::Frames => field.name() == "function",
            _ => false,
        };
        if unique {
            properties = properties.set_column_dictionary_enabled(path.clone(), false);
        }
        // Of all ids only that of the profile comes again in so many rows that a dictionary of it stays small.
        let is_id = matches!(field.data_type(), DataType::FixedSizeBinary(_));
        if is_id && !(table == Table::Samples && field.name() == "profile_id") {
            properties = properties.set_column_dictionary_enabled(path.clone(), false);
        }
        let is_attribute = field.name().starts_with(ATTRIBUTE_PREFIX);
        // The paths of one hour are all different, those of a day come again.
        if is_attribute || is_id || (table == Table::Rollup1h && field.name() == "path") {
            let is_text = *field.data_type() == DataType::Utf8;
            let most_bytes = if is_text { TEXT_DICTIONARY_BYTES } else { NUMBER_DICTIONARY_BYTES };
            properties = properties.set_column_dictionary_page_size_limit(path.clone(), most_bytes);
        }
        let prunable = table.sort_columns().contains(&field.name().as_str())
            || matches!(field.name().as_str(), "service" | "duration" | "status");
        let statistics = if prunable { EnabledStatistics::Page } else { EnabledStatistics::None };
        properties = properties.set_column_statistics_enabled(path, statistics);
    }
    if table == Table::Spans {
        let event_time = ColumnPath::new(["events", "list", "item", "time"].map(str::to_owned).to_vec());
        properties = properties
            .set_column_dictionary_enabled(event_time.clone(), false)
            .set_column_encoding(event_time, Encoding::DELTA_BINARY_PACKED);
        for id in ["trace_id", "span_id"] {
            let linked = ColumnPath::new(["links", "list", "item", id].map(str::to_owned).to_vec());
            properties = properties.set_column_dictionary_enabled(linked, false);
        }
    }
    for path in dense.iter() {
        properties = properties.set_column_compression(path.clone(), Compression::UNCOMPRESSED);
    }
    properties.build()
}

fn zstd_level(table: Table, level: u8) -> i32 {
    match (table, level) {
        // Rewritten within minutes: little time is spent on it.
        (_, 0 | 1) => 1,
        // Names are few beside what refers to them, kept for as long as that is, and a fifth smaller with some more effort.
        (Table::Frames, 3) => 9,
        _ => 3,
    }
}

fn sorting_columns(table: Table, schema: &SchemaRef) -> Vec<SortingColumn> {
    let mut columns = Vec::new();
    for name in table.sort_columns() {
        // Nested columns come last in every table, so the index of a sort column is also its leaf's index.
        let Ok(index) = schema.index_of(name) else { continue };
        if columns.iter().all(|column: &SortingColumn| column.column_idx != index as i32) {
            columns.push(SortingColumn { column_idx: index as i32, descending: false, nulls_first: false });
        }
        if table == Table::Samples {
            // Samples are ordered by series, then by window and ids: only the first is true of raw columns.
            break;
        }
    }
    columns
}

/// The object under the Parquet writer, which hides its sink: kept here too, to finish and hash it.
#[derive(Clone)]
struct SharedWriter(Arc<Mutex<HashingWriter>>);

struct HashingWriter {
    inner: Option<Box<dyn BlobWriter>>,
    hasher: Xxh3,
}

impl SharedWriter {
    fn new(inner: Box<dyn BlobWriter>) -> Self {
        Self(Arc::new(Mutex::new(HashingWriter { inner: Some(inner), hasher: Xxh3::new() })))
    }

    fn finish(self) -> Result<(u64, u64)> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let checksum = writer.hasher.digest();
        match writer.inner.take() {
            Some(inner) => Ok((inner.finish()?, checksum)),
            None => Err(LakeError::ShuttingDown),
        }
    }
}

impl Write for SharedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = writer.inner.as_mut().ok_or_else(|| io::Error::other("the object is finished already"))?;
        inner.write_all(bytes)?;
        writer.hasher.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
