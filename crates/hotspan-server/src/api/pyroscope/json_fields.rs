//! A message in protobuf JSON, read so that what is wrong with it is told with the field where it stands.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, Unexpected};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Reads a message. Names may be in camel case, as protobuf JSON writes them, or as the schema has them.
pub(super) fn message_from_json<Q: DeserializeOwned>(bytes: &[u8]) -> Result<Q, WrongField> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(WrongField::custom)?;
    camel_names(&mut value);
    Q::deserialize(Field(value))
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

/// Why a message can't be read, and where.
#[derive(Debug)]
pub(super) struct WrongField {
    /// The way to the field, the field itself first.
    path: Vec<String>,
    reason: String,
    /// Whether it is a name that a later version may know.
    pub(super) is_unknown_name: bool,
}

impl WrongField {
    fn inside(mut self, name: String) -> Self {
        self.path.push(name);
        self
    }
}

impl fmt::Display for WrongField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.path.iter().rev().enumerate() {
            let dot = if at == 0 || name.starts_with('[') { "" } else { "." };
            write!(out, "{dot}{name}")?;
        }
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(out, "{colon}{}", self.reason)
    }
}

impl std::error::Error for WrongField {}

impl Error for WrongField {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self { path: Vec::new(), reason: reason.to_string(), is_unknown_name: false }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {found}"))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        let reason = format!("{name:?} is not known here; known are {}", known.join(", "));
        Self { path: Vec::new(), reason, is_unknown_name: true }
    }
}

/// A value of a message.
struct Field(Value);

impl<'de> Deserializer<'de> for Field {
    type Error = WrongField;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongField> {
        match self.0 {
            Value::Array(values) => visitor.visit_seq(Items { values: values.into_iter(), at: 0 }),
            Value::Object(fields) => visitor.visit_map(Fields { fields: fields.into_iter(), value: None }),
            Value::String(text) => visitor.visit_string(text),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Null => visitor.visit_unit(),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongField> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrongField> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(WrongField::custom(format_args!("expected an object, found {other}"))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The fields of an object. One that is null is as good as not there.
struct Fields {
    fields: <Map<String, Value> as IntoIterator>::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = WrongField;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, WrongField> {
        self.value = self.fields.find(|(_, value)| !value.is_null());
        self.value.as_ref().map(|(name, _)| seed.deserialize(name.as_str().into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, WrongField> {
        let (name, value) = self.value.take().unwrap_or_default();
        seed.deserialize(Field(value)).map_err(|wrong| wrong.inside(name))
    }
}

struct Items {
    values: std::vec::IntoIter<Value>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = WrongField;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, WrongField> {
        let Some(value) = self.values.next() else { return Ok(None) };
        self.at += 1;
        seed.deserialize(Field(value)).map(Some).map_err(|wrong| wrong.inside(format!("[{}]", self.at - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::{DiffRequest, SelectSeriesRequest};
    use super::*;

    /// Scenario: messages in every spelling that protobuf JSON allows: numbers as text, names of either case, nulls.
    /// Guarantee: they say the same.
    #[test]
    fn spellings() {
        let plain: SelectSeriesRequest = message_from_json(
            br#"{"profileTypeID": "cpu", "start": 7, "step": 15, "aggregation": 1, "limit": 3, "exemplarType": 2}"#,
        )
        .unwrap();
        for text in [
            r#"{"profile_typeID": "cpu", "start": "7", "step": "15", "aggregation": "TIME_SERIES_AGGREGATION_TYPE_AVERAGE",
                "limit": "3", "exemplar_type": "EXEMPLAR_TYPE_INDIVIDUAL", "groupBy": null, "stackTraceSelector": null}"#,
            r#"{"profileTypeId": "cpu", "start": 7.2, "step": 15.0, "aggregation": 1, "limit": 3e0, "exemplarType": 2,
                "labelSelector": null, "later": {"a": [1, {"b": null}]}}"#,
        ] {
            assert_eq!(message_from_json::<SelectSeriesRequest>(text.as_bytes()).unwrap(), plain, "{text}");
        }
    }

    /// Scenario: messages that are wrong in one place each, some of them deep inside.
    /// Guarantee: the field, what is there and what should be; a name that may be of a later version is told as such.
    #[test]
    fn what_is_wrong_is_named() {
        for (text, reason) in [
            (r#"{"left": {"maxNodes": "x"}}"#, r#"left.maxNodes: expected a whole number, found "x""#),
            (r#"{"left": {"max_nodes": [1]}}"#, "left.maxNodes: expected a whole number, found [1]"),
            (r#"{"right": {"labelSelector": 5}}"#, "right.labelSelector: expected a string, found integer `5`"),
            (r#"{"left": {"spanSelector": ["a", 2]}}"#, "left.spanSelector[1]: expected a string, found integer `2`"),
            (
                r#"{"left": {"stackTraceSelector": {"callSite": [{"name": "a"}, "b"]}}}"#,
                r#"left.stackTraceSelector.callSite[1]: expected an object, found "b""#,
            ),
            (
                r#"{"left": {"stackTraceSelector": {"goPgo": {"keepLocations": -1}}}}"#,
                "left.stackTraceSelector.goPgo.keepLocations: expected a whole number from 0, found -1",
            ),
            ("[]", "expected an object, found []"),
            ("{\"left\": ", "EOF while parsing a value at line 1 column 9"),
        ] {
            let wrong = message_from_json::<DiffRequest>(text.as_bytes()).unwrap_err();
            assert_eq!((wrong.to_string().as_str(), wrong.is_unknown_name), (reason, false), "{text}");
        }
        let wrong = message_from_json::<DiffRequest>(br#"{"left": {"format": "PROFILE_FORMAT_NEW"}}"#).unwrap_err();
        assert!(wrong.is_unknown_name);
        let told = "left.format: \"PROFILE_FORMAT_NEW\" is not known here; known are PROFILE_FORMAT_UNSPECIFIED, ";
        assert!(wrong.to_string().starts_with(told), "{wrong}");
        let wrong = message_from_json::<SelectSeriesRequest>(br#"{"step": "x"}"#).unwrap_err();
        assert_eq!(wrong.to_string(), r#"step: expected a number, found "x""#);
    }
}
