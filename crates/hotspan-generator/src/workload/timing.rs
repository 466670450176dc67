//! When each span of a trace runs, waits for its children, and spends the time of planted causes.

use super::shape::{Draft, Role};
use crate::fleet::PlantedOperation;
use crate::random::Random;

/// A stretch of time, the end not included.
pub(super) type Stretch = (i64, i64);

/// When a span runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Timing<'w> {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Where it runs itself: outside its children and outside planted time.
    pub(super) own: Vec<Stretch>,
    /// Planted causes, each with its stretch, and whether this request is a slow one.
    pub(super) planted: Vec<PlantedStretch<'w>>,
}

#[derive(Debug, Clone)]
pub(super) struct PlantedStretch<'w> {
    pub(super) cause: &'w PlantedOperation,
    pub(super) stretch: Stretch,
    pub(super) slow: bool,
}

/// What a span needs, before it is known when it starts.
struct Plan<'w> {
    own: i64,
    duration: i64,
    parallel: bool,
    planted: Vec<(&'w PlantedOperation, i64, bool)>,
}

/// Longest time that an operation takes by itself.
const MAX_OWN_NANOS: f64 = 12e9;

/// Times for all spans of a trace that starts at `start`.
pub(super) fn run<'w>(spans: &[Draft<'w>], start: i64, random: &mut Random) -> Vec<Timing<'w>> {
    let mut plans: Vec<Plan<'w>> = spans.iter().map(|span| plan(span, random)).collect();
    // Children stand after their parents, so their durations are known when a parent's is summed up.
    for number in (0..spans.len()).rev() {
        let children = spans[number].children.iter().map(|child| plans[*child].duration);
        let waited = if plans[number].parallel { children.max().unwrap_or(0) } else { children.sum() };
        let planted: i64 = plans[number].planted.iter().map(|(_, nanos, _)| nanos).sum();
        plans[number].duration = plans[number].own + waited + planted;
    }
    let mut timings = vec![Timing::default(); spans.len()];
    timings[0].start = start;
    for (number, span) in spans.iter().enumerate() {
        place(span, number, &plans, &mut timings, random);
    }
    timings
}

fn plan<'w>(span: &Draft<'w>, random: &mut Random) -> Plan<'w> {
    let own = match span.role {
        // There and back on the network.
        Role::Calls => random.log_normal(0.6e6, 0.7),
        Role::Runs => random.log_normal(span.operation.median_nanos, 1.1),
    };
    let mut planted = Vec::new();
    if span.role == Role::Runs {
        for cause in &span.operation.planted {
            let slow = random.chance(cause.slow_share);
            let nanos = if slow { cause.slow_nanos } else { cause.fast_nanos };
            if nanos > 0 {
                planted.push((cause, random.log_normal(nanos as f64, 0.1) as i64, slow));
            }
        }
    }
    let parallel = span.children.len() > 1 && random.chance(0.2);
    Plan { own: own.clamp(20_000.0, MAX_OWN_NANOS) as i64, duration: 0, parallel, planted }
}

/// Lays out a span whose start is known, and so fixes the starts of its children.
fn place<'w>(span: &Draft<'w>, number: usize, plans: &[Plan<'w>], timings: &mut [Timing<'w>], random: &mut Random) {
    let plan = &plans[number];
    let children = &span.children;
    let pieces = if plan.parallel { 2 } else { children.len() + 1 };
    let mut left = plan.own;
    let mut clock = timings[number].start;
    let mut own = Vec::with_capacity(pieces);
    for piece in 0..pieces {
        // A random share of what is left, and all of it at the end.
        let last = piece + 1 == pieces;
        let nanos = if last { left } else { (left as f64 * random.unit() * 2.0 / (pieces - piece) as f64) as i64 };
        let nanos = nanos.clamp(0, left);
        left -= nanos;
        own.push((clock, clock + nanos));
        clock += nanos;
        if last {
            break;
        }
        if plan.parallel {
            for child in children {
                timings[*child].start = clock;
            }
            clock += children.iter().map(|child| plans[*child].duration).max().unwrap_or(0);
        } else {
            timings[children[piece]].start = clock;
            clock += plans[children[piece]].duration;
        }
    }
    let mut planted = Vec::with_capacity(plan.planted.len());
    for (cause, nanos, slow) in &plan.planted {
        planted.push(PlantedStretch { cause, stretch: (clock, clock + nanos), slow: *slow });
        clock += nanos;
    }
    let timing = &mut timings[number];
    (timing.end, timing.own, timing.planted) = (clock, own, planted);
}
