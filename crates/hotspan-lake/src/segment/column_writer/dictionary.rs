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
    last: Option<(K, u32)>,
    hashing: IdHashing,
}

impl<K: Key> Dictionary<K> {
    pub(super) fn code_of(&mut self, value: K) -> u32 {
        if let Some((last, code)) = self.last
            && last == value
        {
            return code;
        }
        if self.slots.len() < 2 * (self.values.len() + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = value.hash(&self.hashing) as usize & mask;
        let code = loop {
            match self.slots[slot] {
                0 => {
                    self.values.push(value);
                    self.slots[slot] = self.values.len() as u32;
                    break self.values.len() as u32 - 1;
                }
                code if self.values[code as usize - 1] == value => break code - 1,
                _ => slot = (slot + 1) & mask,
            }
        };
        self.last = Some((value, code));
        code
    }

    fn grow(&mut self) {
        let room = (4 * self.values.len()).next_power_of_two().max(64);
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
