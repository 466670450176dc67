//! From entries of the stack table to call paths, each read when a sample first uses it.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{NO_PATH, Path, PathIndex};
use hotspan_model::frame::FrameIndex;
use hotspan_model::{FrameKind, PathTable};

use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::wire::{BYTES, Reader};
use super::budget::Budget;
use super::dictionary::{Dictionary, wrong_index};
use super::locations::{Line, Location};
use super::symbols::{Place, Symbols, Target};
use crate::leaf_side::LeafSide;

/// What a path takes in the table, beside its steps.
const PATH_BYTES: usize = size_of::<Path>();

/// What a stack became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BuiltStack {
    pub(super) path: PathIndex,
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
    symbols: Symbols,
    /// Distinct sets of mappings, each sorted; the first one is empty.
    pub(super) mapping_sets: Vec<Vec<u32>>,
    mapping_set_index: HashMap<Vec<u32>, u32>,
    /// Frames cut from all stacks.
    pub(super) cut_frames: u64,
    // Scratch of `build`.
    leaf_side: LeafSide,
    used_mappings: Vec<u32>,
}

impl Stacks {
    pub(super) fn new(dictionary: &Dictionary<'_>, max_depth: usize) -> Self {
        Self {
            states: vec![StackState::Unread; dictionary.stacks.len()],
            locations: vec![LocationFrames::default(); dictionary.locations.len()],
            frames: Vec::new(),
            symbols: Symbols::new(dictionary),
            mapping_sets: vec![Vec::new()],
            mapping_set_index: HashMap::from_iter([(Vec::new(), 0)]),
            cut_frames: 0,
            leaf_side: LeafSide::new(max_depth),
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
        self.leaf_side.clear();
        self.used_mappings.clear();
        let mut message = Reader::new(stack);
        while let Some(field) = message.field()? {
            match (field.number, field.wire) {
                (1, BYTES) => {
                    let mut packed = message.message(field).field("location_indices")?;
                    while !packed.rest().is_empty() {
                        let index = packed.raw_index().field("location_indices")? as i32;
                        match self.locations.get(index as u32 as usize) {
                            // Nearly all: read before, and one function.
                            Some(location) if location.len == 1 && !self.leaf_side.is_full() => {
                                if self.used_mappings.last() != Some(&location.mapping) {
                                    self.used_mappings.push(location.mapping);
                                }
                                self.leaf_side.push(location.innermost);
                            }
                            _ => self.push_location(index, dictionary, paths, budget)?,
                        }
                    }
                }
                (1, _) => {
                    let index = message.int32(field).field("location_indices")?;
                    self.push_location(index, dictionary, paths, budget)?;
                }
                _ => message.skip(field)?,
            }
        }
        self.cut_frames += self.leaf_side.cut();
        let stack = self.leaf_side.root_first(paths);
        // A location with many inlined frames makes long paths from few bytes: the work is charged as well.
        budget.charge(size_of_val(stack) + PATH_BYTES)?;
        let path = paths.add_path(stack);
        Ok(BuiltStack { path, mappings: self.mapping_set(budget)? })
    }

    /// Adds the frames of a location. The leaf comes first, so that what is cut is nearer the root; a location that
    /// is not even looked at counts as one frame.
    #[inline(never)]
    fn push_location<'a>(
        &mut self,
        index: i32,
        dictionary: &Dictionary<'a>,
        paths: &mut PathTable<'a>,
        budget: &mut Budget,
    ) -> Read<()> {
        if self.leaf_side.is_full() {
            self.leaf_side.skip(1);
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
        self.leaf_side.extend(&self.frames[location.start as usize..][..location.len as usize]);
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
        let mut location =
            Location::read(dictionary.locations[at], dictionary, budget).element("location_table", at)?;
        let start = self.frames.len();
        let outermost = location.lines.len().saturating_sub(1);
        let lines = std::mem::take(&mut location.lines);
        let unknown_line = [Line::default()];
        let lines = if lines.is_empty() { &unknown_line[..] } else { &lines };
        let mut target = Target { frames: &mut paths.frames, budget };
        let attributes = match std::mem::take(&mut location.attributes) {
            none if none.is_empty() => 0,
            json => target.text(Cow::Owned(json))?,
        };
        for (index, line) in lines.iter().enumerate() {
            // All but the outermost line of a location were inlined there.
            let kind = if index < outermost { FrameKind::Inlined } else { location.kind };
            let place = Place { location: &location, line: *line, kind, attributes };
            let frame = self.symbols.frame(place, dictionary, &mut target);
            self.frames.push(frame.element("lines", index).element("location_table", at)?);
        }
        let len = (self.frames.len() - start) as u32;
        let innermost = self.frames[start];
        let frames = LocationFrames { innermost, start: start as u32, len, mapping: location.mapping_index };
        self.locations[at] = frames;
        Ok(frames)
    }
}
