//! The protobuf wire format, read without copying and written without a schema.
//!
//! Generated types would cost an allocation for each message; a sample has a dozen. Fields of a wire type that
//! the caller does not expect are errors, unknown field numbers are skipped, as the format demands.

use crate::file_error::{FileError, Result};
use crate::utf8::from_utf8;

/// A walk over the fields of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` starts in the file, so that errors name a place that a person can look at.
    base: usize,
    format: &'static str,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    Varint(u64),
    Fixed64(#[allow(dead_code, reason = "only skipped by the formats at hand")] u64),
    Bytes(&'a [u8]),
    Fixed32(#[allow(dead_code, reason = "only skipped by the formats at hand")] u32),
}

/// One field, and where its content starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    pub(crate) content: Content<'a>,
    pub(crate) offset: usize,
    format: &'static str,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(format: &'static str, bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base, format }
    }

    /// The next field, or none at the end of the message.
    ///
    /// A profile is some ten thousand fields of a few bytes: what nearly all of them need is laid out where they are read, so
    /// that no result goes through memory, and what is rare stays outside.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let tag_at = self.at;
        let tag = self.varint()?;
        let number = tag >> 3;
        let (content, start) = match tag & 7 {
            0 => {
                let start = self.at;
                (Content::Varint(self.varint()?), start)
            }
            2 => {
                let length = self.varint()?;
                let start = self.at;
                if length > (self.bytes.len() - start) as u64 {
                    return Err(self.cut_short(length, number));
                }
                self.at += length as usize;
                (Content::Bytes(&self.bytes[start..self.at]), start)
            }
            wire_type => {
                let start = self.at;
                (self.fixed(wire_type, tag_at)?, start)
            }
        };
        Ok(Some(Field { number, content, offset: self.base + start, format: self.format }))
    }

    /// The number in the field with this number below 16, if that is what comes next, and where it starts.
    ///
    /// Writers put fields in the order of their numbers. A reader of very many small messages first asks for each field in
    /// that order, which a processor foresees far better than a choice among all of them, and then reads what is left.
    #[inline(always)]
    pub(crate) fn next_number(&mut self, number: u8) -> Result<Option<(u64, usize)>> {
        if self.bytes.get(self.at) != Some(&(number << 3)) {
            return Ok(None);
        }
        self.at += 1;
        let start = self.base + self.at;
        Ok(Some((self.varint()?, start)))
    }

    /// Content of a fixed size, which profiles hardly have.
    #[inline(never)]
    fn fixed(&mut self, wire_type: u64, tag_at: usize) -> Result<Content<'a>> {
        match wire_type {
            1 => Ok(Content::Fixed64(u64::from_le_bytes(self.array()?))),
            5 => Ok(Content::Fixed32(u32::from_le_bytes(self.array()?))),
            other => {
                let found = format!("wire type {other}");
                Err(FileError::malformed(self.format, self.base + tag_at, "a protobuf field", found))
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn cut_short(&self, length: u64, number: u64) -> FileError {
        let expected = format!("{length} bytes of field {number}");
        FileError::truncated(self.format, self.base + self.bytes.len(), expected)
    }

    /// How far the walk has come inside its message.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64> {
        read_varint(self.format, self.bytes, &mut self.at, self.base)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(FileError::truncated(self.format, self.base + self.bytes.len(), format!("{N} bytes"))),
        }
    }
}

impl<'a> Field<'a> {
    /// The content as a message or raw bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> Result<&'a [u8]> {
        match self.content {
            Content::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong_type("bytes")),
        }
    }

    /// The content as a walk over a nested message.
    #[inline]
    pub(crate) fn message(&self) -> Result<Fields<'a>> {
        Ok(Fields::new(self.format, self.bytes()?, self.offset))
    }

    /// The content as text.
    pub(crate) fn text(&self) -> Result<&'a str> {
        from_utf8(self.bytes()?).map_err(|wrong| {
            let at = self.offset + wrong.valid_up_to();
            FileError::malformed(self.format, at, "UTF-8 text", "bytes that are not UTF-8")
        })
    }

    /// The content as an unsigned number.
    #[inline]
    pub(crate) fn unsigned(&self) -> Result<u64> {
        match self.content {
            Content::Varint(value) => Ok(value),
            _ => Err(self.wrong_type("a varint")),
        }
    }

    /// The content as a signed number; protobuf writes `int64` as the same bits.
    #[inline]
    pub(crate) fn signed(&self) -> Result<i64> {
        self.unsigned().map(|value| value as i64)
    }

    /// Appends the numbers of a repeated field, packed or not.
    #[inline(always)]
    pub(crate) fn append_numbers(&self, numbers: &mut Vec<u64>) -> Result<()> {
        match self.content {
            Content::Varint(value) => numbers.push(value),
            Content::Bytes(packed) => {
                let mut at = 0;
                while at < packed.len() {
                    numbers.push(read_varint(self.format, packed, &mut at, self.offset)?);
                }
            }
            _ => return Err(self.wrong_type("packed varints")),
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn wrong_type(&self, expected: &str) -> FileError {
        let expected = format!("{expected} in field {}", self.number);
        let found = match self.content {
            Content::Varint(_) => "a varint",
            Content::Fixed64(_) => "eight fixed bytes",
            Content::Bytes(_) => "bytes",
            Content::Fixed32(_) => "four fixed bytes",
        };
        FileError::malformed(self.format, self.offset, expected, found)
    }
}

/// Reads a varint at `at`; `base` is where `bytes` starts in the file.
#[inline(always)]
pub(crate) fn read_varint(format: &'static str, bytes: &[u8], at: &mut usize, base: usize) -> Result<u64> {
    match bytes.get(*at..) {
        // Most numbers have one byte or two, and no branch depends on which: a processor could only guess it.
        Some([low, high, ..]) if low & high < 0x80 => {
            let has_two = usize::from(low >> 7);
            *at += 1 + has_two;
            let high_bits = (u64::from(*high) << 7) & (has_two as u64).wrapping_neg();
            Ok(u64::from(low & 0x7f) | high_bits)
        }
        Some([last]) if *last < 0x80 => {
            *at += 1;
            Ok(u64::from(*last))
        }
        _ => long_varint(format, bytes, at, base),
    }
}

#[inline(never)]
fn long_varint(format: &'static str, bytes: &[u8], at: &mut usize, base: usize) -> Result<u64> {
    // Nanoseconds and addresses have four bytes to eight: read as one word, again without a branch for each.
    if let Some(chunk) = bytes.get(*at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends != 0 {
            let bits = ends.trailing_zeros() + 1;
            *at += bits as usize / 8;
            return Ok(without_marks(word & (u64::MAX >> (64 - bits))));
        }
    }
    let mut value = 0u64;
    for place in 0..10 {
        let Some(byte) = bytes.get(*at + place) else {
            return Err(FileError::truncated(format, base + bytes.len(), "the rest of a varint"));
        };
        value |= u64::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            *at += place + 1;
            return Ok(value);
        }
    }
    Err(FileError::malformed(format, base + *at, "a varint of at most 10 bytes", "a longer one"))
}

/// The seven lower bits of each byte, side by side.
fn without_marks(word: u64) -> u64 {
    let word = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = (word & 0x0000_3fff_0000_3fff) | (word & 0x3fff_0000_3fff_0000) >> 2;
    (word & 0x0fff_ffff) | (word & 0x0fff_ffff_0000_0000) >> 4
}

/// Appends a varint.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number field, unless it is zero, which protobuf leaves out.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        put_varint(out, field << 3);
        put_varint(out, value);
    }
}

/// Appends a field of bytes, text or a finished message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends packed numbers, unless there are none. `scratch` is overwritten.
pub(crate) fn put_packed(out: &mut Vec<u8>, scratch: &mut Vec<u8>, field: u64, numbers: impl IntoIterator<Item = u64>) {
    scratch.clear();
    for number in numbers {
        put_varint(scratch, number);
    }
    if !scratch.is_empty() {
        put_bytes(out, field, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: numbers of every length, at the end of the bytes and with others behind them; each of them cut short.
    /// Guarantee: what was written is read, no byte more, and what is cut is told.
    #[test]
    fn numbers_of_every_length() {
        for bits in 0..=64u32 {
            for all in [u64::MAX, 0x9249_2492_4924_9249, 1 << 63] {
                let value = all.checked_shr(64 - bits).unwrap_or(0);
                let mut bytes = Vec::new();
                put_varint(&mut bytes, value);
                for behind in [0, 1, 9] {
                    let longer = [&bytes[..], &vec![0xff; behind]].concat();
                    let mut at = 0;
                    assert_eq!((read_varint("test", &longer, &mut at, 0).unwrap(), at), (value, bytes.len()));
                }
                for cut in 0..bytes.len() {
                    assert!(read_varint("test", &bytes[..cut], &mut 0, 0).is_err(), "{value} cut to {cut} bytes");
                }
            }
        }
        assert!(read_varint("test", &[0xff; 11], &mut 0, 0).is_err());
    }
}
