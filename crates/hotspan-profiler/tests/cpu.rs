//! CPU profiles tell the truth: shares, totals, leaves, threads, and which mode took them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::SamplingMode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{Recording, Scatter, Seen, burn, crunch, one_at_a_time, thread_cpu_ns, total};

#[inline(never)]
fn three_parts(rounds: u64) -> u64 {
    crunch(rounds) ^ 3
}

#[inline(never)]
fn one_part(rounds: u64) -> u64 {
    crunch(rounds) ^ 1
}

/// Scenario: two functions share a thread 3:1, in pieces of irregular length.
/// Guarantee: the measured share lies within three sigma of the true one, which the thread clock tells.
#[test]
fn two_functions_three_to_one() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    let (mut scatter, mut three_ns, mut one_ns) = (Scatter(7), 0, 0);
    while three_ns + one_ns < 2_000_000_000 {
        let rounds = 20_000 + scatter.below(60_000);
        let start = thread_cpu_ns();
        std::hint::black_box(three_parts(3 * rounds));
        let middle = thread_cpu_ns();
        std::hint::black_box(one_part(rounds));
        three_ns += middle - start;
        one_ns += thread_cpu_ns() - middle;
    }
    let seen = recording.finish();
    let of = |name: &str| -> Vec<Seen> {
        seen.iter().filter(|sample| sample.profile == "cpu" && sample.mentions(name)).cloned().collect()
    };
    let (three, one) = (of("three_parts"), of("one_part"));
    let samples = (three.len() + one.len()) as f64;
    let true_share = three_ns as f64 / (three_ns + one_ns) as f64;
    let share = total(&three, "cpu") / (total(&three, "cpu") + total(&one, "cpu"));
    let sigma = (true_share * (1.0 - true_share) / samples).sqrt();
    assert!(samples > 100.0, "only {samples} samples");
    assert!((share - true_share).abs() < 3.0 * sigma, "{share:.4} measured, {true_share:.4} true, sigma {sigma:.4}");
}

/// Scenario: the same work, and the sum of weights compared with the thread's own clock.
/// Guarantee: a busy thread's weights add up to its CPU time, to within one period at each end.
#[test]
fn weights_add_up_to_the_thread_clock() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(100));
    let worker = std::thread::Builder::new().name("worker".into()).spawn(|| {
        burn(150);
        let before = thread_cpu_ns();
        burn(1_000);
        thread_cpu_ns() - before + 150_000_000
    });
    let used = worker.unwrap().join().unwrap() as f64;
    let seen = recording.finish();
    let measured = total(seen.iter().filter(|sample| sample.mentions("burn")), "cpu");
    // Two periods of 10 ms, and ten of the process timer's for the time before the thread was found.
    assert!((measured - used).abs() < 120e6, "{measured} measured, {used} used");
}

/// Scenario: a thread that spends nearly all its time inside the kernel.
/// Guarantee: system time is sampled like any other (profilers by perf events lose it).
#[test]
fn system_calls_are_not_undercounted() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    let worker = std::thread::spawn(|| {
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let mut buffer = vec![0u8; 1 << 20];
        let end = thread_cpu_ns() + 1_000_000_000;
        while thread_cpu_ns() < end {
            read_zeros(&zeros, &mut buffer);
        }
        thread_cpu_ns()
    });
    let used = worker.join().unwrap() as f64;
    let seen = recording.finish();
    let measured = total(seen.iter().filter(|sample| sample.mentions("read_zeros")), "cpu");
    assert!(measured > 0.85 * used && measured < 1.1 * used, "{measured} of {used}");
}

#[inline(never)]
fn read_zeros(mut file: &std::fs::File, buffer: &mut [u8]) {
    std::io::Read::read_exact(&mut file, buffer).unwrap();
}

/// Scenario: one function that never calls another.
/// Guarantee: it is the leaf of its samples, with its callers above it up to the thread's start.
#[test]
fn the_leaf_is_the_interrupted_function() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    std::thread::spawn(|| std::hint::black_box(leaf_caller())).join().unwrap();
    let seen = recording.finish();
    let inside: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("leaf_loop")).collect();
    assert!(inside.len() > 20, "{} samples", inside.len());
    for sample in &inside {
        assert!(sample.functions[0].contains("leaf_loop"), "{:?}", sample.functions);
        assert!(sample.mentions("leaf_caller") && sample.mentions("thread_start"), "{:?}", sample.functions);
    }
}

#[inline(never)]
fn leaf_caller() -> u64 {
    let mut sum = 1;
    while thread_cpu_ns() < 600_000_000 {
        sum += leaf_loop(std::hint::black_box(50_000_000));
    }
    sum
}

#[inline(never)]
fn leaf_loop(rounds: u64) -> u64 {
    let mut value = rounds;
    // SAFETY: arithmetic on a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("2: dec {0}", "jnz 2b", inout(reg) value);
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("2: subs {0}, {0}, #1", "b.ne 2b", inout(reg) value);
    }
    value
}

/// Scenario: four hundred threads that live for about three milliseconds each, none of which opted in.
/// Guarantee: their CPU time is estimated without bias, since the process timer stands in for threads without one, and
/// the total is that of the process.
#[test]
fn short_threads_are_seen() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    let used = AtomicU64::new(0);
    for _ in 0..400 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                short_work();
                used.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
            });
        });
    }
    let used = used.into_inner() as f64;
    recording.assert_totals_are_of_the_process(200);
    let seen = recording.finish();
    let short: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("short_work")).collect();
    let measured = total(short.iter().copied(), "cpu");
    let sigma = 1.0 / (short.len() as f64).sqrt();
    assert!((measured / used - 1.0).abs() < 4.0 * sigma, "{measured} of {used} in {} samples", short.len());
}

#[inline(never)]
fn short_work() {
    burn(3);
}

/// Scenario: a busy thread, and many that have just started and sleep when the busy one is signalled.
/// Guarantee: nobody's time is taken for theirs, though the kernel gives signals of the process to whom it likes.
#[test]
fn sleeping_newcomers_get_no_time_of_others() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(1000));
    let (until, used) = (Instant::now() + Duration::from_secs(2), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while Instant::now() < until {
                burn(10);
            }
        });
        while Instant::now() < until {
            scope.spawn(|| {
                sleep_young();
                used.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
            });
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    recording.assert_totals_are_of_the_process(1000);
    let measured = total(recording.finish().iter().filter(|sample| sample.mentions("sleep_young")), "cpu");
    // Some two hundred threads that use a tenth of a millisecond each: a few samples of 4 ms, if any.
    let used = used.into_inner() as f64;
    assert!(measured < used + 50e6, "{measured} of {used}");
}

#[inline(never)]
fn sleep_young() {
    std::thread::sleep(Duration::from_millis(100));
}

/// A thread that works when it is told to, and then waits to be let go: its name and its clock can be read meanwhile.
struct Worker {
    begin: mpsc::Sender<()>,
    used: mpsc::Receiver<u64>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn waiting_to_burn(milliseconds: u64) -> Worker {
        let (begin, begins) = mpsc::channel();
        let (tell, used) = mpsc::channel();
        let work = move || {
            begins.recv().unwrap();
            let before = thread_cpu_ns();
            burn(milliseconds);
            tell.send(thread_cpu_ns() - before).unwrap();
            // An error: the other end is gone, which is the sign to end.
            let _ = begins.recv();
        };
        let thread = std::thread::Builder::new().name("busy".into()).spawn(work).unwrap();
        Worker { begin, used, thread }
    }

    /// Lets it work, waits until the profiler has seen as much, and ends it. Returns the CPU nanoseconds that it used.
    fn work_and_be_seen(self, recording: &Recording) -> f64 {
        self.begin.send(()).unwrap();
        let used = self.used.recv().unwrap();
        // On a starved machine the monitor comes late. What it has not seen yet it still sees, while the thread lives.
        let deadline = Instant::now() + Duration::from_secs(30);
        while of_busy_thread(&recording.seen_so_far()).0 < used.saturating_sub(ERROR_AT_THE_ENDS_NS) as f64 {
            assert!(Instant::now() < deadline, "{:?}", recording.profiler.status());
            recording.profiler.flush();
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.begin);
        self.thread.join().unwrap();
        used as f64
    }
}

/// At 100 Hz a sample stands for 10 ms: one at each end of the work may be missed or count too much, and periods are
/// varied by a tenth.
const ERROR_AT_THE_ENDS_NS: u64 = 23_000_000;

/// What a busy thread's samples come to, and whether any has a stack.
fn of_busy_thread(seen: &[Seen]) -> (f64, bool) {
    let busy = seen.iter().filter(|sample| sample.thread_name == "busy");
    (total(busy, "cpu"), seen.iter().any(|sample| sample.mentions("burn")))
}

/// Scenario: each mode is asked for, and a thread that was there before works.
/// Guarantee: the mode that runs is the one reported; all account for the thread's clock but for the ends of its work,
/// the last mode without stacks.
#[test]
fn every_mode_accounts_for_cpu_time() {
    let _turn = one_at_a_time();
    for mode in [SamplingMode::ThreadTimers, SamplingMode::SignalRotation, SamplingMode::ClocksOnly] {
        let worker = Worker::waiting_to_burn(600);
        let recording = Recording::start(|builder| builder.cpu_hertz(100).best_mode(mode));
        let used = worker.work_and_be_seen(&recording);
        assert_eq!(recording.profiler.status().mode, mode);
        let (measured, has_stacks) = of_busy_thread(&recording.finish());
        assert_eq!(has_stacks, mode != SamplingMode::ClocksOnly);
        assert!((measured - used).abs() < ERROR_AT_THE_ENDS_NS as f64, "{mode:?}: {measured} of {used}");
    }
}

/// Scenario: without timers, a thread starts to work before the monitor has had a chance to find it.
/// Guarantee: what it used until then counts as well, since no process timer has counted it.
#[test]
fn threads_found_late_are_accounted_for_without_timers() {
    let _turn = one_at_a_time();
    for mode in [SamplingMode::SignalRotation, SamplingMode::ClocksOnly] {
        let recording = Recording::start(|builder| builder.cpu_hertz(100).best_mode(mode));
        let used = Worker::waiting_to_burn(300).work_and_be_seen(&recording);
        let (measured, _) = of_busy_thread(&recording.finish());
        assert!((measured - used).abs() < ERROR_AT_THE_ENDS_NS as f64, "{mode:?}: {measured} of {used}");
    }
}

/// Scenario: samples carry the id and name of their thread, and the time they were taken.
/// Guarantee: both are right, and times lie within the test.
#[test]
fn samples_know_their_thread_and_time() {
    let _turn = one_at_a_time();
    let began = support::clock(libc::CLOCK_REALTIME);
    let recording = Recording::start(|builder| builder.cpu_hertz(100));
    let (done, burned) = std::sync::mpsc::channel();
    let worker = std::thread::Builder::new().name("named-thread".into()).spawn(move || {
        burn(400);
        done.send(()).unwrap();
        // SAFETY: gettid has no preconditions.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        // Alive while the batch ends, so that its name can be read.
        (tid, std::thread::park())
    });
    let worker = worker.unwrap();
    burned.recv().unwrap();
    recording.profiler.flush();
    worker.thread().unpark();
    let (tid, ()) = worker.join().unwrap();
    let seen = recording.finish();
    let ended = support::clock(libc::CLOCK_REALTIME);
    let named: Vec<&Seen> = seen.iter().filter(|sample| sample.thread_name == "named-thread").collect();
    assert!(named.len() > 5);
    assert!(named.iter().all(|sample| sample.thread_id == tid));
    assert!(named.iter().all(|sample| sample.time_unix_nano.is_some_and(|time| began <= time && time <= ended)));
}
