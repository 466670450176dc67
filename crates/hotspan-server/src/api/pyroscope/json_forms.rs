//! How protobuf JSON writes what plain JSON can't hold: 64-bit numbers as text, enums by name, bytes in base64.

use prost::Message;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::pprof_message::PprofProfile;

/// A whole number, which may be written as text.
fn whole_number<E: Error>(value: &Value) -> Result<i64, E> {
    let number = match value {
        // JavaScript divides times; what it sends then is still meant as a whole number.
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| E::custom(format_args!("expected a whole number, found {value}")))
}

/// `int64`.
pub(crate) mod int64_text {
    use super::{Deserialize, Deserializer, Serializer, Value, whole_number};

    pub(crate) fn serialize<S: Serializer>(value: &i64, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        whole_number(&Value::deserialize(from)?)
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
    use super::{Deserialize, Deserializer, Serializer, Value, whole_number};

    pub(crate) fn serialize<S: Serializer>(value: &Option<i64>, out: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => out.collect_str(value),
            None => out.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        whole_number(&Value::deserialize(from)?).map(Some)
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

/// `uint32` of requests.
pub(crate) fn uint32_number<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(from)?;
    let wrong = || D::Error::custom(format_args!("expected a whole number from 0, found {value}"));
    u32::try_from(whole_number::<D::Error>(&value)?).map_err(|_| wrong())
}

/// `double` of requests, which may be written as text.
pub(crate) fn double_number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(from)?;
    let number = match &value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| D::Error::custom(format_args!("expected a number, found {value}")))
}

/// The names of an enum, in the order of their numbers.
type EnumNames = &'static [&'static str];

/// An enum by name or number.
fn enum_number<'de, D: Deserializer<'de>>(from: D, names: EnumNames) -> Result<i32, D::Error> {
    let value = Value::deserialize(from)?;
    if let Value::String(name) = &value {
        let number = names.iter().position(|known| known == name);
        return number.map(|number| number as i32).ok_or_else(|| D::Error::unknown_variant(name, names));
    }
    // Numbers that are not known are the methods' to refuse, since in protobuf there is nothing else.
    Ok(i32::try_from(whole_number::<D::Error>(&value)?).unwrap_or(i32::MAX))
}

/// The shape of a flame graph.
pub(crate) fn profile_format<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    const NAMES: EnumNames = &[
        "PROFILE_FORMAT_UNSPECIFIED",
        "PROFILE_FORMAT_FLAMEGRAPH",
        "PROFILE_FORMAT_TREE",
        "PROFILE_FORMAT_DOT",
        "PROFILE_FORMAT_PPROF",
    ];
    enum_number(from, NAMES)
}

/// How the values of a step become one.
pub(crate) fn maybe_aggregation<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    enum_number(from, &["TIME_SERIES_AGGREGATION_TYPE_SUM", "TIME_SERIES_AGGREGATION_TYPE_AVERAGE"]).map(Some)
}

/// What exemplars are of.
pub(crate) fn exemplar_type<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    const NAMES: EnumNames =
        &["EXEMPLAR_TYPE_UNSPECIFIED", "EXEMPLAR_TYPE_NONE", "EXEMPLAR_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN"];
    enum_number(from, NAMES)
}

/// What a heatmap counts.
pub(crate) fn heatmap_type<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    const NAMES: EnumNames =
        &["HEATMAP_QUERY_TYPE_UNSPECIFIED", "HEATMAP_QUERY_TYPE_INDIVIDUAL", "HEATMAP_QUERY_TYPE_SPAN"];
    enum_number(from, NAMES)
}
