//! Where samples are put: one ring per watched thread, a few shared ones for everybody else.
//!
//! There is one `Capture` per process and it is never freed, so a late signal always finds valid memory.

use crate::doorbell::DOORBELL;
use crate::sampler::ring::{Ring, Room};
use crate::sampler::sample::Sample;
use crate::sampler::unwinding::Unwinding;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// Threads that can be watched at once by timers of their own; the rest share the process timer.
pub(crate) const MAX_SLOTS: usize = 4096;
const SLOT_RING_WORDS: usize = 8192;
const GUEST_RINGS: usize = 8;
const GUEST_RING_WORDS: usize = 8192;

/// What belongs to one watched thread.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) ring: Ring,
    pub(crate) tid: AtomicI32,
    /// Set while a handler of this thread takes a sample: another one may interrupt it.
    pub(crate) is_taking: AtomicBool,
    /// The thread's CPU clock at the end of the last weight handed out.
    pub(crate) cpu_accounted_ns: AtomicU64,
    pub(crate) last_wall_ns: AtomicU64,
    pub(crate) last_wall_cpu_ns: AtomicU64,
    /// Where the thread says which span it works on; zero until it has told.
    pub(crate) span_pointer_at: AtomicU64,
}

/// A ring that any thread may use, one at a time.
#[derive(Debug)]
struct GuestRing {
    /// The thread that uses it; zero for none.
    taken_by: AtomicI32,
    ring: Ring,
}

/// The right to write to a shared ring.
#[derive(Debug)]
pub(crate) struct GuestTurn<'a>(&'a GuestRing);

impl std::ops::Deref for GuestTurn<'_> {
    type Target = Ring;

    fn deref(&self) -> &Ring {
        &self.0.ring
    }
}

impl Drop for GuestTurn<'_> {
    fn drop(&mut self) {
        self.0.taken_by.store(0, Ordering::Release);
    }
}

/// Counters that handlers write.
#[derive(Debug, Default)]
pub(crate) struct HandlerCounters {
    pub(crate) signals: AtomicU64,
    pub(crate) foreign_signals: AtomicU64,
    pub(crate) busy_ticks: AtomicU64,
    /// Those of them that wall-clock samples took.
    pub(crate) wall_ticks: AtomicU64,
    /// CPU samples of threads without a timer of their own.
    pub(crate) guest_samples: AtomicU64,
    pub(crate) guest_drops: AtomicU64,
    pub(crate) guest_dropped_weight: AtomicU64,
}

/// Everything a handler may touch.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) unwinding: Unwinding,
    pub(crate) counters: HandlerCounters,
    /// CPU nanoseconds that one expiry of the process timer stands for.
    pub(crate) process_period_ns: AtomicU64,
    pub(crate) armed: ArmedThreads,
    /// Whether the monitor wants to be woken for the next sample of a thread without a timer.
    pub(crate) announces_guests: AtomicBool,
    slots: Box<[AtomicPtr<Slot>]>,
    guests: Box<[GuestRing]>,
}

static CAPTURE: OnceLock<Capture> = OnceLock::new();

impl Capture {
    /// The process's capture, made on first use. Never call this from a handler; use [`Capture::existing`] there.
    pub(crate) fn global() -> &'static Capture {
        CAPTURE.get_or_init(|| {
            let processors = std::thread::available_parallelism().map_or(4, std::num::NonZero::get);
            Capture {
                unwinding: Unwinding::for_processors(processors),
                counters: HandlerCounters::default(),
                process_period_ns: AtomicU64::new(0),
                armed: ArmedThreads::new(),
                announces_guests: AtomicBool::new(false),
                slots: (0..MAX_SLOTS).map(|_| AtomicPtr::default()).collect(),
                guests: (0..GUEST_RINGS)
                    .map(|_| GuestRing { taken_by: AtomicI32::new(0), ring: Ring::with_capacity(GUEST_RING_WORDS) })
                    .collect(),
            }
        })
    }

    /// The capture if there is one: a single atomic load.
    pub(crate) fn existing() -> Option<&'static Capture> {
        CAPTURE.get()
    }

    /// The slot a signal names.
    pub(crate) fn slot(&self, index: usize) -> Option<&Slot> {
        // SAFETY: slots are leaked boxes; once set, a pointer stays valid for the life of the process.
        unsafe { self.slots.get(index)?.load(Ordering::Acquire).as_ref() }
    }

    /// The slot at `index`, made if it does not exist yet. For the monitor only.
    pub(crate) fn slot_or_create(&self, index: usize) -> Option<&Slot> {
        if self.slot(index).is_none() {
            let slot = Box::leak(Box::new(Slot {
                ring: Ring::with_capacity(SLOT_RING_WORDS),
                tid: AtomicI32::new(0),
                is_taking: AtomicBool::new(false),
                cpu_accounted_ns: AtomicU64::new(0),
                last_wall_ns: AtomicU64::new(0),
                last_wall_cpu_ns: AtomicU64::new(0),
                span_pointer_at: AtomicU64::new(0),
            }));
            self.slots.get(index)?.store(slot, Ordering::Release);
        }
        self.slot(index)
    }

    /// A shared ring for a thread that has none of its own. Never waits: there is none if all are taken, nor for a handler
    /// that interrupted this thread while it had one.
    pub(crate) fn guest_ring(&self, tid: i32) -> Option<GuestTurn<'_>> {
        if self.guests.iter().any(|guest| guest.taken_by.load(Ordering::Relaxed) == tid) {
            return None;
        }
        let mut in_turn =
            (0..self.guests.len()).map(|offset| &self.guests[(tid as usize + offset) % self.guests.len()]);
        let free =
            |guest: &&GuestRing| guest.taken_by.compare_exchange(0, tid, Ordering::Acquire, Ordering::Relaxed).is_ok();
        in_turn.find(free).map(GuestTurn)
    }

    /// Puts a sample of a thread that has no ring of its own into a shared one. Never waits.
    pub(crate) fn push_as_guest(&self, sample: &Sample<'_>) {
        match self.guest_ring(sample.tid) {
            Some(ring) => put(&ring, sample),
            None => self.count_guest_drop(sample.weight),
        }
    }

    /// Counts a sample of a thread that has no timer of its own. The monitor is told if it wants to be.
    pub(crate) fn count_guest_sample(&self) {
        self.counters.guest_samples.fetch_add(1, Ordering::Relaxed);
        if self.announces_guests.swap(false, Ordering::Relaxed) {
            DOORBELL.ring();
        }
    }

    /// Counts a sample that found no shared ring.
    pub(crate) fn count_guest_drop(&self, weight: u64) {
        self.counters.guest_drops.fetch_add(1, Ordering::Relaxed);
        self.counters.guest_dropped_weight.fetch_add(weight, Ordering::Relaxed);
    }

    /// The rings of watched threads, for the monitor to empty.
    pub(crate) fn own_rings(&self) -> impl Iterator<Item = &Ring> {
        (0..MAX_SLOTS).map_while(|index| self.slot(index)).map(|slot| &slot.ring)
    }

    /// The rings of everybody else.
    pub(crate) fn guest_rings(&self) -> impl Iterator<Item = &Ring> {
        self.guests.iter().map(|guest| &guest.ring)
    }
}

/// Puts a sample into a ring that the calling thread may write to, and wakes the monitor before the ring is full.
pub(crate) fn put(ring: &Ring, sample: &Sample<'_>) {
    if ring.push(&sample.head(), sample.frames, sample.weight) != Room::Plenty {
        DOORBELL.ring();
    }
}

/// The threads that have a timer of their own: written by the monitor, asked by handlers.
///
/// A fixed table of small buckets; a thread whose bucket is full is simply not armed and stays with the process
/// timer, so the answer is always right.
#[derive(Debug)]
pub(crate) struct ArmedThreads {
    buckets: Box<[[AtomicI32; ArmedThreads::WAYS]]>,
}

impl ArmedThreads {
    const BUCKETS: usize = 2048;
    const WAYS: usize = 8;

    fn new() -> ArmedThreads {
        ArmedThreads { buckets: (0..Self::BUCKETS).map(|_| Default::default()).collect() }
    }

    fn bucket(&self, tid: i32) -> &[AtomicI32; Self::WAYS] {
        &self.buckets[tid as usize % Self::BUCKETS]
    }

    /// Marks a thread; false if there is no room.
    pub(crate) fn insert(&self, tid: i32) -> bool {
        let free = self.bucket(tid).iter().find(|way| way.load(Ordering::Relaxed) == 0);
        free.map(|way| way.store(tid, Ordering::Release)).is_some()
    }

    /// Forgets a thread.
    pub(crate) fn remove(&self, tid: i32) {
        for way in self.bucket(tid) {
            if way.load(Ordering::Relaxed) == tid {
                way.store(0, Ordering::Release);
            }
        }
    }

    /// Whether the thread has a timer of its own.
    pub(crate) fn contains(&self, tid: i32) -> bool {
        self.bucket(tid).iter().any(|way| way.load(Ordering::Acquire) == tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: thread ids that fall into one bucket, more than it holds, come and go.
    /// Guarantee: membership is always answered truly, and a full bucket refuses.
    #[test]
    fn armed_threads_are_never_mistaken() {
        let armed = ArmedThreads::new();
        let tids: Vec<i32> = (0..9).map(|i| 5 + i * ArmedThreads::BUCKETS as i32).collect();
        let inserted: Vec<bool> = tids.iter().map(|tid| armed.insert(*tid)).collect();
        assert_eq!(inserted, [vec![true; 8], vec![false]].concat());
        assert!(armed.contains(tids[3]) && !armed.contains(tids[8]));
        armed.remove(tids[3]);
        assert!(!armed.contains(tids[3]) && armed.insert(tids[8]) && armed.contains(tids[8]));
    }
}
