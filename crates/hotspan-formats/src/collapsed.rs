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
use crate::set_builder::SetBuilder;

const FORMAT: &str = "collapsed";

/// Reads collapsed stacks with counts. Lines without a space are skipped, as Pyroscope does.
pub fn decode<'a>(text: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut sink = StackSink::new(FORMAT, options);
    for (line, offset) in lines(text) {
        let line = as_text(line, offset)?;
        let Some((stack, count)) = line.trim_end().rsplit_once(' ') else { continue };
        let value = count.parse::<u64>().map_err(|_| {
            let at = offset + stack.len() + 1;
            FileError::malformed(FORMAT, at, "a whole number at the end of the line", format!("{count:?}"))
        })?;
        let stack = stack.trim_end();
        let path = sink.stack(stack.split(';'));
        sink.add(path, value, offset)?;
    }
    Ok(sink.finish())
}

/// Reads bare stacks: each line is one sample.
pub fn decode_lines<'a>(text: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut sink = StackSink::new("lines", options);
    for (line, offset) in lines(text) {
        let line = as_text(line, offset)?.trim();
        if !line.is_empty() {
            let path = sink.stack(line.split(';'));
            sink.add(path, 1, offset)?;
        }
    }
    Ok(sink.finish())
}

fn as_text(line: &[u8], offset: usize) -> Result<&str> {
    std::str::from_utf8(line)
        .map_err(|wrong| FileError::malformed(FORMAT, offset + wrong.valid_up_to(), "text in UTF-8", "other bytes"))
}

/// Lines and where each starts.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut at = 0;
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
    stack: Vec<FrameIndex>,
    profile: Profile<'a>,
    link: u32,
    max_depth: usize,
    max_samples: usize,
}

impl<'a> StackSink<'a> {
    /// For a format that does not say what its values are.
    pub(crate) fn new(format: &'static str, options: &DecodeOptions) -> Self {
        Self::of_type(format, options, TextType::of_counts(options))
    }

    pub(crate) fn of_type(format: &'static str, options: &DecodeOptions, text_type: TextType) -> Self {
        let (labels, link) = options.series();
        let (time, duration) = options.time_range(0, 0);
        let mut builder = SetBuilder::default();
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
            stack: Vec::new(),
            profile,
            link,
            max_depth: options.limits.max_stack_depth,
            max_samples: options.max_samples(),
        }
    }

    pub(crate) fn frame(&mut self, name: Cow<'a, str>) -> FrameIndex {
        let Self { frames, builder, .. } = self;
        *frames.entry(name).or_insert_with_key(|name| builder.set.paths.frame(parse_frame(name)))
    }

    /// The path of a stack of names, the root first.
    pub(crate) fn stack(&mut self, root_to_leaf: impl Iterator<Item = &'a str>) -> PathIndex {
        self.collect(root_to_leaf.map(Cow::Borrowed))
    }

    fn collect(&mut self, root_to_leaf: impl Iterator<Item = Cow<'a, str>>) -> PathIndex {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        for name in root_to_leaf.filter(|name| !name.is_empty()) {
            stack.push(self.frame(name));
        }
        let cut = stack.len().saturating_sub(self.max_depth);
        self.builder.set.cut_frames += cut as u64;
        let path = self.builder.set.paths.path(&stack[cut..]);
        self.stack = stack;
        path
    }

    /// The child of `parent` that runs `frame`, at this depth. Below the deepest one there are no more children.
    pub(crate) fn child(&mut self, parent: PathIndex, frame: FrameIndex, depth: usize) -> PathIndex {
        if depth > self.max_depth {
            self.builder.set.cut_frames += 1;
            return parent;
        }
        self.builder.set.paths.child(parent, frame)
    }

    /// Adds a collapsed stack that lives no longer than the call.
    pub(crate) fn add_owned_stack(&mut self, stack: &str, value: u64, offset: usize) -> Result<()> {
        let path = self.collect(stack.split(';').map(|name| Cow::Owned(name.to_owned())));
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
        self.push(
            Sample {
                path,
                value,
                time: self.profile.time,
                timed: false,
                link: self.link,
                thread: 0,
                labels: 0,
                attributes: 0,
            },
            offset,
        )
    }

    fn push(&mut self, sample: Sample, offset: usize) -> Result<()> {
        if self.profile.samples.len() == self.max_samples {
            return Err(FileError::too_large(self.format, offset, "samples", self.max_samples as u64));
        }
        self.profile.samples.push(sample);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> ProfileSet<'a> {
        self.builder.set.profiles.push(self.profile);
        self.builder.set
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
