//! OTLP/JSON, translated into protobuf and read as such: one reader, one meaning.
//!
//! The translation streams: no tree of the JSON is built, and the result is hardly larger than the text. It is
//! lenient where senders differ: ids in hex (as OTLP has them) or base64 (as plain protobuf JSON has them), enums as
//! numbers or names, 64-bit numbers bare or in quotes, keys in lower camel or snake case. Unknown keys are ignored.

mod scalars;
mod schema;
mod transcode;

use hotspan_model::{ProfileSet, TraceSink};

use self::schema::Schema;
use super::{Outcome, WireVersion, decode_profiles_as, decode_traces};
use crate::{DecodeError, Limits};

/// Reads a trace request in JSON; see [`decode_traces`].
pub fn decode_traces_json(json: &[u8], limits: &Limits, sink: &mut dyn TraceSink) -> Result<Outcome, DecodeError> {
    let bytes = to_protobuf(json, &schema::TRACES, limits)?;
    decode_traces(&bytes, &without_size_limit(limits), sink)
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
    transcode::to_protobuf(json, schema, limits.max_nesting)
}

/// The text was within the limit; the translation may be a little larger.
fn without_size_limit(limits: &Limits) -> Limits {
    Limits { max_bytes: usize::MAX, ..limits.clone() }
}
