//! `ExportProfilesServiceRequest` (and `ProfilesData`, which has the same bytes) into a [`ProfileSet`].
//!
//! ```text
//!  outline -> dictionary -> version -> for each resource, scope, profile: header -> samples
//!                                        context (JSON), labels, type        path, facts, link
//! ```
//!
//! What is understood once is kept: a stack becomes a call path, and a list of attributes becomes labels, thread and
//! span, when the first sample uses it. After that a sample costs one pass over its own few fields.

mod assembler;
mod budget;
mod context;
mod dictionary;
mod facts;
mod header;
mod locations;
mod mappings;
mod profile_types;
mod rows;
mod samples;
mod series;
mod stacks;
mod symbols;
mod version;

use hotspan_model::ProfileSet;

pub use version::WireVersion;

use self::assembler::Assembler;
use self::budget::Budget;
use self::dictionary::{Dictionary, Unread};
use super::attributes::ItemReader;
use super::fault::{Locate as _, Read};
use super::outcome::Outcome;
use super::wire::Reader;
use crate::{DecodeError, Limits};

/// Reads a request. Samples and profiles that make no sense are left out and counted.
///
/// `received_at` is the time of profiles that have none, in nanoseconds since 1970.
pub fn decode_profiles<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    received_at: i64,
) -> Result<(ProfileSet<'a>, Outcome, WireVersion), DecodeError> {
    let read = decode_profiles_as(None, bytes, limits, received_at)?;
    // A time that is not taken says nothing about the numbering.
    if read.1.is_whole_but_for_time() {
        return Ok(read);
    }
    // The numbering is a guess where a sender uses few fields: async-profiler writes a sample's only value unpacked
    // in field 4, where the older numbering has a link. Whole under the other numbering is what was meant.
    let other = if read.2 == WireVersion::V1_10 { WireVersion::V1_9 } else { WireVersion::V1_10 };
    match decode_profiles_as(Some(other), bytes, limits, received_at) {
        Ok(reread) if reread.1.is_whole_but_for_time() => Ok(reread),
        _ => Ok(read),
    }
}

/// Reads a request whose version is known, or found out from the request itself.
pub fn decode_profiles_as<'a>(
    version: Option<WireVersion>,
    bytes: &'a [u8],
    limits: &Limits,
    received_at: i64,
) -> Result<(ProfileSet<'a>, Outcome, WireVersion), DecodeError> {
    if bytes.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge { found: bytes.len(), limit: limits.max_bytes });
    }
    let mut budget = Budget::new(limits.max_decoded_bytes);
    let mut outcome = Outcome::default();
    let (groups, dictionary) =
        read_outline(bytes, limits, &mut budget, &mut outcome).map_err(|fault| fault.into_error(bytes))?;
    let version = match version {
        Some(version) => version,
        None => version::detect(&groups, &dictionary.attributes).map_err(|fault| fault.into_error(bytes))?,
    };
    if version == WireVersion::V1_7 {
        return Err(DecodeError::UnsupportedVersion {
            version: "the numbering of OTLP profiles before v1.8",
            advice: "update the profiler or collector to one that writes OTLP v1.8 or later",
        });
    }
    let mut assembler = Assembler::new(dictionary, version, limits, budget, outcome, received_at);
    for (index, group) in groups.into_iter().enumerate() {
        let read = assembler.resource_profiles(group, index).element("resource_profiles", index);
        read.map_err(|fault| fault.into_error(bytes))?;
    }
    let (set, outcome) = assembler.finish();
    Ok((set, outcome, version))
}

/// Finds the groups of profiles, and reads the dictionary behind them.
fn read_outline<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    budget: &mut Budget,
    outcome: &mut Outcome,
) -> Read<(Vec<Reader<'a>>, Dictionary<'a>)> {
    let mut groups = Vec::new();
    let mut dictionary = Dictionary::default();
    let mut unread = Unread::default();
    let mut items = ItemReader::without_repairs(limits, &[]);
    let mut request = Reader::new(bytes);
    while let Some(field) = request.field()? {
        match field.number {
            1 => {
                budget.charge(size_of::<Reader<'_>>())?;
                groups.push(request.message(field).element("resource_profiles", groups.len())?);
            }
            2 => {
                let part = request.message(field).field("dictionary")?;
                dictionary.collect(part, &mut unread, &mut items, budget).field("dictionary")?;
            }
            _ => request.skip(field)?,
        }
    }
    items.note_repairs(outcome, |fault| fault.field("string_table").field("dictionary"));
    dictionary.resolve(&unread, limits, budget, outcome)?;
    Ok((groups, dictionary))
}
