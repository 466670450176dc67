//! Sort keys: for each row the bytes that its place in the table's order depends on, all of one length.

use std::cmp::Ordering;

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};

use crate::arrays;
use crate::error::Result;
use crate::table::{Table, WINDOW_15S};

/// The keys of all rows of a batch.
#[derive(Debug, Default)]
pub(crate) struct SortKeys {
    bytes: Vec<u8>,
    width: usize,
}

impl SortKeys {
    /// Computes the keys of a batch. Keys compare as bytes; a missing id sorts last.
    pub(crate) fn of(table: Table, batch: &RecordBatch) -> Result<Self> {
        let rows = batch.num_rows();
        let width = match table {
            Table::Spans => 16 + 8 + 8,
            Table::Samples => 8 + 8 + 16 + 8 + 8,
            Table::Traces | Table::Profiles => 8 + 16,
            Table::Rollup15s | Table::Rollup1h => 8 + 8 + 8,
            Table::Series => 8 + 8,
            Table::Nodes | Table::Frames => 8 + 8 + 8,
        };
        let mut keys = Self { bytes: vec![0; rows * width], width };
        match table {
            Table::Spans => {
                keys.put_ids::<16>(0, arrays::ids(batch, "trace_id")?);
                keys.put_times(16, arrays::times(batch, "start_time")?.values(), 1);
                keys.put_ids::<8>(24, arrays::ids(batch, "span_id")?);
            }
            Table::Samples => {
                let times = arrays::times(batch, "time")?.values();
                keys.put_u64s(0, arrays::uint64s(batch, "series")?.values());
                keys.put_times(8, times, WINDOW_15S);
                keys.put_ids::<16>(16, arrays::ids(batch, "trace_id")?);
                keys.put_ids::<8>(32, arrays::ids(batch, "span_id")?);
                keys.put_times(40, times, 1);
            }
            Table::Traces => {
                keys.put_times(0, arrays::times(batch, "start_time")?.values(), 1);
                keys.put_ids::<16>(8, arrays::ids(batch, "trace_id")?);
            }
            Table::Profiles => {
                keys.put_times(0, arrays::times(batch, "time")?.values(), 1);
                keys.put_ids::<16>(8, arrays::ids(batch, "profile_id")?);
            }
            Table::Rollup15s | Table::Rollup1h => {
                keys.put_u64s(0, arrays::uint64s(batch, "series")?.values());
                keys.put_times(8, arrays::times(batch, "time")?.values(), 1);
                keys.put_u64s(16, arrays::uint64s(batch, "path")?.values());
            }
            Table::Series => {
                keys.put_u64s(0, arrays::uint64s(batch, "series")?.values());
                keys.put_times(8, arrays::times(batch, "time")?.values(), 1);
            }
            Table::Nodes | Table::Frames => {
                keys.put_u64s(0, arrays::uint64s(batch, "service_id")?.values());
                keys.put_u64s(8, arrays::uint64s(batch, "id")?.values());
                keys.put_times(16, arrays::times(batch, "time")?.values(), 1);
            }
        }
        Ok(keys)
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.width..(row + 1) * self.width]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.width.max(1)
    }

    /// The rows in the order of their keys; rows with equal keys keep their order.
    pub(crate) fn sorted_rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        rows.sort_by(|a, b| self.get(*a as usize).cmp(self.get(*b as usize)));
        rows
    }

    /// The end of the rows from `start` on whose keys are not greater than `limit`; rows must be sorted.
    pub(crate) fn end_of_run(&self, start: usize, limit: &[u8]) -> usize {
        // Runs are short for spans and long for samples: look ahead in growing steps, then halve.
        let mut step = 1;
        let mut low = start;
        while low + step < self.len() && self.get(low + step).cmp(limit) != Ordering::Greater {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(self.len());
        low += 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).cmp(limit) == Ordering::Greater {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn put_u64s(&mut self, offset: usize, values: &[u64]) {
        for (key, value) in self.bytes.chunks_exact_mut(self.width).zip(values) {
            key[offset..offset + 8].copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Times, or the windows of a length that they lie in, so that negative ones sort first.
    fn put_times(&mut self, offset: usize, values: &[i64], window: i64) {
        for (key, value) in self.bytes.chunks_exact_mut(self.width).zip(values) {
            let ordered = (value.div_euclid(window) as u64) ^ (1 << 63);
            key[offset..offset + 8].copy_from_slice(&ordered.to_be_bytes());
        }
    }

    fn put_ids<const N: usize>(&mut self, offset: usize, ids: &FixedSizeBinaryArray) {
        for (row, key) in self.bytes.chunks_exact_mut(self.width).enumerate() {
            if ids.is_valid(row) {
                key[offset..offset + N].copy_from_slice(ids.value(row));
            } else {
                key[offset..offset + N].fill(0xff);
            }
        }
    }
}
