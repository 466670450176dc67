//! Requests, read whole: the spans below those that were chosen, their samples, and the names of their functions.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::Snapshot;
use hotspan_model::labels::{PROFILE_TYPE, SERVICE_NAME};
use hotspan_model::{Labels, ProfileType, SpanId, SpanKind, StatusCode, TenantId, TraceId};
use hotspan_query::outline::{by_trace, children_of};
use hotspan_query::{
    CallPaths, CohortSpan, Engine, LinkedQuery, LinkedSample, Matcher, PathFrame, Result, Selector, SpanKey,
    SpanOutline,
};

use super::ExplainQuery;
use super::attributes::{ResourceTable, Resources};
use super::cohorts::Chosen;
use crate::request::{Measure, Request, RequestSample, RequestSpan};
use crate::vocabulary::{EMPTY_STACK, FrameId, StackId, TextId, Vocabulary};

/// Spans of one request that are looked at (R5).
const MOST_SPANS: usize = 10_000;
/// Calls inside calls that are followed.
const MOST_DEPTH: usize = 100;
/// Samples that are looked at in all (R5).
const MOST_SAMPLES: usize = 6_000_000;
/// A profile without times of its own may begin long before the spans that it holds samples of, and end after them.
const REACH: i64 = 3600 * 1_000_000_000;
/// Profile types that measure time which spans can be made of.
const TIME_TYPES: &str = r#"{__profile_type__=~"(process_cpu:cpu|wall:wall|off_cpu:off_cpu|lock:lock|mutex:delay|block:delay|span_parked:span_parked):nanoseconds:.*"}"#;

/// What a profile type measures, as far as it is time.
pub fn measure_of(profile_type: &ProfileType) -> Option<Measure> {
    if profile_type.sample_unit != "nanoseconds" {
        return None;
    }
    match (profile_type.name.as_str(), profile_type.sample_type.as_str()) {
        (_, "cpu") => Some(Measure::Cpu),
        (_, "wall") => Some(Measure::Wall),
        (_, "off_cpu") => Some(Measure::OffCpu),
        ("lock", "lock") | ("mutex" | "block", "delay") => Some(Measure::Lock),
        (_, "span_parked") => Some(Measure::Parked),
        _ => None,
    }
}

/// Requests of both sides.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) vocabulary: Vocabulary,
    pub(super) slow: Vec<Request>,
    pub(super) fast: Vec<Request>,
    pub(super) resources: Resources,
    /// From the first start to the last end.
    pub(super) range: (i64, i64),
    /// Services that send profiles without naming these spans.
    pub(super) unlinked: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Reads requests.
#[derive(Debug)]
pub(super) struct Loader<'a> {
    pub(super) engine: &'a Engine,
    pub(super) tenant: &'a TenantId,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) query: &'a ExplainQuery,
}

/// A sample whose call path has no name yet.
struct RawSample {
    request: u32,
    series: u32,
    sample: RequestSample,
}

/// Call paths, numbered as samples bring them.
#[derive(Default)]
struct PathNumbers {
    numbers: HashMap<u64, u32>,
    /// By number: the first series that has it, and the path.
    paths: Vec<(u32, u64)>,
}

impl PathNumbers {
    fn number(&mut self, path: u64, series: u32) -> u32 {
        let next = self.paths.len() as u32;
        let number = *self.numbers.entry(path).or_insert(next);
        if number == next {
            self.paths.push((series, path));
        }
        let first = &mut self.paths[number as usize].0;
        *first = series.min(*first);
        number
    }

    /// The paths by series: in the same order whatever order samples came in, and those of a service together.
    fn in_order(&self) -> Vec<u64> {
        let mut paths = self.paths.clone();
        paths.sort_unstable();
        paths.into_iter().map(|(_, path)| path).collect()
    }

    /// The stack of each number.
    fn stacks(&self, vocabulary: &mut Vocabulary, known: &CallPaths) -> Vec<StackId> {
        let frame = |frame: &PathFrame| vocabulary.frame(&frame.function, &frame.file, frame.line);
        let frames: Vec<FrameId> =
            (0..known.frame_count() as u32).map(|number| known.frame(number)).map(frame).collect();
        let mut of_calls: Vec<StackId> = Vec::with_capacity(known.calls().len());
        for call in known.calls() {
            let caller = call.caller.map_or(EMPTY_STACK, |caller| of_calls[caller as usize]);
            of_calls.push(vocabulary.stack_below(caller, frames[call.frame as usize]));
        }
        let stack = |path: u64| known.last_call(path).map_or(EMPTY_STACK, |call| of_calls[call as usize]);
        self.paths.iter().map(|(_, path)| stack(*path)).collect()
    }
}

impl Loader<'_> {
    pub(super) async fn load(&self, chosen: &Chosen) -> Result<Loaded> {
        let mut vocabulary = Vocabulary::with_own_code(self.query.own_code.clone());
        let mut resources = ResourceTable::default();
        let mut notes = Vec::new();
        let all: Vec<&CohortSpan> = chosen.slow.iter().chain(&chosen.fast).collect();
        let range = range_of(&all);
        let mut traces: Vec<TraceId> = all.iter().map(|span| span.trace_id).collect();
        traces.sort_unstable();
        traces.dedup();
        let outlines = self.engine.outlines(self.tenant, self.snapshot, &traces, range).await?.answer;
        let shapes: HashMap<TraceId, TraceShape<'_>> =
            by_trace(&outlines).filter_map(|trace| Some((trace.first()?.trace_id, TraceShape::of(trace)))).collect();
        let mut cut = 0;
        let mut sides = [Vec::new(), Vec::new()];
        for (side, spans) in [&chosen.slow, &chosen.fast].into_iter().enumerate() {
            let selected: HashSet<(TraceId, SpanId)> = spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
            let mut nested = 0;
            for span in spans {
                let Some(shape) = shapes.get(&span.trace_id) else { continue };
                if shape.has_caller_in(span.span_id, &selected) {
                    nested += 1;
                    continue;
                }
                if let Some(request) = shape.request(span.span_id, &mut vocabulary, &mut resources, &mut cut) {
                    sides[side].push(request);
                }
            }
            if nested > 0 {
                notes.push(format!(
                    "{nested} spans that lie below others of the same cohort are part of those requests."
                ));
            }
        }
        if cut > 0 {
            notes.push(format!(
                "{cut} spans of very large or very deep requests were left out; their time counts for their callers."
            ));
        }
        let [mut slow, mut fast] = sides;
        self.add_samples(&mut vocabulary, [&mut slow, &mut fast], &outlines, range, &mut notes).await?;
        let unlinked = self.unlinked(&vocabulary, [&slow, &fast], range).await?;
        Ok(Loaded { vocabulary, slow, fast, resources: resources.finish(), range, unlinked, notes })
    }

    async fn add_samples(
        &self,
        vocabulary: &mut Vocabulary,
        sides: [&mut Vec<Request>; 2],
        outlines: &[SpanOutline],
        (from, until): (i64, i64),
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let slow_count = sides[0].len();
        let mut owners: Vec<SpanKey> = Vec::new();
        // A span may belong to several requests, on different sides or nested in different cohorts.
        let mut places: HashMap<(TraceId, SpanId), Vec<(u32, u32)>> = HashMap::new();
        for (number, request) in sides.iter().flat_map(|side| side.iter()).enumerate() {
            for (index, span) in request.spans.iter().enumerate() {
                let here = places.entry((request.trace_id, span.span_id)).or_default();
                if here.is_empty() {
                    owners.push(SpanKey { trace_id: Some(request.trace_id), span_id: span.span_id });
                }
                here.push((number as u32, index as u32));
            }
        }
        if owners.is_empty() {
            return Ok(());
        }
        let links = self.query.links;
        let owners =
            self.engine.owners_in_traces(self.tenant, self.snapshot, owners, outlines, (from, until), links).await?;
        let query = LinkedQuery {
            owners,
            selector: Selector::parse(TIME_TYPES)?,
            from: from.saturating_sub(REACH),
            until: until.saturating_add(REACH),
            profiles: Vec::new(),
            with_threads: false,
        };
        let mut raw: Vec<RawSample> = Vec::new();
        let mut paths = PathNumbers::default();
        let mut left_out = 0usize;
        let mut keep = |sample: &LinkedSample| {
            let (Some(trace_id), Some(span_id)) = (sample.trace_id, sample.span_id) else { return Ok(()) };
            let Some(here) = places.get(&(trace_id, span_id)) else { return Ok(()) };
            for (request, span) in here {
                if raw.len() >= MOST_SAMPLES {
                    left_out += 1;
                    continue;
                }
                let read = RequestSample {
                    span: *span,
                    stack: paths.number(sample.path, sample.series),
                    measure: Measure::Cpu,
                    time: sample.timed.then_some(sample.time),
                    value: sample.value,
                    link: sample.link,
                };
                raw.push(RawSample { request: *request, series: sample.series, sample: read });
            }
            Ok(())
        };
        let tables = self.engine.visit_linked_samples(self.tenant, self.snapshot, &query, &mut keep).await?;
        let measures: Vec<Option<Measure>> = tables.series.iter().map(|entry| self.counted(&entry.labels)).collect();
        let used: HashSet<u32> = raw.iter().map(|sample| sample.series).collect();
        let seen = used.iter().filter_map(|number| tables.series.get(*number as usize));
        let range = (query.from, query.until);
        let known = self.engine.call_paths(self.tenant, self.snapshot, range, seen, paths.in_order()).await?;
        let stacks = paths.stacks(vocabulary, &known);
        let [slow, fast] = sides;
        for RawSample { request, series, mut sample } in raw {
            let Some(measure) = measures[series as usize] else { continue };
            sample.measure = measure;
            sample.stack = stacks[sample.stack as usize];
            let request = request as usize;
            let request = if request < slow_count { &mut slow[request] } else { &mut fast[request - slow_count] };
            request.samples.push(sample);
        }
        // Jobs end in any order; sums of floating-point numbers depend on theirs.
        for request in slow.iter_mut().chain(fast.iter_mut()) {
            request
                .samples
                .sort_unstable_by_key(|sample| (sample.span, sample.measure, sample.time, sample.stack, sample.value));
        }
        let unresolved = known.exactness().unresolved_paths;
        if unresolved > 0 {
            notes.push(format!(
                "{unresolved} call paths of these samples have no names in the store; their time counts without functions."
            ));
        }
        if left_out > 0 {
            notes.push(format!("{left_out} samples beyond the first {MOST_SAMPLES} were left out; ask for less time."));
        }
        Ok(())
    }

    /// Services of these requests that send profiles, but none of whose samples belong to the requests' spans.
    async fn unlinked(
        &self,
        vocabulary: &Vocabulary,
        sides: [&[Request]; 2],
        (from, until): (i64, i64),
    ) -> Result<Vec<String>> {
        let service = |request: &Request, span: usize| vocabulary.operation_of(request.spans[span].operation).service;
        let mut silent: BTreeSet<TextId> = BTreeSet::new();
        let mut seen: BTreeSet<TextId> = BTreeSet::new();
        for request in sides.into_iter().flatten() {
            silent.extend((0..request.spans.len()).map(|span| service(request, span)));
            seen.extend(request.samples.iter().map(|sample| service(request, sample.span as usize)));
        }
        let mut unlinked = Vec::new();
        for service in silent.difference(&seen).map(|service| vocabulary.text_of(*service)) {
            let selector = Selector::default().and(Matcher::equal(SERVICE_NAME, service));
            let series = self.engine.series(self.tenant, self.snapshot, &[selector], (from, until)).await?;
            if series.answer.iter().any(|entry| self.counted(&entry.labels).is_some()) {
                unlinked.push(service.to_owned());
            }
        }
        Ok(unlinked)
    }

    /// The measure of a series, if it counts.
    fn counted(&self, labels: &Labels) -> Option<Measure> {
        let profile_type: ProfileType = labels.get(PROFILE_TYPE)?.parse().ok()?;
        let measure = measure_of(&profile_type)?;
        (self.query.measures.is_empty() || self.query.measures.contains(&measure)).then_some(measure)
    }
}

/// From the first start to the last end.
pub(super) fn range_of(spans: &[&CohortSpan]) -> (i64, i64) {
    let from = spans.iter().map(|span| span.start).min().unwrap_or(0);
    let until = spans.iter().map(|span| span.start.saturating_add(span.duration.max(0))).max().unwrap_or(0);
    (from, until.saturating_add(1))
}

/// A trace with who called whom.
pub(super) struct TraceShape<'t> {
    spans: &'t [SpanOutline],
    children: Vec<Vec<usize>>,
    at: HashMap<SpanId, usize>,
}

impl<'t> TraceShape<'t> {
    pub(super) fn of(spans: &'t [SpanOutline]) -> Self {
        let at = spans.iter().enumerate().map(|(index, span)| (span.span_id, index)).collect();
        Self { spans, children: children_of(spans), at }
    }

    /// Whether a span above this one is among those selected.
    pub(super) fn has_caller_in(&self, span: SpanId, selected: &HashSet<(TraceId, SpanId)>) -> bool {
        let mut at = self.at.get(&span);
        // Parents may form a circle in a broken trace.
        for _ in 0..self.spans.len() {
            let Some(parent) = at.and_then(|index| self.spans[*index].parent_id) else { return false };
            at = self.at.get(&parent);
            if parent != span && at.is_some_and(|index| selected.contains(&(self.spans[*index].trace_id, parent))) {
                return true;
            }
        }
        false
    }

    /// The service that a call goes to, if its side of the call was seen.
    fn callee(&self, index: usize) -> &str {
        let span = &self.spans[index];
        let is_call = matches!(span.kind, SpanKind::Client | SpanKind::Producer);
        let called = self.children[index].iter().map(|child| &self.spans[*child].service);
        let called = called.filter(|service| is_call && **service != span.service).min();
        called.map_or("", |service| service.as_ref())
    }

    /// The span with everything below it.
    fn request(
        &self,
        focus: SpanId,
        vocabulary: &mut Vocabulary,
        resources: &mut ResourceTable,
        cut: &mut usize,
    ) -> Option<Request> {
        let root = *self.at.get(&focus)?;
        let mut request = Request { trace_id: self.spans[root].trace_id, ..Request::default() };
        let mut seen = vec![false; self.spans.len()];
        let mut pending: Vec<(usize, Option<u32>, usize)> = vec![(root, None, 0)];
        seen[root] = true;
        while let Some((index, parent, depth)) = pending.pop() {
            if request.spans.len() >= MOST_SPANS || depth > MOST_DEPTH {
                *cut += 1;
                continue;
            }
            let span = &self.spans[index];
            let here = request.spans.len() as u32;
            request.spans.push(RequestSpan {
                span_id: span.span_id,
                parent,
                operation: vocabulary.call(&span.service, &span.name, span.kind, self.callee(index)),
                role: span.kind,
                clock: resources.clock(vocabulary, &span.service, &span.resource),
                start: span.start,
                end: span.end(),
                failed: span.status == StatusCode::Error,
                attributes: Vec::new(),
            });
            resources.remember(span);
            for child in self.children[index].iter().rev() {
                if !std::mem::replace(&mut seen[*child], true) {
                    pending.push((*child, Some(here), depth + 1));
                }
            }
        }
        Some(request)
    }
}
