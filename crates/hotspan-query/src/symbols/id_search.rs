//! Finding a hash in a sorted column of hashes.
//!
//! Hashes are spread evenly, so that their first bits tell nearly where they stand: one look at where the hashes with
//! these bits begin, and a few steps from there.

/// Hashes that share their first bits, on average; a step or two find one of them.
const TOGETHER: usize = 4;

/// Where the hashes with each value of the first bits begin in a column.
#[derive(Debug, Clone, Default)]
pub(super) struct IdIndex {
    /// One more than there are values: the end of the last.
    starts: Vec<u32>,
    shift: u32,
}

impl IdIndex {
    /// The index of a column that is sorted, and has fewer than four billion rows.
    pub(super) fn of(sorted: &[u64]) -> Self {
        let bits = (sorted.len() / TOGETHER).max(2).ilog2();
        let shift = u64::BITS - bits;
        let mut starts = vec![0u32; (1 << bits) + 1];
        for id in sorted {
            starts[(id >> shift) as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self { starts, shift }
    }

    /// The place of `id` in the column that this is the index of.
    pub(super) fn find(&self, sorted: &[u64], id: u64) -> Option<usize> {
        if self.starts.is_empty() {
            return None;
        }
        let bits = (id >> self.shift) as usize;
        let (start, end) = (self.starts[bits] as usize, self.starts[bits + 1] as usize);
        let together = &sorted[start..end];
        // Hashes that somebody made up may all share their first bits.
        let found = if together.len() <= 4 * TOGETHER {
            together.iter().position(|other| *other == id)
        } else {
            together.binary_search(&id).ok()
        };
        found.map(|at| start + at)
    }
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
            let index = IdIndex::of(&column);
            for id in column.iter().chain(&others).copied().chain([0, 1, u64::MAX]) {
                prop_assert_eq!(index.find(&column, id), column.binary_search(&id).ok());
            }
        }
    }
}
