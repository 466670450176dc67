//! The text of `perf script`: a line for each sample, its frames below it, the leaf first. Of what was recorded without call
//! stacks, the line itself ends in the one frame that is known.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::{ProfileContext, Thread};
use hotspan_model::{Frame, FrameKind, Profile, ProfileSet, ProfileType, Sample};

use crate::collapsed::lines;
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::leaf_side::LeafSide;
use crate::set_builder::SetBuilder;

const FORMAT: &str = "perf script";

/// The line that a sample starts with.
#[derive(Debug)]
struct Head<'a> {
    comm: &'a str,
    tid: Option<i64>,
    /// Nanoseconds on perf's own clock.
    time: Option<i64>,
    period: Option<i64>,
    event: &'a str,
    /// What follows the event: where the sample was taken, if no stack is below; nothing, or the text of a tracepoint.
    rest: &'a str,
}

/// Reads the output of `perf script`: one profile for each event.
pub fn decode<'a>(text: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut reader = Reader {
        builder: SetBuilder::new(FORMAT, options),
        profiles: Vec::new(),
        times: None,
        frames: HashMap::new(),
        stack: LeafSide::new(options.limits.max_stack_depth),
    };
    let (labels, link) = options.series();
    let link = reader.builder.link(link);
    let mut head: Option<(Head<'a>, usize)> = None;
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
        if offset == text.len()
            && let Some((head, _)) = &head
            && !options.tolerant
        {
            if with_stacks && (!reader.stack.is_empty() || head.own_frame().is_none()) {
                return Err(FileError::truncated(FORMAT, offset, "the rest of a stack and an empty line"));
            }
            if !text.ends_with(b"\n") {
                return Err(FileError::truncated(FORMAT, offset, "the rest of a line"));
            }
        }
        // perf pads the names of commands with spaces on the left, so that not all that is indented is a frame.
        let indented = line.starts_with(char::is_whitespace);
        let is_frame = indented && !blank && head.is_some() && !(reader.stack.is_empty() && is_head(line));
        if !is_frame && let Some((head, at)) = head.take() {
            reader.finish_sample(&head, at, link, options)?;
        }
        if blank || line.starts_with('#') {
            continue;
        }
        if is_frame {
            with_stacks = true;
            reader.add_frame(line, offset)?;
        } else {
            let wrong = || {
                let expected = "a line such as `comm 12/34 [000] 1.000001: 10 cpu-clock:`";
                FileError::malformed(FORMAT, offset, expected, format!("{:?}", line.trim()))
            };
            head = Some((parse_head(line).ok_or_else(wrong)?, offset));
        }
    }
    reader.finish(&labels, options)
}

struct Reader<'a> {
    builder: SetBuilder<'a>,
    profiles: Vec<(&'a str, ProfileType, Vec<Sample>)>,
    /// The earliest and the latest time on perf's clock.
    times: Option<(i64, i64)>,
    frames: HashMap<&'a str, FrameIndex>,
    stack: LeafSide,
}

impl<'a> Reader<'a> {
    fn add_frame(&mut self, line: &'a str, offset: usize) -> Result<()> {
        let line = line.trim();
        let frame = match self.frames.get(line) {
            _ if self.stack.is_full() => {
                self.stack.skip(1);
                return Ok(());
            }
            Some(known) => *known,
            None => {
                self.builder.take_symbol(0, offset)?;
                let frame = self.builder.set.paths.frame(parse_frame(line));
                self.frames.insert(line, frame);
                frame
            }
        };
        self.stack.push(frame);
        Ok(())
    }

    fn finish_sample(&mut self, head: &Head<'a>, offset: usize, link: u32, options: &DecodeOptions) -> Result<()> {
        if self.stack.is_empty()
            && let Some(frame) = head.own_frame()
        {
            self.add_frame(frame, offset)?;
        }
        let path = self.stack.path_in(&mut self.builder.set);
        self.stack.clear();
        let thread = self.builder.thread(Thread { id: head.tid, name: Cow::Borrowed(head.comm) });
        let at = match self.profiles.iter().position(|(event, ..)| *event == head.event) {
            Some(at) => at,
            // A recording has a handful of events; thousands are not one.
            None if self.profiles.len() < 1000 => {
                self.profiles.push((head.event, event_type(head, options), Vec::new()));
                self.profiles.len() - 1
            }
            None => return Err(FileError::too_large(FORMAT, offset, "events", 1000)),
        };
        if let Some(time) = head.time {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        // On perf's clock, until the last sample is known.
        let (time, timed) = (head.time.unwrap_or(0), head.time.is_some());
        let value = event_value(head, &self.profiles[at].1, options);
        self.builder.take_sample(offset)?;
        self.profiles[at].2.push(Sample { path, value, time, timed, link, thread, labels: 0, attributes: 0 });
        Ok(())
    }

    fn finish(mut self, labels: &hotspan_model::Labels, options: &DecodeOptions) -> Result<ProfileSet<'a>> {
        let (first, last) = self.times.unwrap_or((0, 0));
        let placed = options.placed(0, last.saturating_sub(first));
        for (_, profile_type, mut samples) in self.profiles {
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

impl<'a> Head<'a> {
    /// The frame at the end of the line: an address comes first, which no text of a tracepoint starts with.
    fn own_frame(&self) -> Option<&'a str> {
        let address = self.rest.split_whitespace().next()?;
        u64::from_str_radix(address, 16).is_ok().then_some(self.rest)
    }
}

/// Clock events count nanoseconds; others count whatever the event is.
fn event_type(head: &Head<'_>, options: &DecodeOptions) -> ProfileType {
    if let Some(given) = &options.text_type {
        return given.profile_type.clone();
    }
    let bare = head.event.split_once(':').map_or(head.event, |(name, _)| name);
    match bare {
        "cpu-clock" | "task-clock" if head.period.is_some() || options.sample_rate.is_some() => ProfileType::cpu(),
        "cpu-clock" | "task-clock" => {
            ProfileType::from_parts(["process_cpu", "samples", "count", "cpu", "nanoseconds"])
        }
        "cycles" | "cpu-cycles" => ProfileType::from_parts(["process_cpu", "cycles", "count", "cycles", "count"]),
        // Tracepoints are `group:name` and stay whole; a colon can't stand inside a type.
        _ => {
            let event = head.event.replace(':', "_");
            ProfileType::from_parts(["perf", &event, "count", &event, "count"])
        }
    }
}

fn event_value(head: &Head<'_>, profile_type: &ProfileType, options: &DecodeOptions) -> i64 {
    match (head.period, options.sample_rate) {
        (Some(period), _) => period,
        (None, Some(rate)) if profile_type.sample_unit == "nanoseconds" => 1_000_000_000 / i64::from(rate.max(1)),
        _ => 1,
    }
}

/// Whether a line could start a sample: it names a time and an event.
pub(crate) fn is_head(line: &str) -> bool {
    parse_head(line).is_some_and(|head| head.time.is_some())
}

/// Reads `comm pid/tid [cpu] seconds.micros: period event:`, of which most parts may be absent.
fn parse_head(line: &str) -> Option<Head<'_>> {
    // The time is the first word that is a number and a colon; what precedes it is the command and its ids.
    let mut time = None;
    let mut split = None;
    let mut at = 0;
    for word in line.split_inclusive(' ') {
        let bare = word.trim();
        if let Some(number) = bare.strip_suffix(':')
            && number.contains('.')
            && let Some(nanoseconds) = parse_seconds(number)
        {
            time = Some(nanoseconds);
            split = Some((at, at + word.len()));
            break;
        }
        at += word.len();
    }
    let (before, after) = match split {
        Some((from, to)) => (&line[..from], &line[to..]),
        None => (line, ""),
    };
    let mut before = before.trim();
    if before.ends_with(']')
        && let Some(cpu) = before.rfind('[')
    {
        before = before[..cpu].trim_end();
    }
    let (comm, ids) = before.rsplit_once(char::is_whitespace)?;
    let tid = ids.rsplit_once('/').map_or(ids, |(_, tid)| tid).parse().ok();
    tid?;
    let (mut word, mut rest) = first_word(after);
    let mut period = None;
    if word.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
        // What is negative or too large is no period, and what follows would be no event.
        period = Some(word.parse().ok().filter(|period| *period >= 0)?);
        (word, rest) = first_word(rest);
    }
    let event = if word.is_empty() { "samples" } else { word.strip_suffix(':').unwrap_or(word) };
    Some(Head { comm: comm.trim(), tid, time, period, event, rest })
}

/// The first word of a text, and what follows it.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

fn parse_seconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = fraction.len();
    if digits == 0 || digits > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds = fraction.parse::<i64>().ok()? * 10i64.pow(9 - digits as u32);
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Reads `address symbol+offset (binary)`.
fn parse_frame(line: &str) -> Frame<'_> {
    let (address, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let Ok(address) = u64::from_str_radix(address, 16) else { return Frame::named(line) };
    let rest = rest.trim();
    let (symbol, binary) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((symbol, binary)) => (symbol.trim(), binary),
        None => (rest, ""),
    };
    let binary = if binary == "[unknown]" { "" } else { binary };
    let kernel = binary.starts_with("[kernel") || binary.starts_with("[guest.kernel") || binary.ends_with(".ko");
    let kind = if kernel { FrameKind::Kernel } else { FrameKind::Native };
    let mut frame = Frame { mapping: Cow::Borrowed(binary), kind, ..Frame::default() };
    if symbol == "[unknown]" || symbol.is_empty() {
        frame.address = address;
    } else {
        let name = match symbol.rsplit_once("+0x") {
            Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
            _ => symbol,
        };
        frame.function = Cow::Borrowed(name);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the shapes that perf gives its first line, by version and by options.
    /// Guarantee: command, thread, time, period and event are found in each.
    #[test]
    fn heads() {
        let head = parse_head("my app 12/34 [001]  5.000001:   250000 cpu-clock:u: ").unwrap();
        assert_eq!((head.comm, head.tid, head.time), ("my app", Some(34), Some(5_000_001_000)));
        assert_eq!((head.period, head.event), (Some(250_000), "cpu-clock:u"));
        let head = parse_head("swapper     0 [000] 1.5: sched:sched_switch: prev_comm=x").unwrap();
        assert_eq!((head.comm, head.tid, head.period, head.event), ("swapper", Some(0), None, "sched:sched_switch"));
        assert_eq!(head.own_frame(), None, "what a tracepoint says is no frame");
        let head =
            parse_head("  python3  4632 26515.359891:  250000 cpu-clock:  55d0 f(int, char)+0x1 (/a b)").unwrap();
        assert_eq!(
            (head.comm, head.event, head.own_frame()),
            ("python3", "cpu-clock", Some("55d0 f(int, char)+0x1 (/a b)"))
        );
        assert!(parse_head("nonsense").is_none());
        assert!(parse_head("a b c").is_none());
    }

    /// Scenario: frames with and without symbols. Guarantee: an address only where there is no name.
    #[test]
    fn frames() {
        let frame = parse_frame("ffffffff81 do_syscall_64+0x5b ([kernel.kallsyms])");
        assert_eq!((frame.function.as_ref(), frame.kind, frame.address), ("do_syscall_64", FrameKind::Kernel, 0));
        let frame = parse_frame("7f94c7b9ac90 [unknown] (/usr/lib/libc.so.6)");
        assert_eq!((frame.function.as_ref(), frame.address), ("", 0x7f94_c7b9_ac90));
        let frame = parse_frame("12 std::vector<int, std::allocator<int> >::at(int) const+0x1f (/a b)");
        assert_eq!(frame.function, "std::vector<int, std::allocator<int> >::at(int) const");
        assert_eq!(frame.mapping, "/a b");
    }
}
