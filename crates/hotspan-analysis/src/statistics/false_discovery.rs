//! Many tests at once: which of them may be believed so that few of the believed ones are false.

/// Marks the tests that pass Benjamini's and Hochberg's procedure at this rate of false discoveries.
pub fn benjamini_hochberg(ps: &[f64], rate: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let passing = order.iter().enumerate().rev().find_map(|(rank, test)| {
        let bound = rate * (rank + 1) as f64 / ps.len() as f64;
        (ps[*test] <= bound).then_some(rank + 1)
    });
    let mut believed = vec![false; ps.len()];
    for test in &order[..passing.unwrap_or(0)] {
        believed[*test] = true;
    }
    believed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the worked example of the procedure: the third test alone would fail its own bound, but a later
    /// one passes. Guarantee: all up to the last that passes are believed.
    #[test]
    fn all_up_to_the_last_that_passes_are_believed() {
        let ps = [0.9, 0.001, 0.035, 0.012, 0.038];
        assert_eq!(benjamini_hochberg(&ps, 0.05), [false, true, true, true, true]);
        assert_eq!(benjamini_hochberg(&[0.2, 0.3], 0.05), [false, false]);
        assert!(benjamini_hochberg(&[], 0.05).is_empty());
    }
}
