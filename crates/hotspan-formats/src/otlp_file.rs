//! OTLP profiles that lie in a file, as async-profiler and collectors write them.

use std::borrow::Cow;

use hotspan_model::ProfileSet;

use crate::decode_options::{DecodeOptions, filled};
use crate::detect::into_owned;
use crate::error::DecodeError;
use crate::file_error::{Fault, FileError, Result, byte_offset};
use crate::otlp::json::ProfilesJson;
use crate::otlp::{Outcome, decode_profiles};
use crate::set_builder::SetBuilder;

const FORMAT: &str = "OTLP profiles";

/// Reads protobuf.
pub(crate) fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let read = decode_profiles(bytes, &options.limits, options.placed(0, 0).start);
    let (set, outcome, _) = read.map_err(|error| file_error(bytes, &error))?;
    finish(set, &outcome, options)
}

/// Reads JSON.
pub(crate) fn decode_json(bytes: &[u8], options: &DecodeOptions) -> Result<ProfileSet<'static>> {
    let parsed = ProfilesJson::parse(bytes, &options.limits).map_err(|error| file_error(bytes, &error))?;
    let read = parsed.decode(&options.limits, options.placed(0, 0).start);
    let (set, outcome) = read.map_err(|error| file_error(bytes, &error))?;
    finish(set, &outcome, options).map(into_owned)
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
