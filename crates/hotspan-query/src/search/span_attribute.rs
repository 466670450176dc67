//! Values as columns have them: texts, plain or coded, and attributes of spans, in their column or in the maps.

use arrow::array::{Array, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use hashbrown::HashMap;
use hotspan_lake::arrays::{self, Texts, ValuesOfKey};
use hotspan_model::Value as AttributeValue;
use hotspan_traceql::{FieldValue, Value};

use super::gather::holds_attribute;

/// A text column by itself, plain or coded.
#[derive(Debug)]
pub(super) enum TextValues {
    Plain(StringArray),
    Coded(Int32Array, StringArray),
    Missing,
}

impl TextValues {
    pub(super) fn of(batch: &RecordBatch, column: &str) -> Self {
        match arrays::texts(batch, column) {
            Ok(Texts::Plain(texts)) => Self::Plain(texts.clone()),
            Ok(Texts::Coded(codes, texts)) => Self::Coded(codes.keys().clone(), texts.clone()),
            Err(_) => Self::Missing,
        }
    }

    /// The numbers of its texts, if it has numbered them.
    pub(super) fn codes(&self) -> Option<&Int32Array> {
        match self {
            Self::Coded(codes, _) => Some(codes),
            _ => None,
        }
    }

    pub(super) fn get(&self, row: usize) -> &str {
        match self {
            Self::Plain(texts) if texts.is_valid(row) => texts.value(row),
            Self::Coded(codes, texts) if codes.is_valid(row) => texts.value(codes.value(row) as usize),
            _ => "",
        }
    }
}

/// Several values for few rows.
pub(super) type SparseValues = HashMap<usize, Vec<Value>>;

#[derive(Debug)]
pub(crate) struct SpanAttribute {
    /// Usually one; several where files have different types for the attribute.
    pub(super) columns: Vec<AttributeColumn>,
    texts: Option<ValuesOfKey>,
    others: Option<ValuesOfKey>,
    pub(super) arrays: SparseValues,
}

#[derive(Debug)]
pub(super) enum AttributeColumn {
    Text(StringArray),
    Coded(Int32Array, StringArray),
    Int(Int64Array),
    Double(Float64Array),
    Bool(BooleanArray),
}

impl AttributeColumn {
    pub(super) fn of(column: &dyn Array) -> Option<Self> {
        if let Some(Texts::Coded(codes, texts)) = arrays::texts_of(column) {
            return Some(Self::Coded(codes.keys().clone(), texts.clone()));
        }
        let any = column.as_any();
        any.downcast_ref().cloned().map(Self::Text).or_else(|| any.downcast_ref().cloned().map(Self::Int)).or_else(
            || any.downcast_ref().cloned().map(Self::Double).or_else(|| any.downcast_ref().cloned().map(Self::Bool)),
        )
    }

    pub(super) fn get(&self, row: usize) -> FieldValue<'_> {
        match self {
            Self::Text(texts) if texts.is_valid(row) => FieldValue::Str(texts.value(row)),
            Self::Coded(codes, texts) if codes.is_valid(row) => FieldValue::Str(texts.value(codes.value(row) as usize)),
            Self::Int(values) if values.is_valid(row) => FieldValue::Int(values.value(row)),
            Self::Double(values) if values.is_valid(row) => FieldValue::Float(values.value(row)),
            Self::Bool(values) if values.is_valid(row) => FieldValue::Bool(values.value(row)),
            _ => FieldValue::Nil,
        }
    }
}

impl SpanAttribute {
    pub(crate) fn of(batch: &RecordBatch, name: &str) -> Self {
        let columns = batch.schema_ref().fields().iter().zip(batch.columns());
        let columns = columns.filter(|(field, _)| holds_attribute(field.name(), name));
        let in_map = |map: &str| arrays::maps(batch, map).ok()?.values_of(name);
        let others = in_map("attributes_json");
        Self {
            columns: columns.filter_map(|(_, column)| AttributeColumn::of(column.as_ref())).collect(),
            texts: in_map("attributes"),
            arrays: others.as_ref().map(array_values).unwrap_or_default(),
            others,
        }
    }

    pub(crate) fn get(&self, row: usize) -> FieldValue<'_> {
        for column in &self.columns {
            let value = column.get(row);
            if value != FieldValue::Nil {
                return value;
            }
        }
        if let Some(values) = self.arrays.get(&row) {
            return FieldValue::Many(values.len());
        }
        if let Some(text) = self.texts.as_ref().and_then(|values| values.first(row)) {
            return FieldValue::Str(text);
        }
        let json = self.others.as_ref().and_then(|values| values.first(row));
        json.map_or(FieldValue::Nil, scalar_from_json)
    }
}

/// Those values that are arrays, by the rows that have one.
fn array_values(values: &ValuesOfKey) -> SparseValues {
    let mut found = SparseValues::new();
    for (row, json) in values.iter().filter(|(_, json)| json.starts_with('[')) {
        if let Ok(value) = AttributeValue::from_json(json)
            && let Value::Array(values) = owned(&value)
        {
            found.insert(row, values);
        }
    }
    found
}

/// A value that is neither text nor an array from its canonical JSON, without allocating. What TraceQL has no type for is shown as
/// that, as [`owned`] does.
pub(super) fn scalar_from_json(json: &str) -> FieldValue<'_> {
    match json {
        "true" => FieldValue::Bool(true),
        "false" => FieldValue::Bool(false),
        _ if json.starts_with('{') => match AttributeValue::from_json(json) {
            Ok(AttributeValue::Double(value)) => FieldValue::Float(value),
            Ok(_) => FieldValue::Str(json),
            Err(_) => FieldValue::Nil,
        },
        _ if json.contains(['.', 'e']) => json.parse().map_or(FieldValue::Nil, FieldValue::Float),
        _ => json.parse().map_or(FieldValue::Nil, FieldValue::Int),
    }
}

/// A stored attribute value as TraceQL has it; what TraceQL has no type for is shown as text.
pub(super) fn owned(value: &AttributeValue<'_>) -> Value {
    match value {
        AttributeValue::Empty => Value::Nil,
        AttributeValue::String(text) => Value::Str(text.clone().into_owned()),
        AttributeValue::Bool(value) => Value::Bool(*value),
        AttributeValue::Int(value) => Value::Int(*value),
        AttributeValue::Double(value) => Value::Float(*value),
        AttributeValue::Array(values) => Value::Array(values.iter().map(owned).collect()),
        other => {
            let mut json = String::new();
            other.write_json(&mut json);
            Value::Str(json)
        }
    }
}
