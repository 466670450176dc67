//! R1 when the power goes: what a disk would hold that keeps nothing but what was synced.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotspan_model::{Attribute, Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _, Value};

use crate::catalog::now_nanos;
use crate::compaction::{CompactionOptions, Compactor};
use crate::rows::Rows;
use crate::store::{Syncs, SystemSyncs};
use crate::{Ingest, IngestOptions, Lake};

/// Remembers, beside the system's disk, what of it has been synced.
#[derive(Debug, Default)]
struct DurableDisk(Mutex<Durable>);

#[derive(Debug, Default)]
struct Durable {
    /// By inode.
    contents: BTreeMap<u64, Vec<u8>>,
    /// The names in each folder that was synced, and what they stand for.
    names: BTreeMap<PathBuf, BTreeMap<OsString, u64>>,
    /// Files that got their name before their content was durable: a power cut could have left them torn.
    named_too_early: BTreeSet<PathBuf>,
}

impl Syncs for DurableDisk {
    fn content(&self, file: &File) -> io::Result<()> {
        SystemSyncs.content(file)?;
        let mut content = Vec::new();
        // Opened anew: the store writes to it only.
        let path = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)))?;
        File::open(path)?.read_to_end(&mut content)?;
        self.0.lock().unwrap().contents.insert(file.metadata()?.ino(), content);
        Ok(())
    }

    fn names(&self, folder: &Path) -> io::Result<()> {
        SystemSyncs.names(folder)?;
        let mut durable = self.0.lock().unwrap();
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (name, inode) = (entry.file_name(), entry.metadata()?.ino());
            if is_object(&name.to_string_lossy())
                && entry.file_type()?.is_file()
                && durable.contents.get(&inode) != Some(&fs::read(entry.path())?)
            {
                durable.named_too_early.insert(entry.path());
            }
            names.insert(name, inode);
        }
        durable.names.insert(folder.to_owned(), names);
        Ok(())
    }
}

/// Whether a file has the name of what is stored, and not that of something unfinished. The database sees to itself.
fn is_object(name: &str) -> bool {
    !name.ends_with(".unfinished") && !name.starts_with("catalog.sqlite") && name != "lock"
}

impl DurableDisk {
    /// What is left of a file after a power cut, if its name and those of all folders below `root` are.
    fn content_of(&self, root: &Path, path: &Path) -> Option<Vec<u8>> {
        let durable = self.0.lock().unwrap();
        let mut folder = root.to_owned();
        let mut inode = None;
        for name in path.strip_prefix(root).unwrap() {
            inode = Some(*durable.names.get(&folder)?.get(name)?);
            folder.push(name);
        }
        durable.contents.get(&inode?).cloned()
    }

    /// Every file that the catalog names is whole after a power cut.
    fn check(&self, root: &Path, store: &Path, lake: &Lake) {
        let snapshot = lake.catalog().snapshot();
        let mut count = 0;
        for segment in snapshot.all_segments() {
            let index = segment.index.as_ref().map(|(path, _)| path);
            for path in std::iter::once(&segment.path).chain(index) {
                let path = store.join("data").join(path);
                let left = self.content_of(root, &path).unwrap_or_else(|| panic!("{} is lost", path.display()));
                assert!(left == fs::read(&path).unwrap(), "{} is torn", path.display());
                count += 1;
            }
        }
        assert!(count > 0, "nothing was stored");
        let early = &self.0.lock().unwrap().named_too_early;
        assert!(early.is_empty(), "{early:?} had their names before their content");
    }
}

/// Spans whose names take about so many bytes that do not compress.
fn rows_of(number: u8, bytes: usize) -> Rows {
    let mut rows = Rows::default();
    let attributes = vec![Attribute::new("service.name", Value::str("shop"))];
    rows.spans.resource(&Resource { attributes, ..Resource::default() });
    rows.spans.scope(&Scope::default());
    let mut chance = u64::from(number) + 1;
    for span in 0..1 + bytes as u64 / 1600 {
        let mut name = String::new();
        while name.len() < 1600 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            name.push_str(&format!("{chance:016x}"));
        }
        let (trace_id, span_id) = (TraceId([number + 1; 16]), SpanId((span + 1).to_be_bytes()));
        let start = now_nanos();
        rows.spans.span(&Span { trace_id, span_id, start, end: start + 5, name: &name, ..Span::default() });
    }
    rows
}

/// Scenario: a store in folders that are not there yet takes small requests and large ones, which are written past the page
/// cache, and compacts them.
/// Guarantee: at each acknowledgement, and after each step of compaction, whatever the catalog names would survive a power cut:
/// content, name, and the names of all folders around; and no file had its name before its content.
#[tokio::test]
async fn what_is_acknowledged_survives_a_power_cut() {
    let outside = tempfile::tempdir().unwrap();
    let (root, folder) = (outside.path(), outside.path().join("var/hotspan"));
    let disk = Arc::new(DurableDisk::default());
    let lake = Lake::open_syncing(&folder, Arc::clone(&disk) as _).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    let options =
        CompactionOptions { first_level_age: Duration::ZERO, second_level_files: 2, ..CompactionOptions::default() };
    let compactor = Compactor::new(Arc::clone(&lake), options);
    for (number, bytes) in [10, 600 << 10, 10, 3 << 20].into_iter().enumerate() {
        let reservation = ingest.try_reserve(1000).unwrap();
        ingest.submit(TenantId::anonymous(), rows_of(number as u8, bytes), reservation).await.unwrap();
        disk.check(root, &folder, &lake);
        while let Some(job) = compactor.next_job(now_nanos()) {
            compactor.run_job(&job).await.unwrap();
            disk.check(root, &folder, &lake);
        }
    }
}

/// Scenario: the store's folder is named as one in the current folder, without a path.
/// Guarantee: its name is synced there.
#[test]
fn a_folder_without_a_path_is_made_durable() {
    let name = format!("target-power-cut-{}", std::process::id());
    let disk = DurableDisk::default();
    let made = crate::store::create_durable_folder(Path::new(&name), &disk);
    fs::remove_dir(&name).unwrap();
    made.unwrap();
    assert!(disk.0.lock().unwrap().names[Path::new(".")].contains_key(std::ffi::OsStr::new(&name)));
}
