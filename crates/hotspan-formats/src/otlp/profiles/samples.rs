//! The fields of one sample, brought into one shape whatever their numbering and packing.
//!
//! A sample has values, timestamps, or both. Only values: one observation, their sum if there are several. Only
//! timestamps: as many observations of one. Both, equally many: pairs. Anything else can't be told apart from a
//! sender's mistake and is refused.

use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::wire::{BYTES, Field, Reader, VARINT};
use super::version::Role;

/// A sample's fields. Lists stay packed as on the wire, so that they take no more memory than they did there.
#[derive(Debug, Default)]
pub(super) struct RawSample {
    pub(super) stack_index: i32,
    pub(super) link_index: i32,
    /// Packed varints.
    pub(super) attributes: Vec<u8>,
    values: Vec<u8>,
    timestamps: Vec<u8>,
}

/// A value, and the time it was taken at if the sample says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) value: i64,
    pub(super) time: Option<u64>,
}

impl RawSample {
    /// Reads a sample into the place of the one before.
    pub(super) fn read(&mut self, mut message: Reader<'_>, fields: &[Role; 8]) -> Read<()> {
        (self.stack_index, self.link_index) = (0, 0);
        self.attributes.clear();
        self.values.clear();
        self.timestamps.clear();
        while let Some(field) = message.field()? {
            match fields.get(field.number as usize).unwrap_or(&Role::Unknown) {
                Role::Stack => self.stack_index = message.int32(field).field("stack_index")?,
                Role::Link => self.link_index = message.int32(field).field("link_index")?,
                Role::Attributes => {
                    pack_varints(&mut message, field, &mut self.attributes).field("attribute_indices")?;
                }
                Role::Values => pack_varints(&mut message, field, &mut self.values).field("values")?,
                Role::Timestamps => {
                    message
                        .fixed64s(field, |time| self.timestamps.extend_from_slice(&time.to_le_bytes()))
                        .field("timestamps_unix_nano")?;
                }
                Role::Unknown => message.skip(field)?,
            }
        }
        Ok(())
    }

    /// How many observations there are, if they make sense.
    pub(super) fn observation_count(&self) -> Read<usize> {
        let values = self.values.iter().filter(|byte| **byte < 0x80).count();
        let timestamps = self.timestamps.len() / 8;
        if let Some(found) = self.negative_value() {
            return Err(Fault::new(Problem::Negative { found }).field("values"));
        }
        match (values, timestamps) {
            (0, 0) => Err(Fault::new(Problem::NoValue)),
            (_, 0) => Ok(1),
            (0, timestamps) => Ok(timestamps),
            (values, timestamps) if values == timestamps => Ok(values),
            (values, timestamps) => Err(Fault::new(Problem::Shape { values, timestamps })),
        }
    }

    /// A value below zero, which no measurement gives, if there is one.
    fn negative_value(&self) -> Option<i64> {
        // On the wire it takes ten bytes, and nearly no sample has as many.
        if self.values.len() < 10 {
            return None;
        }
        let mut values = Reader::new(&self.values);
        while !values.rest().is_empty() {
            let value = values.raw_varint().map_or(0, |value| value as i64);
            if value < 0 {
                return Some(value);
            }
        }
        None
    }

    /// The times that the sample says, one for each observation or none.
    pub(super) fn times(&self) -> impl Iterator<Item = u64> {
        let (times, _) = self.timestamps.as_chunks::<8>();
        times.iter().map(|time| u64::from_le_bytes(*time))
    }

    /// The observations; call [`Self::observation_count`] first.
    pub(super) fn observations(&self) -> impl Iterator<Item = Observation> {
        let (times, _) = self.timestamps.as_chunks::<8>();
        let mut values = Reader::new(&self.values);
        // Varints were checked when they were read.
        let mut next_value = move || values.raw_varint().map_or(0, |value| value as i64);
        let sum = if times.is_empty() {
            let count = self.values.iter().filter(|byte| **byte < 0x80).count();
            Some((0..count).fold(0i64, |sum, _| sum.saturating_add(next_value())))
        } else {
            None
        };
        let has_values = !self.values.is_empty();
        let timed = times.iter().map(move |time| Observation {
            value: if has_values { next_value() } else { 1 },
            time: Some(u64::from_le_bytes(*time)),
        });
        sum.map(|value| Observation { value, time: None }).into_iter().chain(timed)
    }
}

/// Appends the numbers of a repeated varint field to a packed list.
#[inline]
fn pack_varints(message: &mut Reader<'_>, field: Field, into: &mut Vec<u8>) -> Read<()> {
    if field.wire == BYTES {
        let packed = message.bytes(field)?;
        // Nearly always one or two numbers of one byte each.
        if packed.iter().any(|byte| *byte >= 0x80) {
            let mut numbers = Reader::new(packed);
            while !numbers.rest().is_empty() {
                numbers.raw_varint()?;
            }
        }
        into.extend_from_slice(packed);
        return Ok(());
    }
    let before = message.rest();
    if field.wire != VARINT {
        // Let the reader say what is wrong with it.
        return message.varints(field, drop);
    }
    message.raw_varint()?;
    into.extend_from_slice(&before[..before.len() - message.rest().len()]);
    Ok(())
}
