//! Entries of the location table.

use hotspan_model::FrameKind;
use smallvec::SmallVec;

use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::wire::{BYTES, Reader, VARINT};
use super::budget::Budget;
use super::context::write_table_attribute;
use super::dictionary::{Dictionary, wrong_index};
use super::mappings::Mapping;

/// The attribute that says what kind of code a location is.
const FRAME_TYPE: &str = "profile.frame.type";

/// An entry of the location table.
pub(super) struct Location<'d, 'a> {
    pub(super) mapping: Option<&'d Mapping<'a>>,
    pub(super) mapping_index: u32,
    address: u64,
    /// Mostly one: more where functions were inlined.
    pub(super) lines: SmallVec<[Line; 1]>,
    pub(super) kind: FrameKind,
    /// As JSON.
    pub(super) attributes: String,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function: i32,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl<'d, 'a> Location<'d, 'a> {
    pub(super) fn read(bytes: &'a [u8], dictionary: &'d Dictionary<'a>, budget: &mut Budget) -> Read<Self> {
        let mut location = Self {
            mapping: None,
            mapping_index: 0,
            address: 0,
            lines: SmallVec::new(),
            kind: FrameKind::Unknown,
            attributes: String::new(),
        };
        let mut mapping_index = 0;
        let mut attribute_indices: SmallVec<[i32; 4]> = SmallVec::new();
        let mut message = Reader::new(bytes);
        if message.next_is(1, VARINT) {
            mapping_index = message.raw_varint().field("mapping_index")? as i32;
        }
        if message.next_is(2, VARINT) {
            location.address = message.raw_varint().field("address")?;
        }
        if message.next_is(3, BYTES) {
            budget.charge(size_of::<Line>())?;
            let line = message.raw_bytes().map(Reader::new).and_then(Line::read).element("lines", 0)?;
            location.lines.push(line);
        }
        while let Some(field) = message.field()? {
            match field.number {
                1 => mapping_index = message.int32(field).field("mapping_index")?,
                2 => location.address = message.varint(field).field("address")?,
                3 => {
                    let index = location.lines.len();
                    budget.charge(size_of::<Line>())?;
                    let line = message.message(field).and_then(Line::read).element("lines", index)?;
                    location.lines.push(line);
                }
                4 => {
                    message.varints(field, |index| attribute_indices.push(index as i32)).field("attribute_indices")?;
                }
                _ => message.skip(field)?,
            }
        }
        location.mapping = match usize::try_from(mapping_index).ok().and_then(|at| dictionary.mappings.get(at)) {
            Some(Ok(mapping)) => Some(mapping),
            Some(Err(reason)) => return Err(Fault::new(Problem::Dictionary(reason.clone())).field("mapping_index")),
            None if mapping_index == 0 => None,
            None => {
                return Err(
                    wrong_index(mapping_index, "mapping_table", dictionary.mappings.len()).field("mapping_index")
                );
            }
        };
        location.mapping_index = mapping_index as u32;
        location.read_attributes(&attribute_indices, dictionary, budget).field("attribute_indices")?;
        Ok(location)
    }

    fn read_attributes(&mut self, indices: &[i32], dictionary: &Dictionary<'a>, budget: &mut Budget) -> Read<()> {
        let mut others = 0;
        for index in indices {
            let Some(attribute) = dictionary.attribute(*index)? else { continue };
            if attribute.key == FRAME_TYPE
                && let Some(name) = attribute.value.as_str()
            {
                self.kind = FrameKind::from_otel(name);
                continue;
            }
            if others == 0 {
                self.attributes.push('{');
            }
            let before = self.attributes.len();
            write_table_attribute(attribute, others, &mut self.attributes);
            budget.charge(self.attributes.len() - before)?;
            others += 1;
        }
        if others > 0 {
            self.attributes.push('}');
        }
        Ok(())
    }

    /// Where it lies in its file; the address as it is where the file is not known.
    pub(super) fn file_offset(&self) -> u64 {
        self.mapping.map_or(self.address, |mapping| mapping.file_offset_of(self.address))
    }
}

impl Line {
    fn read(mut message: Reader<'_>) -> Read<Self> {
        let mut line = Self::default();
        if message.next_is(1, VARINT) {
            line.function = message.raw_index().field("function_index")? as i32;
        }
        if message.next_is(2, VARINT) {
            line.line = line_number(message.raw_index().field("line")?);
        }
        while let Some(field) = message.field()? {
            match field.number {
                1 => line.function = message.int32(field).field("function_index")?,
                2 => line.line = line_number(message.varint(field).field("line")?),
                3 => line.column = line_number(message.varint(field).field("column")?),
                _ => message.skip(field)?,
            }
        }
        Ok(line)
    }
}

/// A line or column; what no file can have counts as not known.
pub(super) fn line_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
