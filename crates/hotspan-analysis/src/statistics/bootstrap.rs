//! How sure a difference is, by drawing the requests again and again.
//!
//! The unit of chance is the request: samples of one request are not independent. Each resampling gives every request
//! a Poisson weight, the same for all columns, so that columns keep together and ratios of them can be resampled too.

use super::random::Random;
use super::welch::t_quantile;

/// How often requests are drawn anew.
const RESAMPLINGS: usize = 600;

/// A difference of means with its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Columns of numbers over the requests of one side.
#[derive(Debug, Clone, Copy)]
pub struct Side<'c> {
    /// One slice a column, all of the same length: the number for each request.
    pub columns: &'c [Vec<f64>],
    /// Variance of each column's mean that is known otherwise: for sides too small to be resampled.
    pub known_variance: Option<&'c [f64]>,
}

impl Side<'_> {
    fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }
}

/// Differences of means, slow minus fast, drawn again and again.
#[derive(Debug)]
pub struct Resampled {
    /// For each column, its difference in each resampling.
    draws: Vec<Vec<f64>>,
    /// The differences as they are.
    deltas: Vec<f64>,
    /// Percentiles of small groups are too narrow: widened as Student's t is wider than the normal distribution.
    widening: f64,
}

impl Resampled {
    /// Draws the requests of both sides.
    pub fn draw(slow: Side<'_>, fast: Side<'_>, seed: u64) -> Self {
        let count = slow.columns.len();
        let mut random = Random::new(seed);
        let mut draws: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLINGS); count];
        for _ in 0..RESAMPLINGS {
            let left = resampled_means(slow, &mut random);
            let right = resampled_means(fast, &mut random);
            for (draw, (left, right)) in draws.iter_mut().zip(left.iter().zip(&right)) {
                draw.push(left - right);
            }
        }
        let smaller = [slow, fast].iter().filter(|side| side.known_variance.is_none()).map(Side::len).min();
        let widening = smaller.filter(|n| *n > 1).map_or(1.0, |n| {
            let n = n as f64;
            t_quantile(0.05, n - 1.0) / t_quantile(0.05, 1e6) * (n / (n - 1.0)).sqrt()
        });
        let mean = |column: &[f64]| column.iter().sum::<f64>() / column.len().max(1) as f64;
        let deltas = (0..count).map(|column| mean(&slow.columns[column]) - mean(&fast.columns[column])).collect();
        Self { draws, deltas, widening }
    }

    /// The interval of a column's difference.
    pub fn interval(&self, column: usize) -> Interval {
        self.around(self.deltas[column], self.draws[column].clone())
    }

    /// The interval of the share that one column's difference has in another's. What both have in common, such as one
    /// very slow request, cancels out.
    pub fn share(&self, column: usize, whole: usize) -> Interval {
        self.joint_share(&[column], whole)
    }

    /// The same for several columns together.
    pub fn joint_share(&self, columns: &[usize], whole: usize) -> Interval {
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let sum = |draw: usize| columns.iter().map(|column| self.draws[*column][draw]).sum::<f64>();
        let draws = (0..self.draws[whole].len()).map(|draw| ratio(sum(draw), self.draws[whole][draw])).collect();
        let delta = columns.iter().map(|column| self.deltas[*column]).sum::<f64>();
        self.around(ratio(delta, self.deltas[whole]), draws)
    }

    fn around(&self, value: f64, mut draws: Vec<f64>) -> Interval {
        draws.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| draws[((draws.len() - 1) as f64 * share).round() as usize];
        Interval { low: value - (value - at(0.025)) * self.widening, high: value + (at(0.975) - value) * self.widening }
    }
}

/// For each column, the interval of the difference of means, slow minus fast.
pub fn difference_intervals(slow: Side<'_>, fast: Side<'_>, seed: u64) -> Vec<Interval> {
    let resampled = Resampled::draw(slow, fast, seed);
    (0..slow.columns.len()).map(|column| resampled.interval(column)).collect()
}

fn resampled_means(side: Side<'_>, random: &mut Random) -> Vec<f64> {
    if let Some(variances) = side.known_variance {
        // The sum of twelve even draws is close enough to normal.
        let normal = |random: &mut Random| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let means = side.columns.iter().zip(variances).map(|(column, variance)| {
            column.iter().sum::<f64>() / column.len().max(1) as f64 + variance.sqrt() * normal(random)
        });
        return means.collect();
    }
    let mut weights: Vec<(usize, f64)> = Vec::with_capacity(side.len());
    let mut drawn = 0.0;
    for request in 0..side.len() {
        let times = random.poisson_one();
        if times > 0 {
            weights.push((request, f64::from(times)));
            drawn += f64::from(times);
        }
    }
    let mean = |column: &Vec<f64>| {
        let sum: f64 = weights.iter().map(|(request, weight)| column[*request] * weight).sum();
        if drawn > 0.0 { sum / drawn } else { 0.0 }
    };
    side.columns.iter().map(mean).collect()
}
