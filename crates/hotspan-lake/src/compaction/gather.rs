//! Rows of many batches in another order, as one batch.
//!
//! The batches are not joined first: that would touch as much memory again as they take, and memory that nobody has
//! touched costs more than copying does. What a dictionary codes is brought together once, and then only codes move.

use std::sync::Arc;

use super::codebook::{Codebook, Meanings};
use crate::error::Result;
use crate::table;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, RecordBatch,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, Int32Type, SchemaRef};

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

/// One column of all batches. Arrow's own kernel takes long for ids and truth values, and looks at all texts of all
/// dictionaries each time.
enum Column<'b> {
    LongIds(Vec<&'b FixedSizeBinaryArray>),
    ShortIds(Vec<&'b FixedSizeBinaryArray>),
    Flags(Vec<&'b BooleanArray>),
    Coded { parts: Vec<CodedPart<'b>>, texts: ArrayRef },
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
        let columns = self.columns.iter().map(|column| column.rows(places)).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl<'b> Column<'b> {
    fn new(data_type: &DataType, parts: Vec<&'b dyn Array>, codebook: &mut Codebook) -> Result<Self> {
        Ok(match data_type {
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

    fn rows(&self, places: &[Place]) -> Result<ArrayRef> {
        Ok(match self {
            Self::LongIds(parts) => Arc::new(gather_ids::<16>(parts, places)?),
            Self::ShortIds(parts) => Arc::new(gather_ids::<8>(parts, places)?),
            Self::Flags(parts) => {
                let values: Vec<&BooleanBuffer> = parts.iter().map(|part| part.values()).collect();
                let flag = |at: usize| values[places[at].0].value(places[at].1);
                let nulls = gather_nulls(places, parts.iter().map(|part| part.nulls()));
                Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(places.len(), flag), nulls))
            }
            Self::Coded { parts, texts } => {
                // A row without a text may have any code.
                let meaning = |part: &CodedPart<'_>, row| part.meanings.get(part.codes.values()[row] as usize).copied();
                let code = |(batch, row): &Place| meaning(&parts[*batch], *row).unwrap_or(0);
                let codes: Vec<i32> = places.iter().map(code).collect();
                let nulls = gather_nulls(places, parts.iter().map(|part| part.codes.nulls()));
                Arc::new(DictionaryArray::<Int32Type>::try_new(
                    Int32Array::new(codes.into(), nulls),
                    Arc::clone(texts),
                )?)
            }
            Self::Others(parts) => interleave(parts, places)?,
        })
    }
}

fn gather_ids<const BYTES: usize>(parts: &[&FixedSizeBinaryArray], places: &[Place]) -> Result<FixedSizeBinaryArray> {
    let values: Vec<&[[u8; BYTES]]> = parts.iter().map(|part| part.value_data().as_chunks().0).collect();
    let ids: Vec<[u8; BYTES]> = places.iter().map(|(batch, row)| values[*batch][*row]).collect();
    let nulls = gather_nulls(places, parts.iter().map(|part| part.nulls()));
    Ok(FixedSizeBinaryArray::try_new(BYTES as i32, Buffer::from_vec(ids.into_flattened()), nulls)?)
}

/// Which of the rows have a value; none if all batches have all of theirs.
fn gather_nulls<'n>(places: &[Place], nulls: impl Iterator<Item = Option<&'n NullBuffer>>) -> Option<NullBuffer> {
    let nulls: Vec<Option<&NullBuffer>> = nulls.collect();
    let is_present = |at: usize| {
        let (batch, row) = places[at];
        nulls[batch].is_none_or(|nulls| nulls.is_valid(row))
    };
    let has_any = nulls.iter().flatten().any(|nulls| nulls.null_count() > 0);
    has_any.then(|| NullBuffer::new(BooleanBuffer::collect_bool(places.len(), is_present)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray, UInt64Array};
    use arrow::compute::interleave_record_batch;
    use arrow::datatypes::Schema;

    use super::*;

    /// Scenario: batches with ids, flags, codes, numbers and texts, some of them missing, one batch a slice of another, one
    /// without any text in its dictionary; their rows backwards and in turn.
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
        ];
        let schema: SchemaRef = Arc::new(Schema::new(
            fields.map(|(name, data_type)| Field::new(name, data_type, name != "plain")).to_vec(),
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
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        };
        let first = batch(1, &[Some("a"), None, Some("b"), Some("a"), Some("c")]);
        let batches = [first.slice(1, 3), first, batch(7, &[None, None]), batch(9, &[Some("c"), Some("d"), Some("")])];
        let in_turn = |row: usize| batches.iter().enumerate().filter(move |(_, batch)| row < batch.num_rows());
        let mut places: Vec<Place> = (0..5).flat_map(|row| in_turn(row).map(move |(at, _)| (at, row))).collect();
        let gather = Gather::new(&schema, &batches).unwrap();
        for _ in 0..2 {
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
            places.reverse();
        }
    }
}
