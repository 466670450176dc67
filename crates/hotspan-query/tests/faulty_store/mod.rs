//! A disk that misbehaves, by a seed: writes fail before, in the middle and after, come late, or find no room; what was
//! not synced when the power goes is lost or torn.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use hotspan_lake::store::{BlobMeta, BlobStore, BlobWriter};
use hotspan_lake::{LakeError, Result};

/// How it misbehaves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// One write in so many fails.
    pub(crate) fail_one_in: Option<u64>,
    /// How long each write takes.
    pub(crate) delay: Duration,
    /// How many bytes there is room for.
    pub(crate) room: Option<usize>,
    /// Everything random follows from it.
    pub(crate) seed: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct FaultyStore {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Debug)]
struct Disk {
    objects: BTreeMap<String, Object>,
    faults: Faults,
    chance: u64,
    failed: u64,
}

#[derive(Debug)]
struct Object {
    bytes: Bytes,
    synced: bool,
}

impl FaultyStore {
    pub(crate) fn new(faults: Faults) -> Self {
        let disk = Disk { objects: BTreeMap::new(), faults, chance: faults.seed, failed: 0 };
        Self { disk: Arc::new(Mutex::new(disk)) }
    }

    /// What was not synced is gone, or cut short.
    pub(crate) fn lose_power(&self) {
        let mut disk = self.disk();
        let unsynced: Vec<String> =
            disk.objects.iter().filter(|(_, object)| !object.synced).map(|(path, _)| path.clone()).collect();
        for path in unsynced {
            let cut = disk.random(3);
            match disk.objects.remove(&path) {
                Some(object) if cut == 0 => {
                    let bytes = object.bytes.slice(0..object.bytes.len() / 2);
                    disk.objects.insert(path, Object { bytes, synced: true });
                }
                _ => {}
            }
        }
    }

    /// From here on, nothing fails and there is room.
    pub(crate) fn heal(&self) {
        self.disk().faults = Faults::default();
    }

    /// How many writes failed.
    pub(crate) fn faults_so_far(&self) -> u64 {
        self.disk().failed
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.disk().write(path, bytes).map_err(|source| LakeError::Storage {
            action: "writing",
            path: path.to_owned(),
            source,
        })
    }
}

impl Disk {
    fn random(&mut self, below: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % below
    }

    fn write(&mut self, path: &str, bytes: Bytes) -> io::Result<()> {
        let used: usize = self.objects.values().map(|object| object.bytes.len()).sum();
        if self.faults.room.is_some_and(|room| used + bytes.len() > room) {
            self.failed += 1;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let fails = self.faults.fail_one_in.is_some_and(|count| self.random(count) == 0);
        if !fails {
            self.objects.insert(path.to_owned(), Object { bytes, synced: true });
            return Ok(());
        }
        self.failed += 1;
        match self.random(3) {
            0 => {}
            // Torn in the middle, and nothing of it synced.
            1 => {
                let half = bytes.slice(0..bytes.len() / 2);
                self.objects.insert(path.to_owned(), Object { bytes: half, synced: false });
            }
            // All of it is there, but nobody knows.
            _ => {
                self.objects.insert(path.to_owned(), Object { bytes, synced: true });
            }
        }
        Err(io::Error::other("the disk has a bad day"))
    }
}

impl BlobStore for FaultyStore {
    fn put(&self, path: &str, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        let (path, delay) = (path.to_owned(), self.disk().faults.delay);
        async move {
            tokio::time::sleep(delay).await;
            self.write(&path, bytes)
        }
        .boxed()
    }

    fn create(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(FaultyWriter { store: self.clone(), path: path.to_owned(), bytes: Vec::new() }))
    }

    fn get(&self, path: &str) -> BoxFuture<'_, Result<Bytes>> {
        let found = self.disk().objects.get(path).map(|object| object.bytes.clone());
        std::future::ready(found.ok_or_else(|| missing(path))).boxed()
    }

    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        let found = self.disk().objects.get(path).map(|object| object.bytes.clone()).ok_or_else(|| missing(path));
        let parts = found.and_then(|bytes| {
            let part = |range: &Range<u64>| {
                let range = range.start as usize..range.end as usize;
                if range.end <= bytes.len() { Ok(bytes.slice(range)) } else { Err(missing(path)) }
            };
            ranges.iter().map(part).collect()
        });
        std::future::ready(parts).boxed()
    }

    fn delete(&self, path: &str) -> BoxFuture<'_, Result<()>> {
        self.disk().objects.remove(path);
        std::future::ready(Ok(())).boxed()
    }

    fn list(&self, prefix: &str) -> BoxFuture<'_, Result<Vec<BlobMeta>>> {
        let disk = self.disk();
        let objects = disk.objects.iter().filter(|(path, _)| path.starts_with(prefix));
        let found = objects.map(|(path, object)| BlobMeta { path: path.clone(), size: object.bytes.len() as u64 });
        std::future::ready(Ok(found.collect())).boxed()
    }
}

fn missing(path: &str) -> LakeError {
    LakeError::Storage { action: "reading", path: path.to_owned(), source: io::ErrorKind::NotFound.into() }
}

#[derive(Debug)]
struct FaultyWriter {
    store: FaultyStore,
    path: String,
    bytes: Vec<u8>,
}

impl Write for FaultyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for FaultyWriter {
    fn finish(self: Box<Self>) -> Result<u64> {
        let size = self.bytes.len() as u64;
        std::thread::sleep(self.store.disk().faults.delay);
        self.store.write(&self.path, Bytes::from(self.bytes))?;
        Ok(size)
    }
}
