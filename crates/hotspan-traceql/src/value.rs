//! Values of fields at run time: borrowed from a source while evaluating, owned in results.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use hotspan_model::{SpanId, TraceId};

use crate::ast::{CompareOp, Kind, Literal, Status, write_duration, write_keyword, write_quoted};

/// The value of a field for one span, borrowed from its source: reading one allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    /// The span does not have the field.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Nanoseconds.
    Duration(i64),
    /// Text.
    Str(&'a str),
    /// Outcome of the span.
    Status(Status),
    /// Role of the span.
    Kind(Kind),
    /// A span id; compares as its hexadecimal digits.
    SpanId(SpanId),
    /// A trace id; compares as its hexadecimal digits.
    TraceId(TraceId),
    /// This many values, to be read with [`SpanSource::element`](crate::SpanSource::element): an array attribute, or a
    /// field that a span has several of (events, links, functions).
    Many(usize),
}

/// An owned value, in labels and results.
///
/// Equality, order and hash take part in grouping: floats are equal if their bits are.
#[derive(Debug, Clone)]
pub enum Value {
    /// No value.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Nanoseconds.
    Duration(i64),
    /// Text.
    Str(String),
    /// Outcome of a span.
    Status(Status),
    /// Role of a span.
    Kind(Kind),
    /// Several values.
    Array(Vec<Value>),
}

impl Value {
    /// The value a literal stands for.
    pub fn from_literal(literal: &Literal) -> Self {
        match literal {
            Literal::Nil => Self::Nil,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Float(value) => Self::Float(*value),
            Literal::Duration(nanos) => Self::Duration(*nanos),
            Literal::Str(text) => Self::Str(text.clone()),
            Literal::Status(status) => Self::Status(*status),
            Literal::Kind(kind) => Self::Kind(*kind),
        }
    }

    /// Borrows it; an array has no borrowed form and reads as nil.
    #[inline]
    pub fn as_field_value(&self) -> FieldValue<'_> {
        match self {
            Self::Nil | Self::Array(_) => FieldValue::Nil,
            Self::Bool(value) => FieldValue::Bool(*value),
            Self::Int(value) => FieldValue::Int(*value),
            Self::Float(value) => FieldValue::Float(*value),
            Self::Duration(nanos) => FieldValue::Duration(*nanos),
            Self::Str(text) => FieldValue::Str(text),
            Self::Status(status) => FieldValue::Status(*status),
            Self::Kind(kind) => FieldValue::Kind(*kind),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Nil => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Duration(_) => 4,
            Self::Str(_) => 5,
            Self::Status(_) => 6,
            Self::Kind(_) => 7,
            Self::Array(_) => 8,
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(right),
            (Self::Int(left), Self::Int(right)) | (Self::Duration(left), Self::Duration(right)) => left.cmp(right),
            (Self::Float(left), Self::Float(right)) => left.total_cmp(right),
            (Self::Str(left), Self::Str(right)) => left.cmp(right),
            (Self::Status(left), Self::Status(right)) => left.cmp(right),
            (Self::Kind(left), Self::Kind(right)) => left.cmp(right),
            (Self::Array(left), Self::Array(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Array(values) => {
                self.rank().hash(state);
                values.hash(state);
            }
            scalar => scalar.as_field_value().hash_into(state),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => out.write_str("nil"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Float(value) => write!(out, "{value:?}"),
            Self::Duration(nanos) => write_duration(out, *nanos),
            Self::Str(text) => write_quoted(out, text),
            Self::Status(status) => write_keyword(out, *status),
            Self::Kind(kind) => write_keyword(out, *kind),
            Self::Array(values) => {
                out.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    let separator = if at > 0 { ", " } else { "" };
                    write!(out, "{separator}{value}")?;
                }
                out.write_str("]")
            }
        }
    }
}

impl FieldValue<'_> {
    /// Copies it; [`FieldValue::Many`] has its elements elsewhere and becomes nil.
    pub fn to_value(self) -> Value {
        match self {
            Self::Nil | Self::Many(_) => Value::Nil,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Float(value) => Value::Float(value),
            Self::Duration(nanos) => Value::Duration(nanos),
            Self::Str(text) => Value::Str(text.to_owned()),
            Self::Status(status) => Value::Status(status),
            Self::Kind(kind) => Value::Kind(kind),
            Self::SpanId(id) => Value::Str(id.to_string()),
            Self::TraceId(id) => Value::Str(id.to_string()),
        }
    }

    /// Hashes as the [`Value`] it would become, without making it.
    pub(crate) fn hash_into<H: Hasher>(self, state: &mut H) {
        match self {
            Self::Nil | Self::Many(_) => 0u8.hash(state),
            Self::Bool(value) => (1u8, value).hash(state),
            Self::Int(value) => (2u8, value).hash(state),
            Self::Float(value) => (3u8, value.to_bits()).hash(state),
            Self::Duration(nanos) => (4u8, nanos).hash(state),
            Self::Str(text) => (5u8, text).hash(state),
            Self::Status(status) => (6u8, status).hash(state),
            Self::Kind(kind) => (7u8, kind).hash(state),
            Self::SpanId(id) => with_hex(&id.0, |text| (5u8, text).hash(state)),
            Self::TraceId(id) => with_hex(&id.0, |text| (5u8, text).hash(state)),
        }
    }

    /// Whether it equals an owned value, in the sense of grouping.
    pub(crate) fn same_as(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Nil | Self::Many(_), Value::Nil) => true,
            (Self::Bool(left), Value::Bool(right)) => left == *right,
            (Self::Int(left), Value::Int(right)) | (Self::Duration(left), Value::Duration(right)) => left == *right,
            (Self::Float(left), Value::Float(right)) => left.to_bits() == right.to_bits(),
            (Self::Str(left), Value::Str(right)) => left == right,
            (Self::Status(left), Value::Status(right)) => left == *right,
            (Self::Kind(left), Value::Kind(right)) => left == *right,
            (Self::SpanId(id), Value::Str(right)) => with_hex(&id.0, |text| text == right),
            (Self::TraceId(id), Value::Str(right)) => with_hex(&id.0, |text| text == right),
            _ => false,
        }
    }

    /// The number it stands for in calculations: durations in nanoseconds.
    #[inline]
    pub(crate) fn as_number(self) -> Option<f64> {
        match self {
            Self::Int(value) | Self::Duration(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Calls `test` with the text, if it is text or an id.
    #[inline]
    pub(crate) fn test_text(self, test: impl FnOnce(&str) -> bool) -> bool {
        match self {
            Self::Str(text) => test(text),
            Self::SpanId(id) => with_hex(&id.0, test),
            Self::TraceId(id) => with_hex(&id.0, test),
            _ => false,
        }
    }
}

/// Calls `use_text` with the bytes in hexadecimal, written on the stack.
fn with_hex<R>(bytes: &[u8], use_text: impl FnOnce(&str) -> R) -> R {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut buffer = [0u8; 32];
    for (at, byte) in bytes.iter().take(16).enumerate() {
        buffer[2 * at] = DIGITS[usize::from(byte >> 4)];
        buffer[2 * at + 1] = DIGITS[usize::from(byte & 15)];
    }
    // Only ASCII digits were written, so this never falls back.
    use_text(std::str::from_utf8(&buffer[..2 * bytes.len().min(16)]).unwrap_or_default())
}

/// Compares two single values. Values that cannot be compared (nil, different types) satisfy no operator, not even
/// `!=`.
#[inline]
pub(crate) fn compare(lhs: FieldValue<'_>, op: CompareOp, rhs: FieldValue<'_>) -> bool {
    use FieldValue::{Bool, Duration, Float, Int, Kind, SpanId, Status, Str, TraceId};
    match (lhs, rhs) {
        (Int(left) | Duration(left), Int(right) | Duration(right)) => ordered(op, left.cmp(&right)),
        (Int(_) | Duration(_) | Float(_), Int(_) | Duration(_) | Float(_)) => {
            compare_mixed(lhs, rhs).is_some_and(|ordering| ordered(op, ordering))
        }
        (Str(left), Str(right)) => match op {
            CompareOp::Eq => left == right,
            CompareOp::NotEq => left != right,
            _ => ordered(op, left.cmp(right)),
        },
        (Bool(left), Bool(right)) => equality(op, left == right),
        (Status(left), Status(right)) => equality(op, left == right),
        (Status(status), Int(code)) | (Int(code), Status(status)) => equality(op, i64::from(status.number()) == code),
        (Kind(left), Kind(right)) => equality(op, left == right),
        (Kind(kind), Int(number)) | (Int(number), Kind(kind)) => equality(op, i64::from(kind.number()) == number),
        (SpanId(left), SpanId(right)) => ordered(op, left.cmp(&right)),
        (TraceId(left), TraceId(right)) => ordered(op, left.cmp(&right)),
        (SpanId(_) | TraceId(_), Str(right)) => lhs.test_text(|left| ordered(op, left.cmp(right))),
        (Str(left), SpanId(_) | TraceId(_)) => rhs.test_text(|right| ordered(op, left.cmp(right))),
        _ => false,
    }
}

/// Orders an integer against a float without losing the integer's low digits.
fn compare_mixed(lhs: FieldValue<'_>, rhs: FieldValue<'_>) -> Option<Ordering> {
    use FieldValue::{Duration, Float, Int};
    match (lhs, rhs) {
        (Int(int) | Duration(int), Float(float)) => int_against_float(int, float),
        (Float(float), Int(int) | Duration(int)) => int_against_float(int, float).map(Ordering::reverse),
        (Float(left), Float(right)) => left.partial_cmp(&right),
        _ => None,
    }
}

fn int_against_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if float < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(int.cmp(&(whole as i64)).then(0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)))
}

#[inline]
fn ordered(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Eq => ordering.is_eq(),
        CompareOp::NotEq => ordering.is_ne(),
        CompareOp::Less => ordering.is_lt(),
        CompareOp::LessEq => ordering.is_le(),
        CompareOp::Greater => ordering.is_gt(),
        CompareOp::GreaterEq => ordering.is_ge(),
        CompareOp::Match | CompareOp::NotMatch => false,
    }
}

#[inline]
fn equality(op: CompareOp, equal: bool) -> bool {
    match op {
        CompareOp::Eq => equal,
        CompareOp::NotEq => !equal,
        _ => false,
    }
}
