//! Hashing for keys that are hashes already: doing it again would only cost time.

use std::hash::{BuildHasherDefault, Hasher};

/// How maps and sets of such keys are built.
pub(crate) type IdHashing = BuildHasherDefault<IdHasher>;

/// Takes a `u64` as it is.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
