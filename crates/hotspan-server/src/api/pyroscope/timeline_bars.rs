//! Values over time as bars, which `/pyroscope/render` has above its flame graph.

use hotspan_formats::flamebearer::Timeline as Bars;
use hotspan_query::Timeline;

const SECOND: i64 = 1_000_000_000;

/// Lengths of bars that people can read off an axis, in seconds; beyond, they are whole weeks.
const STEPS: &[i64] = &[15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const WEEK: i64 = 7 * 86400;

/// About how many bars a timeline has at most, however long its time is (R5).
const BARS: i64 = 1500;

/// Where the bars of a timeline are. They begin at multiples of their length, so that those of several timelines compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BarAxis {
    /// Length of a bar in seconds.
    seconds: i64,
    /// Number of the first bar, counted from 1970.
    first: i64,
    count: usize,
}

impl BarAxis {
    /// The shortest bars, in nanoseconds.
    pub(super) const SHORTEST: i64 = STEPS[0] * SECOND;

    /// Bars from a moment up to another, which is in the last one.
    pub(super) fn of((from, until): (i64, i64)) -> Self {
        let wanted = (until / SECOND - from / SECOND) / BARS;
        let readable = STEPS.iter().copied().find(|step| *step >= wanted);
        let seconds = readable.unwrap_or_else(|| (wanted + WEEK - 1) / WEEK * WEEK);
        let first = from.div_euclid(seconds * SECOND);
        let last = until.div_euclid(seconds * SECOND);
        Self { seconds, first, count: usize::try_from(last - first + 1).unwrap_or(0) }
    }

    /// Length of a bar in nanoseconds.
    pub(super) fn step(self) -> i64 {
        self.seconds * SECOND
    }

    /// A bar for every step, empty ones included. The timeline has the same steps.
    pub(super) fn bars(self, timeline: Option<&Timeline>) -> Bars {
        let mut samples = vec![0; self.count];
        for (end, value) in timeline.into_iter().flat_map(|timeline| &timeline.points) {
            let at = (end - 1).div_euclid(self.step()) - self.first;
            if let Some(bar) = usize::try_from(at).ok().and_then(|at| samples.get_mut(at)) {
                *bar += value.max(0.0) as u64;
            }
        }
        let start_time = self.first * self.seconds;
        Bars { start_time, samples, duration_delta: self.seconds, watermarks: None }
    }
}

#[cfg(test)]
mod tests {
    use hotspan_model::Labels;

    use super::*;

    const YEAR: i64 = 365 * 86400 * SECOND;
    const NOW: i64 = 1_800_000_000 * SECOND;

    /// Scenario: times from a nanosecond to all there is, each with a sample at both ends.
    /// Guarantee: a bounded number of bars, and both samples are in them.
    #[test]
    fn every_time_has_bars() {
        let lengths = [1, 15 * SECOND, 3600 * SECOND, 23_999 * SECOND, YEAR, 29 * YEAR, 180 * YEAR, 250 * YEAR];
        let ranges = lengths.map(|length| (NOW - length, NOW)).into_iter();
        for range in ranges.chain([(i64::MIN, NOW), (0, i64::MAX), (i64::MIN, i64::MAX)]) {
            let axis = BarAxis::of(range);
            assert!(axis.count <= 1602, "{range:?}: {axis:?}");
            let end = |time: i64| (time.div_euclid(axis.step()) + 1).saturating_mul(axis.step());
            let points = vec![(end(range.0).max(i64::MIN + 1), 3.0), (end(range.1 - 1), 4.0)];
            let bars = axis.bars(Some(&Timeline { labels: Labels::default(), points }));
            assert_eq!(bars.samples.iter().sum::<u64>(), 7, "{range:?}: {axis:?}");
        }
    }

    /// Scenario: an hour, a day and a year, and times longer than any step of the ladder is meant for.
    /// Guarantee: steps that people can read, whole weeks in the end; the first bar begins at a multiple of them.
    #[test]
    fn steps_grow_with_the_time() {
        let days = |years: i64| BarAxis::of((NOW - years * YEAR, NOW)).seconds / 86400;
        assert_eq!([3600, 86400].map(|length| BarAxis::of((NOW - length * SECOND, NOW)).seconds), [15, 60]);
        assert_eq!([3, 20, 29, 100, 250].map(days), [1, 7, 14, 28, 63]);
        let bars = BarAxis::of((NOW - YEAR, NOW)).bars(None);
        assert_eq!((bars.duration_delta, bars.start_time % bars.duration_delta), (21600, 0));
    }
}
