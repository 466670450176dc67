//! speedscope in: sampled and evented profiles.

use std::borrow::Cow;

use hashbrown::HashSet;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Labels, Profile, ProfileSet, ProfileType, Sample};

use super::FORMAT;
use super::shared::Shared;
use super::stacks::{StackReader, Stretch, TOO_LARGE};
use crate::decode_options::{DecodeOptions, TextType};
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::set_builder::SetBuilder;

/// One profile of a file, before its values are scaled.
#[derive(Debug, Default)]
struct Reading<'a> {
    /// What it says about itself, and where.
    kind: (Cow<'a, str>, usize),
    unit: (Cow<'a, str>, usize),
    name: Cow<'a, str>,
    start_value: f64,
    samples: Vec<Stretch>,
    weights: (Vec<f64>, usize),
    events: Vec<Stretch>,
}

/// What a unit of the file is.
struct Unit {
    /// How many of ours it is.
    factor: f64,
    /// The type of its values.
    profile_type: ProfileType,
    /// Whether the file counts time in it, so that each stack has its place there.
    is_time: bool,
}

fn unit_of(unit: &str, options: &DecodeOptions) -> Option<Unit> {
    let of = |factor, is_time, own| Some(Unit { factor, is_time, profile_type: options.type_in_unit_of(own) });
    let time = |factor| of(factor, true, ProfileType::cpu());
    match unit {
        "nanoseconds" => time(1.0),
        "microseconds" => time(1e3),
        "milliseconds" => time(1e6),
        "seconds" => time(1e9),
        "bytes" => of(1.0, false, ProfileType::from_parts(["memory", "space", "bytes", "space", "bytes"])),
        // Numbers alone, as in collapsed stacks.
        "none" => {
            let TextType { profile_type, scale } = TextType::of_counts(options);
            Some(Unit { factor: scale as f64, is_time: false, profile_type })
        }
        _ => None,
    }
}

/// Reads a speedscope file: a profile for each unit, the file's own profiles told apart by label `profile_name`.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut builder = SetBuilder::new(FORMAT, options);
    let shared = Shared::read(bytes, &mut builder)?;
    let (labels, link) = options.series();
    let link = builder.link(link);
    let mut file = File { builder, options, shared, labels, link, times: None };
    // The first pass saw that the text is sound.
    let mut tokens = Tokens::new(FORMAT, bytes);
    tokens.expect(&Token::ObjectStart, "an object")?;
    while let Token::Key(key) = tokens.require()? {
        match (key.as_ref(), tokens.require()?) {
            ("profiles", Token::ArrayStart) => {
                let mut index = 0;
                while tokens.require()? == Token::ObjectStart {
                    let reading = file.read(&mut tokens, index)?;
                    file.add(reading, index)?;
                    index += 1;
                }
                if tokens.last_text() != b"]" {
                    return Err(FileError::malformed(FORMAT, tokens.last_offset(), "a profile", "another value"));
                }
            }
            (_, other) => tokens.skip(&other)?,
        }
    }
    file.finish()
}

/// A file that is being read.
struct File<'o, 'a> {
    builder: SetBuilder<'a>,
    options: &'o DecodeOptions,
    shared: Shared,
    labels: Labels,
    link: u32,
    /// When the first and the last stack of those that tell times begin and end, in nanoseconds on the file's own clock.
    times: Option<(i64, i64)>,
}

impl<'a> File<'_, 'a> {
    /// Reads a profile, after its opening bracket.
    fn read(&mut self, tokens: &mut Tokens<'a>, index: usize) -> Result<Reading<'a>> {
        let mut reading = Reading::default();
        let mut stacks = StackReader {
            frames: &self.shared.frames,
            builder: &mut self.builder,
            max_depth: self.options.limits.max_stack_depth,
            index,
            tolerant: self.options.tolerant,
        };
        while let Token::Key(key) = tokens.require()? {
            let value = tokens.require()?;
            let offset = tokens.last_offset();
            match (key.as_ref(), value) {
                ("type", Token::Text(kind)) => reading.kind = (kind, offset),
                ("unit", Token::Text(unit)) => reading.unit = (unit, offset),
                ("name", Token::Text(name)) => reading.name = name,
                ("startValue", Token::Number(start)) => reading.start_value = start,
                ("samples", Token::ArrayStart) => reading.samples = stacks.samples(tokens)?,
                ("weights", Token::ArrayStart) => {
                    let weights = stacks.weights(tokens)?;
                    reading.weights = (weights, tokens.last_offset());
                }
                ("events", Token::ArrayStart) => reading.events = stacks.events(tokens)?,
                (_, other) => tokens.skip(&other)?,
            }
        }
        let end = tokens.last_offset();
        for (_, offset) in [&mut reading.kind, &mut reading.unit] {
            *offset = if *offset == 0 { end } else { *offset };
        }
        Ok(reading)
    }

    /// Adds a profile, to the one of its type if there is one: they are told apart by their labels.
    fn add(&mut self, mut reading: Reading<'a>, index: usize) -> Result<()> {
        let (unit, offset) = &reading.unit;
        let Some(Unit { factor, profile_type, is_time }) = unit_of(unit, self.options) else {
            let expected = format!("a unit of profile {index} among none, bytes and the four of time");
            return Err(FileError::malformed(FORMAT, *offset, expected, format!("{unit:?}")));
        };
        let labels = match self.shared.profiles > 1 && !reading.name.is_empty() {
            true => self.builder.labels(Labels::from_pairs([("profile_name", reading.name.as_ref())])),
            false => 0,
        };
        let stretches = self.stretches(&mut reading, index)?;
        if let Some(stretch) = stretches.iter().find(|stretch| stretch.weight * factor >= TOO_LARGE) {
            let expected = format!("values of profile {index} that fit into 63 bits as {}", profile_type.sample_unit);
            return Err(FileError::malformed(
                FORMAT,
                reading.unit.1,
                expected,
                format!("{} {}", stretch.weight, reading.unit.0),
            ));
        }
        let timed = is_time && (reading.kind.0 == "evented" || !is_sum(&stretches));
        if timed {
            for stretch in &stretches {
                let start = (stretch.at * factor) as i64;
                let end = ((stretch.at + stretch.weight) * factor) as i64;
                let (first, last) = self.times.unwrap_or((start, end));
                self.times = Some((first.min(start), last.max(end)));
            }
        }
        let samples = stretches.iter().filter_map(|stretch| {
            let value = (stretch.weight * factor).round() as i64;
            (value > 0).then_some(Sample {
                path: stretch.path,
                value,
                // On the file's own clock, until all of it is known.
                time: (stretch.at * factor) as i64,
                timed,
                link: self.link,
                thread: 0,
                labels,
                attributes: 0,
            })
        });
        match self.builder.set.profiles.iter_mut().find(|profile| profile.profile_type == profile_type) {
            Some(known) => known.samples.extend(samples),
            None => {
                let profile = Profile {
                    id: None,
                    profile_type,
                    labels: self.labels.clone(),
                    time: 0,
                    duration: 0,
                    period: 0,
                    context: ProfileContext { source: Cow::Borrowed(FORMAT), ..ProfileContext::default() },
                    samples: samples.collect(),
                };
                self.builder.set.profiles.push(profile);
            }
        }
        Ok(())
    }

    /// Gives everything its place in time.
    fn finish(mut self) -> Result<ProfileSet<'a>> {
        let (first, last) = self.times.unwrap_or((0, 0));
        let placed = self.options.placed(0, last.saturating_sub(first));
        for profile in &mut self.builder.set.profiles {
            (profile.time, profile.duration) = (placed.start, placed.length);
            for sample in &mut profile.samples {
                let since_start = sample.timed.then(|| sample.time.saturating_sub(first));
                (sample.time, sample.timed) = placed.sample_time(since_start);
            }
        }
        self.builder.finish()
    }

    /// The stacks of a profile of either kind, with their times.
    fn stretches(&self, reading: &mut Reading<'a>, index: usize) -> Result<Vec<Stretch>> {
        let (kind, offset) = &reading.kind;
        match kind.as_ref() {
            "sampled" => {
                let (weights, weights_end) = &reading.weights;
                let count = reading.samples.len();
                if weights.len() != count && !self.options.tolerant {
                    let offset = if *weights_end == 0 { *offset } else { *weights_end };
                    let expected = format!("{count} weights of profile {index}, one for each sample");
                    return Err(FileError::malformed(FORMAT, offset, expected, weights.len()));
                }
                let mut at = reading.start_value;
                for (place, sample) in reading.samples.iter_mut().enumerate() {
                    sample.weight = weights.get(place).copied().unwrap_or(1.0);
                    sample.at = at;
                    at += sample.weight;
                }
                Ok(std::mem::take(&mut reading.samples))
            }
            "evented" => Ok(std::mem::take(&mut reading.events)),
            other => {
                let expected = format!("type sampled or evented of profile {index}");
                Err(FileError::malformed(FORMAT, *offset, expected, format!("{other:?}")))
            }
        }
    }
}

/// Whether a list of samples is a sum of a recording and not what was seen one after another: then no stack comes twice. Flame
/// graphs that are exported, ours too, have this form, and as a recording would seem to have taken as long as all processes together.
fn is_sum(samples: &[Stretch]) -> bool {
    let mut seen = HashSet::with_capacity(samples.len().min(1 << 10));
    samples.iter().all(|sample| seen.insert(sample.path))
}
