//! The one error of every profile format: where the file stopped making sense, and what should have stood there.

use std::borrow::Cow;
use std::fmt;

/// Why a file was refused. Nothing of a refused file is returned (R7).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{format}: at byte {offset}: expected {expected}, found {found}")]
pub struct FileError {
    /// The format that was being read.
    pub format: &'static str,
    /// Whose fault it is, for callers that answer with a status code.
    pub fault: Fault,
    /// Distance from the start of the uncompressed bytes.
    pub offset: u64,
    /// What should have been there.
    pub expected: Cow<'static, str>,
    /// What was there instead.
    pub found: Cow<'static, str>,
}

/// What kind of wrong a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It ends before it is complete.
    Truncated,
    /// It says something that its format does not allow.
    Malformed,
    /// It is larger than a limit allows; the limit can be raised by configuration.
    TooLarge,
    /// It is in no format that is known here.
    UnknownFormat,
}

/// The result of reading a file.
pub(crate) type Result<T, E = FileError> = std::result::Result<T, E>;

impl FileError {
    /// The bytes ended at `offset` while `expected` was still to come.
    pub fn truncated(format: &'static str, offset: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        let found = Cow::Borrowed("the end of the data");
        Self { format, fault: Fault::Truncated, offset: offset as u64, expected: expected.into(), found }
    }

    /// Something else than `expected` stood at `offset`.
    pub fn malformed(
        format: &'static str,
        offset: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Self {
        Self {
            format,
            fault: Fault::Malformed,
            offset: offset as u64,
            expected: expected.into(),
            found: Cow::Owned(shortened(&found.to_string())),
        }
    }

    /// A limit was reached at `offset`.
    pub fn too_large(format: &'static str, offset: usize, what: &str, limit: u64) -> Self {
        Self {
            format,
            fault: Fault::TooLarge,
            offset: offset as u64,
            expected: Cow::Owned(format!("at most {limit} {what}")),
            found: Cow::Borrowed("more"),
        }
    }
}

/// An excerpt for a message: an error must not carry a hostile megabyte into a log.
fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST).chain("…".chars()).collect()
}

/// The byte at a line and column, both counted from 1, as readers of text name places.
pub(crate) fn byte_offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let mut offset = 0;
    for _ in 1..line {
        offset += memchr::memchr(b'\n', &bytes[offset..]).map_or(0, |length| length + 1);
    }
    (offset + column.saturating_sub(1)).min(bytes.len())
}
