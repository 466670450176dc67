//! The monitor sleeps while nothing is expected of it, and is there at once when something is.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::{Duration, Instant};
use support::{Recording, Seen, burn, one_at_a_time};

/// How often the monitor has gone to sleep since it started.
fn sleeps_of_monitor() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let is_monitor = |thread: &std::path::PathBuf| {
        std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim_end() == "hotspan-monitor")
    };
    let status = std::fs::read_to_string(threads.into_iter().find(is_monitor).unwrap().join("status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    count.trim().parse().unwrap()
}

/// Whether new threads make themselves heard: since Linux 6.4 the process timer meets them. Before, they are looked for.
fn newcomers_are_announced() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 4)
}

/// Scenario: a thread works for seconds at 100 Hz, while no other comes or goes.
/// Guarantee: the monitor wakes about once a second, and all samples are there all the same.
#[test]
fn a_steady_process_is_left_alone() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(100));
    burn(500);
    let (before, began) = (sleeps_of_monitor(), Instant::now());
    burn(4_000);
    let (sleeps, seconds) = (sleeps_of_monitor() - before, began.elapsed().as_secs_f64());
    recording.assert_totals_are_of_the_process(100);
    assert_eq!(recording.profiler.status().dropped_samples, 0);
    recording.finish();
    if newcomers_are_announced() {
        // One for each second; one more where a lock was not free, and what the threads of the beginning left.
        assert!((sleeps as f64) < 2.0 * seconds + 3.0, "{sleeps} times in {seconds} s");
    }
}

/// Scenario: threads with deep stacks begin to work at the highest rate while the monitor sleeps, and go on for seconds. Their
/// rings hold much less than they put there in one of its longest pauses.
/// Guarantee: no sample is lost, and the total is that of the process.
#[test]
fn a_burst_overflows_no_ring() {
    #[inline(never)]
    fn deep_work(depth: u32) -> u32 {
        if depth == 0 {
            burn(1_500);
            return 0;
        }
        std::hint::black_box(deep_work(depth - 1)) + 1
    }

    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(1000));
    std::thread::scope(|scope| {
        let work = || {
            std::thread::sleep(Duration::from_millis(1_500));
            deep_work(200)
        };
        (0..4).for_each(|_| drop(scope.spawn(work)));
    });
    recording.assert_totals_are_of_the_process(1000);
    let status = recording.profiler.status();
    assert_eq!((status.dropped_samples, status.dropped_weight), (0, 0), "{status:?}");
    let seen = recording.finish();
    let deep = seen.iter().filter(|sample| sample.functions.len() >= 128 && sample.mentions("deep_work"));
    assert!(deep.count() > 500, "{status:?}");
}

/// Scenario: long after everything has become calm a thread starts, works for a second and ends.
/// Guarantee: it is found soon: most of its samples come from a timer of its own, at the full rate, under its name.
#[test]
fn a_newcomer_is_found_in_a_long_pause() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(100));
    // Shortly after a round, of which there is one a second.
    std::thread::sleep(Duration::from_millis(2_100));
    std::thread::Builder::new().name("newcomer".into()).spawn(|| burn(1_000)).unwrap().join().unwrap();
    let seen = recording.finish();
    let own: Vec<&Seen> = seen.iter().filter(|sample| sample.thread_name == "newcomer").collect();
    // A hundred at its own rate, a quarter of that as long as nobody knows it.
    assert!(own.len() > 60, "{} samples", own.len());
}

/// Scenario: the profiler is told to flush, to pause and to end while the monitor sleeps.
/// Guarantee: it does so at once, not when it would have woken.
#[test]
fn commands_wake_the_monitor() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(100));
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(400));
        let began = Instant::now();
        recording.profiler.flush();
        fastest = fastest.min(began.elapsed());
    }
    // One out of three, for machines on which everybody waits for a processor.
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
    recording.profiler.pause();
    let deadline = Instant::now() + Duration::from_secs(20);
    while recording.profiler.status().running {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    recording.finish();
    assert!(began.elapsed() < Duration::from_secs(10));
}
