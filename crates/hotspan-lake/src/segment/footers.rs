//! Footers of Parquet files, and as much of their page indexes as is asked for: read once, and kept as far as memory is
//! given to them (R5).

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use hashbrown::HashMap;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::MetadataFetch;
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::offset_index::PageLocation;

use super::chunk::coded_schema;
use super::{Segment, page_locations};
use crate::error::{LakeError, Result};
use crate::store::BlobStore;

/// Memory for footers with their page indexes.
const MOST_BYTES: usize = 128 << 20;

/// Column sets whose levels are remembered, for each file.
const MOST_PROJECTIONS: usize = 32;

/// What is known of a file before anything of it is read. Its page indexes are many times larger than the rest, and most
/// questions need little of them or nothing: they are read when they are asked for.
#[derive(Debug)]
pub(super) struct Footer {
    /// As the file has its columns, without page indexes.
    pub(super) plain: ArrowReaderMetadata,
    coded: OnceLock<SchemaRef>,
    indexed: tokio::sync::OnceCell<ArrowReaderMetadata>,
    /// By row group and leaf column.
    pages: Mutex<HashMap<(usize, usize), ColumnPages>>,
    /// By their places in the schema.
    projections: Mutex<HashMap<ProjectionKey, Arc<Projection>>>,
}

/// Where the pages of a column of a row group lie.
pub(super) type ColumnPages = Arc<Vec<PageLocation>>;
type ProjectionKey = (Texts, Vec<usize>);

/// How texts are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Texts {
    /// As the file has them.
    AsStored,
    /// In dictionaries.
    Coded,
}

/// Some columns of a file, ready to be read.
#[derive(Debug)]
pub(super) struct Projection {
    /// The leaf columns below them.
    pub(super) leaves: Vec<usize>,
    pub(super) levels: FieldLevels,
}

impl Footer {
    fn new(plain: ArrowReaderMetadata) -> Self {
        let (pages, projections) = (Mutex::default(), Mutex::default());
        Self { plain, coded: OnceLock::new(), indexed: tokio::sync::OnceCell::new(), pages, projections }
    }

    /// The schema with texts in dictionaries; made when first asked for.
    pub(super) fn coded(&self) -> &SchemaRef {
        self.coded.get_or_init(|| coded_schema(self.plain.schema()))
    }

    /// With the page indexes of all columns; read when first asked for.
    pub(super) async fn indexed(&self, store: &dyn BlobStore, segment: &Segment) -> Result<&ArrowReaderMetadata> {
        let read = async || {
            let metadata = ParquetMetaData::clone(self.plain.metadata());
            let mut reader =
                ParquetMetaDataReader::new_with_metadata(metadata).with_page_index_policy(PageIndexPolicy::Optional);
            reader.load_page_index(PageIndexes { store, path: &segment.path }).await?;
            let options = ArrowReaderOptions::new().with_schema(Arc::clone(self.plain.schema()));
            Ok(ArrowReaderMetadata::try_new(Arc::new(reader.finish()?), options)?)
        };
        self.indexed.get_or_try_init(read).await
    }

    /// Where the pages of some columns of a row group lie; nothing for those that the file does not tell it of.
    pub(super) async fn page_locations(
        &self,
        store: &dyn BlobStore,
        segment: &Segment,
        group: usize,
        leaves: &[usize],
    ) -> Result<Vec<ColumnPages>> {
        let unknown: Vec<usize> = {
            let known = lock(&self.pages);
            leaves.iter().copied().filter(|leaf| !known.contains_key(&(group, *leaf))).collect()
        };
        let columns = self.plain.metadata().row_group(group).columns();
        let range_of = |leaf: &usize| {
            let column = &columns[*leaf];
            let start = u64::try_from(column.offset_index_offset()?).ok()?;
            Some(start..start + u64::try_from(column.offset_index_length()?).ok()?)
        };
        let ranges: Vec<Range<u64>> = unknown.iter().filter_map(range_of).collect();
        if let (Some(start), Some(end)) =
            (ranges.iter().map(|range| range.start).min(), ranges.iter().map(|range| range.end).max())
        {
            // The indexes of a row group lie together.
            let together = start..end;
            let mut parts = store.get_ranges(&segment.path, std::slice::from_ref(&together)).await?;
            let bytes = parts.pop().unwrap_or_default();
            let mut known = lock(&self.pages);
            for leaf in &unknown {
                let part = range_of(leaf)
                    .and_then(|range| bytes.get((range.start - start) as usize..(range.end - start) as usize));
                let pages = part.and_then(page_locations::parse).unwrap_or_default();
                known.insert((group, *leaf), Arc::new(pages));
            }
        }
        let known = lock(&self.pages);
        Ok(leaves.iter().map(|leaf| known.get(&(group, *leaf)).cloned().unwrap_or_default()).collect())
    }

    /// Some columns by their place in the schema, in order.
    pub(super) fn projection(&self, texts: Texts, roots: Vec<usize>) -> Result<Arc<Projection>> {
        let key = (texts, roots);
        if let Some(known) = lock(&self.projections).get(&key) {
            return Ok(Arc::clone(known));
        }
        let roots = &key.1;
        let schema = self.plain.metadata().file_metadata().schema_descr();
        let leaves = (0..schema.num_columns()).filter(|leaf| roots.contains(&schema.get_column_root_idx(*leaf)));
        let mask = ProjectionMask::roots(schema, roots.iter().copied());
        let fields = match texts {
            Texts::AsStored => self.plain.schema(),
            Texts::Coded => self.coded(),
        };
        let levels = parquet_to_arrow_field_levels(schema, mask, Some(fields.fields()))?;
        let projection = Arc::new(Projection { leaves: leaves.collect(), levels });
        let mut known = lock(&self.projections);
        if known.len() >= MOST_PROJECTIONS {
            known.clear();
        }
        known.insert(key, Arc::clone(&projection));
        Ok(projection)
    }

    /// About how much memory a column of a row group takes when it is decoded.
    pub(super) fn column_bytes(&self, group: usize, column: &str) -> usize {
        let group = self.plain.metadata().row_group(group);
        let parts =
            group.columns().iter().filter(|part| part.column_path().parts().first().is_some_and(|name| name == column));
        let stored: i64 = parts.map(|part| part.uncompressed_size()).sum();
        usize::try_from(stored).unwrap_or(0).max(8 * group.num_rows() as usize)
    }

    /// What it takes, and what it will take when its page indexes are asked for.
    fn memory_size(&self) -> usize {
        let metadata = self.plain.metadata();
        let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
        let index_bytes = columns.map(|column| {
            let written = column.offset_index_length().unwrap_or(0) + column.column_index_length().unwrap_or(0);
            // Numbers are packed in the file.
            usize::try_from(written).unwrap_or(0) * 4
        });
        metadata.memory_size() + index_bytes.sum::<usize>()
    }
}

/// Page indexes of a file.
struct PageIndexes<'s> {
    store: &'s dyn BlobStore,
    path: &'s str,
}

impl MetadataFetch for PageIndexes<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        let (store, path) = (self.store, self.path);
        async move {
            let parts = store.get_ranges(path, &[range]).await;
            let mut parts = parts.map_err(|error| ParquetError::External(Box::new(error)))?;
            Ok(parts.pop().unwrap_or_default())
        }
        .boxed()
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    // A cache that a panicking thread left behind is still a cache.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Footers that were read, by the path of their file.
#[derive(Debug, Default)]
pub(super) struct FooterCache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// With the time of their last use.
    footers: HashMap<String, (Arc<Footer>, u64)>,
    bytes: usize,
    clock: u64,
}

impl FooterCache {
    /// The footer of a segment with its schema, which takes longer to make from the footer than a look-up may.
    pub(super) async fn get(&self, store: &dyn BlobStore, segment: &Segment) -> Result<Arc<Footer>> {
        if let Some(footer) = self.lock().used(&segment.path) {
            return Ok(footer);
        }
        let metadata = Arc::new(read_footer(store, segment).await?);
        let plain = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new())?;
        let footer = Arc::new(Footer::new(plain));
        self.lock().keep(&segment.path, &footer);
        Ok(footer)
    }

    pub(super) fn forget(&self, path: &str) {
        let mut state = self.lock();
        if let Some((footer, _)) = state.footers.remove(path) {
            state.bytes = state.bytes.saturating_sub(footer.memory_size());
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn used(&mut self, path: &str) -> Option<Arc<Footer>> {
        self.clock += 1;
        let (footer, used) = self.footers.get_mut(path)?;
        *used = self.clock;
        Some(Arc::clone(footer))
    }

    fn keep(&mut self, path: &str, footer: &Arc<Footer>) {
        self.bytes += footer.memory_size();
        if let Some((other, _)) = self.footers.insert(path.to_owned(), (Arc::clone(footer), self.clock)) {
            // Two questions read it at once.
            self.bytes = self.bytes.saturating_sub(other.memory_size());
        }
        while self.bytes > MOST_BYTES && self.footers.len() > 1 {
            let oldest = self.footers.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone());
            let Some((footer, _)) = oldest.and_then(|path| self.footers.remove(&path)) else { break };
            self.bytes = self.bytes.saturating_sub(footer.memory_size());
        }
    }
}

async fn read_footer(store: &dyn BlobStore, segment: &Segment) -> Result<ParquetMetaData> {
    let size = segment.range.end;
    let mut tail_size = (64u64 << 10).min(size);
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
    loop {
        let range = size - tail_size..size;
        let tail = store.get_ranges(&segment.path, &[range]).await?.pop().unwrap_or_default();
        match reader.try_parse_sized(&tail, size) {
            Ok(()) => return Ok(reader.finish()?),
            Err(ParquetError::NeedMoreData(needed)) if (needed as u64) <= size && (needed as u64) > tail_size => {
                tail_size = needed as u64;
            }
            Err(error) => {
                return Err(LakeError::Damaged { path: segment.path.clone(), reason: error.to_string() });
            }
        }
    }
}
