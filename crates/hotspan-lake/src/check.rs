//! Whether a store is sound: every segment present, whole and readable, catalog and files in agreement.
//!
//! Everything is read, nothing is mended. The store must not be in use, since a server deletes files that it
//! has compacted. A byte that changed anywhere in a live object is found: rows by their checksum, the frame of
//! a level 0 object by comparing it with the catalog, an id index by building it again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use bytes::Bytes;
use futures::TryStreamExt;
use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use sqlx::{Connection as _, Row};
use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::StoreLock;
use crate::error::{LakeError, Result};
use crate::object_name::ObjectName;
use crate::orphans::refuse_lost_catalog;
use crate::segment::id_index::{IdIndexBuilder, IdKind};
use crate::segment::{ReadOptions, Segment, SegmentReader, l0};
use crate::stats::{catalog_file, open_catalog};
use crate::store::{BlobStore, LocalStore, checksum};
use crate::table::Table;
use crate::{Catalog, arrays};

/// What a level 0 object has after its contents: their length, and the same mark as at its start.
const L0_MARK: usize = 8;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Objects of live segments, with their indexes.
    pub objects: u64,
    /// Live segments.
    pub segments: u64,
    /// Rows that were read.
    pub rows: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Objects that are not what the catalog says.
    pub damage: Vec<Damage>,
    /// Files that no commit mentions. They take space and do no harm; the server deletes them when it starts.
    pub orphans: Vec<String>,
}

/// A damaged object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Its path inside the store's data folder.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// How far a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Objects done.
    pub objects: u64,
    /// Objects in all.
    pub of_objects: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// What no commit enters of a segment. The file of one that is half removed would be deleted.
const CONTRADICTIONS: &str = "
    SELECT path, fault FROM (
        SELECT s.path, CASE
            WHEN s.created_at <> came.committed_at THEN 'the catalog says two times at which it came'
            WHEN s.data_version > s.created_version THEN 'the catalog has it older than its rows'
            WHEN (s.removed_version IS NULL) <> (s.removed_at IS NULL) THEN 'the catalog has it half removed'
            WHEN s.removed_version <= s.created_version THEN 'the catalog has it removed before it came'
        END AS fault
        FROM segment AS s LEFT JOIN version AS came ON came.id = s.created_version
    ) WHERE fault IS NOT NULL
";

/// Checks the store in a folder; fails if it is in use, or if its catalog can't be read at all.
pub async fn check(folder: &Path, mut progress: impl FnMut(Progress)) -> Result<CheckReport> {
    // First, so that checking a wrong folder leaves no lock and no catalog behind in it.
    catalog_file(folder)?;
    let _lock = StoreLock::acquire(folder)?;
    let mut checker = Checker::new(&folder.join("data"))?;
    refuse_lost_catalog(folder, checker.store.as_ref()).await?;
    let mut database = open_catalog(folder).await.map_err(|error| error.of_catalog(folder))?;
    let told = sqlx::query("PRAGMA integrity_check").fetch_all(&mut database).await;
    for row in told.map_err(|error| LakeError::from(error).of_catalog(folder))? {
        let verdict: String = row.get(0);
        if verdict != "ok" {
            checker.damaged("../catalog.sqlite", verdict);
        }
    }
    for _ in sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut database).await? {
        checker.damaged("../catalog.sqlite", "a segment came or went with a version that there is none of");
    }
    for row in sqlx::query(CONTRADICTIONS).fetch_all(&mut database).await? {
        checker.damaged(row.try_get(0)?, row.try_get::<&str, _>(1)?);
    }
    database.close().await?;
    let catalog = match Catalog::open(folder).await {
        Err(LakeError::Damaged { path, reason }) => {
            checker.damaged(&path, format!("{reason}; nothing else could be checked"));
            return Ok(checker.report);
        }
        opened => opened?,
    };
    let mut objects: BTreeMap<String, Vec<Arc<Segment>>> = BTreeMap::new();
    for segment in catalog.snapshot().all_segments() {
        objects.entry(segment.path.clone()).or_default().push(Arc::clone(segment));
    }
    let sizes: HashMap<String, u64> =
        checker.store.list("").await?.into_iter().map(|blob| (blob.path, blob.size)).collect();
    let of_objects = objects.len() as u64;
    for (done, (path, segments)) in objects.iter().enumerate() {
        checker.object(path, segments, &sizes).await?;
        progress(Progress { objects: done as u64 + 1, of_objects, bytes: checker.report.bytes });
    }
    let known: HashSet<String> = catalog.known_paths().await?.into_iter().collect();
    checker.report.orphans = sizes.into_keys().filter(|path| !known.contains(path)).collect();
    checker.report.orphans.sort_unstable();
    if catalog.found().is_older_than(checker.report.orphans.iter().map(String::as_str)) {
        checker.damaged(
            "../catalog.sqlite",
            "it seems to be an old copy: there are newer objects that it does not mention",
        );
    }
    catalog.close().await;
    Ok(checker.report)
}

struct Checker {
    store: Arc<dyn BlobStore>,
    reader: SegmentReader,
    report: CheckReport,
}

impl Checker {
    fn new(data: &Path) -> Result<Self> {
        let store: Arc<dyn BlobStore> = Arc::new(LocalStore::open(data)?);
        Ok(Self { reader: SegmentReader::new(Arc::clone(&store)), store, report: CheckReport::default() })
    }

    fn damaged(&mut self, path: &str, reason: impl Into<String>) {
        self.report.damage.push(Damage { path: path.to_owned(), reason: reason.into() });
    }

    /// Checks an object and the segments in it. Fails only if the check itself can't go on.
    async fn object(&mut self, path: &str, segments: &[Arc<Segment>], sizes: &HashMap<String, u64>) -> Result<()> {
        self.report.objects += 1;
        self.report.segments += segments.len() as u64;
        let Some(size) = sizes.get(path).copied() else {
            self.damaged(path, "the file is missing");
            return Ok(());
        };
        let end = segments.iter().map(|segment| segment.range.end).max().unwrap_or(0);
        let young = segments.iter().any(|segment| segment.level == 0);
        if size < end || (!young && size != end) {
            self.damaged(path, format!("the file has {size} bytes, the catalog says {end}"));
            return Ok(());
        }
        if young && let Err(reason) = self.frame(path, size, segments).await? {
            self.damaged(path, reason);
        }
        if let Some(reason) = entry_fault(path, segments) {
            self.damaged(path, reason);
        }
        for segment in segments {
            let result = self.segment(segment, sizes).await;
            self.note(path, result);
        }
        // Footers of files that are done are of no use to a check.
        self.reader.forget(path);
        Ok(())
    }

    /// Turns what a read failed with into damage of the object.
    fn note(&mut self, path: &str, result: Result<()>) {
        match result {
            Ok(()) => {}
            Err(LakeError::Damaged { path, reason }) => self.damaged(&path, reason),
            Err(error) => self.damaged(path, error.to_string()),
        }
    }

    async fn segment(&mut self, segment: &Arc<Segment>, sizes: &HashMap<String, u64>) -> Result<()> {
        let damaged = |reason: String| {
            let reason = format!("table {}: {reason}", segment.table.name());
            Err(LakeError::Damaged { path: segment.path.clone(), reason })
        };
        let checksum = self.checksum(&segment.path, segment.range.clone()).await?;
        if checksum != segment.checksum {
            return damaged(format!("checksum {checksum:016x}, the catalog says {:016x}", segment.checksum));
        }
        let mut index = segment.index.as_ref().map(|_| ExpectedIndex::new(segment.table));
        let (mut rows, mut min_time, mut max_time) = (0, i64::MAX, i64::MIN);
        let mut batches = self.reader.stream(segment, ReadOptions::default()).await?;
        while let Some(batch) = batches.try_next().await? {
            let (earliest, latest) = l0::time_range(segment.table, &batch)?;
            (min_time, max_time) = (min_time.min(earliest), max_time.max(latest));
            if let Some(index) = &mut index {
                index.add(&batch, rows)?;
            }
            rows += batch.num_rows() as u64;
        }
        self.report.rows += rows;
        if rows != segment.rows {
            return damaged(format!("{rows} rows, the catalog says {}", segment.rows));
        }
        if rows > 0 && (min_time, max_time) != (segment.min_time, segment.max_time) {
            let said = (segment.min_time, segment.max_time);
            return damaged(format!("times from {min_time} to {max_time}, the catalog says {} to {}", said.0, said.1));
        }
        match (&segment.index, index) {
            (Some((path, size)), Some(index)) => self.id_index(path, *size, index, sizes).await,
            _ => Ok(()),
        }
    }

    async fn checksum(&mut self, path: &str, range: Range<u64>) -> Result<u64> {
        self.report.bytes += range.end - range.start;
        checksum(self.store.as_ref(), path, range).await
    }

    async fn read(&mut self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.report.bytes += range.end - range.start;
        let mut parts = self.store.get_ranges(path, std::slice::from_ref(&range)).await?;
        Ok(parts.pop().unwrap_or_default())
    }

    /// An index has no checksum of its own: it must be the one that the rows of its file lead to.
    async fn id_index(
        &mut self,
        path: &str,
        size: u64,
        expected: ExpectedIndex,
        sizes: &HashMap<String, u64>,
    ) -> Result<()> {
        self.report.objects += 1;
        let found = sizes.get(path).copied();
        if found != Some(size) {
            let found = found.map_or("the file is missing".to_owned(), |found| format!("the file has {found} bytes"));
            self.damaged(path, format!("{found}, the catalog says {size} bytes"));
            return Ok(());
        }
        let checksum = self.checksum(path, 0..size).await?;
        if checksum != xxh3_64(&expected.builder.finish()) {
            self.damaged(path, "the index does not lead to the rows of its file");
        }
        Ok(())
    }

    /// The frame of a level 0 object: marks at both ends, and contents that agree with the catalog.
    async fn frame(
        &mut self,
        path: &str,
        size: u64,
        segments: &[Arc<Segment>],
    ) -> Result<std::result::Result<(), String>> {
        let data_end = segments.iter().map(|segment| segment.range.end).max().unwrap_or(0);
        let head = self.read(path, 0..size.min(L0_MARK as u64)).await?;
        let tail = self.read(path, data_end..size).await?;
        Ok(frame_fault(&head, &tail, segments).map_or(Ok(()), Err))
    }
}

/// What is wrong with what the catalog says of an object as a whole: whose it is, and what it holds, is in its path.
fn entry_fault(path: &str, segments: &[Arc<Segment>]) -> Option<String> {
    let mut ranges: Vec<(u64, u64)> = segments.iter().map(|segment| (segment.range.start, segment.range.end)).collect();
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Some("the catalog counts some of it more than once".to_owned());
    }
    let Some(name) = ObjectName::of(path) else {
        return Some("the catalog names it, and its name is none of ours".to_owned());
    };
    segments.iter().find_map(|segment| {
        let said = (segment.tenant.as_str(), segment.partition);
        if said.0 != name.tenant || name.table.is_some_and(|table| table != segment.table) || said.1 != name.partition {
            let table = segment.table.name();
            return Some(format!("the catalog has it for tenant {}, table {table}, partition {:?}", said.0, said.1));
        }
        let is_looked_up = matches!(segment.table, Table::Spans | Table::Samples) && segment.level > 0;
        let lacks_index = is_looked_up && segment.index.is_none();
        lacks_index.then(|| "the catalog knows no index of its ids".to_owned())
    })
}

/// What is wrong with the head and tail of a level 0 object.
fn frame_fault(head: &[u8], tail: &[u8], segments: &[Arc<Segment>]) -> Option<String> {
    let broken = || Some("the contents at the end of the object can't be read".to_owned());
    if !head.starts_with(b"HOTSPAN") || !tail.ends_with(head) {
        return Some("the marks at its start and end are not those of a segment".to_owned());
    }
    let Some((contents, length)) = tail[..tail.len() - L0_MARK].split_last_chunk::<4>() else { return broken() };
    let Some(skipped) = contents.len().checked_sub(u32::from_le_bytes(*length) as usize) else { return broken() };
    let Ok(contents) = serde_json::from_slice::<serde_json::Value>(&contents[skipped..]) else { return broken() };
    let Some(tables) = contents["tables"].as_array() else { return broken() };
    segments.iter().find_map(|segment| {
        let expected = serde_json::json!({
            "table": segment.table.name(), "start": segment.range.start, "end": segment.range.end,
            "rows": segment.rows, "xxh3": format!("{:016x}", segment.checksum),
            "min_time": segment.min_time, "max_time": segment.max_time,
        });
        let name = segment.table.name();
        (!tables.contains(&expected)).then(|| format!("its contents tell of table {name} otherwise than the catalog"))
    })
}

/// The id index of a segment whose rows are sound.
pub(crate) async fn rebuilt_index(reader: &SegmentReader, segment: &Arc<Segment>) -> Result<Bytes> {
    let (mut index, mut rows) = (ExpectedIndex::new(segment.table), 0);
    let mut batches = reader.stream(segment, ReadOptions::default()).await?;
    while let Some(batch) = batches.try_next().await? {
        index.add(&batch, rows)?;
        rows += batch.num_rows() as u64;
    }
    Ok(index.builder.finish().into())
}

/// The index that the rows of a file lead to. Written apart from the writer's own code on purpose: a check
/// that shared it would share its faults.
struct ExpectedIndex {
    builder: IdIndexBuilder,
    columns: Vec<(IdKind, &'static str, Vec<u8>)>,
}

impl ExpectedIndex {
    fn new(table: Table) -> Self {
        let mut columns = vec![(IdKind::Trace, "trace_id", Vec::new())];
        if table == Table::Samples {
            columns.push((IdKind::Span, "span_id", Vec::new()));
        }
        let kinds: Vec<IdKind> = columns.iter().map(|(kind, _, _)| *kind).collect();
        Self { builder: IdIndexBuilder::new(&kinds), columns }
    }

    /// Enters the first row of every run of equal ids.
    fn add(&mut self, batch: &RecordBatch, first_row: u64) -> Result<()> {
        for (kind, name, last) in &mut self.columns {
            let ids = arrays::ids(batch, name)?;
            for row in 0..ids.len() {
                let id = if ids.is_null(row) { &[] } else { ids.value(row) };
                if id != last.as_slice() {
                    *last = id.to_vec();
                    if !id.is_empty() {
                        self.builder.add(*kind, id, (first_row + row as u64) as u32);
                    }
                }
            }
        }
        Ok(())
    }
}
