//! speedscope in: sampled and evented profiles.

use std::borrow::Cow;

use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Frame, Labels, Profile, ProfileSet, ProfileType, Sample};
use serde::Deserialize;

use super::SCHEMA;
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result, json_error};
use crate::set_builder::SetBuilder;

const FORMAT: &str = "speedscope";

#[derive(Deserialize)]
struct FileShape<'a> {
    #[serde(rename = "$schema", borrow)]
    schema: Cow<'a, str>,
    #[serde(borrow)]
    shared: SharedShape<'a>,
    #[serde(borrow)]
    profiles: Vec<ProfileShape<'a>>,
}

#[derive(Deserialize)]
struct SharedShape<'a> {
    #[serde(borrow)]
    frames: Vec<FrameShape<'a>>,
}

#[derive(Deserialize)]
struct FrameShape<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    file: Option<Cow<'a, str>>,
    #[serde(default)]
    line: Option<f64>,
    #[serde(default)]
    col: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProfileShape<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    unit: Cow<'a, str>,
    #[serde(default)]
    start_value: f64,
    #[serde(default)]
    end_value: f64,
    #[serde(default)]
    samples: Vec<Vec<u32>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(borrow, default)]
    events: Vec<EventShape<'a>>,
}

#[derive(Deserialize)]
struct EventShape<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    at: f64,
    frame: u32,
}

/// What a unit of the file is: our unit, how many of ours it is, and the type of its values.
fn unit_of(unit: &str) -> Option<(f64, ProfileType)> {
    let time = |factor| Some((factor, ProfileType::cpu()));
    match unit {
        "nanoseconds" => time(1.0),
        "microseconds" => time(1e3),
        "milliseconds" => time(1e6),
        "seconds" => time(1e9),
        "bytes" => Some((1.0, ProfileType::from_parts(["memory", "space", "bytes", "space", "bytes"]))),
        "none" => Some((1.0, ProfileType::from_parts(["process_cpu", "samples", "count", "cpu", "nanoseconds"]))),
        _ => None,
    }
}

/// Reads a speedscope file: a profile for each unit, the file's own profiles told apart by label `profile_name`.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let file: FileShape<'a> = serde_json::from_slice(bytes).map_err(|error| json_error(FORMAT, bytes, &error))?;
    if file.schema != SCHEMA {
        return Err(FileError::malformed(FORMAT, 0, format!("$schema {SCHEMA:?}"), format!("{:?}", file.schema)));
    }
    let mut builder = SetBuilder::default();
    let mut frames: Vec<FrameIndex> = Vec::with_capacity(file.shared.frames.len());
    for frame in file.shared.frames {
        frames.push(builder.set.paths.frame(Frame {
            function: frame.name,
            file: frame.file.unwrap_or_default(),
            line: frame.line.unwrap_or(0.0).clamp(0.0, 4e9) as u32,
            column: frame.col.unwrap_or(0.0).clamp(0.0, 4e9) as u32,
            ..Frame::default()
        }));
    }
    let (labels, link) = options.series();
    let link = builder.link(link);
    let several = file.profiles.len() > 1;
    for (index, shape) in file.profiles.iter().enumerate() {
        let Some((factor, natural_type)) = unit_of(&shape.unit) else {
            let expected = format!("a unit of profile {index} among none, bytes and the four of time");
            return Err(FileError::malformed(FORMAT, 0, expected, format!("{:?}", shape.unit)));
        };
        let is_time = natural_type.sample_unit == "nanoseconds";
        let given = options.text_type.as_ref().map(|given| given.profile_type.clone());
        let profile_type = given.unwrap_or(natural_type);
        let (time, duration) = options.time_range(0, if is_time { (shape.end_value * factor) as i64 } else { 0 });
        let sample_labels = match several && !shape.name.is_empty() {
            true => builder.labels(Labels::from_pairs([("profile_name", shape.name.as_ref())])),
            false => 0,
        };
        let plain =
            Sample { path: 0, value: 0, time, timed: false, link, thread: 0, labels: sample_labels, attributes: 0 };
        let mut walk = Walk { frames: &frames, builder: &mut builder, options, plain, factor, is_time, index };
        let samples = match shape.kind.as_ref() {
            "sampled" => walk.sampled(shape)?,
            "evented" => walk.evented(shape)?,
            other => {
                let expected = format!("type sampled or evented of profile {index}");
                return Err(FileError::malformed(FORMAT, 0, expected, format!("{other:?}")));
            }
        };
        // Profiles of one type are one profile, told apart by their labels.
        match builder.set.profiles.iter_mut().find(|profile| profile.profile_type == profile_type) {
            Some(known) => known.samples.extend(samples),
            None => builder.set.profiles.push(Profile {
                id: None,
                profile_type,
                labels: labels.clone(),
                time,
                duration,
                period: 0,
                context: ProfileContext { source: Cow::Borrowed(FORMAT), ..ProfileContext::default() },
                samples,
            }),
        }
    }
    Ok(builder.set)
}

struct Walk<'w, 'a> {
    frames: &'w [FrameIndex],
    builder: &'w mut SetBuilder<'a>,
    options: &'w DecodeOptions,
    plain: Sample,
    factor: f64,
    is_time: bool,
    index: usize,
}

impl Walk<'_, '_> {
    fn sampled(&mut self, shape: &ProfileShape<'_>) -> Result<Vec<Sample>> {
        let mut samples = Vec::with_capacity(shape.samples.len());
        let mut stack = Vec::new();
        let mut at = shape.start_value;
        for (place, frames) in shape.samples.iter().enumerate() {
            let weight = shape.weights.get(place).copied().unwrap_or(1.0);
            stack.clear();
            for frame in frames {
                stack.push(self.frame(*frame)?);
            }
            self.push(&mut samples, &stack, at, weight);
            at += weight;
        }
        Ok(samples)
    }

    fn evented(&mut self, shape: &ProfileShape<'_>) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        let mut stack: Vec<FrameIndex> = Vec::new();
        let mut since = shape.start_value;
        for (place, event) in shape.events.iter().enumerate() {
            if !stack.is_empty() {
                self.push(&mut samples, &stack, since, event.at - since);
            }
            since = event.at;
            let frame = self.frame(event.frame)?;
            match event.kind.as_ref() {
                "O" => stack.push(frame),
                "C" if stack.last() == Some(&frame) => {
                    stack.pop();
                }
                _ => {
                    let expected = format!("event {place} of profile {} to open a frame or close the last", self.index);
                    return Err(FileError::malformed(FORMAT, 0, expected, format!("{:?}", event.kind)));
                }
            }
        }
        Ok(samples)
    }

    fn frame(&self, index: u32) -> Result<FrameIndex> {
        self.frames.get(index as usize).copied().ok_or_else(|| {
            let expected = format!("a frame index below {} in profile {}", self.frames.len(), self.index);
            FileError::malformed(FORMAT, 0, expected, index)
        })
    }

    fn push(&mut self, samples: &mut Vec<Sample>, stack: &[FrameIndex], at: f64, weight: f64) {
        let value = (weight * self.factor).round() as i64;
        if value <= 0 {
            return;
        }
        let cut = stack.len().saturating_sub(self.options.limits.max_stack_depth);
        self.builder.set.cut_frames += cut as u64;
        let path = self.builder.set.paths.path(&stack[cut..]);
        let timed = self.is_time && self.plain.time > 0;
        let since = if timed { (at * self.factor) as i64 } else { 0 };
        samples.push(Sample { path, value, time: self.plain.time.saturating_add(since), timed, ..self.plain });
    }
}
