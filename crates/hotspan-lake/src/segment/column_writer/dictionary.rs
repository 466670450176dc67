//! Dictionaries of a column chunk: each distinct value once, in the order of their first rows.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::id_hasher::IdHashing;

/// A value of fixed size that a dictionary can hold.
pub(super) trait Key: Copy + Eq + Default {
    /// Senders choose ids: where they lie in a table must not be foreseen.
    fn hash(self, hashing: &IdHashing) -> u64;
}

impl Key for u64 {
    fn hash(self, hashing: &IdHashing) -> u64 {
        hashing.hash_one(self)
    }
}

impl Key for u128 {
    fn hash(self, hashing: &IdHashing) -> u64 {
        let mut hasher = hashing.build_hasher();
        hasher.write_u64(self as u64);
        hasher.write_u64((self >> 64) as u64);
        hasher.finish()
    }
}

/// A dictionary of values of fixed size. Every row asks it: a table of bare codes takes a third of the time of a map.
#[derive(Debug, Default)]
pub(super) struct Dictionary<K> {
    pub(super) values: Vec<K>,
    /// Codes plus one, at the places of their values' hashes; zero where there is none. Twice as many as values at least.
    slots: Vec<u32>,
    hashing: IdHashing,
}

/// Values that are looked up side by side. A large dictionary is not in the fastest cache, and what a processor waits for in one
/// look-up it fetches for many: as long as none of them depends on what another finds.
const TOGETHER: usize = 32;

impl<K: Key> Dictionary<K> {
    /// Appends the codes of some values, which are added if they are new.
    pub(super) fn append_codes(&mut self, values: &[K], codes: &mut Vec<u32>) {
        codes.reserve(values.len());
        for values in values.chunks(TOGETHER) {
            if values.iter().all(|value| *value == values[0]) {
                self.make_room(1);
                let code = self.code_from(values[0], self.slot_of(values[0]));
                codes.extend(std::iter::repeat_n(code, values.len()));
                continue;
            }
            self.make_room(values.len());
            let (mut slots, mut found) = ([0; TOGETHER], [0; TOGETHER]);
            for ((slot, found), value) in slots.iter_mut().zip(&mut found).zip(values) {
                *slot = self.slot_of(*value);
                *found = self.slots[*slot];
            }
            let mut is_there = [false; TOGETHER];
            for ((is_there, found), value) in is_there.iter_mut().zip(found).zip(values) {
                *is_there = self.values.get((found as usize).wrapping_sub(1)) == Some(value);
            }
            for (at, value) in values.iter().enumerate() {
                codes.push(if is_there[at] { found[at] - 1 } else { self.code_from(*value, slots[at]) });
            }
        }
    }

    fn slot_of(&self, value: K) -> usize {
        value.hash(&self.hashing) as usize & (self.slots.len() - 1)
    }

    /// The code of a value that is at this slot, at one after it, or new.
    fn code_from(&mut self, value: K, mut slot: usize) -> u32 {
        loop {
            match self.slots[slot] {
                0 => {
                    self.values.push(value);
                    self.slots[slot] = self.values.len() as u32;
                    return self.values.len() as u32 - 1;
                }
                code if self.values[code as usize - 1] == value => return code - 1,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Makes room for so many further values.
    fn make_room(&mut self, further: usize) {
        let needed = 2 * (self.values.len() + further);
        if self.slots.len() >= needed {
            return;
        }
        let room = (2 * needed).next_power_of_two();
        self.slots = vec![0; room];
        for (code, value) in self.values.iter().enumerate() {
            let mut slot = value.hash(&self.hashing) as usize & (room - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (room - 1);
            }
            self.slots[slot] = code as u32 + 1;
        }
    }
}

/// A dictionary of texts, as Parquet lays them out: each behind its length.
#[derive(Debug, Default)]
pub(super) struct TextDictionary {
    pub(super) page: Vec<u8>,
    /// Where the text of each code ends.
    ends: Vec<usize>,
    codes: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
}

/// Bytes of the length that stands before each text.
const LENGTH_BYTES: usize = 4;

impl TextDictionary {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn text(&self, code: u32) -> &[u8] {
        text_at(&self.page, &self.ends, code)
    }

    pub(super) fn code_of(&mut self, text: &[u8]) -> u32 {
        let Self { page, ends, codes, hasher } = self;
        let hash = hasher.hash_one(text);
        let is_same = |(other, code): &(u64, u32)| *other == hash && text_at(page, ends, *code) == text;
        if let Some((_, code)) = codes.find(hash, is_same) {
            return *code;
        }
        let code = ends.len() as u32;
        put_text(text, page);
        ends.push(page.len());
        codes.insert_unique(hash, (hash, code), |(hash, _)| *hash);
        code
    }
}

fn text_at<'p>(page: &'p [u8], ends: &[usize], code: u32) -> &'p [u8] {
    let code = code as usize;
    let start = if code == 0 { 0 } else { ends[code - 1] };
    &page[start + LENGTH_BYTES..ends[code]]
}

/// Appends a text behind its length.
pub(super) fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}
