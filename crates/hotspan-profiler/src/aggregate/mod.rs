//! From single samples to uploads: sums by stack, span and thread, with requests decided at their end.

pub(crate) mod batch;
mod conditions;
mod parking;
pub(crate) mod profile_type;
pub(crate) mod synthetic_frame;

pub use conditions::Conditions;
pub(crate) use parking::ParkingCounts;

use crate::context::{EndedRequest, SpanKey, SpanTime};
use crate::heap;
use crate::sampler::sample::{FLAG_LEAF_ONLY, FLAG_TRUNCATED, Sample, SampleKind};
use batch::{Batch, GroupKey, Measurement, Stack};
use parking::Parking;
use profile_type::ProfileType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What has been seen since the start. Counters only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AggregateCounts {
    pub(crate) samples: u64,
    pub(crate) linked_samples: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) truncated_stacks: u64,
    pub(crate) leaf_only_stacks: u64,
}

/// Collects samples into the current batch.
#[derive(Debug)]
pub(crate) struct Aggregator {
    conditions: Conditions,
    batch: Batch,
    parking: Parking,
    stacks: HashSet<Stack>,
    live_allocations: HashMap<u64, LiveAllocation>,
    counts: AggregateCounts,
}

/// A sampled allocation that has not been seen freed.
#[derive(Debug)]
struct LiveAllocation {
    stack: Stack,
    span: SpanKey,
    tid: i32,
    bytes: u64,
    objects: u64,
}

impl Aggregator {
    pub(crate) fn new(conditions: Conditions, monotonic_ns: u64) -> Aggregator {
        Aggregator {
            conditions,
            batch: Batch::starting_at(monotonic_ns),
            parking: Parking::default(),
            stacks: HashSet::new(),
            live_allocations: HashMap::new(),
            counts: AggregateCounts::default(),
        }
    }

    pub(crate) fn set_conditions(&mut self, conditions: Conditions) {
        self.conditions = conditions;
    }

    fn intern(&mut self, frames: &[u64]) -> Stack {
        if let Some(stack) = self.stacks.get(frames) {
            return Arc::clone(stack);
        }
        let stack: Stack = frames.into();
        self.stacks.insert(Arc::clone(&stack));
        stack
    }

    /// Takes one sample. Says since when its request has been running, if it waits for one.
    pub(crate) fn add(&mut self, sample: &Sample<'_>) -> Option<u64> {
        self.counts.samples += 1;
        self.counts.linked_samples += u64::from(!sample.span.is_none());
        self.counts.truncated_stacks += u64::from(sample.flags & FLAG_TRUNCATED != 0);
        self.counts.leaf_only_stacks += u64::from(sample.flags & FLAG_LEAF_ONLY != 0);
        let stack = self.intern(sample.frames);
        let mut extra = sample.extra;
        match sample.kind {
            SampleKind::Cpu => self.counts.cpu_ns += sample.weight,
            SampleKind::Allocation => {
                // `extra` is the size that was asked for, `extra2` names the entry in the live set.
                extra = (sample.weight as f64 / sample.extra.max(1) as f64).round().max(1.0) as u64;
                self.live_allocations.insert(
                    sample.extra2,
                    LiveAllocation {
                        stack: Arc::clone(&stack),
                        span: sample.span,
                        tid: sample.tid,
                        bytes: sample.weight,
                        objects: extra,
                    },
                );
            }
            SampleKind::Wall | SampleKind::LockWait => {}
        }
        let mut running_since = None;
        for (profile, value) in ProfileType::contributions(sample.kind, sample.weight, extra) {
            if value > 0 {
                let key = GroupKey { profile, stack: Arc::clone(&stack), span: sample.span, tid: sample.tid };
                running_since = self.route(Measurement { key, value, monotonic_ns: sample.monotonic_ns });
            }
        }
        running_since
    }

    /// Takes the time a span spent being polled and parked.
    pub(crate) fn add_span_time(&mut self, time: &SpanTime, nanos_per_tick: f64, monotonic_ns: u64) {
        let nanos = |ticks: u64| (ticks as f64 * nanos_per_tick) as u64;
        let parked_ticks = time.lifetime_ticks - time.inside_ticks;
        for (profile, frame, ticks) in [
            (ProfileType::SpanPolling, synthetic_frame::POLLING, time.inside_ticks),
            (ProfileType::SpanParked, synthetic_frame::PARKED, parked_ticks),
        ] {
            if ticks > 0 {
                let key = GroupKey { profile, stack: self.intern(&[frame]), span: time.key, tid: 0 };
                self.route(Measurement { key, value: nanos(ticks), monotonic_ns });
            }
        }
    }

    fn route(&mut self, measurement: Measurement) -> Option<u64> {
        if measurement.key.span.is_none() || self.conditions.keep_everything() {
            self.batch.add(measurement);
            return None;
        }
        Some(self.parking.park(measurement, &self.conditions, &mut self.batch))
    }

    /// Decides about requests that have ended. Their samples must have been added before.
    pub(crate) fn decide(&mut self, ended: &[EndedRequest], cpu_percent: f64) {
        for request in ended {
            let keep = self.conditions.keep(request, cpu_percent);
            self.parking.decide(request, keep, &mut self.batch);
        }
    }

    /// Whether samples wait for the end of a request.
    pub(crate) fn awaits_requests(&self) -> bool {
        !self.parking.is_empty()
    }

    /// Adds what sampled allocations still hold.
    fn add_live_allocations(&mut self, monotonic_ns: u64) {
        self.live_allocations.retain(|token, _| heap::is_live(*token));
        for live in self.live_allocations.values() {
            for (profile, value) in [(ProfileType::InuseSpace, live.bytes), (ProfileType::InuseObjects, live.objects)] {
                let key = GroupKey { profile, stack: Arc::clone(&live.stack), span: live.span, tid: live.tid };
                self.batch.add(Measurement { key, value, monotonic_ns });
            }
        }
    }

    /// What the sampled allocations that have not been freed stand for.
    pub(crate) fn live_heap_bytes(&self) -> u64 {
        let live = self.live_allocations.iter().filter(|(token, _)| heap::is_live(**token));
        live.map(|(_, allocation)| allocation.bytes).sum()
    }

    /// About how large the current batch is.
    pub(crate) fn estimated_bytes(&self) -> usize {
        self.batch.estimated_bytes()
    }

    /// Ends the current batch and begins the next. `last`: nothing comes after, so nothing may wait.
    pub(crate) fn finish_batch(&mut self, monotonic_ns: u64, last: bool) -> Batch {
        self.parking.fold_forgotten(monotonic_ns, &mut self.batch);
        if last {
            self.parking.fold_all(&mut self.batch);
        }
        self.add_live_allocations(monotonic_ns);
        self.stacks.clear();
        let mut batch = std::mem::replace(&mut self.batch, Batch::starting_at(monotonic_ns));
        batch.end_monotonic_ns = monotonic_ns;
        batch
    }

    pub(crate) fn counts(&self) -> (AggregateCounts, ParkingCounts) {
        (self.counts, self.parking.counts())
    }
}
