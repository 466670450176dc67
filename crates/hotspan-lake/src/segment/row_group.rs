//! Reading rows of a row group: only the pages that hold them, one by one from a file, with one request from elsewhere. Of all
//! rows, some pages of a file are read at once.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use hashbrown::HashMap;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::footers::{ColumnPages, Footer, Projection};
use super::{RowRanges, Segment, SegmentReader};
use crate::error::Result;

/// Ranges that are no further apart are read together.
const READ_OVER: u64 = 4 << 10;
/// Bytes of a column that are read at once where all of it is asked for.
const READ_AHEAD: u64 = 64 << 10;

impl SegmentReader {
    /// Some columns of some rows of a row group, counted from its start, or of all; in batches of at most so many rows. The
    /// rows are decoded as the batches are taken.
    pub(super) async fn group_rows(
        &self,
        segment: &Segment,
        footer: &Footer,
        (group, rows): (usize, Option<&RowRanges>),
        projection: &Projection,
        batch_rows: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let metadata = footer.plain.metadata();
        let locations = footer.page_locations(self.store(), segment, group, &projection.leaves).await?;
        let is_told = locations.iter().all(|locations| !locations.is_empty());
        let bytes = match self.store().file(&segment.path)? {
            Some(file) if is_told => Pages::File(file),
            _ => {
                let mut ranges: Vec<Range<u64>> = Vec::new();
                for (leaf, locations) in projection.leaves.iter().zip(&locations) {
                    page_ranges(metadata.row_group(group), *leaf, locations, rows, &mut ranges);
                }
                let joined = join(ranges);
                let parts = self.store().get_ranges(&segment.path, &joined).await?;
                Pages::Read(joined.iter().map(|range| range.start).zip(parts).collect())
            }
        };
        let locations = projection.leaves.iter().copied().zip(locations).collect();
        let pages = GroupPages { metadata, group, locations, bytes: Arc::new(bytes), is_whole: rows.is_none() };
        let selection = rows.map(|rows| selection(rows, pages.num_rows()));
        Ok(ParquetRecordBatchReader::try_new_with_row_groups(&projection.levels, &pages, batch_rows, selection)?)
    }
}

/// Adds where the pages of a column lie that hold some of the rows, and its dictionary.
fn page_ranges(
    group: &RowGroupMetaData,
    leaf: usize,
    locations: &[PageLocation],
    rows: Option<&RowRanges>,
    found: &mut Vec<Range<u64>>,
) {
    let (start, length) = group.column(leaf).byte_range();
    let (Some(first), Some(rows)) = (locations.first(), rows) else {
        // Without an index it is all or nothing.
        found.push(start..start + length);
        return;
    };
    if first.offset as u64 > start {
        found.push(start..first.offset as u64);
    }
    let mut rows = rows.iter().peekable();
    for (number, page) in locations.iter().enumerate() {
        let end = locations.get(number + 1).map_or(group.num_rows(), |next| next.first_row_index) as usize;
        while rows.next_if(|range| range.end <= page.first_row_index as usize).is_some() {}
        let Some(range) = rows.peek() else { return };
        if range.start < end {
            found.push(page.offset as u64..page.offset as u64 + page.compressed_page_size as u64);
        }
    }
}

/// Ranges in order, those that are near each other as one.
fn join(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + READ_OVER => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn selection(rows: &RowRanges, all: usize) -> RowSelection {
    let mut selectors = Vec::with_capacity(2 * rows.len() + 1);
    let mut at = 0;
    for range in rows {
        if range.start > at {
            selectors.push(RowSelector::skip(range.start - at));
        }
        selectors.push(RowSelector::select(range.len()));
        at = range.end;
    }
    if at < all {
        selectors.push(RowSelector::skip(all - at));
    }
    RowSelection::from(selectors)
}

/// Where pages come from.
#[derive(Debug)]
enum Pages {
    /// They are read one by one.
    File(Arc<File>),
    /// They are those of one column, which are asked for one after another.
    Column(ColumnFile),
    /// They were read together: bytes by where they start in the file.
    Read(Vec<(u64, Bytes)>),
}

impl Pages {
    /// What was read, from a place on.
    fn read_from(parts: &[(u64, Bytes)], start: u64) -> std::result::Result<Bytes, ParquetError> {
        let at = parts.partition_point(|(first, _)| *first <= start);
        let part = at.checked_sub(1).and_then(|at| parts.get(at));
        let found = part.filter(|(first, bytes)| start < first + bytes.len() as u64);
        found
            .map(|(first, bytes)| bytes.slice((start - first) as usize..))
            .ok_or_else(|| ParquetError::General(format!("the page at {start} was not read")))
    }
}

/// A column of a file that is read from its first page to its last.
#[derive(Debug)]
struct ColumnFile {
    file: Arc<File>,
    /// Where it ends.
    end: u64,
    /// What was read last, and where that starts.
    ahead: Mutex<(u64, Bytes)>,
}

impl ColumnFile {
    fn get(&self, start: u64, length: usize) -> std::io::Result<Bytes> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let end = start + length as u64;
        if start < ahead.0 || end > ahead.0 + ahead.1.len() as u64 {
            let until = end.max((start + READ_AHEAD).min(self.end));
            *ahead = (start, read_exactly(&self.file, start, (until - start) as usize)?);
        }
        let first = (start - ahead.0) as usize;
        Ok(ahead.1.slice(first..first + length))
    }
}

fn read_exactly(file: &File, start: u64, length: usize) -> std::io::Result<Bytes> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes.into())
}

impl Length for Pages {
    fn len(&self) -> u64 {
        match self {
            Self::Column(column) => column.end,
            Self::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            Self::Read(parts) => parts.last().map_or(0, |(first, bytes)| first + bytes.len() as u64),
        }
    }
}

impl ChunkReader for Pages {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        match self {
            // Only asked for where no index says where pages are.
            Self::File(file) | Self::Column(ColumnFile { file, .. }) => {
                Ok(Box::new(ChunkReader::get_read(file.as_ref(), start)?))
            }
            Self::Read(parts) => Ok(Box::new(Self::read_from(parts, start)?.reader())),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        match self {
            Self::File(file) => Ok(read_exactly(file, start, length)?),
            Self::Column(column) => Ok(column.get(start, length)?),
            Self::Read(parts) => {
                let bytes = Self::read_from(parts, start)?;
                if bytes.len() < length {
                    let message = format!("the page at {start} has {} bytes, not {length}", bytes.len());
                    return Err(ParquetError::EOF(message));
                }
                Ok(bytes.slice(..length))
            }
        }
    }
}

/// Pages of a row group that have been read.
struct GroupPages<'f> {
    metadata: &'f Arc<ParquetMetaData>,
    group: usize,
    /// By leaf; empty if the file does not say.
    locations: HashMap<usize, ColumnPages>,
    bytes: Arc<Pages>,
    /// Whether all rows are asked for.
    is_whole: bool,
}

impl RowGroups for GroupPages<'_> {
    fn num_rows(&self) -> usize {
        self.metadata.row_group(self.group).num_rows() as usize
    }

    fn column_chunks(&self, leaf: usize) -> parquet::errors::Result<Box<dyn PageIterator>> {
        let column = self.metadata.row_group(self.group).column(leaf);
        let locations = self.locations.get(&leaf).filter(|locations| !locations.is_empty());
        let locations = locations.map(|locations| locations.as_ref().clone());
        let bytes = match self.bytes.as_ref() {
            Pages::File(file) if self.is_whole => {
                let (start, length) = column.byte_range();
                let (file, ahead) = (Arc::clone(file), Mutex::new((start, Bytes::new())));
                Arc::new(Pages::Column(ColumnFile { file, end: start + length, ahead }))
            }
            _ => Arc::clone(&self.bytes),
        };
        let reader = SerializedPageReader::new(bytes, column, self.num_rows(), locations)?;
        Ok(Box::new(OneColumn(Some(Box::new(reader)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// The pages of one column.
struct OneColumn(Option<Box<dyn PageReader>>);

impl Iterator for OneColumn {
    type Item = parquet::errors::Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneColumn {}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Scenario: a column in the middle of a file, whose pages are small, larger than what is read at once, and asked for again.
    /// Guarantee: each page has its own bytes, and nothing behind the column is read.
    #[test]
    fn columns_are_read_ahead() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..400_000u32).map(|number| (number * 7 % 251) as u8).collect();
        file.write_all(&content).unwrap();
        let (start, end) = (1000, 300_000u64);
        let column = ColumnFile { file: Arc::new(file), end, ahead: Mutex::new((start, Bytes::new())) };
        let pages = [(1000, 10), (1010, 60_000), (61_010, 5_000), (66_010, 200_000), (266_010, 33_990), (1000, 10)];
        for (at, length) in pages {
            assert_eq!(column.get(at as u64, length).unwrap(), content[at..at + length]);
            let ahead = column.ahead.lock().unwrap();
            assert!(ahead.0 + ahead.1.len() as u64 <= end, "{at}");
        }
    }
}
