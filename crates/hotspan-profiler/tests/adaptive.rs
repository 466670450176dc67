//! The rate follows the load and the requests, every change is told, and no total changes with it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::{Adaptive, Conditions, Ctx, ProfilerBuilder, RateReason, RequestOutcome, request_ended};
use std::time::{Duration, Instant};
use support::{FIXED_RATE, Recording, Seen, burn, one_at_a_time, thread_cpu_ns, total};

/// A quarter of the rate that the tests begin with.
const LOWERED_HERTZ: u32 = 25;

/// Works until the profiler has lowered its rate to that or less, and a while longer. Returns what was seen, and the CPU time used.
fn work_until_lowered(
    settings: impl FnOnce(ProfilerBuilder) -> ProfilerBuilder,
    reason: RateReason,
) -> (Vec<Seen>, f64) {
    let recording = Recording::start(|builder| settings(builder.cpu_hertz(100)));
    let (began, deadline) = (thread_cpu_ns(), Instant::now() + Duration::from_secs(60));
    let is_lowered = || {
        let changes = recording.profiler.status().rate_changes;
        changes.iter().any(|change| change.reason == reason && change.to_hertz <= LOWERED_HERTZ)
    };
    while !is_lowered() {
        assert!(Instant::now() < deadline, "{:?}", recording.profiler.status());
        burn(100);
    }
    burn(1_000);
    let used = (thread_cpu_ns() - began) as f64;
    (recording.finish(), used)
}

/// Scenario: a machine that is busier than the threshold for shedding load, and a profiler that costs more than its ceiling.
/// Guarantee: the rate falls, the status says when and why, and the weights still come to the CPU time used.
#[test]
fn lower_rates_do_not_change_totals() {
    let _turn = one_at_a_time();
    let shed = work_until_lowered(|builder| builder.shed_load_above(0.5), RateReason::LoadShedding);
    let dear = Adaptive { overhead_ceiling_percent: 1e-6, ..FIXED_RATE };
    let cut = work_until_lowered(|builder| builder.adaptive(dear), RateReason::OverCeiling);
    for (seen, used) in [shed, cut] {
        let work: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("burn")).collect();
        let measured = total(work.iter().copied(), "cpu");
        // At the floor of 10 Hz a sample stands for 100 ms, varied by a tenth: one at each end.
        assert!((measured - used).abs() < 220e6, "{measured} of {used}");
        let heaviest = work.iter().map(|sample| sample.value).max().unwrap();
        // A quarter of the rate, varied by a tenth.
        assert!(heaviest > 35_000_000, "samples did not become rarer: {heaviest} ns at most");
    }
}

/// Scenario: threads of all ages, some short, some long, while the rate falls from 200 to 10 a second.
/// Guarantee: what all samples stand for is what the process used, no more and no less.
#[test]
fn threads_that_live_through_changes_keep_their_totals() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200).shed_load_above(0.5));
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_over = || {
        assert!(Instant::now() < deadline, "{:?}", recording.profiler.status());
        recording.profiler.status().rate_changes.last().is_some_and(|change| change.to_hertz == 10)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                burn(20);
            }
        });
        for lifetime in [2, 30, 400].into_iter().cycle() {
            if is_over() {
                break;
            }
            std::thread::spawn(move || burn(lifetime)).join().unwrap();
        }
    });
    recording.assert_totals_are_of_the_process(10);
    recording.finish();
}

/// The mean weight of samples taken in a part of a request, by time since its first one.
fn mean_weight(work: &[&Seen], part: std::ops::Range<u64>) -> f64 {
    let first = work.iter().filter_map(|sample| sample.time_unix_nano).min().unwrap();
    let inside = work.iter().filter(|sample| sample.time_unix_nano.is_some_and(|time| part.contains(&(time - first))));
    let weights: Vec<f64> = inside.map(|sample| sample.value as f64).collect();
    weights.iter().sum::<f64>() / weights.len() as f64
}

/// Scenario: a request that runs for much longer than the slow threshold, at a low rate that slow requests multiply by five.
/// Guarantee: its thread is sampled more finely once it is slow, the status tells so, and the total is that of the clock.
#[test]
fn slow_requests_are_looked_at_more_closely() {
    const SLOW: Duration = Duration::from_secs(1);
    let _turn = one_at_a_time();
    let conditions = Conditions { slow_request_threshold: Some(SLOW), ..Conditions::default() };
    let adaptive = Adaptive { slow_request_factor: 5, ..FIXED_RATE };
    let recording = Recording::start(|builder| builder.cpu_hertz(20).adaptive(adaptive).conditions(conditions));
    let (trace, root) = ([7; 16], [8; 8]);
    let (began, deadline) = (thread_cpu_ns(), Instant::now() + Duration::from_secs(60));
    {
        let _inside = Ctx::for_request(trace, root).attach();
        while recording.profiler.status().slow_request_boosts == 0 {
            assert!(Instant::now() < deadline, "{:?}", recording.profiler.status());
            burn(100);
        }
        burn(1_500);
    }
    let used = (thread_cpu_ns() - began) as f64;
    request_ended(trace, root, RequestOutcome { duration: SLOW * 2, is_error: false, is_sampled: true });
    recording.profiler.flush();
    assert_eq!(recording.profiler.status().kept_requests, 1);
    let seen = recording.finish();
    let work: Vec<&Seen> = seen.iter().filter(|sample| sample.span_id == root).collect();
    let measured = total(work.iter().copied(), "cpu");
    assert!((measured - used).abs() < 120e6, "{measured} of {used}");
    let threshold = SLOW.as_nanos() as u64;
    // The monitor comes several times a second: a while after the threshold it must have acted.
    let (before, after) = (mean_weight(&work, 0..threshold), mean_weight(&work, 2 * threshold..u64::MAX));
    assert!(after < 0.6 * before, "{after} ns a sample, {before} before");
}
