//! Reading numbers, durations and strings.

use super::token::{Magnitude, TokenKind};
use crate::error::{SourceRange, TraceqlError};

/// Units of a duration in nanoseconds; longer spellings first, so that `ms` is not read as `m`.
const UNITS: [(&str, u64); 11] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
    ("y", 31_536_000_000_000_000),
];

/// Reads the number or duration that starts at `start`; gives the token and its end.
pub(super) fn read_number(text: &str, start: usize) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let mut at = start;
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    at = digits(at);
    let mut is_float = false;
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        is_float = true;
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            is_float = true;
            at = digits(at + 1 + sign);
        }
    }
    let tail = text[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).map_or(text.len(), |n| at + n);
    if tail > at {
        return read_duration(text, start, tail);
    }
    let written = &text[start..at];
    let range = SourceRange::new(start, at);
    let number = if is_float {
        written.parse().ok().filter(|value: &f64| value.is_finite()).map(Magnitude::Float)
    } else {
        written.parse().ok().map(Magnitude::Int)
    };
    let kind = number
        .map_or_else(|| bad(TraceqlError::at(range, format!("number `{written}` is out of range"))), TokenKind::Number);
    (kind, at)
}

fn read_duration(text: &str, start: usize, end: usize) -> (TokenKind, usize) {
    let mut rest = &text[start..end];
    let mut total = 0f64;
    let mut exact = Some(0u64);
    while !rest.is_empty() {
        let number_len = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_len);
        let unit = UNITS.iter().find(|(unit, _)| {
            after
                .strip_prefix(unit)
                .is_some_and(|tail| tail.is_empty() || tail.starts_with(|c: char| c.is_ascii_digit()))
        });
        let (Some((unit, size)), Ok(value)) = (unit, number.parse::<f64>()) else {
            let at = end - rest.len();
            let error = if after.is_empty() {
                TraceqlError::at(SourceRange::new(at, end), format!("`{rest}` has no unit"))
            } else {
                let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
                let unit_at = end - after.len();
                let range = SourceRange::new(unit_at, unit_at + unit_end);
                TraceqlError::at(range, format!("unknown unit `{}`", &after[..unit_end]))
            };
            return (bad(error.expecting("one of ns, us, ms, s, m, h, d, w, y")), end);
        };
        total += value * *size as f64;
        exact = exact
            .zip(number.parse::<u64>().ok().and_then(|whole| whole.checked_mul(*size)))
            .and_then(|(sum, part)| sum.checked_add(part));
        rest = &after[unit.len()..];
    }
    // Whole numbers are added exactly; only fractions go through floating point.
    let nanos = exact.or_else(|| (total < 9.3e18).then_some(total.round() as u64));
    let kind = match nanos {
        Some(nanos) => TokenKind::Number(Magnitude::Duration(nanos)),
        None => bad(TraceqlError::at(SourceRange::new(start, end), "duration is longer than 292 years")),
    };
    (kind, end)
}

pub(super) fn bad(error: TraceqlError) -> TokenKind {
    TokenKind::Bad(Box::new(error))
}

/// Reads a string in backquotes, which knows no escapes.
pub(super) fn read_raw_string(text: &str, start: usize) -> (TokenKind, usize) {
    match text[start + 1..].find('`') {
        Some(length) => {
            let end = start + 1 + length;
            (TokenKind::Text(text[start + 1..end].to_owned()), end + 1)
        }
        None => {
            let error = TraceqlError::at(SourceRange::new(start, start + 1), "string is not closed");
            (bad(error.expecting("a closing backquote")), text.len())
        }
    }
}

/// Reads a string in double quotes.
pub(super) fn read_string(text: &str, start: usize) -> (TokenKind, usize) {
    let mut value = String::new();
    let mut chars = text[start + 1..].char_indices();
    let mut first_error = None;
    while let Some((offset, c)) = chars.next() {
        let at = start + 1 + offset;
        match c {
            '"' => {
                let kind = first_error.map_or(TokenKind::Text(value), bad);
                return (kind, at + 1);
            }
            '\\' => {
                let escaped = match chars.next().map(|(_, c)| c) {
                    Some('n') => Some('\n'),
                    Some('r') => Some('\r'),
                    Some('t') => Some('\t'),
                    Some('a') => Some('\u{7}'),
                    Some('b') => Some('\u{8}'),
                    Some('f') => Some('\u{c}'),
                    Some('v') => Some('\u{b}'),
                    Some(c @ ('\\' | '"' | '\'')) => Some(c),
                    Some('x') => read_hex(&mut chars, 2),
                    Some('u') => read_hex(&mut chars, 4),
                    Some('U') => read_hex(&mut chars, 8),
                    _ => None,
                };
                match escaped {
                    Some(c) => value.push(c),
                    None if first_error.is_none() => {
                        let shown: String = text[at..].chars().take(2).collect();
                        let range = SourceRange::new(at, at + shown.len());
                        let error = TraceqlError::at(range, format!("unknown escape `{shown}` in string"));
                        first_error = Some(error.expecting("`\\\\` for a backslash, or a raw string in backquotes"));
                    }
                    None => {}
                }
            }
            c => value.push(c),
        }
    }
    let error = TraceqlError::at(SourceRange::new(start, start + 1), "string is not closed");
    (bad(error.expecting("a closing `\"`")), text.len())
}

fn read_hex(chars: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    let mut code = 0;
    for _ in 0..digits {
        let digit = chars.clone().next()?.1.to_digit(16)?;
        chars.next();
        code = code * 16 + digit;
    }
    char::from_u32(code)
}
