//! What is wrong with a field, and the path to it, put together while the error travels outward.

use std::fmt;

use super::field_path;
use crate::{DecodeError, OutsideWindow};

/// The result of reading a field. The error is boxed: it is rare, and the happy path should stay in registers.
pub(crate) type Read<T> = Result<T, Box<Fault>>;

/// A problem and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) problem: Problem,
    /// Address of the byte, to be compared with that of the request; only meaningful for broken bytes.
    address: usize,
    /// The innermost step first.
    path: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Element(&'static str, usize),
}

/// What can be wrong. Written as the end of a sentence that starts with the field's path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    // Broken bytes: the request is refused as a whole.
    #[error("is cut short: {announced} bytes announced, {left} left")]
    CutShort { announced: u64, left: usize },
    #[error("has a varint that does not end within 10 bytes or overflows 64 bits")]
    Varint,
    #[error("is followed by a field number that protobuf does not allow")]
    FieldNumber,
    #[error("has wire type {found}, {expected} expected")]
    WireType { found: u8, expected: &'static str },
    #[error("has a group that is not closed, closed twice or nested too deep")]
    Group,

    // Well formed, but senseless: the item is refused alone.
    #[error("has {found} bytes, {expected} expected")]
    IdSize { found: usize, expected: usize },
    #[error("is all zeros")]
    ZeroId,
    #[error("is {found}, which is after the year 2262")]
    Time { found: u64 },
    #[error("{0}")]
    NoTime(OutsideWindow),
    #[error("{0}")]
    TooOld(OutsideWindow),
    #[error("{0}")]
    TooFarAhead(OutsideWindow),
    #[error("nests deeper than {limit} levels (limits.max_nesting)")]
    Nesting { limit: usize },
    #[error("would take more than {limit} bytes of memory")]
    Size { limit: usize },
    #[error("is {found}, but {table} has {len} entries")]
    Index { found: i64, table: &'static str, len: usize },
    #[error("has {values} values and {timestamps} timestamps; equally many, or only one of the two, expected")]
    Shape { values: usize, timestamps: usize },
    #[error("has the value {found}; a difference of two profiles can't be stored")]
    Negative { found: i64 },
    #[error("has neither values nor timestamps")]
    NoValue,
    #[error("has more texts that are not UTF-8 than can be repaired")]
    Repairs,
    #[error("uses a dictionary entry that is broken: {0}")]
    Dictionary(String),

    // Kept, but not as it was sent.
    #[error("has a text that is not UTF-8; the wrong bytes were replaced")]
    NotUtf8,
    #[error("has a text longer than {limit} bytes, which was cut")]
    TooLong { limit: usize },
    #[error(
        "has stacks of more than {limit} frames, of which {cut} in all were cut on the root's side (limits.max_stack_depth)"
    )]
    TooDeep { limit: usize, cut: u64 },
    #[error(
        "has a kind or a status code that is neither a name that OTLP has nor a number from -128 to 127; 0 was kept instead"
    )]
    Code,
    #[error("is {found}, which is after the year 2262; the time of arrival was taken instead")]
    ProfileTime { found: u64 },
    #[error("has {found} bytes, 16 expected; the profile was kept without it")]
    ProfileId { found: usize },

    // Not a single item's fault.
    #[error("has no {field}, and nothing else that is known here; nothing was stored")]
    NothingKnown { field: &'static str },
    #[error("would take more than {limit} bytes of memory once decoded")]
    Expands { limit: usize },
}

impl From<OutsideWindow> for Problem {
    fn from(outside: OutsideWindow) -> Self {
        match outside {
            OutsideWindow::NotSet => Self::NoTime(outside),
            OutsideWindow::OtherUnit { .. } | OutsideWindow::TooOld { .. } => Self::TooOld(outside),
            OutsideWindow::TooFarAhead { .. } => Self::TooFarAhead(outside),
        }
    }
}

impl Problem {
    /// Whether all that is wrong is the time.
    pub(crate) fn is_untimely(&self) -> bool {
        matches!(self, Self::NoTime(_) | Self::TooOld(_) | Self::TooFarAhead(_))
    }

    /// Whether the whole request has to be refused for it.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::CutShort { .. }
                | Self::Varint
                | Self::FieldNumber
                | Self::WireType { .. }
                | Self::Group
                | Self::Expands { .. }
        )
    }
}

impl Fault {
    /// A problem with bytes, at the first of `at`.
    #[cold]
    pub(crate) fn broken<T>(problem: Problem, at: &[u8]) -> Read<T> {
        Err(Box::new(Self { problem, address: at.as_ptr() as usize, path: Vec::new() }))
    }

    /// A problem with the meaning of a field.
    #[cold]
    pub(crate) fn new(problem: Problem) -> Box<Self> {
        Box::new(Self { problem, address: 0, path: Vec::new() })
    }

    /// The field's own name, without the way to it.
    pub(crate) fn leaf(&self) -> &'static str {
        match self.path.first() {
            Some(Step::Field(name) | Step::Element(name, _)) => name,
            None => "request",
        }
    }

    /// The error that refuses the request.
    pub(crate) fn into_error(self, request: &[u8]) -> DecodeError {
        if let Problem::Expands { limit } = self.problem {
            return DecodeError::Expands { limit };
        }
        let offset = self.address.wrapping_sub(request.as_ptr() as usize).min(request.len());
        DecodeError::Malformed { path: self.path_text(), problem: self.problem.to_string(), offset }
    }

    fn path_text(&self) -> String {
        if self.path.is_empty() {
            return "request".to_owned();
        }
        let steps: Vec<String> = self.path.iter().rev().map(Step::to_string).collect();
        field_path::shortened(steps.join("."))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.path_text(), self.problem)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => out.write_str(name),
            Self::Element(name, index) => write!(out, "{name}[{index}]"),
        }
    }
}

/// Adds a step of the path to an error on its way out.
pub(crate) trait Locate {
    /// The problem is in this field.
    fn field(self, name: &'static str) -> Self;
    /// The problem is in this element of a repeated field.
    fn element(self, name: &'static str, index: usize) -> Self;
}

impl Locate for Box<Fault> {
    #[cold]
    fn field(mut self, name: &'static str) -> Self {
        self.path.push(Step::Field(name));
        self
    }

    #[cold]
    fn element(mut self, name: &'static str, index: usize) -> Self {
        self.path.push(Step::Element(name, index));
        self
    }
}

impl<T> Locate for Read<T> {
    #[inline]
    fn field(self, name: &'static str) -> Self {
        self.map_err(|fault| fault.field(name))
    }

    #[inline]
    fn element(self, name: &'static str, index: usize) -> Self {
        self.map_err(|fault| fault.element(name, index))
    }
}
