//! The id of the calling thread without a system call, which would be a good part of what a sample costs.

use crate::sampler::clock::current_tid;
use crate::thread_word::thread_word;
use std::sync::atomic::{AtomicU32, Ordering};

thread_word! {
    /// Where the calling thread keeps its id, below the generation in which it asked for it.
    fn remembered, "hotspan_thread_id_v1", ".hidden"
}

/// Ids that were remembered in another generation don't count.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Has all threads ask for their ids again, as sampling starts: this may be the child of a fork, whose only thread
/// remembers the id that it had in its parent.
pub(crate) fn forget_thread_ids() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The id of the calling thread, of which the kernel is asked once. Safe inside a signal handler.
pub(crate) fn remembered_tid() -> libc::pid_t {
    let generation = GENERATION.load(Ordering::Relaxed);
    // SAFETY: the word belongs to this thread and is always mapped.
    let word = unsafe { remembered().read_volatile() } as u64;
    if (word >> 32) as u32 == generation {
        return word as u32 as libc::pid_t;
    }
    let tid = current_tid();
    // SAFETY: as above. A handler that interrupts this one writes the same.
    unsafe { remembered().write_volatile((u64::from(generation) << 32 | u64::from(tid as u32)) as usize) };
    tid
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: threads ask for their ids, several times.
    /// Guarantee: each gets its own, every time.
    #[test]
    fn every_thread_remembers_its_own_id() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..3).for_each(|_| assert_eq!(remembered_tid(), current_tid())));
            }
        });
    }

    /// Scenario: a process forks after its thread has asked, and the child begins to sample.
    /// Guarantee: the child's thread has the id that it has there.
    #[test]
    fn a_forked_child_asks_again() {
        assert_eq!(remembered_tid(), current_tid());
        // SAFETY: the child makes system calls only, and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                forget_thread_ids();
                libc::_exit(libc::c_int::from(remembered_tid() != current_tid()));
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(status, 0);
        }
    }
}
