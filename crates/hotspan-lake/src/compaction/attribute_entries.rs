//! Reading the attributes of spans in another order than they came in.
//!
//! Rows that follow each other in the output lie anywhere in their batches, so that nearly every read waits for memory: for
//! where the entries of a row are, then for their keys and where their values are. Each step is made for some rows at once
//! and depends on nothing else, so that they all wait at the same time.

use super::attribute_values::PresentColumn;
use super::gather::Place;
use crate::arrays::TextMap;

/// Rows whose entries are looked up together: few enough to stay near, enough to keep the memory busy.
pub(super) const ROWS_AT_ONCE: usize = 64;

/// Where the attributes of a batch come from: its maps, and columns that the output does not have.
pub(crate) struct Source<'b> {
    pub(super) texts: SourceMap<'b>,
    pub(super) others: SourceMap<'b>,
    pub(super) leaving: Vec<(&'b str, PresentColumn<'b>)>,
}

/// A map, and the column that the values of each of its keys go to.
pub(super) struct SourceMap<'b> {
    map: TextMap<'b>,
    columns: Vec<usize>,
}

/// Stands for a key that has no column.
const NO_COLUMN: usize = usize::MAX;

impl<'b> SourceMap<'b> {
    pub(super) fn new(map: TextMap<'b>, column_of: impl Fn(&str) -> Option<usize>) -> Self {
        let keys = map.distinct_keys().iter().map(Option::unwrap_or_default);
        Self { map, columns: keys.map(|key| column_of(key).unwrap_or(NO_COLUMN)).collect() }
    }

    pub(super) fn key(&self, entry: &Entry<'b>) -> &'b str {
        self.map.key(entry.number)
    }
}

/// An entry of a map.
pub(super) struct Entry<'b> {
    number: usize,
    /// Where its value goes; past the last column if there is none for it.
    pub(super) column: usize,
    pub(super) value: &'b str,
}

/// The entries of some rows.
#[derive(Default)]
pub(super) struct EntriesOfRows<'b> {
    rows: Vec<std::ops::Range<usize>>,
    entries: Vec<Entry<'b>>,
    /// Where those of each row end.
    ends: Vec<usize>,
}

impl<'b> EntriesOfRows<'b> {
    /// Looks up the entries of other rows.
    pub(super) fn find<'s>(&mut self, places: &[Place], map_of: impl Fn(usize) -> &'s SourceMap<'b>)
    where
        'b: 's,
    {
        self.rows.clear();
        self.rows.extend(places.iter().map(|(batch, row)| map_of(*batch).map.entries_of(*row)));
        self.entries.clear();
        self.ends.clear();
        for ((batch, _), row) in places.iter().zip(&self.rows) {
            let SourceMap { map, columns } = map_of(*batch);
            let entry = |number| Entry { number, column: columns[map.code(number)], value: map.value(number) };
            self.entries.extend(row.clone().map(entry));
            self.ends.push(self.entries.len());
        }
    }

    /// The entries of one of the rows.
    pub(super) fn of_row(&self, at: usize) -> &[Entry<'b>] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.entries[start..self.ends[at]]
    }
}
