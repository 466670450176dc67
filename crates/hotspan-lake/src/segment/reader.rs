//! Reading a segment: only the columns asked for, only the pages that can matter.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, TimestampNanosecondArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef, TimestampNanosecondType, UInt64Type};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::HashMap;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, RowFilter, RowSelection, RowSelector,
};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::chunk::coded_schema;
use super::column_cache::ColumnCache;
use super::id_index::IdIndex;
use super::{Segment, l0, time_grain};
use crate::error::{LakeError, Result};
use crate::store::BlobStore;

/// Rows of a segment, as ranges in ascending order.
pub type RowRanges = Vec<Range<usize>>;

/// What to read of a segment. Without anything, it is everything.
#[derive(Clone, Default)]
pub struct ReadOptions {
    columns: Option<Vec<String>>,
    prefix: Option<&'static str>,
    time: Option<(String, i64, i64)>,
    keys: Option<(String, Arc<Vec<u64>>)>,
    ids: Option<(String, [u8; 16], [u8; 16])>,
    rows: Option<RowRanges>,
    filter: Option<RowPredicate>,
    batch_rows: Option<usize>,
}

#[derive(Clone)]
struct RowPredicate {
    columns: Vec<String>,
    matches: Arc<dyn Fn(&RecordBatch) -> BooleanArray + Send + Sync>,
}

impl std::fmt::Debug for ReadOptions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ReadOptions")
            .field("columns", &self.columns)
            .field("time", &self.time)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl ReadOptions {
    /// Only these columns; names that a segment lacks are left out of its batches.
    pub fn columns<N: AsRef<str>>(names: &[N]) -> Self {
        Self { columns: Some(names.iter().map(|name| name.as_ref().to_owned()).collect()), ..Self::default() }
    }

    /// Besides the columns named, those whose name starts like this.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// The columns of a schema that are asked for, in its order.
    fn projection(&self, schema: &Schema) -> Option<Vec<usize>> {
        let names = self.columns.as_ref()?;
        let wanted = |name: &String| names.contains(name) || self.prefix.is_some_and(|prefix| name.starts_with(prefix));
        let fields = schema.fields().iter().enumerate();
        Some(fields.filter(|(_, field)| wanted(field.name())).map(|(index, _)| index).collect())
    }

    /// Only rows whose time column lies in `from..until`. Pages outside are skipped, rows outside are left out.
    #[must_use]
    pub fn within(mut self, column: &str, from: i64, until: i64) -> Self {
        self.time = Some((column.to_owned(), from, until));
        self
    }

    /// Only pages whose `column` may hold one of these keys. Keys must be sorted; rows are not filtered.
    #[must_use]
    pub fn near_keys(mut self, column: &str, sorted_keys: Arc<Vec<u64>>) -> Self {
        self.keys = Some((column.to_owned(), sorted_keys));
        self
    }

    /// Only pages whose `column` may hold ids from `least` to `greatest`; rows are not filtered.
    #[must_use]
    pub fn between_ids(mut self, column: &str, least: [u8; 16], greatest: [u8; 16]) -> Self {
        self.ids = Some((column.to_owned(), least, greatest));
        self
    }

    /// Only these rows.
    #[must_use]
    pub fn rows(mut self, rows: RowRanges) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Only rows that match a predicate over `columns`; the other columns are decoded for those rows alone.
    #[must_use]
    pub fn matching(
        mut self,
        columns: &[&str],
        matches: impl Fn(&RecordBatch) -> BooleanArray + Send + Sync + 'static,
    ) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        self.filter = Some(RowPredicate { columns, matches: Arc::new(matches) });
        self
    }

    /// How many rows a batch has at most.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows);
        self
    }
}

/// Reads segments, and remembers the footers of the files it has read and the columns that are scanned often.
#[derive(Debug)]
pub struct SegmentReader {
    store: Arc<dyn BlobStore>,
    footers: Mutex<FooterCache>,
    pub(super) columns: ColumnCache,
}

/// What is known of a file before anything of it is read.
#[derive(Debug)]
pub(super) struct Footer {
    /// As the file has its columns.
    pub(super) plain: ArrowReaderMetadata,
    coded: OnceLock<ArrowReaderMetadata>,
}

impl Footer {
    /// With texts in dictionaries; made when first asked for.
    pub(super) fn coded(&self) -> Result<&ArrowReaderMetadata> {
        if let Some(coded) = self.coded.get() {
            return Ok(coded);
        }
        let options = ArrowReaderOptions::new().with_schema(coded_schema(self.plain.schema()));
        let coded = ArrowReaderMetadata::try_new(Arc::clone(self.plain.metadata()), options)?;
        Ok(self.coded.get_or_init(|| coded))
    }

    /// About how much memory a column of a row group takes when it is decoded.
    pub(super) fn column_bytes(&self, group: usize, column: &str) -> usize {
        let group = self.plain.metadata().row_group(group);
        let parts =
            group.columns().iter().filter(|part| part.column_path().parts().first().is_some_and(|name| name == column));
        let stored: i64 = parts.map(|part| part.uncompressed_size()).sum();
        usize::try_from(stored).unwrap_or(0).max(8 * group.num_rows() as usize)
    }

    fn memory_size(&self) -> usize {
        self.plain.metadata().memory_size()
    }
}

#[derive(Debug, Default)]
struct FooterCache {
    footers: HashMap<String, (Arc<Footer>, u64)>,
    indexes: HashMap<String, IdIndex>,
    bytes: usize,
    clock: u64,
}

/// Memory for footers with their page indexes.
const FOOTER_CACHE_BYTES: usize = 128 << 20;
/// Memory for decoded columns, unless configured: the core columns of some four million spans.
pub const COLUMN_CACHE_BYTES: usize = 256 << 20;

impl SegmentReader {
    pub(crate) fn new(store: Arc<dyn BlobStore>) -> Self {
        Self { store, footers: Mutex::default(), columns: ColumnCache::new(COLUMN_CACHE_BYTES) }
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
    pub async fn id_index(&self, segment: &Segment) -> Result<Option<IdIndex>> {
        let Some((path, size)) = &segment.index else { return Ok(None) };
        if let Some(index) = self.lock_cache().indexes.get(path) {
            return Ok(Some(index.clone()));
        }
        let index = IdIndex::open(self.store.as_ref(), path, *size).await?;
        self.lock_cache().indexes.insert(path.clone(), index.clone());
        Ok(Some(index))
    }

    /// Reads what is needed to find anything in a segment: its footer and the head of its id index.
    pub async fn open(&self, segment: &Segment) -> Result<()> {
        self.id_index(segment).await?;
        if segment.level > 0 {
            self.footer(segment).await?.coded()?;
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
        let mut cache = self.lock_cache();
        cache.indexes.remove(path);
        if let Some((footer, _)) = cache.footers.remove(path) {
            cache.bytes = cache.bytes.saturating_sub(footer.memory_size());
        }
    }

    /// Bytes of cached footers.
    pub fn cached_bytes(&self) -> usize {
        self.lock_cache().bytes
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
        l0::decode(&segment.path, &parts.pop().unwrap_or_default())
    }

    async fn parquet_stream(
        &self,
        segment: &Arc<Segment>,
        options: ReadOptions,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let footer = self.footer(segment).await?;
        let file = self.file_of(segment, &footer);
        let arrow_metadata = footer.plain.clone();
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

    /// The columns of a segment above level 0.
    pub(crate) async fn schema_of(&self, segment: &Segment) -> Result<SchemaRef> {
        Ok(Arc::clone(self.footer(segment).await?.plain.schema()))
    }

    /// The footer of a segment with its schema, which takes longer to make from the footer than a look-up may.
    pub(super) async fn footer(&self, segment: &Segment) -> Result<Arc<Footer>> {
        {
            let mut cache = self.lock_cache();
            cache.clock += 1;
            let clock = cache.clock;
            if let Some((footer, used)) = cache.footers.get_mut(&segment.path) {
                *used = clock;
                return Ok(Arc::clone(footer));
            }
        }
        let footer = Arc::new(read_footer(self.store.as_ref(), segment).await?);
        let plain = ArrowReaderMetadata::try_new(footer, ArrowReaderOptions::new())?;
        let footer = Arc::new(Footer { plain, coded: OnceLock::new() });
        let mut cache = self.lock_cache();
        cache.bytes += footer.memory_size();
        let clock = cache.clock;
        if let Some((other, _)) = cache.footers.insert(segment.path.clone(), (Arc::clone(&footer), clock)) {
            // Two questions read it at once.
            cache.bytes = cache.bytes.saturating_sub(other.memory_size());
        }
        while cache.bytes > FOOTER_CACHE_BYTES && cache.footers.len() > 1 {
            let oldest = cache.footers.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone());
            let Some((footer, _)) = oldest.and_then(|path| cache.footers.remove(&path)) else { break };
            cache.bytes = cache.bytes.saturating_sub(footer.memory_size());
        }
        Ok(footer)
    }

    pub(super) fn file_of(&self, segment: &Segment, footer: &Footer) -> SegmentFile {
        SegmentFile {
            store: Arc::clone(&self.store),
            path: segment.path.clone(),
            metadata: Arc::clone(footer.plain.metadata()),
        }
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, FooterCache> {
        // A cache that a panicking thread left behind is still a cache.
        self.footers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read_footer(store: &dyn BlobStore, segment: &Segment) -> Result<ParquetMetaData> {
    let size = segment.range.end;
    let mut tail_size = (64u64 << 10).min(size);
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
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

/// Leaves out the row groups and pages whose statistics show that they can't matter.
fn prune(metadata: &ArrowReaderMetadata, options: &ReadOptions) -> Result<(Vec<usize>, Option<RowSelection>)> {
    let file = metadata.metadata();
    let mut groups: Vec<usize> = (0..file.num_row_groups()).collect();
    let mut first_rows = Vec::with_capacity(groups.len());
    let mut next_row = 0usize;
    for group in file.row_groups() {
        first_rows.push(next_row);
        next_row += group.num_rows() as usize;
    }
    if let Some(rows) = &options.rows {
        groups.retain(|group| {
            let start = first_rows[*group];
            let end = start + file.row_group(*group).num_rows() as usize;
            rows.iter().any(|range| range.start < end && range.end > start)
        });
    }
    let tests = page_tests(options);
    for test in &tests {
        let Ok(converter) = StatisticsConverter::try_new(test.column, metadata.schema(), metadata.parquet_schema())
        else {
            continue;
        };
        let picked = groups.iter().map(|group| file.row_group(*group)).collect::<Vec<_>>();
        let mins = converter.row_group_mins(picked.iter().copied())?;
        let maxes = converter.row_group_maxes(picked.iter().copied())?;
        let mut at = 0;
        groups.retain(|_| {
            at += 1;
            (test.may_hold)(mins.as_ref(), maxes.as_ref(), at - 1)
        });
    }
    let selection = page_selection(metadata, &groups, &first_rows, &tests, options.rows.as_ref())?;
    Ok((groups, selection))
}

/// Whether the part of a column whose least and greatest values stand at an index may hold a row that is asked for.
struct PageTest<'a> {
    column: &'a str,
    may_hold: Box<MayHold<'a>>,
}

/// Least values, greatest values, and which of them to look at.
type MayHold<'a> = dyn Fn(&dyn Array, &dyn Array, usize) -> bool + 'a;

fn page_tests(options: &ReadOptions) -> Vec<PageTest<'_>> {
    let mut tests = Vec::new();
    if let Some((column, from, until)) = &options.time {
        let may_hold = move |mins: &dyn Array, maxes: &dyn Array, at: usize| {
            let mins = mins.as_primitive_opt::<TimestampNanosecondType>();
            let maxes = maxes.as_primitive_opt::<TimestampNanosecondType>();
            let (Some(mins), Some(maxes)) = (mins, maxes) else { return true };
            (mins.is_null(at) || mins.value(at) < *until) && (maxes.is_null(at) || maxes.value(at) >= *from)
        };
        tests.push(PageTest { column, may_hold: Box::new(may_hold) });
    }
    if let Some((column, keys)) = &options.keys {
        let may_hold = move |mins: &dyn Array, maxes: &dyn Array, at: usize| {
            let (Some(mins), Some(maxes)) =
                (mins.as_primitive_opt::<UInt64Type>(), maxes.as_primitive_opt::<UInt64Type>())
            else {
                return true;
            };
            if mins.is_null(at) || maxes.is_null(at) {
                return true;
            }
            let first = keys.partition_point(|key| *key < mins.value(at));
            keys.get(first).is_some_and(|key| *key <= maxes.value(at))
        };
        tests.push(PageTest { column, may_hold: Box::new(may_hold) });
    }
    if let Some((column, least, greatest)) = &options.ids {
        let may_hold = move |mins: &dyn Array, maxes: &dyn Array, at: usize| {
            let (Some(mins), Some(maxes)) = (mins.as_fixed_size_binary_opt(), maxes.as_fixed_size_binary_opt()) else {
                return true;
            };
            (mins.is_null(at) || mins.value(at) <= greatest.as_slice())
                && (maxes.is_null(at) || maxes.value(at) >= least.as_slice())
        };
        tests.push(PageTest { column, may_hold: Box::new(may_hold) });
    }
    tests
}

/// The rows of the chosen row groups that lie in pages which may matter, and in the rows asked for.
fn page_selection(
    metadata: &ArrowReaderMetadata,
    groups: &[usize],
    first_rows: &[usize],
    tests: &[PageTest<'_>],
    rows: Option<&RowRanges>,
) -> Result<Option<RowSelection>> {
    let file = metadata.metadata();
    let (column_index, offset_index) = (file.column_index(), file.offset_index());
    let mut selection: Option<RowSelection> = None;
    if let (Some(column_index), Some(offset_index)) = (column_index, offset_index) {
        for test in tests {
            let Ok(converter) = StatisticsConverter::try_new(test.column, metadata.schema(), metadata.parquet_schema())
            else {
                continue;
            };
            let Some(leaf) = converter.parquet_column_index() else { continue };
            let mins = converter.data_page_mins(column_index, offset_index, groups)?;
            let maxes = converter.data_page_maxes(column_index, offset_index, groups)?;
            let mut selectors = Vec::new();
            let mut at = 0;
            for group in groups {
                let group_rows = file.row_group(*group).num_rows() as usize;
                let pages = offset_index[*group][leaf].page_locations();
                for (number, page) in pages.iter().enumerate() {
                    let start = page.first_row_index as usize;
                    let end = pages.get(number + 1).map_or(group_rows, |next| next.first_row_index as usize);
                    let keep = (test.may_hold)(mins.as_ref(), maxes.as_ref(), at);
                    selectors.push(RowSelector { row_count: end - start, skip: !keep });
                    at += 1;
                }
            }
            let picked = RowSelection::from(selectors);
            selection = Some(selection.map_or_else(|| picked.clone(), |other| other.intersection(&picked)));
        }
    }
    if let Some(rows) = rows {
        let mut selectors = Vec::new();
        for group in groups {
            let (start, count) = (first_rows[*group], file.row_group(*group).num_rows() as usize);
            let mut at = 0;
            for range in rows {
                let from = range.start.max(start).min(start + count) - start;
                let until = range.end.max(start).min(start + count) - start;
                if from >= until || until <= at {
                    continue;
                }
                let from = from.max(at);
                selectors.push(RowSelector::skip(from - at));
                selectors.push(RowSelector::select(until - from));
                at = until;
            }
            selectors.push(RowSelector::skip(count - at));
        }
        let picked = RowSelection::from(selectors);
        selection = Some(selection.map_or_else(|| picked.clone(), |other| other.intersection(&picked)));
    }
    Ok(selection)
}

fn time_matches(batch: &RecordBatch, column: &str, from: i64, until: i64) -> BooleanArray {
    match batch.column_by_name(column).and_then(|times| times.as_any().downcast_ref::<TimestampNanosecondArray>()) {
        Some(times) => times.values().iter().map(|time| Some(*time >= from && *time < until)).collect(),
        None => std::iter::repeat_n(Some(false), batch.num_rows()).collect(),
    }
}

/// The same choice of rows and columns for a batch that is in memory.
fn select_in_memory(batch: &RecordBatch, options: &ReadOptions) -> Result<RecordBatch> {
    let mut keep: Option<BooleanArray> = None;
    let mut narrow = |matches: BooleanArray| -> Result<()> {
        keep = Some(match keep.take() {
            Some(before) => arrow::compute::and(&before, &matches)?,
            None => matches,
        });
        Ok(())
    };
    if let Some(rows) = &options.rows {
        let mut wanted = vec![false; batch.num_rows()];
        for range in rows {
            let end = range.end.min(wanted.len());
            wanted[range.start.min(end)..end].fill(true);
        }
        narrow(BooleanArray::from(wanted))?;
    }
    if let Some((column, from, until)) = &options.time {
        narrow(time_matches(batch, column, *from, *until))?;
    }
    if let Some(filter) = &options.filter {
        narrow((filter.matches)(batch))?;
    }
    // Columns that are not asked for are left out before rows are copied.
    let projected = match options.projection(&batch.schema()) {
        Some(picked) if picked.is_empty() => {
            let rows = keep.map_or(batch.num_rows(), |keep| keep.true_count());
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            return Ok(RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?);
        }
        Some(picked) => batch.project(&picked)?,
        None => batch.clone(),
    };
    Ok(match keep {
        Some(keep) => filter_record_batch(&projected, &keep)?,
        None => projected,
    })
}

fn split_batch(batch: RecordBatch, batch_rows: Option<usize>) -> Vec<RecordBatch> {
    if batch.num_rows() == 0 {
        return Vec::new();
    }
    match batch_rows {
        Some(rows) if rows > 0 && batch.num_rows() > rows => (0..batch.num_rows())
            .step_by(rows)
            .map(|start| batch.slice(start, rows.min(batch.num_rows() - start)))
            .collect(),
        _ => vec![batch],
    }
}
