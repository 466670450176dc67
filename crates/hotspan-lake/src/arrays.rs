//! Typed access to the columns of a batch, whatever shape a level stores them in.

use arrow::array::{
    Array, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int64Array, ListArray, MapArray,
    RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::Int32Type;

mod text_map;

pub(crate) use text_map::in_order_of_keys;
pub use text_map::{TextMap, ValuesOfKey};

use crate::error::{LakeError, Result};

/// A column as its concrete type, or an error that names it.
fn column<'a, A: 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A> {
    let array = batch.column_by_name(name).ok_or_else(|| mismatch(name, "is missing"))?;
    array.as_any().downcast_ref::<A>().ok_or_else(|| mismatch(name, "has another type"))
}

fn mismatch(name: &str, what: &str) -> LakeError {
    LakeError::Damaged { path: format!("column {name}"), reason: what.to_owned() }
}

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident: $array:ty;)*) => {
        $($(#[$doc])*
        pub fn $name<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a $array> {
            column(batch, name)
        })*
    };
}

accessors! {
    /// A column of fixed-size ids.
    ids: FixedSizeBinaryArray;
    /// A column of times.
    times: TimestampNanosecondArray;
    /// A column of signed 64-bit integers.
    int64s: Int64Array;
    /// A column of signed bytes.
    int8s: Int8Array;
    /// A column of unsigned 64-bit integers.
    uint64s: UInt64Array;
    /// A column of unsigned 32-bit integers.
    uint32s: UInt32Array;
    /// A column of unsigned bytes.
    uint8s: UInt8Array;
    /// A column of truth values.
    booleans: BooleanArray;
    /// A column of lists.
    lists: ListArray;
}

/// A column of text to text.
pub fn maps<'a>(batch: &'a RecordBatch, name: &str) -> Result<TextMap<'a>> {
    TextMap::of(column::<MapArray>(batch, name)?).ok_or_else(|| mismatch(name, "is not a map of text"))
}

/// A text column, plain or in a dictionary.
#[derive(Debug, Clone, Copy)]
pub enum Texts<'a> {
    /// One text a row.
    Plain(&'a StringArray),
    /// Codes into a list of distinct texts.
    Coded(&'a DictionaryArray<Int32Type>, &'a StringArray),
}

/// A column of text.
pub fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<Texts<'a>> {
    let array = batch.column_by_name(name).ok_or_else(|| mismatch(name, "is missing"))?;
    texts_of(array.as_ref()).ok_or_else(|| mismatch(name, "is not text"))
}

/// An array as text, if it is.
pub fn texts_of(array: &dyn Array) -> Option<Texts<'_>> {
    if let Some(plain) = array.as_any().downcast_ref::<StringArray>() {
        return Some(Texts::Plain(plain));
    }
    let coded = array.as_any().downcast_ref::<DictionaryArray<Int32Type>>()?;
    Some(Texts::Coded(coded, coded.values().as_any().downcast_ref::<StringArray>()?))
}

impl<'a> Texts<'a> {
    /// The text in a row; empty where there is none.
    pub fn get(&self, row: usize) -> &'a str {
        match self {
            Self::Plain(array) if array.is_valid(row) => array.value(row),
            Self::Coded(codes, values) if codes.is_valid(row) => values.value(codes.keys().value(row) as usize),
            _ => "",
        }
    }

    /// The code of each row's text, and how many codes there are; none if texts are plain or some row has none.
    pub fn codes(&self) -> Option<(&'a [i32], usize)> {
        match self {
            Self::Coded(codes, distinct) if codes.null_count() == 0 => Some((codes.keys().values(), distinct.len())),
            _ => None,
        }
    }

    /// Whether the row has a text.
    pub fn is_present(&self, row: usize) -> bool {
        match self {
            Self::Plain(array) => array.is_valid(row),
            Self::Coded(codes, _) => codes.is_valid(row),
        }
    }
}

/// The bytes of an id, as an array of the size that the column has.
pub fn id_at<const N: usize>(array: &FixedSizeBinaryArray, row: usize) -> [u8; N] {
    // Columns of ids have the size that the table's schema gives them.
    array.value(row).try_into().unwrap_or([0; N])
}
