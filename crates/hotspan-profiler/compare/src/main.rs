//! The cost of one sample by stack depth: an empty handler, this crate, pprof 0.15. One process, one run.
//!
//! `cargo run --release --manifest-path crates/hotspan-profiler/compare/Cargo.toml`
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

fn main() {
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
    println!("{:>8} {:>14} {:>16} {:>12}", "depth", "empty handler", "hotspan-profiler", "pprof 0.15");
    for (index, depth) in depths.iter().enumerate() {
        println!("{depth:>8} {:>11.0} ns {:>13.0} ns {:>9.0} ns", empty[index], ours[index], pprof[index]);
    }
}
