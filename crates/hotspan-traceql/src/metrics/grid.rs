//! The points in time at which series have values.

/// Most intervals a query may have.
pub const MAX_INTERVALS: usize = 10_000;

/// Why a metrics query cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// The range ends before it starts.
    #[error("the range ends ({end} ns) before it starts ({start} ns)")]
    EmptyRange {
        /// Its start.
        start: i64,
        /// Its end.
        end: i64,
    },
    /// The step is not a positive time.
    #[error("the step must be longer than zero")]
    NoStep,
    /// The range has too many steps.
    #[error(
        "the range has {count} intervals; at most {limit} are allowed (limit: metric intervals); use a longer step"
    )]
    TooManyIntervals {
        /// How many it has.
        count: u64,
        /// How many are allowed.
        limit: usize,
    },
    /// The groups are too many.
    #[error("the query makes more than {limit} series (limit: max series); group by fewer or coarser fields")]
    TooManySeries {
        /// How many are allowed.
        limit: usize,
    },
    /// The series are too long in sum.
    #[error("the series have more than {limit} points in sum (limit: max points); use a longer step or fewer groups")]
    TooManyPoints {
        /// How many are allowed.
        limit: usize,
    },
    /// States of different queries or ranges were merged.
    #[error("these partial results belong to different queries or time ranges")]
    Mismatch,
}

/// Bounds of one metrics query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsLimits {
    /// Most series, before second stages.
    pub max_series: usize,
    /// Most points of all series together: what bounds the memory.
    pub max_points: usize,
    /// Exemplars given if the query does not say how many.
    pub exemplars: usize,
}

impl Default for MetricsLimits {
    fn default() -> Self {
        Self { max_series: 10_000, max_points: 4_000_000, exemplars: 100 }
    }
}

/// Right-closed intervals of equal length, each named by its right edge.
///
/// The start is moved down and the end up to multiples of the step. One more interval leads: it holds what starts
/// exactly at the range's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrid {
    start: i64,
    end: i64,
    step: i64,
    intervals: usize,
    is_instant: bool,
}

impl TimeGrid {
    /// The grid of a range query, all in nanoseconds.
    pub fn range(start: i64, end: i64, step: i64) -> Result<Self, MetricsError> {
        if step <= 0 {
            return Err(MetricsError::NoStep);
        }
        if end < start {
            return Err(MetricsError::EmptyRange { start, end });
        }
        let first = start.div_euclid(step).saturating_mul(step);
        let last = end.div_euclid(step).saturating_add(i64::from(end.rem_euclid(step) > 0)).saturating_mul(step);
        let count = (last.saturating_sub(first) / step) as u64 + 1;
        if count > MAX_INTERVALS as u64 {
            return Err(MetricsError::TooManyIntervals { count, limit: MAX_INTERVALS });
        }
        Ok(Self { start: first, end: last, step, intervals: count as usize, is_instant: false })
    }

    /// The grid of an instant query: one interval over the whole range, both ends included.
    pub fn instant(start: i64, end: i64) -> Result<Self, MetricsError> {
        if end <= start {
            return Err(MetricsError::EmptyRange { start, end });
        }
        Ok(Self { start, end, step: end.saturating_sub(start), intervals: 1, is_instant: true })
    }

    /// First and last moment that counts, in nanoseconds since 1970.
    pub fn bounds(&self) -> (i64, i64) {
        (self.start, self.end)
    }

    /// Length of an interval in nanoseconds.
    pub fn step_nanos(&self) -> i64 {
        self.step
    }

    /// How many intervals there are.
    pub fn intervals(&self) -> usize {
        self.intervals
    }

    /// The interval a moment falls into.
    #[inline]
    pub fn interval_of(&self, nanos: i64) -> Option<usize> {
        if nanos < self.start || nanos > self.end {
            return None;
        }
        if self.is_instant {
            return Some(0);
        }
        let since = nanos.saturating_sub(self.start);
        Some((since / self.step + i64::from(since % self.step > 0)) as usize)
    }

    /// An interval with its edges, for asking about many moments; without one, edges that hold no moment.
    pub(super) fn bounds_of(&self, interval: Option<usize>) -> IntervalBounds {
        match interval {
            None => IntervalBounds { after: i64::MAX, until: i64::MIN, interval },
            Some(_) if self.is_instant => {
                IntervalBounds { after: self.start.saturating_sub(1), until: self.end, interval }
            }
            // The leading interval holds the start alone.
            Some(0) => IntervalBounds { after: self.start.saturating_sub(1), until: self.start, interval },
            Some(at) => {
                let until = self.timestamp(at);
                IntervalBounds { after: until.saturating_sub(self.step), until, interval }
            }
        }
    }

    /// The name of an interval: its right edge.
    pub fn timestamp(&self, interval: usize) -> i64 {
        if self.is_instant { self.end } else { self.start.saturating_add(self.step.saturating_mul(interval as i64)) }
    }
}

/// Moments after `after`, up to and with `until`, belong to the interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalBounds {
    pub(super) after: i64,
    pub(super) until: i64,
    pub(super) interval: Option<usize>,
}

/// The step for a range without one, in nanoseconds: about 240 points, at round times.
pub fn default_step(start: i64, end: i64) -> i64 {
    const SECOND: i64 = 1_000_000_000;
    let raw = end.saturating_sub(start).max(0) / 240;
    let unit = [3600, 300, 60, 15, 5, 1].into_iter().map(|seconds| seconds * SECOND).find(|unit| raw >= *unit);
    unit.map_or(SECOND, |unit| raw / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// Scenario: moments on, before and after the edges of a grid with unaligned ends.
    /// Guarantee: intervals are closed on the right, named by that edge, and cover the aligned range only.
    #[test]
    fn intervals_are_right_closed() {
        let grid = TimeGrid::range(12 * S, 47 * S, 10 * S).unwrap();
        assert_eq!(grid.bounds(), (10 * S, 50 * S));
        assert_eq!(grid.intervals(), 5);
        assert_eq!(grid.interval_of(10 * S - 1), None);
        assert_eq!(grid.interval_of(10 * S), Some(0));
        assert_eq!(grid.interval_of(10 * S + 1), Some(1));
        assert_eq!(grid.interval_of(20 * S), Some(1));
        assert_eq!(grid.interval_of(50 * S), Some(4));
        assert_eq!(grid.interval_of(50 * S + 1), None);
        assert_eq!(grid.timestamp(1), 20 * S);
    }

    /// Scenario: ranges that are empty, endless or cut too fine.
    /// Guarantee: each is refused by an error that names the limit; none overflows.
    #[test]
    fn refuses_impossible_ranges() {
        assert_eq!(TimeGrid::range(0, 10, 0), Err(MetricsError::NoStep));
        assert_eq!(TimeGrid::range(10, 0, 1), Err(MetricsError::EmptyRange { start: 10, end: 0 }));
        assert!(matches!(TimeGrid::range(0, i64::MAX, 1), Err(MetricsError::TooManyIntervals { .. })));
        assert!(TimeGrid::range(i64::MIN, i64::MAX, i64::MAX).is_ok());
        assert!(TimeGrid::range(0, 9_999 * S, S).is_ok());
        let error = TimeGrid::range(0, 10_000 * S, S).unwrap_err();
        assert!(error.to_string().contains("10001 intervals; at most 10000"), "{error}");
    }

    /// Scenario: ranges of common lengths without a step.
    /// Guarantee: an hour gets 15 s, a day 6 min less its remainder, short ranges a second.
    #[test]
    fn default_steps_are_round() {
        assert_eq!(default_step(0, 3600 * S), 15 * S);
        assert_eq!(default_step(0, 60 * S), S);
        assert_eq!(default_step(0, 15 * 60 * S), 3 * S);
        assert_eq!(default_step(0, 86_400 * S), 300 * S);
        assert_eq!(default_step(0, 30 * 86_400 * S), 3 * 3600 * S);
        assert_eq!(default_step(5, 0), S);
    }
}
