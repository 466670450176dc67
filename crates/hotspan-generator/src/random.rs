//! Random numbers that are the same everywhere and for ever.
//!
//! Written out here instead of taken from a crate, since a new version of a crate may draw other numbers, and then
//! every figure that was measured before would be of other data.

/// xoshiro256++ by Blackman and Vigna.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

/// What a stream of random numbers is for; streams never overlap in practice.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Service = 1,
    CallTree = 2,
    Trace = 3,
    Profile = 4,
}

impl Random {
    /// The stream for one purpose and one item of it.
    pub(crate) fn of(seed: u64, stream: Stream, item: u64) -> Self {
        let mut mixer = seed ^ (stream as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
        mixer = split_mix(&mut mixer) ^ item.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let state = std::array::from_fn(|_| split_mix(&mut mixer));
        Self { state }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number from 0 up to, not including, `bound`; 0 if the bound is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low).max(0) as usize + 1) as i64
    }

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of the items, each as likely as the others; none only if there are none.
    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }

    /// A text of the list; empty if the list is.
    pub(crate) fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick(words).copied().unwrap_or_default()
    }

    /// A number from the log-normal distribution with this median, as latencies are spread.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }

    fn normal(&mut self) -> f64 {
        // 1 - unit is never zero, so its logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// An id of random bytes, never all zero.
    pub(crate) fn id<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            let random = (self.next() | 1).to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
        bytes
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A choice between items of which some are far likelier than others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Skewed {
    cumulative: Vec<f64>,
}

impl Skewed {
    /// Zipf's law: the item of rank r is taken in proportion to 1 / r^exponent.
    pub(crate) fn zipf(items: usize, exponent: f64) -> Self {
        Self::weighted((1..=items).map(|rank| (rank as f64).powf(-exponent)))
    }

    /// Each item in proportion to its weight.
    pub(crate) fn weighted(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let cumulative = weights
            .into_iter()
            .map(|weight| {
                sum += weight.max(0.0);
                sum
            })
            .collect();
        Self { cumulative }
    }

    /// Index of an item; 0 if there are none.
    pub(crate) fn pick(&self, random: &mut Random) -> usize {
        let Some(sum) = self.cumulative.last() else {
            return 0;
        };
        let at = random.unit() * sum;
        self.cumulative.partition_point(|edge| *edge <= at).min(self.cumulative.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: one stream twice, and its neighbour. Guarantee: the same numbers, and other numbers.
    #[test]
    fn streams_repeat_and_differ() {
        let draw = |item| {
            let mut random = Random::of(7, Stream::Trace, item);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    /// Scenario: many draws. Guarantee: means are what the distributions say.
    #[test]
    fn distributions() {
        let mut random = Random::of(1, Stream::Profile, 0);
        let draws = 100_000;
        let mean = (0..draws).map(|_| random.unit()).sum::<f64>() / f64::from(draws);
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let mut logs: Vec<f64> = (0..draws).map(|_| random.log_normal(30.0, 1.1)).collect();
        logs.sort_by(f64::total_cmp);
        let median = logs[logs.len() / 2];
        assert!((median - 30.0).abs() < 1.0, "{median}");
        let zipf = Skewed::zipf(1000, 1.0);
        let first = (0..draws).filter(|_| zipf.pick(&mut random) == 0).count();
        assert!((12_000..15_000).contains(&first), "{first}");
        assert_eq!(Skewed::default().pick(&mut random), 0);
    }
}
