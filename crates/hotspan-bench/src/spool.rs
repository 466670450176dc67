//! Requests on disk, compressed and ready to send, so that making them does not count and memory stays bounded.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;

/// One request: where it is, and what it holds.
#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: u64,
    length: usize,
}

/// Requests in the order in which they are sent.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    entries: Vec<Entry>,
    /// Spans or samples in all requests.
    pub(crate) items: u64,
    /// Bytes before compression.
    pub(crate) raw_bytes: u64,
}

/// A spool that is being filled.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    out: BufWriter<File>,
    spool: Spool,
    end: u64,
}

impl SpoolWriter {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let open = File::options().read(true).write(true).create(true).truncate(true).open(path);
        let file = open.with_context(|| format!("cannot make {}", path.display()))?;
        let out = BufWriter::with_capacity(1 << 20, file.try_clone()?);
        Ok(Self { out, spool: Spool { file, entries: Vec::new(), items: 0, raw_bytes: 0 }, end: 0 })
    }

    /// Adds a request that holds so many spans or samples.
    pub(crate) fn add(&mut self, request: &[u8], items: usize) -> anyhow::Result<()> {
        let mut gzip = GzEncoder::new(Vec::with_capacity(request.len() / 3), Compression::fast());
        gzip.write_all(request)?;
        let compressed = gzip.finish()?;
        self.out.write_all(&compressed)?;
        self.spool.entries.push(Entry { offset: self.end, length: compressed.len() });
        self.spool.items += items as u64;
        self.spool.raw_bytes += request.len() as u64;
        self.end += compressed.len() as u64;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<Spool> {
        self.out.flush()?;
        Ok(self.spool)
    }
}

impl Spool {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The request with this number, gzip and all.
    pub(crate) fn read(&self, number: usize) -> anyhow::Result<Vec<u8>> {
        let entry = self.entries.get(number).context("no such request")?;
        let mut bytes = vec![0; entry.length];
        self.file.read_exact_at(&mut bytes, entry.offset)?;
        Ok(bytes)
    }
}
