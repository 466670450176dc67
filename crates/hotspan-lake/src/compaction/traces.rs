//! Rows of the table `traces`: for each trace in a sorted batch of spans, what search lists and prunes by.
//!
//! A trace whose spans came in several batches has several rows; readers join them by trace id.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, FixedSizeBinaryArray, Int64Builder, ListBuilder, RecordBatch, StringBuilder,
    TimestampNanosecondArray, TimestampNanosecondBuilder, UInt32Array,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field};
use hotspan_model::StatusCode;

use crate::arrays;
use crate::error::Result;
use crate::table::Table;

/// Summaries of the traces in a batch of spans that is sorted by trace.
pub(crate) fn summarise(spans: &RecordBatch) -> Result<RecordBatch> {
    let mut summaries = TraceSummaries::default();
    summaries.add(spans)?;
    summaries.finish()
}

/// Summaries under construction.
pub(crate) struct TraceSummaries {
    trace_id: Vec<u8>,
    start_time: Vec<i64>,
    end_time: Vec<i64>,
    root_service: StringBuilder,
    root_name: StringBuilder,
    root_start_time: TimestampNanosecondBuilder,
    root_duration: Int64Builder,
    spans: Vec<u32>,
    errors: Vec<u32>,
    services: ListBuilder<StringBuilder>,
}

impl Default for TraceSummaries {
    fn default() -> Self {
        let service = Field::new("item", DataType::Utf8, false);
        Self {
            trace_id: Vec::new(),
            start_time: Vec::new(),
            end_time: Vec::new(),
            root_service: StringBuilder::new(),
            root_name: StringBuilder::new(),
            root_start_time: TimestampNanosecondBuilder::new(),
            root_duration: Int64Builder::new(),
            spans: Vec::new(),
            errors: Vec::new(),
            services: ListBuilder::new(StringBuilder::new()).with_field(service),
        }
    }
}

impl TraceSummaries {
    /// Adds the traces of further spans, which are sorted by trace. A trace should not go on in the next batch.
    pub(crate) fn add(&mut self, spans: &RecordBatch) -> Result<()> {
        let trace_ids = arrays::ids(spans, "trace_id")?;
        let mut start = 0;
        while start < spans.num_rows() {
            let mut end = start + 1;
            while end < spans.num_rows() && trace_ids.value(end) == trace_ids.value(start) {
                end += 1;
            }
            self.push(spans, start..end)?;
            start = end;
        }
        Ok(())
    }

    fn push(&mut self, spans: &RecordBatch, rows: std::ops::Range<usize>) -> Result<()> {
        let trace_ids: &FixedSizeBinaryArray = arrays::ids(spans, "trace_id")?;
        let parents = arrays::ids(spans, "parent_span_id")?;
        let starts = arrays::times(spans, "start_time")?.values();
        let durations = arrays::int64s(spans, "duration")?.values();
        let statuses = arrays::int8s(spans, "status")?.values();
        let services = arrays::texts(spans, "service")?;
        let names = arrays::texts(spans, "name")?;

        self.trace_id.extend_from_slice(trace_ids.value(rows.start));
        let (mut first, mut last, mut errors) = (i64::MAX, i64::MIN, 0);
        let mut root: Option<usize> = None;
        let mut trace_services: Vec<&str> = Vec::new();
        for row in rows.clone() {
            first = first.min(starts[row]);
            last = last.max(starts[row].saturating_add(durations[row].max(0)));
            errors += u32::from(statuses[row] == StatusCode::Error.number());
            if parents.is_null(row) && root.is_none_or(|root| starts[row] < starts[root]) {
                root = Some(row);
            }
            let service = services.get(row);
            if !trace_services.contains(&service) {
                trace_services.push(service);
            }
        }
        self.start_time.push(first);
        self.end_time.push(last);
        self.root_service.append_option(root.map(|row| services.get(row)));
        self.root_name.append_option(root.map(|row| names.get(row)));
        self.root_start_time.append_option(root.map(|row| starts[row]));
        self.root_duration.append_option(root.map(|row| durations[row]));
        self.spans.push(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        self.errors.push(errors);
        trace_services.sort_unstable();
        for service in trace_services {
            self.services.values().append_value(service);
        }
        self.services.append(true);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(self.trace_id), None)?),
            Arc::new(TimestampNanosecondArray::from(self.start_time)),
            Arc::new(TimestampNanosecondArray::from(self.end_time)),
            Arc::new(self.root_service.finish()),
            Arc::new(self.root_name.finish()),
            Arc::new(self.root_start_time.finish()),
            Arc::new(self.root_duration.finish()),
            Arc::new(UInt32Array::from(self.spans)),
            Arc::new(UInt32Array::from(self.errors)),
            Arc::new(self.services.finish()),
        ];
        Ok(RecordBatch::try_new(Table::Traces.schema(), columns)?)
    }
}
