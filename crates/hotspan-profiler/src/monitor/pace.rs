//! How long the monitor sleeps between two rounds.
//!
//! Most of what a round costs is to wake up for it, so there are few while nothing is expected: those who can't wait ring
//! the doorbell (rings that fill up, ended requests that pile up, threads that are met without a timer, commands).

use super::JUDGE_NS;

/// The pause while something is expected.
const ATTENTIVE_NS: u64 = 200_000_000;
/// The pause in a process that has been quiet for some rounds, where new threads don't make themselves heard.
const QUIET_NS: u64 = 500_000_000;
const ROUNDS_UNTIL_QUIET: u32 = 10;
/// The pause while everything makes itself heard. Rounds then fall together with judgements of the load.
const AT_EASE_NS: u64 = JUDGE_NS;

/// What becomes of threads that nobody knows yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newcomers {
    /// There is nothing to be known about them.
    DoNotMatter,
    /// The process timer meets those that work, and tells.
    AreAnnounced,
    /// The process timer counts their time without meeting them.
    AreCounted,
    /// They are unknown until the monitor finds them.
    MustBeFound,
}

/// What the monitor has to reckon with until its next round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outlook {
    pub(super) newcomers: Newcomers,
    /// Threads came or went: a new one gets its name a moment later, and others often follow.
    pub(super) threads_change: bool,
    /// When a request is slow, so that its thread is looked at more closely; none if that changes nothing.
    pub(super) slow_after_ns: Option<u64>,
    /// Requests are known that have not ended.
    pub(super) requests_run: bool,
    /// Rounds in a row that found nothing.
    pub(super) empty_rounds: u32,
}

impl Outlook {
    /// How long nothing is lost by sleeping, unless the bell rings.
    pub(super) fn pause_ns(&self) -> u64 {
        if self.threads_change || (self.requests_run && self.slow_after_ns.is_some()) {
            return ATTENTIVE_NS;
        }
        match self.newcomers {
            Newcomers::MustBeFound => ATTENTIVE_NS,
            Newcomers::AreCounted if self.empty_rounds < ROUNDS_UNTIL_QUIET => ATTENTIVE_NS,
            Newcomers::AreCounted => QUIET_NS,
            // A request that begins now is seen before it is slow.
            Newcomers::AreAnnounced | Newcomers::DoNotMatter => {
                self.slow_after_ns.unwrap_or(AT_EASE_NS).clamp(ATTENTIVE_NS, AT_EASE_NS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Outlook = Outlook {
        newcomers: Newcomers::AreAnnounced,
        threads_change: false,
        slow_after_ns: None,
        requests_run: false,
        empty_rounds: 0,
    };

    /// Scenario: nothing is expected; threads come and go; requests run whose slowness matters, and does not.
    /// Guarantee: the monitor sleeps long in the first case and the last, and comes soon in the others.
    #[test]
    fn the_monitor_sleeps_while_nothing_is_expected() {
        assert_eq!(NOTHING.pause_ns(), AT_EASE_NS);
        assert_eq!(Outlook { threads_change: true, ..NOTHING }.pause_ns(), ATTENTIVE_NS);
        let slow = Outlook { slow_after_ns: Some(600_000_000), ..NOTHING };
        assert_eq!(slow.pause_ns(), 600_000_000);
        assert_eq!(Outlook { requests_run: true, ..slow }.pause_ns(), ATTENTIVE_NS);
        assert_eq!(Outlook { requests_run: true, ..NOTHING }.pause_ns(), AT_EASE_NS);
    }

    /// Scenario: systems on which nobody tells of new threads.
    /// Guarantee: the monitor looks for them itself, and more seldom only where their time is counted and all is quiet.
    #[test]
    fn unannounced_threads_are_looked_for() {
        let counted = Outlook { newcomers: Newcomers::AreCounted, ..NOTHING };
        assert_eq!(counted.pause_ns(), ATTENTIVE_NS);
        assert_eq!(Outlook { empty_rounds: ROUNDS_UNTIL_QUIET, ..counted }.pause_ns(), QUIET_NS);
        let hidden = Outlook { newcomers: Newcomers::MustBeFound, empty_rounds: ROUNDS_UNTIL_QUIET, ..NOTHING };
        assert_eq!(hidden.pause_ns(), ATTENTIVE_NS);
    }
}
