//! The monitor's half of sampling: which threads have timers, at what rate, and what their rings hold.

use crate::context::SpanKey;
use crate::random::random_unit;
use crate::sampler::SamplingMode;
use crate::sampler::address_space::AddressSpace;
use crate::sampler::capture::{Capture, MAX_SLOTS, Slot};
use crate::sampler::clock::{cpu_clock_of_thread, monotonic_ns, process_cpu_ns, read_clock};
use crate::sampler::handler;
use crate::sampler::modules::{Module, loader_version};
use crate::sampler::sample::{Sample, SampleKind};
use crate::sampler::signal_payload::Payload;
use crate::sampler::stack_reader::read_words;
use crate::sampler::threads::{thread_ids, thread_name};
use crate::sampler::timer::{CpuTimer, signal_thread};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How far a thread's period may lie from the nominal one, so that no thread stays in step with periodic work.
const JITTER: f64 = 0.1;

/// What a thread publishes that works on no span.
const NO_SPAN: u64 = 0;

/// How much rarer the process timer fires while no thread needs it.
const IDLE_PROCESS_FACTOR: u64 = 4;

/// One thread under observation.
#[derive(Debug)]
struct Watched {
    slot: usize,
    timer: Option<CpuTimer>,
    name: Arc<str>,
    /// CPU clock at the last signal sent by hand, or the last clock-only sample.
    signalled_cpu_ns: u64,
    /// CPU clock at the last look for reused ids.
    seen_cpu_ns: u64,
    rate_factor: u64,
}

/// What sampling has done since it started. Counters only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SamplerCounts {
    pub(crate) signals: u64,
    pub(crate) foreign_signals: u64,
    pub(crate) handler_ticks: u64,
    pub(crate) wall_ticks: u64,
    pub(crate) dropped_samples: u64,
    pub(crate) dropped_weight: u64,
    pub(crate) threads: usize,
}

/// Watches the threads of the process. Owned by the monitor thread.
#[derive(Debug)]
pub(crate) struct Sampler {
    capture: &'static Capture,
    signal: libc::c_int,
    mode: SamplingMode,
    period_ns: u64,
    watched: HashMap<i32, Watched>,
    /// Names of threads that have ended since the last call of `forget_departed`: their samples still need them.
    departed: HashMap<i32, Arc<str>>,
    process_timer: Option<CpuTimer>,
    free_slots: Vec<usize>,
    used_slots: usize,
    scratch: Vec<u64>,
    dropped: (u64, u64),
    cpu_at_last_scan: u64,
    process_factor: u64,
    guests_seen: u64,
}

impl Sampler {
    /// Starts in the best mode that the system allows, at or after `at_best`.
    pub(crate) fn start(signal: libc::c_int, at_best: SamplingMode, max_frames: usize) -> Sampler {
        let capture = Capture::global();
        capture.unwinding.set_max_frames(max_frames);
        capture.unwinding.replace_space(AddressSpace::capture());
        let mut sampler = Sampler {
            capture,
            signal,
            mode: at_best,
            period_ns: 0,
            watched: HashMap::new(),
            departed: HashMap::new(),
            process_timer: None,
            free_slots: Vec::new(),
            used_slots: 0,
            scratch: Vec::new(),
            dropped: (0, 0),
            cpu_at_last_scan: 0,
            process_factor: 1,
            guests_seen: 0,
        };
        if sampler.mode != SamplingMode::ClocksOnly && handler::install(signal).is_err() {
            sampler.mode = SamplingMode::ClocksOnly;
        }
        if sampler.mode == SamplingMode::ThreadTimers {
            match CpuTimer::for_process(signal) {
                Ok(timer) => sampler.process_timer = Some(timer),
                Err(_) => sampler.mode = SamplingMode::SignalRotation,
            }
        }
        sampler
    }

    /// The mode that runs.
    pub(crate) fn mode(&self) -> SamplingMode {
        self.mode
    }

    /// True while the signal is still ours.
    pub(crate) fn owns_signal(&self) -> bool {
        self.mode == SamplingMode::ClocksOnly || handler::is_installed(self.signal)
    }

    /// Sets the sampling period for all threads; zero pauses. Weights follow the clock, so totals stay right.
    pub(crate) fn set_period(&mut self, period_ns: u64) {
        let resumes = self.period_ns == 0;
        self.period_ns = period_ns;
        let tids: Vec<i32> = self.watched.keys().copied().collect();
        for tid in tids {
            self.arm(tid, resumes);
        }
        self.arm_process_timer();
    }

    /// Multiplies one thread's rate, for work that deserves a closer look. One is normal.
    pub(crate) fn set_rate_factor(&mut self, tid: i32, factor: u64) {
        if let Some(watched) = self.watched.get_mut(&tid)
            && watched.rate_factor != factor
        {
            watched.rate_factor = factor;
            self.arm(tid, false);
        }
    }

    fn arm_process_timer(&mut self) {
        if let Some(timer) = &self.process_timer {
            let period = self.period_ns * self.process_factor;
            self.capture.process_period_ns.store(period, Ordering::Relaxed);
            let first = if period == 0 { 0 } else { (period as f64 * random_unit()) as u64 + 1 };
            // A timer that cannot be armed only costs the coverage of very short threads.
            let _ = timer.arm(first, period);
        }
    }

    /// Lets the process timer rest while it finds no thread without a timer: most of its signals would be for nothing.
    /// Each of its samples stands for its own period, so that the estimate stays unbiased at either rate.
    pub(crate) fn tune_process_timer(&mut self) {
        let guests = self.capture.counters.guest_samples.load(Ordering::Relaxed);
        let factor = if guests == self.guests_seen { IDLE_PROCESS_FACTOR } else { 1 };
        self.guests_seen = guests;
        if factor != self.process_factor {
            self.process_factor = factor;
            self.arm_process_timer();
        }
    }

    /// Arms the timer of a watched thread. `from_scratch`: its CPU time so far is somebody else's or nobody's.
    fn arm(&mut self, tid: i32, from_scratch: bool) {
        let (capture, period_ns) = (self.capture, self.period_ns);
        let Some(watched) = self.watched.get_mut(&tid) else { return };
        let Some(slot) = capture.slot(watched.slot) else { return };
        let period = period_ns / watched.rate_factor.max(1);
        let period = (period as f64 * (1.0 + JITTER * (2.0 * random_unit() - 1.0))) as u64;
        let first = (period as f64 * random_unit()) as u64 + 1;
        if from_scratch {
            let clock = read_clock(cpu_clock_of_thread(tid)).unwrap_or(0);
            watched.signalled_cpu_ns = clock;
            // The first sample comes at a random point of the first period and stands for a whole one: on average
            // that is just what the thread has used, however short it lives.
            let by_timer = self.mode == SamplingMode::ThreadTimers;
            let accounted = if by_timer { clock.wrapping_add(first).wrapping_sub(period) } else { clock };
            slot.cpu_accounted_ns.store(accounted, Ordering::Relaxed);
        }
        if let Some(timer) = &watched.timer {
            let (first, period) = if period_ns == 0 { (0, 0) } else { (first, period) };
            // It fails only if the thread has ended, which the next scan notices.
            let _ = timer.arm(first, period);
        }
    }

    /// Sees which threads came and went. `force` looks even if the process has hardly run.
    pub(crate) fn scan(&mut self, force: bool) {
        const WORTH_A_LOOK_NS: u64 = 500_000;
        let cpu = process_cpu_ns();
        if !force && cpu.saturating_sub(self.cpu_at_last_scan) < WORTH_A_LOOK_NS {
            return;
        }
        self.cpu_at_last_scan = cpu;
        let alive = thread_ids();
        let fresh: Vec<i32> = alive.iter().copied().filter(|tid| !self.watched.contains_key(tid)).collect();
        let gone: Vec<i32> = self.watched.keys().copied().filter(|tid| !alive.contains(tid)).collect();
        for tid in gone {
            self.forget(tid);
        }
        if !fresh.is_empty() {
            // Their stacks exist by now, so a snapshot taken here knows them.
            self.refresh_address_space();
        }
        for tid in fresh {
            self.watch(tid);
        }
    }

    fn watch(&mut self, tid: i32) {
        let Some(index) = self.free_slots.pop().or_else(|| (self.used_slots < MAX_SLOTS).then_some(self.used_slots))
        else {
            return;
        };
        let Some(slot) = self.capture.slot_or_create(index) else { return };
        self.used_slots = self.used_slots.max(index + 1);
        slot.tid.store(tid, Ordering::Relaxed);
        slot.span_pointer_at.store(0, Ordering::Relaxed);
        slot.last_wall_ns.store(monotonic_ns(), Ordering::Relaxed);
        slot.last_wall_cpu_ns.store(read_clock(cpu_clock_of_thread(tid)).unwrap_or(0), Ordering::Relaxed);
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
        self.watched
            .insert(tid, Watched { slot: index, timer, name, signalled_cpu_ns: 0, seen_cpu_ns: 0, rate_factor: 1 });
        self.arm(tid, true);
    }

    fn forget(&mut self, tid: i32) {
        if let Some(watched) = self.watched.remove(&tid) {
            self.capture.armed.remove(tid);
            // Its ring may still hold samples: they are drained like all others, whoever uses the slot next.
            self.free_slots.push(watched.slot);
            self.departed.insert(tid, watched.name);
        }
    }

    /// Finds threads whose id was taken over by a new one between two scans: a CPU clock never runs backwards. The next
    /// scan meets them as new.
    pub(crate) fn forget_reused_ids(&mut self) {
        let mut reused = Vec::new();
        for (tid, watched) in &mut self.watched {
            let clock = read_clock(cpu_clock_of_thread(*tid)).unwrap_or(0);
            if clock < watched.seen_cpu_ns {
                reused.push(*tid);
            }
            watched.seen_cpu_ns = clock;
        }
        reused.into_iter().for_each(|tid| self.forget(tid));
    }

    /// Forgets the names of ended threads, whose samples have been handed over.
    pub(crate) fn forget_departed(&mut self) {
        self.departed.clear();
    }

    /// Takes a new snapshot if libraries came or went.
    pub(crate) fn follow_loader(&mut self) {
        let version = loader_version();
        let is_current = |space: Option<&AddressSpace>| space.is_some_and(|space| space.loader_version == version);
        if !self.capture.unwinding.inspect_space(is_current) {
            self.refresh_address_space();
        }
    }

    /// Takes a new snapshot: of everything if libraries came or went, of mappings otherwise.
    fn refresh_address_space(&mut self) {
        let unwinding = &self.capture.unwinding;
        let version = loader_version();
        let fresh = unwinding.inspect_space(|space| {
            space.filter(|space| space.loader_version == version).map(AddressSpace::with_fresh_mappings)
        });
        unwinding.replace_space(fresh.unwrap_or_else(AddressSpace::capture));
    }

    /// The modules of the current snapshot.
    pub(crate) fn modules(&self) -> Arc<[Module]> {
        self.capture.unwinding.inspect_space(|space| space.map(|space| Arc::clone(&space.modules)).unwrap_or_default())
    }

    /// Does by hand what timers do otherwise: signals threads that have used a period, or notes their clocks.
    pub(crate) fn rotate(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        if self.mode == SamplingMode::ThreadTimers || self.period_ns == 0 {
            return;
        }
        let mut refused = false;
        for (tid, watched) in &mut self.watched {
            let Some(clock) = read_clock(cpu_clock_of_thread(*tid)) else { continue };
            let used = clock.saturating_sub(watched.signalled_cpu_ns);
            if used < self.period_ns {
                continue;
            }
            watched.signalled_cpu_ns = clock;
            if self.mode == SamplingMode::SignalRotation {
                let sent = signal_thread(*tid, Payload::ThreadCpu { slot: watched.slot }, self.signal);
                refused |= sent.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM));
            } else {
                each(&Sample {
                    kind: SampleKind::Cpu,
                    flags: crate::sampler::sample::FLAG_LEAF_ONLY,
                    monotonic_ns: monotonic_ns(),
                    weight: used,
                    extra: 0,
                    extra2: 0,
                    tid: *tid,
                    span: SpanKey::default(),
                    frames: &[],
                });
            }
        }
        if refused {
            self.mode = SamplingMode::ClocksOnly;
        }
    }

    /// Asks every thread that works on a span what it is doing right now. Most threads of most services wait for work:
    /// to wake them only to hear that would cost more than all samples do.
    pub(crate) fn signal_wall(&mut self, period_ns: u64) {
        self.capture.wall_period_ns.store(period_ns, Ordering::Relaxed);
        if self.mode == SamplingMode::ClocksOnly {
            return;
        }
        let threads: Vec<(i32, usize, &Slot)> = self
            .watched
            .iter()
            .filter_map(|(tid, watched)| Some((*tid, watched.slot, self.capture.slot(watched.slot)?)))
            .collect();
        let pointers = threads.iter().map(|(_, _, slot)| slot.span_pointer_at.load(Ordering::Relaxed));
        read_words(&pointers.collect::<Vec<_>>(), &mut self.scratch);
        for ((tid, index, slot), span) in threads.into_iter().zip(&self.scratch) {
            if *span == NO_SPAN {
                slot.last_wall_ns.store(monotonic_ns(), Ordering::Relaxed);
                let cpu_ns = read_clock(cpu_clock_of_thread(tid)).unwrap_or(0);
                slot.last_wall_cpu_ns.store(cpu_ns, Ordering::Relaxed);
            } else {
                // It fails only if the thread has ended.
                let _ = signal_thread(tid, Payload::Wall { slot: index }, self.signal);
            }
        }
    }

    /// Empties all rings.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        for ring in self.capture.rings() {
            if !ring.is_empty() {
                ring.drain(&mut self.scratch, |words| {
                    if let Some(sample) = Sample::from_words(words) {
                        each(&sample);
                    }
                });
            }
            let (records, weight) = ring.take_dropped();
            self.dropped.0 += records;
            self.dropped.1 += weight;
        }
    }

    /// A thread's name, if it is (or was just) alive.
    pub(crate) fn name_of(&self, tid: i32) -> Option<Arc<str>> {
        let alive = self.watched.get(&tid).map(|watched| &watched.name);
        alive.or_else(|| self.departed.get(&tid)).map(Arc::clone)
    }

    /// Reads names again: threads often get theirs after they start.
    pub(crate) fn refresh_names(&mut self) {
        for (tid, watched) in &mut self.watched {
            if let Some(name) = thread_name(*tid)
                && *name != *watched.name
            {
                watched.name = name.into();
            }
        }
    }

    pub(crate) fn counts(&self) -> SamplerCounts {
        let counters = &self.capture.counters;
        SamplerCounts {
            signals: counters.signals.load(Ordering::Relaxed),
            foreign_signals: counters.foreign_signals.load(Ordering::Relaxed),
            handler_ticks: counters.busy_ticks.load(Ordering::Relaxed),
            wall_ticks: counters.wall_ticks.load(Ordering::Relaxed),
            dropped_samples: self.dropped.0 + counters.guest_drops.load(Ordering::Relaxed),
            dropped_weight: self.dropped.1 + counters.guest_dropped_weight.load(Ordering::Relaxed),
            threads: self.watched.len(),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let tids: Vec<i32> = self.watched.keys().copied().collect();
        for tid in tids {
            self.forget(tid);
        }
    }
}

/// The kernel is out of timers for this user, or forbids them.
fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM | libc::EPERM | libc::ENOSYS))
}
