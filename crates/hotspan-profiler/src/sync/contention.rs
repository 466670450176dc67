//! Measuring a wait for a lock without making it longer.
//!
//! The stack is taken before the wait, when the thread has nothing better to do, and the sample is handed over after
//! it; nothing slow happens while the lock is held.

use crate::context::current_span_key;
use crate::sampler::capture::Capture;
use crate::sampler::clock::{current_tid, monotonic_ns};
use crate::sampler::registers::Registers;
use crate::sampler::sample::{Sample, SampleKind};
use std::sync::atomic::{AtomicBool, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(false);
/// Tries before a wait counts as contention: below it, a stack costs more than the wait.
const SPINS: u32 = 40;
/// Frames kept of a waiting stack, on the stack itself.
const FRAMES: usize = 64;

/// Turns lock profiling on or off.
pub(crate) fn profile_locks(on: bool) {
    ENABLED.store(on, Ordering::Relaxed);
}

/// Waits for a lock that is taken: `try_once` tries without waiting, `wait` waits.
#[cold]
#[inline(never)]
pub(super) fn wait_for_lock<G>(mut try_once: impl FnMut() -> Option<G>, wait: impl FnOnce() -> G) -> G {
    let capture = if ENABLED.load(Ordering::Relaxed) { Capture::existing() } else { None };
    let Some(capture) = capture else { return wait() };
    let started = monotonic_ns();
    for _ in 0..SPINS {
        std::hint::spin_loop();
        if let Some(guard) = try_once() {
            return guard;
        }
    }
    let mut frames = [0u64; FRAMES];
    let (length, flags) = capture.unwinding.with_stack(&Registers::of_caller(), |stack| {
        let length = stack.frames.len().min(FRAMES);
        frames[..length].copy_from_slice(&stack.frames[..length]);
        (length, stack.flags)
    });
    let guard = wait();
    let now = monotonic_ns();
    capture.push_as_guest(&Sample {
        kind: SampleKind::LockWait,
        flags,
        monotonic_ns: now,
        weight: now.saturating_sub(started),
        extra: 0,
        extra2: 0,
        tid: current_tid(),
        span: current_span_key().unwrap_or_default(),
        frames: &frames[..length],
    });
    guard
}
