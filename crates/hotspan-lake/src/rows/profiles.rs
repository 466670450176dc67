//! Rows of the tables that profiles fill: `samples`, `profiles`, `series`, `nodes` and `frames`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int64Array, RecordBatch, TimestampNanosecondArray, UInt8Array, UInt32Array,
    UInt64Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use hashbrown::HashSet;
use hotspan_model::call_path::{NO_PATH, NodeIndex};
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::{Frame, Labels, Profile, ProfileId, ProfileSet, Sample, SeriesId};
use xxhash_rust::xxh3::Xxh3;

use super::columns::{DictionaryColumn, IdColumn, MapColumn, TextColumn};
use crate::table::{DAY, HOUR, Table};

/// Tells which symbols and series are durable already, so that a request need not bring them again.
pub trait KnownSymbols {
    /// Whether this node is stored in the partition of the day that starts at `day`.
    fn knows_node(&self, day: i64, node: u64) -> bool;
    /// Whether this series is stored in the partition of the hour that starts at `hour`.
    fn knows_series(&self, hour: i64, series: SeriesId) -> bool;
}

/// Profiles on their way into a segment, table by table and column by column.
#[derive(Debug, Default)]
pub struct ProfileRows {
    samples: SampleColumns,
    profiles: ProfileColumns,
    series: SeriesColumns,
    nodes: NodeColumns,
    frames: FrameColumns,
    /// Which samples belong to which profile, so that a profile that came before can be left out whole.
    ranges: Vec<ProfileRange>,
}

/// The samples of one received profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileRange {
    /// What a retried profile is known by: see [`retry_key`].
    pub(crate) key: u128,
    pub(crate) first_sample: usize,
    pub(crate) sample_count: usize,
}

#[derive(Debug, Default)]
struct SampleColumns {
    series: Vec<u64>,
    time: Vec<i64>,
    timed: Vec<bool>,
    trace_id: IdColumn<16>,
    span_id: IdColumn<8>,
    path: Vec<u64>,
    value: Vec<i64>,
    thread_id: Vec<i64>,
    thread_known: Vec<bool>,
    thread_name: DictionaryColumn,
    profile_id: IdColumn<16>,
    attributes: DictionaryColumn,
}

#[derive(Debug, Default)]
struct ProfileColumns {
    profile_id: IdColumn<16>,
    time: Vec<i64>,
    duration: Vec<i64>,
    service: DictionaryColumn,
    profile_type: DictionaryColumn,
    period: Vec<i64>,
    samples: Vec<u32>,
    value: Vec<i64>,
    resource: DictionaryColumn,
    scope: DictionaryColumn,
    attributes: DictionaryColumn,
    mappings: DictionaryColumn,
    dropped_attributes_count: Vec<u32>,
    original_payload_format: DictionaryColumn,
    original_payload: Vec<Vec<u8>>,
    source: DictionaryColumn,
}

#[derive(Debug, Default)]
struct SeriesColumns {
    series: Vec<u64>,
    check: Vec<u64>,
    time: Vec<i64>,
    service: TextColumn,
    profile_type: TextColumn,
    labels: MapColumn,
}

#[derive(Debug, Default)]
struct NodeColumns {
    id: Vec<u64>,
    check: Vec<u64>,
    time: Vec<i64>,
    parent: Vec<u64>,
    frame: Vec<u64>,
}

#[derive(Debug, Default)]
struct FrameColumns {
    id: Vec<u64>,
    check: Vec<u64>,
    time: Vec<i64>,
    function: TextColumn,
    system_name: TextColumn,
    file: DictionaryColumn,
    line: Vec<u32>,
    column: Vec<u32>,
    start_line: Vec<u32>,
    mapping: DictionaryColumn,
    build_id: DictionaryColumn,
    address: Vec<u64>,
    kind: Vec<u8>,
    attributes: DictionaryColumn,
}

impl ProfileRows {
    /// Adds everything in a set of profiles, leaving out symbols and series that are durable already.
    pub fn push(&mut self, set: &ProfileSet<'_>, known: &impl KnownSymbols) {
        let mut series_of_request = HashSet::new();
        let mut paths_by_day: Vec<(i64, Vec<bool>)> = Vec::new();
        let thread_codes: Vec<i32> =
            set.threads.iter().map(|thread| self.samples.thread_name.intern(&thread.name)).collect();
        let attribute_codes: Vec<i32> =
            set.attribute_sets.iter().map(|text| self.samples.attributes.intern(text)).collect();
        for profile in &set.profiles {
            let id = profile.id.unwrap_or_else(|| content_id(profile, set));
            let first_sample = self.samples.time.len();
            let profile_type = profile.profile_type.to_string();
            let mut series_by_label_set: Vec<Option<(SeriesId, u64, Labels)>> = vec![None; set.label_sets.len()];
            let mut last_series_hour = (u32::MAX, i64::MIN);
            for sample in &profile.samples {
                let slot = &mut series_by_label_set[sample.labels as usize];
                let (series, check, labels) = slot.get_or_insert_with(|| {
                    let labels = series_labels(profile, &set.label_sets[sample.labels as usize], &profile_type);
                    let (series, check) = labels.identity();
                    (series, check, labels)
                });
                let hour = Table::Series.partition_of(sample.time);
                if last_series_hour != (sample.labels, hour) {
                    last_series_hour = (sample.labels, hour);
                    if !known.knows_series(hour, *series) && series_of_request.insert((hour, *series)) {
                        self.series.push(*series, *check, hour, labels, &profile_type);
                    }
                }
                mark_path(&mut paths_by_day, set.paths.nodes().len(), sample);
                let thread = &set.threads[sample.thread as usize];
                let link = &set.links[sample.link as usize];
                let row = &mut self.samples;
                row.series.push(series.0);
                row.time.push(sample.time);
                row.timed.push(sample.timed);
                row.trace_id.push(&link.trace_id.0);
                row.span_id.push(&link.span_id.0);
                row.path.push(set.paths.node_id(sample.path).0);
                row.value.push(sample.value);
                row.thread_id.push(thread.id.unwrap_or_default());
                row.thread_known.push(thread.id.is_some());
                row.thread_name.push_code(thread_codes[sample.thread as usize]);
                row.profile_id.push(&id.0);
                row.attributes.push_code(attribute_codes[sample.attributes as usize]);
            }
            self.profiles.push(id, profile, &profile_type);
            let key = retry_key(&id.0, &profile.labels.service(), &profile_type);
            self.ranges.push(ProfileRange { key, first_sample, sample_count: profile.samples.len() });
        }
        for (day, used) in paths_by_day {
            self.push_symbols(set, day, &used, known);
        }
    }

    /// Adds the nodes and frames of `paths` and of all their callers that are not durable in this day yet.
    fn push_symbols(&mut self, set: &ProfileSet<'_>, day: i64, used: &[bool], known: &impl KnownSymbols) {
        let nodes = set.paths.nodes();
        let mut wanted = vec![false; nodes.len()];
        for leaf in (0..nodes.len()).filter(|index| used[*index]) {
            let mut path = leaf as NodeIndex;
            // A known or wanted node has known or wanted callers: the walk stops at the first one.
            while path != NO_PATH && !wanted[path as usize] && !known.knows_node(day, nodes[path as usize].hash.id) {
                wanted[path as usize] = true;
                path = nodes[path as usize].parent;
            }
        }
        let mut frame_done = vec![false; set.paths.frames().len()];
        for (index, node) in nodes.iter().enumerate().filter(|(index, _)| wanted[*index]) {
            self.nodes.id.push(node.hash.id);
            self.nodes.check.push(node.hash.check);
            self.nodes.time.push(day);
            self.nodes.parent.push(set.paths.node_id(nodes[index].parent).0);
            let frame_hash = set.paths.frame_hash(node.frame);
            self.nodes.frame.push(frame_hash.id);
            if !std::mem::replace(&mut frame_done[node.frame as usize], true) {
                self.frames.push(frame_hash.id, frame_hash.check, day, &set.paths.frames()[node.frame as usize]);
            }
        }
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.profiles.time.is_empty()
    }

    /// How many samples there are.
    pub fn sample_count(&self) -> usize {
        self.samples.time.len()
    }

    /// How many profiles there are.
    pub fn profile_count(&self) -> usize {
        self.profiles.time.len()
    }

    pub(crate) fn ranges(&self) -> &[ProfileRange] {
        &self.ranges
    }

    /// The nodes that these rows bring, each with the day it belongs to.
    pub(crate) fn new_nodes(&self) -> impl Iterator<Item = (i64, u64)> {
        self.nodes.time.iter().copied().zip(self.nodes.id.iter().copied())
    }

    /// The series that these rows bring, each with the hour it belongs to.
    pub(crate) fn new_series(&self) -> impl Iterator<Item = (i64, SeriesId)> {
        self.series.time.iter().copied().zip(self.series.series.iter().map(|series| SeriesId(*series)))
    }

    /// About how much memory the rows take.
    pub fn size(&self) -> usize {
        let sample = 8 + 8 + 1 + 16 + 8 + 8 + 8 + 8 + 1 + 4 + 16 + 4;
        self.samples.time.len() * sample
            + self.nodes.id.len() * 40
            + self.frames.id.len() * 48
            + self.frames.function.size()
            + self.frames.system_name.size()
            + self.frames.file.size()
            + self.series.labels.size()
            + self.profiles.time.len() * 80
            + self.profiles.resource.size()
            + self.profiles.mappings.size()
            + self.profiles.original_payload.iter().map(Vec::len).sum::<usize>()
    }

    /// Joins the profiles of another request to these.
    pub(crate) fn append(&mut self, other: &Self) {
        let base = self.samples.time.len();
        self.ranges.extend(
            other.ranges.iter().map(|range| ProfileRange { first_sample: base + range.first_sample, ..*range }),
        );
        self.samples.append(&other.samples);
        self.profiles.append(&other.profiles);
        self.series.append(&other.series);
        self.nodes.append(&other.nodes);
        self.frames.append(&other.frames);
    }

    /// One Arrow batch for each table.
    pub(crate) fn finish(self) -> Result<Vec<(Table, RecordBatch)>, ArrowError> {
        Ok(vec![
            (Table::Samples, self.samples.finish()?),
            (Table::Profiles, self.profiles.finish()?),
            (Table::Series, self.series.finish()?),
            (Table::Nodes, self.nodes.finish()?),
            (Table::Frames, self.frames.finish()?),
        ])
    }
}

/// Notes that the path of a sample is used on the sample's day.
fn mark_path(paths_by_day: &mut Vec<(i64, Vec<bool>)>, node_count: usize, sample: &Sample) {
    if sample.path == NO_PATH {
        return;
    }
    let day = Table::Nodes.partition_of(sample.time);
    // Nearly every request lies in one day, so the search is a look at the first entry.
    let at = paths_by_day.iter().position(|(other, _)| *other == day).unwrap_or_else(|| {
        paths_by_day.push((day, vec![false; node_count]));
        paths_by_day.len() - 1
    });
    paths_by_day[at].1[sample.path as usize] = true;
}

/// The labels that the samples of a profile with this label set are found by.
fn series_labels(profile: &Profile<'_>, sample_labels: &Labels, profile_type: &str) -> Labels {
    let mut labels = profile.labels.clone();
    for (name, value) in sample_labels.iter() {
        // A label of the series wins over one of the sample, as in Pyroscope.
        labels.set_default(name, value);
    }
    labels.set(PROFILE_TYPE, profile_type);
    labels
}

/// The identity of a profile that came without one: a retried request has the same content, and so the same id.
fn content_id(profile: &Profile<'_>, set: &ProfileSet<'_>) -> ProfileId {
    let mut hasher = Xxh3::new();
    hasher.update(profile.profile_type.to_string().as_bytes());
    hasher.update(&profile.labels.identity().0.0.to_le_bytes());
    for number in [profile.time, profile.duration, profile.period] {
        hasher.update(&number.to_le_bytes());
    }
    for sample in &profile.samples {
        let link = &set.links[sample.link as usize];
        hasher.update(&set.paths.node_id(sample.path).0.to_le_bytes());
        hasher.update(&sample.value.to_le_bytes());
        hasher.update(&sample.time.to_le_bytes());
        hasher.update(&link.trace_id.0);
        hasher.update(&link.span_id.0);
    }
    ProfileId(hasher.digest128().to_be_bytes())
}

/// What a retried profile is known by. One pprof file has a profile for each sample type, all with one id.
pub(crate) fn retry_key(profile_id: &[u8], service: &str, profile_type: &str) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(profile_id);
    hasher.update(&(service.len() as u64).to_le_bytes());
    hasher.update(service.as_bytes());
    hasher.update(profile_type.as_bytes());
    hasher.digest128()
}

impl SampleColumns {
    fn append(&mut self, other: &Self) {
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

    fn finish(self) -> Result<RecordBatch, ArrowError> {
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
    fn push(&mut self, id: ProfileId, profile: &Profile<'_>, profile_type: &str) {
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
    }

    fn append(&mut self, other: &Self) {
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
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
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
        ];
        RecordBatch::try_new(Table::Profiles.schema(), columns)
    }
}

impl SeriesColumns {
    fn push(&mut self, series: SeriesId, check: u64, hour: i64, labels: &Labels, profile_type: &str) {
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

    fn append(&mut self, other: &Self) {
        self.series.extend_from_slice(&other.series);
        self.check.extend_from_slice(&other.check);
        self.time.extend_from_slice(&other.time);
        self.service.append(&other.service);
        self.profile_type.append(&other.profile_type);
        self.labels.append(&other.labels);
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.series)),
            Arc::new(UInt64Array::from(self.check)),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(self.service.finish(false)?),
            Arc::new(self.profile_type.finish(false)?),
            Arc::new(self.labels.finish()?),
        ];
        RecordBatch::try_new(Table::Series.schema(), columns)
    }
}

impl NodeColumns {
    fn append(&mut self, other: &Self) {
        self.id.extend_from_slice(&other.id);
        self.check.extend_from_slice(&other.check);
        self.time.extend_from_slice(&other.time);
        self.parent.extend_from_slice(&other.parent);
        self.frame.extend_from_slice(&other.frame);
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.id)),
            Arc::new(UInt64Array::from(self.check)),
            Arc::new(TimestampNanosecondArray::from(self.time)),
            Arc::new(UInt64Array::from(self.parent)),
            Arc::new(UInt64Array::from(self.frame)),
        ];
        RecordBatch::try_new(Table::Nodes.schema(), columns)
    }
}

impl FrameColumns {
    fn push(&mut self, id: u64, check: u64, day: i64, frame: &Frame<'_>) {
        debug_assert_eq!(day % DAY, 0);
        self.id.push(id);
        self.check.push(check);
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

    fn append(&mut self, other: &Self) {
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
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.id)),
            Arc::new(UInt64Array::from(self.check)),
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
        ];
        RecordBatch::try_new(Table::Frames.schema(), columns)
    }
}
