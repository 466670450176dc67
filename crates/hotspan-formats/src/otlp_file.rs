//! OTLP profiles that lie in a file, as async-profiler and collectors write them.

use std::borrow::Cow;

use hotspan_model::ProfileSet;

use crate::decode_options::{DecodeOptions, filled};
use crate::detect::into_owned;
use crate::error::DecodeError;
use crate::file_error::{Fault, FileError, Result, byte_offset};
use crate::json_scan::{Token, Tokens};
use crate::otlp::json::ProfilesJson;
use crate::otlp::{Outcome, decode_profiles};
use crate::protobuf::{Content, Fields};
use crate::set_builder::SetBuilder;
use crate::utf8::without_mark;

const FORMAT: &str = "OTLP profiles";
/// Scopes without spans that are looked through.
const MAX_SCOPES: usize = 1000;

/// Reads protobuf.
pub(crate) fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let read = decode_profiles(bytes, &options.limits, options.placed(0, 0).start);
    let (set, outcome, _) = read.map_err(|error| file_error(bytes, &error))?;
    finish(set, &outcome, options)
}

/// Reads JSON.
pub(crate) fn decode_json(bytes: &[u8], options: &DecodeOptions) -> Result<ProfileSet<'static>> {
    let parsed =
        ProfilesJson::parse(without_mark(bytes), &options.limits).map_err(|error| file_error(bytes, &error))?;
    let read = parsed.decode(&options.limits, options.placed(0, 0).start);
    let (set, outcome) = read.map_err(|error| file_error(bytes, &error))?;
    finish(set, &outcome, options).map(into_owned)
}

/// Whether a file holds traces, in protobuf: a span begins with the id of its trace and its own, where a profile has
/// messages.
pub(crate) fn holds_spans(bytes: &[u8]) -> bool {
    let resource_spans = Fields::new(FORMAT, bytes, 0);
    let scope_spans = messages(resource_spans, 1).flat_map(|resource| messages(resource, 2));
    let mut spans = scope_spans.take(MAX_SCOPES).flat_map(|scope| messages(scope, 2));
    spans.next().is_some_and(|mut span| {
        let mut has_id = |number: u64, length: usize| {
            let id = span.next().ok().flatten();
            id.is_some_and(|id| id.number == number && matches!(id.content, Content::Bytes(id) if id.len() == length))
        };
        has_id(1, 16) && has_id(2, 8)
    })
}

/// The messages of a field, as far as they can be read.
fn messages<'a>(mut fields: Fields<'a>, number: u64) -> impl Iterator<Item = Fields<'a>> {
    std::iter::from_fn(move || {
        while let Ok(Some(field)) = fields.next() {
            if field.number == number
                && let Ok(message) = field.message()
            {
                return Some(message);
            }
        }
        None
    })
}

/// Whether a file holds traces, in JSON.
pub(crate) fn holds_spans_json(bytes: &[u8]) -> bool {
    let mut tokens = Tokens::new(FORMAT, bytes);
    matches!(tokens.next(), Ok(Some(Token::ObjectStart)))
        && matches!(tokens.next(), Ok(Some(Token::Key(key))) if matches!(&*key, "resourceSpans" | "resource_spans"))
}

/// A request may be taken in part, since its sender hears what was not; a file is taken whole or not at all (R7).
fn finish<'a>(mut set: ProfileSet<'a>, outcome: &Outcome, options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    if !is_whole(outcome) {
        return Err(FileError::malformed(FORMAT, 0, "profiles that can be kept whole", outcome.message()));
    }
    let (labels, default_link) = options.series();
    let mut links: Vec<u32> = Vec::with_capacity(set.links.len());
    let count = set.links.len();
    for index in 0..count {
        let link = filled(set.links[index], default_link);
        if index > 0 {
            set.links[index] = link;
            links.push(index as u32);
        } else if link == set.links[0] {
            links.push(0);
        } else {
            // The first link means none and stays so: samples without one get the given one as a new row.
            links.push(count as u32);
            set.links.push(link);
        }
    }
    for profile in &mut set.profiles {
        // What the command line says is said on purpose: it comes before what the file says.
        for (name, value) in labels.iter() {
            profile.labels.set(name, value);
        }
        for sample in &mut profile.samples {
            sample.link = links.get(sample.link as usize).copied().unwrap_or(sample.link);
        }
    }
    set.cut_texts = outcome.cut_texts;
    SetBuilder::around(set, FORMAT, options).finish()
}

fn is_whole(outcome: &Outcome) -> bool {
    outcome.rejected == 0 && outcome.rejected_samples == 0
}

fn file_error(bytes: &[u8], error: &DecodeError) -> FileError {
    let offset = match error {
        DecodeError::Malformed { offset, .. } => *offset,
        DecodeError::MalformedText { line, column, .. } => byte_offset(bytes, *line, *column),
        _ => 0,
    };
    let fault = if error.is_too_large() { Fault::TooLarge } else { Fault::Malformed };
    let found = Cow::Owned(error.to_string());
    FileError { format: FORMAT, fault, offset: offset as u64, expected: Cow::Borrowed("an OTLP request"), found }
}
