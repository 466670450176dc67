//! From entries of the stack table to call paths, each read when a sample first uses it.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{FrameIndex, NO_PATH, NodeIndex, PathNode};
use hotspan_model::{Frame, FrameKind, PathTable};

use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::wire::{BYTES, Reader};
use super::budget::Budget;
use super::context::write_table_attribute;
use super::dictionary::{Dictionary, owned_bytes, wrong_index};
use super::mappings::Mapping;

/// The frame at the root of a stack that was too deep.
const TRUNCATED: &str = "[truncated]";
/// The attribute that says what kind of code a location is.
const FRAME_TYPE: &str = "profile.frame.type";
/// About what a node takes in the table and its index.
const NODE_BYTES: usize = size_of::<PathNode>() + 24;
/// About what a frame takes in the table and its index.
const FRAME_BYTES: usize = size_of::<Frame<'_>>() + 40;

/// What a stack became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BuiltStack {
    pub(super) path: NodeIndex,
    /// The binaries it goes through: an index into [`Stacks::mapping_sets`].
    pub(super) mappings: u32,
}

#[derive(Debug, Clone, Copy)]
enum StackState {
    Unread,
    Built(BuiltStack),
    Broken,
}

/// The frames of a location, the innermost first, as a range of [`Stacks::frames`]; none while it is unread.
#[derive(Debug, Clone, Copy, Default)]
struct LocationFrames {
    /// The first of them, which mostly is the only one.
    innermost: FrameIndex,
    start: u32,
    len: u32,
    mapping: u32,
}

/// What was made of stacks and locations so far.
#[derive(Debug)]
pub(super) struct Stacks {
    states: Vec<StackState>,
    locations: Vec<LocationFrames>,
    frames: Vec<FrameIndex>,
    /// Distinct sets of mappings, each sorted; the first one is empty.
    pub(super) mapping_sets: Vec<Vec<u32>>,
    mapping_set_index: HashMap<Vec<u32>, u32>,
    max_depth: usize,
    /// Frames cut from all stacks.
    pub(super) cut_frames: u64,
    // Scratch of `build`.
    path: Vec<FrameIndex>,
    cut: u64,
    used_mappings: Vec<u32>,
}

impl Stacks {
    pub(super) fn new(dictionary: &Dictionary<'_>, max_depth: usize) -> Self {
        Self {
            states: vec![StackState::Unread; dictionary.stacks.len()],
            locations: vec![LocationFrames::default(); dictionary.locations.len()],
            frames: Vec::new(),
            mapping_sets: vec![Vec::new()],
            mapping_set_index: HashMap::from_iter([(Vec::new(), 0)]),
            max_depth: max_depth.max(1),
            cut_frames: 0,
            path: Vec::new(),
            cut: 0,
            used_mappings: Vec::new(),
        }
    }

    /// The call path of the stack with this index.
    #[inline]
    pub(super) fn get<'a>(
        &mut self,
        index: i32,
        dictionary: &Dictionary<'a>,
        paths: &mut PathTable<'a>,
        budget: &mut Budget,
    ) -> Read<BuiltStack> {
        let at = index as u32 as usize;
        match self.states.get(at) {
            Some(StackState::Built(stack)) => Ok(*stack),
            Some(StackState::Unread) => self.first_use(at, dictionary, paths, budget),
            Some(StackState::Broken) => Err(Fault::new(Problem::Dictionary("seen before".to_owned()))),
            None if index == 0 => Ok(BuiltStack { path: NO_PATH, mappings: 0 }),
            None => Err(wrong_index(index, "stack_table", self.states.len())),
        }
    }

    fn first_use<'a>(
        &mut self,
        at: usize,
        dictionary: &Dictionary<'a>,
        paths: &mut PathTable<'a>,
        budget: &mut Budget,
    ) -> Read<BuiltStack> {
        let built = self.build(dictionary.stacks[at], dictionary, paths, budget).element("stack_table", at);
        match built {
            Ok(stack) => {
                self.states[at] = StackState::Built(stack);
                Ok(stack)
            }
            Err(fault) if fault.problem.is_fatal() => Err(fault.field("dictionary")),
            Err(fault) => {
                self.states[at] = StackState::Broken;
                Err(Fault::new(Problem::Dictionary(fault.field("dictionary").to_string())))
            }
        }
    }

    fn build<'a>(
        &mut self,
        stack: &'a [u8],
        dictionary: &Dictionary<'a>,
        paths: &mut PathTable<'a>,
        budget: &mut Budget,
    ) -> Read<BuiltStack> {
        self.path.clear();
        self.used_mappings.clear();
        self.cut = 0;
        let mut message = Reader::new(stack);
        while let Some(field) = message.field()? {
            match (field.number, field.wire) {
                (1, BYTES) => {
                    let mut packed = message.message(field).field("location_indices")?;
                    while !packed.rest().is_empty() {
                        let index = packed.raw_varint().field("location_indices")? as i32;
                        self.push_location(index, dictionary, paths, budget)?;
                    }
                }
                (1, _) => {
                    let index = message.int32(field).field("location_indices")?;
                    self.push_location(index, dictionary, paths, budget)?;
                }
                _ => message.skip(field)?,
            }
        }
        if self.cut > 0 {
            self.cut_frames += self.cut;
            self.path.push(paths.frame(Frame::named(TRUNCATED)));
        }
        self.path.reverse();
        // A location with many inlined frames makes long paths from few bytes: the work is charged as well.
        let known_nodes = paths.nodes().len();
        budget.charge(2 * self.path.len())?;
        let path = paths.path(&self.path);
        budget.charge((paths.nodes().len() - known_nodes) * NODE_BYTES)?;
        Ok(BuiltStack { path, mappings: self.mapping_set(budget)? })
    }

    /// Adds the frames of a location. The leaf comes first, so that what is cut is nearer the root; a location that
    /// is not even looked at counts as one frame.
    #[inline]
    fn push_location<'a>(
        &mut self,
        index: i32,
        dictionary: &Dictionary<'a>,
        paths: &mut PathTable<'a>,
        budget: &mut Budget,
    ) -> Read<()> {
        if self.path.len() >= self.max_depth {
            self.cut += 1;
            return Ok(());
        }
        let at = index as u32 as usize;
        let location = match self.locations.get(at) {
            Some(location) if location.len > 0 => *location,
            Some(_) => self.read_location(at, dictionary, paths, budget)?,
            None => return Err(wrong_index(index, "location_table", self.locations.len()).field("location_indices")),
        };
        if self.used_mappings.last() != Some(&location.mapping) {
            self.used_mappings.push(location.mapping);
        }
        if location.len == 1 {
            self.path.push(location.innermost);
            return Ok(());
        }
        let frames = &self.frames[location.start as usize..][..location.len as usize];
        let kept = frames.len().min(self.max_depth - self.path.len());
        self.cut += (frames.len() - kept) as u64;
        self.path.extend_from_slice(&frames[..kept]);
        Ok(())
    }

    fn mapping_set(&mut self, budget: &mut Budget) -> Read<u32> {
        self.used_mappings.sort_unstable();
        self.used_mappings.dedup();
        if self.used_mappings.first() == Some(&0) {
            self.used_mappings.remove(0);
        }
        if let Some(known) = self.mapping_set_index.get(&self.used_mappings[..]) {
            return Ok(*known);
        }
        budget.charge(2 * (size_of::<Vec<u32>>() + 4 * self.used_mappings.len()) + 16)?;
        let number = self.mapping_sets.len() as u32;
        self.mapping_sets.push(self.used_mappings.clone());
        self.mapping_set_index.insert(self.used_mappings.clone(), number);
        Ok(number)
    }

    fn read_location<'a>(
        &mut self,
        at: usize,
        dictionary: &Dictionary<'a>,
        paths: &mut PathTable<'a>,
        budget: &mut Budget,
    ) -> Read<LocationFrames> {
        let location = Location::read(dictionary.locations[at], dictionary, budget).element("location_table", at)?;
        let start = self.frames.len();
        let outermost = location.lines.len().saturating_sub(1);
        for (index, line) in location.lines.iter().enumerate() {
            budget.charge(FRAME_BYTES)?;
            // All but the outermost line of a location were inlined there.
            let kind = if index < outermost { FrameKind::Inlined } else { location.kind };
            let frame =
                location.frame(*line, kind, dictionary).element("lines", index).element("location_table", at)?;
            budget.charge(owned_by_frame(&frame))?;
            self.frames.push(paths.frame(frame));
        }
        if location.lines.is_empty() {
            budget.charge(FRAME_BYTES)?;
            let frame = location.frame(Line::default(), location.kind, dictionary).element("location_table", at)?;
            budget.charge(owned_by_frame(&frame))?;
            self.frames.push(paths.frame(frame));
        }
        let len = (self.frames.len() - start) as u32;
        let innermost = self.frames[start];
        let frames = LocationFrames { innermost, start: start as u32, len, mapping: location.mapping_index };
        self.locations[at] = frames;
        Ok(frames)
    }
}

/// An entry of the location table.
struct Location<'d, 'a> {
    mapping: Option<&'d Mapping<'a>>,
    mapping_index: u32,
    address: u64,
    lines: Vec<Line>,
    kind: FrameKind,
    attributes: String,
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    function: i32,
    line: u32,
    column: u32,
}

impl<'d, 'a> Location<'d, 'a> {
    fn read(bytes: &'a [u8], dictionary: &'d Dictionary<'a>, budget: &mut Budget) -> Read<Self> {
        let mut location = Self {
            mapping: None,
            mapping_index: 0,
            address: 0,
            lines: Vec::new(),
            kind: FrameKind::Unknown,
            attributes: String::new(),
        };
        let mut mapping_index = 0;
        let mut attribute_indices = Vec::new();
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

    fn frame(&self, line: Line, kind: FrameKind, dictionary: &Dictionary<'a>) -> Read<Frame<'a>> {
        let mut frame = Frame { line: line.line, column: line.column, kind, ..Frame::default() };
        if line.function != 0 || !dictionary.functions.is_empty() {
            read_function(line.function, dictionary, &mut frame)?;
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
        Ok(frame)
    }
}

fn owned_by_frame(frame: &Frame<'_>) -> usize {
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
