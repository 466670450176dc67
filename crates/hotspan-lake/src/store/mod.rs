//! Where segments live: a folder, or an object store. What `put` has acknowledged survives a crash (R1).

mod direct_write;
mod local;
mod open_files;
mod syncs;

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use xxhash_rust::xxh3::Xxh3;

pub use local::LocalStore;
pub(crate) use local::create_durable_folder;
pub(crate) use syncs::{Syncs, SystemSyncs};

use crate::error::Result;

/// How much is read at once to make a checksum, so that a large object does not have to fit into memory.
const CHECKED_AT_ONCE: u64 = 1 << 20;

/// The checksum of a part of an object.
pub(crate) async fn checksum(store: &dyn BlobStore, path: &str, range: Range<u64>) -> Result<u64> {
    let mut hasher = Xxh3::new();
    let mut start = range.start;
    while start < range.end {
        let chunk = start..range.end.min(start + CHECKED_AT_ONCE);
        start = chunk.end;
        for bytes in store.get_ranges(path, std::slice::from_ref(&chunk)).await? {
            hasher.update(&bytes);
        }
    }
    Ok(hasher.digest())
}

/// An object and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its path inside the store.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Immutable objects under slash-separated paths.
///
/// Narrower than `object_store::ObjectStore` on purpose: objects are written once and never changed, and a
/// write that returns is durable, which that crate's local file system does not promise.
pub trait BlobStore: fmt::Debug + Send + Sync + 'static {
    /// Writes an object; it is durable once the future resolves.
    fn put(&self, path: &str, bytes: Bytes) -> BoxFuture<'_, Result<()>>;

    /// Starts an object that is too large to hold in memory.
    fn create(&self, path: &str) -> Result<Box<dyn BlobWriter>>;

    /// Reads an object whole.
    fn get(&self, path: &str) -> BoxFuture<'_, Result<Bytes>>;

    /// Reads ranges of an object.
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> BoxFuture<'_, Result<Vec<Bytes>>>;

    /// The object as a file, where it is one on this machine: whoever decodes it page by page then reads page by page too,
    /// into memory that is used again and again.
    fn file(&self, _path: &str) -> Result<Option<Arc<File>>> {
        Ok(None)
    }

    /// Deletes an object; deleting one that is not there is no error.
    fn delete(&self, path: &str) -> BoxFuture<'_, Result<()>>;

    /// All objects whose path starts with `prefix`.
    fn list(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<BlobMeta>>>;
}

/// An object being written. Dropping it unfinished leaves nothing behind.
pub trait BlobWriter: Write + Send {
    /// Makes the object visible and durable; answers its size.
    fn finish(self: Box<Self>) -> Result<u64>;
}
