//! The work that is profiled.

use std::hint::black_box;

/// Runs `leaf` below `depth` calls.
#[inline(never)]
pub fn at_depth(depth: u32, leaf: &mut dyn FnMut()) -> u32 {
    if depth == 0 {
        leaf();
        return 0;
    }
    black_box(at_depth(black_box(depth - 1), leaf)) + 1
}

/// What a unit of work parses.
pub fn numbers() -> String {
    (0..400u64).map(|n| (n * 7_919).to_string()).collect::<Vec<_>>().join(",")
}

/// One unit: parse and sum numbers, twenty calls deep, as a small request would.
#[inline(never)]
pub fn unit_of_work(text: &str) -> u64 {
    let mut sum = 0;
    at_depth(20, &mut || {
        sum = text.split(',').map(|number| number.parse::<u64>().unwrap_or(0)).fold(0, u64::wrapping_add);
    });
    sum
}

/// Works until the calling thread has used this much CPU time, with so much more work than is counted. Returns the units.
pub fn work_for(cpu_ns: u64, text: &str, extra_percent: u64) -> u64 {
    let until = crate::clocks::thread_cpu_ns() + cpu_ns;
    let mut units = 0;
    while crate::clocks::thread_cpu_ns() < until {
        for _ in 0..100 + extra_percent {
            black_box(unit_of_work(black_box(text)));
        }
        units += 100;
    }
    units
}
