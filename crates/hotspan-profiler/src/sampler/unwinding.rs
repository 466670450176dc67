//! Call stacks inside a signal handler: bounded, lock-free, without allocation.
//!
//! Unwinding needs a cache that only one thread may use at a time. A small pool of them is shared by all threads
//! (a warm cache serves every thread that runs the same code); each is taken by one atomic exchange and never
//! waited for. The same exchange marks its holder as a reader of the current `AddressSpace`, which is how the
//! monitor knows when an old snapshot may be freed.

use crate::sampler::address_space::AddressSpace;
use crate::sampler::registers::Registers;
use crate::sampler::sample::{FLAG_LEAF_ONLY, FLAG_TRUNCATED};
use crate::sampler::stack_reader::{LastStack, StackReader, thread_pointer};
use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Frames of one sample that can be kept at most, whatever is configured.
pub(crate) const MAX_FRAMES: usize = 256;

struct Scratch {
    cache: framehop::CacheNative<MustNotAllocateDuringUnwind>,
    frames: [u64; MAX_FRAMES],
    last_stack: LastStack,
}

/// One cache; `uses` is odd while someone holds it.
struct Permit {
    uses: AtomicU64,
    scratch: UnsafeCell<Scratch>,
}

// SAFETY: `scratch` is only touched by the thread that turned `uses` odd.
unsafe impl Sync for Permit {}

/// A snapshot that was replaced, and who was reading when that happened.
struct Retired {
    space: Box<AddressSpace>,
    readers: Vec<(usize, u64)>,
}

/// The pool of caches and the current snapshot.
pub(crate) struct Unwinding {
    permits: Box<[Permit]>,
    space: AtomicPtr<AddressSpace>,
    retired: Mutex<Vec<Retired>>,
    max_frames: AtomicUsize,
    /// Samples of stacks that the snapshot of their time did not know.
    unknown_stacks: AtomicU64,
}

impl std::fmt::Debug for Unwinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinding").field("permits", &self.permits.len()).finish_non_exhaustive()
    }
}

/// A stack as it was seen: leaf first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenStack<'a> {
    pub(crate) frames: &'a [u64],
    pub(crate) flags: u64,
}

impl Unwinding {
    /// A pool for a machine with `processors` processors.
    pub(crate) fn for_processors(processors: usize) -> Unwinding {
        // A handler can be preempted while it holds a permit, so there are more of them than processors.
        let permits = (0..(processors * 2).clamp(4, 64))
            .map(|_| Permit {
                uses: AtomicU64::new(0),
                scratch: UnsafeCell::new(Scratch {
                    cache: framehop::CacheNative::new_in(),
                    frames: [0; MAX_FRAMES],
                    last_stack: LastStack::default(),
                }),
            })
            .collect();
        Unwinding {
            permits,
            space: AtomicPtr::new(null_mut()),
            retired: Mutex::new(Vec::new()),
            max_frames: AtomicUsize::new(64),
            unknown_stacks: AtomicU64::new(0),
        }
    }

    /// Sets how deep stacks are recorded.
    pub(crate) fn set_max_frames(&self, frames: usize) {
        self.max_frames.store(frames.clamp(1, MAX_FRAMES), Ordering::Relaxed);
    }

    /// Samples of stacks that were not known yet: a new snapshot would make the next ones cheaper.
    pub(crate) fn unknown_stacks(&self) -> u64 {
        self.unknown_stacks.load(Ordering::Relaxed)
    }

    /// Unwinds from `registers` and hands the stack to `use_stack`. Safe inside a signal handler.
    pub(crate) fn with_stack<R>(&self, registers: &Registers, use_stack: impl FnOnce(SeenStack<'_>) -> R) -> R {
        // Start at a place that differs by thread, so that threads tend to keep to their own warm cache.
        let start = (thread_pointer() >> 12) as usize;
        for offset in 0..self.permits.len() {
            let permit = &self.permits[start.wrapping_add(offset) % self.permits.len()];
            let uses = permit.uses.load(Ordering::Relaxed);
            let free = uses & 1 == 0;
            // SeqCst: this store must be ordered before the load of `space` below (see `replace_space`).
            if free && permit.uses.compare_exchange(uses, uses + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                // SAFETY: turning `uses` odd made this thread the only user of the scratch.
                let scratch = unsafe { &mut *permit.scratch.get() };
                let flags = self.unwind(registers, scratch);
                let length = scratch.frames.iter().position(|frame| *frame == 0).unwrap_or(MAX_FRAMES);
                let result = use_stack(SeenStack { frames: &scratch.frames[..length], flags });
                permit.uses.store(uses + 2, Ordering::Release);
                return result;
            }
        }
        use_stack(SeenStack { frames: &[registers.pc], flags: FLAG_LEAF_ONLY })
    }

    /// Fills `scratch.frames`, ending with a zero where there is room, and says what is missing.
    fn unwind(&self, registers: &Registers, scratch: &mut Scratch) -> u64 {
        // SAFETY: a snapshot is freed only after every permit held at its replacement was given back; this thread
        // holds one.
        let space = unsafe { self.space.load(Ordering::SeqCst).as_ref() };
        let Some(space) = space else {
            scratch.frames[0] = registers.pc;
            scratch.frames[1] = 0;
            return FLAG_LEAF_ONLY;
        };
        let max_frames = self.max_frames.load(Ordering::Relaxed);
        let mut reader = StackReader::for_stack(space, registers.sp, thread_pointer(), &mut scratch.last_stack);
        if reader.is_unknown() {
            self.unknown_stacks.fetch_add(1, Ordering::Relaxed);
        }
        let mut read_stack = |address| reader.read(address);
        let mut unwound = registers.for_unwinder();
        let mut address = FrameAddress::from_instruction_pointer(registers.pc);
        for depth in 0..max_frames {
            scratch.frames[depth] = address.address_for_lookup().max(1);
            let caller = space.unwinder.unwind_frame(address, &mut unwound, &mut scratch.cache, &mut read_stack);
            let next = caller.ok().flatten().and_then(FrameAddress::from_return_address);
            let Some(next) = next else {
                if depth + 1 < MAX_FRAMES {
                    scratch.frames[depth + 1] = 0;
                }
                return 0;
            };
            address = next;
        }
        if max_frames < MAX_FRAMES {
            scratch.frames[max_frames] = 0;
        }
        FLAG_TRUNCATED
    }

    /// Makes `space` the current snapshot. The old one lives until its last reader is gone.
    pub(crate) fn replace_space(&self, space: AddressSpace) {
        let old = self.space.swap(Box::into_raw(Box::new(space)), Ordering::SeqCst);
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        if !old.is_null() {
            // A permit that is even now can only be taken after the swap, and then sees the new snapshot.
            let readers = (0..self.permits.len())
                .map(|index| (index, self.permits[index].uses.load(Ordering::SeqCst)))
                .filter(|(_, uses)| uses & 1 == 1)
                .collect();
            // SAFETY: the pointer came from Box::into_raw and was just taken out of the only place that held it.
            retired.push(Retired { space: unsafe { Box::from_raw(old) }, readers });
        }
        retired.retain(|entry| {
            entry.readers.iter().any(|(i, uses)| self.permits[*i].uses.load(Ordering::SeqCst) == *uses)
        });
    }

    /// Looks at the current snapshot from a thread that may replace it (the monitor).
    pub(crate) fn inspect_space<R>(&self, look: impl FnOnce(Option<&AddressSpace>) -> R) -> R {
        let _no_replacement = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: snapshots are freed only under the lock that is held here.
        look(unsafe { self.space.load(Ordering::SeqCst).as_ref() })
    }

    /// Snapshots that still wait for a reader.
    #[cfg(test)]
    fn retired_count(&self) -> usize {
        self.retired.lock().unwrap().len()
    }
}

impl std::fmt::Debug for Retired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retired").field("space", &self.space).field("readers", &self.readers).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn descend(depth: usize, unwinding: &Unwinding) -> Vec<u64> {
        if depth > 0 {
            let frames = descend(depth - 1, unwinding);
            return std::hint::black_box(frames);
        }
        unwinding.with_stack(&Registers::of_caller(), |stack| stack.frames.to_vec())
    }

    /// Scenario: a recursion 30 deep unwinds itself, without frame pointers.
    /// Guarantee: every level appears, and the leaf is the function that asked.
    #[test]
    fn recursion_is_unwound_whole() {
        let unwinding = Unwinding::for_processors(1);
        unwinding.set_max_frames(128);
        unwinding.replace_space(AddressSpace::capture());
        let frames = descend(30, &unwinding);
        let mut repeats = std::collections::HashMap::<u64, usize>::new();
        for frame in &frames {
            *repeats.entry(*frame).or_default() += 1;
        }
        assert!(repeats.values().any(|count| *count >= 29), "{} frames", frames.len());
        assert!(frames.len() > 32);
    }

    /// Scenario: the stack is deeper than the limit.
    /// Guarantee: exactly the limit is kept, from the leaf, and the cut is flagged.
    #[test]
    fn deep_stacks_are_cut_and_flagged() {
        let unwinding = Unwinding::for_processors(1);
        unwinding.set_max_frames(3);
        unwinding.replace_space(AddressSpace::capture());
        unwinding.with_stack(&Registers::of_caller(), |stack| {
            assert_eq!(stack.frames.len(), 3);
            assert_eq!(stack.flags, FLAG_TRUNCATED);
        });
    }

    /// Scenario: a snapshot is replaced while a stack that reads it is in use, and again afterwards.
    /// Guarantee: it is kept until its reader is done, then freed.
    #[test]
    fn a_snapshot_outlives_its_readers() {
        let unwinding = Unwinding::for_processors(1);
        unwinding.replace_space(AddressSpace::capture());
        unwinding.with_stack(&Registers::of_caller(), |_| {
            unwinding.replace_space(AddressSpace::capture());
            assert_eq!(unwinding.retired_count(), 1);
        });
        unwinding.replace_space(AddressSpace::capture());
        assert_eq!(unwinding.retired_count(), 0);
    }

    /// Scenario: all permits are held by nested users.
    /// Guarantee: the next one gets the leaf alone, flagged, and does not wait.
    #[test]
    fn without_a_free_cache_the_leaf_remains() {
        fn nest(unwinding: &Unwinding, levels: usize) -> u64 {
            unwinding.with_stack(&Registers::of_caller(), |stack| {
                if levels == 0 { stack.flags } else { nest(unwinding, levels - 1) }
            })
        }
        let unwinding = Unwinding::for_processors(1);
        unwinding.replace_space(AddressSpace::capture());
        assert_eq!(nest(&unwinding, 3), 0);
        assert_eq!(nest(&unwinding, 4), FLAG_LEAF_ONLY);
    }
}
