//! Mappings, functions and locations of a profile, resolved to frames.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use hashbrown::HashMap;
use hotspan_model::attribute::write_json_string;
use hotspan_model::frame::{CodedFrame, CodedFunction, FRAME_BYTES, FrameIndex, FrameTable, FunctionIndex, TextIndex};
use hotspan_model::{FrameKind, PathTable};

use super::FORMAT;
use super::outline::{Index, Outline};
use crate::file_error::{FileError, Result};
use crate::protobuf::Fields;

/// Frames and paths that room is made for ahead of reading them; more grows with what is there.
pub(super) const MAX_AHEAD: usize = 1 << 13;

/// The frames of every location.
#[derive(Debug)]
pub(super) struct Symbols {
    /// The frame of each location that has one, as nearly all have; [`SEVERAL`] and an index of `several` for the others.
    locations: IdTable<FrameIndex>,
    several: Vec<Range<u32>>,
    /// Frames of locations with several, each location's from the innermost inlined callee to its outermost caller.
    frames: Vec<FrameIndex>,
}

/// Marks a location that has several frames. No table has so many that an index would.
const SEVERAL: u32 = 1 << 31;

/// Rows by id. Writers number from 1 upwards, most without gaps, and then this is an array; nothing obliges them to.
#[derive(Debug)]
struct IdTable<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u64, T>,
    /// Ids below this one are in the array.
    dense_end: u64,
}

impl<T: Copy> IdTable<T> {
    fn with_expected(rows: usize) -> Self {
        let dense = vec![None; rows + 1];
        // Room for some gaps costs less than looking rows up.
        Self { dense, sparse: HashMap::new(), dense_end: 4 * (rows as u64 + 1) }
    }

    #[inline]
    fn insert(&mut self, id: u64, row: T) {
        match self.dense.get_mut(id as usize) {
            Some(slot) => *slot = Some(row),
            None => self.insert_beyond(id, row),
        }
    }

    #[inline(never)]
    fn insert_beyond(&mut self, id: u64, row: T) {
        if id < self.dense_end {
            self.dense.resize(self.dense_end as usize, None);
            self.dense[id as usize] = Some(row);
        } else {
            self.sparse.insert(id, row);
        }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<&T> {
        match self.dense.get(id as usize) {
            Some(slot) => slot.as_ref(),
            None => self.sparse.get(&id),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mapping<'a> {
    start: u64,
    limit: u64,
    file_offset: u64,
    file: &'a str,
    build_id: &'a str,
    flags: [bool; 4],
    is_kernel: bool,
    file_text: TextIndex,
    build_id_text: TextIndex,
}

/// The attributes of a location that stands for several.
const FOLDED: &str = "{\"pprof.location.is_folded\":true}";

const FLAG_NAMES: [&str; 4] = ["has_functions", "has_filenames", "has_line_numbers", "has_inline_frames"];

impl Symbols {
    /// Resolves all locations, adding their frames to `paths`. Also gives the mappings as JSON.
    pub(super) fn resolve<'a>(outline: &Outline<'a>, paths: &mut PathTable<'a>) -> Result<(Self, String)> {
        let mut texts = Texts::new(outline, &mut paths.frames);
        let (mappings, json) = read_mappings(outline, &mut texts)?;
        let functions = read_functions(outline, &mut texts)?;
        let expected = outline.locations.len();
        paths.reserve(expected.min(MAX_AHEAD), outline.samples.len().min(MAX_AHEAD));
        let mut symbols = Self { locations: IdTable::with_expected(expected), several: Vec::new(), frames: Vec::new() };
        let folded_text = paths.frames.json(Cow::Borrowed(FOLDED));
        let mut lines: Vec<(u64, i64, i64)> = Vec::new();
        // Two bytes make a line, and each line makes a frame.
        let max_frames = outline.max_table_bytes / (FRAME_BYTES + size_of::<(u64, i64, i64)>());
        let max_frames = max_frames.min(SEVERAL as usize);
        for message in &outline.locations {
            let (mut id, mut mapping_id, mut address, mut folded) = (0, 0, 0, false);
            lines.clear();
            let mut fields = Fields::new(FORMAT, message.0, message.1);
            for (number, into) in [(1, &mut id), (2, &mut mapping_id), (3, &mut address)] {
                if let Some((value, _)) = fields.next_number(number)? {
                    *into = value;
                }
            }
            while let Some(field) = fields.next()? {
                match field.number {
                    1 => id = field.unsigned()?,
                    2 => mapping_id = field.unsigned()?,
                    3 => address = field.unsigned()?,
                    4 => {
                        if paths.frames.len() + lines.len() >= max_frames {
                            return Err(FileError::too_large(FORMAT, field.offset, "lines", max_frames as u64));
                        }
                        lines.push(read_line(field.message()?)?);
                    }
                    5 => folded = field.unsigned()? != 0,
                    _ => {}
                }
            }
            if id == 0 {
                return Err(FileError::malformed(FORMAT, message.1, "a location id above 0", 0));
            }
            let mapping = mappings.get(mapping_id).copied().unwrap_or_default();
            let attributes = if folded { folded_text } else { 0 };
            let first = symbols.frames.len() as u32;
            let is_alone = lines.len() < 2;
            // The first line is the innermost inlined function, the last one its caller.
            for (depth, (function_id, line, column)) in lines.iter().enumerate() {
                let function = match functions.get(*function_id) {
                    Some(function) => *function,
                    None if *function_id == 0 => 0,
                    None => {
                        let expected = "the id of a function in the profile";
                        return Err(FileError::malformed(FORMAT, message.1, expected, function_id));
                    }
                };
                let kind = if depth + 1 < lines.len() { FrameKind::Inlined } else { mapping.kind() };
                let (line, column) = (u32::try_from(*line).unwrap_or(0), u32::try_from(*column).unwrap_or(0));
                let mut frame = CodedFrame { function, line, column, kind, attributes, ..mapping.frame() };
                if paths.frames.is_named(function) {
                    // The build would only split what is the same code. It stays with the mappings.
                    frame.build_id = 0;
                } else {
                    frame.address = mapping.normalise(address);
                }
                let frame = paths.frames.add_coded(frame);
                if is_alone {
                    symbols.locations.insert(id, frame);
                } else {
                    symbols.frames.push(frame);
                }
            }
            if lines.is_empty() {
                let (address, kind) = (mapping.normalise(address), mapping.kind());
                let frame = CodedFrame { attributes, address, kind, ..mapping.frame() };
                symbols.locations.insert(id, paths.frames.add_coded(frame));
            }
            if !is_alone {
                symbols.locations.insert(id, SEVERAL | symbols.several.len() as u32);
                symbols.several.push(first..symbols.frames.len() as u32);
            }
        }
        Ok((symbols, json))
    }

    /// The frames of a location, innermost callee first.
    #[inline]
    pub(super) fn frames_of(&self, location: u64) -> Option<&[FrameIndex]> {
        let frame = self.locations.get(location)?;
        if frame & SEVERAL == 0 {
            return Some(std::slice::from_ref(frame));
        }
        let Range { start, end } = self.several[(frame ^ SEVERAL) as usize].clone();
        Some(&self.frames[start as usize..end as usize])
    }
}

impl Mapping<'_> {
    /// A frame somewhere in it.
    fn frame(&self) -> CodedFrame {
        CodedFrame { mapping: self.file_text, build_id: self.build_id_text, ..CodedFrame::default() }
    }

    fn kind(&self) -> FrameKind {
        if self.is_kernel { FrameKind::Kernel } else { FrameKind::Unknown }
    }

    /// The address in the binary's own address space, which is the same in every process.
    fn normalise(&self, address: u64) -> u64 {
        if self.start != 0 && address >= self.start && (self.limit == 0 || address < self.limit) {
            (address - self.start).wrapping_add(self.file_offset)
        } else {
            address
        }
    }
}

/// The strings of a profile, each put into the table of frames when one first uses it.
struct Texts<'o, 't, 'a> {
    outline: &'o Outline<'a>,
    frames: &'t mut FrameTable<'a>,
    /// For each string, its text; 0 for those that nothing has used, and for empty ones.
    known: Vec<TextIndex>,
    /// Bytes of texts that are no strings of the file.
    own_bytes: usize,
}

impl<'o, 't, 'a> Texts<'o, 't, 'a> {
    fn new(outline: &'o Outline<'a>, frames: &'t mut FrameTable<'a>) -> Self {
        // Nearly all name a function or a file.
        frames.reserve_symbols(outline.strings.len().min(MAX_AHEAD), outline.functions.len().min(MAX_AHEAD));
        Self { outline, frames, known: vec![0; outline.strings.len()], own_bytes: 0 }
    }

    fn get(&mut self, index: Index) -> Result<TextIndex> {
        let text = self.outline.string(index)?;
        let known = &mut self.known[index.index as usize];
        if *known == 0 {
            *known = self.frames.text(Cow::Borrowed(text));
        }
        Ok(*known)
    }

    /// The names of a function: as a person reads it, and as the linker names it, if that differs.
    fn function_names(&mut self, name: Index, system_name: Index) -> Result<(TextIndex, TextIndex)> {
        let full = if self.outline.string(name)?.is_empty() { system_name } else { name };
        let shown = match without_shapes(self.outline.string(full)?) {
            Cow::Borrowed(_) => self.get(full)?,
            Cow::Owned(short) => {
                // Any number of functions may have one long name.
                self.own_bytes += short.len();
                let most = self.outline.max_table_bytes;
                if self.own_bytes > most {
                    return Err(FileError::too_large(FORMAT, full.offset, "bytes of names", most as u64));
                }
                self.frames.text(Cow::Owned(short))
            }
        };
        let system_name = self.get(system_name)?;
        Ok((shown, if self.frames.same_text(shown, system_name) { 0 } else { system_name }))
    }
}

/// A generic function of Go without the shapes that its compiler made copies for: one function for who reads it, as
/// newer versions of Go write it themselves. The full name stays beside it.
fn without_shapes(name: &str) -> Cow<'_, str> {
    const SHAPE: &str = "[go.shape.";
    // Few names have any bracket, which is far quicker to see.
    if memchr::memchr(b'[', name.as_bytes()).is_none() || !name.contains(SHAPE) {
        return Cow::Borrowed(name);
    }
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(SHAPE) {
        short.push_str(&rest[..at]);
        let mut depth = 0usize;
        let end = rest[at..].char_indices().find(|(_, c)| {
            depth = depth + usize::from(*c == '[') - usize::from(*c == ']');
            depth == 0
        });
        // A name that is cut inside its brackets says no more.
        let Some((end, _)) = end else { return Cow::Owned(short + "[...]") };
        short.push_str("[...]");
        rest = &rest[at + end + 1..];
    }
    Cow::Owned(short + rest)
}

fn read_line(mut fields: Fields<'_>) -> Result<(u64, i64, i64)> {
    let (mut function_id, mut line, mut column) = (0, 0, 0);
    if let Some((id, _)) = fields.next_number(1)? {
        function_id = id;
    }
    if let Some((number, _)) = fields.next_number(2)? {
        line = number as i64;
    }
    while let Some(field) = fields.next()? {
        match field.number {
            1 => function_id = field.unsigned()?,
            2 => line = field.signed()?,
            3 => column = field.signed()?,
            _ => {}
        }
    }
    Ok((function_id, line, column))
}

fn read_functions(outline: &Outline<'_>, texts: &mut Texts<'_, '_, '_>) -> Result<IdTable<FunctionIndex>> {
    let mut functions = IdTable::with_expected(outline.functions.len());
    for (position, message) in outline.functions.iter().enumerate() {
        let mut function = CodedFunction::default();
        let mut fields = Fields::new(FORMAT, message.0, message.1);
        let mut id = fields.next_number(1)?.map_or(0, |(id, _)| id);
        let mut name = Index::next_in(&mut fields, 2)?;
        let mut system_name = Index::next_in(&mut fields, 3)?;
        let file = Index::next_in(&mut fields, 4)?;
        function.file = texts.get(file)?;
        while let Some(field) = fields.next()? {
            match field.number {
                1 => id = field.unsigned()?,
                2 => name = Index::of(&field)?,
                3 => system_name = Index::of(&field)?,
                4 => function.file = texts.get(Index::of(&field)?)?,
                5 => function.start_line = u32::try_from(field.signed()?).unwrap_or(0),
                _ => {}
            }
        }
        (function.name, function.system_name) = texts.function_names(name, system_name)?;
        // .NET's profiler leaves all ids at 0 and means the position.
        functions.insert(if id == 0 { position as u64 + 1 } else { id }, texts.frames.function(function));
    }
    Ok(functions)
}

fn read_mappings<'a>(outline: &Outline<'a>, texts: &mut Texts<'_, '_, 'a>) -> Result<(IdTable<Mapping<'a>>, String)> {
    let mut mappings = IdTable::with_expected(outline.mappings.len());
    let mut json = String::new();
    for message in &outline.mappings {
        let mut id = 0;
        let mut mapping = Mapping::default();
        let mut fields = Fields::new(FORMAT, message.0, message.1);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => id = field.unsigned()?,
                2 => mapping.start = field.unsigned()?,
                3 => mapping.limit = field.unsigned()?,
                4 => mapping.file_offset = field.unsigned()?,
                5 => {
                    mapping.file = outline.string(Index::of(&field)?)?;
                    mapping.is_kernel = mapping.file.starts_with("[kernel") || mapping.file == "[vmlinux]";
                    mapping.file_text = texts.get(Index::of(&field)?)?;
                }
                6 => {
                    mapping.build_id = outline.string(Index::of(&field)?)?;
                    mapping.build_id_text = texts.get(Index::of(&field)?)?;
                }
                number @ 7..=10 => mapping.flags[number as usize - 7] = field.unsigned()? != 0,
                _ => {}
            }
        }
        json.push_str(if json.is_empty() { "[" } else { "," });
        write_mapping(&mapping, &mut json);
        if json.len() > outline.max_table_bytes {
            let most = outline.max_table_bytes as u64;
            return Err(FileError::too_large(FORMAT, message.1, "bytes of mappings", most));
        }
        mappings.insert(id, mapping);
    }
    if !json.is_empty() {
        json.push(']');
    }
    Ok((mappings, json))
}

fn write_mapping(mapping: &Mapping<'_>, json: &mut String) {
    let Mapping { start, limit, file_offset, .. } = mapping;
    // Writing into a String can't fail.
    let _ = write!(json, "{{\"memory_start\":{start},\"memory_limit\":{limit},\"file_offset\":{file_offset}");
    json.push_str(",\"filename\":");
    write_json_string(mapping.file, json);
    json.push_str(",\"build_id\":");
    write_json_string(mapping.build_id, json);
    for (flag, name) in mapping.flags.iter().zip(FLAG_NAMES) {
        if *flag {
            let _ = write!(json, ",\"{name}\":true");
        }
    }
    json.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: names of generic functions as Go's versions write them, nested, as methods, and cut off.
    /// Guarantee: all copies of a function have one name; other brackets stay.
    #[test]
    fn copies_of_generic_functions_are_one() {
        let names = [
            ("main.Sum[go.shape.int]", "main.Sum[...]"),
            ("main.Map[go.shape.[]uint8,go.shape.struct { A [4]int }].func1", "main.Map[...].func1"),
            ("main.(*Tree[go.shape.string]).walk[go.shape.int]", "main.(*Tree[...]).walk[...]"),
            ("main.Sum[go.shape.map[string", "main.Sum[...]"),
            ("main.Sum[...]", "main.Sum[...]"),
            ("operator[]", "operator[]"),
        ];
        for (full, short) in names {
            assert_eq!(without_shapes(full), short);
        }
    }
}
