//! Keeps work that has to be repeated to a small share of the time.

use crate::sampler::clock::{monotonic_ns, thread_cpu_ns};

/// Work that costs more the larger the process is, and so is done the more seldom.
#[derive(Debug)]
pub(super) struct Sparing {
    /// How many times longer than the work itself the pause after it is.
    pause_factor: u64,
    not_before_ns: u64,
}

impl Sparing {
    /// Work that may take one part in so many of one processor's time.
    pub(super) fn one_part_in(parts: u64) -> Sparing {
        Sparing { pause_factor: parts, not_before_ns: 0 }
    }

    /// Whether enough time has passed since the last time.
    pub(super) fn is_due(&self) -> bool {
        monotonic_ns() >= self.not_before_ns
    }

    /// Notes what was spent since the thread's CPU clock showed `cpu_before`.
    pub(super) fn spent_since(&mut self, cpu_before: u64) {
        let cost = thread_cpu_ns().saturating_sub(cpu_before);
        self.not_before_ns = monotonic_ns().saturating_add(cost.saturating_mul(self.pause_factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Scenario: work that takes a while, and work that takes nothing.
    /// Guarantee: the first is not due again for thousands of times as long, the second at once.
    #[test]
    fn dear_work_is_done_seldom() {
        let mut sparing = Sparing::one_part_in(4_000);
        assert!(sparing.is_due());
        let before = thread_cpu_ns();
        while thread_cpu_ns() < before + 1_000_000 {}
        sparing.spent_since(before);
        assert!(!sparing.is_due());
        assert!(sparing.not_before_ns - monotonic_ns() > 3_000_000_000);
        sparing.spent_since(thread_cpu_ns() + 1);
        let began = Instant::now();
        while !sparing.is_due() {
            assert!(began.elapsed() < Duration::from_secs(1));
        }
    }
}
