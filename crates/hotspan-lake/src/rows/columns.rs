//! Growable columns: what a request is decoded into before it becomes Arrow.
//!
//! Arrow's own builders can't be appended to each other. Requests are decoded side by side and then joined
//! into one segment, so these are plain vectors that join by copying and turn into Arrow without copying.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, Int32Array, ListArray, MapArray, StringArray, StructArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Fields, Int32Type};
use arrow::error::ArrowError;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::table;

/// Text, one value a row.
#[derive(Debug, Clone)]
pub(crate) struct TextColumn {
    bytes: Vec<u8>,
    ends: Vec<i32>,
}

impl Default for TextColumn {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: vec![0] }
    }
}

impl TextColumn {
    /// Makes room for texts of this many bytes.
    pub(crate) fn reserve(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.bytes.reserve(bytes);
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    fn push_bytes(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.end_row();
    }

    /// Appends a row that `write` composes in place.
    pub(crate) fn push_with(&mut self, scratch: &mut String, write: impl FnOnce(&mut String)) {
        scratch.clear();
        write(scratch);
        self.push(scratch);
    }

    fn end_row(&mut self) {
        // A segment is cut at a few MiB and a request at `max_bytes`, both far under 2 GiB.
        self.ends.push(self.bytes.len() as i32);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn bytes_of(&self, row: usize) -> &[u8] {
        &self.bytes[self.ends[row] as usize..self.ends[row + 1] as usize]
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + 4 * self.ends.len()
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let base = self.bytes.len() as i32;
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends[1..].iter().map(|end| base + end));
    }

    /// Makes the rows before this one empty, as far as there is nothing yet.
    pub(crate) fn fill_up(&mut self, row: usize) {
        self.ends.resize((row + 1).max(self.ends.len()), self.bytes.len() as i32);
    }

    /// The Arrow column; `empty_is_null` makes absent what was empty.
    pub(crate) fn finish(self, empty_is_null: bool) -> Result<StringArray, ArrowError> {
        let nulls = empty_is_null.then(|| present_where(self.len(), |row| self.ends[row] != self.ends[row + 1]));
        self.into_array(nulls)
    }

    /// The Arrow column, where it is known which rows have a text.
    pub(crate) fn into_array(self, nulls: Option<NullBuffer>) -> Result<StringArray, ArrowError> {
        StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(self.ends)), Buffer::from_vec(self.bytes), nulls)
    }
}

/// Ids of `N` bytes, one a row. All zeros stand for "none".
#[derive(Debug, Clone, Default)]
pub(crate) struct IdColumn<const N: usize> {
    ids: Vec<[u8; N]>,
}

impl<const N: usize> IdColumn<N> {
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.ids.reserve(rows);
    }

    pub(crate) fn push(&mut self, id: &[u8; N]) {
        self.ids.push(*id);
    }

    pub(crate) fn extend(&mut self, ids: impl Iterator<Item = [u8; N]>) {
        self.ids.extend(ids);
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.ids.extend_from_slice(&other.ids);
    }

    pub(crate) fn get(&self, row: usize) -> &[u8; N] {
        &self.ids[row]
    }

    pub(crate) fn finish(self, zero_is_null: bool) -> Result<FixedSizeBinaryArray, ArrowError> {
        let nulls = zero_is_null.then(|| present_where(self.ids.len(), |row| self.ids[row] != [0; N]));
        FixedSizeBinaryArray::try_new(N as i32, Buffer::from_vec(self.ids.into_flattened()), nulls)
    }
}

/// Which of so many rows have a value.
fn present_where(rows: usize, is_present: impl FnMut(usize) -> bool) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::collect_bool(rows, is_present))
}

/// Text of which there are few distinct values; index 0 is the empty text.
#[derive(Debug, Clone)]
pub(crate) struct DictionaryColumn {
    values: TextColumn,
    /// Codes, found by what they stand for.
    index: HashTable<i32>,
    hasher: DefaultHashBuilder,
    rows: Vec<i32>,
}

impl Default for DictionaryColumn {
    fn default() -> Self {
        let (index, hasher) = (HashTable::new(), DefaultHashBuilder::default());
        let mut column = Self { values: TextColumn::default(), index, hasher, rows: Vec::new() };
        column.intern("");
        column
    }
}

impl DictionaryColumn {
    pub(crate) fn intern(&mut self, text: &str) -> i32 {
        self.intern_bytes(text.as_bytes())
    }

    fn intern_bytes(&mut self, text: &[u8]) -> i32 {
        let Self { values, index, hasher, .. } = self;
        let hash = hasher.hash_one(text);
        if let Some(code) = index.find(hash, |code| values.bytes_of(*code as usize) == text) {
            return *code;
        }
        let code = values.len() as i32;
        values.push_bytes(text);
        index.insert_unique(hash, code, |code| hasher.hash_one(values.bytes_of(*code as usize)));
        code
    }

    fn stands_for(&self, code: i32, text: &str) -> bool {
        self.values.bytes_of(code as usize) == text.as_bytes()
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    pub(crate) fn push_code(&mut self, code: i32) {
        self.rows.push(code);
    }

    pub(crate) fn extend_codes(&mut self, codes: impl Iterator<Item = i32>) {
        self.rows.extend(codes);
    }

    pub(crate) fn push(&mut self, text: &str) {
        let code = self.intern(text);
        self.rows.push(code);
    }

    pub(crate) fn size(&self) -> usize {
        self.values.size() + 8 * self.index.len() + 4 * self.rows.len()
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let texts = (0..other.values.len()).map(|code| other.values.bytes_of(code));
        let codes: Vec<i32> = texts.map(|text| self.intern_bytes(text)).collect();
        self.rows.extend(other.rows.iter().map(|code| codes[*code as usize]));
    }

    pub(crate) fn finish(self, empty_is_null: bool) -> Result<DictionaryArray<Int32Type>, ArrowError> {
        let nulls = empty_is_null.then(|| present_where(self.rows.len(), |row| self.rows[row] != 0));
        let keys = Int32Array::try_new(ScalarBuffer::from(self.rows), nulls)?;
        DictionaryArray::try_new(keys, Arc::new(self.values.finish(false)?))
    }
}

/// Where the elements of lists end.
#[derive(Debug, Clone)]
pub(crate) struct ListEnds(Vec<i32>);

impl Default for ListEnds {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl ListEnds {
    pub(crate) fn end_row(&mut self, element_count: usize) {
        self.0.push(element_count as i32);
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let base = self.0.last().copied().unwrap_or(0);
        self.0.extend(other.0[1..].iter().map(|end| base + end));
    }

    pub(crate) fn size(&self) -> usize {
        4 * self.0.len()
    }

    fn finish(self) -> OffsetBuffer<i32> {
        OffsetBuffer::new(ScalarBuffer::from(self.0))
    }

    pub(crate) fn into_list(self, elements: StructArray) -> Result<ListArray, ArrowError> {
        let field = arrow::datatypes::Field::new("item", elements.data_type().clone(), false);
        ListArray::try_new(Arc::new(field), self.finish(), Arc::new(elements), None)
    }
}

/// Text to text, any number of entries a row. Rows repeat the same few keys: of each only a code is stored and moved.
#[derive(Debug, Clone, Default)]
pub(crate) struct MapColumn {
    keys: DictionaryColumn,
    /// For each key the one that last came after it, and for the empty one the first of a row: mostly it comes again, and is
    /// then found without hashing it.
    next_keys: Vec<i32>,
    last_key: i32,
    values: TextColumn,
    ends: ListEnds,
}

impl MapColumn {
    /// Makes room for this many entries a row, whose values take so many bytes.
    pub(crate) fn reserve(&mut self, rows: usize, entries: usize, bytes: usize) {
        self.ends.0.reserve(rows);
        self.keys.reserve(rows * entries);
        self.values.reserve(rows * entries, rows * bytes);
    }

    pub(crate) fn entry(&mut self, key: &str, value: &str) {
        self.key(key);
        self.values.push(value);
    }

    pub(crate) fn entry_with(&mut self, key: &str, scratch: &mut String, write: impl FnOnce(&mut String)) {
        self.key(key);
        self.values.push_with(scratch, write);
    }

    fn key(&mut self, key: &str) {
        let expected = self.next_keys.get(self.last_key as usize).copied().unwrap_or(0);
        self.last_key = if self.keys.stands_for(expected, key) {
            expected
        } else {
            let code = self.keys.intern(key);
            self.next_keys.resize(self.keys.values.len(), 0);
            self.next_keys[self.last_key as usize] = code;
            code
        };
        self.keys.push_code(self.last_key);
    }

    pub(crate) fn end_row(&mut self) {
        self.last_key = 0;
        self.ends.end_row(self.values.len());
    }

    pub(crate) fn size(&self) -> usize {
        self.keys.size() + self.values.size() + self.ends.size()
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.keys.append(&other.keys);
        self.values.append(&other.values);
        self.ends.append(&other.ends);
    }

    pub(crate) fn finish(self) -> Result<MapArray, ArrowError> {
        let entries = struct_array(
            table::map_entry_fields(table::dictionary()),
            vec![Arc::new(self.keys.finish(false)?), Arc::new(self.values.finish(false)?)],
        )?;
        let DataType::Map(entry_field, ordered) = table::map() else {
            return Err(ArrowError::SchemaError("the map type of the lake is a map".to_owned()));
        };
        MapArray::try_new(entry_field, self.ends.finish(), entries, None, ordered)
    }
}

/// A struct of columns without nulls of its own.
pub(crate) fn struct_array(fields: Fields, columns: Vec<ArrayRef>) -> Result<StructArray, ArrowError> {
    StructArray::try_new(fields, columns, None)
}

#[cfg(test)]
mod tests {
    use crate::arrays::TextMap;

    use super::*;

    /// Scenario: rows whose keys come in the order of the row before, in another, twice, without a name, or not at all; then the
    /// same rows again behind those of another column.
    /// Guarantee: every row has the keys and values that it was given, and each distinct key has one code.
    #[test]
    fn keys_are_what_was_given() {
        let rows: [&[&str]; 7] =
            [&["a", "b", "c"], &["a", "b", "c"], &["b", "a"], &["a", "a", ""], &[], &["", "c"], &["b", "c", "new"]];
        let fill = |rows: &[&[&str]]| {
            let mut column = MapColumn::default();
            for (number, keys) in rows.iter().enumerate() {
                keys.iter().for_each(|key| column.entry(key, &format!("{key}{number}")));
                column.end_row();
            }
            column
        };
        let mut joined = fill(&rows[5..]);
        joined.append(&fill(&rows));
        let map = joined.finish().unwrap();
        let map = TextMap::of(&map).unwrap();
        let numbered = rows[5..].iter().enumerate().chain(rows.iter().enumerate());
        for (row, (number, keys)) in numbered.enumerate() {
            let found: Vec<_> = map.entries_of(row).map(|entry| (map.key(entry), map.value(entry))).collect();
            let values: Vec<String> = keys.iter().map(|key| format!("{key}{number}")).collect();
            assert_eq!(found, keys.iter().copied().zip(values.iter().map(String::as_str)).collect::<Vec<_>>());
        }
        assert_eq!(map.distinct_keys().len(), 5);
    }
}
