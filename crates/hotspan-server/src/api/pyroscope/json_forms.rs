//! How protobuf JSON writes what plain JSON can't hold: 64-bit numbers as text, enums by name, bytes in base64.

use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::pprof_message::PprofProfile;

/// Reads a message. Names may be in camel case, as protobuf JSON writes them, or as the schema has them.
pub(crate) fn message_from_json<Q: DeserializeOwned>(bytes: &[u8]) -> Result<Q, serde_json::Error> {
    let mut value: Value = serde_json::from_slice(bytes)?;
    camel_names(&mut value);
    Q::deserialize(value)
}

fn camel_names(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, mut value) in std::mem::take(fields) {
                camel_names(&mut value);
                fields.insert(if name.contains('_') { camel(&name) } else { name }, value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(camel_names),
        _ => {}
    }
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut camel, part| {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.extend(letters);
        camel
    })
}

/// A number that may be written as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Float(f64),
    Text(String),
}

impl NumberOrText {
    fn number<E: serde::de::Error>(self) -> Result<i64, E> {
        match self {
            Self::Number(number) => Ok(number),
            // JavaScript divides times; what it sends then is still meant as a whole number.
            Self::Float(number) if number.is_finite() => Ok(number as i64),
            Self::Float(number) => Err(E::custom(format!("{number} is not a whole number"))),
            Self::Text(text) => text.trim().parse().map_err(|_| E::custom(format!("{text:?} is not a whole number"))),
        }
    }
}

/// `int64`.
pub(crate) mod int64_text {
    use super::{Deserialize, Deserializer, NumberOrText, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &i64, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        Option::<NumberOrText>::deserialize(from)?.map_or(Ok(0), NumberOrText::number)
    }
}

/// `uint64` of answers.
pub(crate) mod uint64_text {
    use super::Serializer;

    pub(crate) fn serialize<S: Serializer>(value: &u64, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(value)
    }
}

/// `optional int64`.
pub(crate) mod maybe_int64 {
    use super::{Deserialize, Deserializer, NumberOrText, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Option<i64>, out: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => out.collect_str(value),
            None => out.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        Option::<NumberOrText>::deserialize(from)?.map(NumberOrText::number).transpose()
    }
}

/// `bytes` of answers.
pub(crate) mod base64_text {
    use super::Serializer;
    use base64::Engine as _;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&base64::engine::general_purpose::STANDARD.encode(bytes))
    }
}

/// `repeated int64`.
pub(crate) fn int64_texts<S: Serializer>(values: &[i64], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(values.iter().map(ToString::to_string))
}

/// A pprof profile as the JSON of its message.
pub(crate) fn pprof_json<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
    PprofProfile::decode(bytes).map_err(serde::ser::Error::custom)?.serialize(out)
}

/// The enums that requests hold, by name.
const ENUM_NAMES: &[(&str, i32)] = &[
    ("PROFILE_FORMAT_UNSPECIFIED", 0),
    ("PROFILE_FORMAT_FLAMEGRAPH", 1),
    ("PROFILE_FORMAT_TREE", 2),
    ("PROFILE_FORMAT_DOT", 3),
    ("PROFILE_FORMAT_PPROF", 4),
    ("TIME_SERIES_AGGREGATION_TYPE_SUM", 0),
    ("TIME_SERIES_AGGREGATION_TYPE_AVERAGE", 1),
    ("EXEMPLAR_TYPE_UNSPECIFIED", 0),
    ("EXEMPLAR_TYPE_NONE", 1),
    ("EXEMPLAR_TYPE_INDIVIDUAL", 2),
    ("EXEMPLAR_TYPE_SPAN", 3),
    ("HEATMAP_QUERY_TYPE_UNSPECIFIED", 0),
    ("HEATMAP_QUERY_TYPE_INDIVIDUAL", 1),
    ("HEATMAP_QUERY_TYPE_SPAN", 2),
];

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrName {
    Number(i32),
    Name(String),
}

impl NumberOrName {
    fn number(self) -> i32 {
        match self {
            Self::Number(number) => number,
            Self::Name(name) => {
                ENUM_NAMES.iter().find(|(known, _)| *known == name).map_or(UNKNOWN_NAME, |(_, number)| *number)
            }
        }
    }
}

/// Stands for a name that is not known, such as one of a later version: methods refuse it as they do unknown numbers,
/// and say so in the way that their clients can deal with.
const UNKNOWN_NAME: i32 = -1;

/// An enum by name or number.
pub(crate) fn enum_number<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    Ok(Option::<NumberOrName>::deserialize(from)?.map_or(0, NumberOrName::number))
}

/// An optional enum by name or number.
pub(crate) fn maybe_enum<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    Ok(Option::<NumberOrName>::deserialize(from)?.map(NumberOrName::number))
}
