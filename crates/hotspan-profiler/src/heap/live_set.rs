//! Sampled allocations that have not been freed: a fixed table that alloc and free touch without locks.
//!
//! Nearly every freed pointer was never sampled. A small array of counters, indexed by the pointer's hash, says so
//! with one load; only when the counter is not zero is the table searched.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

const SLOTS: usize = 1 << 16;
const FILTER: usize = 1 << 14;
/// Places where a pointer may lie.
const PROBES: usize = 8;
/// A slot that is being filled.
const RESERVED: usize = 1;

/// The process's table.
pub(super) static LIVE: LiveSet = LiveSet::new();

#[derive(Debug)]
pub(super) struct LiveSet {
    pointers: [AtomicUsize; SLOTS],
    tokens: [AtomicU64; SLOTS],
    filter: [AtomicU8; FILTER],
    next_token: AtomicU64,
}

fn hash(pointer: usize) -> usize {
    // Allocations are aligned to 16, so the lowest bits say nothing.
    ((pointer >> 4) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - 16)
}

impl LiveSet {
    const fn new() -> LiveSet {
        LiveSet {
            pointers: [const { AtomicUsize::new(0) }; SLOTS],
            tokens: [const { AtomicU64::new(0) }; SLOTS],
            filter: [const { AtomicU8::new(0) }; FILTER],
            next_token: AtomicU64::new(1),
        }
    }

    /// Remembers a pointer; `None` if its places are taken. The token names this allocation for ever.
    pub(super) fn remember(&self, pointer: usize) -> Option<u64> {
        let hash = hash(pointer);
        let counter = &self.filter[hash % FILTER];
        for probe in 0..PROBES {
            let slot = (hash + probe) % SLOTS;
            let place = &self.pointers[slot];
            if place.compare_exchange(0, RESERVED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                // A counter that is full would wrap and hide the pointer.
                if counter.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| count.checked_add(1)).is_err() {
                    place.store(0, Ordering::Release);
                    return None;
                }
                let token = (self.next_token.fetch_add(1, Ordering::Relaxed) << 16) | slot as u64;
                self.tokens[slot].store(token, Ordering::Relaxed);
                place.store(pointer, Ordering::Release);
                return Some(token);
            }
        }
        None
    }

    /// Forgets a pointer that is about to be freed.
    #[inline]
    pub(super) fn forget(&self, pointer: usize) {
        let hash = hash(pointer);
        if self.filter[hash % FILTER].load(Ordering::Relaxed) != 0 {
            self.search_and_forget(pointer, hash);
        }
    }

    #[cold]
    fn search_and_forget(&self, pointer: usize, hash: usize) {
        for probe in 0..PROBES {
            let place = &self.pointers[(hash + probe) % SLOTS];
            if place.load(Ordering::Relaxed) == pointer
                && place.compare_exchange(pointer, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                self.filter[hash % FILTER].fetch_sub(1, Ordering::AcqRel);
                return;
            }
        }
    }

    /// Whether the allocation with this token is still there.
    pub(super) fn is_live(&self, token: u64) -> bool {
        let slot = (token % SLOTS as u64) as usize;
        self.tokens[slot].load(Ordering::Acquire) == token && self.pointers[slot].load(Ordering::Acquire) > RESERVED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: pointers are remembered, freed, and their addresses used again.
    /// Guarantee: a token is live exactly until its own allocation is freed.
    #[test]
    fn tokens_follow_their_allocation() {
        static SET: LiveSet = LiveSet::new();
        let first = SET.remember(0x1000).unwrap();
        assert!(SET.is_live(first));
        SET.forget(0x2000);
        assert!(SET.is_live(first));
        SET.forget(0x1000);
        assert!(!SET.is_live(first));
        let second = SET.remember(0x1000).unwrap();
        assert!(SET.is_live(second) && !SET.is_live(first));
    }

    /// Scenario: two threads remember and free thousands of pointers at once.
    /// Guarantee: afterwards nothing is live and every counter is back to zero.
    #[test]
    fn concurrent_use_leaves_nothing_behind() {
        static SET: LiveSet = LiveSet::new();
        std::thread::scope(|scope| {
            for thread in 0..2usize {
                scope.spawn(move || {
                    for i in 0..20_000usize {
                        let pointer = ((i * 2 + thread) << 4) + 0x10_0000;
                        if let Some(token) = SET.remember(pointer) {
                            assert!(SET.is_live(token));
                            SET.forget(pointer);
                            assert!(!SET.is_live(token));
                        }
                    }
                });
            }
        });
        assert!(SET.filter.iter().all(|counter| counter.load(Ordering::Relaxed) == 0));
        assert!(SET.pointers.iter().all(|pointer| pointer.load(Ordering::Relaxed) == 0));
    }
}
