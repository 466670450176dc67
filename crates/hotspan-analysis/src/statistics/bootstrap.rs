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

/// For each column, the interval of the difference of means, slow minus fast.
pub fn difference_intervals(slow: Side<'_>, fast: Side<'_>, seed: u64) -> Vec<Interval> {
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
    // Percentiles of small groups are too narrow: widened as Student's t is wider than the normal distribution.
    let smaller = [slow, fast].iter().filter(|side| side.known_variance.is_none()).map(Side::len).min();
    let widening = smaller.filter(|n| *n > 1).map_or(1.0, |n| {
        let n = n as f64;
        t_quantile(0.05, n - 1.0) / t_quantile(0.05, 1e6) * (n / (n - 1.0)).sqrt()
    });
    let mean = |column: &[f64]| column.iter().sum::<f64>() / column.len().max(1) as f64;
    draws
        .into_iter()
        .enumerate()
        .map(|(column, mut draw)| {
            let delta = mean(&slow.columns[column]) - mean(&fast.columns[column]);
            draw.sort_unstable_by(f64::total_cmp);
            let at = |share: f64| draw[((draw.len() - 1) as f64 * share).round() as usize];
            Interval { low: delta - (delta - at(0.025)) * widening, high: delta + (at(0.975) - delta) * widening }
        })
        .collect()
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
