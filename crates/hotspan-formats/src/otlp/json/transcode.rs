//! From JSON to protobuf, guided by a schema, without a tree in between.
//!
//! Values may nest, and each level is a recursion. Those beyond the limit are written as empty lists, which is enough for the
//! reader of protobuf to refuse what they are in: the span, and not all that came with it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::field_path;
use super::scalars::{Scalar, ScalarSeed};
use super::schema::{Field, Kind, Schema, UNREAD};
use crate::DecodeError;

/// Bytes for the length of a message, which is known only after it: a varint may be padded to a fixed width.
const LENGTH_BYTES: usize = 5;

/// serde_json gives up at 128 levels, of which a list in a list takes four at most. What nests deeper than so many lists is
/// handed to another reader, which counts anew.
const LISTS_A_READER: usize = 16;

/// Translates the JSON of a message. Of values that nest deeper than `max_nesting` only that they do is kept.
pub(super) fn to_protobuf(json: &[u8], schema: &'static Schema, max_nesting: usize) -> Result<Vec<u8>, DecodeError> {
    let mut writer = Writer { out: Vec::with_capacity(json.len()), path: Vec::new(), open_lists: 0, max_nesting };
    let mut text = serde_json::Deserializer::from_slice(json);
    let read = MessageSeed { writer: &mut writer, schema }.deserialize(&mut text).and_then(|()| text.end());
    match read {
        Ok(()) => Ok(writer.out),
        Err(error) => Err(DecodeError::MalformedText {
            path: writer.path_text(),
            problem: format!("can't be read: {}", without_position(&error)),
            line: error.line(),
            column: error.column(),
        }),
    }
}

/// The message without the position that serde_json appends.
fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    text.truncate(text.rfind(" at line ").unwrap_or(text.len()));
    text
}

/// The protobuf written so far, and the field being written; after an error, the field it is in.
pub(super) struct Writer {
    pub(super) out: Vec<u8>,
    path: Vec<Step>,
    /// How many lists of values the current one is in.
    open_lists: usize,
    max_nesting: usize,
}

enum Step {
    Field(&'static str),
    Element(usize),
}

impl Writer {
    fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => text.extend([".", name]),
                Step::Element(index) => text.push_str(&format!("[{index}]")),
            }
        }
        if text.is_empty() { "request".to_owned() } else { field_path::shortened(text) }
    }

    pub(super) fn key(&mut self, number: u32, wire: u32) {
        self.varint(u64::from(number << 3 | wire));
    }

    pub(super) fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.key(number, 2);
        self.varint(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// Begins something of unknown length, and says where.
    fn open(&mut self, number: u32) -> usize {
        self.key(number, 2);
        self.out.extend_from_slice(&[0; LENGTH_BYTES]);
        self.out.len()
    }

    /// Ends what was begun at `start`.
    fn close(&mut self, start: usize) {
        let mut length = self.out.len() - start;
        for at in 0..LENGTH_BYTES {
            let more = if at + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            self.out[start - LENGTH_BYTES + at] = (length & 0x7f) as u8 | more;
            length >>= 7;
        }
    }
}

/// Reads the members of an object as the fields of a message.
struct MessageSeed<'w> {
    writer: &'w mut Writer,
    schema: &'static Schema,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key_seed(KeySeed)? {
            let Some(field) = self.schema.field(&key) else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            self.writer.path.push(Step::Field(field.name));
            members.next_value_seed(FieldSeed { writer: self.writer, field })?;
            self.writer.path.pop();
        }
        Ok(())
    }
}

/// A key, borrowed where it has no escapes.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Reads the value of a field; `null` is as good as no field at all.
struct FieldSeed<'w> {
    writer: &'w mut Writer,
    field: &'static Field,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.field.kind {
            Kind::Nesting(_) if (self.writer.open_lists + 1).is_multiple_of(LISTS_A_READER) => {
                self.deserialize_anew(json)
            }
            Kind::Message(_) | Kind::Messages(_) | Kind::Nesting(_) | Kind::Texts => json.deserialize_any(self),
            Kind::PackedInt32 | Kind::PackedInt64 | Kind::PackedFixed64 => json.deserialize_any(self),
            kind => ScalarSeed { writer: self.writer, scalar: Scalar { number: Some(self.field.number), kind } }
                .deserialize(json),
        }
    }
}

impl FieldSeed<'_> {
    /// Reads the value with a reader of its own. Where the value ends is found without recursion, however deep it nests.
    fn deserialize_anew<'de, D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let value = <&RawValue>::deserialize(json)?;
        let read = serde_json::Deserializer::from_slice(value.get().as_bytes()).deserialize_any(self);
        read.map_err(|error| D::Error::custom(without_position(&error)))
    }

    /// Writes the message that `members` are the fields of.
    fn write_message<'de, A: MapAccess<'de>>(&mut self, schema: &'static Schema, members: A) -> Result<(), A::Error> {
        let start = self.writer.open(self.field.number);
        MessageSeed { writer: self.writer, schema }.visit_map(members)?;
        self.writer.close(start);
        Ok(())
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_message = matches!(self.field.kind, Kind::Message(_) | Kind::Nesting(_));
        out.write_str(if is_message { "an object" } else { "a list" })
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, members: A) -> Result<(), A::Error> {
        match self.field.kind {
            Kind::Message(schema) => self.write_message(schema, members),
            Kind::Nesting(_) if self.writer.open_lists >= self.writer.max_nesting => {
                self.write_message(&UNREAD, members)
            }
            Kind::Nesting(schema) => {
                self.writer.open_lists += 1;
                self.write_message(schema, members)?;
                self.writer.open_lists -= 1;
                Ok(())
            }
            _ => Err(A::Error::custom("an object where a list is expected")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Self { writer, field } = self;
        let packed = match field.kind {
            Kind::PackedInt32 => Some(Kind::Int32),
            Kind::PackedInt64 => Some(Kind::Int64),
            Kind::PackedFixed64 => Some(Kind::Fixed64),
            _ => None,
        };
        let start = packed.map(|_| writer.open(field.number));
        let mut index = 0;
        loop {
            writer.path.push(Step::Element(index));
            let element = match (field.kind, packed) {
                (_, Some(kind)) => {
                    elements.next_element_seed(ScalarSeed { writer, scalar: Scalar { number: None, kind } })?
                }
                (Kind::Messages(schema), _) => {
                    let before = writer.out.len();
                    let start = writer.open(field.number);
                    let element = elements.next_element_seed(MessageSeed { writer, schema })?;
                    match element {
                        Some(()) => writer.close(start),
                        // There was no further element to open.
                        None => writer.out.truncate(before),
                    }
                    element
                }
                (Kind::Texts, _) => {
                    let scalar = Scalar { number: Some(field.number), kind: Kind::Text };
                    elements.next_element_seed(ScalarSeed { writer, scalar })?
                }
                _ => return Err(A::Error::custom("a list where an object is expected")),
            };
            writer.path.pop();
            if element.is_none() {
                break;
            }
            index += 1;
        }
        if let Some(start) = start {
            writer.close(start);
        }
        Ok(())
    }
}
