//! This crate, pprof 0.15 and pyroscope 2.1 in one process and one run: the cost of one sample by stack depth, and the
//! CPU time of a unit of work with each of them on and off.
//!
//! `cargo run --release --manifest-path crates/hotspan-profiler/compare/Cargo.toml -- [PAIRS]`
//!
//! Pairs are interleaved in random order, last as long in CPU time (not wall time, which a busy machine distorts), and
//! come with a negative control (nothing is toggled) and a positive one (one percent more work).
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
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

#[inline(never)]
fn at_depth(depth: u32, leaf: &mut dyn FnMut()) -> u32 {
    if depth == 0 {
        leaf();
        return 0;
    }
    black_box(at_depth(black_box(depth - 1), leaf)) + 1
}

fn nanoseconds_per_signal(signal: libc::c_int, value: u64, depth: u32) -> f64 {
    let mut groups: Vec<f64> = Vec::new();
    at_depth(depth, &mut || {
        for group in 0..20 {
            // Our rings are emptied in between.
            std::thread::sleep(Duration::from_millis(210));
            let start = thread_cpu_ns();
            (0..15).for_each(|_| signal_self(signal, value));
            if group > 2 {
                groups.push((thread_cpu_ns() - start) as f64 / 15.0);
            }
        }
    });
    groups.sort_by(f64::total_cmp);
    groups[groups.len() / 2]
}

/// Something that can be on while work is done.
trait Toggled {
    fn on(&mut self);
    fn off(&mut self);
    /// Percent of extra work while it is on.
    fn extra_percent(&self) -> u64 {
        0
    }
}

struct Nothing;

impl Toggled for Nothing {
    fn on(&mut self) {}
    fn off(&mut self) {}
}

struct OnePercentMore;

impl Toggled for OnePercentMore {
    fn on(&mut self) {}
    fn off(&mut self) {}
    fn extra_percent(&self) -> u64 {
        1
    }
}

struct Hotspan(hotspan_profiler::Profiler);

impl Toggled for Hotspan {
    fn on(&mut self) {
        self.0.resume();
        self.0.flush();
    }
    fn off(&mut self) {
        self.0.pause();
        self.0.flush();
    }
}

#[derive(Default)]
struct Pprof(Option<pprof::ProfilerGuard<'static>>);

impl Toggled for Pprof {
    fn on(&mut self) {
        self.0 = Some(pprof::ProfilerGuard::new(100).unwrap());
    }
    fn off(&mut self) {
        self.0 = None;
    }
}

type PyroscopeBackend = pyroscope::backend::BackendImpl<pyroscope::backend::BackendReady>;

#[derive(Default)]
struct Pyroscope(Option<PyroscopeBackend>);

impl Toggled for Pyroscope {
    fn on(&mut self) {
        use pyroscope::backend::{BackendConfig, PprofConfig, pprof_backend};
        self.0 = Some(pprof_backend(PprofConfig::default(), BackendConfig::default()).initialize().unwrap());
    }
    fn off(&mut self) {
        if let Some(backend) = self.0.take() {
            backend.shutdown().unwrap();
        }
    }
}

/// One unit: parse and sum numbers, twenty calls deep, as a small request would.
#[inline(never)]
fn unit_of_work(text: &str) -> u64 {
    let mut sum = 0;
    at_depth(20, &mut || {
        sum = text.split(',').map(|number| number.parse::<u64>().unwrap_or(0)).fold(0, u64::wrapping_add);
    });
    sum
}

/// CPU nanoseconds of the process for each unit of work.
fn cost_of_work(text: &str, extra_percent: u64) -> f64 {
    const PHASE_NS: u64 = 250_000_000;
    let process = process_cpu_ns();
    let until = thread_cpu_ns() + PHASE_NS;
    let mut units = 0u64;
    while thread_cpu_ns() < until {
        (0..100 + extra_percent).for_each(|_| drop(black_box(unit_of_work(black_box(text)))));
        units += 100;
    }
    (process_cpu_ns() - process) as f64 / units as f64
}

fn process_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A generator that is good enough to shuffle.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median change in percent, and the interval that resampling the pairs gives.
fn summary(ratios: &[f64], random: &mut Random) -> (f64, f64, f64) {
    let centre = median(&mut ratios.to_vec());
    let mut medians: Vec<f64> = (0..1000)
        .map(|_| median(&mut (0..ratios.len()).map(|_| ratios[random.next() % ratios.len()]).collect::<Vec<_>>()))
        .collect();
    medians.sort_by(f64::total_cmp);
    (100.0 * centre, 100.0 * medians[25], 100.0 * medians[974])
}

/// Round after round, each of them once on and once off, so that whatever the machine does meets all of them.
fn paired(pairs: usize) {
    let ours = hotspan_profiler::Profiler::builder("compare").ignore_environment().on_upload(|_| {}).paused();
    let mut toggled: Vec<(&str, Box<dyn Toggled>)> = vec![
        ("hotspan-profiler, 100 Hz", Box::new(Hotspan(ours.start().unwrap()))),
        ("pprof 0.15, 100 Hz", Box::new(Pprof::default())),
        ("pyroscope 2.1, 100 Hz", Box::new(Pyroscope::default())),
        ("negative control", Box::new(Nothing)),
        ("positive control (+1 %)", Box::new(OnePercentMore)),
    ];
    let text = (0..400u64).map(|n| (n * 7_919).to_string()).collect::<Vec<_>>().join(",");
    let mut random = Random(42);
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); toggled.len()];
    for _ in 0..pairs {
        for (index, (_, toggle)) in toggled.iter_mut().enumerate() {
            let on_first = random.next() % 2 == 0;
            let mut cost = [0.0; 2];
            for is_on in [on_first, !on_first] {
                if is_on {
                    toggle.on();
                }
                cost[usize::from(is_on)] = cost_of_work(&text, if is_on { toggle.extra_percent() } else { 0 });
                if is_on {
                    toggle.off();
                }
            }
            ratios[index].push(cost[1] / cost[0] - 1.0);
        }
    }
    println!("\nCPU time per unit of work, on against off, {pairs} pairs each, interleaved:");
    for ((name, _), ratios) in toggled.iter().zip(&ratios) {
        let (centre, low, high) = summary(ratios, &mut random);
        println!("{name:>26}: {centre:+.2} % (95 %: {low:+.2} to {high:+.2})");
    }
}

fn main() {
    let pairs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(libc::SIGUSR2, empty_handler as extern "C" fn(libc::c_int) as usize) };
    let depths = [1, 30, 100];
    let empty = depths.map(|depth| nanoseconds_per_signal(libc::SIGUSR2, 1, depth));
    let ours = {
        let builder = hotspan_profiler::Profiler::builder("compare").ignore_environment().max_stack_depth(256);
        let _profiler = builder.start().unwrap();
        let own_timer = (0x4853u64 << 48) | (1 << 40);
        depths.map(|depth| nanoseconds_per_signal(libc::SIGPROF, own_timer, depth))
    };
    let pprof = {
        let _guard = pprof::ProfilerGuard::new(1).unwrap();
        depths.map(|depth| nanoseconds_per_signal(libc::SIGPROF, 1, depth))
    };
    let pyroscope = {
        let mut backend = Pyroscope::default();
        backend.on();
        let cost = depths.map(|depth| nanoseconds_per_signal(libc::SIGPROF, 1, depth));
        backend.off();
        cost
    };
    println!(
        "{:>8} {:>14} {:>16} {:>12} {:>14}",
        "depth", "empty handler", "hotspan-profiler", "pprof 0.15", "pyroscope 2.1"
    );
    for (index, depth) in depths.iter().enumerate() {
        println!(
            "{depth:>8} {:>11.0} ns {:>13.0} ns {:>9.0} ns {:>11.0} ns",
            empty[index], ours[index], pprof[index], pyroscope[index]
        );
    }
    paired(pairs);
}
