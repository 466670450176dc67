//! Attribute values as OTLP has them, borrowed from wherever they were read, and their one text form.
//!
//! The lake keeps attribute sets as text in JSON, so that any reader of the files understands them. The form
//! is canonical: a value has exactly one text, integers and doubles stay apart (a double always has a point
//! or an exponent), and what JSON lacks is spelled with a `$` key (`{"$bytes":"…"}`, `{"$double":"NaN"}`).

use std::borrow::Cow;
use std::fmt::Write as _;

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute<'a> {
    /// The key; unique inside its set as OTLP demands, though nothing here relies on it.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Value<'a>,
}

impl<'a> Attribute<'a> {
    /// An attribute with a borrowed key.
    pub fn new(key: &'a str, value: Value<'a>) -> Self {
        Self { key: Cow::Borrowed(key), value }
    }
}

/// A value of any OTLP type.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value<'a> {
    /// No value at all: an `AnyValue` with no field set.
    #[default]
    Empty,
    /// Text.
    String(Cow<'a, str>),
    /// True or false.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// Raw bytes.
    Bytes(Cow<'a, [u8]>),
    /// Values in order, of any types.
    Array(Vec<Value<'a>>),
    /// A nested set of attributes.
    KeyValues(Vec<Attribute<'a>>),
}

impl<'a> Value<'a> {
    /// A borrowed text.
    pub fn str(text: &'a str) -> Self {
        Self::String(Cow::Borrowed(text))
    }

    /// The text, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Appends the canonical JSON of this value.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Empty => out.push_str("null"),
            Self::String(text) => write_json_string(text, out),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Int(value) => out.push_str(itoa::Buffer::new().format(*value)),
            Self::Double(value) => write_json_double(*value, out),
            Self::Bytes(bytes) => {
                out.push_str("{\"$bytes\":\"");
                write_base64(bytes, out);
                out.push_str("\"}");
            }
            Self::Array(values) => {
                out.push('[');
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    value.write_json(out);
                }
                out.push(']');
            }
            Self::KeyValues(attributes) => write_json_object(attributes, out),
        }
    }

    /// The text of this value as a label: strings bare, everything else as its JSON.
    pub fn to_label(&self) -> Cow<'_, str> {
        match self {
            Self::String(text) => Cow::Borrowed(text),
            Self::Empty => Cow::Borrowed(""),
            other => {
                let mut text = String::new();
                other.write_json(&mut text);
                Cow::Owned(text)
            }
        }
    }
}

/// Appends a set of attributes as a JSON object.
///
/// A key that starts with `$` gets a second one, so that a nested set can't be mistaken for bytes.
pub fn write_json_object(attributes: &[Attribute<'_>], out: &mut String) {
    out.push('{');
    for (index, attribute) in attributes.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if attribute.key.starts_with('$') {
            write_json_string(&format!("${}", attribute.key), out);
        } else {
            write_json_string(&attribute.key, out);
        }
        out.push(':');
        attribute.value.write_json(out);
    }
    out.push('}');
}

/// Appends a JSON string, quotes included.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    // Nearly every text is clean, and looking at all of its bytes at once is cheaper than stopping at the first that is not.
    let is_clean = !text.bytes().fold(false, |found, byte| found | (byte < 0x20) | (byte == b'"') | (byte == b'\\'));
    if is_clean {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut clean_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[clean_from..at]);
        if escape.is_empty() {
            // Writing into a String can't fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        clean_from = at + 1;
    }
    out.push_str(&text[clean_from..]);
    out.push('"');
}

fn write_json_double(value: f64, out: &mut String) {
    if value.is_finite() {
        // `{:?}` is the shortest text that reads back as the same double, and always has a point or an exponent. Writing into a
        // String can't fail.
        let _ = write!(out, "{value:?}");
    } else {
        let name = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        let _ = write!(out, "{{\"$double\":\"{name}\"}}");
    }
}

fn write_base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = if place <= chunk.len() { DIGITS[(word >> (18 - 6 * place)) as usize & 63] } else { b'=' };
            out.push(char::from(digit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &Value<'_>) -> String {
        let mut text = String::new();
        value.write_json(&mut text);
        text
    }

    /// Scenario: values whose JSON could be confused. Guarantee: each type keeps a form of its own.
    #[test]
    fn types_stay_apart() {
        assert_eq!(json(&Value::Int(12)), "12");
        assert_eq!(json(&Value::Double(12.0)), "12.0");
        assert_eq!(json(&Value::Double(1e300)), "1e300");
        assert_eq!(json(&Value::Double(f64::NAN)), "{\"$double\":\"NaN\"}");
        assert_eq!(json(&Value::str("a\"b\\\n\u{1}é")), "\"a\\\"b\\\\\\n\\u0001é\"");
        assert_eq!(json(&Value::Bytes(Cow::Borrowed(b"ab"))), "{\"$bytes\":\"YWI=\"}");
        let nested = Value::KeyValues(vec![Attribute::new("$bytes", Value::str("x"))]);
        assert_eq!(json(&nested), "{\"$$bytes\":\"x\"}");
        assert_eq!(json(&Value::Array(vec![Value::Empty, Value::Bool(true)])), "[null,true]");
    }
}
