//! Everything about a profile but its samples, which stand between its first field and the others.

use super::super::fault::{Locate as _, Read};
use super::super::wire::{BYTES, Field, Reader, VARINT};
use super::budget::Budget;

/// The fields of a `Profile`, texts still as indices.
#[derive(Debug, Clone, Default)]
pub(super) struct Header<'a> {
    /// Indices of type and unit.
    pub(super) sample_type: (i32, i32),
    pub(super) period_type: (i32, i32),
    pub(super) period: i64,
    pub(super) time: u64,
    pub(super) duration: u64,
    pub(super) profile_id: &'a [u8],
    pub(super) dropped_attributes_count: u32,
    pub(super) payload_format: &'a [u8],
    pub(super) payload: &'a [u8],
    pub(super) attribute_indices: Vec<i32>,
    /// Indices of texts; only v1.8 has them.
    pub(super) comments: Vec<i32>,
    pub(super) sample_count: u64,
}

/// Fields 7 to 12, until it is clear whether they are numbered as in v1.8 or as later.
#[derive(Debug, Default)]
struct Moved<'a> {
    bytes: [&'a [u8]; 13],
    numbers: [u64; 13],
    is_v1_8: bool,
}

impl<'a> Header<'a> {
    pub(super) fn read(mut message: Reader<'a>, budget: &mut Budget) -> Read<Self> {
        let mut header = Self::default();
        let mut moved = Moved::default();
        while let Some(field) = message.field()? {
            match field.number {
                1 => merge_value_type(message.message(field)?, &mut header.sample_type).field("sample_type")?,
                2 => {
                    let index = header.sample_count as usize;
                    header.sample_count += 1;
                    message.bytes(field).element("samples", index)?;
                }
                3 => header.time = message.fixed64(field).field("time_unix_nano")?,
                4 => header.duration = message.varint(field).field("duration_nano")?,
                5 => merge_value_type(message.message(field)?, &mut header.period_type).field("period_type")?,
                6 => header.period = message.varint(field).field("period")? as i64,
                7..=12 => moved.take(&mut message, field, &mut header.attribute_indices)?,
                _ => message.skip(field)?,
            }
        }
        let index_bytes = moved.bytes[7].len() + moved.bytes[11].len() + moved.bytes[12].len();
        budget.charge(size_of::<Self>() + 4 * (header.attribute_indices.len() + index_bytes))?;
        header.settle(&moved)?;
        Ok(header)
    }

    fn settle(&mut self, moved: &Moved<'a>) -> Read<()> {
        let shift = usize::from(moved.is_v1_8);
        if moved.is_v1_8 {
            read_indices(moved.bytes[7], &mut self.comments).field("comment_strindices")?;
        }
        self.profile_id = moved.bytes[7 + shift];
        self.dropped_attributes_count = moved.numbers[8 + shift] as u32;
        self.payload_format = moved.bytes[9 + shift];
        self.payload = moved.bytes[10 + shift];
        read_indices(moved.bytes[11 + shift], &mut self.attribute_indices).field("attribute_indices")
    }
}

impl<'a> Moved<'a> {
    fn take(&mut self, message: &mut Reader<'a>, field: Field, attribute_indices: &mut Vec<i32>) -> Read<()> {
        let at = field.number as usize;
        match field.wire {
            BYTES => {
                self.bytes[at] = message.bytes(field)?;
                self.is_v1_8 |= at == 8 || at == 12;
            }
            // Unpacked attribute indices, which a reader has to understand though no one writes them.
            VARINT if at >= 11 => attribute_indices.push(message.varint(field)? as i32),
            VARINT => {
                self.numbers[at] = message.varint(field)?;
                self.is_v1_8 |= at == 9;
            }
            _ => message.skip(field)?,
        }
        Ok(())
    }
}

fn merge_value_type(mut message: Reader<'_>, into: &mut (i32, i32)) -> Read<()> {
    while let Some(field) = message.field()? {
        match field.number {
            1 => into.0 = message.int32(field).field("type_strindex")?,
            2 => into.1 = message.int32(field).field("unit_strindex")?,
            _ => message.skip(field)?,
        }
    }
    Ok(())
}

fn read_indices(packed: &[u8], into: &mut Vec<i32>) -> Read<()> {
    let mut packed = Reader::new(packed);
    while !packed.rest().is_empty() {
        into.push(packed.raw_varint()? as i32);
    }
    Ok(())
}
