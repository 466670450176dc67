//! The cost of one sample: a signal to oneself, its handler, and the return, by stack depth.

use crate::Rival;
use crate::clocks::thread_cpu_ns;
use crate::work::at_depth;
use hotspan_profiler::Profiler;
use std::time::Duration;

const DEPTHS: [u32; 3] = [1, 30, 100];
/// The value that a timer of the first watched thread (this one) carries.
const OWN_TIMER: u64 = (0x4853 << 48) | (1 << 40);

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

/// Median nanoseconds of one signal, in small groups so that our ring is emptied in between.
fn nanoseconds_per_signal(signal: libc::c_int, value: u64, depth: u32) -> f64 {
    let mut groups: Vec<f64> = Vec::new();
    at_depth(depth, &mut || {
        for group in 0..25 {
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

/// Measures and prints the table.
pub fn print(rival: &mut Rival) {
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(libc::SIGUSR2, empty_handler as extern "C" fn(libc::c_int) as usize) };
    let at_depths = |signal, value| DEPTHS.map(|depth| nanoseconds_per_signal(signal, value, depth));
    let empty = at_depths(libc::SIGUSR2, 1);
    let profiler = Profiler::builder("overhead").ignore_environment().max_stack_depth(256).start().unwrap();
    profiler.flush();
    let before = profiler.status().samples;
    let ours = at_depths(libc::SIGPROF, OWN_TIMER);
    profiler.flush();
    let status = profiler.status();
    assert!(status.samples > before, "none of the signals became a sample: {status:?}");
    drop(profiler);
    rival.profiler.on();
    let theirs = at_depths(libc::SIGPROF, 1);
    rival.profiler.off();
    println!("one sample: {:>8} {:>14} {:>16} {:>14}", "depth", "empty handler", "hotspan-profiler", rival.name);
    for (index, depth) in DEPTHS.iter().enumerate() {
        println!("{depth:>20} {:>11.0} ns {:>13.0} ns {:>11.0} ns", empty[index], ours[index], theirs[index]);
    }
    println!("ours took {} samples of them and dropped {}\n", status.samples - before, status.dropped_samples);
}
