//! Reading a range of time for some series: from the coarsest rows that can answer exactly, down to samples.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use futures::TryStreamExt;
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_lake::{ReadOptions, Segment, Snapshot, Table, arrays};
use hotspan_model::TenantId;

use crate::Engine;
use crate::error::Result;

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
    /// Columns that samples and rollups both have; rollups bring their `count` besides.
    pub(crate) columns: &'q [&'q str],
}

/// Takes the batches of a scan one after another.
pub(crate) type EachBatch<'f> = dyn FnMut(&RecordBatch) -> Result<()> + Send + 'f;

impl Engine {
    /// Reads every row that counts, each sample once. Says how many segments that took.
    pub(crate) async fn scan(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        scan: &Scan<'_>,
        each: &mut EachBatch<'_>,
    ) -> Result<u64> {
        let (from, until) = scan.range;
        let windows = if scan.grain == Grain::Sample { (from, from) } else { inner_range(from, until, WINDOW_15S) };
        let hours =
            if scan.grain == Grain::Hour { inner_range(windows.0, windows.1, HOUR) } else { (windows.0, windows.0) };
        let mut segments_read = 0;
        // Hourly rollups hold what 15 s rollups of level 2 and up hold; those of level 1 are read beside them.
        let rollups = [
            (Table::Rollup1h, hours, None),
            (Table::Rollup15s, hours, Some(1)),
            (Table::Rollup15s, (windows.0, hours.0), None),
            (Table::Rollup15s, (hours.1, windows.1), None),
        ];
        let rollup_columns: Vec<&str> = scan.columns.iter().copied().chain(["count"]).collect();
        for (table, range, level) in rollups {
            for segment in snapshot.segments(tenant, table).iter() {
                if level.is_none_or(|level| segment.level == level) {
                    segments_read += self.scan_segment(segment, range, scan, &rollup_columns, each).await?;
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
                segments_read += self.scan_segment(segment, range, scan, scan.columns, each).await?;
            }
        }
        Ok(segments_read)
    }

    async fn scan_segment(
        &self,
        segment: &Arc<Segment>,
        (from, until): (i64, i64),
        scan: &Scan<'_>,
        columns: &[&str],
        each: &mut EachBatch<'_>,
    ) -> Result<u64> {
        if from >= until || !segment.overlaps(from, until) {
            return Ok(0);
        }
        let wanted = Arc::clone(scan.series);
        let options = ReadOptions::columns(columns)
            .within("time", from, until)
            .near_keys("series", Arc::clone(scan.series))
            .matching(&["series"], move |batch| series_matches(batch, &wanted));
        let mut stream = self.lake().reader().stream(segment, options).await?;
        while let Some(batch) = stream.try_next().await? {
            each(&batch)?;
        }
        Ok(1)
    }
}

/// How many samples a batch stands for.
pub(crate) fn sample_count(batch: &RecordBatch) -> u64 {
    match arrays::uint32s(batch, "count") {
        Ok(counts) => counts.values().iter().map(|count| u64::from(*count)).sum(),
        Err(_) => batch.num_rows() as u64,
    }
}

/// The whole windows inside a range; empty, at the range's start, if there is none.
pub(crate) fn inner_range(from: i64, until: i64, window: i64) -> (i64, i64) {
    let first = from.saturating_add(window - 1).div_euclid(window).saturating_mul(window);
    let last = until.div_euclid(window).saturating_mul(window);
    if first < last { (first, last) } else { (from, from) }
}

fn series_matches(batch: &RecordBatch, sorted: &[u64]) -> BooleanArray {
    match arrays::uint64s(batch, "series") {
        Ok(series) => {
            // Rows are sorted by series, so neighbours share the answer.
            let mut last = (0, sorted.binary_search(&0).is_ok());
            let fits = series.values().iter().map(|id| {
                if last.0 != *id {
                    last = (*id, sorted.binary_search(id).is_ok());
                }
                Some(last.1)
            });
            fits.collect()
        }
        Err(_) => std::iter::repeat_n(Some(false), batch.num_rows()).collect(),
    }
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
