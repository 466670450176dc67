//! An answer as text or bytes: JSON, CSV or Arrow, written batch by batch.

use std::collections::HashSet;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::csv::WriterBuilder as CsvBuilder;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::json::WriterBuilder as JsonBuilder;
use arrow::json::writer::JsonFormat;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::SqlError;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// An object with `columns` (name and type each) and `rows` (an object each).
    #[default]
    Json,
    /// A line of names, then a line a row. Lists and maps are text.
    Csv,
    /// Arrow's stream format.
    Arrow,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "arrow" => Ok(Self::Arrow),
            other => Err(format!("{other:?} is not a format: it is json, csv or arrow")),
        }
    }
}

impl Format {
    /// What it is called in a Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    /// Whether an answer that failed is whole with its reason in it. Otherwise it must be cut off behind what was written,
    /// or somebody would take the rows so far for all of them.
    pub fn holds_errors(self) -> bool {
        self == Self::Json
    }
}

/// What the last line of a CSV answer that failed begins with.
pub const CSV_ERROR: &str = "# error: ";

/// Writes an answer piece by piece: each call gives the bytes that have become certain.
pub struct Encoder {
    schema: SchemaRef,
    state: State,
}

enum State {
    Json { rows: u64 },
    Csv { began: bool },
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Encoder").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder for an answer with these columns.
    pub fn new(format: Format, schema: &SchemaRef) -> Result<Self, ArrowError> {
        let state = match format {
            Format::Json => State::Json { rows: 0 },
            Format::Csv => State::Csv { began: false },
            Format::Arrow => State::Arrow(Box::new(StreamWriter::try_new(Vec::new(), schema)?)),
        };
        let schema = if format == Format::Json { named_apart(schema) } else { Arc::clone(schema) };
        Ok(Self { schema, state })
    }

    /// What comes before the rows.
    pub fn begin(&mut self) -> Vec<u8> {
        match &mut self.state {
            State::Json { .. } => {
                let columns =
                    self.schema.fields().iter().map(
                        |field| serde_json::json!({ "name": field.name(), "type": field.data_type().to_string() }),
                    );
                let columns = serde_json::Value::Array(columns.collect());
                format!("{{\"columns\":{columns},\"rows\":[").into_bytes()
            }
            State::Csv { .. } => Vec::new(),
            State::Arrow(writer) => std::mem::take(writer.get_mut()),
        }
    }

    /// The next rows.
    pub fn rows(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, SqlError> {
        check_types(&self.schema, batch)?;
        if !matches!(self.state, State::Arrow(_)) {
            check_times(batch)?;
        }
        self.written(batch).map_err(|error| SqlError::Failed(error.to_string()))
    }

    fn written(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        match &mut self.state {
            State::Json { rows } => {
                let mut bytes = Vec::new();
                if batch.num_rows() > 0 {
                    if *rows > 0 {
                        bytes.push(b',');
                    }
                    let mut writer =
                        JsonBuilder::new().with_explicit_nulls(true).build::<_, CommaSeparated>(&mut bytes);
                    let (schema, columns) = (Arc::clone(&self.schema), batch.columns().to_vec());
                    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    writer.write(&RecordBatch::try_new_with_options(schema, columns, &options)?)?;
                    writer.finish()?;
                    *rows += batch.num_rows() as u64;
                }
                Ok(bytes)
            }
            State::Csv { began } => {
                let mut bytes = Vec::new();
                let flat = flat(batch)?;
                CsvBuilder::new().with_header(!*began).build(&mut bytes).write(&flat)?;
                *began = true;
                Ok(bytes)
            }
            State::Arrow(writer) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }

    /// What comes after the rows. Of an answer that failed: in JSON a member, in CSV a last line, in Arrow nothing, not even the
    /// mark of its end.
    pub fn end(mut self, error: Option<&str>) -> Result<Vec<u8>, ArrowError> {
        match &mut self.state {
            State::Json { rows } => Ok(match error {
                None => format!("],\"row_count\":{rows}}}").into_bytes(),
                Some(error) => {
                    format!("],\"row_count\":{rows},\"error\":{}}}", serde_json::Value::from(error)).into_bytes()
                }
            }),
            State::Csv { began } => {
                let mut bytes = Vec::new();
                if !*began {
                    // No batch came: the names of the columns still do.
                    let empty = RecordBatch::new_empty(Arc::clone(&self.schema));
                    CsvBuilder::new().with_header(true).build(&mut bytes).write(&flat(&empty)?)?;
                }
                if let Some(error) = error {
                    let words: Vec<&str> = error.split_whitespace().collect();
                    bytes.extend(format!("{CSV_ERROR}{}\n", words.join(" ")).into_bytes());
                }
                Ok(bytes)
            }
            State::Arrow(_) if error.is_some() => Ok(Vec::new()),
            State::Arrow(writer) => {
                writer.finish()?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }
}

/// The columns, each with a name of its own: of two members of one name, whoever reads JSON sees one.
fn named_apart(schema: &SchemaRef) -> SchemaRef {
    let mut taken: HashSet<String> = HashSet::new();
    let fields = schema.fields().iter().map(|field| {
        let numbered = (2..).map(|number| format!("{}_{number}", field.name()));
        let mut names = std::iter::once(field.name().clone()).chain(numbered);
        let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
        taken.insert(name.clone());
        // What a batch says of missing values counts.
        field.as_ref().clone().with_name(name).with_nullable(true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// Rows as objects with commas between them, to stand inside an array.
#[derive(Debug, Default)]
struct CommaSeparated;

impl JsonFormat for CommaSeparated {
    fn start_row<W: Write>(&self, writer: &mut W, is_first_row: bool) -> Result<(), ArrowError> {
        if is_first_row { Ok(()) } else { writer.write_all(b",").map_err(io::Error::into) }
    }
}

/// Refuses rows of other types than the answer began with: Arrow's writer of its stream would take one for the other.
fn check_types(schema: &Schema, batch: &RecordBatch) -> Result<(), SqlError> {
    let given = batch.schema_ref().fields();
    let is_same = |(told, given): (&Arc<Field>, &Arc<Field>)| told.data_type().equals_datatype(given.data_type());
    if given.len() == schema.fields().len() && schema.fields().iter().zip(given).all(is_same) {
        return Ok(());
    }
    let types =
        |fields: &Fields| fields.iter().map(|field| field.data_type().to_string()).collect::<Vec<_>>().join(", ");
    Err(SqlError::Failed(format!(
        "the answer began with columns of the types {}, and goes on with {}",
        types(schema.fields()),
        types(given)
    )))
}

/// Refuses times that have no date: Arrow's writer of JSON would put its complaint in the place of the value.
fn check_times(batch: &RecordBatch) -> Result<(), SqlError> {
    // Within lists and structs complaints would be written too.
    let options = FormatOptions::default().with_display_error(false);
    let mut text = String::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let kind = field.data_type();
        if !may_lack_a_date(kind) {
            continue;
        }
        let formatter = ArrayFormatter::try_new(column.as_ref(), &options);
        let formatter = formatter.map_err(|error| SqlError::Failed(error.to_string()))?;
        for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
            text.clear();
            formatter.value(row).write(&mut text).map_err(|_| {
                let name = field.name();
                SqlError::Invalid(format!(
                    "column {name:?} ({kind}) has a time beyond all dates; CAST(x AS BIGINT) gives its number"
                ))
            })?;
        }
    }
    Ok(())
}

/// Whether there are values of a type that no calendar has. All 64 bits of nanoseconds are within it.
fn may_lack_a_date(kind: &DataType) -> bool {
    match kind {
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Nanosecond,
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => may_lack_a_date(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| may_lack_a_date(field.data_type())),
        DataType::Dictionary(_, value) => may_lack_a_date(value),
        _ => false,
    }
}

/// The batch with its lists, maps and structs as text.
fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if !field.data_type().is_nested() {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
            continue;
        }
        let formatter = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default())?;
        let texts = (0..column.len()).map(|row| column.is_valid(row).then(|| formatter.value(row).to_string()));
        columns.push(Arc::new(texts.collect::<StringArray>()));
        fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array, ListArray, StructArray, TimestampSecondArray};
    use arrow::buffer::OffsetBuffer;

    use super::*;

    /// Scenario: columns of one name, as joins have them, one of which would take the name that another one gets.
    /// Guarantee: in JSON each has a name of its own, the same in `columns` and in rows; the first keeps its name.
    #[test]
    fn columns_are_named_apart() {
        let names = ["x", "x", "x_2", "y"];
        let schema = Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Int64, false)).to_vec()));
        let columns = (1..).take(4).map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef);
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap();
        let mut encoder = Encoder::new(Format::Json, &schema).unwrap();
        let text = [encoder.begin(), encoder.rows(&batch).unwrap(), encoder.end(None).unwrap()].concat();
        let answer: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(answer["rows"], serde_json::json!([{"x": 1, "x_2": 2, "x_2_2": 3, "y": 4}]));
        let told: Vec<&str> =
            answer["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(told, ["x", "x_2", "x_2_2", "y"]);
    }

    /// Scenario: rows of fractions, and of two columns, in an answer that began with one of whole numbers, in each format.
    /// Guarantee: they are refused with both types, and nothing of them is written.
    #[test]
    fn rows_of_other_types_are_refused() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, false)]));
        let fractions = || Arc::new(Float64Array::from(vec![1.5])) as ArrayRef;
        for columns in [vec![("x", fractions())], vec![("x", fractions()), ("y", fractions())]] {
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            for format in [Format::Json, Format::Csv, Format::Arrow] {
                let refusal = Encoder::new(format, &schema).unwrap().rows(&batch).unwrap_err();
                let told = refusal.to_string();
                assert!(matches!(refusal, SqlError::Failed(_)), "{format:?}: {told}");
                assert!(told.contains("Int64") && told.contains("Float64"), "{format:?}: {told}");
            }
        }
    }

    /// Scenario: a time that no calendar has, bare, in a list and in a struct, beside times that one has.
    /// Guarantee: JSON and CSV name its column and say what to do instead of writing a complaint in its place; Arrow has its
    /// number.
    #[test]
    fn times_beyond_all_dates_are_refused() {
        let bare = |seconds: Vec<Option<i64>>| Arc::new(TimestampSecondArray::from(seconds)) as ArrayRef;
        let list = |times: ArrayRef| {
            let item = Arc::new(Field::new("item", times.data_type().clone(), true));
            Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([times.len()]), times, None)) as ArrayRef
        };
        let pair = |times: ArrayRef| Arc::new(StructArray::try_from(vec![("time", times)]).unwrap()) as ArrayRef;
        let rows = |format, column: ArrayRef| {
            let batch = RecordBatch::try_from_iter([("late", column)]).unwrap();
            Encoder::new(format, batch.schema_ref()).unwrap().rows(&batch)
        };
        for wrapped in [&(|times| times) as &dyn Fn(ArrayRef) -> ArrayRef, &list, &pair, &|times| list(pair(times))] {
            for format in [Format::Json, Format::Csv] {
                let refusal = rows(format, wrapped(bare(vec![Some(0), Some(i64::MAX)]))).unwrap_err();
                let told = refusal.to_string();
                assert!(matches!(refusal, SqlError::Invalid(_)), "{told}");
                assert!(told.contains("\"late\"") && told.contains("CAST(x AS BIGINT)"), "{told}");
                let written = String::from_utf8(rows(format, wrapped(bare(vec![Some(0), None]))).unwrap()).unwrap();
                assert!(written.contains("1970-01-01T00:00:00"), "{written}");
            }
            assert!(rows(Format::Arrow, wrapped(bare(vec![Some(i64::MAX)]))).is_ok());
        }
    }

    /// Scenario: answers that fail after a row, for a reason of two lines, in each format.
    /// Guarantee: JSON and CSV say why, CSV in one line; Arrow has the row and no mark of an end.
    #[test]
    fn answers_that_fail_say_why() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, false)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![7]))]).unwrap();
        let failed = |format| {
            let mut encoder = Encoder::new(format, &schema).unwrap();
            let row = [encoder.begin(), encoder.rows(&batch).unwrap()].concat();
            (row, encoder.end(Some("no\nmemory")).unwrap())
        };
        let (row, end) = failed(Format::Csv);
        assert_eq!((row.as_slice(), end.as_slice()), (&b"x\n7\n"[..], &b"# error: no memory\n"[..]));
        let (row, end) = failed(Format::Json);
        let answer: serde_json::Value = serde_json::from_slice(&[row, end].concat()).unwrap();
        assert_eq!((&answer["error"], &answer["row_count"]), (&"no\nmemory".into(), &1.into()));
        let (row, end) = failed(Format::Arrow);
        assert_eq!(end, b"");
        assert!(!row.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
        assert!(Format::Json.holds_errors() && !Format::Csv.holds_errors() && !Format::Arrow.holds_errors());
    }
}
