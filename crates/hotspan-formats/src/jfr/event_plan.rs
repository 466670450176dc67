//! For each type of event that matters: which of its fields mean what.

use hashbrown::HashMap;

use super::chunk::{Chunk, Event};
use super::cursor::JfrString;
use super::layout::{Class, FieldLayout, Layouts, Shape, SkipBudget};
use crate::file_error::Result;

/// Events that are read; all others are skipped unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EventKind {
    ExecutionSample,
    CpuTimeSample,
    NativeMethodSample,
    WallClockSample,
    AllocationInNewTlab,
    AllocationOutsideTlab,
    AllocationSample,
    MonitorEnter,
    ThreadPark,
    LiveObject,
    OldObjectSample,
    Malloc,
    Free,
    NativeLock,
    MethodTrace,
    Span,
    ActiveSetting,
}

impl EventKind {
    fn of(class: &str) -> Option<Self> {
        Some(match class {
            "jdk.ExecutionSample" => Self::ExecutionSample,
            "jdk.CPUTimeSample" => Self::CpuTimeSample,
            "jdk.NativeMethodSample" => Self::NativeMethodSample,
            "profiler.WallClockSample" => Self::WallClockSample,
            "jdk.ObjectAllocationInNewTLAB" => Self::AllocationInNewTlab,
            "jdk.ObjectAllocationOutsideTLAB" => Self::AllocationOutsideTlab,
            "jdk.ObjectAllocationSample" => Self::AllocationSample,
            "jdk.JavaMonitorEnter" => Self::MonitorEnter,
            "jdk.ThreadPark" => Self::ThreadPark,
            "profiler.LiveObject" => Self::LiveObject,
            "jdk.OldObjectSample" => Self::OldObjectSample,
            "profiler.Malloc" => Self::Malloc,
            "profiler.Free" => Self::Free,
            "profiler.NativeLock" => Self::NativeLock,
            "jdk.MethodTrace" => Self::MethodTrace,
            "profiler.Span" => Self::Span,
            "jdk.ActiveSetting" => Self::ActiveSetting,
            _ => return None,
        })
    }
}

/// What a field is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    StartTime,
    Duration,
    Thread,
    StackTrace,
    State,
    Samples,
    Size,
    TlabSize,
    Weight,
    Address,
    SamplingPeriod,
    Class,
    Object,
    Method,
    ContextId,
    SpanId,
    SpanName,
    TraceHigh,
    TraceLow,
    SettingOf,
    Name,
    Value,
    Tag,
}

/// The values of one event; fields that it lacks are zero.
#[derive(Debug, Default)]
pub(super) struct EventValues<'c> {
    pub(super) start: i64,
    pub(super) duration: i64,
    pub(super) thread: u64,
    pub(super) stack_trace: u64,
    pub(super) state: u64,
    pub(super) samples: i64,
    pub(super) size: i64,
    pub(super) tlab_size: i64,
    pub(super) weight: i64,
    pub(super) address: u64,
    pub(super) sampling_period: i64,
    pub(super) class: u64,
    pub(super) object: u64,
    pub(super) method: u64,
    pub(super) context: u64,
    pub(super) span: u64,
    pub(super) span_name: u64,
    pub(super) trace_high: u64,
    pub(super) trace_low: u64,
    pub(super) setting_of: u64,
    pub(super) name: Option<JfrString<'c>>,
    pub(super) value: Option<JfrString<'c>>,
    pub(super) tag: Option<JfrString<'c>>,
}

#[derive(Debug)]
enum Step {
    Number(Role, u64),
    Text(Role),
    /// A string that stands in the constant pool.
    TextConstant(Role),
    Skip(FieldLayout),
}

/// How to read the events of a chunk.
#[derive(Debug, Default)]
pub(super) struct Plan {
    kinds: HashMap<u64, (EventKind, Vec<Step>)>,
}

impl Plan {
    pub(super) fn new(layouts: &Layouts) -> Self {
        let mut plan = Self::default();
        for (id, class) in layouts.iter() {
            if let Some(kind) = EventKind::of(&class.name) {
                plan.kinds.insert(id, (kind, steps(class, layouts)));
            }
        }
        plan
    }

    /// What kind of event this type is; none if it does not matter.
    #[inline]
    pub(super) fn kind(&self, class: u64) -> Option<EventKind> {
        self.kinds.get(&class).map(|(kind, _)| *kind)
    }

    /// Reads an event whose kind matters.
    pub(super) fn read<'c>(
        &self,
        chunk: &Chunk<'c>,
        event: Event<'c>,
        budget: &mut SkipBudget,
    ) -> Result<EventValues<'c>> {
        let mut values = EventValues::default();
        let mut cursor = event.content;
        let Some((_, steps)) = self.kinds.get(&event.class) else { return Ok(values) };
        for step in steps {
            match step {
                Step::Number(role, width) => values.set_number(*role, cursor.number(*width)?),
                Step::Text(role) => values.set_text(*role, cursor.string()?),
                Step::TextConstant(role) => values.set_text(*role, JfrString::Constant(cursor.long()?)),
                Step::Skip(field) => chunk.layouts.skip_field(field, &mut cursor, budget)?,
            }
        }
        Ok(values)
    }
}

fn steps(class: &Class, layouts: &Layouts) -> Vec<Step> {
    class.fields.iter().map(|field| step(field, layouts)).collect()
}

fn step(field: &FieldLayout, layouts: &Layouts) -> Step {
    let shape = layouts.class(field.class).map(|class| class.shape);
    match (role_of(&field.name), shape, field.constant) {
        _ if field.array => Step::Skip(field.clone()),
        (Some(role), Some(Shape::Text), false) => Step::Text(role),
        (Some(role), Some(Shape::Text), true) => Step::TextConstant(role),
        (Some(role), _, true) => Step::Number(role, 8),
        (Some(role), Some(Shape::Number(width)), false) => Step::Number(role, width),
        _ => Step::Skip(field.clone()),
    }
}

fn role_of(name: &str) -> Option<Role> {
    Some(match name {
        "startTime" => Role::StartTime,
        "duration" => Role::Duration,
        "sampledThread" | "eventThread" => Role::Thread,
        "stackTrace" => Role::StackTrace,
        "state" => Role::State,
        "samples" => Role::Samples,
        "allocationSize" | "objectSize" | "size" => Role::Size,
        "tlabSize" => Role::TlabSize,
        "weight" => Role::Weight,
        "address" => Role::Address,
        "samplingPeriod" => Role::SamplingPeriod,
        "objectClass" | "monitorClass" | "parkedClass" => Role::Class,
        "object" => Role::Object,
        "method" => Role::Method,
        "contextId" => Role::ContextId,
        "spanId" => Role::SpanId,
        "spanName" => Role::SpanName,
        "traceIdHi" | "traceIdHigh" => Role::TraceHigh,
        "traceIdLo" | "traceIdLow" => Role::TraceLow,
        "id" => Role::SettingOf,
        "name" => Role::Name,
        "value" => Role::Value,
        "tag" => Role::Tag,
        _ => return None,
    })
}

impl<'c> EventValues<'c> {
    #[inline]
    fn set_number(&mut self, role: Role, number: u64) {
        match role {
            Role::StartTime => self.start = number as i64,
            Role::Duration => self.duration = number as i64,
            Role::Thread => self.thread = number,
            Role::StackTrace => self.stack_trace = number,
            Role::State => self.state = number,
            Role::Samples => self.samples = number as i64,
            Role::Size => self.size = number as i64,
            Role::TlabSize => self.tlab_size = number as i64,
            Role::Weight => self.weight = number as i64,
            Role::Address => self.address = number,
            Role::SamplingPeriod => self.sampling_period = number as i64,
            Role::Class => self.class = number,
            Role::Object => self.object = number,
            Role::Method => self.method = number,
            Role::ContextId => self.context = number,
            Role::SpanId => self.span = number,
            Role::SpanName => self.span_name = number,
            Role::TraceHigh => self.trace_high = number,
            Role::TraceLow => self.trace_low = number,
            Role::SettingOf => self.setting_of = number,
            Role::Name | Role::Value | Role::Tag => {}
        }
    }

    fn set_text(&mut self, role: Role, text: JfrString<'c>) {
        match role {
            Role::Name => self.name = Some(text),
            Role::Value => self.value = Some(text),
            Role::Tag => self.tag = Some(text),
            _ => {}
        }
    }
}
