//! Heap and lock profiles, through the real allocator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::{Ctx, HeapProfiler, sync};
use std::time::Duration;
use support::{Recording, Seen, one_at_a_time, total};

#[global_allocator]
static ALLOCATOR: HeapProfiler = HeapProfiler::system();

const SPAN: [u8; 8] = [4; 8];

#[inline(never)]
fn allocate_much(count: usize, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| Vec::with_capacity(size)).collect()
}

fn of(seen: &[Seen], profile: &str) -> (f64, usize) {
    let inside: Vec<&Seen> =
        seen.iter().filter(|sample| sample.profile == profile && sample.mentions("allocate_much")).collect();
    (total(inside.iter().copied(), profile), inside.len())
}

/// Scenario: a function allocates a known number of bytes inside a span, and half of them are freed.
/// Guarantee: allocated and live bytes are estimated within four sigma, all with the span.
#[test]
fn bytes_allocated_and_in_use_are_estimated() {
    let _turn = one_at_a_time();
    let (count, size, interval) = (40_000, 5_000, 128 << 10);
    let recording = Recording::start(|builder| builder.cpu_hertz(0).memory(interval));
    let mut kept;
    {
        let _inside = Ctx::for_request([3; 16], SPAN).attach();
        kept = Vec::new();
        for _ in 0..20 {
            kept.push(allocate_much(count / 20, size));
            // As the monitor does between bursts: rings are emptied several times a second.
            std::thread::sleep(Duration::from_millis(130));
        }
        kept.truncate(10);
    }
    recording.profiler.flush();
    let status = recording.profiler.status();
    drop(kept);
    let seen = recording.finish();
    let bytes = (count * size) as f64;
    let (allocated, samples) = of(&seen, "alloc_space");
    let sigma = bytes / (samples as f64).sqrt();
    assert!(samples > 500, "{samples} samples, {status:?}");
    assert!((allocated - bytes).abs() < 4.0 * sigma, "{allocated} of {bytes}");
    let (objects, _) = of(&seen, "alloc_objects");
    assert!((objects / count as f64 - 1.0).abs() < 4.0 * sigma / bytes, "{objects} of {count}");
    let (live, live_samples) = of(&seen, "inuse_space");
    let live_sigma = bytes / 2.0 / (live_samples as f64).sqrt();
    assert!((live - bytes / 2.0).abs() < 4.0 * live_sigma, "{live} of {}", bytes / 2.0);
    assert!(seen.iter().filter(|sample| sample.mentions("allocate_much")).all(|sample| sample.span_id == SPAN));
}

#[inline(never)]
fn hold_the_lock(lock: &sync::Mutex<u64>, milliseconds: u64) {
    let mut value = lock.lock().unwrap();
    std::thread::sleep(Duration::from_millis(milliseconds));
    *value += 1;
}

/// Scenario: two threads take turns at a lock that each holds for long.
/// Guarantee: the waiting is measured, with stack and span; a lock that is free costs no sample.
#[test]
fn lock_waits_are_measured() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(0).locks(true));
    let (contended, free) = (sync::Mutex::new(0), sync::Mutex::new(0));
    for _ in 0..1_000 {
        *free.lock().unwrap() += 1;
    }
    std::thread::scope(|scope| {
        for span in [1u8, 2] {
            let contended = &contended;
            scope.spawn(move || {
                let _inside = Ctx::for_request([3; 16], [span; 8]).attach();
                for _ in 0..10 {
                    hold_the_lock(contended, 10);
                }
            });
        }
    });
    let seen = recording.finish();
    let waits: Vec<&Seen> = seen.iter().filter(|sample| sample.profile == "lock").collect();
    let waited = total(waits.iter().copied(), "lock") / 1e6;
    // The lock is held for 200 ms in all; whoever does not hold it waits.
    assert!((60.0..400.0).contains(&waited), "{waited} ms in {} waits", waits.len());
    assert!(waits.iter().all(|sample| sample.mentions("hold_the_lock") && !sample.span_id.is_empty()));
    assert_eq!((*contended.lock().unwrap(), *free.lock().unwrap()), (20, 1_000));
}

/// Scenario: the same with `parking_lot`.
/// Guarantee: its waits are measured as well.
#[cfg(feature = "parking_lot")]
#[test]
fn parking_lot_waits_are_measured() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(0).locks(true));
    let lock = sync::parking_lot::Mutex::new(0);
    let shared = sync::parking_lot::RwLock::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let mut held = lock.lock();
                    std::thread::sleep(Duration::from_millis(10));
                    *held += 1;
                    *shared.write() += 1;
                }
            });
        }
    });
    let seen = recording.finish();
    let waited = total(&seen, "lock") / 1e6;
    assert!((20.0..300.0).contains(&waited), "{waited} ms");
    assert_eq!((*lock.lock(), *shared.read()), (10, 10));
}
