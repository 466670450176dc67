//! Values of a fixed size: numbers, times and ids.

use std::ops::Range;

use arrow::array::{Array, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int8Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt32Type,
    UInt64Type,
};
use parquet::basic::{BoundaryOrder, Encoding};

use super::bounds::{Bounds, BoundsOf};
use super::delta::put_deltas;
use super::dictionary::{Dictionary, Key};
use super::hybrid;
use super::values::Values;

/// What order the values of a column have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Signed,
    Unsigned,
    /// Byte by byte, as they are stored.
    Bytes,
}

/// How values are stored that are not coded.
#[derive(Debug, Clone, Copy)]
pub(super) enum FixedEncoding {
    Plain,
    /// By their differences.
    Deltas,
}

impl FixedEncoding {
    /// None for what nothing here writes.
    pub(super) fn new(encoding: Encoding) -> Option<Self> {
        match encoding {
            Encoding::PLAIN => Some(Self::Plain),
            Encoding::DELTA_BINARY_PACKED => Some(Self::Deltas),
            _ => None,
        }
    }
}

impl From<FixedEncoding> for Encoding {
    fn from(encoding: FixedEncoding) -> Self {
        match encoding {
            FixedEncoding::Plain => Self::PLAIN,
            FixedEncoding::Deltas => Self::DELTA_BINARY_PACKED,
        }
    }
}

/// A value of fixed size as a number whose lowest bytes are those that are stored, the lowest first.
pub(super) trait FixedValue: Key + Ord + Send + 'static {
    /// A number that is ordered as the value is; the same again gives the value.
    fn rank(self, order: Order) -> Self;

    /// Appends values as they are.
    fn put(values: &[Self], stored_bytes: usize, out: &mut Vec<u8>);

    /// Appends values in another encoding, as far as there is one for this size.
    fn put_encoded(values: &[Self], stored_bytes: usize, encoding: FixedEncoding, out: &mut Vec<u8>);

    /// Adds the values of a range of an array that are there.
    fn extend(values: &mut Vec<Self>, array: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>);
}

impl FixedValue for u64 {
    fn rank(self, order: Order) -> Self {
        match order {
            Order::Signed => self ^ (1 << 63),
            Order::Unsigned => self,
            Order::Bytes => self.swap_bytes(),
        }
    }

    fn put(values: &[Self], stored_bytes: usize, out: &mut Vec<u8>) {
        out.reserve(values.len() * stored_bytes);
        if stored_bytes == 8 {
            values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        } else {
            values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()[..stored_bytes]));
        }
    }

    fn put_encoded(values: &[Self], stored_bytes: usize, encoding: FixedEncoding, out: &mut Vec<u8>) {
        match encoding {
            FixedEncoding::Plain => Self::put(values, stored_bytes, out),
            FixedEncoding::Deltas => put_deltas(values, out),
        }
    }

    fn extend(values: &mut Vec<Self>, array: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>) {
        match array.data_type() {
            DataType::UInt64 => extend_from::<UInt64Type>(values, array, range, present, |value| value),
            DataType::Int64 => extend_from::<Int64Type>(values, array, range, present, |value| value as u64),
            DataType::Float64 => extend_from::<Float64Type>(values, array, range, present, f64::to_bits),
            DataType::UInt32 => extend_from::<UInt32Type>(values, array, range, present, u64::from),
            DataType::UInt8 => extend_from::<UInt8Type>(values, array, range, present, u64::from),
            DataType::Int8 => extend_from::<Int8Type>(values, array, range, present, |value| i64::from(value) as u64),
            DataType::Timestamp(..) => {
                extend_from::<TimestampNanosecondType>(values, array, range, present, |value| value as u64);
            }
            _ => extend_from_ids(values, array, range, present, Self::from_le_bytes),
        }
    }
}

impl FixedValue for u128 {
    fn rank(self, order: Order) -> Self {
        match order {
            Order::Signed => self ^ (1 << 127),
            Order::Unsigned => self,
            Order::Bytes => self.swap_bytes(),
        }
    }

    fn put(values: &[Self], stored_bytes: usize, out: &mut Vec<u8>) {
        out.reserve(values.len() * stored_bytes);
        values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()[..stored_bytes]));
    }

    fn put_encoded(values: &[Self], stored_bytes: usize, _: FixedEncoding, out: &mut Vec<u8>) {
        Self::put(values, stored_bytes, out);
    }

    fn extend(values: &mut Vec<Self>, array: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>) {
        extend_from_ids(values, array, range, present, Self::from_le_bytes);
    }
}

fn extend_from<T: ArrowPrimitiveType>(
    values: &mut Vec<u64>,
    array: &dyn Array,
    range: Range<usize>,
    present: Option<&NullBuffer>,
    convert: impl Fn(T::Native) -> u64,
) {
    let from = &array.as_primitive::<T>().values()[range];
    match present {
        None => values.extend(from.iter().map(|value| convert(*value))),
        Some(present) => values.extend(present.valid_indices().map(|at| convert(from[at]))),
    }
}

fn extend_from_ids<K, const BYTES: usize>(
    values: &mut Vec<K>,
    array: &dyn Array,
    range: Range<usize>,
    present: Option<&NullBuffer>,
    convert: impl Fn([u8; BYTES]) -> K,
) {
    let from = &array.as_fixed_size_binary().value_data().as_chunks::<BYTES>().0[range];
    match present {
        None => values.extend(from.iter().map(|id| convert(*id))),
        Some(present) => values.extend(present.valid_indices().map(|at| convert(from[at]))),
    }
}

/// The values of a column chunk.
pub(super) struct FixedValues<V> {
    stored_bytes: usize,
    /// How they are stored without a dictionary.
    encoding: FixedEncoding,
    dictionary: Option<Dictionary<V>>,
    /// Those of the page, coded or not.
    codes: Vec<u32>,
    page: Vec<V>,
    /// With the order that they are found by.
    bounds: Option<(Order, BoundsOf<V>)>,
}

impl<V: FixedValue> FixedValues<V> {
    /// For values of so many bytes, with bounds if they have an order.
    pub(super) fn new(
        stored_bytes: usize,
        encoding: FixedEncoding,
        with_dictionary: bool,
        order: Option<Order>,
    ) -> Self {
        Self {
            stored_bytes,
            encoding,
            dictionary: with_dictionary.then(Dictionary::default),
            codes: Vec::new(),
            page: Vec::new(),
            bounds: order.map(|order| (order, BoundsOf::new())),
        }
    }

    fn stored(&self, (least, greatest): (V, V), order: Order) -> Bounds {
        let bytes = |value: V| {
            let mut bytes = Vec::new();
            V::put(&[value.rank(order)], self.stored_bytes, &mut bytes);
            bytes
        };
        Bounds { least: bytes(least), greatest: bytes(greatest) }
    }
}

impl<V: FixedValue> Values for FixedValues<V> {
    fn append(&mut self, values: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>) {
        let before = self.page.len();
        V::extend(&mut self.page, values, range, present);
        let added = &self.page[before..];
        if let Some((order, bounds)) = &mut self.bounds {
            let mut ranks = added.iter().map(|value| value.rank(*order));
            if let Some(first) = ranks.next() {
                let (least, greatest) =
                    ranks.fold((first, first), |(least, greatest), rank| (least.min(rank), greatest.max(rank)));
                bounds.add(least, greatest);
            }
        }
        if let Some(dictionary) = &mut self.dictionary {
            dictionary.append_codes(added, &mut self.codes);
            self.page.truncate(before);
        }
    }

    fn page_bytes(&self) -> usize {
        self.page.len() * self.stored_bytes
    }

    fn end_page(&mut self, out: &mut Vec<u8>) -> (Encoding, Option<Bounds>) {
        let encoding = match &self.dictionary {
            Some(dictionary) => {
                let width = hybrid::width_of(dictionary.values.len());
                out.push(width as u8);
                hybrid::put_codes(&self.codes, width, out);
                Encoding::RLE_DICTIONARY
            }
            None => {
                V::put_encoded(&self.page, self.stored_bytes, self.encoding, out);
                self.encoding.into()
            }
        };
        self.codes.clear();
        self.page.clear();
        let bounds = self.bounds.as_mut().and_then(|(order, bounds)| Some((bounds.end_page()?, *order)));
        (encoding, bounds.map(|(bounds, order)| self.stored(bounds, order)))
    }

    fn dictionary_bytes(&self) -> Option<usize> {
        self.dictionary.as_ref().map(|dictionary| dictionary.values.len() * self.stored_bytes)
    }

    fn take_dictionary(&mut self) -> Option<(Vec<u8>, usize)> {
        let dictionary = self.dictionary.take()?;
        let mut page = Vec::new();
        V::put(&dictionary.values, self.stored_bytes, &mut page);
        Some((page, dictionary.values.len()))
    }

    fn chunk_bounds(&self) -> Option<(Bounds, BoundaryOrder)> {
        let (order, bounds) = self.bounds.as_ref()?;
        Some((self.stored(*bounds.of_chunk()?, *order), bounds.order()))
    }
}
