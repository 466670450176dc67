//! Protobuf by hand, for messages that no generated type can write.

/// A message in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn varint(mut self, field: u32, value: u64) -> Self {
        self.key(field, 0);
        put_varint(&mut self.0, value);
        self
    }

    pub(crate) fn fixed64(mut self, field: u32, value: u64) -> Self {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, field: u32, bytes: impl AsRef<[u8]>) -> Self {
        self.key(field, 2);
        put_varint(&mut self.0, bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    pub(crate) fn message(self, field: u32, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    pub(crate) fn packed(self, field: u32, values: &[u64]) -> Self {
        let mut packed = Vec::new();
        for value in values {
            put_varint(&mut packed, *value);
        }
        self.bytes(field, packed)
    }

    pub(crate) fn packed_fixed64(self, field: u32, values: &[u64]) -> Self {
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(field, packed)
    }

    fn key(&mut self, field: u32, wire: u32) {
        put_varint(&mut self.0, u64::from(field << 3 | wire));
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
