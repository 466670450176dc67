//! Protobuf, written straight into one buffer.

/// A message in the making, or several one inside the other.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.raw_varint(u64::from(field << 3 | wire));
    }

    pub(super) fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number; zero is left out, as protobuf 3 does.
    pub(super) fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.always_varint(field, value);
        }
    }

    /// A number that is written even if it is zero, as inside a `oneof`.
    pub(super) fn always_varint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.raw_varint(value);
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn fixed32(&mut self, field: u32, value: u32) {
        self.key(field, 5);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Bytes or text; empty ones are written as well, since tables have them at index 0.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.raw_varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Text; an empty one is left out.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    /// A nested message, or any field that is as long as what `fill` writes.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, 2);
        // Most messages are short, so one byte is kept for the length, and longer ones are moved along.
        let length_at = self.bytes.len();
        self.bytes.push(0);
        fill(self);
        let length = self.bytes.len() - length_at - 1;
        let mut prefix = Self::default();
        if length < 0x80 {
            self.bytes[length_at] = length as u8;
        } else {
            prefix.raw_varint(length as u64);
            self.bytes.splice(length_at..=length_at, prefix.bytes);
        }
    }

    pub(super) fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        self.message(field, |packed| values.into_iter().for_each(|value| packed.raw_varint(value)));
    }
}
