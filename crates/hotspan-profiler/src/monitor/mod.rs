//! The monitor thread: it watches threads, empties rings, decides about requests, steers the rate, hands over batches.

mod pace;
mod report;
mod settings;

use crate::aggregate::Aggregator;
use crate::config::Config;
use crate::context::{take_ended_requests, take_span_times};
use crate::control::policy::Policy;
use crate::control::rate::{Load, MachineLoad, RateControl};
use crate::doorbell::DOORBELL;
use crate::export::upload::Uploader;
use crate::heap;
use crate::mailbox::{Command, Mailbox};
use crate::sampler::clock::{TickScale, monotonic_ns, process_cpu_ns, realtime_ns, thread_cpu_ns};
use crate::sampler::{Sampler, SamplingMode};
use pace::{Newcomers, Outlook};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// How often load and rate are judged.
const JUDGE_NS: u64 = 1_000_000_000;

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Monitor<'a> {
    config: Config,
    mailbox: &'a Mailbox,
    uploader: &'a Uploader,
    sampler: Sampler,
    aggregator: Aggregator,
    rate: RateControl,
    machine: MachineLoad,
    policy: Policy,
    policy_error: Option<String>,
    scale: TickScale,
    running: bool,
    displaced: bool,
    samples_wall: bool,
    /// Threads at a raised rate, and when a slow request was last seen on them.
    boosted: HashMap<i32, u64>,
    slow_request_boosts: u64,
    machine_percent: f64,
    cpu_when_started: u64,
    cpu_while_running: u64,
    last_load: (u64, u64),
    dropped_span_events: u64,
    /// Rounds in a row that found nothing.
    empty_rounds: u32,
    next_round: u64,
    next_judgement: u64,
    next_upload: u64,
    next_wall: u64,
    /// CPU time that it took to ask for wall-clock samples.
    wall_sending_ns: u64,
}

impl<'a> Monitor<'a> {
    pub(crate) fn new(config: Config, mailbox: &'a Mailbox, uploader: &'a Uploader) -> Monitor<'a> {
        let now = monotonic_ns();
        let sampler = Sampler::start(config.signal, config.best_mode, config.max_stack_depth);
        let hertz = config.cpu_hertz.unwrap_or(0);
        Monitor {
            aggregator: Aggregator::new(config.conditions.clone(), now),
            rate: RateControl::new(hertz.max(1), config.adaptive, config.load_shedding_percent),
            mailbox,
            uploader,
            sampler,
            machine: MachineLoad::default(),
            policy: Policy::default(),
            policy_error: None,
            scale: TickScale::begin(),
            running: false,
            displaced: false,
            samples_wall: false,
            boosted: HashMap::new(),
            slow_request_boosts: 0,
            machine_percent: 0.0,
            cpu_when_started: 0,
            cpu_while_running: 0,
            last_load: (process_cpu_ns(), 0),
            dropped_span_events: 0,
            empty_rounds: 0,
            next_round: now,
            next_judgement: now + JUDGE_NS,
            next_upload: now + config.upload_interval.as_nanos() as u64,
            next_wall: now,
            wall_sending_ns: 0,
            config,
        }
    }

    /// Runs until told to close; `on_ready` is called when the first timers are armed.
    pub(crate) fn run(mut self, on_ready: impl FnOnce()) {
        if self.config.enabled {
            self.start();
        }
        self.post_status();
        on_ready();
        loop {
            if DOORBELL.wait(self.time_to_next()) {
                self.next_round = monotonic_ns();
            }
            for command in self.mailbox.take() {
                match command {
                    Command::Start => self.start(),
                    Command::Stop => self.stop(),
                    Command::Apply(policy) => self.apply_policy(policy),
                    Command::Flush(done) => {
                        self.round();
                        self.upload(false);
                        self.post_status();
                        // Whoever asked may have stopped waiting.
                        let _ = done.send(());
                    }
                    Command::Close => {
                        self.stop();
                        self.upload(true);
                        let patience = self.config.upload_timeout;
                        self.uploader.close(patience);
                        self.uploader.flush(patience);
                        self.post_status();
                        return;
                    }
                }
            }
            self.act();
        }
    }

    fn time_to_next(&self) -> Duration {
        let mut next = self.next_round.min(self.next_upload).min(self.next_judgement);
        if self.running && self.wall_period() > 0 {
            next = next.min(self.next_wall);
        }
        if self.running && self.sampler.mode() != SamplingMode::ThreadTimers {
            // Clocks are watched by hand: as often as samples are due.
            next = next.min(monotonic_ns() + self.cpu_period().max(1_000_000));
        }
        Duration::from_nanos(next.saturating_sub(monotonic_ns()))
    }

    fn act(&mut self) {
        let now = monotonic_ns();
        if self.running {
            let aggregator = &mut self.aggregator;
            self.sampler.rotate(|sample| {
                aggregator.add(sample);
            });
        }
        if self.running && self.wall_period() > 0 && now >= self.next_wall {
            let before = thread_cpu_ns();
            self.sampler.signal_wall();
            self.wall_sending_ns += thread_cpu_ns().saturating_sub(before);
            self.next_wall = now + self.wall_period();
        }
        let (judges, uploads) = (now >= self.next_judgement, now >= self.next_upload);
        if judges {
            self.look_at_machine();
        }
        // What is judged and what is uploaded is what there is now, not what there was at the last round.
        if judges || uploads || now >= self.next_round {
            self.round();
            let outlook = self.outlook();
            self.sampler.announce_guests(outlook.newcomers == Newcomers::AreAnnounced && !outlook.threads_change);
            self.next_round = now + outlook.pause_ns();
        }
        if judges {
            self.judge();
            self.next_judgement = now + JUDGE_NS;
            self.post_status();
        }
        if uploads || self.aggregator.estimated_bytes() >= self.config.max_profile_size {
            self.upload(false);
        }
    }

    fn outlook(&self) -> Outlook {
        let by_hand = self.sampler.mode() != SamplingMode::ThreadTimers || self.wall_period() > 0;
        let newcomers = match self.sampler.meets_newcomers() {
            _ if !self.running => Newcomers::DoNotMatter,
            _ if by_hand => Newcomers::MustBeFound,
            true => Newcomers::AreAnnounced,
            false => Newcomers::AreCounted,
        };
        let boosts = self.config.adaptive.slow_request_factor > 1;
        Outlook {
            newcomers,
            threads_change: self.sampler.threads_change(),
            slow_after_ns: self.slow_after_ns().filter(|_| boosts),
            requests_run: self.aggregator.awaits_requests(),
            empty_rounds: self.empty_rounds,
        }
    }

    fn slow_after_ns(&self) -> Option<u64> {
        self.conditions().slow_request_threshold.map(|threshold| threshold.as_nanos() as u64)
    }

    /// Sees to threads, samples and requests, in the order that keeps decisions right: an end of a request is taken
    /// first, so that all its samples lie in the rings that are emptied next.
    fn round(&mut self) {
        let (ended, dropped_ends) = take_ended_requests();
        if self.running {
            self.sampler.scan();
            self.sampler.follow_memory();
        }
        let now = monotonic_ns();
        let slow_ns = self.slow_after_ns();
        let samples_before = self.aggregator.counts().0.samples;
        let (aggregator, boosted, boosts) = (&mut self.aggregator, &mut self.boosted, &mut self.slow_request_boosts);
        self.sampler.drain(|sample| {
            if let Some(running_since) = aggregator.add(sample)
                && slow_ns.is_some_and(|slow_ns| sample.monotonic_ns.saturating_sub(running_since) >= slow_ns)
                && boosted.insert(sample.tid, now).is_none()
            {
                *boosts += 1;
            }
        });
        let (span_times, dropped_times) = take_span_times();
        let is_empty =
            ended.is_empty() && span_times.is_empty() && self.aggregator.counts().0.samples == samples_before;
        self.empty_rounds = if is_empty { self.empty_rounds.saturating_add(1) } else { 0 };
        let nanos_per_tick = self.scale.nanos_per_tick();
        for time in &span_times {
            self.aggregator.add_span_time(time, nanos_per_tick, now);
        }
        self.dropped_span_events += dropped_ends + dropped_times;
        self.aggregator.decide(&ended, self.machine_percent);
        self.steer_boosted_threads(now);
    }

    /// Tells what threads without a timer used. `for_good`: sampling ends here.
    fn settle_guests(&mut self, for_good: bool) {
        let aggregator = &mut self.aggregator;
        self.sampler.settle_guests(for_good, |sample| {
            aggregator.add(sample);
        });
    }

    fn steer_boosted_threads(&mut self, now: u64) {
        let factor = u64::from(self.config.adaptive.slow_request_factor.max(1));
        let sampler = &mut self.sampler;
        self.boosted.retain(|tid, seen| {
            let still_slow = now.saturating_sub(*seen) < JUDGE_NS;
            sampler.set_rate_factor(*tid, if still_slow { factor } else { 1 });
            still_slow
        });
    }

    /// Sees how busy the machine is, if that matters: first of all, since requests that ended are decided by it.
    fn look_at_machine(&mut self) {
        let needs_load =
            self.config.load_shedding_percent.is_some() || self.conditions().cpu_threshold_percent.is_some();
        if needs_load {
            self.machine_percent = self.machine.percent_since_last();
        }
    }

    fn judge(&mut self) {
        if !self.running {
            return;
        }
        if heap::in_use().is_some() {
            heap::note_in_use(self.aggregator.live_heap_bytes());
        }
        if !self.sampler.owns_signal() {
            // Another profiler has taken the signal: its handler must not meet our timers.
            self.displaced = true;
            self.stop();
            return;
        }
        let (process_cpu, own_cpu) = (process_cpu_ns(), self.cpu_sampling_ns());
        let load = Load {
            process_cpu_ns: process_cpu.saturating_sub(self.last_load.0),
            own_cpu_ns: own_cpu.saturating_sub(self.last_load.1),
            machine_percent: self.machine_percent,
        };
        self.last_load = (process_cpu, own_cpu);
        let before = self.rate.hertz();
        self.rate.want(self.wanted_hertz());
        self.rate.adjust(load);
        if self.rate.hertz() != before {
            self.sampler.set_period(self.cpu_period());
        }
        self.sampler.tune_process_timer();
    }

    fn upload(&mut self, last: bool) {
        self.settle_guests(last);
        let now = monotonic_ns();
        let mut batch = self.aggregator.finish_batch(now, last);
        batch.unix_offset_ns = realtime_ns().wrapping_sub(now);
        batch.period_ns = self.sampler.achieved_period(self.cpu_period());
        batch.modules = self.sampler.modules();
        let tids: HashSet<i32> = batch.groups.keys().map(|key| key.tid).collect();
        batch.thread_names = tids.into_iter().filter_map(|tid| Some((tid, self.sampler.name_of(tid)?))).collect();
        self.sampler.forget_departed();
        self.uploader.submit(batch);
        self.next_upload = now + self.config.upload_interval.as_nanos() as u64;
    }
}
