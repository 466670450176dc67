//! A cursor over protobuf bytes that borrows everything and allocates nothing.
//!
//! Strictness follows prost, so that both accept the same requests: a known field with another wire type is an
//! error, an unknown one is skipped, groups are skipped, and a varint has at most ten bytes.

use super::fault::{Fault, Problem, Read};

/// The rest of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// Number and wire type of the field that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) wire: u8,
}

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const BYTES: u8 = 2;
const GROUP_START: u8 = 3;
const GROUP_END: u8 = 4;
pub(crate) const FIXED32: u8 = 5;
/// A bit for each wire type but those of groups.
const COMMON_WIRE_TYPES: u8 = 1 << VARINT | 1 << FIXED64 | 1 << BYTES | 1 << FIXED32;

/// As deep as prost follows groups, which nobody sends.
const MAX_GROUP_DEPTH: usize = 100;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field, or none at the end of the message. Groups are skipped: no message here has any.
    #[inline(always)]
    pub(crate) fn field(&mut self) -> Read<Option<Field>> {
        match *self.rest {
            [] => Ok(None),
            // Numbers up to 15 with one of the four wire types in use: nearly every field there is.
            [key @ 8..0x80, ref rest @ ..] if COMMON_WIRE_TYPES >> (key & 7) & 1 == 1 => {
                self.rest = rest;
                Ok(Some(Field { number: u32::from(key >> 3), wire: key & 7 }))
            }
            _ => self.uncommon_field(),
        }
    }

    /// Steps over the key of a field below 16, if that is what comes next.
    ///
    /// Writers put fields in the order of their numbers. A reader of very many small messages first asks for each field in
    /// that order, which a processor foresees far better than a choice among all of them, and then reads what is left.
    #[inline(always)]
    pub(crate) fn next_is(&mut self, number: u32, wire: u8) -> bool {
        match *self.rest {
            [key, ref rest @ ..] if u32::from(key) == number << 3 | u32::from(wire) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline(never)]
    fn uncommon_field(&mut self) -> Read<Option<Field>> {
        while !self.rest.is_empty() {
            let here = self.rest;
            let field = self.key()?;
            match field.wire {
                GROUP_START => self.skip_group(field.number)?,
                GROUP_END => return Fault::broken(Problem::Group, here),
                _ => return Ok(Some(field)),
            }
        }
        Ok(None)
    }

    fn key(&mut self) -> Read<Field> {
        let here = self.rest;
        let key = self.raw_varint()?;
        let field = Field { number: (key >> 3) as u32, wire: (key & 7) as u8 };
        if key > u64::from(u32::MAX) || field.number == 0 || field.wire > FIXED32 {
            return Fault::broken(Problem::FieldNumber, here);
        }
        Ok(field)
    }

    /// A varint, whatever the field's type makes of it.
    #[inline]
    pub(crate) fn varint(&mut self, field: Field) -> Read<u64> {
        if field.wire != VARINT {
            return self.wrong_type(field, "varint (0)");
        }
        self.raw_varint()
    }

    /// A fixed64.
    #[inline]
    pub(crate) fn fixed64(&mut self, field: Field) -> Read<u64> {
        if field.wire != FIXED64 {
            return self.wrong_type(field, "fixed64 (1)");
        }
        self.raw_fixed64()
    }

    /// A fixed64 without a key before it.
    #[inline(always)]
    pub(crate) fn raw_fixed64(&mut self) -> Read<u64> {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<8>() else {
            return self.cut_short(8);
        };
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// A fixed32.
    #[inline]
    pub(crate) fn fixed32(&mut self, field: Field) -> Read<u32> {
        if field.wire != FIXED32 {
            return self.wrong_type(field, "fixed32 (5)");
        }
        let Some((bytes, rest)) = self.rest.split_first_chunk::<4>() else {
            return self.cut_short(4);
        };
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// A length and as many bytes: a text, bytes, a message or packed numbers.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, field: Field) -> Read<&'a [u8]> {
        if field.wire != BYTES {
            return self.wrong_type(field, "length-delimited (2)");
        }
        self.raw_bytes()
    }

    /// A nested message.
    #[inline(always)]
    pub(crate) fn message(&mut self, field: Field) -> Read<Reader<'a>> {
        Ok(Reader { rest: self.bytes(field)? })
    }

    /// An `int32`: the low half of the varint, as every protobuf library reads it.
    #[inline]
    pub(crate) fn int32(&mut self, field: Field) -> Read<i32> {
        Ok(self.varint(field)? as i32)
    }

    /// Numbers of a repeated varint field, packed or not, each handed to `each`.
    #[inline]
    pub(crate) fn varints(&mut self, field: Field, mut each: impl FnMut(u64)) -> Read<()> {
        match field.wire {
            VARINT => each(self.raw_varint()?),
            BYTES => {
                let mut packed = Reader { rest: self.raw_bytes()? };
                while !packed.rest.is_empty() {
                    each(packed.raw_varint()?);
                }
            }
            _ => return self.wrong_type(field, "varint (0) or packed (2)"),
        }
        Ok(())
    }

    /// Numbers of a repeated fixed64 field, packed or not, each handed to `each`.
    #[inline]
    pub(crate) fn fixed64s(&mut self, field: Field, mut each: impl FnMut(u64)) -> Read<()> {
        match field.wire {
            FIXED64 => each(self.fixed64(field)?),
            BYTES => {
                let packed = self.raw_bytes()?;
                let (numbers, rest) = packed.as_chunks::<8>();
                if !rest.is_empty() {
                    return Fault::broken(Problem::CutShort { announced: 8, left: rest.len() }, rest);
                }
                for number in numbers {
                    each(u64::from_le_bytes(*number));
                }
            }
            _ => return self.wrong_type(field, "fixed64 (1) or packed (2)"),
        }
        Ok(())
    }

    /// Passes over a field that nobody asked for.
    #[inline]
    pub(crate) fn skip(&mut self, field: Field) -> Read<()> {
        match field.wire {
            VARINT => self.raw_varint().map(drop),
            FIXED64 => self.fixed64(field).map(drop),
            BYTES => self.raw_bytes().map(drop),
            FIXED32 => self.fixed32(field).map(drop),
            _ => Fault::broken(Problem::Group, self.rest),
        }
    }

    /// The bytes not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A varint without a key before it.
    #[inline(always)]
    pub(crate) fn raw_varint(&mut self) -> Read<u64> {
        match *self.rest {
            [byte, ref rest @ ..] if byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            // Indices into tables mostly have two bytes.
            [low, high, ref rest @ ..] if high < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    /// A varint that is an index into a table of hundreds, or another number that has one byte as often as two: no branch
    /// depends on which, since a processor could only guess it.
    #[inline(always)]
    pub(crate) fn raw_index(&mut self) -> Read<u64> {
        match *self.rest {
            [low, high, ..] if low & high < 0x80 => {
                let has_two = usize::from(low >> 7);
                let high_bits = (u64::from(high) << 7) & (has_two as u64).wrapping_neg();
                self.rest = &self.rest[1 + has_two..];
                Ok(u64::from(low & 0x7f) | high_bits)
            }
            _ => self.raw_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Read<u64> {
        let mut value = 0u64;
        for (at, byte) in self.rest.iter().take(10).enumerate() {
            if at == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Fault::broken(Problem::Varint, self.rest)
    }

    #[inline(always)]
    pub(crate) fn raw_bytes(&mut self) -> Read<&'a [u8]> {
        let length = self.raw_varint()?;
        if length > self.rest.len() as u64 {
            return self.cut_short(length);
        }
        let (bytes, rest) = self.rest.split_at(length as usize);
        self.rest = rest;
        Ok(bytes)
    }

    fn skip_group(&mut self, number: u32) -> Read<()> {
        let mut open = vec![number];
        while let Some(innermost) = open.last().copied() {
            let here = self.rest;
            let field = self.key()?;
            match field.wire {
                GROUP_START if open.len() < MAX_GROUP_DEPTH => open.push(field.number),
                GROUP_END if field.number == innermost => drop(open.pop()),
                GROUP_START | GROUP_END => return Fault::broken(Problem::Group, here),
                _ => self.skip(field)?,
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong_type<T>(&self, field: Field, expected: &'static str) -> Read<T> {
        Fault::broken(Problem::WireType { found: field.wire, expected }, self.rest)
    }

    #[cold]
    fn cut_short<T>(&self, announced: u64) -> Read<T> {
        Fault::broken(Problem::CutShort { announced, left: self.rest.len() }, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: varints at the edges of 64 bits, and one byte beyond.
    /// Guarantee: read exactly, or refused.
    #[test]
    fn varints_at_their_edges() {
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader::new(&most).raw_varint().unwrap(), u64::MAX);
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Reader::new(&beyond).raw_varint().unwrap_err().problem, Problem::Varint);
        assert_eq!(Reader::new(&most[..5]).raw_varint().unwrap_err().problem, Problem::Varint);
        assert_eq!(Reader::new(&[]).raw_varint().unwrap_err().problem, Problem::Varint);
    }

    /// Scenario: indices of every length, shortest and with bytes that add nothing, alone and before others.
    /// Guarantee: read without branches as they are read with them, and as far.
    #[test]
    fn indices_are_varints() {
        let numbers: [&[u8]; 9] =
            [&[0], &[1], &[0x7f], &[0x80, 0], &[0x80, 1], &[0xff, 0x7f], &[0x80, 0x80, 1], &[0xff; 10], &[0x80]];
        for number in numbers {
            for after in [&[][..], &[0x80], &[5, 6]] {
                let bytes = [number, after].concat();
                let (mut varint, mut index) = (Reader::new(&bytes), Reader::new(&bytes));
                let (expected, found) = (varint.raw_varint().ok(), index.raw_index().ok());
                assert_eq!(found, expected, "{bytes:x?}");
                assert!(found.is_none() || index.rest() == varint.rest(), "{bytes:x?}");
            }
        }
    }

    /// Scenario: groups, closed, nested, left open and closed by another number.
    /// Guarantee: the first two are skipped, the others refused.
    #[test]
    fn groups_are_skipped() {
        let nested = [0x0b, 0x13, 0x08, 0x01, 0x14, 0x0c, 0x18, 0x05];
        let mut reader = Reader::new(&nested);
        let field = reader.field().unwrap().unwrap();
        assert_eq!((field.number, reader.varint(field).unwrap()), (3, 5));
        assert!(Reader::new(&[0x0b, 0x08, 0x01]).field().is_err());
        assert!(Reader::new(&[0x0b, 0x14]).field().is_err());
        assert!(Reader::new(&[0x0c]).field().is_err());
        assert!(Reader::new(&[0x0b; 200]).field().is_err());
    }
}
