//! What is to run: as configured, as the server's policy wishes, started and stopped.

use super::Monitor;
use crate::Conditions;
use crate::context::{measure_span_times, watch_requests};
use crate::control::policy::Policy;
use crate::sampler::clock::{process_cpu_ns, realtime_ns};
use crate::{heap, sync};

impl Monitor<'_> {
    pub(super) fn conditions(&self) -> &Conditions {
        self.policy.conditions.as_ref().unwrap_or(&self.config.conditions)
    }

    pub(super) fn wanted_hertz(&self) -> u32 {
        let unix_seconds = realtime_ns() / 1_000_000_000;
        self.policy.hertz_at(unix_seconds).or(self.config.cpu_hertz).unwrap_or(100)
    }

    pub(super) fn cpu_period(&self) -> u64 {
        let wanted = self.policy.wants("cpu", self.config.cpu_hertz.is_some());
        if wanted { 1_000_000_000 / u64::from(self.rate.hertz().max(1)) } else { 0 }
    }

    pub(super) fn wants_memory(&self) -> bool {
        self.policy.wants("memory", self.config.memory_interval.is_some())
    }

    pub(super) fn wall_period(&self) -> u64 {
        let wanted = self.policy.wants("wall", self.config.wall_hertz.is_some());
        if wanted { 1_000_000_000 / u64::from(self.config.wall_hertz.unwrap_or(10).max(1)) } else { 0 }
    }

    pub(super) fn start(&mut self) {
        if self.running {
            return;
        }
        self.running = true;
        self.displaced = false;
        self.cpu_when_started = process_cpu_ns();
        self.last_load = (self.cpu_when_started, self.cpu_sampling_ns());
        self.sampler.scan_at_start();
        self.apply_settings();
        self.post_status();
    }

    pub(super) fn stop(&mut self) {
        if !self.running {
            return;
        }
        self.sampler.set_period(0);
        self.running = false;
        self.cpu_while_running += process_cpu_ns().saturating_sub(self.cpu_when_started);
        heap::set_interval(None);
        sync::profile_locks(false);
        self.samples_wall = false;
        measure_span_times(false);
        self.round();
        self.settle_guests(true);
        watch_requests(false);
        self.post_status();
    }

    /// Brings everything that runs in line with configuration and policy.
    pub(super) fn apply_settings(&mut self) {
        self.rate.want(self.wanted_hertz());
        self.sampler.set_period(self.cpu_period());
        heap::set_interval(self.wants_memory().then(|| self.config.memory_interval.unwrap_or(512 << 10)));
        sync::profile_locks(self.policy.wants("locks", self.config.locks));
        let samples_wall = self.wall_period() > 0;
        if samples_wall && !self.samples_wall {
            self.sampler.begin_wall();
        }
        self.samples_wall = samples_wall;
        measure_span_times(samples_wall);
        let conditions = self.conditions().clone();
        watch_requests(!conditions.keep_everything());
        self.aggregator.set_conditions(conditions);
    }

    pub(super) fn apply_policy(&mut self, policy: Result<Policy, String>) {
        match policy {
            Ok(policy) => {
                self.policy = policy;
                self.policy_error = None;
                if self.running {
                    self.apply_settings();
                }
            }
            Err(reason) => self.policy_error = Some(reason),
        }
        self.post_status();
    }
}
