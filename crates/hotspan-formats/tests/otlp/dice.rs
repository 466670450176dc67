//! Choices made from a list of bytes: shrinking the list shrinks whatever was built from it.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, EntityRef, KeyValue, KeyValueList};

/// Bytes to choose from; zeros once they are used up.
pub(crate) struct Dice<'b> {
    bytes: &'b [u8],
}

impl<'b> Dice<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        usize::from(self.byte()) % sides
    }

    /// True once in `sides` times, and never when the bytes are used up.
    pub(crate) fn rarely(&mut self, sides: usize) -> bool {
        self.roll(sides) == sides - 1
    }

    pub(crate) fn u64(&mut self) -> u64 {
        match self.roll(4) {
            0 => u64::from(self.byte()),
            1 => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            2 => 1_700_000_000_000_000_000 + u64::from(self.byte()),
            _ => u64::MAX >> self.roll(64),
        }
    }

    pub(crate) fn i64(&mut self) -> i64 {
        self.u64() as i64
    }

    pub(crate) fn count(&mut self) -> u32 {
        if self.rarely(4) { self.u64() as u32 } else { 0 }
    }

    pub(crate) fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.roll(most + 1)).map(|_| make(self)).collect()
    }

    pub(crate) fn text(&mut self) -> String {
        const WORDS: [&str; 10] = ["", "a", "GET /", "é", "\u{1F525}x", "$bytes", "\"\\\n", "名前", "http.url", "\0"];
        WORDS[self.roll(WORDS.len())].to_owned()
    }

    pub(crate) fn entity_refs(&mut self) -> Vec<EntityRef> {
        self.many(2, |dice| EntityRef {
            schema_url: dice.text(),
            r#type: dice.text(),
            id_keys: dice.many(2, Self::text),
            description_keys: dice.many(2, Self::text),
        })
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// Mostly an id of the right size.
    pub(crate) fn id(&mut self, len: usize) -> Vec<u8> {
        match self.roll(12) {
            0 => vec![0; len],
            1 => Vec::new(),
            2 => vec![7; len - 1],
            3 => vec![7; len + 1],
            _ => {
                let mut id = self.bytes(len);
                id[0] |= 1;
                id
            }
        }
    }

    pub(crate) fn any_value(&mut self, depth: usize) -> AnyValue {
        let value = match self.roll(if depth < 3 { 8 } else { 6 }) {
            0 => return AnyValue { value: None },
            1 => Value::StringValue(self.text()),
            2 => Value::BoolValue(self.rarely(2)),
            3 => Value::IntValue(self.i64()),
            4 => Value::DoubleValue([0.0, -1.5, 1e300, f64::INFINITY][self.roll(4)]),
            5 => {
                let len = self.roll(5);
                Value::BytesValue(self.bytes(len))
            }
            6 => Value::ArrayValue(ArrayValue { values: self.many(3, |dice| dice.any_value(depth + 1)) }),
            _ => Value::KvlistValue(KeyValueList { values: self.many(3, |dice| dice.key_value(depth + 1)) }),
        };
        AnyValue { value: Some(value) }
    }

    pub(crate) fn key_value(&mut self, depth: usize) -> KeyValue {
        let value = if self.rarely(8) { None } else { Some(self.any_value(depth)) };
        KeyValue { key: self.text(), value, key_strindex: 0 }
    }

    pub(crate) fn attributes(&mut self) -> Vec<KeyValue> {
        self.many(4, |dice| dice.key_value(0))
    }
}
