//! Footers of Parquet files with their page indexes: read once, and kept as far as memory is given to them (R5).

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::Segment;
use super::chunk::coded_schema;
use crate::error::{LakeError, Result};
use crate::store::BlobStore;

/// Memory for footers with their page indexes.
const MOST_BYTES: usize = 128 << 20;

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
        let footer = Arc::new(Footer { plain, coded: OnceLock::new() });
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
        // A cache that a panicking thread left behind is still a cache.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
