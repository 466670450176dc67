//! Samples that the monitor asks for itself: of the CPU where timers are not to be had, and by the wall clock.

use super::Sampler;
use crate::sampler::SamplingMode;
use crate::sampler::capture::Slot;
use crate::sampler::clock::{cpu_clock_of_thread, monotonic_ns, read_clock};
use crate::sampler::sample::Sample;
use crate::sampler::signal_payload::Payload;
use crate::sampler::stack_reader::read_words;
use crate::sampler::timer::signal_thread;
use std::sync::atomic::Ordering;

/// What a thread publishes that works on no span.
const NO_SPAN: u64 = 0;

impl Sampler {
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
                each(&Sample::of_clock(*tid, used, &[]));
            }
        }
        if refused {
            self.mode = SamplingMode::ClocksOnly;
        }
    }

    /// Begins to sample by the wall clock: what was before does not count.
    pub(crate) fn begin_wall(&mut self) {
        for (tid, watched) in &self.watched {
            if let Some(slot) = self.capture.slot(watched.slot) {
                slot.note_wall(*tid);
            }
        }
    }

    /// Asks every thread that works on a span what it is doing right now. Most threads of most services wait for work:
    /// to wake them only to hear that would cost more than all samples do.
    pub(crate) fn signal_wall(&mut self) {
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
                slot.note_wall(tid);
            } else {
                // It fails only if the thread has ended.
                let _ = signal_thread(tid, Payload::Wall { slot: index }, self.signal);
            }
        }
    }
}

impl Slot {
    /// Wall-clock time counts from here on, for the thread that has this slot.
    fn note_wall(&self, tid: i32) {
        self.last_wall_ns.store(monotonic_ns(), Ordering::Relaxed);
        self.last_wall_cpu_ns.store(read_clock(cpu_clock_of_thread(tid)).unwrap_or(0), Ordering::Relaxed);
    }
}
