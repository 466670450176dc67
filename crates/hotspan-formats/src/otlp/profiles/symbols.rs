//! Functions, binaries and texts of the dictionary, each put into the table of frames when a frame first uses it.

use std::borrow::Cow;

use hotspan_model::FrameKind;
use hotspan_model::frame::{
    CodedFrame, CodedFunction, FRAME_BYTES, FUNCTION_BYTES, FrameIndex, FrameTable, FunctionIndex, TEXT_BYTES,
    TextIndex,
};

use super::super::fault::{Locate as _, Read};
use super::super::wire::{Reader, VARINT};
use super::budget::Budget;
use super::dictionary::{Dictionary, owned_bytes, wrong_index};
use super::locations::{Line, Location, line_number};

/// Where entries of the dictionary are in the table of frames, as far as they are.
#[derive(Debug)]
pub(super) struct Symbols {
    /// For each string, its text; 0 for those that no frame has used, and for empty ones.
    texts: Vec<TextIndex>,
    functions: Vec<Option<FunctionIndex>>,
    mappings: Vec<Option<Binary>>,
}

#[derive(Debug, Clone, Copy)]
struct Binary {
    file: TextIndex,
    build_id: TextIndex,
}

/// One line of a location, whose attributes are in the table of frames already.
#[derive(Clone, Copy)]
pub(super) struct Place<'l, 'd, 'a> {
    pub(super) location: &'l Location<'d, 'a>,
    pub(super) line: Line,
    pub(super) kind: FrameKind,
    pub(super) attributes: TextIndex,
}

/// A frame goes into this table, and is charged to this budget.
pub(super) struct Target<'t, 'a> {
    pub(super) frames: &'t mut FrameTable<'a>,
    pub(super) budget: &'t mut Budget,
}

impl<'a> Target<'_, 'a> {
    pub(super) fn text(&mut self, text: Cow<'a, str>) -> Read<TextIndex> {
        self.budget.charge(TEXT_BYTES + owned_bytes(&text))?;
        Ok(self.frames.text(text))
    }
}

impl Symbols {
    pub(super) fn new(dictionary: &Dictionary<'_>) -> Self {
        Self {
            texts: vec![0; dictionary.strings.len()],
            functions: vec![None; dictionary.functions.len()],
            mappings: vec![None; dictionary.mappings.len()],
        }
    }

    pub(super) fn frame<'a>(
        &mut self,
        place: Place<'_, '_, 'a>,
        dictionary: &Dictionary<'a>,
        target: &mut Target<'_, 'a>,
    ) -> Read<FrameIndex> {
        let Place { location, line, kind, attributes } = place;
        let function = match line.function {
            0 if dictionary.functions.is_empty() => 0,
            index => self.function(index, dictionary, target)?,
        };
        let Line { line, column, .. } = line;
        let binary = self.binary(location, target)?;
        let mut frame =
            CodedFrame { function, line, column, mapping: binary.file, kind, attributes, ..CodedFrame::default() };
        if !target.frames.is_named(function) {
            // What a symboliser needs later. With a function, the build would only split what is the same code.
            (frame.address, frame.build_id) = (location.file_offset(), binary.build_id);
        }
        target.budget.charge(FRAME_BYTES)?;
        Ok(target.frames.add_coded(frame))
    }

    fn function<'a>(
        &mut self,
        index: i32,
        dictionary: &Dictionary<'a>,
        target: &mut Target<'_, 'a>,
    ) -> Read<FunctionIndex> {
        let at = index as u32 as usize;
        match self.functions.get(at) {
            Some(Some(function)) => Ok(*function),
            Some(None) => {
                let function = self.read_function(dictionary.functions[at], dictionary, target)?;
                self.functions[at] = Some(function);
                Ok(function)
            }
            None => Err(wrong_index(index, "function_table", self.functions.len()).field("function_index")),
        }
    }

    fn read_function<'a>(
        &mut self,
        bytes: &'a [u8],
        dictionary: &Dictionary<'a>,
        target: &mut Target<'_, 'a>,
    ) -> Read<FunctionIndex> {
        let mut function = CodedFunction::default();
        let (mut name, mut system_name, mut file) = (0, 0, 0);
        let mut message = Reader::new(bytes);
        if message.next_is(1, VARINT) {
            name = message.raw_index().field("name_strindex")? as i32;
        }
        if message.next_is(2, VARINT) {
            system_name = message.raw_index().field("system_name_strindex")? as i32;
        }
        if message.next_is(3, VARINT) {
            file = message.raw_index().field("filename_strindex")? as i32;
        }
        if message.next_is(4, VARINT) {
            function.start_line = line_number(message.raw_index().field("start_line")?);
        }
        while let Some(field) = message.field()? {
            match field.number {
                1 => name = message.int32(field).field("name_strindex")?,
                2 => system_name = message.int32(field).field("system_name_strindex")?,
                3 => file = message.int32(field).field("filename_strindex")?,
                4 => function.start_line = line_number(message.varint(field).field("start_line")?),
                _ => message.skip(field)?,
            }
        }
        function.name = self.text(name, dictionary, target).field("name_strindex")?;
        function.system_name = self.text(system_name, dictionary, target).field("system_name_strindex")?;
        function.file = self.text(file, dictionary, target).field("filename_strindex")?;
        if function.name == 0 {
            function.name = std::mem::take(&mut function.system_name);
        } else if target.frames.same_text(function.name, function.system_name) {
            function.system_name = 0;
        }
        target.budget.charge(FUNCTION_BYTES)?;
        Ok(target.frames.function(function))
    }

    fn text<'a>(&mut self, index: i32, dictionary: &Dictionary<'a>, target: &mut Target<'_, 'a>) -> Read<TextIndex> {
        let text = dictionary.text(index)?;
        match self.texts.get_mut(index as u32 as usize) {
            Some(known) => {
                if *known == 0 && !text.is_empty() {
                    *known = target.text(text.clone())?;
                }
                Ok(*known)
            }
            // The empty text of a dictionary without any.
            None => Ok(0),
        }
    }

    fn binary<'a>(&mut self, location: &Location<'_, 'a>, target: &mut Target<'_, 'a>) -> Read<Binary> {
        let Some(mapping) = location.mapping else { return Ok(Binary { file: 0, build_id: 0 }) };
        let slot = &mut self.mappings[location.mapping_index as usize];
        match slot {
            Some(binary) => Ok(*binary),
            None => {
                let file = target.text(mapping.file_name.clone())?;
                let build_id = target.text(mapping.build_id.clone())?;
                Ok(*slot.insert(Binary { file, build_id }))
            }
        }
    }
}
