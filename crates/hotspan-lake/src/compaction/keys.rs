//! Sort keys: for each row the words that its place in the table's order depends on, equally many in all rows.

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};

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

    /// The rows in the order of their keys; rows with equal keys keep their order.
    pub(crate) fn sorted_rows(&self) -> Vec<u32> {
        // The first two words decide nearly always, and stand beside the row so that sorting need not look far.
        let mut places: Vec<(u64, u64, u32)> = (0..self.len())
            .map(|row| (self.words[row * self.width], self.words[row * self.width + 1], row as u32))
            .collect();
        let rest = |row: u32| &self.get(row as usize)[2..];
        places.sort_unstable_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| rest(a.2).cmp(rest(b.2))).then(a.2.cmp(&b.2))
        });
        places.into_iter().map(|(_, _, row)| row).collect()
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
