//! The stacks of one profile of a speedscope file, sampled or evented, read element by element: as text they may take a
//! hundredth of what a list of them would (R5).

use std::collections::VecDeque;

use hotspan_model::Sample;
use hotspan_model::call_path::PathIndex;
use hotspan_model::frame::FrameIndex;

use super::FORMAT;
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::leaf_side::LeafSide;
use crate::set_builder::SetBuilder;

/// A stack, from when on and for how long, in the profile's unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) path: PathIndex,
    pub(super) at: f64,
    pub(super) weight: f64,
}

/// The least number that no value has room for: two to the 63rd.
pub(super) const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// What a stretch takes, here and as a sample.
const STRETCH_BYTES: usize = size_of::<Stretch>() + size_of::<Sample>();

/// Reads the lists of a profile.
pub(super) struct StackReader<'r, 'a> {
    pub(super) frames: &'r [FrameIndex],
    pub(super) builder: &'r mut SetBuilder<'a>,
    pub(super) max_depth: usize,
    /// The profile's place in the file's list, for errors.
    pub(super) index: usize,
    /// Whether time may go back, and frames may stay open.
    pub(super) tolerant: bool,
}

impl StackReader<'_, '_> {
    /// Reads `samples`, after its opening bracket. Weights are not known yet.
    pub(super) fn samples(&mut self, tokens: &mut Tokens<'_>) -> Result<Vec<Stretch>> {
        let mut samples = Vec::new();
        let mut leaf_side = LeafSide::new(self.max_depth);
        // Frames come from the root, and those nearest the leaf stay.
        let mut last: VecDeque<FrameIndex> = VecDeque::new();
        while self.starts(tokens, &Token::ArrayStart, "a list of frames")? {
            let offset = tokens.last_offset();
            last.clear();
            leaf_side.clear();
            while let Token::Number(frame) = tokens.require()? {
                if last.len() == self.max_depth.max(1) {
                    last.pop_front();
                    leaf_side.skip(1);
                }
                last.push_back(self.frame(frame, tokens.last_offset())?);
            }
            if tokens.last_text() != b"]" {
                return Err(self.wrong(tokens, "the number of a frame"));
            }
            last.iter().rev().for_each(|frame| leaf_side.push(*frame));
            let path = leaf_side.path_in(&mut self.builder.set);
            self.builder.take(STRETCH_BYTES, offset)?;
            samples.push(Stretch { path, at: 0.0, weight: 1.0 });
        }
        Ok(samples)
    }

    /// Reads `weights`, after its opening bracket.
    pub(super) fn weights(&mut self, tokens: &mut Tokens<'_>) -> Result<Vec<f64>> {
        let mut weights = Vec::new();
        while let Token::Number(weight) = tokens.require()? {
            let may_be = (0.0..TOO_LARGE).contains(&weight) || (self.tolerant && weight < 0.0);
            if !may_be {
                return Err(self.wrong(tokens, "a weight of 0 or more that fits into 63 bits"));
            }
            self.builder.take(size_of::<f64>(), tokens.last_offset())?;
            weights.push(weight);
        }
        if tokens.last_text() == b"]" { Ok(weights) } else { Err(self.wrong(tokens, "a number")) }
    }

    /// Reads `events`, after its opening bracket: frames that open and close.
    pub(super) fn events(&mut self, tokens: &mut Tokens<'_>) -> Result<Vec<Stretch>> {
        let mut stretches = Vec::new();
        let mut open: Vec<FrameIndex> = Vec::new();
        let mut leaf_side = LeafSide::new(self.max_depth);
        let mut since = f64::MIN;
        while self.starts(tokens, &Token::ObjectStart, "an event")? {
            let offset = tokens.last_offset();
            let (mut opens, mut at, mut frame) = (None, None, None);
            while let Token::Key(key) = tokens.require()? {
                match (key.as_ref(), tokens.require()?) {
                    ("type", Token::Text(kind)) => {
                        opens = if kind == "O" { Some(true) } else { (kind == "C").then_some(false) }
                    }
                    ("at", Token::Number(time)) => at = Some(time),
                    ("frame", Token::Number(number)) => frame = Some(self.frame(number, tokens.last_offset())?),
                    (_, other) => tokens.skip(&other)?,
                }
            }
            let (Some(opens), Some(at), Some(frame)) = (opens, at, frame) else {
                let expected = format!("an event of profile {} with type O or C, at and frame", self.index);
                return Err(FileError::malformed(FORMAT, offset, expected, "less"));
            };
            if at.abs() >= TOO_LARGE {
                let expected = format!("an event of profile {} at a time that fits into 63 bits", self.index);
                return Err(FileError::malformed(FORMAT, offset, expected, at));
            }
            if at < since && !self.tolerant {
                let expected = format!("an event of profile {} at {since} or later", self.index);
                return Err(FileError::malformed(FORMAT, offset, expected, at));
            }
            if !open.is_empty() && at > since {
                leaf_side.clear();
                let kept = open.len().min(self.max_depth.max(1));
                open.iter().rev().take(kept).for_each(|frame| leaf_side.push(*frame));
                leaf_side.skip((open.len() - kept) as u64);
                let path = leaf_side.path_in(&mut self.builder.set);
                self.builder.take(STRETCH_BYTES, offset)?;
                stretches.push(Stretch { path, at: since, weight: at - since });
            }
            since = at;
            if opens {
                open.push(frame);
            } else if open.pop() != Some(frame) {
                let expected = format!("an event of profile {} that closes the frame opened last", self.index);
                return Err(FileError::malformed(FORMAT, offset, expected, "another frame"));
            }
        }
        if !open.is_empty() && !self.tolerant {
            let expected = format!("events of profile {} that close every frame", self.index);
            let found = format!("{} open at the end", open.len());
            return Err(FileError::malformed(FORMAT, tokens.last_offset(), expected, found));
        }
        Ok(stretches)
    }

    /// Whether another element of a list starts; its end is the alternative.
    fn starts(&self, tokens: &mut Tokens<'_>, start: &Token<'_>, what: &str) -> Result<bool> {
        match tokens.require()? {
            token if token == *start => Ok(true),
            Token::ArrayEnd => Ok(false),
            _ => Err(self.wrong(tokens, what)),
        }
    }

    fn wrong(&self, tokens: &Tokens<'_>, what: &str) -> FileError {
        let found = String::from_utf8_lossy(tokens.last_text()).into_owned();
        FileError::malformed(FORMAT, tokens.last_offset(), format!("{what} in profile {}", self.index), found)
    }

    fn frame(&self, number: f64, offset: usize) -> Result<FrameIndex> {
        let index = (number >= 0.0 && number.fract() == 0.0).then_some(number as usize);
        index.and_then(|index| self.frames.get(index)).copied().ok_or_else(|| {
            let expected = format!("a frame index below {} in profile {}", self.frames.len(), self.index);
            FileError::malformed(FORMAT, offset, expected, number)
        })
    }
}
