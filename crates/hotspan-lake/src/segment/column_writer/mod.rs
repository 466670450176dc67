//! Writing the column chunks of a Parquet file.
//!
//! The parquet crate hashes and compares the value of every row, for every column anew, and takes levels one by one. That is
//! most of what compaction would cost. Here codes that are known stay codes, levels are the bits that Arrow has of them, and
//! all columns of a file share one compressor. The pages are the same, and the crate still writes their headers, the footer
//! and the page indexes. Only what the tables of the lake have is written: lists are not nested, and their items not optional.

mod bounds;
mod delta;
mod dictionary;
mod fixed_values;
mod hybrid;
mod leaf;
mod pages;
mod text_values;
mod values;

use std::ops::Range;

use arrow::array::{Array, AsArray, BooleanBufferBuilder};
use arrow::datatypes::DataType;
use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnDescPtr;

use bounds::{PageBounds, chunk_statistics};
use fixed_values::{FixedEncoding, FixedValues, Order};
use leaf::Rows;
pub(super) use leaf::{Leaf, leaves_of, lists_of};
pub(super) use pages::PageCompressor;
use pages::{ChunkPages, PageContent};
use text_values::TextValues;
use values::{Flags, Values};

/// Writes a column chunk: one leaf column of one row group.
pub(super) struct ColumnWriter {
    column: ColumnDescPtr,
    limits: Limits,
    values: Box<dyn Values>,
    /// Of each value of the page, whether it is there, and whether it goes on with the row of the one before.
    is_there: BooleanBufferBuilder,
    goes_on: BooleanBufferBuilder,
    page_rows: usize,
    rows: u64,
    missing: u64,
    pages: ChunkPages,
    page_bounds: Option<PageBounds>,
    /// Kept for the next page.
    buffer: Vec<u8>,
}

/// How much goes into one page.
#[derive(Debug, Clone, Copy)]
struct Limits {
    page_rows: usize,
    page_bytes: usize,
    dictionary_bytes: usize,
}

impl ColumnWriter {
    /// A writer for a leaf whose values have a type.
    pub(super) fn new(column: &ColumnDescPtr, data_type: &DataType, properties: &WriterProperties) -> Result<Self> {
        let path = column.path();
        let codec = properties.compression(path);
        let has_bounds = properties.statistics_enabled(path) == EnabledStatistics::Page;
        let encoding = properties.encoding(path).unwrap_or(Encoding::PLAIN);
        let values = values_for(data_type, encoding, properties.dictionary_enabled(path), has_bounds)
            .filter(|_| column.max_def_level() <= 1 && column.max_rep_level() <= 1)
            .ok_or_else(|| ParquetError::NYI(format!("column {path} of {data_type} can't be written in {encoding}")))?;
        let limits = Limits {
            page_rows: properties.data_page_row_count_limit(),
            page_bytes: properties.column_data_page_size_limit(path),
            dictionary_bytes: properties.column_dictionary_page_size_limit(path),
        };
        Ok(Self {
            column: ColumnDescPtr::clone(column),
            limits,
            values,
            is_there: BooleanBufferBuilder::new(0),
            goes_on: BooleanBufferBuilder::new(0),
            page_rows: 0,
            rows: 0,
            missing: 0,
            pages: ChunkPages::new(codec),
            page_bounds: has_bounds.then(PageBounds::default),
            buffer: Vec::new(),
        })
    }

    /// About how many bytes the chunk has so far.
    pub(super) fn bytes_so_far(&self) -> usize {
        self.pages.bytes() + self.values.page_bytes() + self.values.dictionary_bytes().unwrap_or(0)
    }

    /// Appends so many rows of a leaf.
    pub(super) fn write(&mut self, leaf: &Leaf<'_>, rows: usize, compressor: &mut PageCompressor) -> Result<()> {
        let mut start = 0;
        while start < rows {
            let most = (self.limits.page_rows - self.page_rows).min(rows - start);
            let end = start + rows_within(leaf, start..start + most, self.limits.page_bytes);
            self.append(leaf, start..end);
            start = end;
            let is_overfull = self.values.dictionary_bytes().is_some_and(|bytes| bytes >= self.limits.dictionary_bytes);
            if self.page_rows >= self.limits.page_rows
                || self.values.page_bytes() >= self.limits.page_bytes
                || is_overfull
            {
                self.end_page(compressor)?;
            }
            if is_overfull && let Some(dictionary) = self.values.take_dictionary() {
                self.pages.put_dictionary(dictionary, compressor)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, leaf: &Leaf<'_>, rows: Range<usize>) {
        self.page_rows += rows.len();
        match leaf.rows {
            Rows::Single => {
                let present = leaf::present_of(leaf.values, &rows);
                if self.column.max_def_level() > 0 {
                    match &present {
                        Some(present) => self.is_there.append_buffer(present.inner()),
                        None => self.is_there.append_n(rows.len(), true),
                    }
                }
                self.missing += present.as_ref().map_or(0, |present| present.null_count() as u64);
                self.values.append(leaf.values, rows, present.as_ref());
            }
            Rows::Lists(lists) => {
                let (has_value, goes_on) = lists.levels_of(&rows);
                self.missing += (has_value.len() - has_value.count_set_bits()) as u64;
                self.is_there.append_buffer(&has_value);
                self.goes_on.append_buffer(&goes_on);
                self.values.append(leaf.values, lists.values_of(&rows), None);
            }
        }
    }

    fn end_page(&mut self, compressor: &mut PageCompressor) -> Result<()> {
        self.buffer.clear();
        let mut values = self.page_rows;
        let mut missing = 0;
        if self.column.max_rep_level() > 0 {
            put_levels(&mut self.goes_on, &mut self.buffer);
        }
        if self.column.max_def_level() > 0 {
            values = self.is_there.len();
            missing = values - put_levels(&mut self.is_there, &mut self.buffer);
        }
        let (encoding, bounds) = self.values.end_page(&mut self.buffer);
        if let Some(page_bounds) = &mut self.page_bounds {
            page_bounds.push(bounds, missing);
        }
        let content = PageContent { rows: self.page_rows, values, encoding };
        self.pages.put(&self.buffer, content, compressor)?;
        self.rows += self.page_rows as u64;
        self.page_rows = 0;
        Ok(())
    }

    /// The chunk, and what the footer says of it.
    pub(super) fn close(mut self, compressor: &mut PageCompressor) -> Result<(Bytes, ColumnCloseResult)> {
        if self.page_rows > 0 {
            self.end_page(compressor)?;
        }
        if let Some(dictionary) = self.values.take_dictionary() {
            self.pages.put_dictionary(dictionary, compressor)?;
        }
        let (bytes, offset_index, mut metadata) = self.pages.finish(ColumnDescPtr::clone(&self.column))?;
        let mut column_index = None;
        if let Some(page_bounds) = self.page_bounds {
            let (bounds, order) = match self.values.chunk_bounds() {
                Some((bounds, order)) => (Some(bounds), order),
                None => (None, BoundaryOrder::ASCENDING),
            };
            metadata = metadata.set_statistics(chunk_statistics(bounds, self.missing, &self.column));
            column_index = Some(page_bounds.finish(order, &self.column)?);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index,
            offset_index: Some(offset_index),
        };
        Ok((bytes, close))
    }
}

/// What takes the values of a type; none if nothing here does in this encoding.
fn values_for(
    data_type: &DataType,
    encoding: Encoding,
    with_dictionary: bool,
    has_bounds: bool,
) -> Option<Box<dyn Values>> {
    let encoding = FixedEncoding::new(encoding)?;
    let order = |order| has_bounds.then_some(order);
    let number = |stored_bytes, of| -> Option<Box<dyn Values>> {
        Some(Box::new(FixedValues::<u64>::new(stored_bytes, encoding, with_dictionary, order(of))))
    };
    match (data_type, encoding) {
        (DataType::UInt64, _) => number(8, Order::Unsigned),
        (DataType::Int64 | DataType::Timestamp(..), _) => number(8, Order::Signed),
        // What is not a number has no place in their order.
        (DataType::Float64, _) if !has_bounds => number(8, Order::Unsigned),
        (DataType::UInt32 | DataType::UInt8, FixedEncoding::Plain) => number(4, Order::Unsigned),
        (DataType::Int8, FixedEncoding::Plain) => number(4, Order::Signed),
        (DataType::Boolean, FixedEncoding::Plain) if !has_bounds => Some(Box::new(Flags::default())),
        (DataType::FixedSizeBinary(8), FixedEncoding::Plain) => {
            Some(Box::new(FixedValues::<u64>::new(8, encoding, with_dictionary, order(Order::Bytes))))
        }
        (DataType::FixedSizeBinary(16), FixedEncoding::Plain) => {
            Some(Box::new(FixedValues::<u128>::new(16, encoding, with_dictionary, order(Order::Bytes))))
        }
        (DataType::Utf8 | DataType::Binary | DataType::Dictionary(..), FixedEncoding::Plain) => {
            Some(Box::new(TextValues::new(with_dictionary, has_bounds)))
        }
        _ => None,
    }
}

/// How many of some rows have no more bytes of text than a page may have; one at least.
fn rows_within(leaf: &Leaf<'_>, rows: Range<usize>, most_bytes: usize) -> usize {
    let offsets = match leaf.values.data_type() {
        DataType::Utf8 => leaf.values.as_string::<i32>().value_offsets(),
        DataType::Binary => leaf.values.as_binary::<i32>().value_offsets(),
        _ => return rows.len(),
    };
    let end_of = |row: usize| match leaf.rows {
        Rows::Single => offsets[row] as usize,
        Rows::Lists(lists) => offsets[lists.values_of(&(row..row)).start] as usize,
    };
    let start = end_of(rows.start);
    if end_of(rows.end) - start <= most_bytes {
        return rows.len();
    }
    let ends: Vec<usize> = (rows.start + 1..=rows.end).map(end_of).collect();
    ends.partition_point(|end| end - start <= most_bytes).max(1)
}

/// Appends levels behind their length; says how many are one.
fn put_levels(levels: &mut BooleanBufferBuilder, out: &mut Vec<u8>) -> usize {
    let levels = levels.finish();
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    hybrid::put_bits(&levels, out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    levels.count_set_bits()
}

/// The types of the leaves of a column, in the order of the file.
pub(super) fn leaf_types(data_type: &DataType) -> Vec<DataType> {
    match data_type {
        DataType::List(item) | DataType::Map(item, _) => leaf_types(item.data_type()),
        DataType::Struct(fields) => fields.iter().flat_map(|field| leaf_types(field.data_type())).collect(),
        other => vec![other.clone()],
    }
}

#[cfg(test)]
mod tests;
