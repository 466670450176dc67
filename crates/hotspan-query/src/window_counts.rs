//! How many samples each window of a 15 s rollup stands for, remembered by file and series.
//!
//! Answers say how many samples they rest on and in which windows there are any. Files never change, so what was read of
//! one once need not be read again: sums over time then read call paths and values alone.

use hashbrown::HashMap;
use hotspan_lake::arrays;
use hotspan_lake::table::{HOUR, WINDOW_15S};

use crate::error::Result;
use crate::scan::ScannedRows;

/// Windows of an hour, which is what a file of 15 s rollups holds.
pub(crate) const WINDOWS: usize = (HOUR / WINDOW_15S) as usize;
/// Series of files that are remembered, a kilobyte each (R5). When there are more, all are forgotten.
const MOST_REMEMBERED: usize = 4096;

/// Samples in each window of an hour.
pub(crate) type HourCounts = [u64; WINDOWS];

/// What is known of files, by their number in the catalog; no two tenants share one (R6).
#[derive(Debug, Default)]
pub(crate) struct WindowCounts {
    /// None where a file has nothing of a series.
    known: HashMap<(i64, u64), Option<Box<[u32; WINDOWS]>>>,
}

impl WindowCounts {
    /// The samples of these series in a file; none unless all of them are known.
    pub(crate) fn of(&self, file: i64, series: &[u64]) -> Option<HourCounts> {
        let mut sums = [0; WINDOWS];
        for id in series {
            if let Some(counts) = self.known.get(&(file, *id))? {
                sums.iter_mut().zip(counts.iter()).for_each(|(sum, count)| *sum += u64::from(*count));
            }
        }
        Some(sums)
    }

    /// Remembers what was found of these series in a file.
    pub(crate) fn learn(&mut self, file: i64, series: &[u64], found: &FoundCounts) {
        if self.known.len() + series.len() > MOST_REMEMBERED {
            self.known.clear();
        }
        let count_of = |id: &u64| found.0.get(id).cloned();
        self.known.extend(series.iter().map(|id| ((file, *id), count_of(id))));
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        let counted = self.known.values().flatten().count();
        self.known.len() * size_of::<((i64, u64), Option<Box<[u32; WINDOWS]>>)>()
            + counted * size_of::<[u32; WINDOWS]>()
    }
}

/// What is found of a file while it is read.
#[derive(Debug, Default)]
pub(crate) struct FoundCounts(HashMap<u64, Box<[u32; WINDOWS]>>);

impl FoundCounts {
    /// Adds rows of a file, window by window: a window's rows lie together.
    pub(crate) fn add(&mut self, rows: &ScannedRows<'_>, series: &[u64]) -> Result<()> {
        let times = arrays::times(rows.batch, "time")?.values();
        let counts = arrays::uint32s(rows.batch, "count")?.values();
        for (number, run) in &rows.runs {
            let sums = self.0.entry(series[*number]).or_insert_with(|| Box::new([0; WINDOWS]));
            for (time, count) in times[run.clone()].iter().zip(&counts[run.clone()]) {
                let sum = &mut sums[window_of(*time)];
                *sum = sum.saturating_add(*count);
            }
        }
        Ok(())
    }

    /// The samples of all series.
    pub(crate) fn sum(&self) -> HourCounts {
        let mut sums = [0; WINDOWS];
        for counts in self.0.values() {
            sums.iter_mut().zip(counts.iter()).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        sums
    }
}

fn window_of(time: i64) -> usize {
    (time.rem_euclid(HOUR) / WINDOW_15S) as usize
}

/// The starts of windows with samples in a part of an hour, and how many samples each has.
pub(crate) fn windows_in(
    hour: i64,
    counts: &HourCounts,
    (from, until): (i64, i64),
) -> impl Iterator<Item = (i64, u64)> {
    let starts = (0..WINDOWS as i64).map(move |window| hour + window * WINDOW_15S);
    starts.zip(*counts).filter(move |(start, count)| *count > 0 && (from..until).contains(start))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{RecordBatch, TimestampNanosecondArray, UInt32Array};

    use super::*;

    /// Scenario: rows of two series in three windows of an hour; questions about both, about one, about one that the file
    /// has nothing of and about one that nobody looked for; then more than is remembered.
    /// Guarantee: exact sums by window for what is known, nothing for what is not; memory stays bounded.
    #[test]
    fn counts_are_remembered() {
        let hour = 100 * HOUR;
        let times: TimestampNanosecondArray = [0, 0, 1, 239].map(|window| hour + window * WINDOW_15S).to_vec().into();
        let counts = UInt32Array::from(vec![3, 4, 5, 6]);
        let batch =
            RecordBatch::try_from_iter([("time", Arc::new(times) as _), ("count", Arc::new(counts) as _)]).unwrap();
        let mut found = FoundCounts::default();
        found.add(&ScannedRows { batch: &batch, runs: vec![(0, 0..3), (1, 3..4)] }, &[7, 8]).unwrap();
        let told = |counts: &HourCounts, range| windows_in(hour, counts, range).collect::<Vec<_>>();
        let (whole, last) = ((hour, hour + HOUR), hour + 239 * WINDOW_15S);
        assert_eq!(told(&found.sum(), whole), [(hour, 7), (hour + WINDOW_15S, 5), (last, 6)]);
        assert_eq!(told(&found.sum(), (hour + 1, last)), [(hour + WINDOW_15S, 5)]);
        let mut memory = WindowCounts::default();
        assert_eq!(memory.of(1, &[7]), None);
        memory.learn(1, &[7, 8, 9], &found);
        assert_eq!(memory.of(1, &[7, 8, 9]), Some(found.sum()));
        assert_eq!(memory.bytes(), 3 * 24 + 2 * 960);
        assert_eq!(told(&memory.of(1, &[8]).unwrap(), whole), [(last, 6)]);
        assert_eq!(memory.of(1, &[9]).map(|counts| counts.iter().sum()), Some(0));
        assert_eq!((memory.of(1, &[7, 10]), memory.of(2, &[7])), (None, None));
        let many: Vec<u64> = (100..100 + MOST_REMEMBERED as u64).collect();
        memory.learn(3, &many, &FoundCounts::default());
        assert_eq!((memory.known.len(), memory.of(1, &[7])), (MOST_REMEMBERED, None));
    }
}
