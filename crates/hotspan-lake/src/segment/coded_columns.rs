//! Texts that files store in dictionaries alone, so that they can be read as codes without looking at any of them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use hashbrown::{HashMap, HashSet};
use parquet::basic::Encoding;
use parquet::file::metadata::ColumnChunkMetaData;

use super::{Segment, SegmentReader};
use crate::error::Result;
use crate::table::dictionary;

/// Columns of texts that are read in dictionaries.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodedColumns(HashSet<String>);

impl CodedColumns {
    /// A schema with these columns in dictionaries.
    pub(crate) fn in_schema(&self, schema: &SchemaRef) -> SchemaRef {
        let coded = |field: &Arc<Field>| match field.data_type() {
            DataType::Utf8 if self.0.contains(field.name()) => {
                Arc::new(field.as_ref().clone().with_data_type(dictionary()))
            }
            _ => Arc::clone(field),
        };
        let fields: Vec<Arc<Field>> = schema.fields().iter().map(coded).collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }
}

impl SegmentReader {
    /// The columns that all of these segments have in dictionaries alone. Of others the texts would have to be looked up.
    pub(crate) async fn coded_columns(&self, segments: &[Arc<Segment>]) -> Result<CodedColumns> {
        let mut is_coded: HashMap<String, bool> = HashMap::new();
        for segment in segments {
            let footer = self.footer(segment).await?;
            for column in footer.plain.metadata().row_groups().iter().flat_map(|group| group.columns()) {
                // Nested ones have longer paths than their names, and stay as they are.
                *is_coded.entry(column.column_path().string()).or_insert(true) &= is_all_coded(column);
            }
        }
        Ok(CodedColumns(is_coded.into_iter().filter(|(_, is_coded)| *is_coded).map(|(name, _)| name).collect()))
    }

    /// Whether all of these segments have the columns of a schema and no others, in its order.
    pub(crate) async fn all_have_schema(&self, segments: &[Arc<Segment>], schema: &Schema) -> Result<bool> {
        for segment in segments {
            let stored = self.schema_of(segment).await?;
            let same = |(a, b): (&Arc<Field>, &Arc<Field>)| a.name() == b.name() && a.data_type() == b.data_type();
            let is_same =
                stored.fields().len() == schema.fields().len() && stored.fields().iter().zip(schema.fields()).all(same);
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether every data page of a column chunk is coded.
fn is_all_coded(column: &ColumnChunkMetaData) -> bool {
    let is_coded = |mask: &parquet::basic::EncodingMask| mask.is_only(Encoding::RLE_DICTIONARY);
    column.dictionary_page_offset().is_some() && column.page_encoding_stats_mask().is_some_and(is_coded)
}
