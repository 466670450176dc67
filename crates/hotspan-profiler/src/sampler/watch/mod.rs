//! The monitor's half of sampling: which threads have timers, at what rate, and what their rings hold.

mod by_hand;
mod discovery;
mod guests;
mod sparing;

use crate::random::random_unit;
use crate::sampler::SamplingMode;
use crate::sampler::address_space::AddressSpace;
use crate::sampler::capture::Capture;
use crate::sampler::clock::{cpu_clock_of_thread, read_clock, tick_ns};
use crate::sampler::handler;
use crate::sampler::ring::Ring;
use crate::sampler::sample::{Sample, SampleKind};
use crate::sampler::thread_id::forget_thread_ids;
use crate::sampler::threads::ThreadFolder;
use crate::sampler::timer::{CpuTimer, signals_reach_running_threads};
use guests::Guests;
use sparing::Sparing;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How far a thread's period may lie from the nominal one, so that no thread stays in step with periodic work.
const JITTER: f64 = 0.1;

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
    /// CPU clock when clocks were last read.
    seen_cpu_ns: u64,
    /// What the first sample stands for beyond what the clock said.
    first_credit_ns: u64,
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
    /// Threads that the last look met for the first time.
    just_found: Vec<i32>,
    threads_change: bool,
    process_timer: Option<CpuTimer>,
    signals_reach_running_threads: bool,
    free_slots: Vec<usize>,
    used_slots: usize,
    scratch: Vec<u64>,
    dropped: Dropped,
    process_factor: u64,
    /// Samples of threads without a timer, when the process timer was last tuned.
    guests_when_tuned: u64,
    folder: ThreadFolder,
    last_look: Look,
    looking: Sparing,
    mapping: Sparing,
    settling: Sparing,
    guests: Guests,
    unsampled_threads: usize,
    /// No CPU timer of the kernel is finer than its tick.
    tick_ns: u64,
    /// Samples of unknown stacks when the snapshot was taken.
    strangers_when_mapped: u64,
}

/// What the process was like when its threads were last listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    at_ns: u64,
    threads: Option<u64>,
    guest_samples: u64,
}

/// What did not fit into a ring.
#[derive(Debug, Default)]
struct Dropped {
    samples: u64,
    weight: u64,
}

impl Dropped {
    /// Hands out what a ring holds, and counts what it could not hold.
    fn empty(&mut self, ring: &Ring, scratch: &mut Vec<u64>, mut each: impl FnMut(&[u64], Sample<'_>)) {
        if !ring.is_empty() {
            ring.drain(scratch, |words| {
                if let Some(sample) = Sample::from_words(words) {
                    each(words, sample);
                }
            });
        }
        let (samples, weight) = ring.take_dropped();
        self.samples += samples;
        self.weight += weight;
    }
}

impl Sampler {
    /// Starts in the best mode that the system allows, at or after `at_best`.
    pub(crate) fn start(signal: libc::c_int, at_best: SamplingMode, max_frames: usize) -> Sampler {
        forget_thread_ids();
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
            just_found: Vec::new(),
            threads_change: false,
            process_timer: None,
            signals_reach_running_threads: signals_reach_running_threads(),
            free_slots: Vec::new(),
            used_slots: 0,
            scratch: Vec::new(),
            dropped: Dropped::default(),
            process_factor: 1,
            guests_when_tuned: 0,
            folder: ThreadFolder::open(),
            last_look: Look::default(),
            looking: Sparing::one_part_in(1_000),
            mapping: Sparing::one_part_in(4_000),
            settling: Sparing::one_part_in(1_000),
            guests: Guests::default(),
            unsampled_threads: 0,
            tick_ns: tick_ns(),
            strangers_when_mapped: 0,
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

    /// The period that comes of asking for one: the kernel looks at timers once a tick.
    pub(crate) fn achieved_period(&self, period_ns: u64) -> u64 {
        if period_ns == 0 { 0 } else { period_ns.max(self.tick_ns) }
    }

    /// Sets the sampling period for all threads; zero pauses. Weights follow the clock, so totals stay right.
    pub(crate) fn set_period(&mut self, period_ns: u64) {
        let resumes = self.period_ns == 0;
        if !resumes {
            // What guests used until now counts, whether sampling goes on or not.
            self.read_clocks();
        }
        self.period_ns = self.achieved_period(period_ns);
        if resumes {
            self.begin_guest_time();
        }
        let tids: Vec<i32> = self.watched.keys().copied().collect();
        for tid in tids {
            self.arm(tid, resumes.then(|| read_clock(cpu_clock_of_thread(tid)).unwrap_or(0)));
        }
        self.arm_process_timer();
    }

    /// Multiplies one thread's rate, for work that deserves a closer look. One is normal.
    pub(crate) fn set_rate_factor(&mut self, tid: i32, factor: u64) {
        if let Some(watched) = self.watched.get_mut(&tid)
            && watched.rate_factor != factor
        {
            watched.rate_factor = factor;
            self.arm(tid, None);
        }
    }

    fn arm_process_timer(&mut self) {
        if let Some(timer) = &self.process_timer {
            let period = self.period_ns * self.process_factor;
            if period > 0 {
                self.capture.process_period_ns.store(period, Ordering::Relaxed);
            }
            let first = if period == 0 { 0 } else { (period as f64 * random_unit()) as u64 + 1 };
            // A timer that cannot be armed only costs the coverage of very short threads.
            let _ = timer.arm(first, period);
        }
    }

    /// Lets the process timer rest while it finds no thread without a timer: most of its signals would be for nothing.
    /// Each of its samples stands for its own period, so that the estimate stays unbiased at either rate.
    pub(crate) fn tune_process_timer(&mut self) {
        let guests = self.capture.counters.guest_samples.load(Ordering::Relaxed);
        let factor = if guests == self.guests_when_tuned { IDLE_PROCESS_FACTOR } else { 1 };
        self.guests_when_tuned = guests;
        if factor != self.process_factor {
            self.process_factor = factor;
            self.arm_process_timer();
        }
    }

    /// Arms the timer of a watched thread. `account_from`: what its CPU clock said where its time begins to count.
    fn arm(&mut self, tid: i32, account_from: Option<u64>) {
        let (capture, period_ns, tick_ns) = (self.capture, self.period_ns, self.tick_ns);
        let Some(watched) = self.watched.get_mut(&tid) else { return };
        let Some(slot) = capture.slot(watched.slot) else { return };
        let period = (period_ns / watched.rate_factor.max(1)).max(tick_ns);
        let period = (period as f64 * (1.0 + JITTER * (2.0 * random_unit() - 1.0))) as u64;
        let first = (period as f64 * random_unit()) as u64 + 1;
        if let Some(clock) = account_from {
            watched.signalled_cpu_ns = clock;
            watched.seen_cpu_ns = clock;
            // The first sample comes at a random point of the first period and stands for a whole one: on average
            // that is just what the thread has used, however short it lives.
            let by_timer = self.mode == SamplingMode::ThreadTimers;
            watched.first_credit_ns = if by_timer { period.saturating_sub(first) } else { 0 };
            slot.cpu_accounted_ns.store(clock.wrapping_sub(watched.first_credit_ns), Ordering::Relaxed);
        }
        if let Some(timer) = &watched.timer {
            let (first, period) = if period_ns == 0 { (0, 0) } else { (first, period) };
            // It fails only if the thread has ended, which the next scan notices.
            let _ = timer.arm(first, period);
        }
    }

    /// Empties all rings.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        for ring in self.capture.own_rings() {
            self.dropped.empty(ring, &mut self.scratch, |_, sample| each(&sample));
        }
        let guests = &mut self.guests;
        for ring in self.capture.guest_rings() {
            self.dropped.empty(ring, &mut self.scratch, |words, sample| match sample.kind {
                SampleKind::Cpu => guests.wait(words, sample.weight),
                _ => each(&sample),
            });
        }
        self.release_guests(each);
    }

    pub(crate) fn counts(&self) -> SamplerCounts {
        let counters = &self.capture.counters;
        SamplerCounts {
            signals: counters.signals.load(Ordering::Relaxed),
            foreign_signals: counters.foreign_signals.load(Ordering::Relaxed),
            handler_ticks: counters.busy_ticks.load(Ordering::Relaxed),
            wall_ticks: counters.wall_ticks.load(Ordering::Relaxed),
            dropped_samples: self.dropped.samples + counters.guest_drops.load(Ordering::Relaxed),
            dropped_weight: self.dropped.weight + counters.guest_dropped_weight.load(Ordering::Relaxed),
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
