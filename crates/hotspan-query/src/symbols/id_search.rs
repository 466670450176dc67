//! Finding a hash in a sorted column of hashes.
//!
//! Hashes are spread evenly, so their value tells about where they stand: a few guesses, each from the one before, land
//! within a handful of rows, where halving would touch a new cache line at each of twenty steps.

/// How often a guess is made before the rest is halved.
const GUESSES: usize = 4;

/// The place of `id` in a column that is sorted.
pub(crate) fn find(sorted: &[u64], id: u64) -> Option<usize> {
    // The place lies in `low..high`.
    let (mut low, mut high) = (0, sorted.len());
    if high == 0 {
        return None;
    }
    // Places between two values, if values are spread evenly over the whole range of numbers.
    let places = |distance: u64| ((u128::from(distance) * sorted.len() as u128) >> 64) as usize;
    let mut guess = places(id);
    for _ in 0..GUESSES {
        if low >= high {
            return None;
        }
        guess = guess.clamp(low, high - 1);
        let there = sorted[guess];
        if there == id {
            return Some(guess);
        }
        if there < id {
            low = guess + 1;
            guess += places(id - there).max(1);
        } else {
            high = guess;
            guess = guess.saturating_sub(places(there - id).max(1));
        }
    }
    sorted[low..high].binary_search(&id).ok().map(|at| low + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Scenario: columns of any numbers, spread evenly or all in one corner, and any number looked for.
        /// Guarantee: the same answer as halving gives.
        #[test]
        fn as_halving_does(
            mut column in prop::collection::vec(prop_oneof![any::<u64>(), 0..100u64, u64::MAX - 100..=u64::MAX], 0..300),
            others in prop::collection::vec(any::<u64>(), 0..20),
        ) {
            column.sort_unstable();
            column.dedup();
            for id in column.iter().chain(&others).copied().chain([0, 1, u64::MAX]) {
                prop_assert_eq!(find(&column, id), column.binary_search(&id).ok());
            }
        }
    }
}
