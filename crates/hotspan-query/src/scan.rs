//! Reading a range of time for some series: from the coarsest rows that can answer exactly, down to samples.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::HashMap;
use hotspan_lake::{ReadOptions, Snapshot, Table, arrays};
use hotspan_model::{Coverage, Exactness, TenantId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::linked_rows::{LinkedRow, LinkedRows};
use crate::sampled_time::SampledTime;
use crate::scan_plan::{PlannedRead, ScanPlan, ToldByWindows, Use};
use crate::series::SeriesEntry;
use crate::side_by_side::{Job, side_by_side};
use crate::symbols::runs;
use crate::window_counts::{FoundCounts, WINDOWS, windows_in};

/// The coarsest rows that a question can be answered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grain {
    /// Raw samples only: the question asks for something that rollups do not keep.
    Sample,
    /// Rollups of 15 seconds.
    Window,
    /// Rollups of an hour.
    Hour,
}

/// What to read.
#[derive(Debug, Clone)]
pub(crate) struct Scan<'q> {
    /// Start and end in nanoseconds since 1970, the end not included.
    pub(crate) range: (i64, i64),
    /// Ids of the series, sorted.
    pub(crate) series: &'q Arc<Vec<u64>>,
    /// The coarsest rows that will do.
    pub(crate) grain: Grain,
    /// Columns that samples and rollups both have.
    pub(crate) columns: &'q [&'q str],
}

/// A batch on its way to whoever counts its rows.
#[derive(Debug)]
struct ReadBatch {
    read_for: Use,
    /// Its number in the catalog.
    file: i64,
    /// Whether the windows of a series follow each other, as they do from level 1 on.
    in_order: bool,
    batch: RecordBatch,
}

/// Rows of a batch that count: which of the series asked for, and where its rows are.
#[derive(Debug)]
pub(crate) struct ScannedRows<'b> {
    pub(crate) batch: &'b RecordBatch,
    pub(crate) runs: Vec<(usize, Range<usize>)>,
}

/// Takes the rows of a scan batch by batch, in no particular order.
pub(crate) type EachRows<'f> = dyn FnMut(&ScannedRows<'_>) -> Result<()> + Send + 'f;

/// Rows of a file that one job reads: a row group.
const JOB_ROWS: usize = 1 << 18;
/// Rows that a batch has at most.
const BATCH_ROWS: usize = 1 << 15;

impl<'b> ScannedRows<'b> {
    fn of(batch: &'b RecordBatch, series: &[u64]) -> Result<Self> {
        let ids = arrays::uint64s(batch, "series")?.values();
        let number_of = |(id, rows)| Some((series.binary_search(&id).ok()?, rows));
        Ok(Self { batch, runs: runs(ids).filter_map(number_of).collect() })
    }

    /// How many samples the rows stand for.
    pub(crate) fn sample_count(&self) -> u64 {
        let counts = arrays::uint32s(self.batch, "count").ok().map(|counts| counts.values());
        let count_of = |rows: &Range<usize>| match counts {
            Some(counts) => counts[rows.clone()].iter().map(|count| u64::from(*count)).sum(),
            None => rows.len() as u64,
        };
        self.runs.iter().map(|(_, rows)| count_of(rows)).sum()
    }
}

impl Engine {
    /// Reads every row that a question counts: all of a time, or those of the spans and traces that it names.
    pub(crate) async fn scan_question(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        (question, series): (&FlameQuery, &[SeriesEntry]),
        scan: &Scan<'_>,
        each: &mut EachRows<'_>,
    ) -> Result<Exactness> {
        let Some(owners) = question.sample_owners() else {
            return self.scan(tenant, snapshot, scan, each).await;
        };
        let mut each = |linked: &LinkedRows<'_>| {
            let runs = linked.rows.iter().map(|LinkedRow { row, series, .. }| (*series, *row..row + 1)).collect();
            each(&ScannedRows { batch: linked.batch, runs })
        };
        let linked = question.linked(owners);
        Ok(self.visit_linked_rows(tenant, snapshot, &linked, series, scan.columns, &mut each).await?.exactness)
    }

    /// Reads every row that counts, each sample once. Says what that is, and how much of the time has samples.
    pub(crate) async fn scan(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        scan: &Scan<'_>,
        each: &mut EachRows<'_>,
    ) -> Result<Exactness> {
        let dropped = self.lake().rejected().between(tenant, scan.range.0, scan.range.1).samples;
        let segments = |table| snapshot.segments(tenant, table);
        let plan = ScanPlan::new(scan, segments, |segment| self.windows().of(segment.id, scan.series));
        let jobs = plan.reads.iter().flat_map(|read| self.scan_jobs(read, scan)).collect();
        let mut counting = Counting::of(&plan, scan.series);
        side_by_side(jobs, &mut |read| counting.count(&read, each)).await?;
        for (file, found) in &counting.found {
            self.windows().learn(*file, scan.series, found);
        }
        let (samples, coverage) = counting.finish();
        Ok(Exactness { samples, dropped, coverage, segments_read: plan.segments_read(), ..Exactness::default() })
    }

    /// The jobs that read the rows of a segment that may count. Rows of other series are told apart afterwards: they lie
    /// together, so that pages leave out most of them, and asking row by row costs more than the rest of the reading.
    fn scan_jobs(&self, read: &PlannedRead, scan: &Scan<'_>) -> Vec<Job<ReadBatch>> {
        let &PlannedRead { ref segment, range: (from, until), read_for } = read;
        let (file, in_order) = (segment.id, segment.level > 0);
        let mut columns = vec!["series"];
        columns.extend(read_for.needs_times().then_some("time"));
        columns.extend((segment.table != Table::Samples && read_for.needs_counts()).then_some("count"));
        if read_for != Use::Windows {
            let others = scan.columns.iter().filter(|column| !columns.contains(column)).copied().collect::<Vec<_>>();
            columns.extend(others);
        }
        let mut options =
            ReadOptions::columns(&columns).near_keys("series", Arc::clone(scan.series)).batch_rows(BATCH_ROWS);
        if segment.min_time < from || segment.max_time >= until {
            options = options.within("time", from, until);
        }
        let part = |first: usize| {
            let rows = first..(first + JOB_ROWS).min(segment.rows as usize);
            let whole = rows.len() == segment.rows as usize;
            let options = if whole { options.clone() } else { options.clone().rows(vec![rows]) };
            let (lake, segment) = (Arc::clone(self.lake()), Arc::clone(segment));
            let read = async move {
                let batches = lake.reader().stream(&segment, options).await?.map_err(QueryError::from);
                Ok(batches.map_ok(move |batch| ReadBatch { read_for, file, in_order, batch }).boxed())
            };
            read.boxed()
        };
        (0..segment.rows as usize).step_by(JOB_ROWS).map(part).collect()
    }
}

/// Counts what a plan reads.
#[derive(Debug)]
struct Counting<'p> {
    plan: &'p ScanPlan,
    /// Ids of the series, sorted.
    series: &'p [u64],
    samples: u64,
    sampled: SampledTime,
    /// What is found of the windows of files, by their numbers in the catalog: as well where nothing is.
    found: HashMap<i64, FoundCounts>,
}

impl<'p> Counting<'p> {
    fn of(plan: &'p ScanPlan, series: &'p [u64]) -> Self {
        let sampled = SampledTime::new(plan.parts.range, plan.whole_hours());
        let unknown = plan.reads.iter().filter(|read| read.read_for.tells_windows());
        let found = unknown.map(|read| (read.segment.id, FoundCounts::default())).collect();
        Self { plan, series, samples: 0, sampled, found }
    }

    /// Counts a batch, and hands on the rows that count.
    fn count(
        &mut self,
        ReadBatch { read_for, file, in_order, batch }: &ReadBatch,
        each: &mut EachRows<'_>,
    ) -> Result<()> {
        let rows = ScannedRows::of(batch, self.series)?;
        if read_for.tells_windows() {
            self.found.entry(*file).or_default().add(&rows, self.series)?;
        }
        match read_for {
            Use::Windows => return Ok(()),
            Use::Sums | Use::SumsAndWindows => return each(&rows),
            Use::Hours => self.sampled.note_hours(&rows)?,
            Use::OneHour if rows.runs.is_empty() => {}
            Use::OneHour => self.sampled.note_hour(self.plan.parts.hours.0),
            Use::Rows => self.sampled.note(&rows, *in_order)?,
        }
        self.samples += rows.sample_count();
        each(&rows)
    }

    /// Adds what windows tell: how many samples there are in all, and how much of the time has some.
    fn finish(mut self) -> (u64, Option<Coverage>) {
        for ToldByWindows { segment, range, is_counted, counts } in &self.plan.told {
            let counts = counts.or_else(|| self.found.get(&segment.id).map(FoundCounts::sum)).unwrap_or([0; WINDOWS]);
            for (time, count) in windows_in(Table::Rollup15s.partition_of(segment.min_time), &counts, *range) {
                self.sampled.note_time(time);
                self.samples += if *is_counted { count } else { 0 };
            }
        }
        (self.samples, self.sampled.coverage())
    }
}
