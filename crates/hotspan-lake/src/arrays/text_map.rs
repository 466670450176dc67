//! Columns of text to text. Their keys are coded, so that a reader looks at each distinct key once a batch, and then only
//! compares numbers.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, MapArray, StringArray, UInt32Array};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;

use crate::error::Result;

/// A map column of a batch.
#[derive(Debug, Clone, Copy)]
pub struct TextMap<'a> {
    ends: &'a OffsetBuffer<i32>,
    codes: &'a ScalarBuffer<i32>,
    keys: &'a StringArray,
    values: &'a StringArray,
}

impl<'a> TextMap<'a> {
    pub(crate) fn of(map: &'a MapArray) -> Option<Self> {
        let keys = map.keys().as_dictionary_opt::<Int32Type>()?;
        Some(Self {
            ends: map.offsets(),
            codes: keys.keys().values(),
            keys: keys.values().as_string_opt()?,
            values: map.values().as_string_opt()?,
        })
    }

    /// The entries of all rows. There may be others, which belong to rows that a filter took away.
    pub fn entries(&self) -> Range<usize> {
        self.ends.first().map_or(0, |first| *first as usize)..self.ends.last().map_or(0, |last| *last as usize)
    }

    /// The entries of a row.
    pub fn entries_of(&self, row: usize) -> Range<usize> {
        range_of(self.ends, row)
    }

    /// What the codes of keys stand for. A key may stand here twice, and ones that no row has.
    pub fn distinct_keys(&self) -> &'a StringArray {
        self.keys
    }

    /// The keys that some row has; those that stand twice among the distinct ones may come twice.
    pub fn keys_in_use(&self) -> impl Iterator<Item = &'a str> {
        let mut is_used = vec![false; self.keys.len()];
        for entry in self.entries() {
            is_used[self.code(entry)] = true;
        }
        let keys = self.keys;
        is_used.into_iter().enumerate().filter(|(_, is_used)| *is_used).map(|(code, _)| keys.value(code))
    }

    /// Where the key of an entry stands among the distinct ones.
    #[inline]
    pub fn code(&self, entry: usize) -> usize {
        self.codes[entry] as usize
    }

    /// The key of an entry.
    pub fn key(&self, entry: usize) -> &'a str {
        self.keys.value(self.code(entry))
    }

    /// The value of an entry.
    pub fn value(&self, entry: usize) -> &'a str {
        self.values.value(entry)
    }

    /// The values of one key; none if no row can have it.
    pub fn values_of(&self, key: &str) -> Option<ValuesOfKey> {
        let is_key: Vec<bool> = self.keys.iter().map(|known| known == Some(key)).collect();
        is_key.contains(&true).then(|| ValuesOfKey {
            ends: self.ends.clone(),
            codes: self.codes.clone(),
            is_key,
            values: self.values.clone(),
        })
    }
}

/// What rows have under one key.
#[derive(Debug)]
pub struct ValuesOfKey {
    ends: OffsetBuffer<i32>,
    codes: ScalarBuffer<i32>,
    /// By code.
    is_key: Vec<bool>,
    values: StringArray,
}

impl ValuesOfKey {
    /// The first value of a row.
    pub fn first(&self, row: usize) -> Option<&str> {
        let entry = range_of(&self.ends, row).find(|entry| self.has_key(*entry))?;
        Some(self.values.value(entry))
    }

    /// All values with their rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        let (first, last) = (self.ends[0] as usize, self.ends[self.ends.len() - 1] as usize);
        let mut row = 0;
        (first..last).filter(|entry| self.has_key(*entry)).map(move |entry| {
            // Few entries have the key, and they come in the order of their rows.
            row += self.ends[row..].partition_point(|end| *end as usize <= entry) - 1;
            (row, self.values.value(entry))
        })
    }

    #[inline]
    fn has_key(&self, entry: usize) -> bool {
        self.is_key[self.codes[entry] as usize]
    }
}

/// The same rows with their entries in the order of the keys. Entries of one key stay in the order that they have.
pub(crate) fn in_order_of_keys(map: &MapArray) -> Result<MapArray> {
    let damaged = || ArrowError::SchemaError("a map of texts whose keys are not coded".to_owned());
    let texts = TextMap::of(map).ok_or_else(damaged)?;
    let ranks = ranks_of(texts.keys);
    let mut entries: Vec<u32> = Vec::with_capacity(texts.entries().len());
    let mut is_same = true;
    for row in 0..map.len() {
        let start = entries.len();
        entries.extend(texts.entries_of(row).map(|entry| entry as u32));
        let of_row = &mut entries[start..];
        let rank = |entry: &u32| ranks[texts.code(*entry as usize)];
        if !of_row.is_sorted_by_key(rank) {
            is_same = false;
            of_row.sort_by_key(rank);
        }
    }
    if is_same {
        return Ok(map.clone());
    }
    let DataType::Map(field, is_sorted) = map.data_type() else { return Err(damaged().into()) };
    let ends = OffsetBuffer::from_lengths(map.offsets().lengths());
    let entries = take(map.entries(), &UInt32Array::from(entries), None)?;
    Ok(MapArray::try_new(Arc::clone(field), ends, entries.as_struct().clone(), map.nulls().cloned(), *is_sorted)?)
}

/// Of each key, how many others come before it.
fn ranks_of(keys: &StringArray) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|at| keys.value(*at));
    let mut ranks = vec![0; keys.len()];
    for pair in order.windows(2) {
        ranks[pair[1]] = ranks[pair[0]] + usize::from(keys.value(pair[0]) != keys.value(pair[1]));
    }
    ranks
}

fn range_of(ends: &OffsetBuffer<i32>, row: usize) -> Range<usize> {
    ends[row] as usize..ends[row + 1] as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::array::{ArrayRef, BooleanArray};
    use arrow::compute::{concat, filter};

    use super::*;
    use crate::rows::MapColumn;

    fn map(rows: &[&[(&str, &str)]]) -> ArrayRef {
        let mut column = MapColumn::default();
        for row in rows {
            row.iter().for_each(|(key, value)| column.entry(key, value));
            column.end_row();
        }
        Arc::new(column.finish().unwrap())
    }

    fn rows_of(map: &ArrayRef) -> Vec<Vec<(&str, &str)>> {
        let map = TextMap::of(map.as_map()).unwrap();
        let rows = (0..map.ends.len() - 1).map(|row| map.entries_of(row));
        rows.map(|entries| entries.map(|entry| (map.key(entry), map.value(entry))).collect()).collect()
    }

    /// Scenario: rows with the same keys in the same and in other orders, twice, none, and an empty one; joined to others and
    /// filtered.
    /// Guarantee: every row has what it was given, in order, and a key is found in the rows that have it. Brought into the order of
    /// keys, what one key has stays in order.
    #[test]
    fn rows_keep_their_entries() {
        let first: [&[(&str, &str)]; 5] = [
            &[("a", "1"), ("b", "2")],
            &[("a", "3"), ("b", "4"), ("a", "5")],
            &[],
            &[("b", "6"), ("a", "7"), ("", "8")],
            &[("a", ""), ("b", "9")],
        ];
        let second: [&[(&str, &str)]; 2] = [&[("c", "10"), ("b", "11")], &[("", "12")]];
        let joined = concat(&[map(&first).as_ref(), map(&second).as_ref()]).unwrap();
        let expected: Vec<Vec<(&str, &str)>> = first.iter().chain(&second).map(|row| row.to_vec()).collect();
        assert_eq!(rows_of(&joined), expected);

        let kept = [false, true, true, true, false, true, false];
        let sorted: ArrayRef = Arc::new(in_order_of_keys(joined.slice(1, 5).as_map()).unwrap());
        let mut expected_order = expected[1..6].to_vec();
        expected_order.iter_mut().for_each(|entries| entries.sort_by_key(|entry| entry.0));
        assert_eq!(rows_of(&sorted), expected_order);

        let filtered = filter(&joined, &BooleanArray::from(kept.to_vec())).unwrap();
        let sliced = joined.slice(1, 3);
        for (part, expected) in [
            (&filtered, vec![&expected[1], &expected[2], &expected[3], &expected[5]]),
            (&sliced, expected[1..4].iter().collect()),
        ] {
            assert_eq!(rows_of(part).iter().collect::<Vec<_>>(), expected);
            let map = TextMap::of(part.as_map()).unwrap();
            for key in ["a", "b", "c", ""] {
                let rows = expected.iter().enumerate();
                let having: Vec<(usize, &str)> = rows
                    .flat_map(|(row, entries)| {
                        entries.iter().filter(|entry| entry.0 == key).map(move |entry| (row, entry.1))
                    })
                    .collect();
                let found = map.values_of(key);
                assert_eq!(found.iter().flat_map(ValuesOfKey::iter).collect::<Vec<_>>(), having, "{key:?}");
                for row in 0..expected.len() {
                    let first = having.iter().find(|(at, _)| *at == row).map(|(_, value)| *value);
                    assert_eq!(found.as_ref().and_then(|values| values.first(row)), first);
                }
            }
            assert!(map.values_of("d").is_none());
            let in_use: BTreeSet<&str> = map.keys_in_use().collect();
            assert_eq!(in_use, expected.iter().flat_map(|row| row.iter().map(|entry| entry.0)).collect());
        }
    }
}
