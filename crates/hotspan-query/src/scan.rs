//! Reading a range of time for some series: from the coarsest rows that can answer exactly, down to samples.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::HashMap;
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_lake::{ReadOptions, Segment, Snapshot, Table, arrays};
use hotspan_model::{Exactness, TenantId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::linked_rows::{LinkedRow, LinkedRows};
use crate::sampled_time::SampledTime;
use crate::series::SeriesEntry;
use crate::side_by_side::{Job, side_by_side};
use crate::symbols::runs;
use crate::window_counts::{FoundCounts, HourCounts, WINDOWS, windows_in};

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

/// What a batch is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Its rows count, and so do their times.
    Rows,
    /// Its rows count. How many samples they stand for, and when, is told by windows.
    Sums,
    /// The same, and it has all there is to know of the windows of its file.
    SumsAndWindows,
    /// Its rows count. Their times are whole hours.
    Hours,
    /// Its rows count. All are of the one hour that is asked for.
    OneHour,
    /// To know how many samples there are in each window of a file.
    Windows,
}

/// A 15 s rollup whose samples are told by windows.
#[derive(Debug)]
struct ToldByWindows {
    segment: Arc<Segment>,
    range: (i64, i64),
    /// Whether its rows count. Otherwise their sums by the hour do, and it tells no more than in which windows they lie.
    is_counted: bool,
    counts: Option<HourCounts>,
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
/// Hours of one series, those of all series together, whose windows are looked at where only hours are counted.
const MOST_WINDOWED_HOURS: usize = 48;
/// The same where windows are counted: beyond that they would not be remembered, and are told by the rows as they are read.
const MOST_TOLD_HOURS: usize = 256;

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
        let (from, until) = scan.range;
        let mut exactness =
            Exactness { dropped: self.lake().rejected().between(tenant, from, until).samples, ..Exactness::default() };
        let windows = if scan.grain == Grain::Sample { (from, from) } else { inner_range(from, until, WINDOW_15S) };
        let hours =
            if scan.grain == Grain::Hour { inner_range(windows.0, windows.1, HOUR) } else { (windows.0, windows.0) };
        let hour_count = usize::try_from(hours.1.saturating_sub(hours.0) / HOUR).unwrap_or(usize::MAX);
        let is_windowed = scan.series.len().saturating_mul(hour_count) <= MOST_WINDOWED_HOURS;
        let mut sampled = SampledTime::new(scan.range, if is_windowed { (from, from) } else { hours });
        if scan.series.is_empty() {
            exactness.coverage = sampled.coverage();
            return Ok(exactness);
        }
        let mut jobs: Vec<Job<ReadBatch>> = Vec::new();
        let mut read = |segment: &Arc<Segment>, range: (i64, i64), read_for: Use| {
            let is_read = range.0 < range.1 && segment.overlaps(range.0, range.1);
            if is_read {
                exactness.segments_read += 1;
                jobs.extend(self.scan_jobs(segment, range, scan, read_for));
            }
            is_read
        };
        for segment in snapshot.segments(tenant, Table::Rollup1h).iter() {
            read(segment, hours, if hour_count == 1 { Use::OneHour } else { Use::Hours });
        }
        // Hourly rollups hold what 15 s rollups of level 2 and up hold; those of level 1 are read beside them.
        let counted_hours =
            usize::try_from(windows.1.saturating_sub(windows.0) / HOUR).unwrap_or(usize::MAX) - hour_count;
        let is_told = scan.series.len().saturating_mul(counted_hours + 2) <= MOST_TOLD_HOURS;
        let mut told: Vec<ToldByWindows> = Vec::new();
        let mut unknown: HashMap<i64, FoundCounts> = HashMap::new();
        for segment in snapshot.segments(tenant, Table::Rollup15s).iter() {
            let known = self.windows().of(segment.id, scan.series);
            let mut tell = |range, is_counted| {
                told.push(ToldByWindows { segment: Arc::clone(segment), range, is_counted, counts: known });
            };
            let mut count = |range: (i64, i64)| {
                let is_whole = range.0 <= segment.min_time && segment.max_time < range.1;
                let read_for = match is_told {
                    true if known.is_none() && is_whole => Use::SumsAndWindows,
                    true => Use::Sums,
                    false => Use::Rows,
                };
                if read(segment, range, read_for) && is_told {
                    tell(range, true);
                }
                if read_for == Use::SumsAndWindows {
                    unknown.insert(segment.id, FoundCounts::default());
                }
            };
            count((windows.0, hours.0));
            count((hours.1, windows.1));
            if segment.level == 1 {
                count(hours);
            } else if is_windowed && hours.0 < hours.1 && segment.overlaps(hours.0, hours.1) {
                tell(hours, false);
            }
        }
        for segment in snapshot.segments(tenant, Table::Samples).iter() {
            // Young segments have no rollup yet.
            let ranges = if segment.level == 0 {
                [(from, until), (until, until)]
            } else {
                [(from, windows.0), (windows.1, until)]
            };
            for range in ranges {
                read(segment, range, Use::Rows);
            }
        }
        for ToldByWindows { segment, counts, .. } in &told {
            if counts.is_none() && !unknown.contains_key(&segment.id) {
                unknown.insert(segment.id, FoundCounts::default());
                jobs.extend(self.scan_jobs(segment, (segment.min_time, segment.max_time + 1), scan, Use::Windows));
            }
        }
        let mut each_batch = |ReadBatch { read_for, file, in_order, batch }: ReadBatch| {
            let rows = ScannedRows::of(&batch, scan.series)?;
            match read_for {
                Use::Windows => return unknown.entry(file).or_default().add(&rows, scan.series),
                Use::Sums => return each(&rows),
                Use::SumsAndWindows => {
                    unknown.entry(file).or_default().add(&rows, scan.series)?;
                    return each(&rows);
                }
                Use::Hours => sampled.note_hours(&rows)?,
                Use::OneHour if rows.runs.is_empty() => {}
                Use::OneHour => sampled.note_hour(hours.0),
                Use::Rows => sampled.note(&rows, in_order)?,
            }
            exactness.samples += rows.sample_count();
            each(&rows)
        };
        side_by_side(jobs, &mut each_batch).await?;
        for (file, found) in &unknown {
            self.windows().learn(*file, scan.series, found);
        }
        for ToldByWindows { segment, range, is_counted, counts } in told {
            let counts = counts.or_else(|| unknown.get(&segment.id).map(FoundCounts::sum)).unwrap_or([0; WINDOWS]);
            for (time, count) in windows_in(Table::Rollup15s.partition_of(segment.min_time), &counts, range) {
                sampled.note_time(time);
                exactness.samples += if is_counted { count } else { 0 };
            }
        }
        exactness.coverage = sampled.coverage();
        Ok(exactness)
    }

    /// The jobs that read the rows of a segment that may count. Rows of other series are told apart afterwards: they lie
    /// together, so that pages leave out most of them, and asking row by row costs more than the rest of the reading.
    fn scan_jobs(
        &self,
        segment: &Arc<Segment>,
        (from, until): (i64, i64),
        scan: &Scan<'_>,
        read_for: Use,
    ) -> Vec<Job<ReadBatch>> {
        let (file, in_order) = (segment.id, segment.level > 0);
        let mut columns = vec!["series"];
        columns
            .extend(matches!(read_for, Use::Rows | Use::Hours | Use::Windows | Use::SumsAndWindows).then_some("time"));
        columns.extend((segment.table != Table::Samples && read_for != Use::Sums).then_some("count"));
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

/// The whole windows inside a range; empty, at the range's start, if there is none.
pub(crate) fn inner_range(from: i64, until: i64, window: i64) -> (i64, i64) {
    let first = from.saturating_add(window - 1).div_euclid(window).saturating_mul(window);
    let last = until.div_euclid(window).saturating_mul(window);
    if first < last { (first, last) } else { (from, from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: ranges with and without whole windows inside. Guarantee: the three parts make up the range.
    #[test]
    fn inner_ranges() {
        assert_eq!(inner_range(0, 60, 15), (0, 60));
        assert_eq!(inner_range(1, 59, 15), (15, 45));
        assert_eq!(inner_range(1, 14, 15), (1, 1));
        assert_eq!(inner_range(16, 29, 15), (16, 16));
        assert_eq!(inner_range(-16, 16, 15), (-15, 15));
    }
}
