//! The text of `perf script`: a line for each sample, its frames below it, the leaf first. Of what was recorded without call
//! stacks, the line itself ends in the one frame that is known.

mod event;
mod frame_line;
mod head;

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::PathIndex;
use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::{ProfileContext, Thread};
use hotspan_model::{Profile, ProfileSet, Sample};

use self::event::Event;
use self::frame_line::{FrameLine, is_source};
pub(crate) use self::head::is_head;
use self::head::{Head, is_record};
use crate::collapsed::lines;
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::leaf_side::LeafSide;
use crate::set_builder::SetBuilder;

const FORMAT: &str = "perf script";

/// What the indented lines belong to that come next.
enum Open<'a> {
    Nothing,
    /// A sample, and where its first line stands.
    Sample(Head<'a>, usize),
    /// A record of something else, of which some have several lines.
    Record,
}

/// Reads the output of `perf script`: one profile for each event.
pub fn decode<'a>(text: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut reader = Reader {
        builder: SetBuilder::new(FORMAT, options),
        events: Vec::new(),
        times: None,
        frames: HashMap::new(),
        stack: StackLines::new(options.limits.max_stack_depth),
    };
    let (labels, link) = options.series();
    let link = reader.builder.link(link);
    let mut open = Open::Nothing;
    let mut with_stacks = false;
    for (line, offset) in lines(text).chain(std::iter::once((&b""[..], text.len()))) {
        let line = std::str::from_utf8(line).map_err(|wrong| {
            FileError::malformed(FORMAT, offset + wrong.valid_up_to(), "text in UTF-8", "other bytes")
        })?;
        let blank = line.trim().is_empty();
        // The start of a line that was cut off is no empty line.
        if blank && !line.is_empty() && offset + line.len() == text.len() {
            continue;
        }
        // An empty line ends a stack. Without it, nobody can tell whether frames are missing.
        if offset == text.len() && !matches!(open, Open::Nothing) && !options.tolerant {
            let in_sample = matches!(open, Open::Sample(..));
            if with_stacks && in_sample && (reader.stack.is_below || reader.stack.lines.is_empty()) {
                return Err(FileError::truncated(FORMAT, offset, "the rest of a stack and an empty line"));
            }
            if !text.ends_with(b"\n") {
                return Err(FileError::truncated(FORMAT, offset, "the rest of a line"));
            }
        }
        // perf pads the names of commands with spaces on the left, so that not all that is indented belongs to what is above.
        let starts_another = || is_head(line) || is_record(line);
        let is_below = line.starts_with(char::is_whitespace)
            && !blank
            && match open {
                Open::Nothing => false,
                Open::Sample(..) => reader.stack.is_below || !starts_another(),
                Open::Record => !starts_another(),
            };
        if is_below {
            if let Open::Sample(..) = open {
                with_stacks |= reader.stack.take_line(line);
            }
            continue;
        }
        if let Open::Sample(head, at) = std::mem::replace(&mut open, Open::Nothing) {
            reader.finish_sample(&head, at, link, options)?;
        }
        if blank || line.starts_with('#') {
            continue;
        }
        if is_record(line) {
            open = Open::Record;
            continue;
        }
        let wrong = || {
            let expected = "a line such as `comm 12/34 [000] 1.000001: 10 cpu-clock:`";
            FileError::malformed(FORMAT, offset, expected, format!("{:?}", line.trim()))
        };
        let head = Head::parse(line).ok_or_else(wrong)?;
        reader.stack.start(head.own_frame());
        open = Open::Sample(head, offset);
    }
    reader.finish(&labels, options)
}

/// The frames of a sample as they are written, the leaf first, as far as a stack may be deep.
struct StackLines<'a> {
    lines: Vec<FrameLine<'a>>,
    cut: u64,
    max_depth: usize,
    /// Whether the frames stand below the line of the sample: then an empty line follows them.
    is_below: bool,
}

impl<'a> StackLines<'a> {
    fn new(max_depth: usize) -> Self {
        Self { lines: Vec::new(), cut: 0, max_depth: max_depth.max(1), is_below: false }
    }

    /// Starts another stack, of a sample whose own line may name a frame.
    fn start(&mut self, own_frame: Option<&'a str>) {
        self.lines.clear();
        self.lines.extend(own_frame.map(FrameLine::new));
        (self.cut, self.is_below) = (0, false);
    }

    /// Takes a line below the one of the sample, and tells whether it is a frame.
    fn take_line(&mut self, line: &'a str) -> bool {
        if is_source(line) {
            if self.cut == 0
                && let Some(frame) = self.lines.last_mut()
            {
                *frame = frame.at(line);
            }
            return false;
        }
        if !self.is_below {
            self.lines.clear();
            self.is_below = true;
        }
        if self.lines.len() < self.max_depth {
            self.lines.push(FrameLine::new(line));
        } else {
            self.cut += 1;
        }
        true
    }
}

struct Reader<'a> {
    builder: SetBuilder<'a>,
    events: Vec<Event<'a>>,
    /// The earliest and the latest time on perf's clock.
    times: Option<(i64, i64)>,
    /// Frames by their lines; inlined ones with the frame that they are part of.
    frames: HashMap<(FrameLine<'a>, Option<FrameLine<'a>>), FrameIndex>,
    stack: StackLines<'a>,
}

impl<'a> Reader<'a> {
    /// The path of the stack that was read.
    fn path(&mut self, offset: usize) -> Result<PathIndex> {
        let mut frames = Vec::with_capacity(self.stack.lines.len());
        let mut last_whole: Option<FrameLine<'a>> = None;
        // From the root: what a function was inlined into comes first.
        for place in (0..self.stack.lines.len()).rev() {
            let line = self.stack.lines[place];
            let inlined = line.is_inlined();
            // perf calls some functions inlined that it names no other one around.
            let caller = last_whole.filter(|whole| inlined && line.is_at_address_of(whole));
            frames.push(self.frame(line, caller, offset)?);
            if !inlined {
                last_whole = Some(line);
            }
        }
        frames.reverse();
        let mut stack = LeafSide::new(self.stack.max_depth);
        stack.extend(&frames);
        stack.skip(self.stack.cut);
        Ok(stack.path_in(&mut self.builder.set))
    }

    fn frame(&mut self, line: FrameLine<'a>, caller: Option<FrameLine<'a>>, offset: usize) -> Result<FrameIndex> {
        if let Some(known) = self.frames.get(&(line, caller)) {
            return Ok(*known);
        }
        self.builder.take_symbol(0, offset)?;
        let frame = self.builder.set.paths.frame(line.frame(caller.as_ref()));
        self.frames.insert((line, caller), frame);
        Ok(frame)
    }

    fn finish_sample(&mut self, head: &Head<'a>, offset: usize, link: u32, options: &DecodeOptions) -> Result<()> {
        let path = self.path(offset)?;
        let thread = self.builder.thread(Thread { id: head.tid, name: Cow::Borrowed(head.comm) });
        let at = match self.events.iter().position(|event| event.name == head.event) {
            Some(at) => at,
            // A recording has a handful of events; thousands are not one.
            None if self.events.len() < 1000 => {
                self.events.push(Event::new(head, &self.events, options));
                self.events.len() - 1
            }
            None => return Err(FileError::too_large(FORMAT, offset, "events", 1000)),
        };
        if let Some(time) = head.time {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        // On perf's clock, until the last sample is known.
        let (time, timed) = (head.time.unwrap_or(0), head.time.is_some());
        let value = self.events[at].value_of(head);
        self.builder.take_sample(offset)?;
        self.events[at].samples.push(Sample { path, value, time, timed, link, thread, labels: 0, attributes: 0 });
        Ok(())
    }

    fn finish(mut self, labels: &hotspan_model::Labels, options: &DecodeOptions) -> Result<ProfileSet<'a>> {
        let (first, last) = self.times.unwrap_or((0, 0));
        let placed = options.placed(0, last.saturating_sub(first));
        for Event { profile_type, mut samples, .. } in self.events {
            for sample in &mut samples {
                let since_start = sample.timed.then(|| sample.time.saturating_sub(first));
                (sample.time, sample.timed) = placed.sample_time(since_start);
            }
            let context = ProfileContext { source: Cow::Borrowed("perf_script"), ..ProfileContext::default() };
            let labels = labels.clone();
            self.builder.set.profiles.push(Profile {
                id: None,
                profile_type,
                labels,
                time: placed.start,
                duration: placed.length,
                period: 0,
                context,
                samples,
            });
        }
        self.builder.finish()
    }
}
