//! Stored samples of a set of spans or traces, in one pass over the segments that can hold them: the one way to them,
//! whatever is then made of the rows.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, FixedSizeBinaryArray, Int64Array, RecordBatch};
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::{Exactness, LinkStrength, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::linked::LinkedQuery;
use crate::owners::{Owner, OwnerFilter, SampleClaim, SampleOwners};
use crate::process::united_length;
use crate::sampled_time::SampledTime;
use crate::series::SeriesEntry;
use crate::side_by_side::{Job, side_by_side};

/// A sample that belongs to somebody who is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkedRow {
    /// Where it stands in its batch.
    pub(crate) row: usize,
    /// Which of the series asked for.
    pub(crate) series: usize,
    /// Whose it is, and how surely.
    pub(crate) owner: Owner,
}

/// Samples that stand in one batch.
#[derive(Debug)]
pub(crate) struct LinkedRows<'b> {
    pub(crate) batch: &'b RecordBatch,
    pub(crate) rows: Vec<LinkedRow>,
}

/// What was shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visited {
    pub(crate) exactness: Exactness,
    /// Nanoseconds in which the traces asked for ran; none if no traces were asked for.
    pub(crate) traces_time: Option<i64>,
}

/// The spans of some traces.
#[derive(Debug, Default)]
pub(crate) struct SpansOfTraces {
    pub(crate) traces: HashMap<SpanId, TraceId>,
    /// Nanoseconds in which one of its spans ran, of each trace, summed up.
    pub(crate) time: i64,
}

/// Takes samples batch by batch, in no particular order.
pub(crate) type EachLinkedRows<'f> = dyn FnMut(&LinkedRows<'_>) -> Result<()> + Send + 'f;

/// Rows of a file that one job reads.
const JOB_ROWS: usize = 1 << 18;
/// Traces whose spans are kept in memory at once (R5).
const TRACES_AT_ONCE: usize = 1 << 16;

/// What is read to tell whose a sample is.
const CLAIM_COLUMNS: [&str; 5] = ["series", "time", "timed", "trace_id", "span_id"];

impl Engine {
    /// Shows every sample of a set of spans or traces to `each`, with `columns` besides those that say whose it is.
    pub(crate) async fn visit_linked_rows(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
        series: &[SeriesEntry],
        columns: &[&str],
        each: &mut EachLinkedRows<'_>,
    ) -> Result<Visited> {
        let dropped = self.lake().rejected().between(tenant, query.from, query.until).samples;
        let everybodys_time = matches!(query.owners, SampleOwners::Everybody)
            .then(|| SampledTime::new((query.from, query.until), (0, 0)));
        let exactness = Exactness { dropped, ..Exactness::default() };
        if series.is_empty() || query.owners.is_empty() {
            let coverage = everybodys_time.and_then(SampledTime::coverage);
            return Ok(Visited { exactness: Exactness { coverage, ..exactness }, traces_time: None });
        }
        let mut traces_time = None;
        let mut visit = Visit {
            engine: self,
            tenant,
            snapshot,
            query,
            sorted: Arc::new(series.iter().map(|entry| entry.id.0).collect()),
            fits: series.iter().map(|entry| query.selector.fits(&entry.labels)).collect(),
            columns,
            seen: Seen {
                profiles: query.profiles.iter().map(|profile| profile.0).collect(),
                exactness,
                everybodys_time,
                ..Seen::default()
            },
        };
        for owners in query.owners.parts() {
            match owners {
                SampleOwners::Traces(traces) => {
                    for traces in traces.chunks(TRACES_AT_ONCE) {
                        let spans = self.spans_of(tenant, snapshot, traces).await?;
                        traces_time = Some(spans.time.saturating_add(traces_time.unwrap_or(0)));
                        visit.read(&OwnerFilter::of_traces(traces, spans.traces), each).await?;
                    }
                }
                owners => visit.read(&OwnerFilter::new(owners, series), each).await?,
            }
            let (asked, range) = ((owners, series, &query.selector), (query.from, query.until));
            let columns = visit.columns_with(&["series", "time", "timed"]);
            let seen = &mut visit.seen;
            let mut each_uploaded = |batch: &RecordBatch, rows| seen.show(batch, rows, each);
            self.visit_named_uploads(tenant, snapshot, asked, range, &columns, &mut each_uploaded).await?;
        }
        let Seen { mut exactness, spans, everybodys_time, .. } = visit.seen;
        exactness.spans = spans.len() as u64;
        exactness.coverage = everybodys_time.and_then(SampledTime::coverage);
        Ok(Visited { exactness, traces_time })
    }

    /// The spans of traces: samples that name their span and no trace are found by them.
    pub(crate) async fn spans_of(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        traces: &[TraceId],
    ) -> Result<SpansOfTraces> {
        let ids = Arc::new(IdSet::traces(traces.iter().copied()));
        let options = ReadOptions::columns(&["trace_id", "span_id", "start_time", "duration"]);
        let (whenever, mut exactness) = ((i64::MIN, i64::MAX), Exactness::default());
        let jobs = self.id_jobs(tenant, snapshot, Table::Spans, &ids, whenever, &options, &mut exactness).await?;
        let mut found = SpansOfTraces::default();
        let mut times: HashMap<TraceId, Vec<(i64, i64)>> = HashMap::new();
        let mut each = |batch: RecordBatch| {
            let (traces, spans) = (arrays::ids(&batch, "trace_id")?, arrays::ids(&batch, "span_id")?);
            let starts = arrays::times(&batch, "start_time")?.values();
            let durations = arrays::int64s(&batch, "duration")?.values();
            for row in 0..batch.num_rows() {
                let trace = TraceId(arrays::id_at(traces, row));
                found.traces.insert(SpanId(arrays::id_at(spans, row)), trace);
                let end = starts[row].saturating_add(durations[row].max(0));
                times.entry(trace).or_default().push((starts[row], end));
            }
            Ok(())
        };
        side_by_side(jobs, &mut each).await?;
        found.time = times.into_values().map(united_length).fold(0, i64::saturating_add);
        Ok(found)
    }

    /// The jobs that read the rows of a table with ids of a set whose time lies in a range: row by row, so that it makes no
    /// difference what else a file holds (R2).
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
        let options = options.clone().within(table.time_column(), from, until);
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
}

/// A question under way.
struct Visit<'q> {
    engine: &'q Engine,
    tenant: &'q TenantId,
    snapshot: &'q Snapshot,
    query: &'q LinkedQuery,
    /// Ids of the series, in their order.
    sorted: Arc<Vec<u64>>,
    /// Which of them have the labels that are asked for; the others may only be named by spans.
    fits: Vec<bool>,
    columns: &'q [&'q str],
    seen: Seen,
}

impl<'q> Visit<'q> {
    /// The columns that the question asks for, and these.
    fn columns_with(&self, others: &[&'q str]) -> Vec<&'q str> {
        let mut columns = others.to_vec();
        let profile_id = (!self.seen.profiles.is_empty()).then_some("profile_id");
        for column in self.columns.iter().copied().chain(profile_id) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }

    /// Reads the samples of those that a filter knows.
    async fn read(&mut self, filter: &OwnerFilter, each: &mut EachLinkedRows<'_>) -> Result<()> {
        let (from, until) = (self.query.from, self.query.until);
        let mut columns = CLAIM_COLUMNS.to_vec();
        if filter.needs_threads() {
            columns.extend(["thread_id", "thread_name"]);
        }
        let options = ReadOptions::columns(&self.columns_with(&columns))
            .within("time", from, until)
            .near_keys("series", Arc::clone(&self.sorted));
        let Self { engine, tenant, snapshot, sorted, fits, seen, .. } = self;
        let exactness = &mut seen.exactness;
        let jobs = match filter.id_set() {
            Some(ids) => {
                engine.id_jobs(tenant, snapshot, Table::Samples, &ids, (from, until), &options, exactness).await?
            }
            None => engine.range_jobs(tenant, snapshot, (from, until), &options, exactness),
        };
        let mut each = |batch: RecordBatch| {
            let claims = Claims::of(&batch)?;
            // Rows of a series mostly follow each other.
            let mut last = (None, None);
            let linked = |row| {
                let id = claims.series[row];
                if last.0 != Some(id) {
                    last = (Some(id), sorted.binary_search(&id).ok().filter(|series| fits[*series]));
                }
                let series = last.1?;
                let owner = filter.owner(&claims.of_row(row, series))?;
                Some(LinkedRow { row, series, owner })
            };
            let rows = (0..batch.num_rows()).filter_map(linked).collect();
            seen.show(&batch, rows, each)
        };
        side_by_side(jobs, &mut each).await
    }
}

/// What has been shown so far.
#[derive(Debug, Default)]
struct Seen {
    /// Only samples of these profiles are shown; of any, if there is none.
    profiles: HashSet<[u8; 16]>,
    exactness: Exactness,
    spans: HashSet<(Option<TraceId>, SpanId)>,
    /// When there were samples, where everybody's count: such a question is about a time.
    everybodys_time: Option<SampledTime>,
}

impl Seen {
    fn show(&mut self, batch: &RecordBatch, mut rows: Vec<LinkedRow>, each: &mut EachLinkedRows<'_>) -> Result<()> {
        if !self.profiles.is_empty() {
            let ids = arrays::ids(batch, "profile_id")?;
            rows.retain(|row| self.profiles.contains(&arrays::id_at::<16>(ids, row.row)));
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.exactness.samples += rows.len() as u64;
        if let Some(noted) = &mut self.everybodys_time {
            let times = arrays::times(batch, "time")?.values();
            rows.iter().for_each(|row| noted.note_time(times[row.row]));
        }
        let mut last = None;
        for LinkedRow { owner: (trace_id, span_id, link), .. } in &rows {
            match link {
                LinkStrength::Exact => self.exactness.linked_samples += u64::from(span_id.is_some()),
                LinkStrength::Inherited => self.exactness.inherited_samples += 1,
                LinkStrength::Inferred => self.exactness.inferred_samples += 1,
            }
            let span = span_id.map(|span_id| (*trace_id, span_id));
            // So do those of a span.
            if span != last {
                self.spans.extend(span);
                last = span;
            }
        }
        each(&LinkedRows { batch, rows })
    }
}

/// The columns of a batch that say whose its samples are.
struct Claims<'b> {
    series: &'b [u64],
    times: &'b [i64],
    timed: &'b BooleanArray,
    traces: &'b FixedSizeBinaryArray,
    spans: &'b FixedSizeBinaryArray,
    threads: Option<(&'b Int64Array, arrays::Texts<'b>)>,
}

impl<'b> Claims<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Self> {
        let has_threads = batch.column_by_name("thread_id").is_some() && batch.column_by_name("thread_name").is_some();
        let threads = match has_threads {
            true => Some((arrays::int64s(batch, "thread_id")?, arrays::texts(batch, "thread_name")?)),
            false => None,
        };
        Ok(Self {
            series: arrays::uint64s(batch, "series")?.values(),
            times: arrays::times(batch, "time")?.values(),
            timed: arrays::booleans(batch, "timed")?,
            traces: arrays::ids(batch, "trace_id")?,
            spans: arrays::ids(batch, "span_id")?,
            threads,
        })
    }

    fn of_row(&self, row: usize, series: usize) -> SampleClaim<'b> {
        let thread = self.threads.as_ref();
        SampleClaim {
            series,
            time: self.times[row],
            timed: self.timed.value(row),
            trace: self.traces.is_valid(row).then(|| TraceId(arrays::id_at(self.traces, row))),
            span: self.spans.is_valid(row).then(|| SpanId(arrays::id_at(self.spans, row))),
            thread_id: thread.and_then(|(ids, _)| ids.is_valid(row).then(|| ids.value(row))),
            thread_name: thread.map_or("", |(_, names)| names.get(row)),
        }
    }
}
