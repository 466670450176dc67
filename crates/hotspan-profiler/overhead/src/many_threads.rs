//! What the monitor costs in a process of many threads: most of them wait, as in a service, and some come and go.

use crate::clocks::process_cpu_ns;
use crate::work::{numbers, unit_of_work};
use hotspan_profiler::{Ctx, Profiler};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WATCHED_FOR: Duration = Duration::from_secs(10);
/// How long a thread waits between two units of work.
const PAUSE: Duration = Duration::from_millis(50);

/// One process: so many threads that stay, and so many a second that live for a moment.
#[derive(Clone, Copy)]
struct Crowd {
    staying: usize,
    passing_per_second: u32,
    wall_hertz: u32,
}

const CROWDS: [Crowd; 6] = [
    Crowd { staying: 2, passing_per_second: 0, wall_hertz: 0 },
    Crowd { staying: 50, passing_per_second: 0, wall_hertz: 0 },
    Crowd { staying: 500, passing_per_second: 0, wall_hertz: 0 },
    Crowd { staying: 50, passing_per_second: 10, wall_hertz: 0 },
    Crowd { staying: 500, passing_per_second: 10, wall_hertz: 0 },
    Crowd { staying: 50, passing_per_second: 0, wall_hertz: 10 },
];

/// Prints the monitor's CPU time for each crowd.
pub fn print() {
    println!("the monitor among many threads, {} s each, at 100 Hz:", WATCHED_FOR.as_secs());
    CROWDS.into_iter().for_each(print_crowd);
    println!();
}

fn print_crowd(crowd: Crowd) {
    let settings = Profiler::builder("crowd").ignore_environment().wall_hertz(crowd.wall_hertz).on_upload(|_| {});
    let profiler = settings.start().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..crowd.staying {
            scope.spawn(|| stay(&over));
        }
        // Threads that start are found and armed once; that is no cost of theirs being there.
        std::thread::sleep(Duration::from_secs(1));
        profiler.flush();
        let (before, process_before, began) = (profiler.status(), process_cpu_ns(), Instant::now());
        while began.elapsed() < WATCHED_FOR {
            match 1_000_000u64.checked_div(u64::from(crowd.passing_per_second)) {
                Some(gap) => {
                    scope.spawn(|| black_box(unit_of_work(&numbers())));
                    std::thread::sleep(Duration::from_micros(gap));
                }
                None => std::thread::sleep(PAUSE),
            }
        }
        profiler.flush();
        let (after, seconds) = (profiler.status(), began.elapsed().as_secs_f64());
        over.store(true, Ordering::Relaxed);
        let process = (process_cpu_ns() - process_before) as f64 / 1e9;
        let monitor = (after.monitor_cpu - before.monitor_cpu).as_secs_f64();
        println!(
            "{:>4} threads, {:>2} a second come and go, wall clock at {:>2} Hz: {:.2} ms a second, {:.3} % of a core; the process used {:.1} %",
            crowd.staying,
            crowd.passing_per_second,
            crowd.wall_hertz,
            1e3 * monitor / seconds,
            100.0 * monitor / seconds,
            100.0 * process / seconds
        );
    });
}

/// A thread of a pool: short pieces of work inside a span, and waiting in between.
fn stay(over: &AtomicBool) {
    let text = numbers();
    let request = Ctx::for_request([1; 16], [2; 8]);
    while !over.load(Ordering::Relaxed) {
        {
            let _inside = request.attach();
            black_box(unit_of_work(&text));
        }
        std::thread::sleep(PAUSE);
    }
}
