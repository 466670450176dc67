//! The allocator of the process, and how it is told to behave.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};

use hotspan_profiler::HeapProfiler;
use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The allocator, and the same with heap profiling around it. Both forward to the same heap, so that memory may be
/// taken from the one and given back to the other.
struct Allocator;

static PLAIN: mimalloc::MiMalloc = mimalloc::MiMalloc;
static PROFILED: HeapProfiler<mimalloc::MiMalloc> = HeapProfiler::new(mimalloc::MiMalloc);
/// Whether this process profiles its heap. The server does not: it would pay for each allocation.
static PROFILES_HEAP: AtomicBool = AtomicBool::new(false);

/// From here on, allocations of this process pass through the heap profiler.
pub(crate) fn profile_the_heap() {
    PROFILES_HEAP.store(true, Ordering::Relaxed);
}

// SAFETY: every call is forwarded unchanged to an allocator that keeps the contract, and both are the same heap.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.alloc(layout) } else { PLAIN.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.alloc_zeroed(layout) } else { PLAIN.alloc_zeroed(layout) } }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.dealloc(pointer, layout) } else { PLAIN.dealloc(pointer, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.realloc(pointer, layout, size) } else { PLAIN.realloc(pointer, layout, size) } }
    }
}

/// `mi_option_purge_delay` of mimalloc 3, which the bindings have no name for.
const PURGE_DELAY: mi_option_t = 15;
/// What it is unless somebody set it.
const USUAL_PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 1000;
/// More than the time from one compaction of young data to the next.
const SERVER_PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 30_000;

/// Freed memory goes back to the operating system after half a minute, not after a second: batches come and go, and
/// taking the same pages anew each time is a tenth of the CPU of ingest.
pub(crate) fn keep_freed_memory_for_a_while() {
    // SAFETY: plain reads and writes of a number that the allocator looks at now and then.
    unsafe {
        // Another value was set by the environment, or is another option of another version.
        if mi_option_get(PURGE_DELAY) == USUAL_PURGE_DELAY_MILLISECONDS {
            mi_option_set(PURGE_DELAY, SERVER_PURGE_DELAY_MILLISECONDS);
        }
    }
}

/// Sizes of blocks, and how many of each: the allocator keeps small and large ones apart, and a first question takes some of
/// all. They are 16 MiB together, which takes half as long as opening a store does.
const BLOCKS_IN_ADVANCE: [(usize, usize); 4] = [(4 << 10, 1024), (32 << 10, 64), (256 << 10, 16), (1 << 20, 6)];

/// Takes memory and gives it back, on a thread of its own while the store is being opened: pages that nobody has touched come
/// one by one, each with a way into the kernel, and were a third of the time of a first flame graph.
pub(crate) fn take_memory_in_advance() {
    let touch = || {
        let sizes = BLOCKS_IN_ADVANCE.into_iter().flat_map(|(size, count)| std::iter::repeat_n(size, count));
        let blocks: Vec<Vec<u8>> = sizes.map(|size| vec![1; size]).collect();
        drop(std::hint::black_box(blocks));
    };
    // Without a thread to spare, memory comes when it is needed.
    let _ = std::thread::Builder::new().name("memory".to_owned()).spawn(touch);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the server tells its allocator to keep memory.
    /// Guarantee: the number still stands for the option that is meant, whichever version of the allocator is linked.
    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: see above.
        let of = |option| unsafe { mi_option_get(option) };
        assert_eq!(of(PURGE_DELAY), USUAL_PURGE_DELAY_MILLISECONDS);
        keep_freed_memory_for_a_while();
        assert_eq!(of(PURGE_DELAY), SERVER_PURGE_DELAY_MILLISECONDS);
    }
}
