//! Rows of files that were written before their table got a further column: there, nothing is known of it.

use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::Schema;

use crate::error::Result;
use crate::table::Table;

/// The same rows with every column that may be empty; what a batch has is left as it is.
pub(super) fn with_absent_columns(table: Table, batch: RecordBatch) -> Result<RecordBatch> {
    let (stored, today) = (batch.schema(), table.schema());
    let is_absent = |name: &str| stored.column_with_name(name).is_none();
    let absent: Vec<_> =
        today.fields().iter().filter(|field| field.is_nullable() && is_absent(field.name())).cloned().collect();
    if absent.is_empty() {
        return Ok(batch);
    }
    let mut columns = batch.columns().to_vec();
    columns.extend(absent.iter().map(|field| new_null_array(field.data_type(), batch.num_rows())));
    let fields: Vec<_> = stored.fields().iter().cloned().chain(absent).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;

    use super::*;

    /// Scenario: profiles of a file that was written before they had labels, and of one with them.
    /// Guarantee: the former have the column, without a value; the latter stay as they are.
    #[test]
    fn what_was_not_known_is_null() {
        let today = RecordBatch::new_empty(Table::Profiles.schema());
        let before: Vec<usize> = (0..today.num_columns() - 1).collect();
        let completed = with_absent_columns(Table::Profiles, today.project(&before).unwrap()).unwrap();
        assert_eq!(completed.schema().fields(), Table::Profiles.schema().fields());
        assert!(completed.column_by_name("labels").is_some_and(|labels| labels.null_count() == labels.len()));
        assert_eq!(with_absent_columns(Table::Profiles, today.clone()).unwrap(), today);
    }
}
