//! Sort keys: for each row the words that its place in the table's order depends on, equally many in all rows.

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};

use super::gather::Place;
use crate::arrays;
use crate::error::Result;
use crate::table::{Table, WINDOW_15S};

/// The keys of all rows of a batch. They compare word by word.
#[derive(Debug, Default)]
pub(crate) struct SortKeys {
    words: Vec<u64>,
    width: usize,
}

impl SortKeys {
    /// Computes the keys of a batch; a missing id sorts last.
    pub(crate) fn of(table: Table, batch: &RecordBatch) -> Result<Self> {
        let rows = batch.num_rows();
        let width = match table {
            Table::Spans => 2 + 1 + 1,
            Table::Samples => 1 + 1 + 2 + 1 + 1,
            Table::Traces | Table::Profiles => 1 + 2,
            Table::Rollup15s | Table::Rollup1h => 1 + 1 + 1,
            Table::Series => 1 + 1,
            Table::Nodes | Table::Frames => 1 + 1 + 1,
        };
        let mut keys = Self { words: vec![0; rows * width], width };
        match table {
            Table::Spans => {
                keys.put_ids::<2>(0, arrays::ids(batch, "trace_id")?);
                keys.put_times(2, arrays::times(batch, "start_time")?.values(), 1);
                keys.put_ids::<1>(3, arrays::ids(batch, "span_id")?);
            }
            Table::Samples => {
                let times = arrays::times(batch, "time")?.values();
                keys.put_u64s(0, arrays::uint64s(batch, "series")?.values());
                keys.put_times(1, times, WINDOW_15S);
                keys.put_ids::<2>(2, arrays::ids(batch, "trace_id")?);
                keys.put_ids::<1>(4, arrays::ids(batch, "span_id")?);
                keys.put_times(5, times, 1);
            }
            Table::Traces => {
                keys.put_times(0, arrays::times(batch, "start_time")?.values(), 1);
                keys.put_ids::<2>(1, arrays::ids(batch, "trace_id")?);
            }
            Table::Profiles => {
                keys.put_times(0, arrays::times(batch, "time")?.values(), 1);
                keys.put_ids::<2>(1, arrays::ids(batch, "profile_id")?);
            }
            Table::Rollup15s | Table::Rollup1h => {
                keys.put_u64s(0, arrays::uint64s(batch, "series")?.values());
                keys.put_times(1, arrays::times(batch, "time")?.values(), 1);
                keys.put_u64s(2, arrays::uint64s(batch, "path")?.values());
            }
            Table::Series => {
                keys.put_u64s(0, arrays::uint64s(batch, "series")?.values());
                keys.put_times(1, arrays::times(batch, "time")?.values(), 1);
            }
            Table::Nodes | Table::Frames => {
                keys.put_u64s(0, arrays::uint64s(batch, "service_id")?.values());
                keys.put_u64s(1, arrays::uint64s(batch, "id")?.values());
                keys.put_times(2, arrays::times(batch, "time")?.values(), 1);
            }
        }
        Ok(keys)
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> &[u64] {
        &self.words[row * self.width..(row + 1) * self.width]
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.width.max(1)
    }

    /// The end of the rows from `start` on whose keys are not greater than `limit`; rows must be sorted.
    pub(crate) fn end_of_run(&self, start: usize, limit: &[u64]) -> usize {
        // Runs are short for spans and long for samples: look ahead in growing steps, then halve.
        let mut step = 1;
        let mut low = start;
        while low + step < self.len() && self.get(low + step) <= limit {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(self.len());
        low += 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle) > limit {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn put_u64s(&mut self, offset: usize, values: &[u64]) {
        for (key, value) in self.words.chunks_exact_mut(self.width).zip(values) {
            key[offset] = *value;
        }
    }

    /// Times, or the windows of a length that they lie in, so that negative ones sort first.
    fn put_times(&mut self, offset: usize, values: &[i64], window: i64) {
        for (key, value) in self.words.chunks_exact_mut(self.width).zip(values) {
            key[offset] = (value.div_euclid(window) as u64) ^ (1 << 63);
        }
    }

    /// Ids of `WORDS` times eight bytes.
    fn put_ids<const WORDS: usize>(&mut self, offset: usize, ids: &FixedSizeBinaryArray) {
        for (row, key) in self.words.chunks_exact_mut(self.width).enumerate() {
            let key = &mut key[offset..offset + WORDS];
            if ids.is_null(row) {
                key.fill(u64::MAX);
                continue;
            }
            let (words, _) = ids.value(row).as_chunks::<8>();
            for (to, from) in key.iter_mut().zip(words) {
                *to = u64::from_be_bytes(*from);
            }
        }
    }
}

/// The rows of several batches in the order of their keys; rows with equal keys keep their order.
pub(super) fn sorted_places(batches: &[SortKeys]) -> Vec<Place> {
    let mut rows = Vec::with_capacity(batches.iter().map(SortKeys::len).sum());
    for (batch, keys) in batches.iter().enumerate() {
        rows.extend((0..keys.len()).map(|row| KeyedRow { word: 0, place: (batch as u64) << 32 | row as u64 }));
    }
    sort_from_word(&mut rows, batches, 0);
    rows.into_iter().map(|row| row.place()).collect()
}

/// A row, and the word of its key that is compared just now: beside it, so that sorting need not look far.
#[derive(Clone, Copy)]
struct KeyedRow {
    word: u64,
    /// The batch in the upper half, the row in the lower one.
    place: u64,
}

impl KeyedRow {
    fn place(self) -> Place {
        ((self.place >> 32) as usize, self.place as u32 as usize)
    }
}

/// Rows on average that runs of the same word must have to be moved as a whole.
const MIN_RUN: usize = 4;

/// Sorts rows that are in the order of their places by the words of their keys from `word` on. What one word can't tell apart
/// is sorted by the next: mostly a small group, such as the spans of a trace.
fn sort_from_word(rows: &mut [KeyedRow], batches: &[SortKeys], word: usize) {
    let width = batches.iter().map(|keys| keys.width).max().unwrap_or(0);
    if word >= width {
        return;
    }
    for row in &mut *rows {
        let (batch, at) = row.place();
        row.word = batches[batch].get(at)[word];
    }
    if !rows.is_sorted_by_key(|row| row.word) {
        // Samples of a profile come together and have the same series, window and often trace.
        let runs = 1 + rows.windows(2).filter(|pair| pair[0].word != pair[1].word).count();
        if runs * MIN_RUN <= rows.len() {
            let mut runs: Vec<&[KeyedRow]> = rows.chunk_by(|a, b| a.word == b.word).collect();
            runs.sort_by_key(|run| run[0].word);
            let sorted = runs.concat();
            rows.copy_from_slice(&sorted);
        } else {
            rows.sort_unstable_by_key(|row| (row.word, row.place));
        }
    }
    for group in rows.chunk_by_mut(|a, b| a.word == b.word).filter(|group| group.len() > 1) {
        sort_from_word(group, batches, word + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: keys of one to six words, many of them alike in their first words, in several batches.
    /// Guarantee: the order is that of whole keys, and equal ones stay in the order of their batches and rows.
    #[test]
    fn the_order_is_that_of_whole_keys() {
        let mut state = 7u64;
        let mut random = move |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for width in 1..=6 {
            let batches: Vec<SortKeys> = [0, 1, 70, 200]
                .map(|rows| SortKeys { words: (0..rows * width).map(|_| random(3)).collect(), width })
                .into();
            let mut expected: Vec<Place> = batches
                .iter()
                .enumerate()
                .flat_map(|(batch, keys)| (0..keys.len()).map(move |row| (batch, row)))
                .collect();
            expected.sort_by_key(|(batch, row)| batches[*batch].get(*row));
            assert_eq!(sorted_places(&batches), expected, "{width} words");
        }
    }
}
