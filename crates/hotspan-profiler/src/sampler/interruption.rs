//! What a thread was doing when it was interrupted, for handlers that interrupt one another.
//!
//! Two profiling signals of a thread may come together or one after another, and the handler of the second then runs
//! on top of that of the first. It is to see what the first interrupted, not the profiler at work.

use crate::sampler::registers::Registers;
use crate::thread_word::thread_word;
use std::sync::atomic::{Ordering, compiler_fence};

thread_word! {
    /// Where the calling thread keeps the context that its outermost handler got; zero while there is none.
    fn outermost, "hotspan_interrupted_v1", ".hidden"
}

/// The time that a thread spends in its handler.
#[derive(Debug)]
pub(crate) struct Interruption {
    context: *mut libc::c_void,
    is_outermost: bool,
}

impl Interruption {
    /// Begins it: the very first thing that a handler does, with the context that the kernel gave it.
    #[inline(always)]
    pub(crate) fn begin(context: *mut libc::c_void) -> Interruption {
        // SAFETY: the word belongs to this thread and is always mapped.
        let already = unsafe { outermost().read_volatile() } as *mut libc::c_void;
        if already.is_null() {
            // SAFETY: as above.
            unsafe { outermost().write_volatile(context as usize) };
            compiler_fence(Ordering::SeqCst);
            return Interruption { context, is_outermost: true };
        }
        Interruption { context: already, is_outermost: false }
    }

    /// The registers of the code that was interrupted, by whichever handler.
    ///
    /// # Safety
    /// The context is the third argument of a handler, installed with SA_SIGINFO at the address `handler`.
    pub(crate) unsafe fn registers(&self, handler: usize) -> Registers {
        // SAFETY: as the caller says; the outermost context is valid as long as its handler has not returned.
        unsafe { Registers::of_interrupted(self.context, handler) }
    }
}

impl Drop for Interruption {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_outermost {
            compiler_fence(Ordering::SeqCst);
            // SAFETY: as in `begin`.
            unsafe { outermost().write_volatile(0) };
        }
    }
}
