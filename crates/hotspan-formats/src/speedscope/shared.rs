//! The first pass over a speedscope file: what its profiles share. Many writers put the frames behind the stacks.

use hotspan_model::Frame;
use hotspan_model::frame::FrameIndex;

use super::{FORMAT, SCHEMA};
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::set_builder::SetBuilder;

/// What all profiles of a file share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The frames by their numbers.
    pub(super) frames: Vec<FrameIndex>,
    /// How many profiles there are.
    pub(super) profiles: usize,
}

impl Shared {
    pub(super) fn read<'a>(bytes: &'a [u8], builder: &mut SetBuilder<'a>) -> Result<Self> {
        let mut tokens = Tokens::new(FORMAT, bytes);
        let mut shared = Self::default();
        let (mut has_schema, mut has_frames, mut has_profiles) = (false, false, false);
        tokens.expect(&Token::ObjectStart, "an object")?;
        while let Token::Key(key) = tokens.require()? {
            let value = tokens.require()?;
            match (key.as_ref(), value) {
                ("$schema", Token::Text(schema)) => {
                    if schema != SCHEMA {
                        let (expected, found) = (format!("$schema {SCHEMA:?}"), format!("{schema:?}"));
                        return Err(FileError::malformed(FORMAT, tokens.last_offset(), expected, found));
                    }
                    has_schema = true;
                }
                ("shared", Token::ObjectStart) => {
                    while let Token::Key(key) = tokens.require()? {
                        match (key.as_ref(), tokens.require()?) {
                            ("frames", Token::ArrayStart) => {
                                has_frames = true;
                                shared.read_frames(&mut tokens, builder)?;
                            }
                            (_, other) => tokens.skip(&other)?,
                        }
                    }
                }
                ("profiles", Token::ArrayStart) => {
                    has_profiles = true;
                    loop {
                        match tokens.require()? {
                            Token::ArrayEnd => break,
                            profile => tokens.skip(&profile)?,
                        }
                        shared.profiles += 1;
                    }
                }
                (_, other) => tokens.skip(&other)?,
            }
        }
        tokens.next()?;
        for (there, what) in [(has_schema, "$schema"), (has_frames, "shared.frames"), (has_profiles, "profiles")] {
            if !there {
                return Err(FileError::malformed(FORMAT, bytes.len(), format!("an object with {what}"), "none"));
            }
        }
        Ok(shared)
    }

    fn read_frames<'a>(&mut self, tokens: &mut Tokens<'a>, builder: &mut SetBuilder<'a>) -> Result<()> {
        while tokens.require()? == Token::ObjectStart {
            let offset = tokens.last_offset();
            builder.take_symbol(0, offset)?;
            let mut frame = Frame::default();
            let mut name = None;
            while let Token::Key(key) = tokens.require()? {
                match (key.as_ref(), tokens.require()?) {
                    ("name", Token::Text(text)) => name = Some(text),
                    ("file", Token::Text(file)) => frame.file = file,
                    ("line", Token::Number(line)) => frame.line = line.clamp(0.0, 4e9) as u32,
                    ("col", Token::Number(column)) => frame.column = column.clamp(0.0, 4e9) as u32,
                    (_, other) => tokens.skip(&other)?,
                }
            }
            let nameless = || FileError::malformed(FORMAT, offset, "a frame with a name", "none");
            frame.function = name.ok_or_else(nameless)?;
            self.frames.push(builder.set.paths.frame(frame));
        }
        Ok(())
    }
}
