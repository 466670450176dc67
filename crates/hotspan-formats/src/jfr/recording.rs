//! Events become samples.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::attribute::write_json_string;
use hotspan_model::call_path::PathIndex;
use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::{ProfileContext, Thread};
use hotspan_model::{Labels, Link, Profile, ProfileSet, Sample, SpanId, TraceId};

use super::FORMAT;
use super::chunk::{Chunk, Event};
use super::constants::{Pool, Pools, StackFrame};
use super::event_plan::{EventKind, EventValues, Plan};
use super::frame::read_frame;
use super::labels_snapshot::LabelsSnapshot;
use super::layout::SkipBudget;
use super::native_memory::{EVENT_BYTES, KeptMemory, NativeMemory};
use super::profile_kinds::Column;
use super::settings::Settings;
use super::span_join::{FarSpans, SpanJoin, Tag};
use crate::decode_options::{DecodeOptions, filled};
use crate::file_error::{FileError, Result};
use crate::leaf_side::LeafSide;
use crate::set_builder::SetBuilder;

/// A recording that is being read, chunk by chunk.
#[derive(Debug)]
pub(super) struct Recording<'o> {
    options: &'o DecodeOptions,
    snapshot: &'o LabelsSnapshot,
    builder: SetBuilder<'static>,
    columns: Vec<Vec<Sample>>,
    series: Labels,
    default_link: Link,
    carried: Carried,
    spans: SpanJoin,
    time: i64,
    end: i64,
    stack: Vec<StackFrame>,
    leaf_side: LeafSide,
}

/// What a chunk leaves to those that follow, where each gives a set of its own.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Settings stand in the first chunk alone.
    pub(super) settings: Settings,
    pub(super) native_memory: NativeMemory,
    pub(super) far_spans: FarSpans,
    /// When the recording starts and ends, in nanoseconds since 1970.
    pub(super) time_range: (i64, i64),
}

/// What has been resolved of the constants of one chunk; keys mean something else in the next one.
#[derive(Debug, Default)]
struct Resolved {
    /// Paths by stack trace, and by the method that goes on top of it.
    stacks: HashMap<(u64, u64), PathIndex>,
    threads: HashMap<u64, u32>,
    asleep: HashMap<u64, bool>,
    frames: HashMap<StackFrame, FrameIndex>,
    classes: HashMap<u64, u32>,
    /// The correlation of the event before, since neighbours mostly share it.
    last_correlation: Option<([u64; 5], (u32, u32))>,
}

/// A chunk with what was found out about it.
struct Opened<'k, 'c> {
    chunk: &'k Chunk<'c>,
    pools: Pools,
    budget: SkipBudget,
    resolved: Resolved,
    /// Whether the JDK sampled CPU time, which newer versions do beside sampling what runs.
    has_cpu_time: bool,
}

impl<'o> Recording<'o> {
    /// Starts a recording, or goes on with one.
    pub(super) fn new(options: &'o DecodeOptions, snapshot: &'o LabelsSnapshot, carried: Carried) -> Self {
        let (series, default_link) = options.series();
        Self {
            options,
            snapshot,
            builder: SetBuilder::new(FORMAT, options),
            columns: Column::ALL.iter().map(|_| Vec::new()).collect(),
            series,
            default_link,
            carried,
            spans: SpanJoin::default(),
            time: 0,
            end: 0,
            stack: Vec::new(),
            leaf_side: LeafSide::new(options.limits.max_stack_depth),
        }
    }

    /// Adds the events of a chunk.
    pub(super) fn add_chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let mut budget = SkipBudget::for_chunk(chunk.len());
        let plan = Plan::new(&chunk.layouts);
        let pools = Pools::scan(chunk, self.options.max_symbols(), &mut budget)?;
        let (time, duration) = chunk.time_range();
        if self.time == 0 {
            self.time = time;
        }
        self.end = self.end.max(time.saturating_add(duration.max(0)));
        let mut opened = Opened { chunk, pools, budget, resolved: Resolved::default(), has_cpu_time: false };
        self.look_ahead(&mut opened, &plan)?;
        for event in chunk.events() {
            let event = event?;
            if let Some(kind) = plan.kind(event.class) {
                self.add_event(&mut opened, &plan, kind, event)?;
            }
        }
        self.carried.native_memory.settle();
        let (start, end) = &mut self.carried.time_range;
        *start = if *start == 0 { time } else { *start };
        *end = (*end).max(self.end);
        Ok(())
    }

    /// Settings come first whatever their place: they say what a sample is worth. So does which samplers ran.
    fn look_ahead(&mut self, opened: &mut Opened<'_, '_>, plan: &Plan) -> Result<()> {
        for event in opened.chunk.events() {
            let event = event?;
            let kind = plan.kind(event.class);
            opened.has_cpu_time |= kind == Some(EventKind::CpuTimeSample);
            if kind != Some(EventKind::ActiveSetting) {
                continue;
            }
            let values = plan.read(opened.chunk, event, &mut opened.budget)?;
            let (Some(name), Some(value)) = (values.name, values.value) else { continue };
            let name = opened.pools.text(opened.chunk, name)?;
            let value = opened.pools.text(opened.chunk, value)?;
            let of = opened.chunk.layouts.class(values.setting_of).map_or("", |class| class.name.as_str());
            self.carried.settings.set(of, &name, &value);
        }
        Ok(())
    }

    fn add_event<'c>(
        &mut self,
        opened: &mut Opened<'_, 'c>,
        plan: &Plan,
        kind: EventKind,
        event: Event<'c>,
    ) -> Result<()> {
        let offset = event.content.offset();
        let chunk = opened.chunk;
        let values = plan.read(chunk, event, &mut opened.budget)?;
        if kind == EventKind::ActiveSetting {
            return Ok(());
        }
        let time = chunk.nanoseconds_at(values.start);
        let thread = self.thread(opened, values.thread)?;
        let duration = chunk.nanoseconds(values.duration).max(0);
        match kind {
            EventKind::Span => return self.add_span(opened, values, thread, time, duration, offset),
            EventKind::Free => {
                self.builder.take(EVENT_BYTES, offset)?;
                self.carried.native_memory.given_back(values.address, time);
                return Ok(());
            }
            _ => {}
        }
        let path = self.path(opened, values.stack_trace, values.method)?;
        let (link, labels) = self.correlation(opened, &values);
        let class = match values.object {
            0 => values.class,
            object => opened.pools.object_class(opened.chunk, object, &mut opened.budget)?,
        };
        let attributes = self.class_attribute(opened, class)?;
        self.builder.check_room(offset)?;
        let sample = Sample { path, value: 0, time, timed: true, link, thread, labels, attributes };
        let rate = self.options.sample_rate;
        match kind {
            EventKind::ExecutionSample if self.carried.settings.counts_events() => {
                self.push(Column::Counted, sample, self.carried.settings.interval.max(1), offset)?;
            }
            EventKind::ExecutionSample => {
                let value = self.carried.settings.execution_interval(rate);
                if !self.is_asleep(opened, values.state)? {
                    // Both samplers see the same time: only the one that measures it counts it as CPU time.
                    let column = if opened.has_cpu_time { Column::Execution } else { Column::Cpu };
                    self.push(column, sample, value, offset)?;
                }
                if self.carried.settings.is_wall() {
                    self.push(Column::Wall, sample, value, offset)?;
                }
            }
            EventKind::CpuTimeSample => {
                let period = chunk.nanoseconds(values.sampling_period);
                let value = if period > 0 { period } else { self.carried.settings.execution_interval(rate) };
                self.push(Column::Cpu, sample, value, offset)?;
            }
            EventKind::WallClockSample => {
                let interval = self.carried.settings.wall_clock_interval(rate);
                let value = values.samples.max(1).saturating_mul(interval);
                self.push(Column::Wall, sample, value, offset)?;
                // Beside a sampler of CPU time, counting running threads as well would count them twice.
                let only_wall = self.carried.settings.is_wall() || self.carried.settings.event.is_empty();
                if only_wall && !self.is_asleep(opened, values.state)? {
                    self.push(Column::Cpu, sample, value, offset)?;
                }
            }
            EventKind::NativeMethodSample => {
                let value = self.carried.settings.native_interval;
                self.push(Column::Native, sample, if value > 0 { value } else { 20_000_000 }, offset)?;
            }
            EventKind::AllocationInNewTlab => {
                self.push(Column::AllocInNewTlabObjects, sample, 1, offset)?;
                self.push(Column::AllocInNewTlabBytes, sample, values.tlab_size, offset)?;
            }
            EventKind::AllocationOutsideTlab => {
                self.push(Column::AllocOutsideTlabObjects, sample, 1, offset)?;
                self.push(Column::AllocOutsideTlabBytes, sample, values.size, offset)?;
            }
            EventKind::AllocationSample => {
                self.push(Column::AllocSampleObjects, sample, 1, offset)?;
                self.push(Column::AllocSampleBytes, sample, values.weight, offset)?;
            }
            EventKind::MonitorEnter => {
                self.push(Column::MutexContentions, sample, 1, offset)?;
                self.push(Column::MutexDelay, sample, duration, offset)?;
            }
            EventKind::ThreadPark => {
                self.push(Column::BlockContentions, sample, 1, offset)?;
                self.push(Column::BlockDelay, sample, duration, offset)?;
            }
            // The JDK did not always say how large an object is (17 does not).
            EventKind::LiveObject | EventKind::OldObjectSample => {
                self.push(Column::Live, sample, 1, offset)?;
                self.push(Column::LiveBytes, sample, values.size, offset)?;
            }
            EventKind::Malloc => {
                self.push(Column::MallocObjects, sample, 1, offset)?;
                self.push(Column::MallocBytes, sample, values.size, offset)?;
                self.builder.take(EVENT_BYTES, offset)?;
                self.carried.native_memory.taken(values.address, sample, values.size.max(0));
            }
            EventKind::NativeLock => {
                self.push(Column::NativeLockContentions, sample, 1, offset)?;
                self.push(Column::NativeLockDelay, sample, duration, offset)?;
            }
            EventKind::MethodTrace => self.push(Column::MethodTrace, sample, duration, offset)?,
            EventKind::Span | EventKind::Free | EventKind::ActiveSetting => {}
        }
        Ok(())
    }

    fn push(&mut self, column: Column, sample: Sample, value: i64, offset: usize) -> Result<()> {
        if value <= 0 {
            return Ok(());
        }
        self.builder.take_sample(offset)?;
        self.columns[column as usize].push(Sample { value, ..sample });
        Ok(())
    }

    fn add_span(
        &mut self,
        opened: &Opened<'_, '_>,
        values: EventValues<'_>,
        thread: u32,
        time: i64,
        duration: i64,
        offset: usize,
    ) -> Result<()> {
        let text = match values.tag {
            Some(tag) => opened.pools.text(opened.chunk, tag)?.into_owned(),
            None => String::new(),
        };
        // Each is kept with its tag, and may be told of in a list of its own.
        self.builder.take(64 + 2 * text.len(), offset)?;
        let Some(tag) = Tag::read(&text) else { return Ok(()) };
        let end = time.saturating_add(duration);
        if time < opened.chunk.time_range().0 {
            let named = &self.builder.set.threads[thread as usize];
            let most = self.options.limits.max_decoded_bytes;
            if self.carried.far_spans.add(named, (time, end), &tag) > most {
                return Err(FileError::too_large(FORMAT, offset, "bytes of spans across chunks", most as u64));
            }
        }
        self.spans.add(thread, time, end, tag);
        Ok(())
    }

    fn thread(&mut self, opened: &mut Opened<'_, '_>, key: u64) -> Result<u32> {
        if let Some(thread) = opened.resolved.threads.get(&key) {
            return Ok(*thread);
        }
        let constant = opened.pools.thread(opened.chunk, key, &mut opened.budget)?;
        // Java's number is the one that spans carry as `thread.id`; native threads have only the system's.
        let id = if constant.java_id > 0 { constant.java_id } else { constant.os_id };
        let name = if constant.java_name.is_empty() { constant.os_name } else { constant.java_name };
        let thread = self.builder.thread(Thread { id: (id != 0).then_some(id), name: Cow::Owned(name) });
        opened.resolved.threads.insert(key, thread);
        Ok(thread)
    }

    fn is_asleep(&self, opened: &mut Opened<'_, '_>, state: u64) -> Result<bool> {
        if let Some(asleep) = opened.resolved.asleep.get(&state) {
            return Ok(*asleep);
        }
        let asleep = opened.pools.name(opened.chunk, Pool::ThreadState, state, &mut opened.budget)? == "STATE_SLEEPING";
        opened.resolved.asleep.insert(state, asleep);
        Ok(asleep)
    }

    /// The path of a stack trace. The JDK tells a method that it traces beside the stack that called it.
    fn path(&mut self, opened: &mut Opened<'_, '_>, key: u64, method: u64) -> Result<PathIndex> {
        if let Some(path) = opened.resolved.stacks.get(&(key, method)) {
            return Ok(*path);
        }
        let mut stack = std::mem::take(&mut self.stack);
        let depth = self.options.limits.max_stack_depth;
        let (cut, was_cut) = opened.pools.stack_trace(opened.chunk, key, (&mut stack, depth), &mut opened.budget)?;
        if method != 0 {
            let kind = stack.first().map_or(0, |caller| caller.kind);
            stack.insert(0, StackFrame { method, line: 0, kind });
        }
        self.leaf_side.clear();
        self.leaf_side.skip(cut);
        if was_cut {
            self.leaf_side.lacks_callers();
        }
        for frame in &stack {
            let index = match opened.resolved.frames.get(frame) {
                Some(index) => *index,
                None => {
                    let resolved = read_frame(opened.chunk, &opened.pools, *frame, &mut opened.budget)?;
                    // Many methods may share one long class, of whose name each frame has a copy.
                    self.builder
                        .take_symbol(resolved.function.len() + resolved.mapping.len(), opened.chunk.offset())?;
                    let index = self.builder.set.paths.frame(resolved);
                    opened.resolved.frames.insert(*frame, index);
                    index
                }
            };
            self.leaf_side.push(index);
        }
        self.stack = stack;
        let path = self.leaf_side.path_in(&mut self.builder.set);
        opened.resolved.stacks.insert((key, method), path);
        Ok(path)
    }

    /// Span and labels that the Pyroscope agent's fields name: indexes of the link and of the label set.
    fn correlation(&mut self, opened: &mut Opened<'_, '_>, values: &EventValues<'_>) -> (u32, u32) {
        let key = [values.context, values.span, values.span_name, values.trace_high, values.trace_low];
        if let Some((last, known)) = opened.resolved.last_correlation
            && last == key
        {
            return known;
        }
        let (mut labels, context_link) = self.snapshot.context(values.context).cloned().unwrap_or_default();
        if values.span_name != 0
            && let Some(name) = self.snapshot.string(values.span_name)
        {
            labels.set("span_name", name);
        }
        let trace = u128::from(values.trace_high) << 64 | u128::from(values.trace_low);
        let own = Link { trace_id: TraceId(trace.to_be_bytes()), span_id: SpanId(values.span.to_be_bytes()) };
        let link = filled(filled(own, context_link), self.default_link);
        let known = (self.builder.link(link), self.builder.labels(labels));
        opened.resolved.last_correlation = Some((key, known));
        known
    }

    fn class_attribute(&mut self, opened: &mut Opened<'_, '_>, key: u64) -> Result<u32> {
        if key == 0 {
            return Ok(0);
        }
        if let Some(attributes) = opened.resolved.classes.get(&key) {
            return Ok(*attributes);
        }
        let name = opened.pools.class_name(opened.chunk, key, &mut opened.budget)?;
        let mut json = String::new();
        if !name.is_empty() {
            json.push_str("{\"jfr.class\":");
            write_json_string(self.builder.kept_text(&name), &mut json);
            json.push('}');
        }
        let attributes = self.builder.attributes(json);
        opened.resolved.classes.insert(key, attributes);
        Ok(attributes)
    }

    /// The profiles of everything that was added, what is in use at the end among them.
    pub(super) fn finish(mut self) -> Result<ProfileSet<'static>> {
        self.add_memory_in_use();
        self.spans.apply(self.columns.iter_mut().flatten(), &mut self.builder);
        Ok(self.into_profiles(true)?.0)
    }

    /// The profiles of a chunk, and what it leaves to those that follow. What is in use is told at the end alone.
    pub(super) fn finish_chunk(
        mut self,
        kept: &mut KeptMemory,
        offset: usize,
    ) -> Result<(ProfileSet<'static>, Carried)> {
        self.carried.far_spans.join((self.time, self.end), &self.builder, &mut self.spans);
        let samples = self.columns.iter_mut().flatten();
        self.spans.apply(samples.chain(self.carried.native_memory.new_samples()), &mut self.builder);
        self.builder.check_room(offset)?;
        self.carried.native_memory.keep(&self.builder.set, kept, offset)?;
        self.into_profiles(true)
    }

    /// The profiles of what was in use after the last chunk, if anything was.
    pub(super) fn finish_memory(mut self, kept: KeptMemory) -> Result<Option<ProfileSet<'static>>> {
        self.builder = kept.tables;
        (self.time, self.end) = self.carried.time_range;
        self.add_memory_in_use();
        let (set, _) = self.into_profiles(false)?;
        Ok((!set.profiles.is_empty()).then_some(set))
    }

    fn add_memory_in_use(&mut self) {
        for (sample, size) in self.carried.native_memory.in_use() {
            self.columns[Column::MallocInuseObjects as usize].push(Sample { value: 1, ..sample });
            self.columns[Column::MallocInuseBytes as usize].push(Sample { value: size, ..sample });
        }
    }

    /// The profiles of what was added; with one of each sampler that ran, if this is what samplers were running for.
    fn into_profiles(mut self, has_sampler: bool) -> Result<(ProfileSet<'static>, Carried)> {
        let settings = &self.carried.settings;
        let (time, duration) = self.options.time_range(self.time, self.end.saturating_sub(self.time));
        for (column, samples) in Column::ALL.into_iter().zip(self.columns) {
            // What slept all the time was profiled all the same.
            if samples.is_empty() && !(has_sampler && column.is_sampled(settings)) {
                continue;
            }
            let mut labels = self.series.clone();
            let by_sampler = matches!(column, Column::Cpu | Column::Wall | Column::Counted);
            if by_sampler && !settings.event.is_empty() {
                labels.set_default("jfr_event", settings.event.as_str());
            }
            self.builder.set.profiles.push(Profile {
                id: None,
                profile_type: column.profile_type(settings),
                labels,
                time,
                duration,
                period: if by_sampler { settings.execution_interval(self.options.sample_rate) } else { 0 },
                context: ProfileContext { source: Cow::Borrowed(FORMAT), ..ProfileContext::default() },
                samples,
            });
        }
        Ok((self.builder.finish()?, self.carried))
    }
}
