//! Samples: where the time of a service went in a window.
//!
//! Linked samples are spread over the time that the service's spans were running, as a timer spreads them: evenly,
//! with some jitter. A span therefore gets samples in proportion to the time it ran, and none outside of it.

use super::Workload;
use super::timing::Stretch;
use super::window::GeneratedSpan;
use crate::fleet::call_tree::{BACKGROUND, NodeNumber};
use crate::planted::PlantedTime;
use crate::random::{Random, Stream};
use crate::settings::WINDOW_NANOS;

/// Time between two samples of a running thread.
pub(crate) const PERIOD_NANOS: i64 = 10_000_000;
/// Sometimes a timer fires late, and the sample counts for two.
const DOUBLE_SHARE: f64 = 0.03;

/// What samples measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKind {
    /// Time on a CPU, in nanoseconds.
    Cpu,
    /// Time off a CPU, in nanoseconds; only planted causes have such samples.
    OffCpu,
}

impl SampleKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::OffCpu];

    /// Its name on the wire, which is also its short name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off_cpu",
        }
    }
}

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedSample {
    /// When, in nanoseconds since 1970.
    pub time: i64,
    /// How much.
    pub value: i64,
    /// The call path: a node of the service's call tree.
    pub node: NodeNumber,
    /// The span it was taken in: an index into the window's spans.
    pub span: Option<u32>,
    /// The thread: an index into the service's threads.
    pub thread: u8,
}

/// Samples of one kind, of one service, in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedProfile {
    /// The service: an index into the fleet's services.
    pub service: u16,
    /// What the samples measure.
    pub kind: SampleKind,
    /// Identity of the profile.
    pub id: [u8; 16],
    /// Start in nanoseconds since 1970.
    pub start: i64,
    /// The samples by time.
    pub samples: Vec<GeneratedSample>,
}

/// The profiles of a window, by service.
pub(super) fn profiles(
    workload: &Workload,
    window: u32,
    start: i64,
    spans: &[GeneratedSpan<'_>],
) -> Vec<GeneratedProfile> {
    let services = workload.fleet.services.len();
    let mut spans_of: Vec<Vec<u32>> = vec![Vec::new(); services];
    for (number, span) in spans.iter().enumerate() {
        spans_of[usize::from(span.service)].push(number as u32);
    }
    let mut profiles = Vec::with_capacity(services);
    for (service, numbers) in spans_of.iter().enumerate() {
        let item = u64::from(window) * services as u64 + service as u64;
        let random = Random::of(workload.settings.seed, Stream::Profile, item);
        let mut sampler = Sampler { workload, service, start, spans, random, cpu: Vec::new(), off_cpu: Vec::new() };
        sampler.run(numbers, workload.samples_of(service, window));
        for (kind, mut samples) in [(SampleKind::Cpu, sampler.cpu), (SampleKind::OffCpu, sampler.off_cpu)] {
            let id = sampler.random.id();
            if !samples.is_empty() {
                samples.sort_by_key(|sample| sample.time);
                profiles.push(GeneratedProfile { service: service as u16, kind, id, start, samples });
            }
        }
    }
    profiles
}

struct Sampler<'s, 'w> {
    workload: &'w Workload,
    service: usize,
    start: i64,
    spans: &'s [GeneratedSpan<'w>],
    random: Random,
    cpu: Vec<GeneratedSample>,
    off_cpu: Vec<GeneratedSample>,
}

impl Sampler<'_, '_> {
    fn run(&mut self, numbers: &[u32], wanted: u64) {
        let linked = (wanted as f64 * self.workload.settings.linked_share).round() as u64;
        let linked = self.sample_spans(numbers, linked);
        for _ in linked..wanted {
            let time = self.start + self.random.below(WINDOW_NANOS as usize) as i64;
            let service = &self.workload.fleet.services[self.service];
            // Half of what is not linked is request work of code that sets no labels.
            let region = match self.random.chance(0.5) {
                true => BACKGROUND,
                false => self.random.below(service.operations.len()) + 1,
            };
            let thread = self.random.below(service.threads.into()) as u8;
            self.take(time, region, None, thread);
        }
        self.sample_planted(numbers);
    }

    /// Spreads samples over the running time of spans. Says how many it took: none if nothing ran.
    fn sample_spans(&mut self, numbers: &[u32], wanted: u64) -> u64 {
        let runs = |span: &GeneratedSpan<'_>| {
            let inside: i64 = span.own.iter().map(|stretch| self.clip(*stretch)).map(|(from, to)| to - from).sum();
            inside as f64 * span.cpu_share
        };
        let running: Vec<f64> = numbers.iter().map(|number| runs(&self.spans[*number as usize])).collect();
        let sum: f64 = running.iter().sum();
        if sum <= 0.0 || wanted == 0 {
            return 0;
        }
        let step = sum / wanted as f64;
        let mut span_end = 0.0;
        let mut taken = 0;
        for (number, running) in numbers.iter().zip(running) {
            span_end += running;
            // The last span takes what rounding left over.
            let due = if span_end >= sum { wanted } else { (span_end / step) as u64 };
            for _ in taken..due {
                let span = &self.spans[*number as usize];
                let Some(time) = self.instant_of(&span.own) else { continue };
                self.take(time, span.region, Some(*number), span.thread);
            }
            taken = due.max(taken);
        }
        self.cpu.len() as u64
    }

    /// A moment inside one of the stretches and inside the window.
    fn instant_of(&mut self, stretches: &[Stretch]) -> Option<i64> {
        let length = |stretch: &Stretch| {
            let (from, to) = self.clip(*stretch);
            to - from
        };
        let sum: i64 = stretches.iter().map(length).sum();
        let mut at = self.random.below(sum as usize) as i64;
        for stretch in stretches {
            let (from, to) = self.clip(*stretch);
            if at < to - from {
                return Some(from + at);
            }
            at -= to - from;
        }
        None
    }

    /// The part of a stretch inside the window; empty if there is none.
    fn clip(&self, (from, to): Stretch) -> Stretch {
        let from = from.clamp(self.start, self.start + WINDOW_NANOS);
        (from, to.clamp(from, self.start + WINDOW_NANOS))
    }

    fn take(&mut self, time: i64, region: usize, span: Option<u32>, thread: u8) {
        let node = self.workload.fleet.services[self.service].calls.pick_path(region, &mut self.random);
        let value = if self.random.chance(DOUBLE_SHARE) { 2 * PERIOD_NANOS } else { PERIOD_NANOS };
        self.cpu.push(GeneratedSample { time, value, node, span, thread });
    }

    /// Planted time is sampled whole, beside what the settings ask for.
    fn sample_planted(&mut self, numbers: &[u32]) {
        for number in numbers {
            let span = &self.spans[*number as usize];
            for planted in &span.planted {
                let (from, to) = self.clip(planted.stretch);
                let sample = |time, value| GeneratedSample {
                    time,
                    value,
                    node: planted.cause.node,
                    span: Some(*number),
                    thread: span.thread,
                };
                match planted.cause.time {
                    PlantedTime::Waiting if to > from => self.off_cpu.push(sample(from, to - from)),
                    PlantedTime::Waiting => {}
                    PlantedTime::OnCpu => {
                        let first = from + self.random.below(PERIOD_NANOS as usize) as i64;
                        let times = (0..).map(|tick| first + tick * PERIOD_NANOS).take_while(|time| *time < to);
                        self.cpu.extend(times.map(|time| sample(time, PERIOD_NANOS)));
                    }
                }
            }
        }
    }
}
