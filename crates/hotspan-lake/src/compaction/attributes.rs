//! Attribute columns: in each file of spans, the attributes that many of its spans have get columns of their own.
//!
//! Received spans carry all attributes in two maps. Compaction counts them, moves the frequent ones into typed
//! columns named `attr.` and the key, and leaves the rest in the maps; a later compaction may choose otherwise.
//! A value whose type differs from its column's stays in the map, so that nothing is lost or converted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MapArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use hashbrown::HashMap;

use super::attribute_values::{ColumnBuilder, PresentColumn, RestOfMaps};
use super::gather::Place;
use crate::arrays;
use crate::error::{LakeError, Result};
use crate::table::Table;

/// What the name of an attribute column starts with.
pub const ATTRIBUTE_PREFIX: &str = "attr.";
/// An attribute gets a column if at least one span in this many has it.
const SPANS_PER_VALUE: u64 = 100;
/// How many attribute columns a file has at most.
const MAX_COLUMNS: usize = 128;

/// The type of an attribute column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnType {
    /// Text.
    Text,
    /// 64-bit integers.
    Int,
    /// Doubles.
    Double,
    /// Truth values.
    Bool,
}

impl ColumnType {
    /// Every type, in the order of their numbers.
    const ALL: [Self; 4] = [Self::Text, Self::Int, Self::Double, Self::Bool];

    fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Int => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Bool => DataType::Boolean,
        }
    }

    fn from_data_type(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Utf8 => Some(Self::Text),
            DataType::Int64 => Some(Self::Int),
            DataType::Float64 => Some(Self::Double),
            DataType::Boolean => Some(Self::Bool),
            _ => None,
        }
    }

    /// The type of a value from its JSON; none for what has no column type.
    pub(super) fn of_json(json: &str) -> Option<Self> {
        match json.as_bytes().first()? {
            b't' | b'f' => Some(Self::Bool),
            b'-' | b'0'..=b'9' if json.contains(['.', 'e']) => Some(Self::Double),
            b'-' | b'0'..=b'9' => Some(Self::Int),
            _ => None,
        }
    }
}

/// How often each attribute occurs, by key and type.
#[derive(Debug, Default)]
pub(crate) struct AttributeCounts {
    /// Keys are numbered as they come.
    numbers: HashMap<String, u32>,
    /// By number and type.
    counts: Vec<[u64; ColumnType::ALL.len()]>,
    spans: u64,
}

/// The keys of all attributes in the maps of a batch, by their numbers in [`AttributeCounts`].
pub(crate) struct EntryKeys {
    texts: Vec<u32>,
    others: Vec<u32>,
}

impl AttributeCounts {
    /// Gives an attribute a column however often it occurs.
    pub(crate) fn keep(&mut self, key: &str, column_type: ColumnType) {
        let number = self.number(key);
        self.counts[number as usize][column_type as usize] = u64::MAX;
    }

    /// Counts the attributes of a batch, those in maps and those in columns.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<EntryKeys> {
        self.spans += batch.num_rows() as u64;
        let texts = map_entries(arrays::maps(batch, "attributes")?)?;
        let mut keys = EntryKeys { texts: Vec::with_capacity(texts.range().len()), others: Vec::new() };
        for entry in texts.range() {
            let number = self.number(texts.keys.value(entry));
            keys.texts.push(number);
            self.count(number, ColumnType::Text, 1);
        }
        let others = map_entries(arrays::maps(batch, "attributes_json")?)?;
        keys.others.reserve(others.range().len());
        for entry in others.range() {
            let number = self.number(others.keys.value(entry));
            keys.others.push(number);
            if let Some(column_type) = ColumnType::of_json(others.values.value(entry)) {
                self.count(number, column_type, 1);
            }
        }
        let schema = batch.schema_ref();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if let Some((key, column_type)) = attribute_field(field) {
                let number = self.number(key);
                self.count(number, column_type, (column.len() - column.null_count()) as u64);
            }
        }
        Ok(keys)
    }

    fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.counts.len() as u32;
        self.numbers.insert(key.to_owned(), number);
        self.counts.push([0; ColumnType::ALL.len()]);
        number
    }

    fn count(&mut self, number: u32, column_type: ColumnType, spans: u64) {
        let sum = &mut self.counts[number as usize][column_type as usize];
        *sum = sum.saturating_add(spans);
    }

    /// The attributes that deserve a column, sorted by key; of a key with several types, the most frequent.
    pub(crate) fn choose(&self) -> AttributeColumns {
        let mut frequent: Vec<(&str, ColumnType, u64)> = Vec::new();
        for (key, number) in &self.numbers {
            for (column_type, count) in ColumnType::ALL.into_iter().zip(self.counts[*number as usize]) {
                if count > 0 && count.saturating_mul(SPANS_PER_VALUE) >= self.spans {
                    frequent.push((key, column_type, count));
                }
            }
        }
        frequent.sort_unstable_by(|a, b| b.2.cmp(&a.2).then_with(|| (a.0, a.1).cmp(&(b.0, b.1))));
        let mut columns: Vec<(String, ColumnType)> = Vec::new();
        for (key, column_type, _) in frequent {
            if columns.len() < MAX_COLUMNS && columns.iter().all(|(other, _)| other != key) {
                columns.push((key.to_owned(), column_type));
            }
        }
        columns.sort_unstable();
        AttributeColumns::new(columns)
    }
}

/// The attribute columns of one file.
#[derive(Debug, Clone)]
pub(crate) struct AttributeColumns {
    columns: Vec<(String, ColumnType)>,
    places: HashMap<String, usize>,
    schema: SchemaRef,
}

impl AttributeColumns {
    fn new(columns: Vec<(String, ColumnType)>) -> Self {
        let fixed = Table::Spans.schema();
        let mut fields: Vec<Arc<Field>> = fixed.fields().iter().cloned().collect();
        fields.extend(columns.iter().map(|(key, column_type)| {
            Arc::new(Field::new(format!("{ATTRIBUTE_PREFIX}{key}"), column_type.data_type(), true))
        }));
        let places = columns.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        Self { columns, places, schema: Arc::new(Schema::new(fields)) }
    }

    /// The schema of a file with these columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same spans with their attributes in these columns and in the maps. Columns that they have already stay as they are,
    /// which is most of them, since files of one hour mostly agree on what is frequent.
    pub(crate) fn conform(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let kept: Vec<Option<ArrayRef>> = self.columns.iter().map(|column| column_of(batch, column)).collect();
        let present = batch.schema_ref().fields().iter().filter(|field| attribute_field(field).is_some()).count();
        let attributes = if kept.iter().flatten().count() == self.columns.len().max(present) {
            let map = |name| arrays::maps(batch, name).map(|map| Arc::new(map.clone()) as ArrayRef);
            Distributed {
                texts: map("attributes")?,
                others: map("attributes_json")?,
                columns: kept.into_iter().flatten().collect(),
            }
        } else {
            self.distribute(&[self.source(batch)?], &all_rows(batch), kept)?
        };
        self.assemble(batch, attributes)
    }

    /// Spans at these places of several batches, of which `others` has all columns but the maps, with their attributes in these
    /// columns and in the maps. The maps are the most of a span: here they are read in their new order, not moved first.
    pub(crate) fn conform_rows(
        &self,
        maps: &[Source<'_>],
        others: &RecordBatch,
        places: &[Place],
    ) -> Result<RecordBatch> {
        self.assemble(others, self.distribute(maps, places, vec![None; self.columns.len()])?)
    }

    fn assemble(&self, batch: &RecordBatch, attributes: Distributed) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for field in Table::Spans.schema().fields() {
            columns.push(match field.name().as_str() {
                "attributes" => Arc::clone(&attributes.texts),
                "attributes_json" => Arc::clone(&attributes.others),
                name => Arc::clone(batch.column_by_name(name).ok_or_else(|| LakeError::Damaged {
                    path: format!("column {name}"),
                    reason: "is missing".to_owned(),
                })?),
            });
        }
        columns.extend(attributes.columns);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// The attributes of the spans at these places: the two maps that are left, and the columns, of which `kept` ones have all
    /// that they can have.
    fn distribute(&self, sources: &[Source<'_>], places: &[Place], kept: Vec<Option<ArrayRef>>) -> Result<Distributed> {
        let mut columns: Vec<OutputColumn> = self
            .columns
            .iter()
            .zip(kept)
            .map(|((_, column_type), kept)| match kept {
                Some(column) => OutputColumn::Kept(column),
                None => OutputColumn::Filled(ColumnBuilder::new(*column_type, places.len())),
            })
            .collect();
        let mut rest = RestOfMaps::default();
        for (at, (batch, row)) in places.iter().enumerate() {
            let Source { texts, others, leaving } = &sources[*batch];
            for (key, column) in leaving {
                column.move_to_map(*row, key, &mut rest);
            }
            // Keys are not even looked at where a column takes the value: reading is most of the work here.
            for entry in texts.entries.range_of(*row) {
                let value = texts.entries.values.value(entry);
                let builder = columns.get_mut(texts.column_of(entry)).and_then(OutputColumn::builder);
                if !builder.is_some_and(|builder| builder.push_text(at, value)) {
                    rest.texts.entry(texts.entries.keys.value(entry), value);
                }
            }
            for entry in others.entries.range_of(*row) {
                let json = others.entries.values.value(entry);
                let builder = columns.get_mut(others.column_of(entry)).and_then(OutputColumn::builder);
                if !builder.is_some_and(|builder| builder.push_json(at, json)) {
                    rest.others.entry(others.entries.keys.value(entry), json);
                }
            }
            rest.end_row();
        }
        let (texts, others) = rest.finish()?;
        let columns = columns.into_iter().map(|column| column.finish(places.len())).collect::<Result<_>>()?;
        Ok(Distributed { texts, others, columns })
    }

    /// The attributes of a batch whose keys were numbered when they were counted.
    pub(crate) fn counted_source<'b>(
        &self,
        batch: &'b RecordBatch,
        keys: &EntryKeys,
        counts: &AttributeCounts,
    ) -> Result<Source<'b>> {
        let mut columns = vec![NO_COLUMN; counts.counts.len()];
        for (key, number) in &counts.numbers {
            columns[*number as usize] = self.place_of(key);
        }
        let of_keys = |keys: &[u32]| keys.iter().map(|number| columns[*number as usize]).collect();
        self.source_with(batch, of_keys(&keys.texts), of_keys(&keys.others))
    }

    /// The attributes of any batch.
    fn source<'b>(&self, batch: &'b RecordBatch) -> Result<Source<'b>> {
        let of_entries = |name: &str| -> Result<Vec<u32>> {
            let entries = map_entries(arrays::maps(batch, name)?)?;
            Ok(entries.range().map(|entry| self.place_of(entries.keys.value(entry))).collect())
        };
        self.source_with(batch, of_entries("attributes")?, of_entries("attributes_json")?)
    }

    fn source_with<'b>(&self, batch: &'b RecordBatch, texts: Vec<u32>, others: Vec<u32>) -> Result<Source<'b>> {
        let leaving = batch.schema_ref().fields().iter().zip(batch.columns()).filter_map(|(field, column)| {
            let (key, column_type) = attribute_field(field)?;
            let stays = self.places.get(key).is_some_and(|place| self.columns[*place].1 == column_type);
            if stays { None } else { Some((key, PresentColumn::new(column.as_ref(), column_type)?)) }
        });
        let map = |name, columns| -> Result<SourceMap<'b>> {
            Ok(SourceMap { entries: map_entries(arrays::maps(batch, name)?)?, columns })
        };
        Ok(Source {
            texts: map("attributes", texts)?,
            others: map("attributes_json", others)?,
            leaving: leaving.collect(),
        })
    }

    fn place_of(&self, key: &str) -> u32 {
        self.places.get(key).map_or(NO_COLUMN, |place| *place as u32)
    }
}

/// Where the attributes of a batch come from: its maps, and columns that the output does not have.
pub(crate) struct Source<'b> {
    texts: SourceMap<'b>,
    others: SourceMap<'b>,
    leaving: Vec<(&'b str, PresentColumn<'b>)>,
}

/// A map, and the column that each of its entries goes to.
struct SourceMap<'b> {
    entries: MapEntries<'b>,
    columns: Vec<u32>,
}

/// Stands for a key that has no column.
const NO_COLUMN: u32 = u32::MAX;

impl SourceMap<'_> {
    #[inline]
    fn column_of(&self, entry: usize) -> usize {
        self.columns[entry - self.entries.range().start] as usize
    }
}

/// Every row of a batch that is the only one.
fn all_rows(batch: &RecordBatch) -> Vec<Place> {
    (0..batch.num_rows()).map(|row| (0, row)).collect()
}

/// The attributes of some spans: those in maps, and those in columns.
struct Distributed {
    texts: ArrayRef,
    others: ArrayRef,
    columns: Vec<ArrayRef>,
}

/// The column of this attribute and type, if a batch has one.
fn column_of(batch: &RecordBatch, (key, column_type): &(String, ColumnType)) -> Option<ArrayRef> {
    let column = batch.column_by_name(&format!("{ATTRIBUTE_PREFIX}{key}"))?;
    (ColumnType::from_data_type(column.data_type()) == Some(*column_type)).then(|| Arc::clone(column))
}

/// A column of the output: as it is in the input, or filled from its maps.
enum OutputColumn {
    Kept(ArrayRef),
    Filled(ColumnBuilder),
}

impl OutputColumn {
    fn builder(&mut self) -> Option<&mut ColumnBuilder> {
        match self {
            Self::Kept(_) => None,
            Self::Filled(builder) => Some(builder),
        }
    }

    fn finish(self, rows: usize) -> Result<ArrayRef> {
        match self {
            Self::Kept(column) => Ok(column),
            Self::Filled(builder) => builder.finish(rows),
        }
    }
}

/// The same spans, as far as their columns were read, with all attributes in the two maps.
pub fn fold_attributes(batch: &RecordBatch) -> Result<RecordBatch> {
    let no_columns = AttributeColumns::new(Vec::new());
    let Distributed { texts, others, .. } =
        no_columns.distribute(&[no_columns.source(batch)?], &all_rows(batch), Vec::new())?;
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if attribute_field(field).is_some() {
            continue;
        }
        fields.push(Arc::clone(field));
        columns.push(match field.name().as_str() {
            "attributes" => Arc::clone(&texts),
            "attributes_json" => Arc::clone(&others),
            _ => Arc::clone(column),
        });
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Key and type of an attribute column, if a field is one.
pub fn attribute_field(field: &Field) -> Option<(&str, ColumnType)> {
    let key = field.name().strip_prefix(ATTRIBUTE_PREFIX)?;
    Some((key, ColumnType::from_data_type(field.data_type())?))
}

struct MapEntries<'a> {
    offsets: &'a [i32],
    keys: &'a StringArray,
    values: &'a StringArray,
}

impl MapEntries<'_> {
    fn range_of(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.offsets.first().copied().unwrap_or(0) as usize..self.offsets.last().copied().unwrap_or(0) as usize
    }
}

fn map_entries(map: &MapArray) -> Result<MapEntries<'_>> {
    match (map.keys().as_any().downcast_ref(), map.values().as_any().downcast_ref()) {
        (Some(keys), Some(values)) => Ok(MapEntries { offsets: map.value_offsets(), keys, values }),
        _ => Err(LakeError::Damaged { path: "attributes".to_owned(), reason: "the map is not of text".to_owned() }),
    }
}
