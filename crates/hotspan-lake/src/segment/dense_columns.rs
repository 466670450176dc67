//! Columns that are as small as they get without compression: ids look random, times are packed by their differences, and
//! of few different values the dictionary leaves a few bits.
//!
//! Compressing them saves next to nothing, and every reader of a column makes a decompressor first, which is a fifth of
//! what a look-up costs.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use hashbrown::{HashMap, HashSet};
use parquet::schema::types::ColumnPath;

use super::{Segment, SegmentReader};
use crate::compaction::attributes::ATTRIBUTE_PREFIX;
use crate::error::Result;
use crate::table::Table;

/// The leaf columns of a file that are to be left uncompressed.
#[derive(Debug, Clone, Default)]
pub(crate) struct DenseColumns(HashSet<ColumnPath>);

impl DenseColumns {
    /// Those that are known to be dense before any was written.
    pub(crate) fn expected(table: Table, schema: &SchemaRef) -> Self {
        let names: &[&str] = match table {
            Table::Spans => &[
                "span_id",
                "duration",
                "kind",
                "status",
                "flags",
                "dropped_attributes_count",
                "dropped_events_count",
                "dropped_links_count",
            ],
            Table::Traces => &["trace_id", "start_time"],
            Table::Samples => &["series", "time", "path"],
            Table::Rollup15s | Table::Rollup1h => &["series", "path"],
            Table::Nodes => &["id", "parent", "service_id"],
            Table::Frames => &["id", "service_id", "kind", "column", "address"],
            Table::Profiles | Table::Series => &[],
        };
        let flags = schema
            .fields()
            .iter()
            .filter(|field| field.name().starts_with(ATTRIBUTE_PREFIX) && *field.data_type() == DataType::Boolean);
        let names = names.iter().copied().chain(flags.map(|field| field.name().as_str()));
        Self(names.map(ColumnPath::from).collect())
    }

    /// Those that the first of these sizes is less than a sixteenth smaller than the second of: compressed and not.
    fn measured(sizes: HashMap<ColumnPath, (i64, i64)>) -> Self {
        let dense = sizes.into_iter().filter(|(_, (packed, plain))| packed * 16 > plain * 15);
        Self(dense.map(|(path, _)| path).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ColumnPath> {
        self.0.iter()
    }
}

impl SegmentReader {
    /// The columns that compression did not make smaller in these segments. One that was left uncompressed stays so.
    pub(crate) async fn dense_columns(&self, segments: &[Arc<Segment>]) -> Result<DenseColumns> {
        let mut sizes: HashMap<ColumnPath, (i64, i64)> = HashMap::new();
        for segment in segments {
            let footer = self.footer(segment).await?;
            for column in footer.plain.metadata().row_groups().iter().flat_map(|group| group.columns()) {
                let (packed, plain) = sizes.entry(column.column_path().clone()).or_default();
                *packed += column.compressed_size();
                *plain += column.uncompressed_size();
            }
        }
        Ok(DenseColumns::measured(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a column that was never compressed, one that compression made larger, and one that it halved.
    /// Guarantee: only the last is compressed again.
    #[test]
    fn what_compression_does_decides() {
        let sizes = [("plain", (100, 100)), ("larger", (103, 100)), ("a little", (95, 100)), ("halved", (50, 100))];
        let dense = DenseColumns::measured(sizes.map(|(name, sizes)| (ColumnPath::from(name), sizes)).into());
        let mut names: Vec<String> = dense.iter().map(ColumnPath::string).collect();
        names.sort();
        assert_eq!(names, ["a little", "larger", "plain"]);
    }
}
