//! Putting a column together from its parts in memory that is taken once.
//!
//! A part is copied while it is near and then dropped, so that memory is touched once for each value: growing an array, or
//! keeping all parts to join them in the end, would touch twice as much, which costs more than decoding does.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{MutableBuffer, NullBuffer};
use arrow::compute::concat;
use arrow::datatypes::DataType;

use crate::error::Result;

/// A column under construction.
#[derive(Debug)]
pub(super) struct ColumnJoin {
    rows: usize,
    /// The values so far, where they have a fixed size.
    fixed: Option<FixedValues>,
    /// Parts that can't be joined one by one: texts, lists, or values that are coded differently.
    parts: Vec<ArrayRef>,
}

#[derive(Debug)]
struct FixedValues {
    data_type: DataType,
    width: usize,
    bytes: MutableBuffer,
    /// None while all are there.
    nulls: Option<Vec<bool>>,
    count: usize,
    /// What codes stand for.
    distinct: Option<ArrayData>,
}

impl ColumnJoin {
    /// A column that will have so many rows.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, fixed: None, parts: Vec::new() }
    }

    pub(super) fn push(&mut self, part: &ArrayRef) -> Result<()> {
        let data = part.to_data();
        if self.fixed.is_none()
            && self.parts.is_empty()
            && let Some(width) = fixed_width(part.data_type())
        {
            self.fixed = Some(FixedValues {
                data_type: part.data_type().clone(),
                width,
                bytes: MutableBuffer::with_capacity(self.rows * width),
                nulls: None,
                count: 0,
                distinct: data.child_data().first().cloned(),
            });
        }
        match &mut self.fixed {
            Some(fixed) if fixed.fits(&data) => fixed.push(&data),
            _ => {
                if let Some(fixed) = self.fixed.take() {
                    self.parts.push(fixed.finish()?);
                }
                self.parts.push(ArrayRef::clone(part));
            }
        }
        Ok(())
    }

    /// The whole column; none if there was no part.
    pub(super) fn finish(self) -> Result<Option<ArrayRef>> {
        if let Some(fixed) = self.fixed {
            return Ok(Some(fixed.finish()?));
        }
        let parts: Vec<&dyn Array> = self.parts.iter().map(AsRef::as_ref).collect();
        Ok(match parts.as_slice() {
            [] => None,
            [_] => self.parts.into_iter().next(),
            several => Some(concat(several)?),
        })
    }
}

impl FixedValues {
    /// Whether a part has the same codes, if it has any.
    fn fits(&self, part: &ArrayData) -> bool {
        match (&self.distinct, part.child_data().first()) {
            (None, None) => true,
            (Some(distinct), Some(other)) => distinct.ptr_eq(other),
            _ => false,
        }
    }

    fn push(&mut self, part: &ArrayData) {
        let (first, last) = (part.offset() * self.width, (part.offset() + part.len()) * self.width);
        self.bytes.extend_from_slice(&part.buffers()[0].as_slice()[first..last]);
        if let Some(nulls) = part.nulls().filter(|nulls| nulls.null_count() > 0) {
            let known = self.nulls.get_or_insert_with(|| Vec::with_capacity(self.bytes.capacity() / self.width));
            known.resize(self.count, true);
            known.extend(nulls.iter());
        }
        self.count += part.len();
        if let Some(nulls) = &mut self.nulls {
            nulls.resize(self.count, true);
        }
    }

    fn finish(self) -> Result<ArrayRef> {
        let data = ArrayData::builder(self.data_type)
            .len(self.count)
            .add_buffer(self.bytes.into())
            .nulls(self.nulls.map(NullBuffer::from))
            .child_data(self.distinct.into_iter().collect());
        Ok(make_array(data.build()?))
    }
}

/// Bytes of a value, where all have as many and lie in one buffer.
fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        DataType::Dictionary(codes, _) => codes.primitive_width(),
        other => other.primitive_width(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array, StringArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn joined(parts: &[ArrayRef]) -> ArrayRef {
        let mut join = ColumnJoin::new(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            join.push(part).unwrap();
        }
        join.finish().unwrap().unwrap()
    }

    /// Scenario: numbers and ids in parts, with and without missing ones, and parts that are slices of others.
    /// Guarantee: the column is what joining all parts at once gives.
    #[test]
    fn as_joining_at_once() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4), None]));
        let plain: ArrayRef = Arc::new(Int64Array::from_iter_values(10..20));
        let ids = |from: u8| -> ArrayRef {
            Arc::new(FixedSizeBinaryArray::try_from_iter((from..from + 5).map(|id| [id; 16])).unwrap())
        };
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        for parts in [
            vec![plain.clone(), numbers.clone(), plain.slice(3, 4), numbers.slice(1, 3)],
            vec![numbers.slice(2, 2), plain.slice(9, 1)],
            vec![ids(1), ids(7).slice(2, 2)],
            vec![texts.clone(), texts.slice(1, 1)],
        ] {
            let at_once: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            assert_eq!(joined(&parts).as_ref(), concat(&at_once).unwrap().as_ref());
        }
        assert!(ColumnJoin::new(0).finish().unwrap().is_none());
    }

    /// Scenario: codes of the same texts, and then of others.
    /// Guarantee: texts are shared while they are the same, and every row keeps its own.
    #[test]
    fn codes_keep_their_texts() {
        let coded = |codes: Vec<Option<i32>>, texts: &Arc<StringArray>| -> ArrayRef {
            Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(codes), Arc::clone(texts) as ArrayRef))
        };
        let (first, second) =
            (Arc::new(StringArray::from(vec!["a", "b"])), Arc::new(StringArray::from(vec!["b", "c"])));
        let texts_of = |column: &ArrayRef| -> Vec<Option<String>> {
            let column = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>().unwrap();
            let texts = column.downcast_dict::<StringArray>().unwrap();
            texts.into_iter().map(|text| text.map(str::to_owned)).collect()
        };
        let same = [coded(vec![Some(0), None], &first), coded(vec![Some(1)], &first)];
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(texts_of(&joined(&same)), [text("a"), None, text("b")]);
        let different = [same[0].clone(), same[1].clone(), coded(vec![Some(1), Some(0)], &second)];
        assert_eq!(texts_of(&joined(&different)), [text("a"), None, text("b"), text("c"), text("b")]);
    }
}
