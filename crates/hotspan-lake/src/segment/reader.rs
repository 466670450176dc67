//! Reading a segment: only the columns asked for, only the pages that can matter.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::HashMap;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, RowFilter};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::column_cache::ColumnCache;
use super::footers::{Footer, FooterCache, Texts};
use super::id_index::IdIndex;
use super::pruning::prune;
use super::read_options::{ReadOptions, rows_within, select_in_memory, split_batch, time_matches};
use super::{RowRanges, Segment, l0, time_grain};
use crate::error::{LakeError, Result};
use crate::store::BlobStore;

/// Reads segments, and remembers the footers of the files it has read and the columns that are scanned often.
#[derive(Debug)]
pub struct SegmentReader {
    store: Arc<dyn BlobStore>,
    footers: FooterCache,
    /// Id indexes that were opened, by path, and how many bytes are kept of all.
    indexes: Mutex<HashMap<String, Arc<IdIndex>>>,
    index_bytes: AtomicUsize,
    pub(super) columns: ColumnCache,
}

/// Memory for decoded columns, unless configured: the core columns of some four million spans.
pub const COLUMN_CACHE_BYTES: usize = 256 << 20;

/// Memory for id indexes: those of some hundred million samples or spans.
const INDEX_CACHE_BYTES: usize = 64 << 20;

impl SegmentReader {
    pub(crate) fn new(store: Arc<dyn BlobStore>) -> Self {
        Self {
            store,
            footers: FooterCache::default(),
            indexes: Mutex::default(),
            index_bytes: AtomicUsize::new(0),
            columns: ColumnCache::new(COLUMN_CACHE_BYTES),
        }
    }

    /// Bounds the memory of decoded columns; what is kept already is not dropped.
    pub fn set_column_cache_bytes(&self, bytes: usize) {
        self.columns.set_most_bytes(bytes);
    }

    /// The bound on the memory of decoded columns.
    pub fn column_cache_bytes(&self) -> usize {
        self.columns.most_bytes()
    }

    /// All batches of a segment that the options ask for.
    pub async fn read_all(&self, segment: &Arc<Segment>, options: ReadOptions) -> Result<Vec<RecordBatch>> {
        self.stream(segment, options).await?.try_collect().await
    }

    /// The batches of a segment one after the other.
    pub async fn stream(
        &self,
        segment: &Arc<Segment>,
        mut options: ReadOptions,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let column = segment.table.time_column();
        // Where every row is in time, the column need not be read to say so.
        options.time = options.time.filter(|(name, from, until)| {
            name != column || time_grain(segment.table) > 1 || segment.min_time < *from || segment.max_time >= *until
        });
        if segment.level == 0 {
            let batch = self.level0_batch(segment).await?;
            let batch = select_in_memory(&batch, &options)?;
            return Ok(futures::stream::iter(split_batch(batch, options.batch_rows).into_iter().map(Ok)).boxed());
        }
        self.parquet_stream(segment, options).await
    }

    /// The id index of a segment, if it has one.
    pub async fn id_index(&self, segment: &Segment) -> Result<Option<Arc<IdIndex>>> {
        let Some((path, size)) = &segment.index else { return Ok(None) };
        let known = self.lock_indexes().get(path).map(Arc::clone);
        let index = match known {
            Some(index) => index,
            None => {
                let index = Arc::new(IdIndex::open(self.store.as_ref(), path, *size).await?);
                Arc::clone(self.lock_indexes().entry(path.clone()).or_insert(index))
            }
        };
        let has_room = || self.kept_index_bytes() + index.size() as usize <= INDEX_CACHE_BYTES;
        if index.is_worth_keeping() && has_room() {
            let whole = index.read_whole(self.store.as_ref()).await?;
            let indexes = self.lock_indexes();
            // It may have been forgotten meanwhile, or kept by another question.
            if indexes.get(path).is_some_and(|known| Arc::ptr_eq(known, &index)) && index.keep(whole) {
                self.index_bytes.fetch_add(index.kept_bytes(), Ordering::Relaxed);
            }
        }
        Ok(Some(index))
    }

    /// Bytes of id indexes that are kept whole.
    pub fn kept_index_bytes(&self) -> usize {
        self.index_bytes.load(Ordering::Relaxed)
    }

    /// Reads what is needed to find anything in a segment: its footer and the head of its id index.
    pub async fn open(&self, segment: &Segment) -> Result<()> {
        self.id_index(segment).await?;
        if segment.level > 0 {
            self.footer(segment).await?;
        }
        Ok(())
    }

    /// The object store that segments are in.
    pub fn store(&self) -> &dyn BlobStore {
        self.store.as_ref()
    }

    /// Forgets what is cached of an object that is about to be deleted.
    pub(crate) fn forget(&self, path: &str) {
        self.columns.forget(path);
        self.footers.forget(path);
        let mut indexes = self.lock_indexes();
        if let Some(index) = indexes.remove(path) {
            self.index_bytes.fetch_sub(index.kept_bytes(), Ordering::Relaxed);
        }
    }

    /// Bytes of cached footers.
    pub fn cached_bytes(&self) -> usize {
        self.footers.bytes()
    }

    /// Bytes of decoded columns.
    pub fn cached_column_bytes(&self) -> usize {
        self.columns.bytes()
    }

    pub(super) async fn level0_batch(&self, segment: &Arc<Segment>) -> Result<RecordBatch> {
        if let Some(batch) = &segment.resident {
            return Ok(batch.clone());
        }
        let mut parts = self.store.get_ranges(&segment.path, std::slice::from_ref(&segment.range)).await?;
        l0::decode(&segment.path, &parts.pop().unwrap_or_default(), segment.checksum)
    }

    /// Boxed, so that reading Parquet is compiled once, and not wherever a stream is awaited.
    fn parquet_stream<'a>(
        &'a self,
        segment: &'a Arc<Segment>,
        options: ReadOptions,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<RecordBatch>>>> {
        self.open_parquet_stream(segment, options).boxed()
    }

    async fn open_parquet_stream(
        &self,
        segment: &Arc<Segment>,
        options: ReadOptions,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let footer = self.footer(segment).await?;
        if let Some(rows) = options.picked_rows(footer.plain.schema()) {
            let batches = self.picked_rows(segment, &footer, rows, &options).await?;
            return Ok(futures::stream::iter(batches.into_iter().map(Ok)).boxed());
        }
        let file = self.file_of(segment, &footer);
        let mut arrow_metadata = footer.indexed(self.store.as_ref(), segment).await?.clone();
        if let Some(coded) = &options.coded {
            let types = ArrowReaderOptions::new().with_schema(coded.in_schema(arrow_metadata.schema()));
            arrow_metadata = ArrowReaderMetadata::try_new(Arc::clone(arrow_metadata.metadata()), types)?;
        }
        let schema = Arc::clone(arrow_metadata.schema());
        let (row_groups, selection) = prune(&arrow_metadata, &options)?;
        if row_groups.is_empty() {
            return Ok(futures::stream::empty().boxed());
        }
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(file, arrow_metadata)
            .with_row_groups(row_groups)
            .with_batch_size(options.batch_rows.unwrap_or(8192));
        if let Some(selection) = selection {
            builder = builder.with_row_selection(selection);
        }
        let parquet_schema = builder.parquet_schema();
        let mask = |names: &[String]| {
            let roots = names.iter().filter_map(|name| schema.index_of(name).ok());
            ProjectionMask::roots(parquet_schema, roots)
        };
        let mut predicates: Vec<Box<dyn parquet::arrow::arrow_reader::ArrowPredicate>> = Vec::new();
        if let Some((column, from, until)) = options.time.clone() {
            let within = move |batch: RecordBatch| Ok(time_matches(&batch, &column, from, until));
            let column = options.time.iter().map(|(column, _, _)| column.clone()).collect::<Vec<_>>();
            predicates.push(Box::new(ArrowPredicateFn::new(mask(&column), within)));
        }
        if let Some(filter) = options.filter.clone() {
            let matches = Arc::clone(&filter.matches);
            predicates.push(Box::new(ArrowPredicateFn::new(mask(&filter.columns), move |batch| Ok(matches(&batch)))));
        }
        let projection = options.projection(&schema).map(|roots| ProjectionMask::roots(parquet_schema, roots));
        if let Some(projection) = projection {
            builder = builder.with_projection(projection);
        }
        if !predicates.is_empty() {
            builder = builder.with_row_filter(RowFilter::new(predicates));
        }
        Ok(builder.build()?.map_err(LakeError::from).boxed())
    }

    /// Some rows, without looking for pages that may be left out besides.
    async fn picked_rows(
        &self,
        segment: &Segment,
        footer: &Footer,
        rows: &RowRanges,
        options: &ReadOptions,
    ) -> Result<Vec<RecordBatch>> {
        let schema = footer.plain.schema();
        let roots = options.projection(schema).unwrap_or_else(|| (0..schema.fields().len()).collect());
        let projection = footer.projection(Texts::AsStored, roots)?;
        let batch_rows = options.batch_rows.unwrap_or(8192);
        let mut found = Vec::new();
        let mut first = 0;
        for (group, metadata) in footer.plain.metadata().row_groups().iter().enumerate() {
            let count = metadata.num_rows() as usize;
            let inside = rows_within(rows, first..first + count);
            first += count;
            if !inside.is_empty() {
                let rows = self.group_rows(segment, footer, (group, Some(&inside)), &projection, batch_rows).await?;
                for batch in rows {
                    found.push(batch?);
                }
            }
        }
        if let Some((column, from, until)) = &options.time {
            for batch in &mut found {
                *batch = filter_record_batch(batch, &time_matches(batch, column, *from, *until))?;
            }
        }
        Ok(found)
    }

    /// The columns of a segment above level 0.
    pub(crate) async fn schema_of(&self, segment: &Segment) -> Result<SchemaRef> {
        Ok(Arc::clone(self.footer(segment).await?.plain.schema()))
    }

    pub(super) async fn footer(&self, segment: &Segment) -> Result<Arc<Footer>> {
        self.footers.get(self.store.as_ref(), segment).await
    }

    pub(super) fn file_of(&self, segment: &Segment, footer: &Footer) -> SegmentFile {
        SegmentFile {
            store: Arc::clone(&self.store),
            path: segment.path.clone(),
            metadata: Arc::clone(footer.plain.metadata()),
        }
    }

    fn lock_indexes(&self) -> MutexGuard<'_, HashMap<String, Arc<IdIndex>>> {
        // A cache that a panicking thread left behind is still a cache.
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Parquet file in the store, with its footer read already.
pub(super) struct SegmentFile {
    store: Arc<dyn BlobStore>,
    path: String,
    metadata: Arc<ParquetMetaData>,
}

impl AsyncFileReader for SegmentFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        self.get_byte_ranges(vec![range]).map(|parts| parts.map(|mut parts| parts.pop().unwrap_or_default())).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        let store = Arc::clone(&self.store);
        let path = self.path.clone();
        async move {
            let parts = store.get_ranges(&path, &ranges).await;
            parts.map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        std::future::ready(Ok(Arc::clone(&self.metadata))).boxed()
    }
}
