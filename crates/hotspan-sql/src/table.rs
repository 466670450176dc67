//! A table of the lake as DataFusion sees it: the rows of one tenant in one snapshot.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, TryStreamExt, stream};
use hotspan_lake::table::map;
use hotspan_lake::{Lake, Snapshot, Table, arrays};
use hotspan_model::TenantId;

use crate::error::lake_error;
use crate::pieces::{self, Piece};
use crate::pushdown::Narrowing;

/// One table of one tenant in one snapshot (R2, R6).
#[derive(Debug)]
pub(crate) struct LakeTable {
    lake: Arc<Lake>,
    snapshot: Arc<Snapshot>,
    tenant: TenantId,
    table: Table,
}

impl LakeTable {
    pub(crate) fn new(lake: Arc<Lake>, snapshot: Arc<Snapshot>, tenant: TenantId, table: Table) -> Self {
        Self { lake, snapshot, tenant, table }
    }
}

/// The columns that tell two rows of a table of symbols apart; none where every row counts.
fn set_key(table: Table) -> Option<&'static str> {
    match table {
        Table::Series => Some("series"),
        Table::Nodes | Table::Frames => Some("id"),
        _ => None,
    }
}

/// A map as SQL shows it. Its keys are plain text, since Arrow writes no coded ones as JSON. Its values may be missing, although
/// none is: functions that take maps apart say so of what they make, whatever they are given.
fn shown_map() -> DataType {
    let entry = vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)];
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entry.into()), false)), false)
}

/// The columns that SQL shows. Symbols are stored for each service that has them, and shown once: which service a row
/// was read from means nothing.
fn shown_columns(table: Table) -> SchemaRef {
    let schema = table.schema();
    let is_shown = |name: &str| !(matches!(table, Table::Nodes | Table::Frames) && name == "service_id");
    let shown = schema.fields().iter().filter(|field| is_shown(field.name())).map(|field| {
        let is_map = *field.data_type() == map();
        if is_map { Arc::new(field.as_ref().clone().with_data_type(shown_map())) } else { Arc::clone(field) }
    });
    Arc::new(arrow::datatypes::Schema::new(shown.collect::<Vec<_>>()))
}

#[async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        shown_columns(self.table)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema().project(columns)?),
            None => self.schema(),
        };
        let narrowing = Narrowing::of(self.table, filters);
        let pieces = pieces::pieces(&self.snapshot, &self.tenant, self.table, &narrowing);
        // A set is told apart in one place; rows that all count are read side by side.
        let partitions = if set_key(self.table).is_some() { 1 } else { state.config().target_partitions().max(1) };
        let share = pieces.len().div_ceil(partitions).max(1);
        let mut parts: Vec<Arc<dyn PartitionStream>> = Vec::new();
        for pieces in pieces.chunks(share) {
            parts.push(Arc::new(LakePartition {
                lake: Arc::clone(&self.lake),
                table: self.table,
                pieces: pieces.to_vec(),
                narrowing: narrowing.clone(),
                schema: Arc::clone(&schema),
            }));
        }
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, [], false, None)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match Narrowing::understands(self.table, filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }
}

/// Some pieces of a table, read one after another.
#[derive(Debug)]
struct LakePartition {
    lake: Arc<Lake>,
    table: Table,
    pieces: Vec<Piece>,
    narrowing: Narrowing,
    schema: SchemaRef,
}

impl PartitionStream for LakePartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (lake, narrowing) = (Arc::clone(&self.lake), self.narrowing.clone());
        let wanted = Arc::clone(&self.schema);
        let Some(key) = set_key(self.table) else {
            let batches = read_pieces(lake, self.pieces.clone(), narrowing, wanted);
            return Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches));
        };
        // The key is read whether asked for or not.
        let key_schema = with_columns(&self.schema, &self.table.schema(), &[key, self.table.time_column()]);
        let columns = self.schema.fields().len();
        let mut distinct = Distinct { key, time: self.table.time_column(), ..Distinct::default() };
        let batches = read_pieces(lake, self.pieces.clone(), narrowing, key_schema).map(move |batch| {
            let batch = distinct.first_of_each(&batch?)?;
            Ok(batch.project(&(0..columns).collect::<Vec<_>>())?)
        });
        Box::pin(RecordBatchStreamAdapter::new(wanted, batches))
    }
}

fn read_pieces(
    lake: Arc<Lake>,
    pieces: Vec<Piece>,
    narrowing: Narrowing,
    schema: SchemaRef,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    stream::iter(pieces)
        .then(move |piece| {
            let (lake, narrowing, schema) = (Arc::clone(&lake), narrowing.clone(), Arc::clone(&schema));
            async move { pieces::read(&lake, &piece, &narrowing, &schema).await }
        })
        .try_flatten()
}

fn with_columns(schema: &SchemaRef, whole: &SchemaRef, names: &[&str]) -> SchemaRef {
    let mut fields = schema.fields().to_vec();
    for name in names {
        if let (None, Some((_, field))) = (schema.column_with_name(name), whole.fields().find(name)) {
            fields.push(Arc::clone(field));
        }
    }
    Arc::new(arrow::datatypes::Schema::new(fields))
}

/// Keeps the first row of each key and partition: symbols that stand in several files mean the same.
#[derive(Debug, Default)]
struct Distinct {
    key: &'static str,
    time: &'static str,
    seen: std::collections::HashSet<(u64, i64)>,
}

impl Distinct {
    fn first_of_each(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = arrays::uint64s(batch, self.key).map_err(lake_error)?.values();
        let times = arrays::times(batch, self.time).map_err(lake_error)?.values();
        let first: BooleanArray = keys.iter().zip(times).map(|key| Some(self.seen.insert((*key.0, *key.1)))).collect();
        Ok(filter_record_batch(batch, &first)?)
    }
}
