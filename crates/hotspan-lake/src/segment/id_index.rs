//! The id index of a Parquet segment: from a trace or span id to the rows that hold it.
//!
//! Samples are sorted by series and time, so the rows of one span lie together but anywhere in a file. The
//! index answers "where" with one small read however large the file is, which keeps `samples of span`,
//! `samples of trace` and `trace by id` flat as data grows.
//!
//! ```text
//! "HSIDX\x02"  kinds (u8)
//! for each kind: tag (u8), bucket bits (u8), entries (u32), where its part starts (u64), bytes of a row number (u8)
//! for each kind: end of each bucket (u32 × 2^bits), then the entries (fingerprint u16, first row), by bucket
//! ```
//!
//! Ids are random, so the top bits of their hash spread them evenly over buckets of about 64 entries; the next
//! 16 bits are the fingerprint. A false hit costs the reading of one page, and is sorted out by comparing the id.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{LakeError, Result};
use crate::store::BlobStore;

const MAGIC: &[u8; 6] = b"HSIDX\x02";
const KIND_HEADER: usize = 1 + 1 + 4 + 8 + 1;
const FINGERPRINT_BYTES: usize = 2;
const ENTRIES_PER_BUCKET: usize = 64;

/// What kind of id an index maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum IdKind {
    /// Trace ids.
    Trace = 1,
    /// Span ids.
    Span = 2,
}

/// Collects the runs of equal ids of a file while it is written.
#[derive(Debug, Default)]
pub(crate) struct IdIndexBuilder {
    kinds: Vec<(IdKind, Vec<(u64, u32)>)>,
}

impl IdIndexBuilder {
    pub(crate) fn new(kinds: &[IdKind]) -> Self {
        Self { kinds: kinds.iter().map(|kind| (*kind, Vec::new())).collect() }
    }

    /// Notes that a run of rows with this id starts at `row`.
    pub(crate) fn add(&mut self, kind: IdKind, id: &[u8], row: u32) {
        if let Some((_, entries)) = self.kinds.iter_mut().find(|(other, _)| *other == kind) {
            entries.push((xxh3_64(id), row));
        }
    }

    /// The index as bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend_from_slice(MAGIC);
        header.push(self.kinds.len() as u8);
        let mut start = (header.len() + KIND_HEADER * self.kinds.len()) as u64;
        let mut parts = Vec::new();
        for (kind, mut entries) in self.kinds {
            entries.sort_unstable();
            let bits = bucket_bits(entries.len());
            let row_bytes = row_bytes(entries.iter().map(|(_, row)| *row).max().unwrap_or(0));
            header.push(kind as u8);
            header.push(bits);
            header.extend_from_slice(&(entries.len() as u32).to_le_bytes());
            header.extend_from_slice(&start.to_le_bytes());
            header.push(row_bytes);
            let part = encode_part(&entries, bits, row_bytes);
            start += part.len() as u64;
            parts.push(part);
        }
        header.extend(parts.into_iter().flatten());
        header
    }
}

fn bucket_bits(entries: usize) -> u8 {
    let buckets = entries.div_ceil(ENTRIES_PER_BUCKET).max(1).next_power_of_two();
    buckets.trailing_zeros() as u8
}

fn bucket_of(hash: u64, bits: u8) -> usize {
    // A shift by 64 would overflow; with no bits there is only one bucket.
    if bits == 0 { 0 } else { (hash >> (64 - u32::from(bits))) as usize }
}

fn fingerprint_of(hash: u64, bits: u8) -> u16 {
    (hash >> (48 - u32::from(bits))) as u16
}

/// As many bytes as the largest row number needs: three in nearly every file.
fn row_bytes(largest: u32) -> u8 {
    (u32::BITS - largest.leading_zeros()).div_ceil(8).max(1) as u8
}

fn encode_part(entries: &[(u64, u32)], bits: u8, row_bytes: u8) -> Vec<u8> {
    let buckets = 1usize << bits;
    let mut part = Vec::with_capacity(4 * buckets + (FINGERPRINT_BYTES + usize::from(row_bytes)) * entries.len());
    let mut at = 0;
    for bucket in 0..buckets {
        while at < entries.len() && bucket_of(entries[at].0, bits) == bucket {
            at += 1;
        }
        part.extend_from_slice(&(at as u32).to_le_bytes());
    }
    for (hash, row) in entries {
        part.extend_from_slice(&fingerprint_of(*hash, bits).to_le_bytes());
        part.extend_from_slice(&row.to_le_bytes()[..usize::from(row_bytes)]);
    }
    part
}

/// So often an index is read where it is asked for before it is worth keeping.
const READ_TIMES: u32 = 2;

/// The opened header of an index: enough to find the one bucket that an id can be in. One that is asked again and again is
/// kept whole, since a trace of many spans asks every index for each of them.
#[derive(Debug)]
pub struct IdIndex {
    path: String,
    size: u64,
    kinds: Vec<KindPart>,
    uses: AtomicU32,
    whole: OnceLock<Bytes>,
}

#[derive(Debug, Clone, Copy)]
struct KindPart {
    tag: u8,
    bits: u8,
    entries: u32,
    start: u64,
    row_bytes: u8,
}

impl KindPart {
    fn entry_bytes(self) -> usize {
        FINGERPRINT_BYTES + usize::from(self.row_bytes)
    }

    /// Where the entries start, after the ends of the buckets.
    fn entries_start(self) -> u64 {
        self.start + (4 << self.bits)
    }

    /// Where the entries from `first` to before `last` lie.
    fn range(self, first: u32, last: u32) -> Range<u64> {
        let at = |entry: u32| self.entries_start() + self.entry_bytes() as u64 * u64::from(entry);
        at(first)..at(last)
    }

    /// The fingerprint and first row of each entry in these bytes.
    fn entries(self, bytes: &[u8]) -> impl Iterator<Item = (u16, u32)> {
        bytes.chunks_exact(self.entry_bytes()).map(|entry| {
            let row = entry[FINGERPRINT_BYTES..].iter().rev().fold(0, |row, byte| row << 8 | u32::from(*byte));
            (u16::from_le_bytes([entry[0], entry[1]]), row)
        })
    }
}

impl IdIndex {
    /// Reads the header of an index.
    pub async fn open(store: &dyn BlobStore, path: &str, size: u64) -> Result<Self> {
        let header_size = (MAGIC.len() + 1 + 4 * KIND_HEADER) as u64;
        let header = read_one(store, path, 0..size.min(header_size)).await?;
        let damaged = |reason: &str| LakeError::Damaged { path: path.to_owned(), reason: reason.to_owned() };
        let rest = header.strip_prefix(MAGIC.as_slice()).ok_or_else(|| damaged("not an id index"))?;
        let (count, mut rest) = rest.split_first().ok_or_else(|| damaged("the header is cut short"))?;
        let mut kinds = Vec::new();
        for _ in 0..*count {
            let (kind, after) = rest.split_at_checked(KIND_HEADER).ok_or_else(|| damaged("the header is cut short"))?;
            rest = after;
            let part = KindPart {
                tag: kind[0],
                bits: kind[1],
                entries: u32::from_le_bytes([kind[2], kind[3], kind[4], kind[5]]),
                start: u64::from_le_bytes([kind[6], kind[7], kind[8], kind[9], kind[10], kind[11], kind[12], kind[13]]),
                row_bytes: kind[14],
            };
            if part.bits > 32 || !(1..=4).contains(&part.row_bytes) {
                return Err(damaged("the header makes no sense"));
            }
            let length = (4u64 << part.bits) + part.entry_bytes() as u64 * u64::from(part.entries);
            if part.start.checked_add(length).is_none_or(|end| end > size) {
                return Err(damaged("a part lies outside the file"));
            }
            kinds.push(part);
        }
        Ok(Self { path: path.to_owned(), size, kinds, uses: AtomicU32::new(0), whole: OnceLock::new() })
    }

    /// Whether ids of this kind are in it.
    pub(crate) fn maps(&self, kind: IdKind) -> bool {
        self.kinds.iter().any(|part| part.tag == kind as u8)
    }

    /// How many bytes the index has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Notes that it is about to be asked. Says whether it should be kept whole, which it is not yet.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.uses.fetch_add(1, Ordering::Relaxed) >= READ_TIMES && self.whole.get().is_none()
    }

    /// All of it.
    pub(super) async fn read_whole(&self, store: &dyn BlobStore) -> Result<Bytes> {
        read_one(store, &self.path, 0..self.size).await
    }

    /// Keeps it whole from now on. Says whether it was not kept before.
    pub(super) fn keep(&self, whole: Bytes) -> bool {
        self.whole.set(whole).is_ok()
    }

    /// Bytes that are kept of it.
    pub(super) fn kept_bytes(&self) -> usize {
        self.whole.get().map_or(0, Bytes::len)
    }

    async fn read(&self, store: &dyn BlobStore, range: Range<u64>) -> Result<Bytes> {
        let mut parts = self.read_all(store, std::slice::from_ref(&range)).await?;
        Ok(parts.pop().unwrap_or_default())
    }

    async fn read_all(&self, store: &dyn BlobStore, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(whole) = self.whole.get() else { return store.get_ranges(&self.path, ranges).await };
        let part = |range: &Range<u64>| {
            let end = range.end.min(whole.len() as u64);
            whole.slice(range.start.min(end) as usize..end as usize)
        };
        Ok(ranges.iter().map(part).collect())
    }

    /// The first rows of all runs that may hold `id`, in ascending order.
    pub async fn rows_of(&self, store: &dyn BlobStore, kind: IdKind, id: &[u8]) -> Result<Vec<u32>> {
        let Some(part) = self.kinds.iter().find(|part| part.tag == kind as u8) else {
            return Ok(Vec::new());
        };
        let hash = xxh3_64(id);
        let bucket = bucket_of(hash, part.bits) as u64;
        // The end of the bucket before is where this bucket starts; bucket 0 starts at 0.
        let ends_start = part.start + 4 * bucket.saturating_sub(1);
        let ends = self.read(store, ends_start..part.start + 4 * bucket + 4).await?;
        let end_at = |at: usize| {
            let bytes = ends.get(4 * at..4 * at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            bytes.map_or(0, u32::from_le_bytes)
        };
        let (first, last) = if bucket == 0 { (0, end_at(0)) } else { (end_at(0), end_at(1)) };
        if first > last || last > part.entries {
            return Err(LakeError::Damaged { path: self.path.clone(), reason: "bucket ends do not ascend".to_owned() });
        }
        let entries = self.read(store, part.range(first, last)).await?;
        let wanted = fingerprint_of(hash, part.bits);
        let mut rows: Vec<u32> =
            part.entries(&entries).filter(|(fingerprint, _)| *fingerprint == wanted).map(|(_, row)| row).collect();
        rows.sort_unstable();
        Ok(rows)
    }
}

/// With more buckets than this, all are read: one long read is cheaper than many short ones.
const FEW_BUCKETS: usize = 256;

impl IdIndex {
    /// The first rows of all runs that may hold one of the ids with these hashes, in ascending order, each once. The
    /// hashes must be sorted.
    pub(crate) async fn rows_of_all(&self, store: &dyn BlobStore, kind: IdKind, hashes: &[u64]) -> Result<Vec<u32>> {
        let Some(part) = self.kinds.iter().find(|part| part.tag == kind as u8) else {
            return Ok(Vec::new());
        };
        let mut buckets: Vec<usize> = hashes.iter().map(|hash| bucket_of(*hash, part.bits)).collect();
        buckets.dedup();
        let entries_start = part.entries_start();
        let ranges = if buckets.len() > FEW_BUCKETS {
            let ends = self.read(store, part.start..entries_start).await?;
            entry_ranges(*part, &buckets, |bucket| word_at(&ends, bucket))
        } else {
            // The ends of the bucket before and of the bucket itself, which are neighbours.
            let ends_of = |bucket: &usize| {
                let first = part.start + 4 * (*bucket as u64).saturating_sub(1);
                first..part.start + 4 * (*bucket as u64) + 4
            };
            let ends = self.read_all(store, &buckets.iter().map(ends_of).collect::<Vec<_>>()).await?;
            let words: HashMap<usize, u32> = buckets
                .iter()
                .zip(&ends)
                .flat_map(|(bucket, ends)| {
                    let before = bucket.checked_sub(1).map(|before| (before, word_at(ends, 0)));
                    before.into_iter().chain([(*bucket, word_at(ends, ends.len() / 4 - 1))])
                })
                .collect();
            entry_ranges(*part, &buckets, |bucket| words.get(&bucket).copied().unwrap_or(0))
        };
        let parts: Vec<Bytes> = if buckets.len() > FEW_BUCKETS {
            let whole = self.read(store, part.range(0, part.entries)).await?;
            let slice = |range: &Range<u64>| {
                let (from, until) = ((range.start - entries_start) as usize, (range.end - entries_start) as usize);
                whole.slice(from.min(whole.len())..until.min(whole.len()))
            };
            ranges.iter().map(slice).collect()
        } else {
            self.read_all(store, &ranges).await?
        };
        let mut rows = Vec::new();
        let mut at = 0;
        for (bucket, entries) in buckets.into_iter().zip(parts) {
            let first = at;
            while at < hashes.len() && bucket_of(hashes[at], part.bits) == bucket {
                at += 1;
            }
            let mut fingerprints: Vec<u16> =
                hashes[first..at].iter().map(|hash| fingerprint_of(*hash, part.bits)).collect();
            fingerprints.sort_unstable();
            let may_match = |(fingerprint, _): &(u16, u32)| fingerprints.binary_search(fingerprint).is_ok();
            rows.extend(part.entries(&entries).filter(may_match).map(|(_, row)| row));
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }
}

/// Where the entries of buckets lie, given where each bucket ends.
fn entry_ranges(part: KindPart, buckets: &[usize], end_of: impl Fn(usize) -> u32) -> Vec<Range<u64>> {
    let range_of = |bucket: &usize| {
        let first = bucket.checked_sub(1).map_or(0, &end_of).min(part.entries);
        part.range(first, end_of(*bucket).min(part.entries).max(first))
    };
    buckets.iter().map(range_of).collect()
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(4 * at..4 * at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    word.map_or(0, u32::from_le_bytes)
}

async fn read_one(store: &dyn BlobStore, path: &str, range: Range<u64>) -> Result<Bytes> {
    if range.is_empty() {
        return Ok(Bytes::new());
    }
    let mut parts = store.get_ranges(path, std::slice::from_ref(&range)).await?;
    Ok(parts.pop().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LocalStore;

    /// Scenario: many ids, some with several runs, in indexes of several sizes, read from the store and kept whole.
    /// Guarantee: every run is found, an absent id finds next to nothing.
    #[tokio::test]
    async fn finds_every_run() {
        let folder = tempfile::tempdir().unwrap();
        let store = LocalStore::open(folder.path()).unwrap();
        for (count, kept) in [0u32, 1, 63, 64, 65, 5000].into_iter().flat_map(|count| [(count, false), (count, true)]) {
            let mut builder = IdIndexBuilder::new(&[IdKind::Trace, IdKind::Span]);
            for number in 0..count {
                builder.add(IdKind::Span, &number.to_be_bytes(), number);
                builder.add(IdKind::Trace, &(number / 2).to_be_bytes(), number);
            }
            let bytes = builder.finish();
            let (path, size) = (format!("index-{count}"), bytes.len() as u64);
            store.put(&path, Bytes::from(bytes)).await.unwrap();
            let index = IdIndex::open(&store, &path, size).await.unwrap();
            if kept {
                let whole = index.read_whole(&store).await.unwrap();
                assert!(index.keep(whole));
                // Nothing is read any more.
                store.delete(&path).await.unwrap();
            }
            for number in 0..count {
                let rows = index.rows_of(&store, IdKind::Span, &number.to_be_bytes()).await.unwrap();
                assert!(rows.contains(&number), "{number} of {count}");
                let rows = index.rows_of(&store, IdKind::Trace, &(number / 2).to_be_bytes()).await.unwrap();
                assert!(rows.contains(&number), "{number} of {count}");
            }
            let mut hashes: Vec<u64> = (0..count).map(|number| xxh3_64(&number.to_be_bytes())).collect();
            hashes.sort_unstable();
            for some in [0, 1, 200.min(hashes.len()), hashes.len()] {
                let rows = index.rows_of_all(&store, IdKind::Span, &hashes[..some.min(hashes.len())]).await.unwrap();
                let wanted = (0..count).filter(|number| {
                    hashes[..some.min(hashes.len())].binary_search(&xxh3_64(&number.to_be_bytes())).is_ok()
                });
                assert!(wanted.into_iter().all(|number| rows.binary_search(&number).is_ok()), "{some} of {count}");
            }
            let absent = index.rows_of(&store, IdKind::Span, &u32::MAX.to_be_bytes()).await.unwrap();
            assert!(absent.len() <= 1);
        }
    }

    /// Scenario: files whose last row is the first or last that one, two, three and four bytes can say.
    /// Guarantee: the row is found, and takes no more bytes than it needs.
    #[tokio::test]
    async fn rows_take_as_many_bytes_as_they_need() {
        let folder = tempfile::tempdir().unwrap();
        let store = LocalStore::open(folder.path()).unwrap();
        for (last, needed) in
            [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (0xff_ffff, 3), (0x100_0000, 4), (u32::MAX, 4)]
        {
            let mut builder = IdIndexBuilder::new(&[IdKind::Trace]);
            builder.add(IdKind::Trace, b"first", 0);
            builder.add(IdKind::Trace, b"last", last);
            let bytes = builder.finish();
            assert_eq!(bytes.len(), MAGIC.len() + 1 + KIND_HEADER + 4 + 2 * (FINGERPRINT_BYTES + needed), "{last}");
            let (path, size) = (format!("index-{last}"), bytes.len() as u64);
            store.put(&path, Bytes::from(bytes)).await.unwrap();
            let index = IdIndex::open(&store, &path, size).await.unwrap();
            assert_eq!(index.rows_of(&store, IdKind::Trace, b"last").await.unwrap(), [last]);
            let mut hashes = [xxh3_64(b"first"), xxh3_64(b"last")];
            hashes.sort_unstable();
            let rows = index.rows_of_all(&store, IdKind::Trace, &hashes).await.unwrap();
            assert_eq!(rows, if last == 0 { vec![0] } else { vec![0, last] });
        }
    }
    /// Scenario: indexes with bytes changed anywhere, the ends of buckets and the header most of all, or cut short; each read
    /// where it is asked for, and kept whole.
    /// Guarantee: an error or some rows, which are compared with the id anyway; never a panic.
    #[tokio::test]
    async fn damage_is_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        let store = LocalStore::open(folder.path()).unwrap();
        let mut builder = IdIndexBuilder::new(&[IdKind::Trace, IdKind::Span]);
        for number in 0..1000u32 {
            builder.add(IdKind::Span, &number.to_be_bytes(), number);
            builder.add(IdKind::Trace, &(number / 2).to_be_bytes(), number);
        }
        let bytes = builder.finish();
        let mut hashes: Vec<u64> = (0..1000u32).map(|number| xxh3_64(&number.to_be_bytes())).collect();
        hashes.sort_unstable();
        let mut chance = 1u64;
        let mut random = |below: usize| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) as usize % below
        };
        for round in 0..300 {
            let mut wrong = bytes.clone();
            for _ in 0..1 + random(3) {
                let reach = [MAGIC.len() + 1 + 2 * KIND_HEADER, 200, wrong.len()][random(3)];
                let at = random(reach);
                wrong[at] = [0, 1, 0x7f, 0xff, random(256) as u8][random(5)];
            }
            if round % 4 == 0 {
                wrong.truncate(random(wrong.len()));
            }
            // The catalog knows how long it was.
            let size = if round % 8 == 0 { bytes.len() } else { wrong.len() } as u64;
            store.put("index", Bytes::from(wrong)).await.unwrap();
            let opened = IdIndex::open(&store, "index", size).await;
            for kept in [false, true] {
                let Ok(index) = &opened else { break };
                if kept && let Ok(whole) = index.read_whole(&store).await {
                    index.keep(whole);
                }
                for kind in [IdKind::Trace, IdKind::Span] {
                    let _ = index.rows_of(&store, kind, &7u32.to_be_bytes()).await;
                    let _ = index.rows_of_all(&store, kind, &hashes[..10]).await;
                    let _ = index.rows_of_all(&store, kind, &hashes).await;
                }
            }
            store.delete("index").await.unwrap();
        }
    }
}
