//! The samples of a whole set of spans or traces, in one pass over the segments that can hold them.
//!
//! Memory is bounded by the set and by what the visitor keeps: samples are shown one by one, never gathered here, but
//! for [`Engine::linked_samples`], which has a limit.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::{Exactness, LinkStrength, ProfileId, ProfileType, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::owners::{OwnerFilter, SampleClaim, SampleOwners};
use crate::selector::{Matcher, Selector};
use crate::series::SeriesEntry;
use crate::side_by_side::{Job, side_by_side};
use crate::uploads::UploadedSample;

/// Which samples of a set of spans or traces.
#[derive(Debug, Clone)]
pub struct LinkedQuery {
    /// Whose.
    pub owners: SampleOwners,
    /// Of which types; none means any.
    pub profile_types: Vec<ProfileType>,
    /// Labels that the series must have.
    pub selector: Selector,
    /// Start of the time, in nanoseconds since 1970.
    pub from: i64,
    /// End of the time, not included.
    pub until: i64,
    /// Only samples of these profiles; none means any.
    pub profiles: Vec<ProfileId>,
    /// Whether threads are needed; reading them takes longer.
    pub with_threads: bool,
}

/// A sample and the span it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedSample {
    /// The trace; `None` if neither the sample nor the question names one.
    pub trace_id: Option<TraceId>,
    /// The span; `None` if the sample names only its trace.
    pub span_id: Option<SpanId>,
    /// When it was taken, or when its profile began if `timed` is false.
    pub time: i64,
    /// Whether the source said when exactly.
    pub timed: bool,
    /// Which of [`LinkedTables::threads`]; 0 is "not known".
    pub thread: u32,
    /// Which of [`LinkedTables::series`].
    pub series: u32,
    /// Its call path; see [`Engine::call_paths`].
    pub path: u64,
    /// What was measured.
    pub value: i64,
    /// How surely it belongs to the span.
    pub link: LinkStrength,
}

/// The thread of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SampleThread {
    /// Its number.
    pub id: Option<i64>,
    /// Its name; empty if not known.
    pub name: Arc<str>,
}

/// What the numbers in samples stand for, and what the answer rests on.
#[derive(Debug, Clone, Default)]
pub struct LinkedTables {
    /// Threads; the first is "not known".
    pub threads: Vec<SampleThread>,
    /// Label sets, the profile type among them.
    pub series: Vec<SeriesEntry>,
    /// How many samples were seen, of how many spans.
    pub exactness: Exactness,
}

/// Samples in no particular order.
#[derive(Debug, Clone, Default)]
pub struct LinkedSamples {
    /// The samples, at most as many as were asked for.
    pub samples: Vec<LinkedSample>,
    /// What their numbers stand for.
    pub tables: LinkedTables,
    /// How many more there were.
    pub left_out: u64,
}

/// Rows of a file that one job reads.
const JOB_ROWS: usize = 1 << 18;

/// Takes samples one after another.
pub type EachSample<'f> = dyn FnMut(&LinkedSample) -> Result<()> + Send + 'f;

impl Engine {
    /// Shows every sample of a set of spans or traces to `visit`, in no particular order.
    pub async fn visit_linked_samples(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
        visit: &mut EachSample<'_>,
    ) -> Result<LinkedTables> {
        let mut tables = LinkedTables { threads: vec![SampleThread::default()], ..LinkedTables::default() };
        tables.series = self.series_of_types(tenant, snapshot, query).await?;
        if tables.series.is_empty() || query.owners.is_empty() {
            return Ok(tables);
        }
        let sorted: Arc<Vec<u64>> = Arc::new(tables.series.iter().map(|entry| entry.id.0).collect());
        let profiles: HashSet<[u8; 16]> = query.profiles.iter().map(|profile| profile.0).collect();
        let mut threads = ThreadTable::default();
        let mut spans: HashSet<(Option<TraceId>, SpanId)> = HashSet::new();
        for owners in query.owners.parts() {
            let filter = OwnerFilter::new(owners, &tables.series);
            let with_threads = query.with_threads || filter.needs_threads();
            let mut columns = vec!["series", "time", "timed", "trace_id", "span_id", "path", "value"];
            if with_threads {
                columns.extend(["thread_id", "thread_name"]);
            }
            if !profiles.is_empty() {
                columns.push("profile_id");
            }
            let options = ReadOptions::columns(&columns)
                .within("time", query.from, query.until)
                .near_keys("series", Arc::clone(&sorted));
            let range = (query.from, query.until);
            let exactness = &mut tables.exactness;
            let jobs = match filter.id_set() {
                Some(ids) => self.id_jobs(tenant, snapshot, Table::Samples, &ids, range, &options, exactness).await?,
                None => self.range_jobs(tenant, snapshot, range, &options, exactness),
            };
            let mut each = |batch: RecordBatch| {
                let rows = SampleRows::of(&batch, with_threads)?;
                let profile_ids = if profiles.is_empty() { None } else { Some(arrays::ids(&batch, "profile_id")?) };
                for row in 0..batch.num_rows() {
                    if profile_ids.is_some_and(|ids| !profiles.contains(&arrays::id_at::<16>(ids, row))) {
                        continue;
                    }
                    let Ok(series) = sorted.binary_search(&rows.series[row]) else { continue };
                    let claim = rows.claim(row, series);
                    let Some((trace_id, span_id, link)) = filter.owner(&claim) else { continue };
                    let sample = LinkedSample {
                        trace_id,
                        span_id,
                        time: claim.time,
                        timed: claim.timed,
                        thread: threads.number(claim.thread_id, claim.thread_name),
                        series: series as u32,
                        path: rows.paths[row],
                        value: rows.values[row],
                        link,
                    };
                    exactness.samples += 1;
                    match link {
                        LinkStrength::Exact => exactness.linked_samples += u64::from(span_id.is_some()),
                        LinkStrength::Inherited => exactness.inherited_samples += 1,
                        LinkStrength::Inferred => exactness.inferred_samples += 1,
                    }
                    if let Some(span_id) = span_id {
                        spans.insert((trace_id, span_id));
                    }
                    visit(&sample)?;
                }
                Ok(())
            };
            side_by_side(jobs, &mut each).await?;
            let mut each_uploaded = |uploaded: UploadedSample<'_>| {
                let UploadedSample { batch, row, span: (trace_id, span_id) } = uploaded;
                let rows = SampleRows::of(batch, with_threads)?;
                let Ok(series) = sorted.binary_search(&rows.series[row]) else { return Ok(()) };
                let profile_ids = if profiles.is_empty() { None } else { Some(arrays::ids(batch, "profile_id")?) };
                if profile_ids.is_some_and(|ids| !profiles.contains(&arrays::id_at::<16>(ids, row))) {
                    return Ok(());
                }
                exactness.samples += 1;
                exactness.linked_samples += 1;
                spans.insert((Some(trace_id), span_id));
                let claim = rows.claim(row, series);
                visit(&LinkedSample {
                    trace_id: Some(trace_id),
                    span_id: Some(span_id),
                    time: claim.time,
                    timed: claim.timed,
                    thread: threads.number(claim.thread_id, claim.thread_name),
                    series: series as u32,
                    path: rows.paths[row],
                    value: rows.values[row],
                    link: LinkStrength::Exact,
                })
            };
            let asked = (owners, tables.series.as_slice());
            self.visit_named_uploads(tenant, snapshot, asked, range, &columns, &mut each_uploaded).await?;
        }
        tables.exactness.spans = spans.len() as u64;
        tables.threads.extend(threads.threads);
        Ok(tables)
    }

    /// The samples of a set of spans or traces, at most `limit`; says how many more there were.
    pub async fn linked_samples(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
        limit: usize,
    ) -> Result<LinkedSamples> {
        let mut found = LinkedSamples::default();
        let (samples, left_out) = (&mut found.samples, &mut found.left_out);
        let mut keep = |sample: &LinkedSample| {
            if samples.len() < limit {
                samples.push(*sample);
            } else {
                *left_out += 1;
            }
            Ok(())
        };
        found.tables = self.visit_linked_samples(tenant, snapshot, query, &mut keep).await?;
        Ok(found)
    }

    /// The jobs that read the rows of a table with ids of a set.
    #[expect(clippy::too_many_arguments, reason = "a question has this many sides")]
    pub(crate) async fn id_jobs(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        table: Table,
        ids: &Arc<IdSet>,
        (from, until): (i64, i64),
        options: &ReadOptions,
        exactness: &mut Exactness,
    ) -> Result<Vec<Job<RecordBatch>>> {
        let mut jobs: Vec<Job<RecordBatch>> = Vec::new();
        for segment in snapshot.segments(tenant, table).iter() {
            let parts = if segment.overlaps(from, until) {
                self.lake().reader().id_parts(segment, ids).await?
            } else {
                Vec::new()
            };
            if parts.is_empty() {
                exactness.segments_pruned += 1;
                continue;
            }
            exactness.segments_read += 1;
            for part in parts {
                let (lake, ids, options) = (Arc::clone(self.lake()), Arc::clone(ids), options.clone());
                let job = async move {
                    let stream = lake.reader().rows_in_part(&part, &ids, options).await?;
                    Ok(stream.map_err(QueryError::from).boxed())
                };
                jobs.push(job.boxed());
            }
        }
        Ok(jobs)
    }

    /// The jobs that read all samples of a time.
    fn range_jobs(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        (from, until): (i64, i64),
        options: &ReadOptions,
        exactness: &mut Exactness,
    ) -> Vec<Job<RecordBatch>> {
        let mut jobs: Vec<Job<RecordBatch>> = Vec::new();
        for segment in snapshot.segments(tenant, Table::Samples).iter() {
            if !segment.overlaps(from, until) {
                exactness.segments_pruned += 1;
                continue;
            }
            exactness.segments_read += 1;
            for first in (0..segment.rows as usize).step_by(JOB_ROWS) {
                let rows = first..(first + JOB_ROWS).min(segment.rows as usize);
                let options = options.clone().rows(vec![rows]);
                let (lake, segment) = (Arc::clone(self.lake()), Arc::clone(segment));
                let job =
                    async move { Ok(lake.reader().stream(&segment, options).await?.map_err(QueryError::from).boxed()) };
                jobs.push(job.boxed());
            }
        }
        jobs
    }

    pub(crate) async fn series_of_types(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
    ) -> Result<Vec<SeriesEntry>> {
        let mut series = match query.profile_types.as_slice() {
            [only] => {
                let selector = query.selector.clone().and(Matcher::equal(PROFILE_TYPE, only.to_string()));
                self.series(tenant, snapshot, &selector, query.from, query.until).await?
            }
            _ => self.series(tenant, snapshot, &query.selector, query.from, query.until).await?,
        };
        if query.profile_types.len() > 1 {
            let wanted: HashSet<String> = query.profile_types.iter().map(ToString::to_string).collect();
            series.retain(|entry| entry.labels.get(PROFILE_TYPE).is_some_and(|name| wanted.contains(name)));
        }
        Ok(series)
    }
}

/// The columns of a batch of samples.
struct SampleRows<'b> {
    series: &'b [u64],
    times: &'b [i64],
    timed: &'b arrow::array::BooleanArray,
    traces: &'b arrow::array::FixedSizeBinaryArray,
    spans: &'b arrow::array::FixedSizeBinaryArray,
    paths: &'b [u64],
    values: &'b [i64],
    threads: Option<(&'b arrow::array::Int64Array, arrays::Texts<'b>)>,
}

impl<'b> SampleRows<'b> {
    fn of(batch: &'b RecordBatch, with_threads: bool) -> Result<Self> {
        let threads = if with_threads {
            Some((arrays::int64s(batch, "thread_id")?, arrays::texts(batch, "thread_name")?))
        } else {
            None
        };
        Ok(Self {
            series: arrays::uint64s(batch, "series")?.values(),
            times: arrays::times(batch, "time")?.values(),
            timed: arrays::booleans(batch, "timed")?,
            traces: arrays::ids(batch, "trace_id")?,
            spans: arrays::ids(batch, "span_id")?,
            paths: arrays::uint64s(batch, "path")?.values(),
            values: arrays::int64s(batch, "value")?.values(),
            threads,
        })
    }

    fn trace(&self, row: usize) -> Option<TraceId> {
        self.traces.is_valid(row).then(|| TraceId(arrays::id_at(self.traces, row)))
    }

    fn span(&self, row: usize) -> Option<SpanId> {
        self.spans.is_valid(row).then(|| SpanId(arrays::id_at(self.spans, row)))
    }

    fn claim(&self, row: usize, series: usize) -> SampleClaim<'b> {
        let thread = self.threads.as_ref();
        SampleClaim {
            series,
            time: self.times[row],
            timed: self.timed.value(row),
            trace: self.trace(row),
            span: self.span(row),
            thread_id: thread.and_then(|(ids, _)| ids.is_valid(row).then(|| ids.value(row))),
            thread_name: thread.map_or("", |(_, names)| names.get(row)),
        }
    }
}

/// Threads by number; 0 is left for "not known".
#[derive(Default)]
struct ThreadTable {
    threads: Vec<SampleThread>,
    numbers: HashMap<SampleThread, u32>,
    last: Option<(SampleThread, u32)>,
}

impl ThreadTable {
    fn number(&mut self, id: Option<i64>, name: &str) -> u32 {
        if id.is_none() && name.is_empty() {
            return 0;
        }
        // Neighbours mostly share their thread.
        if let Some((last, number)) = &self.last
            && last.id == id
            && last.name.as_ref() == name
        {
            return *number;
        }
        let thread = SampleThread { id, name: Arc::from(name) };
        let next = self.threads.len() as u32 + 1;
        let number = *self.numbers.entry(thread.clone()).or_insert(next);
        if number == next {
            self.threads.push(thread.clone());
        }
        self.last = Some((thread, number));
        number
    }
}
