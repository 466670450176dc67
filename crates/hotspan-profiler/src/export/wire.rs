//! Protobuf as bytes: the few shapes that profiles need, written straight into a buffer.

/// A message under construction.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

/// The one attribute of a resource that is a number.
pub(crate) const PROCESS_ID: &str = "process.pid";

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    pub(crate) fn new() -> Message {
        Message::default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.raw_varint((u64::from(field) << 3) | wire_type);
    }

    /// An integer field; the default value is left out, as protobuf 3 does.
    pub(crate) fn uint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.tag(field, VARINT);
            self.raw_varint(value);
        }
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.tag(field, FIXED64);
            self.bytes.extend(value.to_le_bytes());
        }
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        self.raw_varint(value.len() as u64);
        self.bytes.extend(value);
    }

    pub(crate) fn string(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(crate) fn packed_uints(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::new();
        values.into_iter().for_each(|value| packed.raw_varint(value));
        if !packed.bytes.is_empty() {
            self.bytes(field, &packed.bytes);
        }
    }

    pub(crate) fn packed_fixed64(&mut self, field: u32, values: &[u64]) {
        if !values.is_empty() {
            self.tag(field, LENGTH_DELIMITED);
            self.raw_varint(values.len() as u64 * 8);
            values.iter().for_each(|value| self.bytes.extend(value.to_le_bytes()));
        }
    }

    /// A nested message. Written even if empty: the first element of every OTLP table is an empty one.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        let mut nested = Message::new();
        fill(&mut nested);
        self.bytes(field, &nested.bytes);
    }

    /// The fields of a KeyValue whose value is a string.
    pub(crate) fn string_attribute(&mut self, key: &str, value: &str) {
        self.string(1, key);
        self.message(2, |out| out.string(1, value));
    }

    /// The fields of a KeyValue of a resource: text, but for the process id, which the conventions make a number.
    pub(crate) fn resource_attribute(&mut self, key: &str, value: &str) {
        match value.parse() {
            Ok(id) if key == PROCESS_ID => {
                self.string(1, key);
                self.message(2, |out| out.uint(3, id));
            }
            _ => self.string_attribute(key, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: values whose encodings the protobuf documentation spells out.
    /// Guarantee: the bytes are those.
    #[test]
    fn encodings_match_the_specification() {
        let mut message = Message::new();
        message.uint(1, 150);
        message.string(2, "testing");
        message.packed_uints(6, [3, 270, 86_942]);
        message.uint(9, 0);
        let expected = b"\x08\x96\x01\x12\x07testing\x32\x06\x03\x8e\x02\x9e\xa7\x05";
        assert_eq!(message.into_bytes(), expected);
    }
}
