//! A workshop that makes one request at a time: spans, work and waits in order, and the samples a profiler takes of them.

use std::collections::HashMap;

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::vocabulary::StackId;
use hotspan_analysis::{AttributeValue, Measure, Request, RequestSample, RequestSpan, Vocabulary};
use hotspan_model::{LinkStrength, SpanId, SpanKind, TraceId};

/// Stacks that were made, by their text.
pub(crate) type Stacks = HashMap<String, StackId>;

/// How waits are seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Waits {
    /// Not at all.
    Unseen,
    /// By off-CPU samples at this distance.
    OffCpu(i64),
    /// By wall-clock samples at this distance, of work as of waits.
    Wall(i64),
    /// By an event for each wait.
    Events,
}

const MS: f64 = 1e6;
/// 2026-01-01, about.
const START: i64 = 1_767_225_600_000_000_000;

/// Makes a request.
pub(crate) struct Workshop<'w> {
    vocabulary: &'w mut Vocabulary,
    stacks: &'w mut Stacks,
    pub(crate) random: &'w mut Random,
    request: Request,
    open: Vec<u32>,
    cursor: i64,
    number: u64,
    /// How waits are seen.
    pub(crate) waits: Waits,
    /// Whether samples carry their time.
    pub(crate) timed: bool,
    /// Distance of CPU samples.
    pub(crate) cpu_period: i64,
    /// Whether samples name the span that the service was called by, not the one inside.
    pub(crate) names_local_root: bool,
    /// Whether spans are profiled.
    pub(crate) profiled: bool,
}

impl<'w> Workshop<'w> {
    pub(crate) fn new(
        vocabulary: &'w mut Vocabulary,
        stacks: &'w mut Stacks,
        random: &'w mut Random,
        number: u64,
    ) -> Self {
        let mut trace_id = [0u8; 16];
        trace_id[..8].copy_from_slice(&number.to_be_bytes());
        trace_id[8] = 1;
        let request = Request { trace_id: TraceId(trace_id), ..Request::default() };
        let cursor = START + number as i64 * 10_000_000_000 + (random.unit() * 1e9) as i64;
        Self {
            vocabulary,
            stacks,
            random,
            request,
            open: Vec::new(),
            cursor,
            number,
            waits: Waits::OffCpu(20_000_000),
            timed: true,
            cpu_period: 10_000_000,
            names_local_root: false,
            profiled: true,
        }
    }

    /// The number of the request.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Log-normal work around a median in milliseconds.
    pub(crate) fn about(&mut self, median: f64) -> f64 {
        self.spread(median, 0.3)
    }

    /// The same with a spread of its own.
    pub(crate) fn spread(&mut self, median: f64, sigma: f64) -> f64 {
        let normal = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
        median * (sigma * normal).exp()
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.random.unit() < share
    }

    /// Begins a span below the open one.
    pub(crate) fn enter(&mut self, service: &str, name: &str, role: SpanKind) -> u32 {
        let index = self.request.spans.len() as u32;
        let mut span_id = [0u8; 8];
        span_id[..4].copy_from_slice(&(self.number as u32).to_be_bytes());
        span_id[4..].copy_from_slice(&(index + 1).to_be_bytes());
        self.request.spans.push(RequestSpan {
            span_id: SpanId(span_id),
            parent: self.open.last().copied(),
            operation: self.vocabulary.operation(service, name, role),
            role,
            clock: self.vocabulary.text(service),
            start: self.cursor,
            end: self.cursor,
            failed: false,
            attributes: Vec::new(),
        });
        self.open.push(index);
        index
    }

    /// Ends the open span.
    pub(crate) fn leave(&mut self) {
        if let Some(span) = self.open.pop() {
            self.request.spans[span as usize].end = self.cursor;
        }
    }

    /// Where the request is in time.
    pub(crate) fn now(&self) -> i64 {
        self.cursor
    }

    /// Goes back or forth in time, for work that is done side by side.
    pub(crate) fn at(&mut self, time: i64) {
        self.cursor = time;
    }

    /// Ends the open span later than now, as work does that nobody waits for.
    pub(crate) fn outlive(&mut self, milliseconds: f64) {
        if let Some(span) = self.open.last() {
            self.request.spans[*span as usize].end = self.cursor + (milliseconds * MS) as i64;
            self.open.pop();
        }
    }

    pub(crate) fn fail(&mut self) {
        if let Some(span) = self.open.last() {
            self.request.spans[*span as usize].failed = true;
        }
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        let entry = (self.vocabulary.text(key), AttributeValue::Text(self.vocabulary.text(value)));
        let open = *self.open.last().expect("a span is open") as usize;
        self.request.spans[open].attributes.push(entry);
    }

    pub(crate) fn amount(&mut self, key: &str, value: f64) {
        let entry = (self.vocabulary.text(key), AttributeValue::Number(value));
        let open = *self.open.last().expect("a span is open") as usize;
        self.request.spans[open].attributes.push(entry);
    }

    /// Shifts the clock of everything in a service, as another machine's would be.
    pub(crate) fn skew(&mut self, service: &str, milliseconds: f64) {
        let shift = (milliseconds * MS) as i64;
        let clock = self.vocabulary.text(service);
        for span in self.request.spans.iter_mut().filter(|span| span.clock == clock) {
            span.start += shift;
            span.end += shift;
        }
        for sample in &mut self.request.samples {
            if self.request.spans[sample.span as usize].clock == clock {
                sample.time = sample.time.map(|time| time + shift);
            }
        }
    }

    fn stack(&mut self, frames: &[&str]) -> StackId {
        let text = frames.join(";");
        if let Some(stack) = self.stacks.get(&text) {
            return *stack;
        }
        let numbers: Vec<u32> = frames
            .iter()
            .map(|frame| {
                let mut parts = frame.split('|');
                let function = parts.next().unwrap_or_default();
                let (file, line) = (parts.next().unwrap_or(""), parts.next().unwrap_or("0"));
                self.vocabulary.frame(function, file, line.parse().unwrap_or(0))
            })
            .collect();
        let stack = self.vocabulary.stack(&numbers);
        self.stacks.insert(text, stack);
        stack
    }

    /// Works for so many milliseconds in the open span. Frames are `function|file|line`, the root first.
    pub(crate) fn work(&mut self, frames: &[&str], milliseconds: f64) {
        let from = self.cursor;
        self.cursor += (milliseconds * MS) as i64;
        self.sample(frames, from, Measure::Cpu, self.cpu_period);
        if let Waits::Wall(period) = self.waits {
            self.sample(frames, from, Measure::Wall, period);
        }
    }

    /// Works on several threads at once.
    pub(crate) fn work_on(&mut self, threads: usize, frames: &[&str], milliseconds: f64) {
        let from = self.cursor;
        self.cursor += (milliseconds * MS) as i64;
        for _ in 0..threads {
            self.sample(frames, from, Measure::Cpu, self.cpu_period);
        }
    }

    /// Waits for so many milliseconds in the open span.
    pub(crate) fn wait(&mut self, frames: &[&str], milliseconds: f64) {
        let from = self.cursor;
        self.cursor += (milliseconds * MS) as i64;
        match self.waits {
            Waits::Unseen => {}
            Waits::OffCpu(period) => self.sample(frames, from, Measure::OffCpu, period),
            Waits::Wall(period) => self.sample(frames, from, Measure::Wall, period),
            Waits::Events => {
                let stack = self.stack(frames);
                let value = self.cursor - from;
                self.push(stack, Measure::OffCpu, from, value);
            }
        }
    }

    /// Time that nobody sees.
    pub(crate) fn gap(&mut self, milliseconds: f64) {
        self.cursor += (milliseconds * MS) as i64;
    }

    /// The samples of a ticking profiler from a moment until now.
    fn sample(&mut self, frames: &[&str], from: i64, measure: Measure, period: i64) {
        let phase = (self.random.unit() * period as f64) as i64;
        let mut tick = from + phase;
        let stack = self.stack(frames);
        while tick < self.cursor {
            self.push(stack, measure, tick, period);
            tick += period;
        }
    }

    fn push(&mut self, stack: StackId, measure: Measure, time: i64, value: i64) {
        let is_root = |span: &&u32| self.request.spans[**span as usize].role == SpanKind::Server;
        let named = if self.names_local_root { self.open.iter().rfind(is_root) } else { self.open.last() };
        let Some(span) = named.copied().filter(|_| self.profiled) else { return };
        let time = self.timed.then_some(time);
        self.request.samples.push(RequestSample { span, stack, measure, time, value, link: LinkStrength::Exact });
    }

    pub(crate) fn finish(mut self) -> Request {
        while !self.open.is_empty() {
            self.leave();
        }
        self.request
    }
}
