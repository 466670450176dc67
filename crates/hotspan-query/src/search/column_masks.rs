//! Which rows of a column pass a test: a text is tried once for each distinct one, numbers a whole array at a time.

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Float64Type, Int64Type};
use hashbrown::HashMap;
use hotspan_lake::arrays::{self, Texts};
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_model::Value as AttributeValue;
use hotspan_traceql::ast::{CompareOp, Literal};
use hotspan_traceql::{FieldValue, SpanTest, Value};

use super::span_attribute::{owned, scalar_from_json};

pub(super) fn accepts_value(test: &SpanTest, value: &Value) -> bool {
    match value {
        Value::Array(values) => test.accepts(FieldValue::Many(values.len()), |index| {
            values.get(index).map_or(FieldValue::Nil, Value::as_field_value)
        }),
        single => test.accepts(single.as_field_value(), |_| FieldValue::Nil),
    }
}

/// An attribute is in its column, if the file has one, or else in the maps.
pub(super) fn attribute_mask(
    batch: &RecordBatch,
    name: &str,
    test: &SpanTest,
    memory: &mut TriedTexts,
) -> BooleanBuffer {
    let rows = batch.num_rows();
    let accepts = |value: FieldValue<'_>| test.accepts(value, |_| FieldValue::Nil);
    let column = batch.column_by_name(&format!("{ATTRIBUTE_PREFIX}{name}"));
    let is_missing_fine = accepts(FieldValue::Nil);
    let mask = match column {
        Some(column) => column_mask(column, test, memory).unwrap_or_else(|| constant(is_missing_fine, rows)),
        None => constant(is_missing_fine, rows),
    };
    // What the maps say of rows whose column is empty; later entries win, as they do when spans are read.
    let mut said: Vec<(usize, bool)> = Vec::new();
    let is_in_column = |row: usize| column.is_some_and(|column| column.is_valid(row));
    let mut look = |map: &str, accepts_text: &mut dyn FnMut(&str) -> Option<bool>| {
        let Some(values) = arrays::maps(batch, map).ok().and_then(|map| map.values_of(name)) else { return };
        for (row, text) in values.iter() {
            if !is_in_column(row)
                && let Some(fits) = accepts_text(text)
            {
                said.push((row, fits));
            }
        }
    };
    let is_array = |json: &str| json.starts_with('[');
    look("attributes_json", &mut |json| (!is_array(json)).then(|| accepts(scalar_from_json(json))));
    look("attributes", &mut |text| Some(accepts(FieldValue::Str(text))));
    look("attributes_json", &mut |json| {
        let value = AttributeValue::from_json(json).ok().filter(|_| is_array(json))?;
        Some(accepts_value(test, &owned(&value)))
    });
    if said.is_empty() {
        return mask;
    }
    let mut bits: Vec<bool> = mask.iter().collect();
    for (row, fits) in said {
        bits[row] = fits;
    }
    BooleanBuffer::from(bits)
}

/// Which rows of an attribute column pass; those without a value are told from a missing one. None if the column is of
/// a type that attributes do not have.
fn column_mask(column: &ArrayRef, test: &SpanTest, memory: &mut TriedTexts) -> Option<BooleanBuffer> {
    let accepts = |value: FieldValue<'_>| test.accepts(value, |_| FieldValue::Nil);
    let is_missing_fine = accepts(FieldValue::Nil);
    if let Some(texts) = arrays::texts_of(column.as_ref()) {
        let fits = |text: Option<&str>| text.map_or(is_missing_fine, |text| accepts(FieldValue::Str(text)));
        return Some(text_mask(texts, test, memory, fits));
    }
    let mask = if let Some(values) = column.as_primitive_opt::<Int64Type>() {
        numbers(values.values(), test)
            .unwrap_or_else(|| each(values.len(), |row| accepts(FieldValue::Int(values.value(row)))))
    } else if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        each(values.len(), |row| accepts(FieldValue::Float(values.value(row))))
    } else {
        let values = column.as_boolean_opt()?;
        let fits = [accepts(FieldValue::Bool(false)), accepts(FieldValue::Bool(true))];
        each(values.len(), |row| fits[usize::from(values.value(row))])
    };
    Some(match column.nulls() {
        Some(nulls) if is_missing_fine => &mask | &!nulls.inner(),
        Some(nulls) => &mask & nulls.inner(),
        None => mask,
    })
}

pub(super) fn constant(value: bool, rows: usize) -> BooleanBuffer {
    if value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) }
}

pub(super) fn each(rows: usize, test: impl FnMut(usize) -> bool) -> BooleanBuffer {
    BooleanBuffer::collect_bool(rows, test)
}

/// The texts that tests were tried on last, and what came of it: parts of a chunk share their texts.
#[derive(Debug, Default)]
pub(crate) struct TriedTexts {
    /// By the place of the test in memory, which stays while a chunk is scanned.
    tried: HashMap<usize, (StringArray, Vec<bool>)>,
}

impl TriedTexts {
    fn fits(&mut self, asker: &SpanTest, distinct: &StringArray, test: impl Fn(Option<&str>) -> bool) -> &[bool] {
        let is_same = |known: &StringArray| {
            known.len() == distinct.len()
                && known.offsets().ptr_eq(distinct.offsets())
                && known.values().ptr_eq(distinct.values())
        };
        let key = std::ptr::from_ref(asker).addr();
        let entry = self.tried.entry(key);
        let known = entry.or_insert_with(|| (StringArray::new_null(0), Vec::new()));
        if !is_same(&known.0) {
            *known = (distinct.clone(), distinct.iter().map(&test).collect());
        }
        &known.1
    }
}

/// A text in a dictionary is tested once.
pub(super) fn text_mask(
    texts: Texts<'_>,
    asker: &SpanTest,
    memory: &mut TriedTexts,
    test: impl Fn(Option<&str>) -> bool,
) -> BooleanBuffer {
    match texts {
        Texts::Coded(codes, distinct) => {
            let missing = test(None);
            by_code(codes.keys(), memory.fits(asker, distinct, test), missing)
        }
        Texts::Plain(plain) => {
            // Neighbours often have the same text.
            let mut last: Option<(&str, bool)> = None;
            each(plain.len(), |row| {
                if plain.is_null(row) {
                    return test(None);
                }
                let text = plain.value(row);
                match last {
                    Some((known, fits)) if known == text => fits,
                    _ => {
                        let fits = test(Some(text));
                        last = Some((text, fits));
                        fits
                    }
                }
            })
        }
    }
}

pub(super) fn by_code(codes: &Int32Array, fits: &[bool], missing: bool) -> BooleanBuffer {
    let values = codes.values();
    let fits_code = |code: i32| fits.get(code as usize).copied().unwrap_or(missing);
    let mask = if fits.iter().all(|fits| !fits) {
        BooleanBuffer::new_unset(codes.len())
    } else {
        each(codes.len(), |row| fits_code(values[row]))
    };
    match codes.nulls() {
        Some(nulls) if missing => &mask | &!nulls.inner(),
        Some(nulls) => &mask & nulls.inner(),
        None => mask,
    }
}

/// One answer for each of the few codes that a byte can be.
pub(super) fn bytes(codes: &[i8], accepts: impl Fn(i8) -> bool) -> BooleanBuffer {
    let fits: Vec<bool> = (0..=u8::MAX).map(|code| accepts(code.cast_signed())).collect();
    each(codes.len(), |row| fits[usize::from(codes[row].cast_unsigned())])
}

/// Whole numbers and durations against a constant of their own kind; none if it is something else.
pub(super) fn numbers(values: &[i64], test: &SpanTest) -> Option<BooleanBuffer> {
    let SpanTest::Compare(op, Literal::Int(bound) | Literal::Duration(bound)) = test else { return None };
    let (bound, rows) = (*bound, values.len());
    Some(match op {
        CompareOp::Eq => each(rows, |row| values[row] == bound),
        CompareOp::NotEq => each(rows, |row| values[row] != bound),
        CompareOp::Less => each(rows, |row| values[row] < bound),
        CompareOp::LessEq => each(rows, |row| values[row] <= bound),
        CompareOp::Greater => each(rows, |row| values[row] > bound),
        CompareOp::GreaterEq => each(rows, |row| values[row] >= bound),
        CompareOp::Match | CompareOp::NotMatch => return None,
    })
}
