//! When the log is told of commits that fail: of the first at once, then once a minute how many there were, and when it is over. A
//! disk that is full fails several a second, and may hold the log as well.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_mins(1);

/// Commits that failed one after another.
#[derive(Debug, Default)]
pub(super) struct Failures {
    in_a_row: u64,
    is_row_told: bool,
    untold: u64,
    told_at: Option<Instant>,
}

impl Failures {
    /// Counts one more; how many there were since the log was told, if it is to be told now.
    pub(super) fn failed(&mut self, now: Instant) -> Option<u64> {
        self.in_a_row += 1;
        self.untold += 1;
        if self.told_at.is_some_and(|told| now.duration_since(told) < PAUSE) {
            return None;
        }
        self.told_at = Some(now);
        self.is_row_told = true;
        Some(std::mem::take(&mut self.untold))
    }

    /// Ends the row; how many there were in it, if the log was told of any.
    pub(super) fn succeeded(&mut self) -> Option<u64> {
        let ended = std::mem::take(&mut self.in_a_row);
        std::mem::take(&mut self.is_row_told).then_some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a commit fails every twenty seconds, then one succeeds; then every other one fails.
    /// Guarantee: the log is told at once, then once a minute, then that it is over; of what comes and goes after that, once a minute.
    #[test]
    fn told_at_once_once_a_minute_and_at_the_end() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        let mut failed = |seconds| failures.failed(start + Duration::from_secs(seconds));
        let told: Vec<Option<u64>> = (0..5).map(|turn| failed(20 * turn)).collect();
        assert_eq!(told, [Some(1), None, None, Some(3), None]);
        assert_eq!((failures.succeeded(), failures.succeeded()), (Some(5), None));
        assert_eq!((failures.failed(start + Duration::from_secs(101)), failures.succeeded()), (None, None));
        assert_eq!((failures.failed(start + Duration::from_secs(121)), failures.succeeded()), (Some(3), Some(1)));
    }
}
