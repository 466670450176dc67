//! Which threads there are, what they are called, and where their stacks lie.
//!
//! Listing threads and mappings costs more the more of them there are, so neither is done by the clock. The number of
//! threads is one cheap question, and a thread that came unseen shows itself: the process timer meets it, or its stack
//! is unknown. Until then it is sampled all the same, by that timer and through the kernel.

use super::{Look, Sampler, Watched};
use crate::sampler::SamplingMode;
use crate::sampler::address_space::AddressSpace;
use crate::sampler::capture::MAX_SLOTS;
use crate::sampler::clock::{cpu_clock_of_thread, monotonic_ns, read_clock, thread_cpu_ns};
use crate::sampler::modules::{Module, loader_version};
use crate::sampler::threads::thread_name;
use crate::sampler::timer::CpuTimer;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Threads are listed this often though nothing tells that they changed: as many may have come as went.
const LOOK_ANYWAY_NS: u64 = 5_000_000_000;

impl Sampler {
    /// Sees which threads came and went, if there is a sign that some did.
    pub(crate) fn scan(&mut self) {
        for tid in std::mem::take(&mut self.just_found) {
            // A thread begins with the name of the one that started it, and gets its own a moment later.
            self.name_of(tid);
        }
        let (now, before) = (self.glance(), self.last_look);
        let changed = now.threads != before.threads || now.guest_samples != before.guest_samples;
        let is_old = now.at_ns.saturating_sub(before.at_ns) >= LOOK_ANYWAY_NS;
        // Without timers nothing stands in for threads that are not known yet.
        let may_wait = self.mode == SamplingMode::ThreadTimers;
        if (changed || is_old) && (!may_wait || self.looking.is_due()) {
            let cpu_before = thread_cpu_ns();
            let fresh = self.look(now);
            // What a newcomer costs from here on it costs once.
            self.looking.spent_since(cpu_before);
            self.watch_all(fresh, Newcomers::WereBornSince(before.at_ns));
        }
        self.threads_change = changed || !self.just_found.is_empty();
    }

    /// Whether the last scan saw threads come or go.
    pub(crate) fn threads_change(&self) -> bool {
        self.threads_change
    }

    /// Whether a thread that nobody knows is met by the process timer when it works.
    pub(crate) fn meets_newcomers(&self) -> bool {
        self.process_timer.is_some() && self.signals_reach_running_threads
    }

    /// Has the monitor woken when the process timer meets a thread without a timer, or not any more.
    pub(crate) fn announce_guests(&self, on: bool) {
        self.capture.announces_guests.store(on, Ordering::Relaxed);
    }

    /// Sees which threads there are as sampling begins.
    pub(crate) fn scan_at_start(&mut self) {
        let fresh = self.look(self.glance());
        self.watch_all(fresh, Newcomers::WereThere);
        self.refresh_address_space();
    }

    fn glance(&self) -> Look {
        Look {
            at_ns: monotonic_ns(),
            threads: self.folder.thread_count(),
            guest_samples: self.capture.counters.guest_samples.load(Ordering::Relaxed),
        }
    }

    /// Lists the threads and forgets those that are gone. Returns the new ones, oldest first as the kernel lists
    /// them.
    fn look(&mut self, now: Look) -> Vec<i32> {
        self.last_look = now;
        self.read_clocks();
        let listed = self.folder.thread_ids();
        let alive: HashSet<i32> = listed.iter().copied().collect();
        let gone: Vec<i32> = self.watched.keys().copied().filter(|tid| !alive.contains(tid)).collect();
        gone.into_iter().for_each(|tid| self.forget(tid));
        listed.into_iter().filter(|tid| !self.watched.contains_key(tid)).collect()
    }

    fn watch_all(&mut self, fresh: Vec<i32>, newcomers: Newcomers) {
        fresh.iter().for_each(|tid| self.watch(*tid, newcomers));
        self.just_found = fresh;
    }

    fn watch(&mut self, tid: i32, newcomers: Newcomers) {
        let Some(index) = self.free_slots.pop().or_else(|| (self.used_slots < MAX_SLOTS).then_some(self.used_slots))
        else {
            return;
        };
        let Some(slot) = self.capture.slot_or_create(index) else { return };
        let clock = read_clock(cpu_clock_of_thread(tid)).unwrap_or(0);
        self.used_slots = self.used_slots.max(index + 1);
        slot.tid.store(tid, Ordering::Relaxed);
        slot.is_taking.store(false, Ordering::Relaxed);
        slot.span_pointer_at.store(0, Ordering::Relaxed);
        slot.last_wall_ns.store(monotonic_ns(), Ordering::Relaxed);
        slot.last_wall_cpu_ns.store(clock, Ordering::Relaxed);
        let mut timer = None;
        if self.mode == SamplingMode::ThreadTimers {
            match CpuTimer::for_thread(tid, index, self.signal) {
                Ok(created) if self.capture.armed.insert(tid) => timer = Some(created),
                Err(error) if is_limit(&error) && self.watched.is_empty() => {
                    // Not even one timer: timers are not to be had here.
                    self.mode = SamplingMode::SignalRotation;
                    self.process_timer = None;
                }
                // The thread has ended, or there are more threads than timers: the process timer covers it.
                _ => {
                    self.free_slots.push(index);
                    return;
                }
            }
        }
        let name = thread_name(tid).unwrap_or_default().into();
        let watched = Watched {
            slot: index,
            timer,
            name,
            signalled_cpu_ns: clock,
            seen_cpu_ns: clock,
            first_credit_ns: 0,
            rate_factor: 1,
        };
        self.watched.insert(tid, watched);
        // The process timer has counted what a thread used before it had one of its own. Where there is none, nobody has.
        let unaccounted = if self.process_timer.is_some() { 0 } else { newcomers.longest_age_ns() };
        self.arm(tid, Some(clock.saturating_sub(unaccounted)));
    }

    pub(super) fn forget(&mut self, tid: i32) {
        if let Some(watched) = self.watched.remove(&tid) {
            self.settle_departed(&watched);
            self.capture.armed.remove(tid);
            // Its ring may still hold samples: they are drained like all others, whoever uses the slot next.
            self.free_slots.push(watched.slot);
            self.departed.insert(tid, watched.name);
        }
    }

    /// Takes a new snapshot of memory if libraries came or went, or if samples met stacks that it does not know.
    pub(crate) fn follow_memory(&mut self) {
        let version = loader_version();
        let is_current =
            self.capture.unwinding.inspect_space(|space| space.is_some_and(|space| space.loader_version == version));
        let met_strangers = self.capture.unwinding.unknown_stacks() != self.strangers_when_mapped;
        if !is_current || (met_strangers && self.mapping.is_due()) {
            self.refresh_address_space();
        }
    }

    /// Takes a new snapshot: of everything if libraries came or went, of mappings otherwise.
    fn refresh_address_space(&mut self) {
        let cpu_before = thread_cpu_ns();
        let unwinding = &self.capture.unwinding;
        // Counted first: a stack that is met in between is a reason for another snapshot.
        self.strangers_when_mapped = unwinding.unknown_stacks();
        let version = loader_version();
        let fresh = unwinding.inspect_space(|space| {
            space.filter(|space| space.loader_version == version).map(AddressSpace::with_fresh_mappings)
        });
        unwinding.replace_space(fresh.unwrap_or_else(AddressSpace::capture));
        self.mapping.spent_since(cpu_before);
    }

    /// The modules of the current snapshot.
    pub(crate) fn modules(&self) -> Arc<[Module]> {
        self.capture.unwinding.inspect_space(|space| space.map(|space| Arc::clone(&space.modules)).unwrap_or_default())
    }

    /// A thread's name as it is now, or as it was when the thread ended: threads often get theirs after they start.
    pub(crate) fn name_of(&mut self, tid: i32) -> Option<Arc<str>> {
        let Some(watched) = self.watched.get_mut(&tid) else { return self.departed.get(&tid).map(Arc::clone) };
        if let Some(name) = thread_name(tid)
            && *name != *watched.name
        {
            watched.name = name.into();
        }
        Some(Arc::clone(&watched.name))
    }

    /// Forgets the names of ended threads, whose samples have been handed over.
    pub(crate) fn forget_departed(&mut self) {
        self.departed.clear();
    }
}

/// What is known about threads that are met for the first time.
#[derive(Debug, Clone, Copy)]
enum Newcomers {
    /// They may have run for long: what they used before is not ours to count.
    WereThere,
    /// They came after this time, and everything that they used was used while sampling.
    WereBornSince(u64),
}

impl Newcomers {
    /// How much of a newcomer's CPU time can belong to the time of sampling.
    fn longest_age_ns(self) -> u64 {
        match self {
            Newcomers::WereThere => 0,
            Newcomers::WereBornSince(then) => monotonic_ns().saturating_sub(then),
        }
    }
}

/// The kernel is out of timers for this user, or forbids them.
fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM | libc::EPERM | libc::ENOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::clock::current_tid;

    /// Scenario: a process of two hundred waiting threads is scanned again and again; then one more thread starts.
    /// Guarantee: as long as nothing changes a scan costs a small part of a listing; the newcomer is found.
    #[test]
    fn threads_are_listed_only_when_they_change() {
        let over = Arc::new(std::sync::Barrier::new(202));
        let wait = || {
            let (over, (tell, told)) = (Arc::clone(&over), std::sync::mpsc::channel());
            let thread = std::thread::spawn(move || {
                tell.send(current_tid()).unwrap();
                over.wait();
            });
            (thread, told.recv().unwrap())
        };
        let mut threads: Vec<_> = (0..200).map(|_| wait()).collect();
        let mut sampler = Sampler::start(libc::SIGPROF, SamplingMode::ClocksOnly, 64);
        sampler.scan_at_start();
        assert!(threads.iter().all(|(_, tid)| sampler.watched.contains_key(tid)));
        let before = thread_cpu_ns();
        sampler.folder.thread_ids();
        let listing = thread_cpu_ns() - before;
        // Other tests of this program start and end threads as well: the cheapest scan is the one without a change.
        let scans = (0..100).map(|_| {
            let before = thread_cpu_ns();
            sampler.scan();
            thread_cpu_ns() - before
        });
        let cheapest = scans.min().unwrap();
        assert!(cheapest * 5 < listing, "{cheapest} ns a scan, {listing} ns a listing");
        let newcomer = wait();
        // At once, unless a thread of another test has ended in the same moment: then with the next change.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !sampler.watched.contains_key(&newcomer.1) {
            assert!(std::time::Instant::now() < deadline);
            sampler.scan();
        }
        threads.push(newcomer);
        over.wait();
        threads.into_iter().for_each(|(thread, _)| thread.join().unwrap());
    }
}
