//! Content-addressed ids that are durable already, each with enough of its hash to notice a collision.

use hashbrown::HashMap;

use crate::id_hasher::IdHashing;

/// How a symbol or series stands to those that are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has to be written.
    New,
    /// It is there.
    Durable,
    /// Something else with the same id is there.
    Collided,
}

/// Ids with a part of the hash that is not in them.
#[derive(Debug, Default)]
pub struct KnownIds {
    checks: HashMap<u64, u32, IdHashing>,
}

impl KnownIds {
    /// How an id stands whose hash goes on with `check`.
    #[inline]
    pub fn standing(&self, id: u64, check: u64) -> Standing {
        match self.checks.get(&id) {
            None => Standing::New,
            Some(known) if *known == check as u32 => Standing::Durable,
            Some(_) => Standing::Collided,
        }
    }

    /// Notes that an id is durable. The first that comes with an id keeps it.
    pub(crate) fn learn(&mut self, id: u64, check: u64) {
        self.checks.entry(id).or_insert(check as u32);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.checks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: an id, the same id with another check, another id. Guarantee: each standing is told.
    #[test]
    fn standings() {
        let mut known = KnownIds::default();
        assert_eq!(known.standing(1, 2), Standing::New);
        known.learn(1, 2);
        known.learn(1, 3);
        assert_eq!(known.standing(1, 2), Standing::Durable);
        assert_eq!(known.standing(1, 3), Standing::Collided);
        assert_eq!(known.standing(2, 2), Standing::New);
        assert_eq!(known.len(), 1);
    }
}
