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
    counts: HashMap<(String, ColumnType), u64>,
    spans: u64,
}

impl AttributeCounts {
    /// Gives an attribute a column however often it occurs.
    pub(crate) fn keep(&mut self, key: &str, column_type: ColumnType) {
        self.counts.insert((key.to_owned(), column_type), u64::MAX);
    }

    /// Counts the attributes of a batch, those in maps and those in columns.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.spans += batch.num_rows() as u64;
        let mut local: HashMap<(&str, ColumnType), u64> = HashMap::new();
        let texts = map_entries(arrays::maps(batch, "attributes")?)?;
        for entry in texts.range() {
            *local.entry((texts.keys.value(entry), ColumnType::Text)).or_default() += 1;
        }
        let others = map_entries(arrays::maps(batch, "attributes_json")?)?;
        for entry in others.range() {
            if let Some(column_type) = ColumnType::of_json(others.values.value(entry)) {
                *local.entry((others.keys.value(entry), column_type)).or_default() += 1;
            }
        }
        let schema = batch.schema_ref();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if let Some((key, column_type)) = attribute_field(field) {
                *local.entry((key, column_type)).or_default() += (column.len() - column.null_count()) as u64;
            }
        }
        for ((key, column_type), count) in local {
            let sum = self.counts.entry((key.to_owned(), column_type)).or_default();
            *sum = sum.saturating_add(count);
        }
        Ok(())
    }

    /// The attributes that deserve a column, sorted by key; of a key with several types, the most frequent.
    pub(crate) fn choose(&self) -> AttributeColumns {
        let mut frequent: Vec<(&(String, ColumnType), u64)> = self
            .counts
            .iter()
            .filter(|(_, count)| count.saturating_mul(SPANS_PER_VALUE) >= self.spans)
            .map(|(key, count)| (key, *count))
            .collect();
        frequent.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let mut columns: Vec<(String, ColumnType)> = Vec::new();
        for ((key, column_type), _) in frequent {
            if columns.len() < MAX_COLUMNS && columns.iter().all(|(other, _)| other != key) {
                columns.push((key.clone(), *column_type));
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
            self.distribute(std::slice::from_ref(batch), &all_rows(batch), kept)?
        };
        self.assemble(batch, attributes)
    }

    /// Spans at these places of several batches, of which `others` has all columns but the maps, with their attributes in these
    /// columns and in the maps. The maps are the most of a span: here they are read in their new order, not moved first.
    pub(crate) fn conform_rows(
        &self,
        maps: &[RecordBatch],
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
    fn distribute(
        &self,
        batches: &[RecordBatch],
        places: &[Place],
        kept: Vec<Option<ArrayRef>>,
    ) -> Result<Distributed> {
        let sources = batches.iter().map(|batch| self.source(batch)).collect::<Result<Vec<_>>>()?;
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
            for entry in texts.range_of(*row) {
                let (key, value) = (texts.keys.value(entry), texts.values.value(entry));
                let builder = self.places.get(key).and_then(|place| columns[*place].builder());
                if !builder.is_some_and(|builder| builder.push_text(at, value)) {
                    rest.texts.entry(key, value);
                }
            }
            for entry in others.range_of(*row) {
                let (key, json) = (others.keys.value(entry), others.values.value(entry));
                let builder = self.places.get(key).and_then(|place| columns[*place].builder());
                if !builder.is_some_and(|builder| builder.push_json(at, json)) {
                    rest.others.entry(key, json);
                }
            }
            rest.end_row();
        }
        let (texts, others) = rest.finish()?;
        let columns = columns.into_iter().map(|column| column.finish(places.len())).collect::<Result<_>>()?;
        Ok(Distributed { texts, others, columns })
    }

    fn source<'b>(&self, batch: &'b RecordBatch) -> Result<Source<'b>> {
        let leaving = batch.schema_ref().fields().iter().zip(batch.columns()).filter_map(|(field, column)| {
            let (key, column_type) = attribute_field(field)?;
            let stays = self.places.get(key).is_some_and(|place| self.columns[*place].1 == column_type);
            if stays { None } else { Some((key, PresentColumn::new(column.as_ref(), column_type)?)) }
        });
        Ok(Source {
            texts: map_entries(arrays::maps(batch, "attributes")?)?,
            others: map_entries(arrays::maps(batch, "attributes_json")?)?,
            leaving: leaving.collect(),
        })
    }
}

/// Where the attributes of a batch come from: its maps, and columns that the output does not have.
struct Source<'b> {
    texts: MapEntries<'b>,
    others: MapEntries<'b>,
    leaving: Vec<(&'b str, PresentColumn<'b>)>,
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
        no_columns.distribute(std::slice::from_ref(batch), &all_rows(batch), Vec::new())?;
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
