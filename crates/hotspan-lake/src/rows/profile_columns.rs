//! The columns of the tables that profiles fill, while they grow.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int64Array, RecordBatch, TimestampNanosecondArray, UInt8Array, UInt32Array,
    UInt64Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use hotspan_model::attribute::write_json_object;
use hotspan_model::call_path::ContentHash;
use hotspan_model::{Attribute, Frame, Labels, Profile, ProfileId, ProfileSet, Sample, SeriesId, Value};

use super::columns::{DictionaryColumn, IdColumn, MapColumn, TextColumn};
use crate::table::{DAY, HOUR, Table};

#[derive(Debug, Default)]
pub(super) struct SampleColumns {
    pub(super) series: Vec<u64>,
    pub(super) time: Vec<i64>,
    pub(super) timed: Vec<bool>,
    pub(super) trace_id: IdColumn<16>,
    pub(super) span_id: IdColumn<8>,
    pub(super) path: Vec<u64>,
    pub(super) value: Vec<i64>,
    pub(super) thread_id: Vec<i64>,
    pub(super) thread_known: Vec<bool>,
    pub(super) thread_name: DictionaryColumn,
    pub(super) profile_id: IdColumn<16>,
    pub(super) attributes: DictionaryColumn,
}

/// Where the texts of a set's threads and attributes stand in the dictionaries of [`SampleColumns`].
pub(super) struct SampleCodes {
    pub(super) thread_names: Vec<i32>,
    pub(super) attributes: Vec<i32>,
}

#[derive(Debug, Default)]
pub(super) struct ProfileColumns {
    pub(super) profile_id: IdColumn<16>,
    pub(super) time: Vec<i64>,
    pub(super) duration: Vec<i64>,
    pub(super) service: DictionaryColumn,
    pub(super) profile_type: DictionaryColumn,
    pub(super) period: Vec<i64>,
    pub(super) samples: Vec<u32>,
    pub(super) value: Vec<i64>,
    pub(super) resource: DictionaryColumn,
    pub(super) scope: DictionaryColumn,
    pub(super) attributes: DictionaryColumn,
    pub(super) mappings: DictionaryColumn,
    pub(super) dropped_attributes_count: Vec<u32>,
    pub(super) original_payload_format: DictionaryColumn,
    pub(super) original_payload: Vec<Vec<u8>>,
    pub(super) source: DictionaryColumn,
    pub(super) labels: DictionaryColumn,
}

#[derive(Debug, Default)]
pub(super) struct SeriesColumns {
    pub(super) series: Vec<u64>,
    /// The other half of each hash: not stored, but learned by [`KnownIds`].
    pub(super) check: Vec<u64>,
    pub(super) time: Vec<i64>,
    pub(super) service: TextColumn,
    pub(super) profile_type: TextColumn,
    pub(super) labels: MapColumn,
}

#[derive(Debug, Default)]
pub(super) struct NodeColumns {
    pub(super) id: Vec<u64>,
    /// As for series.
    pub(super) check: Vec<u64>,
    pub(super) time: Vec<i64>,
    pub(super) parent: Vec<u64>,
    pub(super) frame: Vec<u64>,
    pub(super) service_id: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct FrameColumns {
    pub(super) id: Vec<u64>,
    /// As for series.
    pub(super) check: Vec<u64>,
    pub(super) time: Vec<i64>,
    pub(super) function: TextColumn,
    pub(super) system_name: TextColumn,
    pub(super) file: DictionaryColumn,
    pub(super) line: Vec<u32>,
    pub(super) column: Vec<u32>,
    pub(super) start_line: Vec<u32>,
    pub(super) mapping: DictionaryColumn,
    pub(super) build_id: DictionaryColumn,
    pub(super) address: Vec<u64>,
    pub(super) kind: Vec<u8>,
    pub(super) attributes: DictionaryColumn,
    pub(super) service_id: Vec<u64>,
}

impl SampleColumns {
    /// Makes room for this many further samples.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.series.reserve(rows);
        self.time.reserve(rows);
        self.timed.reserve(rows);
        self.trace_id.reserve(rows);
        self.span_id.reserve(rows);
        self.path.reserve(rows);
        self.value.reserve(rows);
        self.thread_id.reserve(rows);
        self.thread_known.reserve(rows);
        self.thread_name.reserve(rows);
        self.profile_id.reserve(rows);
        self.attributes.reserve(rows);
    }

    /// Adds the samples of a profile, all but their series, column by column.
    pub(super) fn extend(&mut self, samples: &[Sample], id: ProfileId, set: &ProfileSet<'_>, codes: &SampleCodes) {
        let link = |sample: &Sample| &set.links[sample.link as usize];
        let thread = |sample: &Sample| &set.threads[sample.thread as usize];
        self.time.extend(samples.iter().map(|sample| sample.time));
        self.timed.extend(samples.iter().map(|sample| sample.timed));
        self.trace_id.extend(samples.iter().map(|sample| link(sample).trace_id.0));
        self.span_id.extend(samples.iter().map(|sample| link(sample).span_id.0));
        self.path.extend(samples.iter().map(|sample| set.paths.node_id(sample.path).0));
        self.value.extend(samples.iter().map(|sample| sample.value));
        self.thread_id.extend(samples.iter().map(|sample| thread(sample).id.unwrap_or_default()));
        self.thread_known.extend(samples.iter().map(|sample| thread(sample).id.is_some()));
        let thread_name = |sample: &Sample| codes.thread_names[sample.thread as usize];
        self.thread_name.extend_codes(samples.iter().map(thread_name));
        self.profile_id.extend(std::iter::repeat_n(id.0, samples.len()));
        let attributes = |sample: &Sample| codes.attributes[sample.attributes as usize];
        self.attributes.extend_codes(samples.iter().map(attributes));
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.series.extend_from_slice(&other.series);
        self.time.extend_from_slice(&other.time);
        self.timed.extend_from_slice(&other.timed);
        self.trace_id.append(&other.trace_id);
        self.span_id.append(&other.span_id);
        self.path.extend_from_slice(&other.path);
        self.value.extend_from_slice(&other.value);
        self.thread_id.extend_from_slice(&other.thread_id);
        self.thread_known.extend_from_slice(&other.thread_known);
        self.thread_name.append(&other.thread_name);
        self.profile_id.append(&other.profile_id);
        self.attributes.append(&other.attributes);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let thread_known = NullBuffer::new(BooleanBuffer::from(self.thread_known));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.series)),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(BooleanArray::from(self.timed)),
            Arc::new(self.trace_id.finish(true)?),
            Arc::new(self.span_id.finish(true)?),
            Arc::new(UInt64Array::from(self.path)),
            Arc::new(Int64Array::from(self.value)),
            Arc::new(Int64Array::try_new(ScalarBuffer::from(self.thread_id), Some(thread_known))?),
            Arc::new(self.thread_name.finish(true)?),
            Arc::new(self.profile_id.finish(false)?),
            Arc::new(self.attributes.finish(true)?),
        ];
        RecordBatch::try_new(Table::Samples.schema(), columns)
    }
}

impl ProfileColumns {
    pub(super) fn push(&mut self, id: ProfileId, profile: &Profile<'_>, profile_type: &str) {
        let context = &profile.context;
        self.profile_id.push(&id.0);
        self.time.push(profile.time);
        self.duration.push(profile.duration);
        self.service.push(&profile.labels.service());
        self.profile_type.push(profile_type);
        self.period.push(profile.period);
        self.samples.push(u32::try_from(profile.samples.len()).unwrap_or(u32::MAX));
        self.value.push(profile.samples.iter().fold(0i64, |sum, sample| sum.saturating_add(sample.value)));
        self.resource.push(&context.resource);
        self.scope.push(&context.scope);
        self.attributes.push(&context.attributes);
        self.mappings.push(&context.mappings);
        self.dropped_attributes_count.push(context.dropped_attributes_count);
        self.original_payload_format.push(&context.original_payload_format);
        self.original_payload.push(context.original_payload.to_vec());
        self.source.push(&context.source);
        self.labels.push(&labels_json(&profile.labels));
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.profile_id.append(&other.profile_id);
        self.time.extend_from_slice(&other.time);
        self.duration.extend_from_slice(&other.duration);
        self.service.append(&other.service);
        self.profile_type.append(&other.profile_type);
        self.period.extend_from_slice(&other.period);
        self.samples.extend_from_slice(&other.samples);
        self.value.extend_from_slice(&other.value);
        self.resource.append(&other.resource);
        self.scope.append(&other.scope);
        self.attributes.append(&other.attributes);
        self.mappings.append(&other.mappings);
        self.dropped_attributes_count.extend_from_slice(&other.dropped_attributes_count);
        self.original_payload_format.append(&other.original_payload_format);
        self.original_payload.extend_from_slice(&other.original_payload);
        self.source.append(&other.source);
        self.labels.append(&other.labels);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let payloads = self.original_payload.iter().map(|payload| (!payload.is_empty()).then_some(payload.as_slice()));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.profile_id.finish(false)?),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(Int64Array::from(self.duration)),
            Arc::new(self.service.finish(false)?),
            Arc::new(self.profile_type.finish(false)?),
            Arc::new(Int64Array::from(self.period)),
            Arc::new(UInt32Array::from(self.samples)),
            Arc::new(Int64Array::from(self.value)),
            Arc::new(self.resource.finish(true)?),
            Arc::new(self.scope.finish(true)?),
            Arc::new(self.attributes.finish(true)?),
            Arc::new(self.mappings.finish(true)?),
            Arc::new(UInt32Array::from(self.dropped_attributes_count)),
            Arc::new(self.original_payload_format.finish(true)?),
            Arc::new(payloads.collect::<BinaryArray>()),
            Arc::new(self.source.finish(true)?),
            Arc::new(self.labels.finish(true)?),
        ];
        RecordBatch::try_new(Table::Profiles.schema(), columns)
    }
}

/// The labels of a profile as a whole: what one without samples is found by, since it is in no series.
fn labels_json(labels: &Labels) -> String {
    let mut json = String::new();
    let attributes: Vec<_> = labels.iter().map(|(name, value)| Attribute::new(name, Value::str(value))).collect();
    write_json_object(&attributes, &mut json);
    json
}

impl SeriesColumns {
    pub(super) fn push(&mut self, series: SeriesId, check: u64, hour: i64, labels: &Labels, profile_type: &str) {
        debug_assert_eq!(hour % HOUR, 0);
        self.series.push(series.0);
        self.check.push(check);
        self.time.push(hour);
        self.service.push(&labels.service());
        self.profile_type.push(profile_type);
        for (name, value) in labels.iter() {
            self.labels.entry(name, value);
        }
        self.labels.end_row();
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.series.extend_from_slice(&other.series);
        self.check.extend_from_slice(&other.check);
        self.time.extend_from_slice(&other.time);
        self.service.append(&other.service);
        self.profile_type.append(&other.profile_type);
        self.labels.append(&other.labels);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.series)),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(self.service.finish(false)?),
            Arc::new(self.profile_type.finish(false)?),
            Arc::new(self.labels.finish()?),
        ];
        RecordBatch::try_new(Table::Series.schema(), columns)
    }
}

impl NodeColumns {
    pub(super) fn append(&mut self, other: &Self) {
        self.id.extend_from_slice(&other.id);
        self.check.extend_from_slice(&other.check);
        self.time.extend_from_slice(&other.time);
        self.parent.extend_from_slice(&other.parent);
        self.frame.extend_from_slice(&other.frame);
        self.service_id.extend_from_slice(&other.service_id);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.id)),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(UInt64Array::from(self.parent)),
            Arc::new(UInt64Array::from(self.frame)),
            Arc::new(UInt64Array::from(self.service_id)),
        ];
        RecordBatch::try_new(Table::Nodes.schema(), columns)
    }
}

impl FrameColumns {
    pub(super) fn push(&mut self, hash: ContentHash, day: i64, service_id: u64, frame: &Frame<'_>) {
        debug_assert_eq!(day % DAY, 0);
        self.service_id.push(service_id);
        self.id.push(hash.id);
        self.check.push(hash.check);
        self.time.push(day);
        self.function.push(&frame.function);
        self.system_name.push(&frame.system_name);
        self.file.push(&frame.file);
        self.line.push(frame.line);
        self.column.push(frame.column);
        self.start_line.push(frame.start_line);
        self.mapping.push(&frame.mapping);
        self.build_id.push(&frame.build_id);
        self.address.push(frame.address);
        self.kind.push(frame.kind as u8);
        self.attributes.push(&frame.attributes);
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.id.extend_from_slice(&other.id);
        self.check.extend_from_slice(&other.check);
        self.time.extend_from_slice(&other.time);
        self.function.append(&other.function);
        self.system_name.append(&other.system_name);
        self.file.append(&other.file);
        self.line.extend_from_slice(&other.line);
        self.column.extend_from_slice(&other.column);
        self.start_line.extend_from_slice(&other.start_line);
        self.mapping.append(&other.mapping);
        self.build_id.append(&other.build_id);
        self.address.extend_from_slice(&other.address);
        self.kind.extend_from_slice(&other.kind);
        self.attributes.append(&other.attributes);
        self.service_id.extend_from_slice(&other.service_id);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.id)),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(self.function.finish(false)?),
            Arc::new(self.system_name.finish(true)?),
            Arc::new(self.file.finish(true)?),
            Arc::new(UInt32Array::from(self.line)),
            Arc::new(UInt32Array::from(self.column)),
            Arc::new(UInt32Array::from(self.start_line)),
            Arc::new(self.mapping.finish(true)?),
            Arc::new(self.build_id.finish(true)?),
            Arc::new(UInt64Array::from(self.address)),
            Arc::new(UInt8Array::from(self.kind)),
            Arc::new(self.attributes.finish(true)?),
            Arc::new(UInt64Array::from(self.service_id)),
        ];
        RecordBatch::try_new(Table::Frames.schema(), columns)
    }
}
