//! Counts of values in buckets whose bounds grow by a constant factor.
//!
//! With factor 2 these are Tempo's buckets, and quantiles come out as Tempo's do. With a factor near 1 it is a sketch
//! whose quantiles are off by half a percent at most. Both merge by adding counts.

/// The growth of a bucket's bound in the precise sketch.
const FINE: f64 = 1.01;

/// A histogram over positive values; zero and below share one bucket.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogHistogram {
    at_most_zero: f64,
    /// Exponent of the upper bound, and count; ascending.
    buckets: Vec<(i32, f64)>,
}

impl LogHistogram {
    /// A histogram with these counts, by the exponents of their bounds in ascending order.
    pub(super) fn of_buckets(at_most_zero: f64, buckets: impl Iterator<Item = (i32, f64)>) -> Self {
        Self { at_most_zero, buckets: buckets.collect() }
    }

    /// Counts a value.
    pub fn add(&mut self, value: f64, precise: bool) {
        self.add_weighted(value, precise, 1.0);
    }

    /// Counts a value that stands for `weight` of its kind.
    pub fn add_weighted(&mut self, value: f64, precise: bool, weight: f64) {
        if value.is_nan() {
            return;
        }
        if value <= 0.0 {
            self.at_most_zero += weight;
        } else {
            self.add_count(exponent(value, precise), weight);
        }
    }

    #[inline]
    fn add_count(&mut self, exponent: i32, count: f64) {
        // Buckets seldom have gaps between them: a bucket mostly stands as far behind the first as its exponent says.
        let first = self.buckets.first().map_or(exponent, |(first, _)| *first);
        let guess = usize::try_from(i64::from(exponent) - i64::from(first)).ok();
        if let Some(bucket) = guess.and_then(|guess| self.buckets.get_mut(guess))
            && bucket.0 == exponent
        {
            bucket.1 += count;
            return;
        }
        match self.buckets.binary_search_by_key(&exponent, |(exponent, _)| *exponent) {
            Ok(at) => self.buckets[at].1 += count,
            Err(at) => self.buckets.insert(at, (exponent, count)),
        }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.at_most_zero += other.at_most_zero;
        for (exponent, count) in &other.buckets {
            self.add_count(*exponent, *count);
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.at_most_zero == 0.0 && self.buckets.is_empty()
    }

    /// How many buckets hold anything above zero: what its size is measured by.
    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Upper bound and count of each bucket that has any, ascending.
    pub fn buckets(&self, precise: bool) -> impl Iterator<Item = (f64, f64)> + '_ {
        let zero = (self.at_most_zero > 0.0).then_some((0.0, self.at_most_zero));
        zero.into_iter().chain(self.buckets.iter().map(move |(exponent, count)| (bound(*exponent, precise), *count)))
    }

    /// The value below which the share `quantile` of all values lies, or `None` if there are no values.
    ///
    /// The rank is rounded up, so that small samples report their upper values; inside a bucket the values are taken
    /// to grow exponentially from the bound of the bucket before.
    pub fn quantile(&self, quantile: f64, precise: bool) -> Option<f64> {
        let total: f64 = self.at_most_zero + self.buckets.iter().map(|(_, count)| count).sum::<f64>();
        if total == 0.0 {
            return None;
        }
        let rank = (quantile * total).ceil().max(1.0).min(total);
        let mut passed = 0.0;
        let mut lower = None;
        for (upper, count) in self.buckets(precise) {
            if passed + count >= rank {
                if precise || upper == 0.0 {
                    // The middle of a narrow bucket is off by half its width at most.
                    return Some(if precise { upper * 2.0 / (1.0 + FINE) } else { upper });
                }
                let share = (rank - passed) / count;
                let top = upper.log2();
                let bottom = lower.map_or(top - 1.0, f64::log2);
                return Some(if share >= 1.0 { upper } else { (bottom + (top - bottom) * share).exp2() });
            }
            passed += count;
            lower = (upper > 0.0).then_some(upper);
        }
        lower.or(Some(0.0))
    }
}

/// The bucket of a positive value: the smallest exponent whose bound is not below it.
#[inline]
pub(super) fn exponent(value: f64, precise: bool) -> i32 {
    if precise {
        return (value.ln() / FINE.ln()).ceil().clamp(-200_000.0, 200_000.0) as i32;
    }
    // Exact for powers of two, which a logarithm need not be.
    let bits = value.to_bits();
    let power = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let is_power_of_two = bits & ((1 << 52) - 1) == 0;
    power + i32::from(!is_power_of_two)
}

/// The upper bound of a bucket.
pub(super) fn bound(exponent: i32, precise: bool) -> f64 {
    if precise { FINE.powi(exponent) } else { 2f64.powi(exponent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64], precise: bool) -> LogHistogram {
        let mut histogram = LogHistogram::default();
        values.iter().for_each(|value| histogram.add(*value, precise));
        histogram
    }

    /// Scenario: values on and between powers of two.
    /// Guarantee: a power of two is the upper bound of its own bucket, as in Tempo.
    #[test]
    fn buckets_end_at_powers_of_two() {
        let histogram = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 1024.0, 0.0], false);
        let expected = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (4.0, 2.0), (8.0, 1.0), (1024.0, 1.0)];
        assert_eq!(histogram.buckets(false).collect::<Vec<_>>(), expected);
    }

    /// Scenario: quantiles worked out by hand on small histograms.
    /// Guarantee: full buckets give their bound, parts of a bucket are interpolated exponentially.
    #[test]
    fn quantiles_interpolate_exponentially() {
        assert_eq!(of(&[], false).quantile(0.5, false), None);
        assert_eq!(of(&[100.0], false).quantile(0.5, false), Some(128.0));
        let four = of(&[5.0, 6.0, 7.0, 8.0], false);
        assert_eq!(four.quantile(1.0, false), Some(8.0));
        assert_eq!(four.quantile(0.5, false), Some(4.0 * 2f64.sqrt()));
        let gap = of(&[2.0, 30.0, 30.0], false);
        assert_eq!(gap.quantile(0.5, false), Some(8.0));
    }

    proptest! {
        /// Scenario: random positive values in a precise sketch.
        /// Guarantee: every quantile is within half a percent of the value of that rank.
        #[test]
        fn precise_quantiles_are_within_half_a_percent(
            values in prop::collection::vec(1e-6f64..1e12, 1..200),
            quantile in 0.0f64..=1.0,
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            let got = of(&values, true).quantile(quantile, true).unwrap();
            prop_assert!((got / exact - 1.0).abs() < 0.00501, "{got} for {exact}");
        }

        /// Scenario: values split at a random place into two histograms.
        /// Guarantee: merging them gives the histogram of all values.
        #[test]
        fn merging_is_adding(values in prop::collection::vec(-5.0f64..1e9, 0..100), cut in 0usize..100) {
            let cut = cut.min(values.len());
            for precise in [false, true] {
                let mut left = of(&values[..cut], precise);
                left.merge(&of(&values[cut..], precise));
                prop_assert_eq!(left, of(&values, precise));
            }
        }
    }
}
