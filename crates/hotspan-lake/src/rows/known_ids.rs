//! Content-addressed ids that are durable already, each with enough of its hash to notice a collision.

use std::hash::BuildHasher;

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
///
/// Every path of every request is looked up, so that what counts is how often memory has to be waited for: an entry is where
/// its id says, or next to it, and there is a table for each service, since a request mostly speaks of one.
#[derive(Debug, Default)]
pub struct KnownIds {
    /// A power of two of them, or none; at most three of four are taken.
    slots: Vec<Slot>,
    taken: usize,
    hashing: IdHashing,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    id: u64,
    check: u32,
    is_taken: bool,
}

/// Few, since there may be many services.
const FEWEST_SLOTS: usize = 8;

impl KnownIds {
    /// How an id stands whose hash goes on with `check`.
    #[inline]
    pub fn standing(&self, id: u64, check: u64) -> Standing {
        match self.slots.get(self.find(id)) {
            Some(slot) if !slot.is_taken => Standing::New,
            Some(slot) if slot.check == check as u32 => Standing::Durable,
            Some(_) => Standing::Collided,
            None => Standing::New,
        }
    }

    /// Whether an id is durable and found where it is looked for first; most are. Asked about many ids one after another, a
    /// processor fetches what it needs for all of them at once, since nothing here depends on what another finds.
    #[inline]
    pub(super) fn is_found_at_once(&self, id: u64, check: u64) -> bool {
        let at = self.hashing.hash_one(id) as usize & self.slots.len().wrapping_sub(1);
        let is_it = |slot: &Slot| slot.is_taken & (slot.id == id) & (slot.check == check as u32);
        self.slots.get(at).is_some_and(is_it)
    }

    /// Notes that an id is durable. The first that comes with an id keeps it.
    pub(crate) fn learn(&mut self, id: u64, check: u64) {
        self.reserve(1);
        let at = self.find(id);
        if let Some(slot) = self.slots.get_mut(at).filter(|slot| !slot.is_taken) {
            *slot = Slot { id, check: check as u32, is_taken: true };
            self.taken += 1;
        }
    }

    /// Makes room for this many further ids.
    pub(crate) fn reserve(&mut self, further: usize) {
        let needed = (4 * (self.taken + further)).div_ceil(3);
        if needed > self.slots.len() {
            self.grow(needed.next_power_of_two().max(FEWEST_SLOTS));
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    /// Where an id is, or would be.
    #[inline]
    fn find(&self, id: u64) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = self.hashing.hash_one(id) as usize & mask;
        while let Some(slot) = self.slots.get(at) {
            if !slot.is_taken || slot.id == id {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self, slot_count: usize) {
        let slots = vec![Slot::default(); slot_count];
        for slot in std::mem::replace(&mut self.slots, slots).into_iter().filter(|slot| slot.is_taken) {
            let at = self.find(slot.id);
            self.slots[at] = slot;
        }
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

    /// Scenario: some ten thousand ids, among them zero, neighbours, and ones that share either half; as many that are not there.
    /// Guarantee: each is found with the check it came with first, however often the table grew, and no other is.
    #[test]
    fn many_ids_are_found() {
        let ids = |from: u64| {
            (from..from + 5000).flat_map(|number| [number, number << 32, number.wrapping_mul(number) << 7 | 1])
        };
        let expected: std::collections::HashMap<u64, u64> = ids(0).map(|id| (id, id.rotate_left(9) ^ 3)).collect();
        let mut known = KnownIds::default();
        for round in 0..2 {
            for (id, check) in &expected {
                known.learn(*id, check + round);
            }
            assert_eq!(known.len(), expected.len());
        }
        for (id, check) in &expected {
            assert_eq!(known.standing(*id, *check), Standing::Durable);
            assert_eq!(known.standing(*id, check + 1), Standing::Collided);
            assert!(!known.is_found_at_once(*id, check + 1));
        }
        for id in ids(1 << 40).filter(|id| !expected.contains_key(id)) {
            assert_eq!(known.standing(id, 0), Standing::New);
            assert!(!known.is_found_at_once(id, 0));
        }
        let at_once = expected.iter().filter(|(id, check)| known.is_found_at_once(**id, **check)).count();
        assert!(2 * at_once > expected.len(), "{at_once} of {}", expected.len());
    }
}
