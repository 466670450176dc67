//! What the profiler costs: per sample by stack depth, and per unit of work with sampling on and off.
//!
//! `cargo run --release -p hotspan-profiler --example overhead`
//!
//! The second part follows three rules that make it believable on a noisy machine: it compares CPU time per unit of
//! work, never wall time; it alternates on and off in random order and looks at pairs; and it runs with a negative
//! control (nothing is toggled) and a positive one (one percent of extra work), which must come out as 0 and 1 %.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hotspan_profiler::{Ctx, Profiler};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and writable.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sends a queued signal with a value to this thread, which is handled before the call returns.
fn signal_self(signal: libc::c_int, value: u64) {
    let mut info = [0u64; 16];
    info[0] = signal as u64;
    info[1] = u64::from(libc::SI_QUEUE as u32);
    info[3] = value;
    // SAFETY: the layout is that of a queued signal's siginfo; the receiver is this thread, which has a handler.
    unsafe {
        let tid = libc::syscall(libc::SYS_gettid);
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), tid, signal, &info);
    }
}

extern "C" fn empty_handler(_signal: libc::c_int) {}

/// Runs `leaf` below `depth` calls.
#[inline(never)]
fn at_depth(depth: u32, leaf: &mut dyn FnMut()) -> u32 {
    if depth == 0 {
        leaf();
        return 0;
    }
    black_box(at_depth(black_box(depth - 1), leaf)) + 1
}

/// Median nanoseconds of one signal at this depth, in small groups so that the ring is emptied in between.
fn nanoseconds_per_signal(signal: libc::c_int, value: u64, depth: u32) -> f64 {
    let mut groups: Vec<f64> = Vec::new();
    at_depth(depth, &mut || {
        for group in 0..25 {
            std::thread::sleep(Duration::from_millis(210));
            let start = clock(libc::CLOCK_THREAD_CPUTIME_ID);
            for _ in 0..15 {
                signal_self(signal, value);
            }
            let each = (clock(libc::CLOCK_THREAD_CPUTIME_ID) - start) as f64 / 15.0;
            if group > 2 {
                groups.push(each);
            }
        }
    });
    groups.sort_by(f64::total_cmp);
    groups[groups.len() / 2]
}

fn cost_per_sample() {
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(libc::SIGUSR2, empty_handler as extern "C" fn(libc::c_int) as usize) };
    let profiler = Profiler::builder("overhead").ignore_environment().max_stack_depth(256).start().unwrap();
    // The value that a timer of the first watched thread (this one) carries.
    let own_timer = (0x4853u64 << 48) | (1 << 40);
    let before = {
        profiler.flush();
        profiler.status().samples
    };
    println!("{:>10} {:>14} {:>14} {:>14}", "depth", "empty handler", "our handler", "difference");
    for depth in [1, 30, 100] {
        let empty = nanoseconds_per_signal(libc::SIGUSR2, 1, depth);
        let ours = nanoseconds_per_signal(libc::SIGPROF, own_timer, depth);
        println!("{depth:>10} {empty:>11.0} ns {ours:>11.0} ns {:>11.0} ns", ours - empty);
    }
    profiler.flush();
    let status = profiler.status();
    println!("{} samples taken, {} dropped\n", status.samples - before, status.dropped_samples);
}

/// One unit: parse and sum numbers inside a span, as a small request would.
#[inline(never)]
fn unit_of_work(request: &Ctx, text: &str) -> u64 {
    let _inside = request.attach();
    text.split(',').map(|number| number.parse::<u64>().unwrap_or(0)).fold(0, u64::wrapping_add)
}

struct Phase {
    cpu_ns: u64,
    units: u64,
}

impl Phase {
    fn cost(&self) -> f64 {
        self.cpu_ns as f64 / self.units as f64
    }
}

fn run_phase(request: &Ctx, text: &str, length: Duration, extra_percent: u64) -> Phase {
    // The whole process: the monitor and the export thread belong to the cost.
    let start = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
    let until = Instant::now() + length;
    let (mut units, mut repeats) = (0u64, 0u64);
    while Instant::now() < until {
        for _ in 0..100 {
            black_box(unit_of_work(request, black_box(text)));
        }
        for _ in 0..extra_percent {
            black_box(unit_of_work(request, black_box(text)));
            repeats += 1;
        }
        units += 100;
    }
    black_box(repeats);
    Phase { cpu_ns: clock(libc::CLOCK_PROCESS_CPUTIME_ID) - start, units }
}

fn paired(name: &str, pairs: usize, profiler: &Profiler, toggles: bool, extra_percent: u64) {
    let request = Ctx::for_request([1; 16], [2; 8]);
    let text = (0..400u64).map(|n| (n * 7_919).to_string()).collect::<Vec<_>>().join(",");
    let length = Duration::from_millis(200);
    let mut seed = 42u64;
    let mut ratios = Vec::new();
    for _ in 0..pairs {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let on_first = seed >> 63 == 1;
        let mut cost = [0.0; 2];
        for on in [on_first, !on_first] {
            if toggles {
                if on {
                    profiler.resume();
                } else {
                    profiler.pause();
                }
                profiler.flush();
            }
            cost[usize::from(on)] = run_phase(&request, &text, length, if on { extra_percent } else { 0 }).cost();
        }
        ratios.push(cost[1] / cost[0] - 1.0);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        100.0 * values[values.len() / 2]
    };
    let centre = median(&mut ratios.clone());
    // Resampling the pairs says how far the median may be off.
    let mut medians: Vec<f64> = (0..500)
        .map(|_| {
            let mut drawn: Vec<f64> = (0..ratios.len())
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ratios[(seed >> 33) as usize % ratios.len()]
                })
                .collect();
            median(&mut drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let (low, high) = (medians[medians.len() / 40], medians[medians.len() - 1 - medians.len() / 40]);
    println!("{name:>28}: {centre:+.3} % of CPU per unit of work (95 %: {low:+.3} to {high:+.3}), {pairs} pairs");
}

/// What the profiler itself says it used, after half a minute of steady work with the usual settings.
fn own_account() {
    let profiler = Profiler::builder("overhead").ignore_environment().on_upload(|_| {}).start().unwrap();
    let (request, text) = (Ctx::for_request([1; 16], [2; 8]), "1,2,3,4,5,6,7,8,9".repeat(40));
    run_phase(&request, &text, Duration::from_secs(32), 0);
    profiler.flush();
    let status = profiler.status();
    let percent = |cpu: Duration| 100.0 * cpu.as_secs_f64() / status.process_cpu.as_secs_f64();
    println!(
        "steady state at 100 Hz, {} samples, {:.1} s of CPU: handler {:.3} %, monitor {:.3} %, export {:.3} %, all {:.3} %\n",
        status.samples,
        status.process_cpu.as_secs_f64(),
        percent(status.handler_cpu),
        percent(status.monitor_cpu),
        percent(status.export_cpu),
        status.overhead_percent()
    );
}

fn main() {
    let pairs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    cost_per_sample();
    own_account();
    let start = |hertz| {
        let builder = Profiler::builder("overhead").ignore_environment().cpu_hertz(hertz).on_upload(|_| {});
        builder.paused().start().unwrap()
    };
    for hertz in [100, 250] {
        let profiler = start(hertz);
        paired(&format!("sampling at {hertz} Hz"), pairs, &profiler, true, 0);
    }
    let profiler = start(100);
    paired("negative control", pairs, &profiler, false, 0);
    paired("positive control (+1 %)", pairs, &profiler, false, 1);
}
