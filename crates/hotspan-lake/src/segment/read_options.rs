//! What to read of a segment, and the same choice of rows and columns for a batch that is in memory.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions, TimestampNanosecondArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;

use super::coded_columns::CodedColumns;
use crate::error::Result;

/// Rows of a segment, as ranges in ascending order.
pub type RowRanges = Vec<Range<usize>>;

/// Rows that are read at once at most.
const MOST_PICKED: usize = 64 << 10;

/// What to read of a segment. Without anything, it is everything.
#[derive(Clone, Default)]
pub struct ReadOptions {
    columns: Option<Vec<String>>,
    prefix: Option<&'static str>,
    pub(super) time: Option<(String, i64, i64)>,
    pub(super) keys: Option<(String, Arc<Vec<u64>>)>,
    pub(super) ids: Option<(String, [u8; 16], [u8; 16])>,
    pub(super) rows: Option<RowRanges>,
    pub(super) filter: Option<RowPredicate>,
    pub(super) batch_rows: Option<usize>,
    pub(super) coded: Option<Arc<CodedColumns>>,
}

#[derive(Clone)]
pub(super) struct RowPredicate {
    pub(super) columns: Vec<String>,
    pub(super) matches: Arc<dyn Fn(&RecordBatch) -> BooleanArray + Send + Sync>,
}

impl std::fmt::Debug for ReadOptions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ReadOptions")
            .field("columns", &self.columns)
            .field("time", &self.time)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl ReadOptions {
    /// Only these columns; names that a segment lacks are left out of its batches.
    pub fn columns<N: AsRef<str>>(names: &[N]) -> Self {
        Self { columns: Some(names.iter().map(|name| name.as_ref().to_owned()).collect()), ..Self::default() }
    }

    /// Besides the columns named, those whose name starts like this.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// The columns of a schema that are asked for, in its order.
    pub(super) fn projection(&self, schema: &Schema) -> Option<Vec<usize>> {
        let names = self.columns.as_ref()?;
        let wanted = |name: &String| names.contains(name) || self.prefix.is_some_and(|prefix| name.starts_with(prefix));
        let fields = schema.fields().iter().enumerate();
        Some(fields.filter(|(_, field)| wanted(field.name())).map(|(index, _)| index).collect())
    }

    /// The rows, if it asks for few that are known and for nothing that statistics of pages tell about.
    pub(super) fn picked_rows(&self, schema: &Schema) -> Option<&RowRanges> {
        let rows = self.rows.as_ref()?;
        let count: usize = rows.iter().map(ExactSizeIterator::len).sum();
        let has_time = self.time.as_ref().is_none_or(|(column, _, _)| {
            let roots = self.projection(schema);
            roots.is_none_or(|roots| schema.index_of(column).is_ok_and(|time| roots.contains(&time)))
        });
        let is_plain = self.keys.is_none() && self.ids.is_none() && self.filter.is_none();
        (is_plain && has_time && count <= MOST_PICKED).then_some(rows)
    }

    /// Only rows whose time column lies in `from..until`. Pages outside are skipped, rows outside are left out.
    #[must_use]
    pub fn within(mut self, column: &str, from: i64, until: i64) -> Self {
        self.time = Some((column.to_owned(), from, until));
        self
    }

    /// Only pages whose `column` may hold one of these keys. Keys must be sorted; rows are not filtered.
    #[must_use]
    pub fn near_keys(mut self, column: &str, sorted_keys: Arc<Vec<u64>>) -> Self {
        self.keys = Some((column.to_owned(), sorted_keys));
        self
    }

    /// Only pages whose `column` may hold ids from `least` to `greatest`; rows are not filtered.
    #[must_use]
    pub fn between_ids(mut self, column: &str, least: [u8; 16], greatest: [u8; 16]) -> Self {
        self.ids = Some((column.to_owned(), least, greatest));
        self
    }

    /// Only these rows.
    #[must_use]
    pub fn rows(mut self, rows: RowRanges) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Only rows that match a predicate over `columns`; the other columns are decoded for those rows alone.
    #[must_use]
    pub fn matching(
        mut self,
        columns: &[&str],
        matches: impl Fn(&RecordBatch) -> BooleanArray + Send + Sync + 'static,
    ) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        self.filter = Some(RowPredicate { columns, matches: Arc::new(matches) });
        self
    }

    /// These columns in dictionaries.
    #[must_use]
    pub(crate) fn coded(mut self, columns: Arc<CodedColumns>) -> Self {
        self.coded = Some(columns);
        self
    }

    /// How many rows a batch has at most.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows);
        self
    }
}

/// The parts of rows that lie in a range, counted from its start.
pub(super) fn rows_within(rows: &RowRanges, range: Range<usize>) -> RowRanges {
    let first = rows.partition_point(|rows| rows.end <= range.start);
    let inside = rows[first..].iter().take_while(|rows| rows.start < range.end);
    inside.map(|rows| rows.start.max(range.start) - range.start..rows.end.min(range.end) - range.start).collect()
}

pub(super) fn time_matches(batch: &RecordBatch, column: &str, from: i64, until: i64) -> BooleanArray {
    match batch.column_by_name(column).and_then(|times| times.as_any().downcast_ref::<TimestampNanosecondArray>()) {
        Some(times) => times.values().iter().map(|time| Some(*time >= from && *time < until)).collect(),
        None => std::iter::repeat_n(Some(false), batch.num_rows()).collect(),
    }
}

/// The same choice of rows and columns for a batch that is in memory.
pub(super) fn select_in_memory(batch: &RecordBatch, options: &ReadOptions) -> Result<RecordBatch> {
    let mut keep: Option<BooleanArray> = None;
    let mut narrow = |matches: BooleanArray| -> Result<()> {
        keep = Some(match keep.take() {
            Some(before) => arrow::compute::and(&before, &matches)?,
            None => matches,
        });
        Ok(())
    };
    if let Some(rows) = &options.rows {
        let mut wanted = vec![false; batch.num_rows()];
        for range in rows {
            let end = range.end.min(wanted.len());
            wanted[range.start.min(end)..end].fill(true);
        }
        narrow(BooleanArray::from(wanted))?;
    }
    if let Some((column, from, until)) = &options.time {
        narrow(time_matches(batch, column, *from, *until))?;
    }
    if let Some(filter) = &options.filter {
        narrow((filter.matches)(batch))?;
    }
    // Columns that are not asked for are left out before rows are copied.
    let projected = match options.projection(&batch.schema()) {
        Some(picked) if picked.is_empty() => {
            let rows = keep.map_or(batch.num_rows(), |keep| keep.true_count());
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            return Ok(RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?);
        }
        Some(picked) => batch.project(&picked)?,
        None => batch.clone(),
    };
    Ok(match keep {
        Some(keep) => filter_record_batch(&projected, &keep)?,
        None => projected,
    })
}

pub(super) fn split_batch(batch: RecordBatch, batch_rows: Option<usize>) -> Vec<RecordBatch> {
    if batch.num_rows() == 0 {
        return Vec::new();
    }
    match batch_rows {
        Some(rows) if rows > 0 && batch.num_rows() > rows => (0..batch.num_rows())
            .step_by(rows)
            .map(|start| batch.slice(start, rows.min(batch.num_rows() - start)))
            .collect(),
        _ => vec![batch],
    }
}
