//! What a problem costs. It is to weigh the same on a slow machine, in a build without optimisation, and here.

use std::time::Duration;

use hotspan_profiler::RuntimeStatistics;

/// What some work costs on the CPU.
pub(super) fn cost_of(work: impl Fn()) -> Duration {
    const TRIALS: u32 = 3;
    let before = RuntimeStatistics::now().cpu;
    (0..TRIALS).for_each(|_| work());
    let cost = RuntimeStatistics::now().cpu.saturating_sub(before) / TRIALS;
    cost.max(Duration::from_micros(1))
}

/// How often some work is done for this much time on the CPU; at least once.
pub(super) fn times_costing(cost: Duration, work: impl Fn()) -> f64 {
    (cost.as_secs_f64() / cost_of(work).as_secs_f64()).max(1.0)
}
