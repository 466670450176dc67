//! Heap profiles: an allocator that samples by bytes and forwards everything to the one it wraps.
//!
//! Each thread counts bytes down from an exponentially distributed gap; the allocation that crosses zero is sampled
//! and stands for `size / (1 - e^(-size / interval))` bytes, which makes the sums unbiased for every size. Sampled
//! allocations are remembered until they are freed, so memory in use is known by stack and span as well.

mod live_set;

use crate::context::current_span_key;
use crate::random::random_unit;
use crate::sampler::capture::Capture;
use crate::sampler::clock::{current_tid, monotonic_ns};
use crate::sampler::registers::Registers;
use crate::sampler::sample::{Sample, SampleKind};
use live_set::LIVE;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Mean bytes between samples; zero while heap profiling is off.
static INTERVAL: AtomicUsize = AtomicUsize::new(0);
/// Sampled allocations that could not be remembered.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);
/// Bytes between looks at `INTERVAL` while it is zero: what a thread may allocate unseen after sampling is turned on.
const IDLE_GAP: i64 = 256 << 10;

thread_local! {
    // Const and without a destructor: usable inside an allocator at any moment of a thread's life.
    static BYTES_TO_NEXT: Cell<i64> = const { Cell::new(0) };
}

/// An allocator that samples what passes through it.
///
/// ```
/// use hotspan_profiler::HeapProfiler;
///
/// #[global_allocator]
/// static ALLOCATOR: HeapProfiler = HeapProfiler::system();
/// # fn main() { assert_eq!(vec![1u8; 3].len(), 3); }
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct HeapProfiler<A = System> {
    inner: A,
}

impl HeapProfiler<System> {
    /// Wraps the system's allocator.
    pub const fn system() -> HeapProfiler<System> {
        HeapProfiler { inner: System }
    }
}

impl<A> HeapProfiler<A> {
    /// Wraps any allocator.
    pub const fn new(inner: A) -> HeapProfiler<A> {
        HeapProfiler { inner }
    }
}

// SAFETY: every call is forwarded unchanged to an allocator that keeps the contract; what is added neither
// allocates nor touches the memory.
unsafe impl<A: GlobalAlloc> GlobalAlloc for HeapProfiler<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwarded from the caller.
        let pointer = unsafe { self.inner.alloc(layout) };
        note_allocation(pointer, layout.size());
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwarded from the caller.
        let pointer = unsafe { self.inner.alloc_zeroed(layout) };
        note_allocation(pointer, layout.size());
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.forget(pointer as usize);
        // SAFETY: forwarded from the caller.
        unsafe { self.inner.dealloc(pointer, layout) };
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Before the memory can be given to somebody else.
        LIVE.forget(pointer as usize);
        // SAFETY: forwarded from the caller.
        let moved = unsafe { self.inner.realloc(pointer, layout, new_size) };
        note_allocation(moved, new_size);
        moved
    }
}

#[inline]
fn note_allocation(pointer: *mut u8, size: usize) {
    let left = BYTES_TO_NEXT.get().wrapping_sub(size as i64);
    BYTES_TO_NEXT.set(left);
    if left < 0 {
        sample_allocation(pointer as usize, size);
    }
}

#[cold]
#[inline(never)]
fn sample_allocation(pointer: usize, size: usize) {
    let interval = INTERVAL.load(Ordering::Relaxed);
    let is_first = BYTES_TO_NEXT.get() == (size as i64).wrapping_neg();
    BYTES_TO_NEXT.set(next_gap(interval));
    // A thread's counter starts at zero; its first allocation only draws the gap.
    if interval == 0 || pointer == 0 || is_first {
        return;
    }
    let Some(capture) = Capture::existing() else { return };
    let Some(token) = LIVE.remember(pointer) else {
        FORGOTTEN.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let weight = estimated_bytes(size, interval);
    capture.unwinding.with_stack(&Registers::of_caller(), |stack| {
        capture.push_as_guest(&Sample {
            kind: SampleKind::Allocation,
            flags: stack.flags,
            monotonic_ns: monotonic_ns(),
            weight,
            extra: size as u64,
            extra2: token,
            tid: current_tid(),
            span: current_span_key().unwrap_or_default(),
            // The leaf is this function: who asked for the memory is above it.
            frames: stack.frames.get(1..).unwrap_or_default(),
        });
    });
}

fn next_gap(interval: usize) -> i64 {
    if interval == 0 { IDLE_GAP } else { (-random_unit().ln() * interval as f64) as i64 }
}

/// What one sampled allocation of this size stands for.
fn estimated_bytes(size: usize, interval: usize) -> u64 {
    let probability = -(-(size as f64) / interval as f64).exp_m1();
    (size as f64 / probability.max(f64::MIN_POSITIVE)) as u64
}

/// Turns heap sampling on, with this many bytes between samples on average, or off.
pub(crate) fn set_interval(interval: Option<usize>) {
    INTERVAL.store(interval.unwrap_or(0), Ordering::Relaxed);
}

/// Whether the program's allocator is a [`HeapProfiler`]: without one there is nothing to sample.
pub(crate) fn is_installed() -> bool {
    let before = BYTES_TO_NEXT.get();
    drop(std::hint::black_box(Box::new([0u8; 64])));
    BYTES_TO_NEXT.get() != before
}

/// Whether a sampled allocation has not been freed.
pub(crate) fn is_live(token: u64) -> bool {
    LIVE.is_live(token)
}

/// What the heap holds by the latest estimate; meaningful while heap profiling is on.
static IN_USE: AtomicU64 = AtomicU64::new(0);

/// Notes the latest estimate of what the heap holds.
pub(crate) fn note_in_use(bytes: u64) {
    IN_USE.store(bytes, Ordering::Relaxed);
}

/// What the heap holds, about a second ago; `None` while heap profiling is off.
pub(crate) fn in_use() -> Option<u64> {
    (INTERVAL.load(Ordering::Relaxed) > 0).then(|| IN_USE.load(Ordering::Relaxed))
}

/// Sampled allocations that could not be remembered since the start.
pub(crate) fn forgotten_allocations() -> u64 {
    FORGOTTEN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: sizes far below, at and far above the interval.
    /// Guarantee: probability times estimate is the size, so that sums are unbiased.
    #[test]
    fn estimates_are_unbiased_for_every_size() {
        let interval = 512 * 1024;
        for size in [16usize, 4096, interval, 100 * interval] {
            let probability = 1.0 - (-(size as f64) / interval as f64).exp();
            let estimate = estimated_bytes(size, interval) as f64;
            assert!((probability * estimate / size as f64 - 1.0).abs() < 1e-3, "{size}");
        }
    }

    /// Scenario: many gaps are drawn.
    /// Guarantee: their mean is the interval.
    #[test]
    fn gaps_average_the_interval() {
        let mean = (0..20_000).map(|_| next_gap(1_000) as f64).sum::<f64>() / 20_000.0;
        assert!((mean - 1_000.0).abs() < 50.0, "{mean}");
    }
}
