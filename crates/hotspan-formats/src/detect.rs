//! Which format a file is in, from its bytes.

use std::borrow::Cow;

use hotspan_model::profile::{ProfileContext, Thread};
use hotspan_model::{Profile, ProfileSet};

use crate::collapsed::lines;
use crate::decode_options::DecodeOptions;
use crate::expand::expanded;
use crate::file_error::{Fault, FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::mistaken::{first_line, mistaken};
use crate::protobuf::{Content, Fields, read_varint};
use crate::utf8::without_mark;
use crate::{collapsed, flamebearer, jfr, otlp_file, perf_script, pprof, speedscope, v8};

/// Formats that a file can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// pprof.
    Pprof,
    /// Java Flight Recorder.
    Jfr,
    /// V8's CPU profile.
    V8Cpu,
    /// V8's sampling heap profile.
    V8Heap,
    /// speedscope.
    Speedscope,
    /// Flamebearer, as Pyroscope and Grafana export it.
    Flamebearer,
    /// Collapsed stacks with counts.
    Collapsed,
    /// The text of `perf script`.
    PerfScript,
    /// OTLP profiles in protobuf.
    OtlpProfiles,
    /// OTLP profiles in JSON.
    OtlpProfilesJson,
}

/// The format of uncompressed bytes; none if it is none of those known.
///
/// What is cut short is still recognised, so that the error can say where it ends.
pub fn detect(bytes: &[u8]) -> Option<FileFormat> {
    if bytes.starts_with(b"FLR\0") {
        return Some(FileFormat::Jfr);
    }
    if mistaken(bytes).is_some() {
        return None;
    }
    let mut signs = without_mark(bytes).iter().filter(|byte| !byte.is_ascii_whitespace());
    // Behind the bracket of JSON comes a key in quotes, if anything. PHP calls functions `{main}` and `{closure}`.
    if *signs.next()? == b'{' && matches!(signs.next(), None | Some(b'"' | b'}')) {
        return detect_json(bytes);
    }
    detect_protobuf(bytes).or_else(|| detect_cut_otlp(bytes)).or_else(|| detect_text(bytes))
}

/// Tells JSON formats apart by the keys of the outermost object.
fn detect_json(bytes: &[u8]) -> Option<FileFormat> {
    let mut tokens = Tokens::new("json", bytes);
    let mut shared = false;
    tokens.next().ok()?;
    while let Ok(Some(Token::Key(key))) = tokens.next() {
        let value = tokens.next().ok()??;
        match (key.as_ref(), &value) {
            ("$schema", Token::Text(schema)) if schema.contains("speedscope") => return Some(FileFormat::Speedscope),
            ("nodes", Token::ArrayStart) => return Some(FileFormat::V8Cpu),
            ("flamebearer", Token::ObjectStart) => return Some(FileFormat::Flamebearer),
            ("head", Token::ObjectStart) => return Some(FileFormat::V8Heap),
            ("resourceProfiles" | "resource_profiles", _) => return Some(FileFormat::OtlpProfilesJson),
            ("shared", Token::ObjectStart) => shared = true,
            ("profiles", Token::ArrayStart) if shared => return Some(FileFormat::Speedscope),
            _ => {}
        }
        tokens.skip(&value).ok()?;
    }
    None
}

/// Tells pprof from OTLP: both begin with fields 1 and 2, but pprof's first holds numbers and it has strings.
fn detect_protobuf(bytes: &[u8]) -> Option<FileFormat> {
    let mut fields = Fields::new("protobuf", bytes, 0);
    let mut count = 0u32;
    let mut only_messages = true;
    while let Ok(Some(field)) = fields.next() {
        count += 1;
        match (field.number, field.content) {
            (1, Content::Bytes(_)) => {
                let mut inner = field.message().ok()?;
                // A sample type is two numbers and nothing else; a resource is messages.
                if let Ok(Some(first)) = inner.next()
                    && matches!((first.number, first.content), (1 | 2, Content::Varint(_)))
                {
                    return Some(FileFormat::Pprof);
                }
            }
            (2, Content::Bytes(_)) => {}
            (6, Content::Bytes(_)) if count > 1 => return Some(FileFormat::Pprof),
            (3..=15, Content::Bytes(_) | Content::Varint(_)) => only_messages = false,
            _ => return None,
        }
    }
    let complete = fields.position() == bytes.len();
    (count > 0 && only_messages && complete).then_some(FileFormat::OtlpProfiles)
}

/// Recognises OTLP profiles that end inside a field. Both fields are messages, whose fields are messages or text.
fn detect_cut_otlp(bytes: &[u8]) -> Option<FileFormat> {
    // Text may start with a line break, which is the tag of the first field; but it has no bytes that are no text.
    let is_text = |byte: &u8| matches!(byte, 0x09..=0x0d | 0x20..);
    if bytes.iter().take(4 << 10).all(is_text) {
        return None;
    }
    let mut at = 0;
    loop {
        let first_field = at == 0;
        let mut number = || read_varint("protobuf", bytes, &mut at, 0).ok();
        let (Some(tag), Some(length)) = (number(), number()) else {
            return (!first_field).then_some(FileFormat::OtlpProfiles);
        };
        // A list of resources has three fields, a dictionary has seven.
        let fields = match tag {
            0x0a => 1..=3,
            0x12 => 1..=7,
            _ => return None,
        };
        let content = &bytes[at..];
        if length > content.len() as u64 {
            let first = content.first()?;
            return (first & 7 == 2 && fields.contains(&(first >> 3))).then_some(FileFormat::OtlpProfiles);
        }
        at += length as usize;
    }
}

/// Tells text formats apart by their first lines.
fn detect_text(bytes: &[u8]) -> Option<FileFormat> {
    let mut lines = lines(bytes).filter_map(|(line, _)| std::str::from_utf8(line).ok());
    let mut head = lines.by_ref().take(1000).find(|line| !line.trim().is_empty() && !line.starts_with('#'))?;
    let goes_on = |line: &str| line.starts_with([' ', '\t']) || line.trim().is_empty() || perf_script::is_head(line);
    if perf_script::is_head(head) && lines.next().is_none_or(goes_on) {
        return Some(FileFormat::PerfScript);
    }
    // A count ends each line; of a first line without one, reading can say what is wrong, or overlook it.
    for _ in 0..16 {
        let counted = head.trim_end().rsplit_once(' ').is_some_and(|(stack, count)| {
            !stack.trim().is_empty() && !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
        });
        if counted {
            return Some(FileFormat::Collapsed);
        }
        head = lines.next()?;
    }
    None
}

/// Reads a file of any format, compressed or not.
///
/// A plain file is borrowed from; a compressed one gives a set of its own.
pub fn decode_file<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    match expanded(bytes, &options.limits)? {
        Cow::Borrowed(plain) => decode_plain(plain, options),
        Cow::Owned(plain) => decode_plain(&plain, options).map(into_owned),
    }
}

fn decode_plain<'a>(plain: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    match detect(plain) {
        Some(FileFormat::Pprof) => pprof::decode(plain, options),
        Some(FileFormat::Jfr) => jfr::decode(plain, None, options),
        Some(FileFormat::V8Cpu) => v8::decode_cpu(plain, options),
        Some(FileFormat::V8Heap) => v8::decode_heap(plain, options),
        Some(FileFormat::Speedscope) => speedscope::decode(plain, options),
        Some(FileFormat::Flamebearer) => flamebearer::decode(plain, options),
        Some(FileFormat::Collapsed) => collapsed::decode(plain, options),
        Some(FileFormat::PerfScript) => perf_script::decode(plain, options),
        Some(FileFormat::OtlpProfiles) if otlp_file::holds_spans(plain) => Err(traces()),
        Some(FileFormat::OtlpProfiles) => otlp_file::decode(plain, options),
        Some(FileFormat::OtlpProfilesJson) => otlp_file::decode_json(plain, options),
        None if otlp_file::holds_spans(plain) || otlp_file::holds_spans_json(plain) => Err(traces()),
        None => Err(unknown(plain)),
    }
}

/// A file that somebody took for profiles.
fn traces() -> FileError {
    let found = "an OTLP file of traces, which belong at /v1/traces";
    FileError { fault: Fault::UnknownFormat, ..FileError::malformed("profile", 0, "a file of profiles", found) }
}

fn unknown(plain: &[u8]) -> FileError {
    let expected = "pprof, JFR, OTLP profiles, a V8 profile, speedscope, flamebearer, perf script or collapsed stacks";
    let found = match mistaken(plain) {
        _ if plain.is_empty() => Cow::Borrowed("nothing"),
        Some(known) => Cow::Borrowed(known),
        None => first_line(plain).map_or(Cow::Borrowed("none of them"), Cow::Owned),
    };
    let fault = Fault::UnknownFormat;
    FileError { format: "profile", fault, offset: 0, expected: Cow::Borrowed(expected), found }
}

/// The same set without borrows.
pub fn into_owned(set: ProfileSet<'_>) -> ProfileSet<'static> {
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    let profiles = set.profiles.into_iter().map(|profile| {
        let ProfileContext { resource, scope, attributes, mappings, .. } = profile.context;
        Profile {
            id: profile.id,
            profile_type: profile.profile_type,
            labels: profile.labels,
            time: profile.time,
            duration: profile.duration,
            period: profile.period,
            context: ProfileContext {
                resource: own(resource),
                scope: own(scope),
                attributes: own(attributes),
                mappings: own(mappings),
                dropped_attributes_count: profile.context.dropped_attributes_count,
                original_payload_format: own(profile.context.original_payload_format),
                original_payload: Cow::Owned(profile.context.original_payload.into_owned()),
                source: own(profile.context.source),
                undated: profile.context.undated,
            },
            samples: profile.samples,
        }
    });
    let threads = set.threads.into_iter().map(|thread| Thread { id: thread.id, name: own(thread.name) });
    ProfileSet {
        paths: set.paths.into_owned(),
        label_sets: set.label_sets,
        threads: threads.collect(),
        attribute_sets: set.attribute_sets,
        links: set.links,
        profiles: profiles.collect(),
        cut_frames: set.cut_frames,
        cut_texts: set.cut_texts,
    }
}
