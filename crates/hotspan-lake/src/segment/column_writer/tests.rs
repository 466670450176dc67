//! Files as this crate writes them, beside those of the parquet crate.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array,
    ListArray, RecordBatch, StringArray, StructArray, TimestampNanosecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::hybrid;
use crate::segment::row_group_writer::RowGroupWriter;
use crate::table;

const PAGE_ROWS: usize = 64;
const BOUNDED: [&str; 8] = ["u64", "time", "i8", "u32", "long_id", "short_id", "text", "coded"];

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn some<T>(&mut self, rows: usize, missing: u64, value: impl Fn(u64) -> T) -> Vec<Option<T>> {
        (0..rows).map(|_| (self.below(100) >= missing).then(|| value(self.below(40)))).collect()
    }

    fn all<T>(&mut self, rows: usize, value: impl Fn(u64) -> T) -> Vec<T> {
        (0..rows).map(|_| value(self.below(40))).collect()
    }

    fn offsets(&mut self, rows: usize, missing: u64) -> OffsetBuffer<i32> {
        OffsetBuffer::from_lengths(
            (0..rows).map(|_| if self.below(100) < missing { 0 } else { self.below(4) as usize }),
        )
    }
}

fn long_text(number: u64) -> String {
    // Long enough to be cut in bounds, and not in one byte a character.
    format!("{}{number}", "ü".repeat(number as usize))
}

fn batch(rows: usize, missing: u64, random: &mut Random) -> RecordBatch {
    let ids = |ids: Vec<Option<Vec<u8>>>, size| {
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids.into_iter(), size).unwrap()
    };
    let texts = random.some(rows, missing, long_text);
    let offsets = random.offsets(rows, missing);
    let items = *offsets.last().unwrap() as usize;
    let item_fields =
        Fields::from(vec![Field::new("number", DataType::Int64, false), Field::new("text", DataType::Utf8, false)]);
    let structs = StructArray::new(
        item_fields.clone(),
        vec![
            Arc::new(Int64Array::from(random.all(items, |number| number as i64))),
            Arc::new(StringArray::from(random.all(items, |number| number.to_string()))),
        ],
        None,
    );
    let item = Arc::new(Field::new("item", DataType::Struct(item_fields), false));
    let mut map = crate::rows::MapColumn::default();
    for row in 0..rows {
        for entry in 0..row % 3 {
            if random.below(100) >= missing {
                map.entry(&format!("key {entry}"), &random.below(9).to_string());
            }
        }
        map.end_row();
    }
    let coded =
        |texts: &[Option<String>]| -> DictionaryArray<Int32Type> { texts.iter().map(Option::as_deref).collect() };
    let some_texts: Vec<Option<String>> = random.all(rows, |number| Some(number.to_string()));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("u64", Arc::new(UInt64Array::from(random.all(rows, |number| number << 59))), false),
        ("time", Arc::new(TimestampNanosecondArray::from(random.all(rows, |number| 20 - number as i64))), false),
        ("plain", Arc::new(Int64Array::from(random.all(rows, |number| number as i64 * 1_000_003))), false),
        ("delta", Arc::new(Int64Array::from(random.all(rows, |number| number as i64))), false),
        ("i8", Arc::new(Int8Array::from(random.all(rows, |number| number as i8 - 20))), false),
        ("u32", Arc::new(UInt32Array::from(random.all(rows, |number| number as u32 * 100_000_000))), false),
        ("u8", Arc::new(UInt8Array::from(random.all(rows, |number| number as u8 * 6))), false),
        ("some_i64", Arc::new(Int64Array::from(random.some(rows, missing, |number| number as i64 - 20))), true),
        ("some_f64", Arc::new(Float64Array::from(random.some(rows, missing, |number| number as f64 / 4.0))), true),
        ("flag", Arc::new(BooleanArray::from(random.all(rows, |number| number % 2 == 0))), false),
        ("some_flag", Arc::new(BooleanArray::from(random.some(rows, missing, |number| number % 2 == 0))), true),
        ("long_id", Arc::new(ids(random.some(rows, missing, |number| vec![number as u8 * 6; 16]), 16)), true),
        ("short_id", Arc::new(ids(random.some(rows, missing, |number| vec![number as u8 * 6; 8]), 8)), true),
        ("text", Arc::new(StringArray::from(texts.clone())), true),
        ("every_text", Arc::new(StringArray::from(random.all(rows, long_text))), false),
        (
            "bytes",
            Arc::new(BinaryArray::from_iter(random.some(rows, missing, |number| vec![1; number as usize]))),
            true,
        ),
        ("coded", Arc::new(coded(&texts)), true),
        ("every_coded", Arc::new(coded(&some_texts)), false),
        ("map", Arc::new(map.finish().unwrap()), false),
        ("list", Arc::new(ListArray::new(item, offsets, Arc::new(structs), None)), false),
    ];
    let field = |(name, array, is_optional): &(&str, ArrayRef, bool)| {
        Field::new(*name, array.data_type().clone(), *is_optional)
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, array, _)| array).collect()).unwrap()
}

fn properties() -> WriterPropertiesBuilder {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_max_row_group_row_count(Some(1024))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_statistics_truncate_length(Some(64))
        .set_column_compression(ColumnPath::from("u64"), Compression::UNCOMPRESSED);
    // The parquet crate has no dictionaries of ids.
    for name in ["long_id", "short_id"] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), false);
    }
    for name in BOUNDED {
        properties = properties.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::Page);
    }
    for (name, encoding) in [("plain", Encoding::PLAIN), ("delta", Encoding::DELTA_BINARY_PACKED)] {
        let path = ColumnPath::from(name);
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    properties
}

fn ours(schema: &SchemaRef, batches: &[RecordBatch], properties: WriterProperties) -> Bytes {
    let mut bytes = Vec::new();
    let mut writer = RowGroupWriter::new(&mut bytes, schema, properties, 1).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    bytes.into()
}

fn theirs(schema: &SchemaRef, batches: &[RecordBatch], properties: WriterProperties) -> Bytes {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(schema), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    bytes.into()
}

fn read(file: &Bytes) -> (RecordBatch, Arc<ParquetMetaData>) {
    let options =
        ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required).with_encoding_stats_as_mask(false);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
    let (schema, metadata) = (Arc::clone(reader.schema()), Arc::clone(reader.metadata()));
    let batches: Vec<RecordBatch> = reader.with_batch_size(1000).build().unwrap().map(Result::unwrap).collect();
    (concat_batches(&schema, &batches).unwrap(), metadata)
}

fn page_bounds(index: &ColumnIndexMetaData) -> String {
    macro_rules! bounds {
        ($index:expr) => {
            format!("{:?}", $index.min_values_iter().zip($index.max_values_iter()).collect::<Vec<_>>())
        };
    }
    match index {
        ColumnIndexMetaData::INT32(index) => bounds!(index),
        ColumnIndexMetaData::INT64(index) => bounds!(index),
        ColumnIndexMetaData::BYTE_ARRAY(index) => bounds!(index),
        ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) => bounds!(index),
        _ => String::new(),
    }
}

/// What the footer and the page indexes say of each column chunk, but for where it is. Of lists, the parquet crate counts
/// values for rows at some places, so that its pages have more of these.
fn told(metadata: &ParquetMetaData) -> Vec<String> {
    let mut told = Vec::new();
    for (group, columns) in metadata.row_groups().iter().enumerate() {
        for (leaf, column) in columns.columns().iter().enumerate() {
            let bounds = column.statistics().map(|known| {
                let exact = (known.min_is_exact(), known.max_is_exact());
                (known.min_bytes_opt(), known.max_bytes_opt(), known.null_count_opt(), exact)
            });
            let (encodings, codec) = (column.encodings_mask(), column.compression());
            told.push(format!("{} {} {bounds:?} {encodings:?} {codec:?}", column.column_path(), column.num_values()));
            if column.column_descr().max_rep_level() > 0 {
                continue;
            }
            let index = &metadata.column_index().unwrap()[group][leaf];
            let index = (page_bounds(index), index.null_counts(), index.get_boundary_order());
            let pages = &metadata.offset_index().unwrap()[group][leaf].page_locations;
            let rows: Vec<i64> = pages.iter().map(|page| page.first_row_index).collect();
            told.push(format!("{index:?} {:?} {rows:?}", column.page_encoding_stats()));
        }
    }
    told
}

/// Scenario: batches of every type that tables have, from no rows to several row groups, with nothing, something or
/// everything missing, written page by page.
/// Guarantee: the file gives the same rows as that of the parquet crate, and tells the same of them: bounds, pages, encodings.
#[test]
fn as_the_parquet_crate_writes_it() {
    for missing in [0, 3, 50, 97, 100] {
        for rows in [1, PAGE_ROWS - 1, PAGE_ROWS, 17 * PAGE_ROWS, 40 * PAGE_ROWS + 5] {
            let written = batch(rows, missing, &mut Random(rows as u64 + missing));
            let (schema, batches) = (written.schema(), [written]);
            let (expected, expected_metadata) = read(&theirs(&schema, &batches, properties().build()));
            let (found, metadata) = read(&ours(&schema, &batches, properties().build()));
            assert_eq!(found, expected, "{rows} rows, of which {missing} % are missing");
            let (told, expected) = (told(&metadata), told(&expected_metadata));
            for (told, expected) in told.iter().zip(&expected) {
                assert_eq!(told, expected, "{rows} rows, of which {missing} % are missing");
            }
        }
    }
}

/// Scenario: a file without any row.
/// Guarantee: it can be read.
#[test]
fn no_rows() {
    let schema = batch(0, 0, &mut Random(1)).schema();
    let file = ours(&schema, &[], properties().build());
    assert_eq!(ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().num_row_groups(), 0);
}

/// Scenario: batches that end anywhere in a page, slices of others, whose dictionaries differ and are larger than a file's
/// may be.
/// Guarantee: all rows are there, coded ones first and the others as they are; pages have as many rows as they should.
#[test]
fn dictionaries_that_grow_too_large() {
    let mut random = Random(5);
    let whole: Vec<RecordBatch> = [150, 70, 1, 700, 333].map(|rows| batch(rows, 30, &mut random)).into();
    let schema = whole[0].schema();
    let batches: Vec<RecordBatch> =
        whole.iter().map(|batch| batch.slice(batch.num_rows() / 3, batch.num_rows() - batch.num_rows() / 3)).collect();
    let ids = ColumnPath::from("long_id");
    let few = properties().set_dictionary_page_size_limit(200).set_column_dictionary_enabled(ids, true).build();
    let (found, metadata) = read(&ours(&schema, &batches, few));
    assert_eq!(found, concat_batches(&found.schema(), &batches).unwrap());
    for name in ["text", "every_text", "coded", "every_coded", "u64", "some_f64", "long_id"] {
        let column = metadata.row_group(0).columns().iter().find(|column| column.column_path().string() == name);
        let encodings: Vec<_> =
            column.unwrap().page_encoding_stats().unwrap().iter().map(|pages| pages.encoding).collect();
        assert_eq!(encodings, [Encoding::PLAIN, Encoding::RLE_DICTIONARY, Encoding::PLAIN], "{name}");
    }
    let pages = &metadata.offset_index().unwrap()[0];
    for column in pages {
        let rows: Vec<i64> = column.page_locations.iter().map(|page| page.first_row_index).collect();
        assert!(rows.windows(2).all(|pair| pair[1] - pair[0] <= 2 * PAGE_ROWS as i64), "{rows:?}");
    }
}

/// Scenario: texts of which a few fill a page, alone, in lists, and one that is larger than a page.
/// Guarantee: pages end early, and rows are the same.
#[test]
fn large_texts_end_pages() {
    let mut map = crate::rows::MapColumn::default();
    let texts: Vec<String> = (0..100).map(|row| "x".repeat(if row == 50 { 5000 } else { 10 * row })).collect();
    for text in &texts {
        map.entry("key", text);
        map.end_row();
    }
    let schema =
        Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false), Field::new("map", table::map(), false)]));
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(texts)), Arc::new(map.finish().unwrap())];
    let written = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let small = properties().set_data_page_size_limit(2000).set_dictionary_enabled(false).build();
    let (found, metadata) = read(&ours(&schema, std::slice::from_ref(&written), small));
    assert_eq!(found, written);
    let pages = &metadata.offset_index().unwrap()[0];
    assert!(pages[0].page_locations.len() > 10 && pages[2].page_locations.len() > 10, "{pages:?}");
}

/// Scenario: batches that tell texts as codes where the schema has plain texts, as merging does.
/// Guarantee: the file has plain texts.
#[test]
fn codes_for_plain_texts() {
    let texts = ["a", "b", "a", "c"].map(Some);
    let coded = |name| Schema::new(vec![Field::new(name, table::dictionary(), true)]);
    let column: ArrayRef = Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>());
    let written = RecordBatch::try_new(Arc::new(coded("text")), vec![column]).unwrap();
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
    let (found, _) = read(&ours(&schema, &[written], properties().build()));
    let expected: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    assert_eq!(found.column(0), &expected);
}

/// Scenario: runs and mixtures of codes of every width and of bits at every offset.
/// Guarantee: the bytes mean the same values.
#[test]
fn hybrids_mean_what_was_put() {
    let mut random = Random(9);
    for width in 0..=20 {
        for count in [0, 1, 7, 8, 9, 64, 1000] {
            let mut codes = Vec::new();
            while codes.len() < count {
                let run = if random.below(3) == 0 { 1 + random.below(30) as usize } else { 1 };
                codes.extend(std::iter::repeat_n(random.below(1 << width) as u32, run));
            }
            codes.truncate(count);
            let mut bytes = Vec::new();
            hybrid::put_codes(&codes, width, &mut bytes);
            assert_eq!(decoded(&bytes, width, count), codes, "{width} bits");
            let is_odd: BooleanBuffer = codes.iter().map(|code| code % 2 == 1).collect();
            for from in 0..count.min(9) {
                let bits = is_odd.slice(from, count - from);
                bytes.clear();
                hybrid::put_bits(&bits, &mut bytes);
                let expected: Vec<u32> = bits.iter().map(u32::from).collect();
                assert_eq!(decoded(&bytes, 1, bits.len()), expected, "from {from}");
            }
        }
    }
    assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(hybrid::width_of), [0, 0, 1, 2, 2, 3, 8, 9]);
}

/// The hybrid read bit by bit, as the specification describes it.
fn decoded(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
    let mut values = Vec::new();
    while values.len() < count {
        let (mut header, mut shift) = (0u64, 0);
        loop {
            let byte = bytes[0];
            bytes = &bytes[1..];
            header |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let length = (header >> 1) as usize;
        if header & 1 == 0 {
            let size = width.div_ceil(8) as usize;
            let value = bytes[..size].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            values.extend(std::iter::repeat_n(value, length));
            bytes = &bytes[size..];
        } else {
            let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
            let value =
                |at: usize| (0..width as usize).map(|place| bit(at * width as usize + place) << place).sum::<u32>();
            values.extend((0..8 * length).map(value));
            bytes = &bytes[length * width as usize..];
        }
    }
    assert!(bytes.is_empty());
    values.truncate(count);
    values
}
