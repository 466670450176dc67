//! The pieces that make up a table in one snapshot, and how each is read.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{Field, SchemaRef};
use arrow::error::ArrowError;
use datafusion::error::Result;
use futures::{StreamExt, TryStreamExt, stream};
use hotspan_lake::compaction::attributes::{ATTRIBUTE_PREFIX, fold_attributes};
use hotspan_lake::compaction::derive_rows;
use hotspan_lake::{Lake, ReadOptions, Segment, Snapshot, Table};
use hotspan_model::TenantId;

use crate::error::lake_error;
use crate::pushdown::Narrowing;

/// Some rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    segment: Arc<Segment>,
    table: Table,
}

/// All pieces of a table that can hold the rows asked for.
pub(crate) fn pieces(snapshot: &Snapshot, tenant: &TenantId, table: Table, narrowing: &Narrowing) -> Vec<Piece> {
    // What compaction derives, it derives once: from young segments, and for hours from the first level of rollups.
    let sources: &[(Table, Option<u8>)] = match table {
        Table::Traces => &[(Table::Traces, None), (Table::Spans, Some(0))],
        Table::Rollup15s => &[(Table::Rollup15s, None), (Table::Samples, Some(0))],
        Table::Rollup1h => &[(Table::Rollup1h, None), (Table::Rollup15s, Some(1)), (Table::Samples, Some(0))],
        table => &[(table, None)],
    };
    let (from, until) = narrowing.time;
    let mut pieces = Vec::new();
    for (source, level) in sources {
        for segment in snapshot.segments(tenant, *source).iter() {
            // The row of a window is as old as the window's start, which the rows it is derived from are not.
            let derived = *source != table;
            if level.is_none_or(|level| level == segment.level) && (derived || segment.overlaps(from, until)) {
                pieces.push(Piece { segment: Arc::clone(segment), table });
            }
        }
    }
    pieces
}

/// Reads a piece; its batches have exactly the columns of `schema`.
pub(crate) async fn read(
    lake: &Lake,
    piece: &Piece,
    narrowing: &Narrowing,
    schema: &SchemaRef,
) -> Result<stream::BoxStream<'static, Result<RecordBatch>>> {
    let source = piece.segment.table;
    if source != piece.table {
        let table = piece.table;
        let stream = lake.reader().stream(&piece.segment, ReadOptions::default()).await.map_err(lake_error)?;
        let schema = Arc::clone(schema);
        return Ok(stream
            .map_err(lake_error)
            .map(move |batch| project(&derive_rows(table, &batch?).map_err(lake_error)?, &schema))
            .boxed());
    }
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if names.is_empty() {
        // `count(*)` asks for no column; the narrowest will do.
        names.push(source.time_column());
    }
    let folded = source == Table::Spans && names.iter().any(|name| name.starts_with("attributes"));
    if folded {
        names.extend(["attributes", "attributes_json"]);
    }
    if let Some((kind, _)) = &narrowing.id {
        names.push(kind.column());
    }
    let mut options = ReadOptions::columns(&names);
    if folded {
        options = options.with_prefix(ATTRIBUTE_PREFIX);
    }
    let (from, until) = narrowing.time;
    if (from, until) != (i64::MIN, i64::MAX) {
        options = options.within(source.time_column(), from, until);
    }
    let batches = match &narrowing.id {
        Some((kind, id)) => {
            let rows = lake.reader().rows_with_id(&piece.segment, *kind, id, &options).await.map_err(lake_error)?;
            stream::iter(rows.into_iter().map(Ok)).boxed()
        }
        None => lake.reader().stream(&piece.segment, options).await.map_err(lake_error)?,
    };
    let schema = Arc::clone(schema);
    Ok(batches
        .map_err(lake_error)
        .map(move |batch| {
            let batch = batch?;
            let batch = if folded { fold_attributes(&batch).map_err(lake_error)? } else { batch };
            project(&batch, &schema)
        })
        .boxed())
}

/// The columns of `schema`, in its order and with its types.
fn project(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| {
        let stored = match batch.schema_ref().index_of(field.name()) {
            Ok(index) => batch.column(index),
            // The file was written before its table had this column.
            Err(_) if field.is_nullable() => return Ok(new_null_array(field.data_type(), batch.num_rows())),
            Err(error) => return Err(error),
        };
        if stored.data_type() == field.data_type() {
            return Ok(Arc::clone(stored));
        }
        cast(stored, field.data_type())
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
