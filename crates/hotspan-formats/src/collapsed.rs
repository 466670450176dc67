//! Collapsed stacks: `main;serve;parse 12`, one stack a line; also bare stacks, one line for each sample.

use std::borrow::Cow;
use std::fmt::Write as _;

use hashbrown::HashMap;
use hotspan_model::call_path::PathIndex;
use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{FlameTree, Frame, Profile, ProfileSet, Sample};

use crate::decode_options::{DecodeOptions, TextType};
use crate::file_error::{FileError, Result};
use crate::leaf_side::{LeafSide, child_path};
use crate::set_builder::SetBuilder;
use crate::utf8::without_mark;

const FORMAT: &str = "collapsed";
/// What ends each line.
const COUNT: &str = "a whole number at the end of the line";

/// Reads collapsed stacks with counts. Lines without a space are skipped where the options say so, as Pyroscope does.
pub fn decode<'a>(text: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut sink = StackSink::new(FORMAT, options);
    for (line, offset) in lines(text) {
        let ends_the_file = offset + line.len() == text.len();
        let line = as_text(line, offset)?.trim_end();
        let (stack, count) = match line.rsplit_once(' ') {
            Some(parts) => parts,
            None if options.tolerant || line.is_empty() || line.starts_with('#') => continue,
            None if ends_the_file => return Err(FileError::truncated(FORMAT, text.len(), COUNT)),
            None => return Err(FileError::malformed(FORMAT, offset, COUNT, format!("{line:?}"))),
        };
        let Ok(value) = count.parse::<u64>() else {
            if line.starts_with('#') {
                continue;
            }
            return Err(FileError::malformed(FORMAT, offset + stack.len() + 1, COUNT, format!("{count:?}")));
        };
        let stack = stack.trim_end();
        let path = sink.stack(stack.rsplit(';'), offset)?;
        sink.add(path, value, offset)?;
    }
    sink.finish()
}

/// Reads bare stacks: each line is one sample.
pub fn decode_lines<'a>(text: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut sink = StackSink::new("lines", options);
    for (line, offset) in lines(text) {
        let line = as_text(line, offset)?.trim();
        if !line.is_empty() {
            let path = sink.stack(line.rsplit(';'), offset)?;
            sink.add(path, 1, offset)?;
        }
    }
    sink.finish()
}

fn as_text(line: &[u8], offset: usize) -> Result<&str> {
    std::str::from_utf8(line)
        .map_err(|wrong| FileError::malformed(FORMAT, offset + wrong.valid_up_to(), "text in UTF-8", "other bytes"))
}

/// Lines and where each starts.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut at = text.len() - without_mark(text).len();
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let start = at;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        at += length + 1;
        Some((&rest[..length], start))
    })
}

/// Collects stacks of names into a set with one profile: what all text formats end in.
#[derive(Debug)]
pub(crate) struct StackSink<'a> {
    format: &'static str,
    builder: SetBuilder<'a>,
    text_type: TextType,
    frames: HashMap<Cow<'a, str>, FrameIndex>,
    leaf_side: LeafSide,
    profile: Profile<'a>,
    link: u32,
    max_depth: usize,
}

impl<'a> StackSink<'a> {
    /// For a format that does not say what its values are.
    pub(crate) fn new(format: &'static str, options: &DecodeOptions) -> Self {
        Self::of_type(format, options, TextType::of_counts(options))
    }

    pub(crate) fn of_type(format: &'static str, options: &DecodeOptions, text_type: TextType) -> Self {
        let (labels, link) = options.series();
        let (time, duration) = options.time_range(0, 0);
        let mut builder = SetBuilder::new(format, options);
        let link = builder.link(link);
        let profile = Profile {
            profile_type: text_type.profile_type.clone(),
            labels,
            time,
            duration,
            context: ProfileContext { source: Cow::Borrowed(format), ..ProfileContext::default() },
            ..Profile::default()
        };
        Self {
            format,
            builder,
            text_type,
            frames: HashMap::new(),
            leaf_side: LeafSide::new(options.limits.max_stack_depth),
            profile,
            link,
            max_depth: options.limits.max_stack_depth,
        }
    }

    /// The frame of a name that stands at `offset`.
    pub(crate) fn frame(&mut self, name: Cow<'a, str>, offset: usize) -> Result<FrameIndex> {
        if let Some(known) = self.frames.get(name.as_ref()) {
            return Ok(*known);
        }
        // A name of its own is kept here and in the table.
        let own_bytes = if let Cow::Owned(name) = &name { 2 * name.len() } else { 0 };
        self.builder.take_symbol(own_bytes, offset)?;
        let frame = self.builder.set.paths.frame(parse_frame(&name));
        self.frames.insert(name, frame);
        Ok(frame)
    }

    /// The path of a stack of names, the leaf first.
    pub(crate) fn stack(&mut self, leaf_to_root: impl Iterator<Item = &'a str>, offset: usize) -> Result<PathIndex> {
        self.collect(leaf_to_root.map(Cow::Borrowed), offset)
    }

    fn collect(&mut self, leaf_to_root: impl Iterator<Item = Cow<'a, str>>, offset: usize) -> Result<PathIndex> {
        self.leaf_side.clear();
        for name in leaf_to_root.filter(|name| !name.is_empty()) {
            if self.leaf_side.is_full() {
                self.leaf_side.skip(1);
            } else {
                let frame = self.frame(name, offset)?;
                self.leaf_side.push(frame);
            }
        }
        Ok(self.leaf_side.path_in(&mut self.builder.set))
    }

    /// The child of `parent` that runs `frame`.
    pub(crate) fn child(&mut self, parent: PathIndex, frame: FrameIndex, offset: usize) -> Result<PathIndex> {
        let path = child_path(&mut self.builder.set, parent, frame, self.max_depth);
        self.builder.check_room(offset)?;
        Ok(path)
    }

    /// Adds a collapsed stack that lives no longer than the call.
    pub(crate) fn add_owned_stack(&mut self, stack: &str, value: u64, offset: usize) -> Result<()> {
        let path = self.collect(stack.rsplit(';').map(|name| Cow::Owned(name.to_owned())), offset)?;
        self.add(path, value, offset)
    }

    /// Adds a sample of `value` counts.
    pub(crate) fn add(&mut self, path: PathIndex, value: u64, offset: usize) -> Result<()> {
        if value == 0 {
            return Ok(());
        }
        let scaled = i64::try_from(value).ok().and_then(|value| value.checked_mul(self.text_type.scale));
        let Some(value) = scaled else {
            return Err(FileError::malformed(self.format, offset, "a value that fits into 63 bits", value));
        };
        self.builder.take_sample(offset)?;
        self.profile.samples.push(Sample {
            path,
            value,
            time: self.profile.time,
            timed: false,
            link: self.link,
            thread: 0,
            labels: 0,
            attributes: 0,
        });
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<ProfileSet<'a>> {
        self.builder.set.profiles.push(self.profile);
        self.builder.finish()
    }
}

/// Reads `function (file:line)`, as py-spy and rbspy write frames; anything else is a function.
fn parse_frame<'a>(name: &Cow<'a, str>) -> Frame<'a> {
    let parts = name.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")).and_then(|(function, place)| {
        let (file, line) = place.rsplit_once(':')?;
        let line = line.parse::<u32>().ok()?;
        (!function.is_empty() && !file.is_empty()).then_some((function.len(), file.len(), line))
    });
    let Some((function, file, line)) = parts else {
        return Frame { function: name.clone(), ..Frame::default() };
    };
    let part = |from: usize, length: usize| match name {
        Cow::Borrowed(name) => Cow::Borrowed(&name[from..from + length]),
        Cow::Owned(name) => Cow::Owned(name[from..from + length].to_owned()),
    };
    Frame { function: part(0, function), file: part(function + 2, file), line, ..Frame::default() }
}

/// Writes a tree as collapsed stacks, in the order of its nodes.
pub fn encode(tree: &FlameTree) -> String {
    let mut out = String::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, node) in tree.nodes().iter().enumerate().skip(1) {
        if node.self_value == 0 {
            continue;
        }
        names.clear();
        let mut at = index;
        while at != FlameTree::ROOT {
            names.push(tree.name(tree.nodes()[at].name));
            at = tree.nodes()[at].parent;
        }
        for (place, name) in names.iter().rev().enumerate() {
            if place > 0 {
                out.push(';');
            }
            // The separators can't be escaped in this format.
            out.extend(name.chars().map(|c| match c {
                ';' => ':',
                '\n' | '\r' => ' ',
                other => other,
            }));
        }
        // Writing into a String can't fail.
        let _ = writeln!(out, " {}", node.self_value);
    }
    out
}
