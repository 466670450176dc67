//! The leaves of a column: what Parquet stores of it one by one, each with how its values stand in rows.

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, StructArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::DataType;
use std::ops::Range;

/// Some rows of a leaf column.
#[derive(Debug)]
pub(in crate::segment) struct Leaf<'a> {
    pub(super) values: &'a ArrayRef,
    pub(super) rows: Rows<'a>,
}

/// How values stand in rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::segment) enum Rows<'a> {
    /// One in each, or none where it may be missing.
    Single,
    /// Any number in each.
    Lists(&'a Lists),
}

/// How many values each row has. The leaves of a list share it.
#[derive(Debug)]
pub(in crate::segment) struct Lists {
    /// Where the values of each row start, and those of the last one end.
    starts: Vec<usize>,
    /// Where the levels of each row start: an empty row has one too.
    level_starts: Vec<usize>,
    /// Of each level, whether it has a value.
    has_value: BooleanBuffer,
    /// Of each level, whether it goes on with the row of the one before.
    goes_on: BooleanBuffer,
}

impl Lists {
    fn new(offsets: &[i32]) -> Self {
        let starts: Vec<usize> = offsets.iter().map(|offset| *offset as usize).collect();
        let rows = starts.len().saturating_sub(1);
        if starts.first() == starts.last() {
            let (has_value, goes_on) = (BooleanBuffer::new_unset(rows), BooleanBuffer::new_unset(rows));
            return Self { starts, level_starts: (0..=rows).collect(), has_value, goes_on };
        }
        let mut level_starts = Vec::with_capacity(rows + 1);
        let (mut has_value, mut goes_on) = (BooleanBufferBuilder::new(rows), BooleanBufferBuilder::new(rows));
        for row in starts.windows(2) {
            level_starts.push(has_value.len());
            let values = row[1] - row[0];
            has_value.append_n(values.max(1), values > 0);
            goes_on.append(false);
            goes_on.append_n(values.saturating_sub(1), true);
        }
        level_starts.push(has_value.len());
        Self { starts, level_starts, has_value: has_value.build(), goes_on: goes_on.build() }
    }

    /// The values of some rows.
    pub(super) fn values_of(&self, rows: &Range<usize>) -> Range<usize> {
        self.starts[rows.start]..self.starts[rows.end]
    }

    /// Of the levels of some rows, which have a value, and which go on with a row.
    pub(super) fn levels_of(&self, rows: &Range<usize>) -> (BooleanBuffer, BooleanBuffer) {
        let (start, end) = (self.level_starts[rows.start], self.level_starts[rows.end]);
        (self.has_value.slice(start, end - start), self.goes_on.slice(start, end - start))
    }
}

/// The lists of a column, if it has any.
pub(in crate::segment) fn lists_of(column: &ArrayRef) -> Option<Lists> {
    match column.data_type() {
        DataType::List(_) => Some(Lists::new(column.as_list::<i32>().value_offsets())),
        DataType::Map(..) => Some(Lists::new(column.as_map().value_offsets())),
        _ => None,
    }
}

/// The leaves of a column whose lists were made before, in the order of the file.
pub(in crate::segment) fn leaves_of<'a>(column: &'a ArrayRef, lists: Option<&'a Lists>) -> Vec<Leaf<'a>> {
    let rows = lists.map_or(Rows::Single, Rows::Lists);
    let fields = |items: &'a StructArray| items.columns().iter().map(|values| Leaf { values, rows }).collect();
    match column.data_type() {
        DataType::Map(..) => fields(column.as_map().entries()),
        DataType::List(_) => {
            let items = column.as_list::<i32>().values();
            match items.as_struct_opt() {
                Some(items) => fields(items),
                None => vec![Leaf { values: items, rows }],
            }
        }
        _ => vec![Leaf { values: column, rows }],
    }
}

/// Which of some values are there; none if all are.
pub(super) fn present_of(values: &dyn Array, range: &Range<usize>) -> Option<NullBuffer> {
    let nulls = values.nulls()?.slice(range.start, range.len());
    (nulls.null_count() > 0).then_some(nulls)
}
