//! Which numbering of the profile messages a request uses.
//!
//! The package has been called `v1development` throughout while its field numbers moved, so that a request does
//! not say which it is. The wire types of its samples mostly tell:
//!
//! | | stack | values | attributes | link | timestamps |
//! |---|---|---|---|---|---|
//! | v1.7 | 1 and 2, numbers | 3 | 4 | 5 | 6 |
//! | v1.8, v1.9 | 1 | 2, packed | 3, packed | 4, a number | 5 |
//! | v1.10 and later | 1 | 4, packed | 2, packed | 3, a number | 5 |
//!
//! Samples of fields 1, 2 and 5 alone can be either of the latter two. Then the numbers of field 2 tell: a sample has each
//! attribute once, and as many values as timestamps.
//!
//! Fields of `Profile` beyond the sixth moved from v1.8 to v1.9, which each profile shows by itself.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::super::fault::Read;
use super::super::wire::{BYTES, FIXED64, Reader, VARINT};
use super::dictionary::{Entry, TableAttribute};

/// A numbering of the profile messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireVersion {
    /// v1.7 or earlier, which is not read.
    V1_7,
    /// v1.8 or v1.9.
    V1_9,
    /// v1.10 or later.
    V1_10,
}

/// What a field of a sample means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Unknown,
    Stack,
    Values,
    Attributes,
    Link,
    Timestamps,
}

impl WireVersion {
    /// The name for messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_7 => "v1.7",
            Self::V1_9 => "v1.9",
            Self::V1_10 => "v1.10",
        }
    }

    /// The meaning of the fields of a sample by their number.
    pub(super) fn sample_fields(self) -> [Role; 8] {
        use Role::{Attributes, Link, Stack, Timestamps, Unknown, Values};
        match self {
            Self::V1_7 | Self::V1_9 => [Unknown, Stack, Values, Attributes, Link, Timestamps, Unknown, Unknown],
            Self::V1_10 => [Unknown, Stack, Attributes, Link, Values, Timestamps, Unknown, Unknown],
        }
    }
}

/// Votes after which the rest of the request is taken to agree: one sender writes one version.
const ENOUGH_VOTES: u32 = 32;
/// Samples looked at, if most of them can be read either way.
const ENOUGH_SAMPLES: u32 = 4096;

#[derive(Debug, Default)]
struct Votes {
    v1_7: u32,
    v1_9: u32,
    v1_10: u32,
    /// Guesses from samples that could be read either way: they count only where no wire type tells.
    maybe_v1_9: u32,
    maybe_v1_10: u32,
    /// Whether a profile has fields as only v1.8 numbers them: it counts only where samples say nothing at all.
    has_fields_of_v1_8: bool,
    samples: u32,
}

impl Votes {
    fn is_decided(&self) -> bool {
        self.v1_7 + self.v1_9 + self.v1_10 >= ENOUGH_VOTES
    }

    fn has_enough_samples(&self) -> bool {
        self.samples >= ENOUGH_SAMPLES
    }
}

/// The table that attributes are numbered by.
type AttributeTable<'a> = [Entry<TableAttribute<'a>>];

/// Finds the version from the samples of `resource_profiles`. Undecided requests are taken to be of today.
pub(super) fn detect(resource_profiles: &[Reader<'_>], attributes: &AttributeTable<'_>) -> Read<WireVersion> {
    let mut votes = Votes::default();
    for group in resource_profiles {
        each_message(*group, 2, &mut |scope| {
            each_message(scope, 2, &mut |profile| vote_of_profile(profile, attributes, &mut votes))
        })?;
    }
    let is_v1_9 = match (votes.v1_9, votes.v1_10) {
        (0, 0) if votes.maybe_v1_9 == votes.maybe_v1_10 => votes.has_fields_of_v1_8,
        (0, 0) => votes.maybe_v1_9 > votes.maybe_v1_10,
        (v1_9, v1_10) => v1_9 > v1_10,
    };
    Ok(if votes.v1_7 > votes.v1_9 + votes.v1_10 {
        WireVersion::V1_7
    } else if is_v1_9 {
        WireVersion::V1_9
    } else {
        WireVersion::V1_10
    })
}

/// Calls `visit` with each message in the field with this number until it says that it has seen enough.
fn each_message<'a>(
    mut reader: Reader<'a>,
    number: u32,
    visit: &mut impl FnMut(Reader<'a>) -> Read<bool>,
) -> Read<bool> {
    while let Some(field) = reader.field()? {
        if field.number == number && field.wire == BYTES {
            if visit(reader.message(field)?)? {
                return Ok(true);
            }
        } else {
            reader.skip(field)?;
        }
    }
    Ok(false)
}

fn vote_of_profile(mut profile: Reader<'_>, attributes: &AttributeTable<'_>, votes: &mut Votes) -> Read<bool> {
    while let Some(field) = profile.field()? {
        match (field.number, field.wire) {
            (2, BYTES) if !votes.has_enough_samples() => {
                vote_of_sample(profile.message(field)?, attributes, votes)?;
                if votes.is_decided() {
                    return Ok(true);
                }
            }
            (3, wire) => {
                votes.v1_7 += u32::from(wire != FIXED64) * ENOUGH_VOTES;
                profile.skip(field)?;
            }
            (8 | 12, BYTES) | (9, VARINT) => {
                votes.has_fields_of_v1_8 = true;
                profile.skip(field)?;
            }
            _ => profile.skip(field)?,
        }
    }
    Ok(votes.is_decided() || votes.has_enough_samples())
}

fn vote_of_sample(mut sample: Reader<'_>, attributes: &AttributeTable<'_>, votes: &mut Votes) -> Read<()> {
    votes.samples += 1;
    let mut numbers = 0usize;
    let mut indices = AttributeIndices::of(attributes);
    let mut timestamps = 0usize;
    while let Some(field) = sample.field()? {
        match (field.number, field.wire) {
            (2, VARINT) | (6, _) => {
                votes.v1_7 += 1;
                return Ok(());
            }
            (3, VARINT) | (4, BYTES) => {
                votes.v1_10 += 1;
                return Ok(());
            }
            (3, BYTES) | (4, VARINT) => {
                votes.v1_9 += 1;
                return Ok(());
            }
            (2, BYTES) => sample.varints(field, |number| {
                numbers += 1;
                indices.take(number);
            })?,
            (5, FIXED64 | BYTES) => sample.fixed64s(field, |_| timestamps += 1)?,
            _ => sample.skip(field)?,
        }
    }
    if numbers == 0 {
        return Ok(());
    }
    // Only a stack, the packed numbers of field 2 and perhaps timestamps: v1.9 with values or v1.10 with attributes?
    let could_be_values = timestamps == 0 || timestamps == numbers;
    let could_be_attributes = timestamps > 0 && indices.could_be_of_one_sample();
    votes.maybe_v1_9 += u32::from(could_be_values && !could_be_attributes);
    votes.maybe_v1_10 += u32::from(could_be_attributes && !could_be_values);
    Ok(())
}

/// Numbers that may be the indices of a sample's attributes.
struct AttributeIndices<'t> {
    table: &'t AttributeTable<'t>,
    taken: SmallVec<[usize; 8]>,
    /// Whether some number can't be one.
    is_refuted: bool,
}

impl<'t> AttributeIndices<'t> {
    fn of(table: &'t AttributeTable<'t>) -> Self {
        Self { table, taken: SmallVec::new(), is_refuted: false }
    }

    #[inline]
    fn take(&mut self, number: u64) {
        // 0 is no attribute; and of more numbers than there are attributes, two are the same.
        let is_possible = 0 < number && number < self.table.len() as u64 && self.taken.len() < self.table.len();
        self.is_refuted |= !is_possible;
        if !self.is_refuted {
            self.taken.push(number as usize);
        }
    }

    /// Whether one sample can have all these attributes: OTLP demands that their keys differ.
    fn could_be_of_one_sample(&self) -> bool {
        if self.is_refuted || self.taken.len() < 2 {
            return !self.is_refuted;
        }
        // A broken entry has no key to compare, but is one entry all the same.
        let identity = |index: &usize| self.table[*index].as_ref().map(|entry| entry.key.as_ref()).map_err(|_| *index);
        let mut seen = HashSet::with_capacity(self.taken.len());
        self.taken.iter().all(|index| seen.insert(identity(index)))
    }
}
