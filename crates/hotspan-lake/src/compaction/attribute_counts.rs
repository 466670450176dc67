//! Which attributes of spans are frequent enough for a column of their own.

use arrow::array::{Array, RecordBatch};
use hashbrown::HashMap;

use super::attributes::{AttributeColumns, ColumnType, attribute_field};
use crate::arrays::{self, TextMap};
use crate::error::Result;

/// An attribute gets a column if at least one span in this many has it.
const SPANS_PER_VALUE: u64 = 100;
/// How many attribute columns a file has at most.
const MAX_COLUMNS: usize = 128;

/// How often each attribute occurs, by key and type.
#[derive(Debug, Default)]
pub(crate) struct AttributeCounts {
    /// Keys are numbered as they come.
    numbers: HashMap<String, u32>,
    /// By number and type.
    counts: Vec<[u64; ColumnType::ALL.len()]>,
    spans: u64,
}

impl AttributeCounts {
    /// Gives an attribute a column however often it occurs.
    pub(crate) fn keep(&mut self, key: &str, column_type: ColumnType) {
        let number = self.number(key);
        self.counts[number as usize][column_type as usize] = u64::MAX;
    }

    /// Counts the attributes of a batch, those in maps and those in columns.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.spans += batch.num_rows() as u64;
        self.add_map(arrays::maps(batch, "attributes")?, |_| Some(ColumnType::Text));
        self.add_map(arrays::maps(batch, "attributes_json")?, ColumnType::of_json);
        let schema = batch.schema_ref();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if let Some((key, column_type)) = attribute_field(field) {
                let number = self.number(key);
                self.count(number, column_type, (column.len() - column.null_count()) as u64);
            }
        }
        Ok(())
    }

    fn add_map(&mut self, map: TextMap<'_>, type_of: impl Fn(&str) -> Option<ColumnType>) {
        // A key is numbered once a batch, not once an entry.
        let keys = map.distinct_keys().iter().map(Option::unwrap_or_default);
        let numbers: Vec<u32> = keys.map(|key| self.number(key)).collect();
        for entry in map.entries() {
            if let Some(column_type) = type_of(map.value(entry)) {
                self.count(numbers[map.code(entry)], column_type, 1);
            }
        }
    }

    fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.counts.len() as u32;
        self.numbers.insert(key.to_owned(), number);
        self.counts.push([0; ColumnType::ALL.len()]);
        number
    }

    fn count(&mut self, number: u32, column_type: ColumnType, spans: u64) {
        let sum = &mut self.counts[number as usize][column_type as usize];
        *sum = sum.saturating_add(spans);
    }

    /// The attributes that deserve a column, sorted by key; of a key with several types, the most frequent.
    pub(crate) fn choose(&self) -> AttributeColumns {
        let mut frequent: Vec<(&str, ColumnType, u64)> = Vec::new();
        for (key, number) in &self.numbers {
            for (column_type, count) in ColumnType::ALL.into_iter().zip(self.counts[*number as usize]) {
                if count > 0 && count.saturating_mul(SPANS_PER_VALUE) >= self.spans {
                    frequent.push((key, column_type, count));
                }
            }
        }
        frequent.sort_unstable_by(|a, b| b.2.cmp(&a.2).then_with(|| (a.0, a.1).cmp(&(b.0, b.1))));
        let mut columns: Vec<(String, ColumnType)> = Vec::new();
        for (key, column_type, _) in frequent {
            if columns.len() < MAX_COLUMNS && columns.iter().all(|(other, _)| other != key) {
                columns.push((key.to_owned(), column_type));
            }
        }
        columns.sort_unstable();
        AttributeColumns::new(columns)
    }
}
