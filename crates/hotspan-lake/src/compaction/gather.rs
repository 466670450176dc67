//! Rows of many batches in another order, as one batch.
//!
//! The batches are not joined first: that would touch as much memory again as they take, and memory that nobody has
//! touched costs more than copying does. What a dictionary codes is brought together once, and then only codes move.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBufferBuilder, DictionaryArray,
    FixedSizeBinaryArray, Int32Array, ListArray, MapArray, PrimitiveArray, RecordBatch, new_empty_array,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::interleave;
use arrow::datatypes::{
    DataType, Field, Int32Type, Int64Type, SchemaRef, TimeUnit, TimestampNanosecondType, UInt32Type, UInt64Type,
};

use super::codebook::{Codebook, Meanings};
use crate::error::Result;
use crate::table;

/// A row of one of the batches: which batch, and which row of it.
pub(super) type Place = (usize, usize);

/// The codes of each column of a schema, where texts are coded.
#[derive(Default)]
pub(super) struct Codebooks(Vec<Codebook>);

/// Batches of one schema, ready to be picked from.
pub(super) struct Gather<'b> {
    schema: SchemaRef,
    columns: Vec<Column<'b>>,
}

/// One column of all batches. Arrow's own kernel takes long for ids and truth values, looks at all texts of all dictionaries
/// each time, and knows nothing of rows that stay together or have no value at all.
enum Column<'b> {
    /// Rows that are all null, or lists that are all empty: the type says which.
    Nothing(DataType),
    LongIds(Vec<&'b FixedSizeBinaryArray>),
    ShortIds(Vec<&'b FixedSizeBinaryArray>),
    Flags(Vec<&'b BooleanArray>),
    Coded {
        parts: Vec<CodedPart<'b>>,
        texts: ArrayRef,
    },
    Others(Vec<&'b dyn Array>),
}

/// The codes of one batch.
struct CodedPart<'b> {
    codes: &'b Int32Array,
    meanings: Meanings,
}

impl<'b> Gather<'b> {
    /// Columns are found by their names, and those of the batches that the schema does not have are left out.
    pub(super) fn new(schema: &SchemaRef, batches: &'b [RecordBatch]) -> Result<Self> {
        Self::with_codebooks(schema, batches, &mut Codebooks::default())
    }

    /// The same with codes that may be those of earlier batches.
    pub(super) fn with_codebooks(
        schema: &SchemaRef,
        batches: &'b [RecordBatch],
        codebooks: &mut Codebooks,
    ) -> Result<Self> {
        codebooks.0.resize_with(schema.fields().len(), Codebook::default);
        let column = |(field, codebook): (&Arc<Field>, &mut Codebook)| {
            let parts = batches.iter().map(|batch| {
                let index = batch.schema_ref().index_of(field.name())?;
                Ok(batch.column(index).as_ref())
            });
            Column::new(field.data_type(), parts.collect::<Result<_>>()?, codebook)
        };
        let columns = schema.fields().iter().zip(&mut codebooks.0).map(column).collect::<Result<_>>()?;
        Ok(Self { schema: Arc::clone(schema), columns })
    }

    /// The rows at these places, in this order.
    pub(super) fn rows(&self, places: &[Place]) -> Result<RecordBatch> {
        let picked = Picked::new(places);
        let columns = self.columns.iter().map(|column| column.rows(&picked)).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl<'b> Column<'b> {
    fn new(data_type: &DataType, parts: Vec<&'b dyn Array>, codebook: &mut Codebook) -> Result<Self> {
        Ok(match data_type {
            _ if parts.iter().all(|part| has_nothing(*part)) => Self::Nothing(data_type.clone()),
            DataType::FixedSizeBinary(16) => {
                Self::LongIds(parts.iter().map(|part| part.as_fixed_size_binary()).collect())
            }
            DataType::FixedSizeBinary(8) => {
                Self::ShortIds(parts.iter().map(|part| part.as_fixed_size_binary()).collect())
            }
            DataType::Boolean => Self::Flags(parts.iter().map(|part| part.as_boolean()).collect()),
            coded if *coded == table::dictionary() => return Self::coded(parts, codebook),
            _ => Self::Others(parts),
        })
    }

    fn coded(parts: Vec<&'b dyn Array>, codebook: &mut Codebook) -> Result<Self> {
        codebook.begin();
        let mut coded = Vec::with_capacity(parts.len());
        for part in parts {
            let part: &'b DictionaryArray<Int32Type> = part.as_dictionary();
            let meanings = codebook.meanings(part.values(), part.values().as_string());
            coded.push(CodedPart { codes: part.keys(), meanings });
        }
        Ok(Self::Coded { parts: coded, texts: codebook.texts()? })
    }

    fn rows(&self, picked: &Picked<'_>) -> Result<ArrayRef> {
        Ok(match self {
            Self::Nothing(data_type) => nothing(data_type, picked.places.len()),
            Self::LongIds(parts) => Arc::new(gather_ids::<16>(parts, picked)?),
            Self::ShortIds(parts) => Arc::new(gather_ids::<8>(parts, picked)?),
            Self::Flags(parts) => {
                let flags = picked.bits(&parts.iter().map(|part| Some(part.values())).collect::<Vec<_>>());
                Arc::new(BooleanArray::new(flags, picked.nulls(parts.iter().map(|part| part.nulls()))))
            }
            Self::Coded { parts, texts } => {
                let own_codes: Vec<&[i32]> = parts.iter().map(|part| part.codes.values().as_ref()).collect();
                // A row without a text may have any code.
                let codes = picked.converted(&own_codes, |batch, code| {
                    parts[batch].meanings.get(code as usize).copied().unwrap_or(0)
                });
                let nulls = picked.nulls(parts.iter().map(|part| part.codes.nulls()));
                Arc::new(DictionaryArray::<Int32Type>::try_new(
                    Int32Array::new(codes.into(), nulls),
                    Arc::clone(texts),
                )?)
            }
            Self::Others(parts) => match parts.first().map(|part| part.data_type()) {
                Some(DataType::UInt64) => gather_numbers::<UInt64Type>(parts, picked),
                Some(DataType::Int64) => gather_numbers::<Int64Type>(parts, picked),
                Some(DataType::UInt32) => gather_numbers::<UInt32Type>(parts, picked),
                Some(DataType::Timestamp(TimeUnit::Nanosecond, None)) => {
                    gather_numbers::<TimestampNanosecondType>(parts, picked)
                }
                _ => interleave(parts, picked.places)?,
            },
        })
    }
}

/// Whether a column has no value in any row.
fn has_nothing(part: &dyn Array) -> bool {
    let is_empty = |offsets: &[i32]| offsets.first() == offsets.last() && part.null_count() == 0;
    match part.data_type() {
        DataType::List(_) => is_empty(part.as_list::<i32>().value_offsets()),
        DataType::Map(..) => is_empty(part.as_map().value_offsets()),
        _ => part.null_count() == part.len(),
    }
}

/// Rows that are all null, or lists that are all empty.
fn nothing(data_type: &DataType, rows: usize) -> ArrayRef {
    let offsets = || OffsetBuffer::new_zeroed(rows);
    match data_type {
        DataType::List(item) => {
            Arc::new(ListArray::new(Arc::clone(item), offsets(), new_empty_array(item.data_type()), None))
        }
        DataType::Map(entry, is_sorted) => {
            let entries = new_empty_array(entry.data_type()).as_struct().clone();
            Arc::new(MapArray::new(Arc::clone(entry), offsets(), entries, None, *is_sorted))
        }
        _ => new_null_array(data_type, rows),
    }
}

/// The rows that are gathered.
struct Picked<'p> {
    places: &'p [Place],
    /// The same as runs of rows that follow each other in their batch, where these are long.
    runs: Option<Vec<(usize, Range<usize>)>>,
}

/// Rows on average that runs must have to be copied as a whole.
const MIN_RUN: usize = 4;

impl<'p> Picked<'p> {
    fn new(places: &'p [Place]) -> Self {
        let goes_on = |a: &Place, b: &Place| a.0 == b.0 && a.1 + 1 == b.1;
        let count = 1 + places.windows(2).filter(|pair| !goes_on(&pair[0], &pair[1])).count();
        let runs = || {
            let runs = places.chunk_by(goes_on);
            runs.map(|run| (run[0].0, run[0].1..run[0].1 + run.len())).collect()
        };
        Self { places, runs: (count * MIN_RUN <= places.len()).then(runs) }
    }

    fn values<T: Copy>(&self, parts: &[&[T]]) -> Vec<T> {
        self.converted(parts, |_, value| value)
    }

    /// The values, each converted with the number of the batch that it comes from.
    fn converted<T: Copy>(&self, parts: &[&[T]], convert: impl Fn(usize, T) -> T) -> Vec<T> {
        let Some(runs) = &self.runs else {
            return self.places.iter().map(|(batch, row)| convert(*batch, parts[*batch][*row])).collect();
        };
        let mut values = Vec::with_capacity(self.places.len());
        for (batch, rows) in runs {
            values.extend(parts[*batch][rows.clone()].iter().map(|value| convert(*batch, *value)));
        }
        values
    }

    /// Bits of which all are set where there are none.
    fn bits(&self, parts: &[Option<&BooleanBuffer>]) -> BooleanBuffer {
        let Some(runs) = &self.runs else {
            return BooleanBuffer::collect_bool(self.places.len(), |at| {
                let (batch, row) = self.places[at];
                parts[batch].is_none_or(|bits| bits.value(row))
            });
        };
        let mut all = BooleanBufferBuilder::new(self.places.len());
        for (batch, rows) in runs {
            match parts[*batch] {
                Some(bits) => all.append_buffer(&bits.slice(rows.start, rows.len())),
                None => all.append_n(rows.len(), true),
            }
        }
        all.build()
    }

    /// Which of the rows have a value; none if all batches have all of theirs.
    fn nulls<'n>(&self, nulls: impl Iterator<Item = Option<&'n NullBuffer>>) -> Option<NullBuffer> {
        let parts: Vec<Option<&BooleanBuffer>> =
            nulls.map(|nulls| nulls.filter(|nulls| nulls.null_count() > 0).map(NullBuffer::inner)).collect();
        parts.iter().any(Option::is_some).then(|| NullBuffer::new(self.bits(&parts)))
    }
}

fn gather_ids<const BYTES: usize>(
    parts: &[&FixedSizeBinaryArray],
    picked: &Picked<'_>,
) -> Result<FixedSizeBinaryArray> {
    let values: Vec<&[[u8; BYTES]]> = parts.iter().map(|part| part.value_data().as_chunks().0).collect();
    let ids = Buffer::from_vec(picked.values(&values).into_flattened());
    Ok(FixedSizeBinaryArray::try_new(BYTES as i32, ids, picked.nulls(parts.iter().map(|part| part.nulls())))?)
}

fn gather_numbers<T: ArrowPrimitiveType>(parts: &[&dyn Array], picked: &Picked<'_>) -> ArrayRef {
    let values: Vec<&[T::Native]> = parts.iter().map(|part| part.as_primitive::<T>().values().as_ref()).collect();
    let nulls = picked.nulls(parts.iter().map(|part| part.nulls()));
    Arc::new(PrimitiveArray::<T>::new(picked.values(&values).into(), nulls))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray, UInt64Array};
    use arrow::compute::interleave_record_batch;
    use arrow::datatypes::Schema;

    use super::*;

    /// Scenario: batches with ids, flags, codes, numbers and texts, some of them missing, one batch a slice of another, one
    /// without any text in its dictionary; their rows in turn, backwards and batch by batch.
    /// Guarantee: every column is what Arrow's kernel gives, and each text stands once in its dictionary.
    #[test]
    fn as_the_kernel_gives_it() {
        let fields = [
            ("long", DataType::FixedSizeBinary(16)),
            ("short", DataType::FixedSizeBinary(8)),
            ("flag", DataType::Boolean),
            ("code", table::dictionary()),
            ("number", DataType::Int64),
            ("text", DataType::Utf8),
            ("plain", DataType::UInt64),
            ("missing", DataType::Utf8),
            ("missing code", table::dictionary()),
            ("missing id", DataType::FixedSizeBinary(16)),
            ("empty", table::map()),
        ];
        let schema: SchemaRef = Arc::new(Schema::new(
            fields.map(|(name, data_type)| Field::new(name, data_type, !matches!(name, "plain" | "empty"))).to_vec(),
        ));
        let batch = |from: u8, texts: &[Option<&str>]| {
            let rows = texts.len() as u8;
            let some = |row: u8| (row % 3 != from % 3).then_some(row + from);
            let long = (0..rows).map(|row| some(row).map(|id| [id; 16]));
            let short = (0..rows).map(|row| some(row + 1).map(|id| [id; 8]));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(long, 16).unwrap()),
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(short, 8).unwrap()),
                Arc::new((0..rows).map(|row| some(row + 2).map(|id| id % 2 == 0)).collect::<BooleanArray>()),
                Arc::new(texts.iter().copied().collect::<DictionaryArray<Int32Type>>()),
                Arc::new((0..rows).map(|row| some(row).map(i64::from)).collect::<Int64Array>()),
                Arc::new(texts.iter().copied().collect::<StringArray>()),
                Arc::new(UInt64Array::from_iter_values((0..rows).map(u64::from))),
                new_null_array(&DataType::Utf8, texts.len()),
                new_null_array(&table::dictionary(), texts.len()),
                new_null_array(&DataType::FixedSizeBinary(16), texts.len()),
                nothing(&table::map(), texts.len()),
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        };
        let first = batch(1, &[Some("a"), None, Some("b"), Some("a"), Some("c")]);
        let batches = [first.slice(1, 3), first, batch(7, &[None, None]), batch(9, &[Some("c"), Some("d"), Some("")])];
        let in_turn = |row: usize| batches.iter().enumerate().filter(move |(_, batch)| row < batch.num_rows());
        let one_by_one: Vec<Place> = (0..5).flat_map(|row| in_turn(row).map(move |(at, _)| (at, row))).collect();
        let backwards: Vec<Place> = one_by_one.iter().rev().copied().collect();
        let together: Vec<Place> = (0..5).map(|row| (1, row)).chain((0..3).map(|row| (3, row))).collect();
        assert!(Picked::new(&one_by_one).runs.is_none() && Picked::new(&together).runs.is_some());
        let gather = Gather::new(&schema, &batches).unwrap();
        for places in [one_by_one, backwards, together] {
            let gathered = gather.rows(&places).unwrap();
            let expected = interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &places).unwrap();
            for (field, column) in schema.fields().iter().zip(gathered.columns()) {
                let kernel = expected.column_by_name(field.name()).unwrap();
                if field.name() == "code" {
                    let coded: &DictionaryArray<Int32Type> = column.as_dictionary();
                    assert_eq!(
                        coded.values().as_string::<i32>().iter().flatten().collect::<Vec<_>>(),
                        ["a", "b", "c", "d", ""]
                    );
                    let texts = |array: &ArrayRef| arrow::compute::cast(array, &DataType::Utf8).unwrap();
                    assert_eq!(&texts(column), &texts(kernel));
                } else {
                    assert_eq!(column, kernel, "{}", field.name());
                }
            }
        }
    }
}
