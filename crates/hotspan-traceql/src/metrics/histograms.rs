//! The histograms of one series, one for each interval.
//!
//! Values of a series mostly lie within some powers of two of each other, so that all its buckets fit into one array:
//! counting is then one addition at a place that is known, without a search.

use super::histogram::{LogHistogram, exponent};

/// The histograms of all intervals.
#[derive(Debug, Clone)]
pub(super) enum Histograms {
    /// All have the same buckets.
    Together(BucketTable),
    /// Each has its own: for values far apart, for many intervals, and for narrow buckets.
    Apart(Vec<LogHistogram>),
}

/// Counts by interval, then by power of two.
#[derive(Debug, Clone, Default)]
pub(super) struct BucketTable {
    at_most_zero: Vec<f64>,
    /// The power of two that bounds the first bucket of an interval.
    first: i32,
    width: usize,
    counts: Vec<f64>,
}

/// Counts of a table at most: what bounds the memory of a series (R5).
const MOST_COUNTS: usize = 1 << 14;
/// Buckets that a table is made wider by than it needs to be.
const ROOM: i32 = 3;

impl Histograms {
    pub(super) fn new(intervals: usize, precise: bool) -> Self {
        match precise {
            true => Self::Apart(vec![LogHistogram::default(); intervals]),
            false => Self::Together(BucketTable { at_most_zero: vec![0.0; intervals], ..BucketTable::default() }),
        }
    }

    /// Counts a value that stands for `weight` of its kind.
    #[inline]
    pub(super) fn add(&mut self, interval: usize, value: f64, precise: bool, weight: f64) {
        if let Self::Together(table) = self {
            if table.add(interval, value, weight) {
                return;
            }
            *self = Self::Apart(table.apart());
        }
        if let Self::Apart(all) = self {
            all[interval].add_weighted(value, precise, weight);
        }
    }

    /// Adds the counts of another series of the same intervals.
    pub(super) fn merge(&mut self, other: &Self) {
        if let (Self::Together(mine), Self::Together(theirs)) = (&mut *self, other)
            && mine.merge(theirs)
        {
            return;
        }
        let mut all = std::mem::replace(self, Self::Apart(Vec::new())).into_each();
        for (mine, theirs) in all.iter_mut().zip(other.clone().into_each()) {
            mine.merge(&theirs);
        }
        *self = Self::Apart(all);
    }

    /// The histogram of each interval.
    pub(super) fn into_each(self) -> Vec<LogHistogram> {
        match self {
            Self::Together(table) => table.apart(),
            Self::Apart(all) => all,
        }
    }
}

impl BucketTable {
    /// Counts a value; says whether there is a bucket for it.
    #[inline]
    fn add(&mut self, interval: usize, value: f64, weight: f64) -> bool {
        if value.is_nan() {
            return true;
        }
        if value <= 0.0 {
            self.at_most_zero[interval] += weight;
            return true;
        }
        let power = exponent(value, false);
        if !self.holds(power) && !self.widen(power, power) {
            return false;
        }
        self.counts[interval * self.width + (power - self.first) as usize] += weight;
        true
    }

    #[inline]
    fn holds(&self, power: i32) -> bool {
        // A power before the first wraps around to a number that is larger than any width.
        (power.wrapping_sub(self.first) as u32 as usize) < self.width
    }

    /// Makes room for buckets; says whether there was any.
    fn widen(&mut self, least: i32, most: i32) -> bool {
        let last = self.first + self.width as i32 - 1;
        let (first, last) = match self.width {
            0 => (least - ROOM, most + ROOM),
            _ => {
                let first = if least < self.first { least - ROOM } else { self.first };
                (first, if most > last { most + ROOM } else { last })
            }
        };
        let width = (last - first + 1) as usize;
        let intervals = self.at_most_zero.len();
        if width.saturating_mul(intervals) > MOST_COUNTS {
            return false;
        }
        let mut counts = vec![0.0; width * intervals];
        if self.width > 0 {
            let shift = (self.first - first) as usize;
            for (old, new) in self.counts.chunks_exact(self.width).zip(counts.chunks_exact_mut(width)) {
                new[shift..shift + old.len()].copy_from_slice(old);
            }
        }
        (self.first, self.width, self.counts) = (first, width, counts);
        true
    }

    /// Adds the counts of another table; says whether there was room for them.
    fn merge(&mut self, other: &Self) -> bool {
        if other.width > 0 {
            let other_last = other.first + other.width as i32 - 1;
            let fits = self.holds(other.first) && self.holds(other_last);
            if !fits && !self.widen(other.first, other_last) {
                return false;
            }
            let shift = (other.first - self.first) as usize;
            for (mine, theirs) in self.counts.chunks_exact_mut(self.width).zip(other.counts.chunks_exact(other.width)) {
                for (mine, theirs) in mine[shift..].iter_mut().zip(theirs) {
                    *mine += theirs;
                }
            }
        }
        for (mine, theirs) in self.at_most_zero.iter_mut().zip(&other.at_most_zero) {
            *mine += theirs;
        }
        true
    }

    fn apart(&self) -> Vec<LogHistogram> {
        let interval = |(at, at_most_zero): (usize, &f64)| {
            let counts = self.counts.get(at * self.width..(at + 1) * self.width).unwrap_or_default();
            let buckets = counts.iter().enumerate().filter(|(_, count)| **count != 0.0);
            LogHistogram::of_buckets(*at_most_zero, buckets.map(|(at, count)| (self.first + at as i32, *count)))
        };
        self.at_most_zero.iter().enumerate().map(interval).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![1e3f64..1e10, -5.0f64..5.0, 1e-300f64..1e300, Just(f64::NAN), Just(f64::INFINITY), Just(0.0)]
    }

    proptest! {
        /// Scenario: values near each other and far apart, in few and many intervals, split at a random place into two
        /// series that are merged. Guarantee: every interval has the histogram that its values have by themselves.
        #[test]
        fn tables_count_as_single_histograms_do(
            values in prop::collection::vec((0usize..9, value(), 1u32..4), 0..200),
            cut in 0usize..200,
            intervals in prop_oneof![Just(9usize), Just(5000)],
            precise in any::<bool>(),
        ) {
            let mut expected = vec![LogHistogram::default(); intervals];
            let mut halves = [Histograms::new(intervals, precise), Histograms::new(intervals, precise)];
            for (at, (interval, value, weight)) in values.iter().enumerate() {
                expected[*interval].add_weighted(*value, precise, f64::from(*weight));
                halves[usize::from(at >= cut)].add(*interval, *value, precise, f64::from(*weight));
            }
            let [mut merged, other] = halves;
            merged.merge(&other);
            prop_assert_eq!(merged.into_each(), expected);
        }
    }
}
