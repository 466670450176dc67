//! Tables about Hotspan itself, in the schema `hotspan`: which segments there are, and what was asked lately.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array, UInt64Array};
use datafusion::error::Result;
use hotspan_lake::{Segment, Snapshot};
use hotspan_model::TenantId;
use hotspan_query::{QueryLog, QueryRecord};

/// The schema that they are in.
pub(crate) const SYSTEM_SCHEMA: &str = "hotspan";

/// `hotspan.segments`: every live segment of a tenant.
pub(crate) fn segments(snapshot: &Snapshot, tenant: &TenantId) -> Result<RecordBatch> {
    let mut segments: Vec<&Arc<Segment>> =
        snapshot.all_segments().filter(|segment| segment.tenant == *tenant).collect();
    segments.sort_unstable_by_key(|segment| segment.id);
    let column = |values: fn(&Segment) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(segments.iter().map(|segment| values(segment))))
    };
    let time = |values: fn(&Segment) -> Option<i64>| -> ArrayRef {
        Arc::new(segments.iter().map(|segment| values(segment)).collect::<TimestampNanosecondArray>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(segments.iter().map(|segment| segment.id)))),
        ("table", Arc::new(StringArray::from_iter_values(segments.iter().map(|segment| segment.table.name())))),
        ("level", Arc::new(UInt8Array::from_iter_values(segments.iter().map(|segment| segment.level)))),
        ("partition", time(|segment| segment.partition)),
        ("path", Arc::new(StringArray::from_iter_values(segments.iter().map(|segment| &segment.path)))),
        ("offset", column(|segment| segment.range.start)),
        ("bytes", column(|segment| segment.bytes())),
        ("rows", column(|segment| segment.rows)),
        ("min_time", time(|segment| Some(segment.min_time))),
        ("max_time", time(|segment| Some(segment.max_time))),
        ("created_at", time(|segment| Some(segment.created_at))),
        ("version", Arc::new(Int64Array::from_iter_values(segments.iter().map(|segment| segment.version)))),
        ("checksum", column(|segment| segment.checksum)),
        ("index_bytes", column(|segment| segment.index.as_ref().map_or(0, |(_, bytes)| *bytes))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// `hotspan.queries`: what a tenant asked lately, the newest last.
pub(crate) fn queries(log: &QueryLog, tenant: &TenantId) -> Result<RecordBatch> {
    let records = log.of(tenant);
    let text = |values: fn(&QueryRecord) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(records.iter().map(values)))
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(UInt64Array::from_iter_values(records.iter().map(|record| record.id)))),
        ("kind", text(|record| &record.kind)),
        ("query", text(|record| &record.text)),
        (
            "started_at",
            Arc::new(TimestampNanosecondArray::from_iter_values(records.iter().map(|record| record.started_at))),
        ),
        ("duration", Arc::new(Int64Array::from_iter_values(records.iter().map(QueryRecord::duration_nanos)))),
        ("status", text(|record| record.outcome.name())),
        ("error", Arc::new(records.iter().map(|record| record.outcome.error()).collect::<StringArray>())),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
