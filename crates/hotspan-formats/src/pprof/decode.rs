//! The second pass: samples.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::attribute::write_json_object;
use hotspan_model::call_path::PathIndex;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Attribute, Profile, ProfileSet, Sample, Value};

use super::FORMAT;
use super::outline::{Index, Message, Outline, ValueType};
use super::sample_labels::LabelReader;
use super::symbols::{MAX_AHEAD, Symbols};
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::leaf_side::LeafSide;
use crate::naming;
use crate::protobuf::{Content, Fields, read_varint};
use crate::set_builder::SetBuilder;

/// Reads a plain (not compressed) pprof profile: one [`Profile`] for each of its sample types.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let outline = Outline::scan(bytes, options)?;
    let mut builder = SetBuilder::new(FORMAT, options);
    builder.set.cut_texts = outline.cut_texts;
    let (symbols, mappings) = Symbols::resolve(&outline, &mut builder.set.paths)?;
    let (labels, default_link) = options.series();

    let mut columns = Vec::with_capacity(outline.sample_types.len());
    for message in &outline.sample_types {
        columns.push(outline.value_type(*message)?);
    }
    let period_type = outline.period_type.map(|message| outline.value_type(message)).transpose()?.unwrap_or_default();
    let (time, duration) = options.time_range(outline.time_nanos, outline.duration_nanos);

    let mut stacks = Stacks {
        outline: &outline,
        symbols: &symbols,
        leaf_side: LeafSide::new(options.limits.max_stack_depth),
        max_path_bytes: options.limits.max_decoded_bytes,
        tolerant: options.tolerant,
        known: HashMap::with_capacity(outline.samples.len().min(MAX_AHEAD)),
    };
    // Each sample has a value in each column, so few bytes of either make many rows.
    builder
        .take(columns.len().saturating_mul(outline.samples.len()).saturating_mul(size_of::<Sample>()), bytes.len())?;
    let mut samples: Vec<Vec<Sample>> = columns.iter().map(|_| Vec::with_capacity(outline.samples.len())).collect();
    let mut reader = LabelReader::new(default_link, &options.limits, &mut builder);
    let mut scratch = Scratch::default();
    for message in &outline.samples {
        stacks.append(*message, time, &mut reader, &mut builder, &mut scratch, &mut samples)?;
    }

    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let name = naming::pprof_name(options, &names, period_type.name, || contention_name(&builder.set, samples.first()));
    let attributes = profile_attributes(&outline, options)?;
    builder.take(columns.len().saturating_mul(attributes.len() + mappings.len()), bytes.len())?;
    for (column, samples) in columns.iter().zip(samples) {
        builder.set.profiles.push(Profile {
            id: None,
            profile_type: column_type(&name, column, &period_type, &options.spy_name),
            labels: labels.clone(),
            time,
            duration,
            period: outline.period,
            context: ProfileContext {
                attributes: Cow::Owned(attributes.clone()),
                mappings: Cow::Owned(mappings.clone()),
                source: Cow::Borrowed(FORMAT),
                ..ProfileContext::default()
            },
            samples,
        });
    }
    builder.finish()
}

/// Buffers that live as long as the file.
#[derive(Debug, Default)]
struct Scratch {
    locations: Vec<u64>,
    values: Vec<u64>,
}

struct Stacks<'o, 'a> {
    outline: &'o Outline<'a>,
    symbols: &'o Symbols,
    leaf_side: LeafSide,
    max_path_bytes: usize,
    /// Whether samples with a negative value are passed over.
    tolerant: bool,
    /// Paths by the bytes of their location ids, and how many frames were cut: samples that differ in labels
    /// alone repeat the stack byte for byte.
    known: HashMap<&'a [u8], (PathIndex, u64)>,
}

impl<'a> Stacks<'_, 'a> {
    fn append(
        &mut self,
        (bytes, offset): Message<'a>,
        profile_time: i64,
        reader: &mut LabelReader<'a>,
        builder: &mut SetBuilder<'a>,
        scratch: &mut Scratch,
        columns: &mut [Vec<Sample>],
    ) -> Result<()> {
        scratch.locations.clear();
        scratch.values.clear();
        let mut packed: Option<&'a [u8]> = None;
        let (mut labels_from, mut labels_to) = (0, 0);
        let mut fields = Fields::new(FORMAT, bytes, offset);
        let mut field_at = 0;
        while let Some(field) = fields.next()? {
            match field.number {
                1 => match (field.content, packed) {
                    (Content::Bytes(ids), None) if scratch.locations.is_empty() => packed = Some(ids),
                    // Ids one by one, or in several pieces: both are allowed, and neither is met often.
                    (content, earlier) => {
                        let length = |ids: &[u8]| ids.len();
                        let more = if let Content::Bytes(ids) = content { length(ids) } else { 1 };
                        let ids = scratch.locations.len() + more + earlier.map_or(0, length);
                        let most = self.max_path_bytes / size_of::<u64>();
                        if ids > most {
                            return Err(FileError::too_large(
                                FORMAT,
                                field.offset,
                                "locations in a stack",
                                most as u64,
                            ));
                        }
                        if let Some(ids) = earlier {
                            append_packed(ids, offset, &mut scratch.locations)?;
                            packed = Some(&[]);
                        }
                        field.append_numbers(&mut scratch.locations)?;
                    }
                },
                2 => {
                    // No number takes more than ten bytes: what is longer has too many, and need not be read.
                    if let Content::Bytes(packed) = field.content
                        && packed.len() > 10 * columns.len()
                    {
                        return Err(wrong_count(columns.len(), "more", field.offset));
                    }
                    field.append_numbers(&mut scratch.values)?;
                    if scratch.values.len() > columns.len() {
                        return Err(wrong_count(columns.len(), scratch.values.len(), field.offset));
                    }
                }
                3 => {
                    if labels_to == 0 {
                        labels_from = field_at;
                    }
                    labels_to = fields.position();
                }
                _ => {}
            }
            field_at = fields.position();
        }
        if scratch.values.len() != columns.len() {
            return Err(wrong_count(columns.len(), scratch.values.len(), offset));
        }
        // An all-zero row says nothing; heap profiles are full of half-zero ones.
        let all_bits = scratch.values.iter().fold(0, |bits, value| bits | value);
        if all_bits == 0 {
            return Ok(());
        }
        if (all_bits as i64) < 0 {
            return if self.tolerant { Ok(()) } else { Err(negative(&scratch.values, offset)) };
        }
        let path = self.path(packed.unwrap_or_default(), offset, builder, scratch)?;
        let region = &bytes[labels_from..labels_to];
        let facts = reader.facts(region, offset + labels_from, self.outline, builder)?;
        builder.check_room(offset)?;
        let timed = facts.time != 0;
        let time = if timed { facts.time } else { profile_time };
        for (column, value) in columns.iter_mut().zip(&scratch.values) {
            if *value != 0 {
                column.push(Sample {
                    path,
                    value: *value as i64,
                    time,
                    timed,
                    link: facts.link,
                    thread: facts.thread,
                    labels: facts.labels,
                    attributes: facts.attributes,
                });
            }
        }
        Ok(())
    }
}

impl<'a> Stacks<'_, 'a> {
    /// The path of the locations in `packed`, or of those in `scratch` if it is empty.
    fn path(
        &mut self,
        packed: &'a [u8],
        offset: usize,
        builder: &mut SetBuilder<'a>,
        scratch: &mut Scratch,
    ) -> Result<PathIndex> {
        if !packed.is_empty()
            && let Some((path, cut)) = self.known.get(packed)
        {
            builder.set.cut_frames += cut;
            return Ok(*path);
        }
        self.leaf_side.clear();
        let mut at = 0;
        while at < packed.len() {
            let location = read_varint(FORMAT, packed, &mut at, offset)?;
            self.collect(location, offset)?;
        }
        for location in &scratch.locations {
            self.collect(*location, offset)?;
        }
        let cut = self.leaf_side.cut();
        let stack = self.leaf_side.root_first(&mut builder.set.paths);
        let path = builder.set.paths.add_path(stack);
        // Few bytes name a location of many inlined frames, and each path keeps its own copy of them.
        if builder.set.paths.path_bytes() > self.max_path_bytes {
            return Err(FileError::too_large(FORMAT, offset, "bytes of call paths", self.max_path_bytes as u64));
        }
        builder.set.cut_frames += cut;
        if !packed.is_empty() {
            self.known.insert(packed, (path, cut));
        }
        Ok(path)
    }

    /// Adds the frames of a location to the stack.
    #[inline]
    fn collect(&mut self, location: u64, offset: usize) -> Result<()> {
        let Some(frames) = self.symbols.frames_of(location) else {
            let expected = "the id of a location in the profile";
            return Err(FileError::malformed(FORMAT, offset, expected, location));
        };
        // Cutting while collecting: a hostile file may repeat a location of a million inlined lines.
        self.leaf_side.extend(frames);
        Ok(())
    }
}

fn wrong_count(columns: usize, found: impl std::fmt::Display, offset: usize) -> FileError {
    FileError::malformed(FORMAT, offset, format!("{columns} values, one for each sample type"), found)
}

/// `go tool pprof -base` writes such files.
#[cold]
fn negative(values: &[u64], offset: usize) -> FileError {
    let value = values.iter().map(|value| *value as i64).min().unwrap_or(0);
    let expected = "values of 0 or more, since a difference of two profiles can't be stored";
    FileError::malformed(FORMAT, offset, expected, value)
}

fn append_packed(packed: &[u8], offset: usize, numbers: &mut Vec<u64>) -> Result<()> {
    let mut at = 0;
    while at < packed.len() {
        numbers.push(read_varint(FORMAT, packed, &mut at, offset)?);
    }
    Ok(())
}

fn column_type(
    name: &str,
    column: &ValueType<'_>,
    period: &ValueType<'_>,
    spy_name: &str,
) -> hotspan_model::ProfileType {
    let period = (period.name, period.unit);
    if spy_name == "dotnetspy" && column.name.contains('-') {
        return naming::column_type(name, (&column.name.replace('-', "_"), column.unit), period);
    }
    naming::column_type(name, (column.name, column.unit), period)
}

/// Tells Go's mutex profiles from its block profiles, which have the same columns: the former are taken where
/// a lock is given back, the latter where something waited.
fn contention_name(set: &ProfileSet<'_>, samples: Option<&Vec<Sample>>) -> &'static str {
    let gives_back = samples.into_iter().flatten().any(|sample| {
        set.paths.walk_to_root(sample.path).take(2).any(|frame| frame.function.to_ascii_lowercase().contains("unlock"))
    });
    if gives_back { "mutex" } else { "block" }
}

/// What the profile says about itself, under OpenTelemetry's names for it.
fn profile_attributes(outline: &Outline<'_>, options: &DecodeOptions) -> Result<String> {
    let texts = [
        ("pprof.profile.drop_frames", outline.drop_frames),
        ("pprof.profile.keep_frames", outline.keep_frames),
        ("pprof.profile.doc_url", outline.doc_url),
        ("pprof.scope.default_sample_type", outline.default_sample_type),
    ];
    let mut attributes = Vec::new();
    for (key, index) in texts {
        let text = outline.string(index)?;
        if !text.is_empty() {
            attributes.push(Attribute::new(key, Value::str(text)));
        }
    }
    let mut comments = Vec::new();
    let mut comment_bytes = 0;
    let most = options.limits.max_item_bytes;
    for comment in &outline.comments {
        let text = outline.string(Index { index: *comment, offset: 0 })?;
        comment_bytes += text.len() + size_of::<Value<'_>>();
        if comment_bytes > most {
            return Err(FileError::too_large(FORMAT, 0, "bytes of comments", most as u64));
        }
        comments.push(Value::str(text));
    }
    if !comments.is_empty() {
        attributes.push(Attribute::new("pprof.profile.comment", Value::Array(comments)));
    }
    let mut json = String::new();
    if !attributes.is_empty() {
        write_json_object(&attributes, &mut json);
    }
    Ok(json)
}
