//! The values of attributes on their way: into a column that fills, out of one that goes, or into the maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use hotspan_model::Value;

use super::attributes::ColumnType;
use crate::error::Result;
use crate::rows::{MapColumn, TextColumn};

/// A column being filled in the order of its rows. Most spans lack most attributes, so that what nothing was pushed for costs
/// nothing: all rows are null at first.
pub(super) struct ColumnBuilder {
    values: Values,
    present: Bits,
}

enum Values {
    Text(TextColumn),
    Int(Vec<i64>),
    Double(Vec<f64>),
    Bool(Bits),
}

impl ColumnBuilder {
    pub(super) fn new(column_type: ColumnType, rows: usize) -> Self {
        let values = match column_type {
            ColumnType::Text => {
                let mut texts = TextColumn::default();
                texts.reserve(rows, 16 * rows);
                Values::Text(texts)
            }
            ColumnType::Int => Values::Int(vec![0; rows]),
            ColumnType::Double => Values::Double(vec![0.0; rows]),
            ColumnType::Bool => Values::Bool(Bits::new(rows)),
        };
        Self { values, present: Bits::new(rows) }
    }

    pub(super) fn push_text(&mut self, row: usize, text: &str) -> bool {
        match &mut self.values {
            // A key that stands twice in one span fills its column once; the second value stays in the map.
            Values::Text(texts) if self.present.set(row) => {
                texts.fill_up(row);
                texts.push(text);
                true
            }
            _ => false,
        }
    }

    /// Takes a value given as JSON, if it is of this column's type.
    pub(super) fn push_json(&mut self, row: usize, json: &str) -> bool {
        match (&mut self.values, ColumnType::of_json(json)) {
            (Values::Int(values), Some(ColumnType::Int)) => match json.parse() {
                Ok(value) if self.present.set(row) => values[row] = value,
                _ => return false,
            },
            (Values::Double(values), Some(ColumnType::Double)) => match json.parse() {
                Ok(value) if self.present.set(row) => values[row] = value,
                _ => return false,
            },
            (Values::Bool(values), Some(ColumnType::Bool)) if self.present.set(row) => {
                if json == "true" {
                    values.set(row);
                }
            }
            _ => return false,
        }
        true
    }

    pub(super) fn finish(self, rows: usize) -> Result<ArrayRef> {
        let nulls = Some(NullBuffer::new(self.present.finish(rows))).filter(|nulls| nulls.null_count() > 0);
        Ok(match self.values {
            Values::Text(mut texts) => {
                texts.fill_up(rows);
                Arc::new(texts.into_array(nulls)?)
            }
            Values::Int(values) => Arc::new(Int64Array::new(values.into(), nulls)),
            Values::Double(values) => Arc::new(Float64Array::new(values.into(), nulls)),
            Values::Bool(values) => Arc::new(BooleanArray::new(values.finish(rows), nulls)),
        })
    }
}

/// One bit a row, as Arrow lays them out.
struct Bits(Vec<u8>);

impl Bits {
    fn new(rows: usize) -> Self {
        Self(vec![0; rows.div_ceil(8)])
    }

    /// Sets the bit of a row; says whether it was not set before.
    fn set(&mut self, row: usize) -> bool {
        let (byte, bit) = (&mut self.0[row / 8], 1 << (row % 8));
        let is_new = *byte & bit == 0;
        *byte |= bit;
        is_new
    }

    fn finish(self, rows: usize) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.0), 0, rows)
    }
}

/// An attribute column of an input file.
pub(super) enum PresentColumn<'a> {
    Text(&'a StringArray),
    Int(&'a Int64Array),
    Double(&'a Float64Array),
    Bool(&'a BooleanArray),
}

impl<'a> PresentColumn<'a> {
    pub(super) fn new(column: &'a dyn Array, column_type: ColumnType) -> Option<Self> {
        let column = column.as_any();
        match column_type {
            ColumnType::Text => column.downcast_ref().map(Self::Text),
            ColumnType::Int => column.downcast_ref().map(Self::Int),
            ColumnType::Double => column.downcast_ref().map(Self::Double),
            ColumnType::Bool => column.downcast_ref().map(Self::Bool),
        }
    }

    /// Puts a value back into the maps, since the output has no column for it.
    pub(super) fn move_to_map(&self, row: usize, key: &str, rest: &mut RestOfMaps) {
        let value = match self {
            Self::Text(column) if column.is_valid(row) => {
                rest.texts.entry(key, column.value(row));
                return;
            }
            Self::Int(column) if column.is_valid(row) => Value::Int(column.value(row)),
            Self::Double(column) if column.is_valid(row) => Value::Double(column.value(row)),
            Self::Bool(column) if column.is_valid(row) => Value::Bool(column.value(row)),
            _ => return,
        };
        let mut json = String::new();
        value.write_json(&mut json);
        rest.others.entry(key, &json);
    }
}

/// What no column takes.
#[derive(Default)]
pub(super) struct RestOfMaps {
    pub(super) texts: MapColumn,
    pub(super) others: MapColumn,
}

impl RestOfMaps {
    pub(super) fn end_row(&mut self) {
        self.texts.end_row();
        self.others.end_row();
    }

    pub(super) fn finish(self) -> Result<(ArrayRef, ArrayRef)> {
        Ok((Arc::new(self.texts.finish()?), Arc::new(self.others.finish()?)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Float64Type, Int64Type};

    use super::*;

    /// Scenario: columns of each type with gaps before, between and after their values, empty texts, a second value for a
    /// row, and values of other types.
    /// Guarantee: rows have what was pushed first and are null else, and what does not fit is refused.
    #[test]
    fn rows_without_a_value_are_null() {
        let mut texts = ColumnBuilder::new(ColumnType::Text, 12);
        assert!(texts.push_text(1, "a") && texts.push_text(9, "") && texts.push_text(10, "b"));
        assert!(!texts.push_text(10, "c") && !texts.push_json(11, "1"));
        let texts = texts.finish(12).unwrap();
        let mut expected = vec![None; 12];
        (expected[1], expected[9], expected[10]) = (Some("a"), Some(""), Some("b"));
        assert_eq!(texts.as_string::<i32>().iter().collect::<Vec<_>>(), expected);

        let mut ints = ColumnBuilder::new(ColumnType::Int, 3);
        assert!(ints.push_json(1, "-7") && !ints.push_json(1, "8") && !ints.push_json(2, "1.5"));
        assert!(!ints.push_text(2, "7") && !ints.push_json(2, "99999999999999999999"));
        assert_eq!(
            ints.finish(3).unwrap().as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
            [None, Some(-7), None]
        );

        let mut doubles = ColumnBuilder::new(ColumnType::Double, 2);
        assert!(doubles.push_json(0, "1.5") && doubles.push_json(1, "2e3"));
        let doubles = doubles.finish(2).unwrap();
        assert_eq!(doubles.as_primitive::<Float64Type>().values().as_ref(), [1.5, 2000.0]);
        assert_eq!(doubles.nulls(), None);

        let mut flags = ColumnBuilder::new(ColumnType::Bool, 3);
        assert!(flags.push_json(0, "false") && flags.push_json(2, "true") && !flags.push_json(2, "false"));
        assert_eq!(flags.finish(3).unwrap().as_boolean().iter().collect::<Vec<_>>(), [Some(false), None, Some(true)]);
    }
}
