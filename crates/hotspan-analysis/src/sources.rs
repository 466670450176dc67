//! Which profiles of a service count, so that no nanosecond is counted twice.
//!
//! Time on the CPU comes from CPU profiles. Waiting comes from the best source that a service has: wall-clock time beside
//! CPU time, else off-CPU time. What is off the CPU is often told by sampling the wall clock and taking off what the thread
//! ran since the last sample; in a short span that is mostly what was before it. What locks say is exact, and better than
//! samples if they see the same waits. The choice is made for a service as a whole and for both sides alike: a source that
//! is there on one side only would look like a difference.
//!
//! How much of its time code is off the CPU is told by what it uses of it on average. A request that is looked at by itself is
//! not the average: it may be slow for the very reason that it had no CPU. What it waited is then what its own samples tell,
//! spread over its code as is usual there.

use hashbrown::HashMap;

use crate::own_code::Ownership;
use crate::part::{FRAMES_LOOKED_AT, Part, part_of_running, part_of_waiting};
use crate::request::{Measure, Request, RequestSample};
use crate::signs::Signs;
use crate::vocabulary::{FrameId, OperationId, TextId, Vocabulary};

/// What one service's profiles say.
#[derive(Debug, Default)]
struct ServiceSources {
    samples: [u64; Measure::ALL.len()],
    /// Time that one sample of each measure stands for, about.
    quantum: [f64; Measure::ALL.len()],
    /// Time waited for locks, by what says so.
    lock_times: [f64; Measure::ALL.len()],
    /// Time by leaf function.
    leaf_times: HashMap<TextId, RunningTime>,
}

impl ServiceSources {
    /// Which profiles tell what the service waits for.
    fn source_of_waits(&self) -> Option<Measure> {
        let has = |measure: Measure| self.samples[measure as usize] > 0;
        match (has(Measure::Wall), has(Measure::OffCpu)) {
            (true, false) => Some(Measure::Wall),
            (true, true) if has(Measure::Cpu) => Some(Measure::Wall),
            (_, true) => Some(Measure::OffCpu),
            (false, false) => None,
        }
    }
}

/// Time in code that is not known to wait.
#[derive(Debug, Default, Clone, Copy)]
struct RunningTime {
    cpu: f64,
    wall: f64,
    wall_samples: u64,
}

impl RunningTime {
    fn add(&mut self, sample: &RequestSample) {
        match sample.measure {
            Measure::Cpu => self.cpu += sample.value as f64,
            Measure::Wall => {
                self.wall += sample.value as f64;
                self.wall_samples += 1;
            }
            _ => {}
        }
    }

    /// Share of the time in which a CPU was used.
    fn on_cpu(self) -> f64 {
        (self.cpu / self.wall.max(1.0)).clamp(0.0, 1.0)
    }
}

/// How long the code of one request was off the CPU, and how long that would be at the usual share.
#[derive(Debug, Default, Clone, Copy)]
pub struct OffCpu {
    times: RunningTime,
    usual: f64,
}

impl OffCpu {
    /// The share of a sample's time, where this is the usual one. All samples together get what the request waited: less of
    /// each, or more of that in which they usually run, since who gets no CPU gets none wherever it is.
    fn share(self, usual: f64) -> f64 {
        let waited = (self.times.wall - self.times.cpu).max(0.0);
        if waited <= self.usual {
            usual * waited / self.usual.max(1.0)
        } else {
            usual + (1.0 - usual) * (waited - self.usual) / (self.times.wall - self.usual)
        }
    }
}

/// The sources of all services, and what each stack does.
#[derive(Debug)]
pub struct Sources {
    services: HashMap<TextId, ServiceSources>,
    /// Time by operation.
    operation_times: HashMap<OperationId, RunningTime>,
    /// What the name of each frame's function says.
    signs: Vec<Signs>,
    running: Vec<Part>,
    waiting: Vec<Option<Part>>,
}

/// Nobody samples less often than this; a single long wait does not make a long period.
const LONGEST_PERIOD: f64 = 100e6;
/// What is told whole is not sampled: it is as sure as if it had been seen each millisecond.
const TOLD_WHOLE: f64 = 1e6;
/// Wall-clock samples of a function from which on its own use of the CPU is known; else its operation's is taken.
const ENOUGH_OF_A_LEAF: u64 = 30;
/// Wall-clock samples of an operation from which on a request's own use of the CPU is known.
const ENOUGH_OF_A_REQUEST: u64 = 8;
/// Share of the time off the CPU that is worth telling apart.
const OFTEN_OFF: f64 = 0.2;
/// Share of the time on the CPU from which on code that does not run waits for a CPU, not for something unknown.
const RUNS_AT_ALL: f64 = 0.05;
/// Share of the lock waits by the wall clock that locks must have seen themselves to be believed.
const LOCKS_SEE_ENOUGH: f64 = 0.5;
/// Values looked at to find the period of a measure.
const VALUES_LOOKED_AT: usize = 4096;

impl Sources {
    /// Looks through the samples of both sides.
    pub fn of(vocabulary: &Vocabulary, sides: &[&[Request]]) -> Self {
        let signs = signs_of_frames(vocabulary);
        let (running, waiting) = parts_of_stacks(vocabulary, sides, &signs);
        let mut services: HashMap<TextId, ServiceSources> = HashMap::new();
        let mut operation_times: HashMap<OperationId, RunningTime> = HashMap::new();
        let mut values: HashMap<(TextId, Measure), Vec<i64>> = HashMap::new();
        for request in sides.iter().flat_map(|side| side.iter()) {
            for sample in &request.samples {
                let operation = request.spans[sample.span as usize].operation;
                let service = vocabulary.operation_of(operation).service;
                let sources = services.entry(service).or_default();
                sources.samples[sample.measure as usize] += 1;
                let seen = values.entry((service, sample.measure)).or_default();
                if seen.len() < VALUES_LOOKED_AT {
                    seen.push(sample.value.max(1));
                }
                let waits_for = waiting[sample.stack as usize];
                if sample.measure == Measure::Lock || waits_for == Some(Part::Lock) {
                    sources.lock_times[sample.measure as usize] += sample.value as f64;
                }
                if sample.measure == Measure::Cpu || waits_for.is_none() {
                    operation_times.entry(operation).or_default().add(sample);
                }
                if let Some(leaf) = vocabulary.leaf_of(sample.stack) {
                    sources.leaf_times.entry(vocabulary.frame_of(leaf).function).or_default().add(sample);
                }
            }
        }
        for ((service, measure), mut seen) in values {
            // Sums of several samples are multiples of the period: the small values are the single ones.
            seen.sort_unstable();
            let small = seen[seen.len() / 20] as f64;
            if let Some(sources) = services.get_mut(&service) {
                sources.quantum[measure as usize] = small.min(LONGEST_PERIOD);
            }
        }
        Self { services, operation_times, signs, running, waiting }
    }

    /// Whether any profile of a service has samples of these requests.
    pub fn is_profiled(&self, service: TextId) -> bool {
        self.services.contains_key(&service)
    }

    /// The profile types that a service has.
    pub fn measures(&self, service: TextId) -> Vec<Measure> {
        let Some(sources) = self.services.get(&service) else { return Vec::new() };
        Measure::ALL.into_iter().filter(|measure| sources.samples[*measure as usize] > 0).collect()
    }

    /// Whether a service's waiting is seen.
    pub fn sees_waiting(&self, service: TextId) -> bool {
        self.measures(service).iter().any(|measure| *measure != Measure::Cpu)
    }

    /// What the name of a frame's function says.
    pub fn signs_of(&self, frame: FrameId) -> Signs {
        self.signs[frame as usize]
    }

    /// Time that one sample stands for, about.
    pub fn quantum(&self, service: TextId, measure: Measure) -> f64 {
        // Locks tell each wait, and how long it was.
        if measure == Measure::Lock {
            return TOLD_WHOLE;
        }
        self.services.get(&service).map_or(1e7, |sources| sources.quantum[measure as usize])
    }

    /// The longest period of the CPU profiles in these requests; none without any.
    pub fn cpu_period(&self) -> Option<f64> {
        let periods = self.services.values().filter(|sources| sources.samples[Measure::Cpu as usize] > 0);
        periods.map(|sources| sources.quantum[Measure::Cpu as usize]).max_by(f64::total_cmp)
    }

    /// How long each operation of one request was off the CPU, where its own samples tell: there are enough of them, or
    /// those of no other request.
    pub fn off_cpu_of(&self, vocabulary: &Vocabulary, request: &Request) -> HashMap<OperationId, OffCpu> {
        let mut by_operation: HashMap<OperationId, OffCpu> = HashMap::new();
        for sample in &request.samples {
            let operation = request.spans[sample.span as usize].operation;
            let is_running = self.waiting[sample.stack as usize].is_none();
            if sample.measure != Measure::Cpu && !is_running {
                continue;
            }
            let off_cpu = by_operation.entry(operation).or_default();
            off_cpu.times.add(sample);
            if sample.measure == Measure::Wall {
                let on_cpu = self.usually_on_cpu(vocabulary, operation, sample).unwrap_or(1.0);
                off_cpu.usual += sample.value as f64 * (1.0 - on_cpu);
            }
        }
        let of_all =
            |operation: &OperationId| self.operation_times.get(operation).map_or(0, |times| times.wall_samples);
        by_operation.retain(|operation, OffCpu { times, .. }| {
            times.wall_samples >= ENOUGH_OF_A_REQUEST || times.wall_samples == of_all(operation)
        });
        by_operation
    }

    /// The share of the time on the CPU in the code of a sample, by all requests.
    fn usually_on_cpu(&self, vocabulary: &Vocabulary, operation: OperationId, sample: &RequestSample) -> Option<f64> {
        let sources = self.services.get(&vocabulary.operation_of(operation).service)?;
        let leaf = vocabulary.leaf_of(sample.stack)?;
        let of_leaf = sources.leaf_times.get(&vocabulary.frame_of(leaf).function);
        let known = of_leaf.filter(|times| times.wall_samples >= ENOUGH_OF_A_LEAF);
        Some(known.or_else(|| self.operation_times.get(&operation))?.on_cpu())
    }

    /// What the time of a sample in an operation was spent on, and which share of it counts; none if another source tells
    /// the same. `off_cpu` is of its request, if that is looked at by itself.
    pub fn part_of(
        &self,
        vocabulary: &Vocabulary,
        operation: OperationId,
        sample: &RequestSample,
        off_cpu: Option<OffCpu>,
    ) -> Option<(Part, f64)> {
        let sources = self.services.get(&vocabulary.operation_of(operation).service)?;
        let has = |measure: Measure| sources.samples[measure as usize] > 0;
        let running = self.running[sample.stack as usize];
        let waiting = self.waiting[sample.stack as usize];
        let waits = sources.source_of_waits();
        let lock_time = |measure: Measure| sources.lock_times[measure as usize];
        let locks_tell =
            waits.is_none_or(|waits| lock_time(Measure::Lock) > LOCKS_SEE_ENOUGH * lock_time(waits).max(1.0));
        match sample.measure {
            Measure::Cpu => Some((running, 1.0)),
            Measure::OffCpu | Measure::Wall if waits != Some(sample.measure) => None,
            Measure::OffCpu | Measure::Wall if locks_tell && waiting == Some(Part::Lock) => None,
            Measure::OffCpu => Some((waiting.unwrap_or(Part::Waiting), 1.0)),
            Measure::Wall => match waiting {
                Some(part) => Some((part, 1.0)),
                None if !has(Measure::Cpu) => Some((running, 1.0)),
                None => {
                    // The CPU profile tells how much of this code's time is running.
                    let on_cpu = self.usually_on_cpu(vocabulary, operation, sample)?;
                    let part = if on_cpu >= RUNS_AT_ALL { Part::Scheduling } else { Part::Waiting };
                    match off_cpu {
                        Some(off_cpu) => Some((part, off_cpu.share(1.0 - on_cpu))),
                        None => (1.0 - on_cpu > OFTEN_OFF).then_some((part, 1.0 - on_cpu)),
                    }
                }
            },
            Measure::Lock => locks_tell.then_some((Part::Lock, 1.0)),
            Measure::Parked => Some((Part::Waiting, 1.0)),
        }
    }
}

fn signs_of_frames(vocabulary: &Vocabulary) -> Vec<Signs> {
    // Frames of one function differ by their lines, which say nothing about it.
    let mut signs: HashMap<TextId, Signs> = HashMap::new();
    let of_frame = |frame: FrameId| {
        let function = vocabulary.frame_of(frame).function;
        *signs.entry(function).or_insert_with(|| Signs::of(vocabulary.text_of(function)))
    };
    (0..vocabulary.frame_count() as FrameId).map(of_frame).collect()
}

/// What each stack that samples end with does while it runs, and what it waits for while it does not.
fn parts_of_stacks(vocabulary: &Vocabulary, sides: &[&[Request]], signs: &[Signs]) -> (Vec<Part>, Vec<Option<Part>>) {
    let mut parts = (vec![Part::Cpu; vocabulary.stack_count()], vec![None; vocabulary.stack_count()]);
    let mut is_told = vec![false; vocabulary.stack_count()];
    for sample in sides.iter().flat_map(|side| side.iter()).flat_map(|request| &request.samples) {
        let stack = sample.stack as usize;
        if !std::mem::replace(&mut is_told[stack], true) {
            let frames = vocabulary.frames_from_leaf(sample.stack).take(FRAMES_LOOKED_AT);
            let from_leaf: Vec<(Signs, Ownership)> =
                frames.map(|frame| (signs[frame as usize], vocabulary.ownership_of(frame))).collect();
            parts.0[stack] = part_of_running(from_leaf.iter().map(|(signs, _)| *signs));
            parts.1[stack] = part_of_waiting(&from_leaf);
        }
    }
    parts
}
