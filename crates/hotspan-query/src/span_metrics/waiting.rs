//! The sides of calls that wait for their other side, in the order in which they came.
//!
//! Every second span is a side, and a hundred thousand of them wait at once: more than a processor's cache holds. So they
//! stand in one row, which is written at its end and read at its front, and only their numbers are kept by key. Whoever is not
//! there is then found missing without looking at any of them.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::time::Instant;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Trace, and span id of the client's side.
pub(super) type SideKey = ([u8; 16], [u8; 8]);

/// Those who wait, each with what is known of it.
#[derive(Debug)]
pub(super) struct WaitingRow<T> {
    places: VecDeque<Place<T>>,
    /// Numbers of places.
    by_key: HashTable<u32>,
    /// Number of the place at the front. Numbers begin anew when they end, long after a place was given up.
    front: u32,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct Place<T> {
    key: SideKey,
    arrived: Instant,
    what: T,
}

impl<T> Default for WaitingRow<T> {
    fn default() -> Self {
        Self { places: VecDeque::new(), by_key: HashTable::new(), front: 0, hasher: DefaultHashBuilder::default() }
    }
}

impl<T: Default> WaitingRow<T> {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// What waits under a key, from now on if nothing did.
    pub(super) fn at(&mut self, key: SideKey, now: Instant) -> &mut T {
        let Self { places, by_key, front, hasher } = self;
        let place_of = |number: u32| number.wrapping_sub(*front) as usize;
        let entry = by_key.entry(
            hash_of(hasher, &key),
            |number| places[place_of(*number)].key == key,
            |number| hash_of(hasher, &places[place_of(*number)].key),
        );
        let place = match entry {
            Entry::Occupied(found) => place_of(*found.get()),
            Entry::Vacant(free) => {
                free.insert(front.wrapping_add(places.len() as u32));
                places.push_back(Place { key, arrived: now, what: T::default() });
                places.len() - 1
            }
        };
        &mut places[place].what
    }

    /// When the first one came.
    pub(super) fn first_arrival(&self) -> Option<Instant> {
        self.places.front().map(|place| place.arrived)
    }

    /// Takes the first one out.
    pub(super) fn pop(&mut self) -> Option<T> {
        let first = self.places.pop_front()?;
        let number = self.front;
        if let Ok(found) = self.by_key.find_entry(hash_of(&self.hasher, &first.key), |other| *other == number) {
            found.remove();
        }
        self.front = number.wrapping_add(1);
        Some(first.what)
    }
}

/// As numbers: bytes would be hashed as two texts of any length.
fn hash_of(hasher: &DefaultHashBuilder, (trace_id, span_id): &SideKey) -> u64 {
    hasher.hash_one((u128::from_ne_bytes(*trace_id), u64::from_ne_bytes(*span_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: keys that come once or twice, more at a time than there is room for at first, while the first ones leave; the
    /// numbers of places end on the way and begin anew.
    /// Guarantee: each key finds its own as long as it waits, and all leave in the order in which they came.
    #[test]
    fn each_key_finds_its_own() {
        let mut row = WaitingRow::<Vec<u32>> { front: u32::MAX - 500, ..WaitingRow::default() };
        let (now, key) = (Instant::now(), |number: u32| ([7; 16], u64::from(number).to_le_bytes()));
        let mut left = Vec::new();
        for number in 0..3000u32 {
            row.at(key(number), now).push(number);
            if number >= 100 {
                row.at(key(number - 50), now).push(number);
            }
            if row.len() > 200 {
                left.push(row.pop().unwrap());
            }
        }
        left.extend(std::iter::from_fn(|| row.pop()));
        assert_eq!(left.len(), 3000);
        for (number, what) in (0..3000).zip(&left) {
            let again = (50..2950).contains(&number).then_some(number + 50);
            assert_eq!(*what, [number].into_iter().chain(again).collect::<Vec<_>>());
        }
        assert!(row.by_key.is_empty() && row.first_arrival().is_none());
    }
}
