//! Entries of the location table and the functions in them, as frames.

use std::borrow::Cow;

use hotspan_model::{Frame, FrameKind};
use smallvec::SmallVec;

use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::wire::Reader;
use super::budget::Budget;
use super::context::write_table_attribute;
use super::dictionary::{Dictionary, owned_bytes, wrong_index};
use super::mappings::Mapping;

/// The attribute that says what kind of code a location is.
const FRAME_TYPE: &str = "profile.frame.type";

/// An entry of the location table.
pub(super) struct Location<'d, 'a> {
    mapping: Option<&'d Mapping<'a>>,
    pub(super) mapping_index: u32,
    address: u64,
    /// Mostly one: more where functions were inlined.
    pub(super) lines: SmallVec<[Line; 1]>,
    pub(super) kind: FrameKind,
    attributes: String,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    function: i32,
    line: u32,
    column: u32,
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

    /// Makes a frame of one of its lines.
    pub(super) fn fill(
        &self,
        line: Line,
        kind: FrameKind,
        dictionary: &Dictionary<'a>,
        frame: &mut Frame<'a>,
    ) -> Read<()> {
        (frame.line, frame.column, frame.kind) = (line.line, line.column, kind);
        if line.function != 0 || !dictionary.functions.is_empty() {
            read_function(line.function, dictionary, frame)?;
        }
        if !self.attributes.is_empty() {
            frame.attributes = Cow::Owned(self.attributes.clone());
        }
        if let Some(mapping) = self.mapping {
            frame.mapping = mapping.file_name.clone();
        }
        if frame.function.is_empty() {
            // What a symboliser needs later. With a function, the build would only split what is the same code.
            frame.address = self.mapping.map_or(self.address, |mapping| mapping.file_address(self.address));
            if let Some(mapping) = self.mapping {
                frame.build_id = mapping.build_id.clone();
            }
        }
        Ok(())
    }
}

/// What a frame takes beyond the request it borrows from.
pub(super) fn owned_by_frame(frame: &Frame<'_>) -> usize {
    let texts = [&frame.function, &frame.system_name, &frame.file, &frame.mapping, &frame.build_id, &frame.attributes];
    texts.into_iter().map(owned_bytes).sum()
}

fn read_function<'a>(index: i32, dictionary: &Dictionary<'a>, frame: &mut Frame<'a>) -> Read<()> {
    let Some(bytes) = usize::try_from(index).ok().and_then(|at| dictionary.functions.get(at)) else {
        return Err(wrong_index(index, "function_table", dictionary.functions.len()).field("function_index"));
    };
    let mut message = Reader::new(bytes);
    let (mut name, mut system_name, mut file_name) = (0, 0, 0);
    while let Some(field) = message.field()? {
        match field.number {
            1 => name = message.int32(field).field("name_strindex")?,
            2 => system_name = message.int32(field).field("system_name_strindex")?,
            3 => file_name = message.int32(field).field("filename_strindex")?,
            4 => frame.start_line = line_number(message.varint(field).field("start_line")?),
            _ => message.skip(field)?,
        }
    }
    frame.function = dictionary.text(name).field("name_strindex")?.clone();
    frame.system_name = dictionary.text(system_name).field("system_name_strindex")?.clone();
    frame.file = dictionary.text(file_name).field("filename_strindex")?.clone();
    if frame.function.is_empty() {
        frame.function = std::mem::take(&mut frame.system_name);
    } else if frame.function == frame.system_name {
        frame.system_name = Cow::Borrowed("");
    }
    Ok(())
}

impl Line {
    fn read(mut message: Reader<'_>) -> Read<Self> {
        let mut line = Self::default();
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
fn line_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
