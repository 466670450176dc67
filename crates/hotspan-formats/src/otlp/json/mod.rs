//! OTLP/JSON, translated into protobuf and read as such: one reader, one meaning.
//!
//! The translation streams: no tree of the JSON is built, and the result is hardly larger than the text. It is
//! lenient where senders differ: ids in hex (as OTLP has them) or base64 (as plain protobuf JSON has them), enums as
//! numbers or names, 64-bit numbers bare or in quotes, keys in lower camel or snake case. Unknown keys are ignored.

mod scalars;
mod schema;
mod transcode;

use std::borrow::Cow;
use std::collections::BTreeMap;

use hotspan_model::{ProfileSet, TraceSink};
use serde::de::IgnoredAny;

use self::schema::Schema;
use super::fault::{Fault, Problem};
use super::{Outcome, WireVersion, decode_profiles_as, decode_traces};
use crate::{DecodeError, Limits};

/// Reads a trace request in JSON; see [`decode_traces`].
pub fn decode_traces_json(json: &[u8], limits: &Limits, sink: &mut dyn TraceSink) -> Result<Outcome, DecodeError> {
    let bytes = to_protobuf(json, &schema::TRACES, limits)?;
    let mut outcome = decode_traces(&bytes, &without_size_limit(limits), sink)?;
    if bytes.is_empty() {
        note_unknown(json, &schema::TRACES, &mut outcome);
    }
    Ok(outcome)
}

/// A profile request in JSON, in the form that profiles can borrow from.
#[derive(Debug, Clone)]
pub struct ProfilesJson {
    protobuf: Vec<u8>,
}

impl ProfilesJson {
    /// Reads the text.
    pub fn parse(json: &[u8], limits: &Limits) -> Result<Self, DecodeError> {
        Ok(Self { protobuf: to_protobuf(json, &schema::PROFILES, limits)? })
    }

    /// Reads the profiles; see [`super::decode_profiles`].
    pub fn decode(&self, limits: &Limits, received_at: i64) -> Result<(ProfileSet<'_>, Outcome), DecodeError> {
        // Fields have names here, so that there is only one numbering: ours.
        let limits = without_size_limit(limits);
        let (set, outcome, _) = decode_profiles_as(Some(WireVersion::V1_10), &self.protobuf, &limits, received_at)?;
        Ok((set, outcome))
    }
}

fn to_protobuf(json: &[u8], schema: &'static Schema, limits: &Limits) -> Result<Vec<u8>, DecodeError> {
    if json.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge { found: json.len(), limit: limits.max_bytes });
    }
    transcode::to_protobuf(without_mark(json), schema, limits.max_nesting)
}

/// The text without the mark of its encoding that some shells and editors put in front.
fn without_mark(json: &[u8]) -> &[u8] {
    json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json)
}

/// Tells whoever sent an object of unknown names alone: unknown fields are ignored, but a slip in the name of the only one that
/// matters would be a success that stores nothing (R4).
fn note_unknown(json: &[u8], schema: &'static Schema, outcome: &mut Outcome) {
    let Ok(fields) = serde_json::from_slice::<BTreeMap<Cow<'_, str>, IgnoredAny>>(without_mark(json)) else { return };
    if let Some(field) = schema.fields.first()
        && !fields.is_empty()
        && fields.keys().all(|name| schema.field(name).is_none())
    {
        outcome.note(&Fault::new(Problem::NothingKnown { field: field.name }));
    }
}

/// The text was within the limit; the translation may be a little larger.
fn without_size_limit(limits: &Limits) -> Limits {
    Limits { max_bytes: usize::MAX, ..limits.clone() }
}
