//! Rollups: samples summed by series, window and call path, so that a flame graph over hours reads few rows.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, TimestampNanosecondArray, UInt32Array, UInt64Array};
use hashbrown::HashMap;

use crate::arrays;
use crate::error::Result;
use crate::table::{HOUR, Table, WINDOW_15S};

/// Sums on their way into a rollup.
#[derive(Debug, Default)]
pub(crate) struct RollupSums {
    sums: HashMap<(u64, i64, u64), (i64, u32)>,
}

/// The length of the windows of a rollup table.
pub(crate) fn window_of(table: Table) -> i64 {
    if table == Table::Rollup1h { HOUR } else { WINDOW_15S }
}

impl RollupSums {
    /// Adds raw samples.
    pub(crate) fn add_samples(&mut self, samples: &RecordBatch, window: i64) -> Result<()> {
        let series = arrays::uint64s(samples, "series")?.values();
        let times = arrays::times(samples, "time")?.values();
        let paths = arrays::uint64s(samples, "path")?.values();
        let values = arrays::int64s(samples, "value")?.values();
        for row in 0..samples.num_rows() {
            self.add(series[row], floor(times[row], window), paths[row], values[row], 1);
        }
        Ok(())
    }

    /// Adds rows of a finer rollup.
    pub(crate) fn add_rollup(&mut self, rollup: &RecordBatch, window: i64) -> Result<()> {
        let series = arrays::uint64s(rollup, "series")?.values();
        let times = arrays::times(rollup, "time")?.values();
        let paths = arrays::uint64s(rollup, "path")?.values();
        let values = arrays::int64s(rollup, "value")?.values();
        let counts = arrays::uint32s(rollup, "count")?.values();
        for row in 0..rollup.num_rows() {
            self.add(series[row], floor(times[row], window), paths[row], values[row], counts[row]);
        }
        Ok(())
    }

    fn add(&mut self, series: u64, window: i64, path: u64, value: i64, count: u32) {
        let sum = self.sums.entry((series, window, path)).or_default();
        sum.0 = sum.0.wrapping_add(value);
        sum.1 = sum.1.saturating_add(count);
    }

    /// The rows in the order of the table.
    pub(crate) fn finish(self, table: Table) -> Result<RecordBatch> {
        let mut rows: Vec<RollupRow> = self
            .sums
            .into_iter()
            .map(|((series, time, path), (value, count))| RollupRow { series, time, path, value, count })
            .collect();
        rows.sort_unstable_by_key(|row| (row.series, row.time, row.path));
        rollup_batch(table, rows.into_iter())
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
