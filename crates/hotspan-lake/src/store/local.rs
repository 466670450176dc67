//! Segments in a local folder, written so that a power cut leaves each either whole or absent.
//!
//! write to a temporary name -> fdatasync -> rename -> fsync of the folder. Only then is a segment mentioned
//! to the catalog, and only after that is a request acknowledged (R1).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::open_files::OpenFiles;
use super::syncs::{Syncs, SystemSyncs};
use super::{BlobMeta, BlobStore, BlobWriter, direct_write};
use crate::error::{LakeError, Result};

/// Files that were being written when the process ended have this suffix; they are swept at the next start.
const UNFINISHED: &str = ".unfinished";

/// A folder of segments.
#[derive(Debug)]
pub struct LocalStore {
    root: PathBuf,
    /// Device and inode of the folder that was opened.
    identity: (u64, u64),
    unfinished_count: AtomicU64,
    open: OpenFiles,
    syncs: Arc<dyn Syncs>,
}

impl LocalStore {
    /// Opens a folder, which is made if it is not there, and sweeps what an earlier process left unfinished.
    pub fn open(root: &Path) -> Result<Self> {
        Self::open_syncing(root, Arc::new(SystemSyncs))
    }

    pub(crate) fn open_syncing(root: &Path, syncs: Arc<dyn Syncs>) -> Result<Self> {
        create_durable_folder(root, syncs.as_ref()).map_err(failed("creating", root))?;
        sweep_unfinished(root).map_err(failed("sweeping", root))?;
        let identity = identity(root).map_err(failed("opening", root))?;
        let (root, open) = (root.to_owned(), OpenFiles::default());
        Ok(Self { root, identity, unfinished_count: AtomicU64::new(0), open, syncs })
    }

    /// Fails if the folder was moved or deleted, or is no longer mounted. A new one in its place would take what the next start looks
    /// for beside the catalog, which is still the old one.
    fn check_in_place(&self) -> io::Result<()> {
        match identity(&self.root) {
            Ok(identity) if identity == self.identity => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "the folder of the store was moved or deleted")),
        }
    }

    fn resolve(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn start_file(&self, path: &str) -> Result<UnfinishedFile> {
        self.check_in_place().map_err(failed("writing to", &self.root))?;
        let target = self.resolve(path);
        let number = self.unfinished_count.fetch_add(1, Ordering::Relaxed);
        let mut temporary = target.clone().into_os_string();
        temporary.push(format!(".{number}{UNFINISHED}"));
        UnfinishedFile::create(target, PathBuf::from(temporary), Arc::clone(&self.syncs))
    }
}

impl BlobStore for LocalStore {
    fn put(&self, path: &str, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        let unfinished = self.start_file(path);
        let write = move || {
            let mut file = unfinished?;
            file.fill(&bytes).map_err(failed("writing", &file.target))?;
            Box::new(file).finish().map(|_| ())
        };
        tokio::task::spawn_blocking(write).map(join_result).boxed()
    }

    fn create(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(self.start_file(path)?))
    }

    fn get(&self, path: &str) -> BoxFuture<'_, Result<Bytes>> {
        let target = self.resolve(path);
        let read = move || fs::read(&target).map(Bytes::from).map_err(failed("reading", &target));
        tokio::task::spawn_blocking(read).map(join_result).boxed()
    }

    /// Reads in place: the ranges of a query are small and mostly in the page cache, so that moving to
    /// another thread would cost more than the read.
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        let target = self.resolve(path);
        let result = self
            .open
            .get(path, &target)
            .and_then(|file| read_ranges(&file, ranges))
            .map_err(failed("reading", &target));
        std::future::ready(result).boxed()
    }

    fn file(&self, path: &str) -> Result<Option<Arc<File>>> {
        let target = self.resolve(path);
        self.open.get(path, &target).map(Some).map_err(failed("reading", &target))
    }

    fn delete(&self, path: &str) -> BoxFuture<'_, Result<()>> {
        let target = self.resolve(path);
        self.open.forget(path);
        let result = match fs::remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("deleting", &target)(error)),
            _ => Ok(()),
        };
        std::future::ready(result).boxed()
    }

    fn list(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<BlobMeta>>> {
        let mut found = Vec::new();
        // Only the folder that the prefix names: a tenant's few objects are found without walking past all others.
        let folder = self.resolve(prefix.rsplit_once('/').map_or("", |(folder, _)| folder));
        let result = match list_files(&self.root, &folder, &mut found) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != self.root => Ok(()),
            result => result.map_err(failed("listing", &folder)),
        };
        let prefix = prefix.to_owned();
        let result = result.map(|()| {
            found.retain(|blob| blob.path.starts_with(&prefix));
            found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            found
        });
        std::future::ready(result).boxed()
    }
}

fn join_result<T>(joined: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    // A blocking task is only cancelled when the runtime shuts down.
    joined.unwrap_or(Err(LakeError::ShuttingDown))
}

/// A file that becomes visible under its name when it is finished, and is removed when it is dropped before.
#[derive(Debug)]
struct UnfinishedFile {
    target: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
    syncs: Arc<dyn Syncs>,
}

impl UnfinishedFile {
    fn create(target: PathBuf, temporary: PathBuf, syncs: Arc<dyn Syncs>) -> Result<Self> {
        if let Some(folder) = target.parent() {
            create_durable_folder(folder, syncs.as_ref()).map_err(failed("creating", folder))?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(failed("creating", &temporary))?;
        Ok(Self { target, temporary, file: Some(BufWriter::with_capacity(1 << 16, file)), syncs })
    }

    fn writer(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is finished already"))
    }

    /// Writes all of its content at once.
    fn fill(&mut self, bytes: &[u8]) -> io::Result<()> {
        match direct_write::fill(&self.temporary, bytes)? {
            true => Ok(()),
            false => self.write_all(bytes),
        }
    }

    fn publish(&mut self) -> io::Result<u64> {
        let writer = self.file.take().ok_or_else(|| io::Error::other("the file is finished already"))?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.syncs.content(&file)?;
        let size = file.metadata()?.len();
        fs::rename(&self.temporary, &self.target)?;
        if let Some(folder) = self.target.parent() {
            self.syncs.names(folder)?;
        }
        Ok(size)
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl BlobWriter for UnfinishedFile {
    fn finish(mut self: Box<Self>) -> Result<u64> {
        let published = self.publish();
        if published.is_err() {
            // Best effort: the next start sweeps what is left.
            let _ = fs::remove_file(&self.temporary);
        }
        published.map_err(failed("writing", &self.target))
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Best effort: the next start sweeps what is left.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LakeError {
    let path = path.display().to_string();
    move |source| LakeError::Storage { action, path, source }
}

fn read_ranges(file: &File, ranges: &[Range<u64>]) -> io::Result<Vec<Bytes>> {
    let read = |range: &Range<u64>| {
        let length = usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, range.start)?;
        Ok(Bytes::from(bytes))
    };
    ranges.iter().map(read).collect()
}

/// Makes a folder and its parents, and makes their names durable.
pub(crate) fn create_durable_folder(folder: &Path, syncs: &dyn Syncs) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return fs::create_dir(folder) };
    // A name without a path is one in the current folder.
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    create_durable_folder(parent, syncs)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    syncs.names(parent)
}

fn identity(folder: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(folder).map(|folder| (folder.dev(), folder.ino()))
}

fn sweep_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sweep_unfinished(&entry.path())?;
        } else if entry.file_name().to_string_lossy().ends_with(UNFINISHED) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn list_files(root: &Path, folder: &Path, found: &mut Vec<BlobMeta>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            list_files(root, &path, found)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            let size = match entry.metadata() {
                // Deleted since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?.len(),
            };
            found.push(BlobMeta { path: relative.to_string_lossy().into_owned(), size });
        }
    }
    Ok(())
}
