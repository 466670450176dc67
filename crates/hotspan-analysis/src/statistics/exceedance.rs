//! Some requests far beyond what is usual, among many that are not: a mixture that a comparison of means is blind to.
//!
//! If both groups were alike, each of the largest values of all would be as likely in one as in the other. That the
//! largest `k` all lie in one group has therefore a chance that can be counted, whatever the values are distributed like.

/// The chance that the largest `beyond` of all values lie in the group of `slow`, if nothing told the groups apart.
pub fn chance_of_exceeding(beyond: usize, slow: usize, fast: usize) -> f64 {
    (0..beyond.min(slow)).map(|taken| (slow - taken) as f64 / (slow + fast - taken) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: groups small enough to count all orders by hand.
    /// Guarantee: the chance is the share of orders in which the largest lie in one group.
    #[test]
    fn chances_are_as_counted() {
        assert_eq!(chance_of_exceeding(0, 3, 3), 1.0);
        assert_eq!(chance_of_exceeding(1, 3, 3), 0.5);
        // Of the twenty ways to choose three out of six, one has the three largest.
        assert!((chance_of_exceeding(3, 3, 3) - 1.0 / 20.0).abs() < 1e-12);
    }
}
