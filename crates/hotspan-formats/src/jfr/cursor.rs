//! Numbers and strings of a chunk.

use std::borrow::Cow;

use super::FORMAT;
use crate::file_error::{FileError, Result};

/// A place in a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'c> {
    bytes: &'c [u8],
    pub(super) at: usize,
    /// Whether whole numbers have variable length; old writers could leave that out.
    compressed: bool,
    /// Where the chunk starts in the file, for errors.
    base: usize,
}

/// A string as it stands in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JfrString<'c> {
    Null,
    Text(Cow<'c, str>),
    /// In the constant pool of strings.
    Constant(u64),
}

impl<'c> Cursor<'c> {
    pub(super) fn new(bytes: &'c [u8], at: usize, compressed: bool, base: usize) -> Self {
        Self { bytes, at, compressed, base }
    }

    /// The same chunk at another place, up to `end`.
    pub(super) fn window(&self, at: usize, end: usize) -> Self {
        Self { bytes: &self.bytes[..end.min(self.bytes.len())], at, ..*self }
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(super) fn offset(&self) -> usize {
        self.base + self.at
    }

    pub(super) fn malformed(&self, expected: &'static str, found: impl std::fmt::Display) -> FileError {
        FileError::malformed(FORMAT, self.offset(), expected, found)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8> {
        let Some(byte) = self.bytes.get(self.at) else {
            return Err(FileError::truncated(FORMAT, self.offset(), "another byte of an event"));
        };
        self.at += 1;
        Ok(*byte)
    }

    pub(super) fn take(&mut self, length: u64) -> Result<&'c [u8]> {
        if length > self.remaining() as u64 {
            let expected = format!("{length} more bytes of an event");
            return Err(FileError::truncated(FORMAT, self.base + self.bytes.len(), expected));
        }
        let taken = &self.bytes[self.at..self.at + length as usize];
        self.at += length as usize;
        Ok(taken)
    }

    /// A whole number of any width up to 8 bytes; `width` counts where numbers are not compressed.
    #[inline]
    pub(super) fn number(&mut self, width: u64) -> Result<u64> {
        if !self.compressed {
            let bytes = self.take(width)?;
            return Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        let mut number = 0u64;
        for place in 0..8 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        // The ninth byte has no continuation bit.
        Ok(number | u64::from(self.byte()?) << 56)
    }

    #[inline]
    pub(super) fn int(&mut self) -> Result<u64> {
        self.number(4)
    }

    #[inline]
    pub(super) fn long(&mut self) -> Result<u64> {
        self.number(8)
    }

    /// How many elements follow. None takes less than a byte, so more than there are bytes can't follow.
    pub(super) fn count(&mut self) -> Result<usize> {
        let at = self.offset();
        let count = self.int()?;
        if count > self.remaining() as u64 {
            let expected = format!("{count} elements of a list");
            return Err(FileError { offset: at as u64, ..FileError::truncated(FORMAT, at, expected) });
        }
        Ok(count as usize)
    }

    pub(super) fn string(&mut self) -> Result<JfrString<'c>> {
        let text = match self.byte()? {
            0 => return Ok(JfrString::Null),
            1 => Cow::Borrowed(""),
            2 => return Ok(JfrString::Constant(self.long()?)),
            3 => {
                let length = self.int()?;
                // Java's encoder may leave half a surrogate pair; a name is no reason to refuse a file.
                String::from_utf8_lossy(self.take(length)?)
            }
            4 => {
                let units: Vec<u16> =
                    (0..self.count()?).map(|_| self.number(2).map(|unit| unit as u16)).collect::<Result<_>>()?;
                Cow::Owned(String::from_utf16_lossy(&units))
            }
            5 => {
                let length = self.int()?;
                Cow::Owned(self.take(length)?.iter().map(|byte| char::from(*byte)).collect())
            }
            other => {
                self.at -= 1;
                return Err(self.malformed("a string encoding from 0 to 5", other));
            }
        };
        Ok(JfrString::Text(text))
    }
}
