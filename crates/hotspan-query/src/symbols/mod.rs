//! Symbols of a tenant, service by service: what call-path ids stand for.
//!
//! Nodes and frames are stored for each service that has them, and lie together in every file. A question therefore
//! reads the symbols of the services that it is about, once, and keeps them as [`ServiceSymbols`] until others need
//! the room; what is committed later is added when it is asked for.

mod frames;
mod id_search;
mod service;
mod whole_frames;

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{ReadOptions, Segment, Snapshot, Table, arrays};
use hotspan_model::TenantId;

pub(crate) use frames::FrameEntry;
pub(crate) use service::{Node, Place, ROOT, ServiceSymbols};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::series::SeriesEntry;
use crate::side_by_side::{Job, side_by_side};
use crate::stack_filter::StackFilter;
use frames::FRAME_COLUMNS;
use service::{NODE_COLUMNS, ServiceRows};

/// Symbols of all tenants beyond this many bytes are forgotten, those first that were not asked for the longest.
const MEMORY: usize = 512 << 20;
/// Rows of a file that one job reads, and that a batch has at most.
const JOB_ROWS: usize = 1 << 18;
const BATCH_ROWS: usize = 1 << 16;

/// So often paths are picked from a service before it is read whole and kept.
const MOST_PICKS: u32 = 2;
/// With more paths than these, services are read whole at once.
const MOST_PICKED_PATHS: usize = 4096;
/// With more nodes than this for each path that is asked for, most of a service is of no use to the question.
const NODES_PER_PATH: usize = 32;

/// What has been read of a tenant's symbols.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    services: HashMap<u64, KnownService>,
    /// How often paths were picked from services that are not known.
    picked: HashMap<u64, u32>,
}

#[derive(Debug, Default)]
struct KnownService {
    symbols: Arc<ServiceSymbols>,
    /// For each day, all rows up to this version have been read.
    versions: HashMap<i64, i64>,
    /// When it was asked for last.
    used: u64,
}

/// The symbols that a question is answered with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Symbols {
    services: Vec<(u64, Arc<ServiceSymbols>)>,
    /// The time that they were asked for.
    range: (i64, i64),
}

/// A call path of a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathNode<'s> {
    pub(crate) symbols: &'s ServiceSymbols,
    pub(crate) node: Node,
}

/// The services of series, as symbols are stored by, each once.
pub(crate) fn services_of<'e>(series: impl IntoIterator<Item = &'e SeriesEntry>) -> Vec<u64> {
    let mut services: Vec<u64> = series.into_iter().map(|entry| entry.labels.service_id()).collect();
    services.sort_unstable();
    services.dedup();
    services
}

impl Engine {
    /// The symbols that services have for samples of `from..until`. Services must be sorted, each once.
    pub(crate) async fn symbols(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        services: &[u64],
        range: (i64, i64),
    ) -> Result<Symbols> {
        let memory = self.memory(tenant);
        let used = self.tick();
        let mut index = memory.symbols.lock().await;
        self.catch_up(&mut index, tenant, snapshot, services, range).await?;
        let mut found = Symbols { range, ..Symbols::default() };
        for service in services {
            let known = index.services.entry(*service).or_default();
            known.used = used;
            found.services.push((*service, Arc::clone(&known.symbols)));
        }
        drop(index);
        self.forget_symbols(MEMORY);
        Ok(found)
    }

    /// The symbols of some paths. Where a service is not known and has hardly been asked for, only what these paths need is
    /// put in order, which is a small part of reading a service.
    pub(crate) async fn symbols_of_paths(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        services: &[u64],
        range: (i64, i64),
        paths: &[u64],
    ) -> Result<Symbols> {
        let picked = match paths.len() {
            0..=MOST_PICKED_PATHS => {
                let memory = self.memory(tenant);
                let mut index = memory.symbols.lock().await;
                index.choose_to_pick(services)
            }
            _ => Vec::new(),
        };
        let others: Vec<u64> = services.iter().copied().filter(|service| !picked.contains(service)).collect();
        let mut found = self.symbols(tenant, snapshot, &others, range).await?;
        for (_, symbols) in &mut found.services {
            if symbols.node_count() > NODES_PER_PATH * paths.len() {
                *symbols = Arc::new(symbols.only(paths));
            }
        }
        if !picked.is_empty() {
            let jobs = self.jobs_for(tenant, snapshot, range, |_| picked.clone());
            let rows = rows_by_service(jobs, &picked.iter().copied().collect()).await?;
            for (service, (nodes, frames)) in rows {
                let symbols = ServiceSymbols::default().with_paths(&nodes, &frames, paths)?;
                found.services.push((service, Arc::new(symbols)));
            }
            found.services.sort_unstable_by_key(|(service, _)| *service);
        }
        Ok(found)
    }

    /// Bytes of symbols that are kept between questions.
    pub fn symbol_bytes(&self) -> usize {
        let bytes_of = |index: &SymbolIndex| index.services.values().map(|known| known.symbols.bytes()).sum::<usize>();
        // Who is being read for is not counted until that is done.
        self.memories().iter().filter_map(|memory| Some(bytes_of(&*memory.symbols.try_lock().ok()?))).sum()
    }

    /// Forgets what was not asked for the longest until no more than so much is kept, of all tenants together (R5).
    fn forget_symbols(&self, most: usize) {
        let mut kept: Vec<(u64, usize, usize, u64)> = Vec::new();
        let memories = self.memories();
        for (at, memory) in memories.iter().enumerate() {
            let Ok(index) = memory.symbols.try_lock() else { continue };
            let services = index.services.iter();
            kept.extend(services.map(|(service, known)| (known.used, known.symbols.bytes(), at, *service)));
        }
        let mut total: usize = kept.iter().map(|(_, bytes, _, _)| bytes).sum();
        if total <= most {
            return;
        }
        kept.sort_unstable();
        for (_, bytes, at, service) in kept {
            if total <= most {
                return;
            }
            if let Ok(mut index) = memories[at].symbols.try_lock() {
                index.services.remove(&service);
            }
            total = total.saturating_sub(bytes);
        }
    }

    /// Reads what was committed since the last time for the days that a range touches.
    async fn catch_up(
        &self,
        index: &mut SymbolIndex,
        tenant: &TenantId,
        snapshot: &Snapshot,
        services: &[u64],
        (from, until): (i64, i64),
    ) -> Result<()> {
        let mut days: HashSet<i64> = HashSet::new();
        let mut stale: HashSet<u64> = HashSet::new();
        let jobs = self.jobs_for(tenant, snapshot, (from, until), |segment| {
            let unread = index.unread(segment, services, (from, until), &mut days);
            stale.extend(&unread);
            unread
        });
        if !jobs.is_empty() {
            let rows = rows_by_service(jobs, &stale).await?;
            let arranging = rows.into_iter().map(|(service, (nodes, frames))| {
                let before = index.services.get(&service).map(|known| Arc::clone(&known.symbols)).unwrap_or_default();
                let arrange = async move {
                    let symbols = before.with(&nodes, &frames)?;
                    Ok(futures::stream::once(std::future::ready(Ok((service, symbols)))).boxed())
                };
                arrange.boxed()
            });
            side_by_side(arranging.collect(), &mut |(service, symbols)| {
                index.services.entry(service).or_default().symbols = Arc::new(symbols);
                Ok(())
            })
            .await?;
        }
        for day in days {
            for service in services {
                let known = index.services.entry(*service).or_default();
                let version = known.versions.entry(day).or_default();
                *version = snapshot.version().max(*version);
            }
        }
        Ok(())
    }

    /// The jobs that read what segments have for services.
    fn jobs_for(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        (from, until): (i64, i64),
        mut services_in: impl FnMut(&Segment) -> Vec<u64>,
    ) -> Vec<Job<(Table, RecordBatch)>> {
        let mut jobs = Vec::new();
        for table in [Table::Nodes, Table::Frames] {
            for segment in snapshot.segments(tenant, table).iter().filter(|segment| segment.overlaps(from, until)) {
                let services = services_in(segment);
                if !services.is_empty() {
                    let columns: &[&str] = if table == Table::Nodes { &NODE_COLUMNS } else { &FRAME_COLUMNS };
                    jobs.extend(self.symbol_jobs(segment, columns, &Arc::new(services)));
                }
            }
        }
        jobs
    }

    /// The jobs that read the rows of services in a segment.
    fn symbol_jobs(
        &self,
        segment: &Arc<Segment>,
        columns: &[&str],
        services: &Arc<Vec<u64>>,
    ) -> Vec<Job<(Table, RecordBatch)>> {
        let options =
            ReadOptions::columns(columns).near_keys("service_id", Arc::clone(services)).batch_rows(BATCH_ROWS);
        let part = |first: usize| {
            let rows = first..(first + JOB_ROWS).min(segment.rows as usize);
            let options =
                if segment.rows as usize > JOB_ROWS { options.clone().rows(vec![rows]) } else { options.clone() };
            let (lake, segment) = (Arc::clone(self.lake()), Arc::clone(segment));
            let read = async move {
                let table = segment.table;
                let batches = lake.reader().stream(&segment, options).await?.map_err(QueryError::from);
                Ok(batches.map_ok(move |batch| (table, batch)).boxed())
            };
            read.boxed()
        };
        (0..segment.rows as usize).step_by(JOB_ROWS).map(part).collect()
    }
}

/// The nodes and the frames of services.
type RowsByService = HashMap<u64, (Vec<ServiceRows>, Vec<ServiceRows>)>;

/// What jobs read, for each of the services.
async fn rows_by_service(jobs: Vec<Job<(Table, RecordBatch)>>, services: &HashSet<u64>) -> Result<RowsByService> {
    let mut rows = RowsByService::new();
    let mut each = |(table, batch): (Table, RecordBatch)| {
        for (service, range) in runs(arrays::uint64s(&batch, "service_id")?.values()) {
            if services.contains(&service) {
                let (nodes, frames) = rows.entry(service).or_default();
                if table == Table::Nodes { nodes } else { frames }.push((batch.clone(), range));
            }
        }
        Ok(())
    };
    side_by_side(jobs, &mut each).await?;
    Ok(rows)
}

impl SymbolIndex {
    /// Those of some services that paths may be picked from, which is noted.
    fn choose_to_pick(&mut self, services: &[u64]) -> Vec<u64> {
        let mut picked = Vec::new();
        for service in services.iter().filter(|service| !self.services.contains_key(*service)) {
            let times = self.picked.entry(*service).or_default();
            if *times < MOST_PICKS {
                *times += 1;
                picked.push(*service);
            }
        }
        picked
    }

    /// The services for which a segment has rows that were not read, of those asked for. Notes the days it is about.
    fn unread(
        &self,
        segment: &Segment,
        services: &[u64],
        (from, until): (i64, i64),
        days: &mut HashSet<i64>,
    ) -> Vec<u64> {
        let day_of = |time: i64| Table::Nodes.partition_of(time);
        // A segment holds rows of the days from `min_time` to `max_time`.
        let first_day = day_of(segment.min_time.max(day_of(from)));
        let last_day = day_of(segment.max_time.min(until.saturating_sub(1)));
        let of_segment: Vec<i64> = (first_day..=last_day).step_by(Table::Nodes.partition_length() as usize).collect();
        days.extend(&of_segment);
        let is_read = |service: &u64| {
            let Some(known) = self.services.get(service) else { return false };
            of_segment.iter().all(|day| known.versions.get(day).is_some_and(|version| segment.data_version <= *version))
        };
        services.iter().copied().filter(|service| !is_read(service)).collect()
    }
}

/// The runs of equal values.
pub(crate) fn runs(values: &[u64]) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let value = *values.get(at)?;
        let length = values[at..].iter().position(|other| *other != value).unwrap_or(values.len() - at);
        let range = at..at + length;
        at += length;
        Some((value, range))
    })
}

impl Symbols {
    /// The services, in ascending order.
    pub(crate) fn services(&self) -> impl ExactSizeIterator<Item = &Arc<ServiceSymbols>> {
        self.services.iter().map(|(_, symbols)| symbols)
    }

    /// Which of [`Symbols::services`] a service is.
    pub(crate) fn number_of(&self, service: u64) -> Option<usize> {
        self.services.binary_search_by_key(&service, |(id, _)| *id).ok()
    }

    /// The paths that a filter keeps.
    pub(crate) fn kept_by(&self, filter: &StackFilter) -> HashSet<u64> {
        let mut paths = HashSet::new();
        for symbols in self.services() {
            let kept = symbols.kept_by(filter);
            let places = (0..symbols.place_count() as Place).filter(|place| kept[*place as usize]);
            paths.extend(places.flat_map(|place| symbols.nodes_at(place)).map(|node| symbols.path_of(node)));
        }
        paths
    }

    /// A path of any of the services: the same id has the same frames in all of them.
    pub(crate) fn find(&self, path: u64) -> Option<PathNode<'_>> {
        self.services().find_map(|symbols| Some(PathNode { symbols, node: symbols.node_of(path)? }))
    }
}

impl<'s> PathNode<'s> {
    /// The frame at its end.
    pub(crate) fn frame(self) -> &'s FrameEntry {
        self.symbols.frame_of(self.node)
    }

    /// The id of that frame.
    pub(crate) fn frame_id(self) -> u64 {
        self.symbols.frame_id_of(self.node)
    }

    /// The text of a frame of it.
    pub(crate) fn text(self, number: u32) -> &'s Arc<str> {
        self.symbols.text(number)
    }

    /// Itself, its caller, and so on.
    pub(crate) fn to_root(self) -> impl Iterator<Item = PathNode<'s>> {
        std::iter::successors(Some(self), |path| {
            Some(PathNode { symbols: path.symbols, node: path.symbols.caller_of(path.node)? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: runs of one, of many, at both ends. Guarantee: they cover all rows, each with its value.
    #[test]
    fn runs_cover_all() {
        let found: Vec<_> = runs(&[4, 4, 4, 1, 9, 9]).collect();
        assert_eq!(found, [(4, 0..3), (1, 3..4), (9, 4..6)]);
        assert_eq!(runs(&[]).count(), 0);
    }
}
