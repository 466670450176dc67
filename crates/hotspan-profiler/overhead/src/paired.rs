//! CPU time per unit of work, on against off.
//!
//! Believable on a noisy machine for three reasons: it compares CPU time per unit of work; on and off follow each other in
//! random order, and only pairs are compared; and a negative control (nothing is toggled) and a positive one (one percent of
//! extra work) run in between, which must come out as 0 and 1 %.

use crate::Rival;
use crate::clocks::process_cpu_ns;
use crate::toggled::{Hotspan, Nothing, OnePercentMore, Toggled};
use crate::work::{numbers, work_for};

const PHASE_NS: u64 = 100_000_000;

/// A generator that is good enough to shuffle.
pub struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    pub fn with_seed(seed: u64) -> Random {
        Random(seed)
    }

    /// The next one.
    pub fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize
    }
}

/// CPU nanoseconds of the process for each unit of work.
fn cost_of_work(text: &str, extra_percent: u64) -> f64 {
    let before = process_cpu_ns();
    let units = work_for(PHASE_NS, text, extra_percent);
    (process_cpu_ns() - before) as f64 / units as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median change in percent, and the interval that resampling the pairs gives.
pub fn summary(ratios: &[f64], random: &mut Random) -> String {
    let centre = median(&mut ratios.to_vec());
    let mut medians: Vec<f64> = (0..1000)
        .map(|_| median(&mut (0..ratios.len()).map(|_| ratios[random.next() % ratios.len()]).collect::<Vec<_>>()))
        .collect();
    medians.sort_by(f64::total_cmp);
    format!("{:+.2} % (95 %: {:+.2} to {:+.2})", 100.0 * centre, 100.0 * medians[25], 100.0 * medians[974])
}

/// How much `measure` gives while it is on, against off, minus one.
pub fn pair(toggle: &mut dyn Toggled, random: &mut Random, mut measure: impl FnMut(u64) -> f64) -> f64 {
    let on_first = random.next() % 2 == 0;
    let mut cost = [0.0; 2];
    for is_on in [on_first, !on_first] {
        if is_on {
            toggle.on();
        }
        cost[usize::from(is_on)] = measure(if is_on { toggle.extra_percent() } else { 0 });
        if is_on {
            toggle.off();
        }
    }
    cost[1] / cost[0] - 1.0
}

/// Round after round, each of them once on and once off, so that whatever the machine does meets all of them.
pub fn print(pairs: usize, rival: Rival) {
    let mut toggled: Vec<(&str, Box<dyn Toggled>)> = vec![
        ("hotspan-profiler", Box::new(Hotspan::new(100))),
        (rival.name, rival.profiler),
        ("negative control", Box::new(Nothing)),
        ("positive control (+1 %)", Box::new(OnePercentMore)),
    ];
    let (text, mut random) = (numbers(), Random::with_seed(42));
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); toggled.len()];
    for _ in 0..pairs {
        for ((_, toggle), ratios) in toggled.iter_mut().zip(&mut ratios) {
            ratios.push(pair(toggle.as_mut(), &mut random, |extra_percent| cost_of_work(&text, extra_percent)));
        }
    }
    println!("CPU time per unit of work, on at 100 Hz against off, {pairs} pairs each, interleaved:");
    for ((name, _), ratios) in toggled.iter().zip(&ratios) {
        println!("{name:>26}: {}", summary(ratios, &mut random));
    }
    println!();
}
