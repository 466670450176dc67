//! Attribute columns: in each file of spans, the attributes that many of its spans have get columns of their own.
//!
//! Received spans carry all attributes in two maps. Compaction counts them, moves the frequent ones into typed
//! columns named `attr.` and the key, and leaves the rest in the maps; a later compaction may choose otherwise.
//! A value whose type differs from its column's stays in the map, so that nothing is lost or converted.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use hashbrown::HashMap;

use super::attribute_entries::{EntriesOfRows, ROWS_AT_ONCE, Source, SourceMap};
use super::attribute_values::{ColumnBuilder, PresentColumn, RestOfMaps};
use super::gather::Place;
use crate::arrays::{self, in_order_of_keys};
use crate::error::{LakeError, Result};
use crate::table::Table;

/// What the name of an attribute column starts with.
pub const ATTRIBUTE_PREFIX: &str = "attr.";

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
    pub(super) const ALL: [Self; 4] = [Self::Text, Self::Int, Self::Double, Self::Bool];

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
        // Asked of every value, and short: bytes are looked at faster than characters.
        let has_fraction = || json.bytes().any(|byte| matches!(byte, b'.' | b'e'));
        match json.as_bytes().first()? {
            b't' | b'f' => Some(Self::Bool),
            b'-' | b'0'..=b'9' if has_fraction() => Some(Self::Double),
            b'-' | b'0'..=b'9' => Some(Self::Int),
            _ => None,
        }
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
    pub(super) fn new(columns: Vec<(String, ColumnType)>) -> Self {
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
            Distributed {
                texts: fixed_column(batch, "attributes")?,
                others: fixed_column(batch, "attributes_json")?,
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
                name => fixed_column(batch, name)?,
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
        let (mut texts, mut others) = (EntriesOfRows::default(), EntriesOfRows::default());
        for (window, places) in places.chunks(ROWS_AT_ONCE).enumerate() {
            texts.find(places, |batch| &sources[batch].texts);
            others.find(places, |batch| &sources[batch].others);
            for (at, (batch, row)) in places.iter().enumerate() {
                let source = &sources[*batch];
                for (key, column) in &source.leaving {
                    column.move_to_map(*row, key, &mut rest);
                }
                let output_row = window * ROWS_AT_ONCE + at;
                // Keys are not even looked at where a column takes the value: reading is most of the work here.
                for entry in texts.of_row(at) {
                    let builder = columns.get_mut(entry.column).and_then(OutputColumn::builder);
                    if !builder.is_some_and(|builder| builder.push_text(output_row, entry.value)) {
                        rest.texts.entry(source.texts.key(entry), entry.value);
                    }
                }
                for entry in others.of_row(at) {
                    let builder = columns.get_mut(entry.column).and_then(OutputColumn::builder);
                    if !builder.is_some_and(|builder| builder.push_json(output_row, entry.value)) {
                        rest.others.entry(source.others.key(entry), entry.value);
                    }
                }
                rest.end_row();
            }
        }
        let (texts, others) = rest.finish()?;
        let columns = columns.into_iter().map(|column| column.finish(places.len())).collect::<Result<_>>()?;
        Ok(Distributed { texts, others, columns })
    }

    /// Where the attributes of a batch come from, and where they go.
    pub(crate) fn source<'b>(&self, batch: &'b RecordBatch) -> Result<Source<'b>> {
        let leaving = batch.schema_ref().fields().iter().zip(batch.columns()).filter_map(|(field, column)| {
            let (key, column_type) = attribute_field(field)?;
            let stays = self.places.get(key).is_some_and(|place| self.columns[*place].1 == column_type);
            if stays { None } else { Some((key, PresentColumn::new(column.as_ref(), column_type)?)) }
        });
        let map = |name| -> Result<SourceMap<'b>> {
            Ok(SourceMap::new(arrays::maps(batch, name)?, |key| self.places.get(key).copied()))
        };
        Ok(Source { texts: map("attributes")?, others: map("attributes_json")?, leaving: leaving.collect() })
    }
}

/// A column that all files have.
fn fixed_column(batch: &RecordBatch, name: &str) -> Result<ArrayRef> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| LakeError::Damaged { path: format!("column {name}"), reason: "is missing".to_owned() })?;
    Ok(Arc::clone(column))
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

/// The same spans, as far as their columns were read, with all attributes in the two maps, in the order of their keys: as they are
/// stored depends on how far compaction has come (R2).
pub fn fold_attributes(batch: &RecordBatch) -> Result<RecordBatch> {
    let no_columns = AttributeColumns::new(Vec::new());
    let Distributed { texts, others, .. } =
        no_columns.distribute(&[no_columns.source(batch)?], &all_rows(batch), Vec::new())?;
    let in_order = |map: &ArrayRef| -> Result<ArrayRef> { Ok(Arc::new(in_order_of_keys(map.as_map())?)) };
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if attribute_field(field).is_some() {
            continue;
        }
        fields.push(Arc::clone(field));
        columns.push(match field.name().as_str() {
            "attributes" => in_order(&texts)?,
            "attributes_json" => in_order(&others)?,
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
