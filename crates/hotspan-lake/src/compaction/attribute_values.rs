//! The values of attributes on their way: into a column that fills, out of one that goes, or into the maps.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, BooleanArray, BooleanBuilder, Float64Array, Float64Builder, Int64Array,
    Int64Builder, StringArray, StringBuilder,
};
use hotspan_model::Value;

use super::attributes::ColumnType;
use crate::error::Result;
use crate::rows::MapColumn;

/// A column being filled row by row; rows that nothing was pushed for are null.
pub(super) enum ColumnBuilder {
    Text(StringBuilder),
    Int(Int64Builder),
    Double(Float64Builder),
    Bool(BooleanBuilder),
}

macro_rules! fill_up {
    ($builder:expr, $row:expr) => {
        // A key that stands twice in one span fills its column once; the second value stays in the map.
        if $builder.len() > $row {
            return false;
        }
        while $builder.len() < $row {
            $builder.append_null();
        }
    };
}

impl ColumnBuilder {
    pub(super) fn new(column_type: ColumnType, rows: usize) -> Self {
        match column_type {
            ColumnType::Text => Self::Text(StringBuilder::with_capacity(rows, 16 * rows)),
            ColumnType::Int => Self::Int(Int64Builder::with_capacity(rows)),
            ColumnType::Double => Self::Double(Float64Builder::with_capacity(rows)),
            ColumnType::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
        }
    }

    pub(super) fn push_text(&mut self, row: usize, text: &str) -> bool {
        let Self::Text(builder) = self else { return false };
        fill_up!(builder, row);
        builder.append_value(text);
        true
    }

    fn push_int(&mut self, row: usize, value: i64) -> bool {
        let Self::Int(builder) = self else { return false };
        fill_up!(builder, row);
        builder.append_value(value);
        true
    }

    fn push_double(&mut self, row: usize, value: f64) -> bool {
        let Self::Double(builder) = self else { return false };
        fill_up!(builder, row);
        builder.append_value(value);
        true
    }

    fn push_bool(&mut self, row: usize, value: bool) -> bool {
        let Self::Bool(builder) = self else { return false };
        fill_up!(builder, row);
        builder.append_value(value);
        true
    }

    /// Takes a value given as JSON, if it is of this column's type.
    pub(super) fn push_json(&mut self, row: usize, json: &str) -> bool {
        match ColumnType::of_json(json) {
            Some(ColumnType::Int) => json.parse().is_ok_and(|value| self.push_int(row, value)),
            Some(ColumnType::Double) => json.parse().is_ok_and(|value| self.push_double(row, value)),
            Some(ColumnType::Bool) => self.push_bool(row, json == "true"),
            _ => false,
        }
    }

    pub(super) fn finish(self, rows: usize) -> ArrayRef {
        macro_rules! pad {
            ($builder:ident) => {{
                let mut builder = $builder;
                while builder.len() < rows {
                    builder.append_null();
                }
                Arc::new(builder.finish())
            }};
        }
        match self {
            Self::Text(builder) => pad!(builder),
            Self::Int(builder) => pad!(builder),
            Self::Double(builder) => pad!(builder),
            Self::Bool(builder) => pad!(builder),
        }
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
