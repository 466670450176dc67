//! Heap and lock profiles, through the real allocator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::{Ctx, HeapProfiler, sync};
use std::sync::Barrier;
use std::time::{Duration, Instant};
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
/// Guarantee: allocated and live bytes are estimated within four sigma, all with the span; their stacks begin with who asked
/// for memory, not with the profiler or the allocator.
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
    assert_eq!(status.remarks, Vec::<String>::new());
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
    let hands_on = |leaf: &String| {
        let own = ["hotspan_profiler::heap", "GlobalAlloc", "__rust_alloc", "__rust_realloc"];
        leaf.trim_start_matches('<').starts_with("alloc::alloc::") || own.iter().any(|own| leaf.contains(own))
    };
    let asked = seen.iter().filter(|sample| ["alloc_space", "inuse_space"].contains(&sample.profile.as_str()));
    let mut not_by_asker = asked.filter(|sample| sample.functions.first().is_some_and(hands_on));
    assert_eq!(not_by_asker.next().map(|sample| &sample.functions), None);
}

/// Says how long it took to get the lock, by the clock of the one who wanted it.
#[inline(never)]
fn hold_the_lock(lock: &sync::Mutex<u64>, milliseconds: u64) -> Duration {
    let began = Instant::now();
    let mut value = lock.lock().unwrap();
    let waited = began.elapsed();
    std::thread::sleep(Duration::from_millis(milliseconds));
    *value += 1;
    waited
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
    let together = Barrier::new(2);
    let measured = std::thread::scope(|scope| {
        let threads = [1u8, 2].map(|span| {
            let (contended, together) = (&contended, &together);
            scope.spawn(move || {
                let _inside = Ctx::for_request([3; 16], [span; 8]).attach();
                together.wait();
                (0..10).map(|_| hold_the_lock(contended, 10)).sum::<Duration>()
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum::<Duration>().as_secs_f64() * 1e3
    });
    let seen = recording.finish();
    let waits: Vec<&Seen> = seen.iter().filter(|sample| sample.profile == "lock").collect();
    let waited = total(waits.iter().copied(), "lock") / 1e6;
    assert!(waited <= 1.01 * measured + 1.0, "{waited} of {measured} ms in {} waits", waits.len());
    assert!(waited >= 0.8 * measured - 5.0, "{waited} of {measured} ms in {} waits", waits.len());
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
    // What getting the locks took, by the clock of those who wanted them.
    let together = Barrier::new(2);
    let measured = std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| {
            scope.spawn(|| {
                together.wait();
                let mut waited = Duration::ZERO;
                for _ in 0..5 {
                    let began = Instant::now();
                    let mut held = lock.lock();
                    waited += began.elapsed();
                    std::thread::sleep(Duration::from_millis(10));
                    *held += 1;
                    let began = Instant::now();
                    *shared.write() += 1;
                    waited += began.elapsed();
                }
                waited
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum::<Duration>().as_secs_f64() * 1e3
    });
    let seen = recording.finish();
    let waited = total(&seen, "lock") / 1e6;
    assert!(waited <= 1.01 * measured + 1.0, "{waited} of {measured} ms");
    assert!(waited >= 0.8 * measured - 5.0, "{waited} of {measured} ms");
    assert_eq!((*lock.lock(), *shared.read()), (10, 10));
}
