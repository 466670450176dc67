//! What to compact next: a pure function of the catalog and the clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hotspan_model::TenantId;

use super::resting::Resting;
use crate::catalog::Snapshot;
use crate::segment::Segment;
use crate::table::Table;

/// When segments are compacted.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// Level 0 is compacted when its oldest segment is this old …
    pub first_level_age: Duration,
    /// … or when it has this many bytes; a job takes about as many at once.
    pub first_level_bytes: u64,
    /// A job takes no more rows than this at once either: rows that repeat each other take next to no bytes until they are read.
    pub first_level_rows: u64,
    /// How many files of level 1 make one of level 2.
    pub second_level_files: usize,
    /// A file of level 1 goes up when it is this old, even if there are fewer.
    pub second_level_age: Duration,
    /// A partition may be merged for good this long after its end: when its files are old enough …
    pub partition_grace: Duration,
    /// … or, where that is over, as soon as nothing at all came for this long: imports are in order at once.
    pub partition_quiet: Duration,
    /// How many bytes one job reads at most.
    pub job_bytes: u64,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            first_level_age: Duration::from_secs(20),
            first_level_bytes: 128 << 20,
            first_level_rows: 2 << 20,
            second_level_files: 10,
            second_level_age: Duration::from_secs(10 * 60),
            partition_grace: Duration::from_secs(10 * 60),
            partition_quiet: Duration::from_secs(15),
            job_bytes: 2 << 30,
        }
    }
}

/// Segments to be replaced by segments of a higher level.
#[derive(Debug, Clone)]
pub struct Job {
    /// Whose segments they are.
    pub tenant: TenantId,
    /// The level of the outputs.
    pub level: u8,
    /// The inputs: of level 0, all tables; above, one table and partition.
    pub inputs: Vec<Arc<Segment>>,
}

/// The most urgent job: young segments first, since every query pays for them.
pub(super) fn next_job(snapshot: &Snapshot, options: &CompactionOptions, resting: &Resting, now: i64) -> Option<Job> {
    let tenants = snapshot.tenants();
    tenants
        .iter()
        .find_map(|tenant| first_level_job(young_of(snapshot, tenant, resting), tenant, options, now))
        .or_else(|| tenants.iter().find_map(|tenant| merge_job(snapshot, tenant, options, resting, now)))
}

/// The segments of level 0 that can go up.
fn young_of(snapshot: &Snapshot, tenant: &TenantId, resting: &Resting) -> Vec<Arc<Segment>> {
    Table::RECEIVED
        .iter()
        .flat_map(|table| snapshot.segments(tenant, *table).iter().cloned().collect::<Vec<_>>())
        .filter(|segment| segment.level == 0 && !resting.has(segment))
        .collect()
}

fn first_level_job(
    mut young: Vec<Arc<Segment>>,
    tenant: &TenantId,
    options: &CompactionOptions,
    now: i64,
) -> Option<Job> {
    young.sort_unstable_by_key(|segment| segment.id);
    let oldest = young.iter().map(|segment| segment.created_at).min()?;
    let bytes: u64 = young.iter().map(|segment| segment.bytes()).sum();
    if age(now, oldest) < nanos(options.first_level_age) && bytes < options.first_level_bytes {
        return None;
    }
    // All tables of a flush go up together; a backlog is worked off in bites that fit into memory.
    let (mut bytes, mut rows) = (0, 0);
    let mut last_version = i64::MAX;
    young.retain(|segment| {
        let is_full = bytes >= options.first_level_bytes || rows >= options.first_level_rows;
        if is_full && segment.version != last_version {
            return false;
        }
        bytes += segment.bytes();
        rows += segment.rows;
        last_version = segment.version;
        true
    });
    Some(Job { tenant: tenant.clone(), level: 1, inputs: young })
}

fn merge_job(
    snapshot: &Snapshot,
    tenant: &TenantId,
    options: &CompactionOptions,
    resting: &Resting,
    now: i64,
) -> Option<Job> {
    // What is young may belong anywhere: while there is some, no partition is quiet.
    let has_young = !young_of(snapshot, tenant, resting).is_empty();
    for table in Table::ALL {
        let mut partitions: BTreeMap<i64, Vec<Arc<Segment>>> = BTreeMap::new();
        let is_ready = |segment: &&Arc<Segment>| segment.level > 0 && !resting.has(segment);
        for segment in snapshot.segments(tenant, table).iter().filter(is_ready) {
            partitions.entry(segment.partition.unwrap_or_default()).or_default().push(Arc::clone(segment));
        }
        for (partition, segments) in partitions {
            let closed =
                now > partition.saturating_add(table.partition_length()).saturating_add(nanos(options.partition_grace));
            let quiet = closed && !has_young;
            if let Some((level, inputs)) = choose_inputs(&segments, closed, quiet, options, now) {
                return Some(Job { tenant: tenant.clone(), level, inputs });
            }
        }
    }
    None
}

fn choose_inputs(
    segments: &[Arc<Segment>],
    closed: bool,
    quiet: bool,
    options: &CompactionOptions,
    now: i64,
) -> Option<(u8, Vec<Arc<Segment>>)> {
    let of_level = |level: u8| segments.iter().filter(|segment| segment.level == level).cloned().collect::<Vec<_>>();
    let (first, second) = (of_level(1), of_level(2));
    // Merging with what is merged for good costs as much as that is large, so large files stay as they are.
    let merged: Vec<Arc<Segment>> =
        of_level(3).into_iter().filter(|segment| segment.bytes() < options.job_bytes / 8).collect();
    let waiting: Vec<Arc<Segment>> = first.iter().chain(&second).cloned().collect();
    // A partition that nothing comes to any more needs no step between: all of it is merged for good at once.
    let settled = closed
        && (newest_age(&first, now) >= nanos(options.second_level_age)
            || quiet && newest_age(&first, now) >= nanos(options.partition_quiet));
    // A little late data waits for more of it, but not for long.
    let worth_it =
        4 * bytes_of(&waiting) >= bytes_of(&merged) || oldest_age(&second, now) >= nanos(options.second_level_age);
    if !waiting.is_empty() && worth_it && (settled || closed && first.is_empty()) {
        let inputs = waiting.into_iter().chain(merged).collect();
        return Some((3, bounded(inputs, options.job_bytes)));
    }
    let due = first.len() >= options.second_level_files
        || oldest_age(&first, now) >= nanos(options.second_level_age)
        || settled;
    if !first.is_empty() && due {
        return Some((2, bounded(first, options.job_bytes)));
    }
    // Level 2 piles up only if a partition is long, or gets much: then ten become one.
    if second.len() >= options.second_level_files {
        return Some((2, bounded(second, options.job_bytes)));
    }
    None
}

fn bounded(mut segments: Vec<Arc<Segment>>, job_bytes: u64) -> Vec<Arc<Segment>> {
    segments.sort_unstable_by_key(|segment| segment.min_time);
    let mut taken = 0;
    segments.retain(|segment| {
        taken += segment.bytes();
        taken <= job_bytes || taken == segment.bytes()
    });
    segments
}

fn bytes_of(segments: &[Arc<Segment>]) -> u64 {
    segments.iter().map(|segment| segment.bytes()).sum()
}

fn oldest_age(segments: &[Arc<Segment>], now: i64) -> i64 {
    segments.iter().map(|segment| age(now, segment.created_at)).max().unwrap_or(0)
}

fn newest_age(segments: &[Arc<Segment>], now: i64) -> i64 {
    segments.iter().map(|segment| age(now, segment.created_at)).min().unwrap_or(0)
}

fn age(now: i64, created_at: i64) -> i64 {
    now.saturating_sub(created_at)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
