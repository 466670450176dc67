//! Reading a range of time for some series: from the coarsest rows that can answer exactly, down to samples.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_lake::{ReadOptions, Segment, Snapshot, Table, arrays};
use hotspan_model::TenantId;

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::linked_rows::{LinkedRow, LinkedRows};
use crate::series::SeriesEntry;
use crate::side_by_side::{Job, side_by_side};
use crate::symbols::runs;

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
    /// Whether it matters how many samples a row of a rollup stands for.
    pub(crate) with_counts: bool,
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
    ) -> Result<()> {
        let Some(owners) = question.sample_owners() else {
            return self.scan(tenant, snapshot, scan, each).await.map(|_| ());
        };
        let mut each = |linked: &LinkedRows<'_>| {
            let runs = linked.rows.iter().map(|LinkedRow { row, series, .. }| (*series, *row..row + 1)).collect();
            each(&ScannedRows { batch: linked.batch, runs })
        };
        let linked = question.linked(owners);
        self.visit_linked_rows(tenant, snapshot, &linked, series, scan.columns, &mut each).await.map(|_| ())
    }

    /// Reads every row that counts, each sample once. Says how many segments that took.
    pub(crate) async fn scan(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        scan: &Scan<'_>,
        each: &mut EachRows<'_>,
    ) -> Result<u64> {
        let (from, until) = scan.range;
        let windows = if scan.grain == Grain::Sample { (from, from) } else { inner_range(from, until, WINDOW_15S) };
        let hours =
            if scan.grain == Grain::Hour { inner_range(windows.0, windows.1, HOUR) } else { (windows.0, windows.0) };
        let mut segments_read = 0;
        let mut jobs: Vec<Job<RecordBatch>> = Vec::new();
        let mut read = |segment: &Arc<Segment>, range: (i64, i64)| {
            if range.0 < range.1 && segment.overlaps(range.0, range.1) {
                segments_read += 1;
                jobs.extend(self.scan_jobs(segment, range, scan));
            }
        };
        // Hourly rollups hold what 15 s rollups of level 2 and up hold; those of level 1 are read beside them.
        let rollups = [
            (Table::Rollup1h, hours, None),
            (Table::Rollup15s, hours, Some(1)),
            (Table::Rollup15s, (windows.0, hours.0), None),
            (Table::Rollup15s, (hours.1, windows.1), None),
        ];
        for (table, range, level) in rollups {
            for segment in snapshot.segments(tenant, table).iter() {
                if level.is_none_or(|level| segment.level == level) {
                    read(segment, range);
                }
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
                read(segment, range);
            }
        }
        side_by_side(jobs, &mut |batch| each(&ScannedRows::of(&batch, scan.series)?)).await?;
        Ok(segments_read)
    }

    /// The jobs that read the rows of a segment that may count. Rows of other series are told apart afterwards: they lie
    /// together, so that pages leave out most of them, and asking row by row costs more than the rest of the reading.
    fn scan_jobs(&self, segment: &Arc<Segment>, (from, until): (i64, i64), scan: &Scan<'_>) -> Vec<Job<RecordBatch>> {
        let count = (segment.table != Table::Samples && scan.with_counts).then_some("count");
        let columns: Vec<&str> = scan.columns.iter().copied().chain(["series"]).chain(count).collect();
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
            let read =
                async move { Ok(lake.reader().stream(&segment, options).await?.map_err(QueryError::from).boxed()) };
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
