//! Which profiles of a service count, so that no nanosecond is counted twice.
//!
//! Time on the CPU comes from CPU profiles. Waiting comes from the best source that a service has: off-CPU time, else
//! wall-clock time, else what its locks say. The choice is made for a service as a whole and for both sides alike:
//! a source that is there on one side only would look like a difference.

use hashbrown::HashMap;

use crate::part::{Part, part_of_running, part_of_waiting};
use crate::request::{Measure, Request, RequestSample};
use crate::vocabulary::{TextId, Vocabulary};

/// What one service's profiles say.
#[derive(Debug, Default)]
struct ServiceSources {
    samples: [u64; Measure::ALL.len()],
    /// Time that one sample of each measure stands for, about.
    quantum: [f64; Measure::ALL.len()],
    /// Time by leaf function, on the CPU and by the wall clock.
    leaf_times: HashMap<TextId, (f64, f64)>,
}

/// The sources of all services, and what each stack does.
#[derive(Debug)]
pub struct Sources {
    services: HashMap<TextId, ServiceSources>,
    running: Vec<Part>,
    waiting: Vec<Option<Part>>,
}

/// Nobody samples less often than this; a single long wait does not make a long period.
const LONGEST_PERIOD: f64 = 100e6;
/// Values looked at to find the period of a measure.
const VALUES_LOOKED_AT: usize = 4096;

impl Sources {
    /// Looks through the samples of both sides.
    pub fn of(vocabulary: &Vocabulary, sides: &[&[Request]]) -> Self {
        let mut services: HashMap<TextId, ServiceSources> = HashMap::new();
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
                if let Some(leaf) = vocabulary.stack_of(sample.stack).last() {
                    let times = sources.leaf_times.entry(vocabulary.frame_of(*leaf).function).or_default();
                    match sample.measure {
                        Measure::Cpu => times.0 += sample.value as f64,
                        Measure::Wall => times.1 += sample.value as f64,
                        _ => {}
                    }
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
        let stacks = 0..vocabulary.stack_count() as u32;
        Self {
            services,
            running: stacks.clone().map(|stack| part_of_running(vocabulary.functions_from_leaf(stack))).collect(),
            waiting: stacks.map(|stack| part_of_waiting(vocabulary.functions_from_leaf(stack))).collect(),
        }
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

    /// Time that one sample stands for, about.
    pub fn quantum(&self, service: TextId, measure: Measure) -> f64 {
        self.services.get(&service).map_or(1e7, |sources| sources.quantum[measure as usize])
    }

    /// The longest period of the CPU profiles in these requests; none without any.
    pub fn cpu_period(&self) -> Option<f64> {
        let periods = self.services.values().filter(|sources| sources.samples[Measure::Cpu as usize] > 0);
        periods.map(|sources| sources.quantum[Measure::Cpu as usize]).max_by(f64::total_cmp)
    }

    /// What a sample's time was spent on, and which share of it counts; none if another source tells the same.
    pub fn part_of(&self, vocabulary: &Vocabulary, service: TextId, sample: &RequestSample) -> Option<(Part, f64)> {
        let sources = self.services.get(&service)?;
        let has = |measure: Measure| sources.samples[measure as usize] > 0;
        let running = self.running[sample.stack as usize];
        let waiting = self.waiting[sample.stack as usize];
        match sample.measure {
            Measure::Cpu => Some((running, 1.0)),
            Measure::OffCpu => Some((waiting.unwrap_or(Part::Waiting), 1.0)),
            Measure::Wall if has(Measure::OffCpu) => None,
            Measure::Wall => match waiting {
                Some(part) => Some((part, 1.0)),
                None if !has(Measure::Cpu) => Some((running, 1.0)),
                None => {
                    // The CPU profile tells how much of this function's time is running.
                    let leaf = vocabulary.stack_of(sample.stack).last()?;
                    let (cpu, wall) = sources.leaf_times.get(&vocabulary.frame_of(*leaf).function)?;
                    let off_cpu = (1.0 - cpu / wall.max(1.0)).clamp(0.0, 1.0);
                    (off_cpu > 0.2).then_some((Part::Waiting, off_cpu))
                }
            },
            Measure::Lock if has(Measure::OffCpu) || has(Measure::Wall) => None,
            Measure::Lock => Some((Part::Lock, 1.0)),
            Measure::Parked => Some((Part::Waiting, 1.0)),
        }
    }
}
