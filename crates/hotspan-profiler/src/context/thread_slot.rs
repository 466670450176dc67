//! The thread-local pointer `otel_thread_ctx_v1` that OTEP 4947 defines.

use super::record::OtepHead;
use crate::thread_word::thread_word;

thread_word! {
    /// Where the calling thread keeps its pointer. The symbol is what profilers outside of the process look for.
    fn slot, "otel_thread_ctx_v1", ".globl"
}

/// Makes `head` the thread's published record; null for none.
#[inline(always)]
pub(super) fn publish(head: *const OtepHead) {
    // The fences keep the compiler from moving writes to the record past the pointer, in either direction. The
    // processor needs none: every reader runs on this thread, or while it is stopped.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    // SAFETY: the slot belongs to this thread and is always mapped.
    unsafe { slot().write_volatile(head as usize) };
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// Where the calling thread's pointer lies: zero there means that it works on no span. Valid while the thread lives.
#[inline(always)]
pub(crate) fn published_at() -> u64 {
    slot() as u64
}

/// The thread's published record; null for none.
#[inline(always)]
pub(super) fn published() -> *const OtepHead {
    // SAFETY: as above.
    unsafe { slot().read_volatile() as *const OtepHead }
}
