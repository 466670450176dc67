//! Reading attribute values back from their canonical JSON; see [`crate::attribute`] for the form.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::attribute::{Attribute, Value};

impl Value<'static> {
    /// The value whose canonical JSON this is.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// The attributes whose canonical JSON object this is; none where the text is empty or damaged.
pub fn attributes_from_json(json: &str) -> Vec<Attribute<'static>> {
    match Value::from_json(json) {
        Ok(Value::KeyValues(attributes)) => attributes,
        _ => Vec::new(),
    }
}

impl<'de> Deserialize<'de> for Value<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'static>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an attribute value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Empty)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        i64::try_from(value).map(Value::Int).map_err(|_| E::custom("an integer beyond 64 bits"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::String(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = sequence.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut attributes: Vec<Attribute<'static>> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Value<'static>>()? {
            if attributes.is_empty()
                && let Some(special) = special_value(&key, &value)
            {
                return Ok(special);
            }
            let key = if key.starts_with("$$") { key[1..].to_owned() } else { key };
            attributes.push(Attribute { key: Cow::Owned(key), value });
        }
        Ok(Value::KeyValues(attributes))
    }
}

/// What JSON lacks: bytes, and doubles that are no numbers.
fn special_value(key: &str, value: &Value<'static>) -> Option<Value<'static>> {
    match (key, value.as_str()?) {
        ("$bytes", text) => Some(Value::Bytes(Cow::Owned(read_base64(text)?))),
        ("$double", "NaN") => Some(Value::Double(f64::NAN)),
        ("$double", "Infinity") => Some(Value::Double(f64::INFINITY)),
        ("$double", "-Infinity") => Some(Value::Double(f64::NEG_INFINITY)),
        _ => None,
    }
}

fn read_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0u32, 0u32);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: one value of each kind, nested. Guarantee: it reads back as what was written.
    #[test]
    fn round_trip() {
        let value = Value::KeyValues(vec![
            Attribute::new("$bytes", Value::str("x")),
            Attribute::new("bytes", Value::Bytes(Cow::Borrowed(&[0, 255, 7, 1]))),
            Attribute::new("int", Value::Int(i64::MIN)),
            Attribute::new("double", Value::Double(-0.5e-300)),
            Attribute::new("infinite", Value::Double(f64::NEG_INFINITY)),
            Attribute::new("list", Value::Array(vec![Value::Empty, Value::Bool(false), Value::str("a\u{0}\"\\b")])),
            Attribute::new("empty", Value::KeyValues(vec![])),
        ]);
        let mut json = String::new();
        value.write_json(&mut json);
        assert_eq!(Value::from_json(&json).unwrap(), value);
    }
}
