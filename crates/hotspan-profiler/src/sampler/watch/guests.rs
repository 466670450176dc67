//! CPU time of threads that have no timer of their own: too young, or too many.
//!
//! Clocks tell how much it is: what the process used less what the threads with timers used. Samples of the process
//! timer tell where it went. They can't tell how much, since the kernel does not always signal the thread that ran: one
//! that starts, ends, forks or blocks the signal is passed over, and any other thread is signalled in its place. So
//! samples wait until the clocks are read, and share what those say.

use super::{Sampler, Watched};
use crate::aggregate::synthetic_frame;
use crate::sampler::capture::Capture;
use crate::sampler::clock::{cpu_clock_of_thread, process_cpu_ns, read_clock, thread_cpu_ns};
use crate::sampler::sample::Sample;
use std::sync::atomic::Ordering;

/// How many times its own period a sample may stand for: what is still left then was hardly used where it was taken.
const MOST_PERIODS: f64 = 4.0;
/// Time without a sample, in periods, that can't be chance any more (one time in fifty).
const UNSEEN_PERIODS: u64 = 4;
/// CPU time without a sample after which a thread is taken for one that blocks the signal.
const LONGEST_UNSAMPLED_NS: u64 = 1_000_000_000;
/// The same in periods, where they are long.
const UNSAMPLED_PERIODS: u64 = 10;
/// Words of samples that may wait (R5).
const MOST_WAITING_WORDS: usize = 1 << 16;

/// What is known about guests and not told yet.
#[derive(Debug, Default)]
pub(super) struct Guests {
    /// CPU time that no sample stands for. It may be negative for a while: clocks can't be read all at one moment.
    owed_ns: i64,
    /// The process's clock when clocks were last read.
    process_ns: u64,
    /// Samples, each after its length in words.
    waiting: Vec<u64>,
    waiting_weight: u64,
}

impl Guests {
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_WAITING_WORDS
    }

    pub(super) fn wait(&mut self, words: &[u64], weight: u64) {
        self.waiting.push(words.len() as u64);
        self.waiting.extend_from_slice(words);
        self.waiting_weight += weight;
    }

    /// Hands out the waiting samples with the time that they stand for; what they can't stand for stays owed.
    fn release(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        if self.owed_ns <= 0 && !self.is_full() {
            return;
        }
        let owed_ns = self.owed_ns.max(0);
        let share = (owed_ns as f64 / self.waiting_weight.max(1) as f64).min(MOST_PERIODS);
        let mut rest = &self.waiting[..];
        while let Some((length, after)) = rest.split_first() {
            let (words, next) = after.split_at(*length as usize);
            rest = next;
            if let Some(mut sample) = Sample::from_words(words) {
                sample.weight = (sample.weight as f64 * share) as u64;
                self.owed_ns -= sample.weight as i64;
                each(&sample);
            }
        }
        self.waiting.clear();
        self.waiting_weight = 0;
    }

    /// Takes what is owed although nothing waits to stand for it, if that is more than chance explains.
    fn take_unseen(&mut self, period_ns: u64) -> Option<u64> {
        let is_unseen = self.owed_ns > period_ns.saturating_mul(UNSEEN_PERIODS) as i64;
        is_unseen.then(|| std::mem::take(&mut self.owed_ns) as u64)
    }
}

impl Watched {
    /// What the thread's clock says as far as its own samples have told.
    fn sampled_until(&self, capture: &Capture) -> u64 {
        let accounted = capture.slot(self.slot).map_or(0, |slot| slot.cpu_accounted_ns.load(Ordering::Relaxed));
        accounted.wrapping_add(self.first_credit_ns)
    }
}

impl Sampler {
    /// Counts from here on, as sampling begins or goes on.
    pub(super) fn begin_guest_time(&mut self) {
        self.guests.process_ns = process_cpu_ns();
    }

    /// Reads all clocks: what no watched thread used, others did. Forgets threads that have ended, also where a new one
    /// has taken over the id: a CPU clock never runs backwards.
    pub(super) fn read_clocks(&mut self) {
        let process_ns = process_cpu_ns();
        let mut owed_ns = process_ns.wrapping_sub(self.guests.process_ns) as i64;
        let mut ended = Vec::new();
        for (tid, watched) in &mut self.watched {
            match read_clock(cpu_clock_of_thread(*tid)) {
                Some(clock) if clock >= watched.seen_cpu_ns => {
                    owed_ns -= (clock - watched.seen_cpu_ns) as i64;
                    watched.seen_cpu_ns = clock;
                }
                _ => ended.push(*tid),
            }
        }
        self.guests.process_ns = process_ns;
        if self.period_ns > 0 {
            self.guests.owed_ns += owed_ns;
        }
        ended.into_iter().for_each(|tid| self.forget(tid));
    }

    /// A watched thread has ended, and nobody can read its clock any more: its samples are the best estimate of it.
    pub(super) fn settle_departed(&mut self, watched: &Watched) {
        if watched.timer.is_some() && self.period_ns > 0 {
            let unseen = watched.sampled_until(self.capture).wrapping_sub(watched.seen_cpu_ns) as i64;
            self.guests.owed_ns -= unseen;
        }
    }

    /// Hands out the samples of guests, unless clocks were read a moment ago and there are many of them.
    pub(super) fn release_guests(&mut self, each: impl FnMut(&Sample<'_>)) {
        if self.guests.waiting.is_empty() || !(self.settling.is_due() || self.guests.is_full()) {
            return;
        }
        let cpu_before = thread_cpu_ns();
        self.read_clocks();
        self.settling.spent_since(cpu_before);
        self.guests.release(each);
    }

    /// Hands out what is known about guests, with or without a stack. `for_good`: there will be no sample to wait for.
    pub(crate) fn settle_guests(&mut self, for_good: bool, mut each: impl FnMut(&Sample<'_>)) {
        if self.process_timer.is_none() {
            return;
        }
        self.read_clocks();
        self.guests.release(&mut each);
        self.tell_unsampled(&mut each);
        let period_ns = if for_good { 0 } else { self.capture.process_period_ns.load(Ordering::Relaxed) };
        if let Some(weight) = self.guests.take_unseen(period_ns) {
            each(&Sample::of_clock(0, weight, &[synthetic_frame::SHORT_THREADS]));
        }
    }

    /// Tells what watched threads used that take no signals, as far as their clocks were read: nobody else will.
    fn tell_unsampled(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        self.unsampled_threads = 0;
        let longest_ns = LONGEST_UNSAMPLED_NS.max(UNSAMPLED_PERIODS * self.period_ns);
        for (tid, watched) in self.watched.iter().filter(|(_, watched)| watched.timer.is_some()) {
            let Some(slot) = self.capture.slot(watched.slot) else { continue };
            let accounted = slot.cpu_accounted_ns.load(Ordering::Relaxed);
            let unsampled_ns = watched.seen_cpu_ns.wrapping_sub(accounted) as i64;
            let is_long = unsampled_ns > longest_ns as i64;
            // A sample that comes in this moment after all has told the same time.
            let exchanged =
                |to| slot.cpu_accounted_ns.compare_exchange(accounted, to, Ordering::Relaxed, Ordering::Relaxed);
            if is_long && exchanged(watched.seen_cpu_ns).is_ok() {
                self.unsampled_threads += 1;
                each(&Sample::of_clock(*tid, unsampled_ns as u64, &[synthetic_frame::NOT_SAMPLED]));
            }
        }
    }

    /// Threads that took no signals when their clocks were last read, though they worked.
    pub(crate) fn unsampled_threads(&self) -> usize {
        self.unsampled_threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guests_with(owed_ns: i64, weights: &[u64]) -> Guests {
        let mut guests = Guests { owed_ns, ..Guests::default() };
        for weight in weights {
            let sample = Sample::of_clock(2, *weight, &[3, 4]);
            guests.wait(&[&sample.head()[..], sample.frames].concat(), *weight);
        }
        guests
    }

    fn released(guests: &mut Guests) -> Vec<u64> {
        let mut weights = Vec::new();
        guests.release(|sample| weights.push(sample.weight));
        weights
    }

    /// Scenario: samples stand for more, for less, and for far less than the clocks say.
    /// Guarantee: they share what the clocks say by their weights, up to a limit beyond which time stays owed.
    #[test]
    fn samples_share_what_the_clocks_say() {
        let mut too_much = guests_with(300, &[100, 500]);
        assert_eq!(released(&mut too_much), [50, 250]);
        assert_eq!((too_much.owed_ns, released(&mut too_much)), (0, vec![]));
        assert_eq!(released(&mut guests_with(1_200, &[100, 500])), [200, 1_000]);
        let mut far_too_little = guests_with(1_000, &[100]);
        assert_eq!(released(&mut far_too_little), [400]);
        assert_eq!(far_too_little.owed_ns, 600);
    }

    /// Scenario: samples come while clocks say that nobody but watched threads ran, then some time is found.
    /// Guarantee: they wait for it rather than make any up.
    #[test]
    fn samples_wait_for_time() {
        let mut guests = guests_with(-50, &[100]);
        assert!(released(&mut guests).is_empty());
        guests.owed_ns += 100;
        assert_eq!(released(&mut guests), [50]);
    }

    /// Scenario: samples keep coming while clocks say that there is no time for them.
    /// Guarantee: no more of them wait than there is room for (R5), and still none makes any time up.
    #[test]
    fn waiting_is_bounded() {
        let mut guests = guests_with(-1, &vec![100; MOST_WAITING_WORDS / 13 + 1]);
        assert!(guests.is_full());
        assert_eq!(released(&mut guests).iter().sum::<u64>(), 0);
        assert_eq!((guests.waiting.len(), guests.waiting_weight, guests.owed_ns), (0, 0, -1));
    }

    /// Scenario: a little and a lot of time without any sample.
    /// Guarantee: a little waits for one, a lot is told without a stack, once.
    #[test]
    fn time_without_samples_is_told() {
        assert_eq!(guests_with(400, &[]).take_unseen(100), None);
        let mut unseen = guests_with(401, &[]);
        assert_eq!((unseen.take_unseen(100), unseen.take_unseen(100)), (Some(401), None));
    }
}
