//! Hashing for keys that are hashes already: one multiplication spreads them, in a way that nobody outside can foresee.
//!
//! Ids follow from what senders say. Used as they are, ids that were chosen alike would all fall into one place of a table.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// How maps and sets of such keys are built.
#[derive(Debug, Clone)]
pub(crate) struct IdHashing {
    secret: u64,
}

impl Default for IdHashing {
    fn default() -> Self {
        // One for the process is enough, and is drawn once.
        static SECRET: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        Self { secret: *SECRET }
    }
}

impl BuildHasher for IdHashing {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.secret)
    }
}

/// Takes one `u64`.
#[derive(Debug)]
pub(crate) struct IdHasher(u64);

/// Odd, with as many ones as zeros in no order: the golden ratio.
const SPREADING: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        let product = u128::from(self.0 ^ id) * u128::from(SPREADING);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use hashbrown::HashSet;

    use super::*;

    /// Scenario: ids that somebody chose to share their lower or their upper half.
    /// Guarantee: they spread over the places of a table like any others.
    #[test]
    fn chosen_ids_are_spread() {
        let hashing = IdHashing::default();
        for shift in [0, 20, 32, 48] {
            let places: HashSet<u64> = (0..4096u64).map(|id| hashing.hash_one(id << shift) & 0xffff).collect();
            // 4,096 balls in 65,536 places: about 3,970 places are hit.
            assert!(places.len() > 3_500, "{} places at {shift}", places.len());
        }
    }
}
