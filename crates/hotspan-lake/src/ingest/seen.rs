//! Spans and profiles that came lately, so that a retry is counted once.
//!
//! Two generations of hashes: when the younger is as old as the window, or has half of the entries, it becomes the elder, and
//! the elder is forgotten. An id is therefore remembered for at least the window while no more than half of the entries come in
//! it, the latest half always, and memory stays bounded (R5).

use std::time::{Duration, Instant};

use hashbrown::HashSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::id_hasher::IdHashing;

/// Hashes of recent ids. They are keyed by a random seed, so that nobody can make two ids meet on purpose.
#[derive(Debug)]
pub(super) struct Seen {
    young: HashSet<u64, IdHashing>,
    old: HashSet<u64, IdHashing>,
    turned: Instant,
    window: Duration,
    half_entries: usize,
    seed: u64,
}

impl Seen {
    pub(super) fn new(window: Duration, entries: usize) -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self {
            young: HashSet::default(),
            old: HashSet::default(),
            turned: Instant::now(),
            window,
            half_entries: entries / 2,
            seed: RandomState::new().hash_one(0),
        }
    }

    /// What the spans of a tenant are hashed with.
    pub(super) fn span_key(&self, tenant: &str) -> SeenKey {
        self.key(tenant, "span")
    }

    /// What the profiles of a tenant are hashed with.
    pub(super) fn profile_key(&self, tenant: &str) -> SeenKey {
        self.key(tenant, "profile")
    }

    fn key(&self, tenant: &str, kind: &str) -> SeenKey {
        let tenant = xxh3_64_with_seed(tenant.as_bytes(), self.seed);
        SeenKey(xxh3_64_with_seed(kind.as_bytes(), tenant))
    }

    /// Remembers a hash. Says whether it is new.
    pub(super) fn insert(&mut self, hash: u64) -> bool {
        !self.old.contains(&hash) && self.young.insert(hash)
    }

    /// Forgets hashes that were new, since what has them is not stored after all.
    pub(super) fn forget(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.young.remove(hash);
        }
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Starts a generation if it is time for one, and makes room in the young one.
    pub(super) fn expect(&mut self, hashes: usize) {
        if self.turned.elapsed() > self.window || self.young.len() > self.half_entries {
            self.old = std::mem::take(&mut self.young);
            self.turned = Instant::now();
        }
        self.young.reserve(hashes);
    }
}

/// Hashes the ids of one tenant and kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenKey(u64);

impl SeenKey {
    /// The hash of a span.
    pub(super) fn span(self, trace_id: &[u8; 16], span_id: &[u8; 8]) -> u64 {
        let mut id = [0; 24];
        id[..16].copy_from_slice(trace_id);
        id[16..].copy_from_slice(span_id);
        xxh3_64_with_seed(&id, self.0)
    }

    /// The hash of a profile.
    pub(super) fn profile(self, retry_key: u128) -> u64 {
        xxh3_64_with_seed(&retry_key.to_le_bytes(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: more ids than the memory holds. Guarantee: the latest half is always remembered.
    #[test]
    fn remembers_the_latest() {
        let mut seen = Seen::new(Duration::from_secs(60), 100);
        for id in 0u64..1000 {
            seen.expect(1);
            assert!(seen.insert(id));
            assert!(!seen.insert(id));
            assert!(id < 50 || !seen.insert(id - 50));
        }
        assert!(seen.len() <= 104);
        assert!(seen.insert(0));
    }

    /// Scenario: ids that come all along while generations end by their age.
    /// Guarantee: each is remembered for the whole window after it came, and not for ever.
    #[test]
    fn remembers_for_the_window() {
        let window = Duration::from_secs(60);
        let mut seen = Seen::new(window, 1_000_000);
        let second = Duration::from_secs(1);
        for id in 0u64..1000 {
            // A second goes by.
            seen.turned = seen.turned.checked_sub(second).unwrap();
            seen.expect(1);
            assert!(seen.insert(id));
            assert!(!seen.insert(id.saturating_sub(60)), "{id}");
        }
        assert!(seen.len() <= 2 * 62, "{}", seen.len());
        assert!(seen.insert(0));
    }

    /// Scenario: ids of a batch that could not be stored. Guarantee: they are new when they come again, others are not.
    #[test]
    fn forgets_what_was_not_stored() {
        let mut seen = Seen::new(Duration::from_secs(60), 100);
        assert!(seen.insert(1) && seen.insert(2));
        seen.forget(&[2]);
        assert!(!seen.insert(1) && seen.insert(2));
    }
}
