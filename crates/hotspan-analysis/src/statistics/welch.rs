//! Welch's test: do two groups of different size and spread differ in their means?

/// What is known of one number over a group of requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// Requests in the group.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// Variance of the mean: how sure it is.
    pub mean_variance: f64,
}

impl Moments {
    /// From sums over the group; requests that lack the number count as zero.
    pub fn of(count: usize, sum: f64, sum_of_squares: f64) -> Self {
        let n = count as f64;
        if count == 0 {
            return Self::default();
        }
        let mean = sum / n;
        let variance = if count > 1 { ((sum_of_squares - n * mean * mean) / (n - 1.0)).max(0.0) } else { 0.0 };
        Self { count: n, mean, mean_variance: variance / n }
    }
}

/// The difference of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The first mean minus the second.
    pub delta: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom, by Welch and Satterthwaite.
    pub freedom: f64,
    /// The larger of the two means: what the error is small or large beside.
    scale: f64,
}

impl Difference {
    /// The chance of a difference as large if there were none, to both sides. Few of many differences are asked for it.
    pub fn p(&self) -> f64 {
        if self.error > self.scale * 1e-12 {
            two_sided_p(self.delta / self.error, self.freedom)
        } else if self.delta.abs() > self.scale * 1e-9 {
            0.0
        } else {
            1.0
        }
    }
}

/// Compares two groups.
pub fn welch(left: Moments, right: Moments) -> Difference {
    let delta = left.mean - right.mean;
    let variance = left.mean_variance + right.mean_variance;
    let error = variance.sqrt();
    let part = |moments: Moments| {
        if moments.count > 1.0 { moments.mean_variance.powi(2) / (moments.count - 1.0) } else { 0.0 }
    };
    let denominator = part(left) + part(right);
    let freedom = if denominator > 0.0 { variance * variance / denominator } else { f64::INFINITY };
    let scale = left.mean.abs().max(right.mean.abs());
    Difference { delta, error, freedom, scale }
}

/// The chance that Student's t is at least this far from zero.
pub fn two_sided_p(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    // Beyond this many degrees of freedom, Student's distribution is the normal one for every purpose here.
    let freedom = freedom.clamp(1.0, 1e6);
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)).clamp(0.0, 1.0)
}

/// The t that is exceeded, to both sides together, with chance `p`.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if two_sided_p(middle, freedom) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..400 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-12 {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function, by Stirling's series after lifting small arguments.
fn ln_gamma(x: f64) -> f64 {
    let mut lifted = x;
    let mut correction = 0.0;
    while lifted < 10.0 {
        correction -= lifted.ln();
        lifted += 1.0;
    }
    let inverse = 1.0 / lifted;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    correction + (lifted - 0.5) * lifted.ln() - lifted + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: values that tables of Student's t list. Guarantee: the same to five digits.
    #[test]
    fn students_t_is_as_in_the_tables() {
        for (t, freedom, expected) in
            [(2.228, 10.0, 0.05), (12.706, 1.0, 0.05), (1.96, 1e6, 0.05), (3.169, 10.0, 0.01), (0.0, 5.0, 1.0)]
        {
            assert!((two_sided_p(t, freedom) - expected).abs() < 2e-5, "{t} {freedom}: {}", two_sided_p(t, freedom));
        }
        assert!((t_quantile(0.05, 10.0) - 2.228).abs() < 1e-3);
    }

    /// Scenario: two groups without any spread. Guarantee: equal ones do not differ, unequal ones surely do.
    #[test]
    fn groups_without_spread_are_compared_exactly() {
        let same = welch(Moments::of(10, 50.0, 250.0), Moments::of(5, 25.0, 125.0));
        assert_eq!((same.delta, same.p()), (0.0, 1.0));
        let other = welch(Moments::of(10, 60.0, 360.0), Moments::of(5, 25.0, 125.0));
        assert_eq!((other.delta, other.p()), (1.0, 0.0));
    }
}
