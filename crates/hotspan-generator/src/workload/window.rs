//! Fifteen seconds of the fleet's life.

use hotspan_model::{Attribute, Span, SpanId, SpanLink, TraceId, Value};

use super::decoration::{Request, decorate};
use super::sampling::{self, GeneratedProfile};
use super::timing::{PlantedStretch, Stretch};
use super::{Workload, shape, timing};
use crate::random::{Random, Stream};
use crate::settings::WINDOW_NANOS;

/// A span, and what the generator knows about it beside what it says.
#[derive(Debug, Clone)]
pub struct GeneratedSpan<'w> {
    /// As it is sent.
    pub span: Span<'w>,
    /// Its service: an index into the fleet's services.
    pub service: u16,
    /// The thread it runs on: an index into the service's threads.
    pub thread: u8,
    /// Whether it carries the rare attribute.
    pub rare: bool,
    /// Whether a planted cause made it slow.
    pub planted_slow: bool,
    pub(super) region: usize,
    pub(super) cpu_share: f64,
    pub(super) own: Vec<Stretch>,
    pub(super) planted: Vec<PlantedStretch<'w>>,
}

/// Traces that start in a window, and profiles of it.
#[derive(Debug, Clone)]
pub struct Window<'w> {
    /// The workload it is part of.
    pub workload: &'w Workload,
    /// Its number, counted from 0.
    pub number: u32,
    /// When it starts.
    pub start: i64,
    /// Spans of the traces that start in it, trace by trace, the root first.
    pub spans: Vec<GeneratedSpan<'w>>,
    /// Profiles of it, at least one for each service that has samples.
    pub profiles: Vec<GeneratedProfile>,
}

impl<'w> Window<'w> {
    pub(super) fn new(workload: &'w Workload, number: u32) -> Self {
        let start = workload.window_start(number);
        let mut spans = Vec::new();
        let mut earlier_root = None;
        for trace in workload.traces_of(number) {
            let root = spans.len();
            add_trace(workload, trace, start, earlier_root, &mut spans);
            earlier_root = spans.get(root).map(|root: &GeneratedSpan<'_>| (root.span.trace_id, root.span.span_id));
        }
        let profiles = sampling::profiles(workload, number, start, &spans);
        Self { workload, number, start, spans, profiles }
    }

    /// When it ends; not part of it.
    pub fn end(&self) -> i64 {
        self.start + WINDOW_NANOS
    }

    /// Spans in the order in which a collector sees them: by their ends, not by trace.
    pub fn spans_by_end(&self) -> Vec<&GeneratedSpan<'w>> {
        let mut spans: Vec<_> = self.spans.iter().collect();
        spans.sort_by_key(|span| span.span.end);
        spans
    }
}

fn add_trace<'w>(
    workload: &'w Workload,
    trace: u64,
    window_start: i64,
    earlier_root: Option<(TraceId, SpanId)>,
    spans: &mut Vec<GeneratedSpan<'w>>,
) {
    let mut random = Random::of(workload.settings.seed, Stream::Trace, trace);
    let fleet = &workload.fleet;
    let trace_id = TraceId(random.id());
    let start = window_start + random.below(WINDOW_NANOS as usize) as i64;
    let drafts = shape::grow(fleet, &workload.entries, workload.settings.spans_per_trace, &mut random);
    let timings = timing::run(&drafts, start, &mut random);
    let request = Request::new(&mut random);
    let ids: Vec<SpanId> = drafts.iter().map(|_| SpanId(random.id())).collect();
    let first = spans.len();
    for (number, (draft, timing)) in drafts.iter().zip(timings).enumerate() {
        let service = &fleet.services[usize::from(draft.service)];
        let parent = draft.parent.map(|parent| &spans[first + parent]);
        let thread = match parent {
            Some(parent) if parent.service == draft.service => parent.thread,
            _ => random.below(service.threads.into()) as u8,
        };
        let parent_id = parent.map(|parent| parent.span.span_id);
        let told = decorate(fleet, draft, (timing.start, timing.end), thread, &request, &mut random);
        let mut attributes = told.attributes;
        for planted in timing.planted.iter().filter(|planted| planted.slow) {
            if let Some((key, value)) = &planted.cause.marking {
                attributes.push(Attribute::new(key, Value::str(value)));
            }
        }
        let links = match earlier_root {
            Some((trace_id, span_id)) if random.chance(0.01) => {
                let attributes = vec![Attribute::new("link.reason", Value::str("batch"))];
                vec![SpanLink { trace_id, span_id, attributes, ..SpanLink::default() }]
            }
            _ => Vec::new(),
        };
        let span = Span {
            trace_id,
            span_id: ids[number],
            parent_id,
            // Sampled, and for all but the root: known whether the parent is remote.
            flags: 1,
            name: told.name,
            kind: told.kind,
            start: timing.start,
            end: timing.end,
            attributes,
            events: told.events,
            links,
            status: told.status,
            status_message: told.status_message,
            ..Span::default()
        };
        let runs = draft.role == shape::Role::Runs;
        spans.push(GeneratedSpan {
            span,
            service: draft.service,
            thread,
            rare: told.rare,
            planted_slow: timing.planted.iter().any(|planted| planted.slow),
            region: if runs { draft.operation.region } else { crate::fleet::call_tree::BACKGROUND },
            cpu_share: if runs { draft.operation.cpu_share } else { 0.02 },
            own: timing.own,
            planted: timing.planted,
        });
    }
}
