//! `flame_merge(path, value)`: the aggregate behind a flame graph, with partial states that merge.
//!
//! Its result is a list of (path, value), the heaviest first; `collapsed(...)` writes that as stacks of names.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StructArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use hashbrown::HashMap;

/// The aggregate, ready to be registered.
pub(crate) fn flame_merge() -> AggregateUDF {
    AggregateUDF::from(FlameMerge {
        signature: Signature::exact(vec![DataType::UInt64, DataType::Int64], Volatility::Immutable),
    })
}

/// The type of merged paths: a list of (path, value).
pub(crate) fn merged_type() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Struct(entry_fields()), true)))
}

fn entry_fields() -> Fields {
    Fields::from(vec![Field::new("path", DataType::UInt64, false), Field::new("value", DataType::Int64, false)])
}

/// The entries of one list of merged paths.
pub(crate) fn entries(list: &StructArray) -> impl Iterator<Item = (u64, i64)> + '_ {
    let paths = list.column(0).as_primitive::<UInt64Type>();
    let values = list.column(1).as_primitive::<Int64Type>();
    paths.values().iter().copied().zip(values.values().iter().copied())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FlameMerge {
    signature: Signature,
}

impl AggregateUDFImpl for FlameMerge {
    fn name(&self) -> &'static str {
        "flame_merge"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(merged_type())
    }

    fn accumulator(&self, _arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(PathSums::default()))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[paths]", arguments.name), merged_type(), true))])
    }
}

/// The sum of each path so far.
#[derive(Debug, Default)]
struct PathSums {
    sums: HashMap<u64, i64>,
}

impl PathSums {
    fn add(&mut self, path: u64, value: i64) {
        let sum = self.sums.entry(path).or_default();
        *sum = sum.saturating_add(value);
    }

    fn list(&self) -> Result<ScalarValue> {
        let mut rows: Vec<(u64, i64)> = self.sums.iter().map(|(path, value)| (*path, *value)).collect();
        // The same samples give the same list, however they were split.
        rows.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
        ];
        let entries = StructArray::try_new(entry_fields(), columns, None)?;
        let item = Arc::new(Field::new("item", DataType::Struct(entry_fields()), true));
        let offsets = OffsetBuffer::from_lengths([rows.len()]);
        Ok(ScalarValue::List(Arc::new(ListArray::try_new(item, offsets, Arc::new(entries), None)?)))
    }
}

impl Accumulator for PathSums {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (paths, values) = (columns[0].as_primitive::<UInt64Type>(), columns[1].as_primitive::<Int64Type>());
        for row in 0..paths.len() {
            if paths.is_valid(row) && values.is_valid(row) {
                self.add(paths.value(row), values.value(row));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            for (path, value) in entries(lists.value(row).as_struct()) {
                self.add(path, value);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.list()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sums.capacity() * size_of::<(u64, i64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums_of(rows: &[(u64, i64)]) -> PathSums {
        let mut sums = PathSums::default();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
        ];
        sums.update_batch(&columns).unwrap();
        sums
    }

    /// Scenario: rows merged at once, and in every split into two partial states, either first.
    /// Guarantee: one list, whichever way it was computed.
    #[test]
    fn partial_states_merge() {
        let rows = [(1, 10), (2, 5), (1, -3), (3, 7), (2, 5), (9, 0)];
        let whole = sums_of(&rows).evaluate().unwrap();
        for cut in 0..=rows.len() {
            let (mut left, mut right) = (sums_of(&rows[..cut]), sums_of(&rows[cut..]));
            for (first, second) in [(&mut left, &mut right)] {
                let mut merged = PathSums::default();
                for state in [second.state().unwrap(), first.state().unwrap()] {
                    merged.merge_batch(&[state[0].to_array().unwrap()]).unwrap();
                }
                assert_eq!(merged.evaluate().unwrap(), whole, "cut at {cut}");
            }
        }
    }
}
