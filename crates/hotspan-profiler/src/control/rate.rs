//! The sampling rate under load. Every sample carries the CPU time it stands for, so a change of rate never changes
//! a total; it only changes how fine the picture is.

use crate::config::Adaptive;
use std::time::SystemTime;

/// Changes that are remembered for the status.
const MAX_CHANGES: usize = 64;
/// Less CPU than this in an interval says nothing about shares.
const WORTH_JUDGING_NS: u64 = 50_000_000;

/// How much of what is remembered of one interval counts in the next.
const MEMORY: f64 = 0.9;

/// One change of the sampling rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateChange {
    /// When.
    pub at: SystemTime,
    /// Samples per second of CPU before.
    pub from_hertz: u32,
    /// Samples per second of CPU after.
    pub to_hertz: u32,
    /// Why.
    pub reason: RateReason,
}

/// Why the sampling rate changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateReason {
    /// The profiler used more CPU than its ceiling.
    OverCeiling,
    /// There is room again.
    UnderCeiling,
    /// The machine is busier than the load-shedding threshold.
    LoadShedding,
    /// Somebody asked for it: a policy, or a command.
    Requested,
}

impl RateReason {
    /// The name used in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            RateReason::OverCeiling => "over_ceiling",
            RateReason::UnderCeiling => "under_ceiling",
            RateReason::LoadShedding => "load_shedding",
            RateReason::Requested => "requested",
        }
    }
}

/// What happened in the last interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// CPU the process used.
    pub(crate) process_cpu_ns: u64,
    /// Part of it that was the profiler's own, without what wall-clock samples cost.
    pub(crate) own_cpu_ns: u64,
    /// How busy the machine is, in percent.
    pub(crate) machine_percent: f64,
}

/// Chooses the rate between the floor and what was asked for.
#[derive(Debug)]
pub(crate) struct RateControl {
    adaptive: Adaptive,
    shed_above_percent: Option<f64>,
    wanted_hertz: u32,
    hertz: u32,
    shedding: bool,
    /// CPU of the profiler and of the process, older intervals counting less: reading symbols once, at the start, is no
    /// reason to sample less.
    recent_own_ns: f64,
    recent_process_ns: f64,
    changes: Vec<RateChange>,
}

impl RateControl {
    pub(crate) fn new(hertz: u32, adaptive: Adaptive, shed_above_percent: Option<f64>) -> RateControl {
        RateControl {
            adaptive,
            shed_above_percent,
            wanted_hertz: hertz,
            hertz,
            shedding: false,
            recent_own_ns: 0.0,
            recent_process_ns: 0.0,
            changes: Vec::new(),
        }
    }

    pub(crate) fn hertz(&self) -> u32 {
        self.hertz
    }

    pub(crate) fn changes(&self) -> &[RateChange] {
        &self.changes
    }

    /// Asks for another rate.
    pub(crate) fn want(&mut self, hertz: u32) {
        if hertz != self.wanted_hertz {
            self.wanted_hertz = hertz;
            self.change_to(hertz, RateReason::Requested);
        }
    }

    /// Looks at the last interval and adjusts.
    pub(crate) fn adjust(&mut self, load: Load) {
        let floor = self.adaptive.floor_hertz.clamp(1, self.wanted_hertz);
        let must_shed = self.shed_above_percent.is_some_and(|threshold| load.machine_percent >= threshold);
        if must_shed {
            self.shedding = true;
            self.change_to(floor, RateReason::LoadShedding);
            return;
        }
        if std::mem::take(&mut self.shedding) {
            self.change_to(self.wanted_hertz, RateReason::UnderCeiling);
            return;
        }
        if load.process_cpu_ns < WORTH_JUDGING_NS {
            return;
        }
        self.recent_own_ns = MEMORY * self.recent_own_ns + load.own_cpu_ns as f64;
        self.recent_process_ns = MEMORY * self.recent_process_ns + load.process_cpu_ns as f64;
        let own_percent = 100.0 * self.recent_own_ns / self.recent_process_ns;
        let ceiling = self.adaptive.overhead_ceiling_percent;
        if own_percent > ceiling {
            self.change_to((self.hertz / 2).max(floor), RateReason::OverCeiling);
        } else if own_percent < ceiling / 2.0 && self.hertz < self.wanted_hertz {
            let higher = (self.hertz + self.hertz.div_ceil(4)).min(self.wanted_hertz);
            self.change_to(higher, RateReason::UnderCeiling);
        }
    }

    fn change_to(&mut self, hertz: u32, reason: RateReason) {
        if hertz == self.hertz {
            return;
        }
        if self.changes.len() == MAX_CHANGES {
            self.changes.remove(0);
        }
        self.changes.push(RateChange { at: SystemTime::now(), from_hertz: self.hertz, to_hertz: hertz, reason });
        self.hertz = hertz;
    }
}

/// How busy the machine is, from two looks at procfs.
#[derive(Debug, Default)]
pub(crate) struct MachineLoad {
    busy: u64,
    total: u64,
}

impl MachineLoad {
    /// Percent of all processors that was used since the last look; zero at the first, or where procfs is hidden.
    pub(crate) fn percent_since_last(&mut self) -> f64 {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let Some((busy, total)) = text.lines().next().and_then(parse_cpu_line) else { return 0.0 };
        let is_first = self.total == 0;
        let (busy_delta, total_delta) = (busy.saturating_sub(self.busy), total.saturating_sub(self.total));
        *self = MachineLoad { busy, total };
        if is_first || total_delta == 0 { 0.0 } else { 100.0 * busy_delta as f64 / total_delta as f64 }
    }
}

/// `cpu user nice system idle iowait …`: busy and total ticks.
fn parse_cpu_line(line: &str) -> Option<(u64, u64)> {
    let ticks: Vec<u64> = line.strip_prefix("cpu ")?.split_ascii_whitespace().filter_map(|t| t.parse().ok()).collect();
    // Guest time is part of user time already.
    let total: u64 = ticks.iter().take(8).sum();
    let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or(0);
    Some((total - idle, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(own_percent: f64, machine_percent: f64) -> Load {
        let process_cpu_ns = 1_000_000_000;
        Load { process_cpu_ns, own_cpu_ns: (own_percent * 1e7) as u64, machine_percent }
    }

    /// Scenario: overhead over the ceiling for long, then under it, then an idle process.
    /// Guarantee: the rate falls to the floor and no further, climbs back to what was asked, and idling changes nothing.
    #[test]
    fn the_rate_stays_between_floor_and_request() {
        let adaptive = Adaptive { overhead_ceiling_percent: 1.0, floor_hertz: 10, slow_request_factor: 2 };
        let mut control = RateControl::new(100, adaptive, None);
        (0..10).for_each(|_| control.adjust(load(5.0, 0.0)));
        assert_eq!(control.hertz(), 10);
        control.adjust(Load { process_cpu_ns: 1_000, own_cpu_ns: 1_000, machine_percent: 0.0 });
        assert_eq!(control.hertz(), 10);
        (0..80).for_each(|_| control.adjust(load(0.1, 0.0)));
        assert_eq!(control.hertz(), 100);
        assert!(control.changes().iter().any(|change| change.reason == RateReason::OverCeiling));
        (0..100).for_each(|i| control.want(50 + i % 2));
        assert_eq!(control.changes().len(), MAX_CHANGES);
    }

    /// Scenario: the machine is busier than the shedding threshold, then calm.
    /// Guarantee: sampling drops to the floor at once and returns at once, and both are recorded.
    #[test]
    fn load_is_shed_and_taken_up_again() {
        let mut control = RateControl::new(100, Adaptive::default(), Some(90.0));
        control.adjust(load(0.1, 95.0));
        assert_eq!(control.hertz(), 10);
        control.adjust(load(0.1, 50.0));
        assert_eq!(control.hertz(), 100);
        assert_eq!(control.changes()[0].reason, RateReason::LoadShedding);
    }

    /// Scenario: a line of procfs stat.
    /// Guarantee: idle and waiting time is not busy, guest time is not counted twice.
    #[test]
    fn machine_load_is_read() {
        assert_eq!(parse_cpu_line("cpu  10 1 9 70 10 0 0 0 5 0"), Some((20, 100)));
        assert_eq!(parse_cpu_line("intr 5"), None);
    }
}
