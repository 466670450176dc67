//! Sort keys: for each row the words that its place in the table's order depends on, equally many in all rows.

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use arrow::buffer::NullBuffer;

use super::gather::Place;
use crate::arrays;
use crate::error::{LakeError, Result};
use crate::table::{Table, WINDOW_15S};

/// A word of the keys, where it is read from.
#[derive(Debug, Clone, Copy)]
enum Word<'b> {
    Numbers(&'b [u64]),
    /// Times, or the windows of a length that they lie in, so that negative ones sort first.
    Times(&'b [i64], i64),
    /// One of the words of each id; a missing id sorts last.
    Ids(IdWords<'b>),
}

impl Word<'_> {
    #[inline]
    fn at(&self, row: usize) -> u64 {
        match *self {
            Self::Numbers(values) => values[row],
            Self::Times(times, window) => time_word(times[row], window),
            Self::Ids(ids) => ids.at(row),
        }
    }

    /// Calls for each of some rows with its word. What kind of word it is is asked once.
    #[inline]
    fn each<R>(&self, rows: impl Iterator<Item = R>, row_of: impl Fn(&R) -> usize, mut take: impl FnMut(R, u64)) {
        match *self {
            Self::Numbers(values) => rows.for_each(|row| {
                let at = row_of(&row);
                take(row, values[at]);
            }),
            Self::Times(times, window) => rows.for_each(|row| {
                let at = row_of(&row);
                take(row, time_word(times[at], window));
            }),
            Self::Ids(ids) => rows.for_each(|row| {
                let at = row_of(&row);
                take(row, ids.at(at));
            }),
        }
    }
}

#[inline]
fn time_word(time: i64, window: i64) -> u64 {
    // Dividing takes long.
    let windows = if window == 1 { time } else { time.div_euclid(window) };
    windows as u64 ^ (1 << 63)
}

/// A column of ids as words of eight bytes.
#[derive(Debug, Clone, Copy)]
struct IdWords<'b> {
    words: &'b [[u8; 8]],
    words_of_id: usize,
    /// Which of them.
    number: usize,
    nulls: Option<&'b NullBuffer>,
}

impl<'b> IdWords<'b> {
    fn of(ids: &'b FixedSizeBinaryArray, number: usize) -> Self {
        let words_of_id = ids.value_length() as usize / 8;
        Self { words: ids.value_data().as_chunks().0, words_of_id, number, nulls: ids.nulls() }
    }

    #[inline]
    fn at(&self, row: usize) -> u64 {
        match self.nulls {
            Some(nulls) if nulls.is_null(row) => u64::MAX,
            _ => u64::from_be_bytes(self.words[row * self.words_of_id + self.number]),
        }
    }
}

/// The keys of the rows of a batch, word by word from its columns: who sorts many rows mostly needs the first few words, one
/// after another, and has no memory to fill with all of them.
#[derive(Debug)]
pub(super) struct KeyWords<'b> {
    words: Vec<Word<'b>>,
    rows: usize,
}

impl<'b> KeyWords<'b> {
    pub(super) fn of(table: Table, batch: &'b RecordBatch) -> Result<Self> {
        let numbers = |name| Ok::<_, LakeError>(Word::Numbers(arrays::uint64s(batch, name)?.values()));
        let times = |name, window| Ok::<_, LakeError>(Word::Times(arrays::times(batch, name)?.values(), window));
        let ids = |name, number| Ok::<_, LakeError>(Word::Ids(IdWords::of(arrays::ids(batch, name)?, number)));
        let words = match table {
            Table::Spans => {
                vec![ids("trace_id", 0)?, ids("trace_id", 1)?, times("start_time", 1)?, ids("span_id", 0)?]
            }
            Table::Samples => vec![
                numbers("series")?,
                times("time", WINDOW_15S)?,
                ids("trace_id", 0)?,
                ids("trace_id", 1)?,
                ids("span_id", 0)?,
                times("time", 1)?,
            ],
            Table::Traces => vec![times("start_time", 1)?, ids("trace_id", 0)?, ids("trace_id", 1)?],
            Table::Profiles => vec![times("time", 1)?, ids("profile_id", 0)?, ids("profile_id", 1)?],
            Table::Rollup15s | Table::Rollup1h => vec![numbers("series")?, times("time", 1)?, numbers("path")?],
            Table::Series => vec![numbers("series")?, times("time", 1)?],
            Table::Nodes | Table::Frames => vec![numbers("service_id")?, numbers("id")?, times("time", 1)?],
        };
        Ok(Self { words, rows: batch.num_rows() })
    }

    /// The first words of a row's key, as many as are asked for.
    pub(super) fn first_words<const WORDS: usize>(&self, row: usize) -> [u64; WORDS] {
        std::array::from_fn(|word| self.words[word].at(row))
    }

    /// Whether a row has the same key as one of another batch of the table.
    pub(super) fn are_same(&self, row: usize, other: &Self, other_row: usize) -> bool {
        self.words.iter().zip(&other.words).all(|(word, other_word)| word.at(row) == other_word.at(other_row))
    }
}

/// The keys of all rows of a batch side by side, for who compares whole keys. They compare word by word.
#[derive(Debug, Default)]
pub(crate) struct SortKeys {
    words: Vec<u64>,
    width: usize,
}

impl SortKeys {
    /// Computes the keys of a batch.
    pub(crate) fn of(table: Table, batch: &RecordBatch) -> Result<Self> {
        let columns = KeyWords::of(table, batch)?;
        let width = columns.words.len();
        let mut words = vec![0; columns.rows * width];
        for (offset, column) in columns.words.iter().enumerate() {
            column.each(
                words.chunks_exact_mut(width).enumerate(),
                |(row, _)| *row,
                |(_, key), word| key[offset] = word,
            );
        }
        Ok(Self { words, width })
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
}

/// The rows of several batches in the order of their keys; rows with equal keys keep their order.
pub(super) fn sorted_places(batches: &[KeyWords<'_>]) -> Vec<Place> {
    let mut rows = Vec::with_capacity(batches.iter().map(|keys| keys.rows).sum());
    for (batch, keys) in batches.iter().enumerate() {
        rows.extend((0..keys.rows).map(|row| KeyedRow { word: 0, place: (batch as u64) << 32 | row as u64 }));
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
fn sort_from_word(rows: &mut [KeyedRow], batches: &[KeyWords<'_>], word: usize) {
    if batches.first().is_none_or(|keys| word >= keys.words.len()) {
        return;
    }
    // Neighbours mostly stand in one batch.
    for of_one_batch in rows.chunk_by_mut(|a, b| a.place().0 == b.place().0) {
        let column = &batches[of_one_batch[0].place().0].words[word];
        column.each(of_one_batch.iter_mut(), |row| row.place().1, |row, word| row.word = word);
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
            let columns: Vec<Vec<Vec<u64>>> =
                [0, 1, 70, 200].map(|rows| (0..width).map(|_| (0..rows).map(|_| random(3)).collect()).collect()).into();
            let batches: Vec<KeyWords<'_>> = columns
                .iter()
                .map(|columns| {
                    let words = columns.iter().map(|values| Word::Numbers(values)).collect();
                    KeyWords { words, rows: columns[0].len() }
                })
                .collect();
            let mut expected: Vec<Place> = batches
                .iter()
                .enumerate()
                .flat_map(|(batch, keys)| (0..keys.rows).map(move |row| (batch, row)))
                .collect();
            expected.sort_by_key(|(batch, row)| -> Vec<u64> {
                columns[*batch].iter().map(|values| values[*row]).collect()
            });
            assert_eq!(sorted_places(&batches), expected, "{width} words");
        }
    }
}
