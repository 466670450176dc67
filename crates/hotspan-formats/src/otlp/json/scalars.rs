//! Single values of OTLP/JSON: texts, ids, numbers in their several spellings.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};

use super::schema::Kind;
use super::transcode::Writer;
use crate::span_identity::base64_bytes;

/// How to write a value: under a field's number, or bare as an element of a packed list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar {
    pub(super) number: Option<u32>,
    pub(super) kind: Kind,
}

/// Below this, a double is exactly the integer that it looks like.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;
/// Below this, a double that is whole fits one integer type or another.
const INTEGERS: f64 = 18_446_744_073_709_551_616.0;

/// Reads a value and writes it.
pub(super) struct ScalarSeed<'w> {
    pub(super) writer: &'w mut Writer,
    pub(super) scalar: Scalar,
}

impl<'de> DeserializeSeed<'de> for ScalarSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.scalar.kind {
            Kind::Text | Kind::Texts => json.deserialize_option(self),
            _ => json.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for ScalarSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.scalar.kind {
            Kind::Text | Kind::Texts => "a text",
            Kind::Bytes => "bytes in base64",
            Kind::Id(_) => "an id in hex",
            Kind::Bool => "true or false",
            Kind::Enum(_) => "a number or a name",
            Kind::Double => "a number",
            _ => "an integer",
        })
    }

    /// A text is taken as bytes: one that was cut in the middle of a character ends with half of a surrogate pair, which is
    /// repaired where the span is read, as wrong UTF-8 is, instead of refusing all that came with it.
    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<(), E> {
        self.put_bytes(text);
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        // Absent; but an element of a list can't be.
        if self.scalar.number.is_none() { Err(E::custom("null in a list of numbers")) } else { Ok(()) }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.scalar.kind {
            Kind::Bool => self.put_varint(u64::from(value)),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.put_integer(i128::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.put_integer(i128::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let is_whole = value.fract() == 0.0;
        match self.scalar.kind {
            Kind::Double => {
                self.put_double(value);
                return Ok(());
            }
            Kind::Int64OrDouble(double) if is_whole && value.abs() >= EXACT_INTEGERS => {
                self.of_kind(double, Kind::Double).put_double(value);
                return Ok(());
            }
            _ => {}
        }
        // Some languages have no integers, and write 1e9; some scripts have times in seconds, and multiply.
        if is_whole && value.abs() < INTEGERS {
            return self.put_integer(value as i128);
        }
        Err(E::invalid_type(serde::de::Unexpected::Float(value), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let wrong = |seed: &Self| E::invalid_value(serde::de::Unexpected::Str(shortened(text)), seed);
        match self.scalar.kind {
            Kind::Text | Kind::Texts => self.put_bytes(text.as_bytes()),
            Kind::Bytes => match base64_bytes(text) {
                Some(bytes) => self.put_bytes(&bytes),
                None => return Err(wrong(&self)),
            },
            Kind::Id(size) => self.put_bytes(&id_bytes(text, size)),
            Kind::Enum(names) => {
                // A name of the future is no reason to refuse the rest. It becomes a number that is not kept, as the answer says.
                let named = names.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
                self.put_varint(i64::from(named.or_else(|| text.parse().ok()).unwrap_or(i32::MAX)) as u64);
            }
            Kind::Double => match text.trim().parse::<f64>() {
                Ok(value) => self.put_double(value),
                Err(_) => return Err(wrong(&self)),
            },
            Kind::Bool => return Err(wrong(&self)),
            _ => match text.trim().parse::<i128>() {
                Ok(value) => return self.put_integer(value),
                Err(_) => return Err(wrong(&self)),
            },
        }
        Ok(())
    }
}

impl ScalarSeed<'_> {
    fn put_integer<E: Error>(self, value: i128) -> Result<(), E> {
        let wrong = |range: &str| E::custom(format_args!("{value} is not {range}"));
        match self.scalar.kind {
            Kind::Int32 | Kind::Enum(_) => {
                let value = i32::try_from(value).map_err(|_| wrong("a 32-bit integer"))?;
                self.put_varint(i64::from(value) as u64);
            }
            Kind::Int64 => {
                let value = i64::try_from(value).map_err(|_| wrong("a 64-bit integer"))?;
                self.put_varint(value as u64);
            }
            Kind::Int64OrDouble(double) => match i64::try_from(value) {
                Ok(value) => self.put_varint(value as u64),
                Err(_) => self.of_kind(double, Kind::Double).put_double(value as f64),
            },
            Kind::Uint32 => {
                let value = u32::try_from(value).map_err(|_| wrong("a 32-bit count"))?;
                self.put_varint(u64::from(value));
            }
            Kind::Uint64 => {
                let value = u64::try_from(value).map_err(|_| wrong("a 64-bit count"))?;
                self.put_varint(value);
            }
            Kind::Fixed32 => {
                let value = u32::try_from(value).map_err(|_| wrong("a 32-bit number"))?;
                self.put_fixed(5, &value.to_le_bytes());
            }
            Kind::Fixed64 => {
                let value = u64::try_from(value).map_err(|_| wrong("a time in nanoseconds since 1970"))?;
                self.put_fixed(1, &value.to_le_bytes());
            }
            Kind::Double => self.put_double(value as f64),
            _ => return Err(E::custom(format_args!("the number {value} where {} is expected", Expected(&self)))),
        }
        Ok(())
    }

    /// The same value in another field.
    fn of_kind(self, number: u32, kind: Kind) -> Self {
        Self { writer: self.writer, scalar: Scalar { number: Some(number), kind } }
    }

    fn put_varint(self, value: u64) {
        if let Some(number) = self.scalar.number {
            self.writer.key(number, 0);
        }
        self.writer.varint(value);
    }

    fn put_fixed(self, wire: u32, bytes: &[u8]) {
        if let Some(number) = self.scalar.number {
            self.writer.key(number, wire);
        }
        self.writer.out.extend_from_slice(bytes);
    }

    fn put_double(self, value: f64) {
        self.put_fixed(1, &value.to_le_bytes());
    }

    fn put_bytes(self, bytes: &[u8]) {
        if let Some(number) = self.scalar.number {
            self.writer.bytes(number, bytes);
        }
    }
}

/// What a seed expects, for messages.
struct Expected<'s, 'w>(&'s ScalarSeed<'w>);

impl fmt::Display for Expected<'_, '_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(out)
    }
}

/// The bytes of an id: hex of the right length first, then base64 of the right length. Anything else becomes
/// bytes of a wrong length, so that the span is refused alone, as it is in protobuf.
fn id_bytes(text: &str, size: usize) -> Vec<u8> {
    let hex = hex_bytes(text);
    match hex {
        Some(bytes) if bytes.len() == size => bytes,
        hex => {
            let base64 = base64_bytes(text).filter(|bytes| bytes.len() == size);
            let wrong = || if text.len() == size { Vec::new() } else { shortened(text).as_bytes().to_vec() };
            base64.or(hex).unwrap_or_else(wrong)
        }
    }
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.len() > 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Quotes of the sender's texts stay short.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(64)]
}
