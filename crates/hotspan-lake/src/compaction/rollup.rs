//! Rollups: samples summed by series, window and call path, so that a flame graph over hours reads few rows.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, TimestampNanosecondArray, UInt32Array, UInt64Array};

use crate::arrays;
use crate::error::Result;
use crate::table::{HOUR, Table, WINDOW_15S};

/// The length of the windows of a rollup table.
fn window_of(table: Table) -> i64 {
    if table == Table::Rollup1h { HOUR } else { WINDOW_15S }
}

/// Sums on their way into a rollup.
///
/// What is summed mostly comes in the order of series and time, so that one group of series and window is open at a time
/// and its paths are sorted when it is complete: far cheaper than to look up each row among all sums.
#[derive(Debug)]
pub(crate) struct RollupSums {
    table: Table,
    open: (u64, i64),
    /// Paths of the open group, some of them several times.
    paths: Vec<PathSum>,
    /// How many paths the open group may have before those that stand twice are joined.
    paths_until_joined: usize,
    rows: Vec<RollupRow>,
    in_order: bool,
}

#[derive(Debug, Clone, Copy)]
struct PathSum {
    path: u64,
    value: i64,
    count: u32,
}

/// Few enough to sort in the fastest cache.
const MIN_PATHS_UNTIL_JOINED: usize = 2048;

impl RollupSums {
    /// Sums for a rollup table.
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            open: (0, i64::MIN),
            paths: Vec::new(),
            paths_until_joined: MIN_PATHS_UNTIL_JOINED,
            rows: Vec::new(),
            in_order: true,
        }
    }

    /// Adds raw samples.
    pub(crate) fn add_samples(&mut self, samples: &RecordBatch) -> Result<()> {
        let series = arrays::uint64s(samples, "series")?.values();
        let times = arrays::times(samples, "time")?.values();
        let paths = arrays::uint64s(samples, "path")?.values();
        let values = arrays::int64s(samples, "value")?.values();
        for row in 0..samples.num_rows() {
            self.add(series[row], times[row], paths[row], values[row], 1);
        }
        Ok(())
    }

    /// Adds rows of a finer rollup.
    pub(crate) fn add_rollup(&mut self, rollup: &RecordBatch) -> Result<()> {
        let series = arrays::uint64s(rollup, "series")?.values();
        let times = arrays::times(rollup, "time")?.values();
        let paths = arrays::uint64s(rollup, "path")?.values();
        let values = arrays::int64s(rollup, "value")?.values();
        let counts = arrays::uint32s(rollup, "count")?.values();
        for row in 0..rollup.num_rows() {
            self.add(series[row], times[row], paths[row], values[row], counts[row]);
        }
        Ok(())
    }

    /// Adds a value of one sample or several at a time.
    pub(crate) fn add(&mut self, series: u64, time: i64, path: u64, value: i64, count: u32) {
        let group = (series, floor(time, window_of(self.table)));
        if group != self.open {
            self.close_group();
            self.open = group;
        }
        self.paths.push(PathSum { path, value, count });
        if self.paths.len() >= self.paths_until_joined {
            self.join_paths();
            self.paths_until_joined = MIN_PATHS_UNTIL_JOINED.max(2 * self.paths.len());
        }
    }

    fn join_paths(&mut self) {
        self.paths.sort_unstable_by_key(|sum| sum.path);
        self.paths.dedup_by(|next, sum| {
            let same = next.path == sum.path;
            if same {
                sum.value = sum.value.saturating_add(next.value);
                sum.count = sum.count.saturating_add(next.count);
            }
            same
        });
    }

    fn close_group(&mut self) {
        self.join_paths();
        self.paths_until_joined = MIN_PATHS_UNTIL_JOINED;
        let (series, time) = self.open;
        self.in_order &= self.rows.last().is_none_or(|last| (last.series, last.time) < self.open);
        let rows = self.paths.drain(..).map(|sum| RollupRow {
            series,
            time,
            path: sum.path,
            value: sum.value,
            count: sum.count,
        });
        self.rows.extend(rows);
    }

    /// Rows that are complete, if there are so many and all came in the order of the table: those of the groups before the
    /// open one.
    pub(crate) fn take_complete(&mut self, at_least: usize) -> Result<Option<RecordBatch>> {
        if !self.in_order || self.rows.len() < at_least {
            return Ok(None);
        }
        // The last one stays, to tell whether what follows is in order.
        let last = self.rows.split_off(self.rows.len() - 1);
        let complete = std::mem::replace(&mut self.rows, last);
        rollup_batch(self.table, complete.into_iter()).map(Some)
    }

    /// The rows in the order of the table.
    pub(crate) fn finish(mut self) -> Result<RecordBatch> {
        self.close_group();
        if !self.in_order {
            self.rows.sort_unstable_by_key(RollupRow::key);
            self.rows.dedup_by(|next, sum| sum.absorb(next));
        }
        rollup_batch(self.table, self.rows.into_iter())
    }
}

fn floor(time: i64, window: i64) -> i64 {
    time.div_euclid(window) * window
}

/// One row of a rollup table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RollupRow {
    pub(crate) series: u64,
    pub(crate) time: i64,
    pub(crate) path: u64,
    pub(crate) value: i64,
    pub(crate) count: u32,
}

impl RollupRow {
    /// What its place in the table depends on.
    pub(crate) fn key(&self) -> (u64, i64, u64) {
        (self.series, self.time, self.path)
    }

    /// Adds another row of the same key to this one; says whether it is one.
    pub(crate) fn absorb(&mut self, other: &Self) -> bool {
        let same = self.key() == other.key();
        if same {
            self.value = self.value.saturating_add(other.value);
            self.count = self.count.saturating_add(other.count);
        }
        same
    }
}

/// Rows of a rollup table as a batch.
pub(crate) fn rollup_batch(table: Table, rows: impl ExactSizeIterator<Item = RollupRow>) -> Result<RecordBatch> {
    let mut series = Vec::with_capacity(rows.len());
    let mut times = Vec::with_capacity(rows.len());
    let mut paths = Vec::with_capacity(rows.len());
    let mut values = Vec::with_capacity(rows.len());
    let mut counts = Vec::with_capacity(rows.len());
    for row in rows {
        series.push(row.series);
        times.push(row.time);
        paths.push(row.path);
        values.push(row.value);
        counts.push(row.count);
    }
    Ok(RecordBatch::try_new(
        table.schema(),
        vec![
            Arc::new(UInt64Array::from(series)),
            Arc::new(TimestampNanosecondArray::from(times)),
            Arc::new(UInt64Array::from(paths)),
            Arc::new(Int64Array::from(values)),
            Arc::new(UInt32Array::from(counts)),
        ],
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: values of few paths, many of them, in order of series and time and in no order at all.
    /// Guarantee: the same rows, each key once, with the sums and counts of all values.
    #[test]
    fn sums_do_not_depend_on_the_order() {
        let mut values: Vec<(u64, i64, u64)> =
            (0..20_000).map(|at: u64| (at % 3, (at % 7) as i64 * WINDOW_15S + 5, at % 101)).collect();
        let sum = |values: &[(u64, i64, u64)]| {
            let mut sums = RollupSums::new(Table::Rollup15s);
            for (series, time, path) in values {
                sums.add(*series, *time, *path, *path as i64 + 1, 1);
            }
            sums.finish().unwrap()
        };
        let mixed = sum(&values);
        values.sort_unstable();
        let sorted = sum(&values);
        assert_eq!(mixed, sorted);
        assert_eq!(sorted.num_rows(), 3 * 7 * 101);
        let expected: i64 = values.iter().map(|(_, _, path)| *path as i64 + 1).sum();
        assert_eq!(arrays::int64s(&sorted, "value").unwrap().values().iter().sum::<i64>(), expected);
        assert_eq!(arrays::uint32s(&sorted, "count").unwrap().values().iter().sum::<u32>(), 20_000);
    }

    /// Scenario: values of one path that together have more than fits into 64 bits. Guarantee: the largest number there is.
    #[test]
    fn sums_stay_in_range() {
        let mut sums = RollupSums::new(Table::Rollup15s);
        for _ in 0..3 {
            sums.add(1, 5, 7, i64::MAX, 1);
        }
        assert_eq!(arrays::int64s(&sums.finish().unwrap(), "value").unwrap().values(), &[i64::MAX]);
        let mut row = RollupRow { series: 1, time: 5, path: 7, value: i64::MAX, count: 1 };
        let same = row;
        assert!(row.absorb(&same));
        assert_eq!(row.value, i64::MAX);
    }

    /// Scenario: sums that are taken as soon as there are some, while values come in order.
    /// Guarantee: together they are the rows that come out at once.
    #[test]
    fn complete_rows_can_be_taken_early() {
        let values =
            (0..3).flat_map(|series| (0..50).flat_map(move |window| (0..9).map(move |at| (series, window, at % 4))));
        let (mut whole, mut parts) = (RollupSums::new(Table::Rollup15s), RollupSums::new(Table::Rollup15s));
        let mut taken = Vec::new();
        for (series, window, path) in values {
            whole.add(series, window * WINDOW_15S, path, 2, 1);
            parts.add(series, window * WINDOW_15S, path, 2, 1);
            taken.extend(parts.take_complete(10).unwrap());
        }
        assert!(taken.len() > 10);
        taken.push(parts.finish().unwrap());
        let together = arrow::compute::concat_batches(&Table::Rollup15s.schema(), &taken).unwrap();
        assert_eq!(together, whole.finish().unwrap());
    }
}
