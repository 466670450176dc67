//! The call frame that both files use.

use std::borrow::Cow;

use hotspan_model::{Frame, FrameKind};

use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};

/// Functions that are states of the engine, not code.
pub(super) const IDLE: &str = "(idle)";
pub(super) const ROOT: &str = "(root)";

/// Reads a call frame object, after its opening bracket.
pub(super) fn read_call_frame<'a>(tokens: &mut Tokens<'a>) -> Result<Frame<'a>> {
    let mut frame = Frame::default();
    while let Token::Key(key) = tokens.require()? {
        let value = tokens.require()?;
        match (key.as_ref(), value) {
            ("functionName", Token::Text(name)) => frame.function = name,
            ("url", Token::Text(url)) => frame.file = strip_scheme(url),
            // Counted from 0, and -1 where there is none.
            ("lineNumber", Token::Number(line)) => frame.start_line = (line + 1.0).clamp(0.0, 4e9) as u32,
            ("columnNumber", Token::Number(column)) => frame.column = (column + 1.0).clamp(0.0, 4e9) as u32,
            (_, other) => tokens.skip(&other)?,
        }
    }
    if frame.function.is_empty() {
        frame.function = Cow::Borrowed("(anonymous)");
    }
    frame.kind =
        if frame.function.starts_with('(') && frame.file.is_empty() { FrameKind::Runtime } else { FrameKind::Managed };
    frame.line = frame.start_line;
    Ok(frame)
}

/// A number of hits or bytes, the token that was read last.
pub(super) fn whole_count(format: &'static str, tokens: &Tokens<'_>, number: f64) -> Result<i64> {
    if (0.0..i64::MAX as f64).contains(&number) {
        return Ok(number as i64);
    }
    Err(FileError::malformed(format, tokens.last_offset(), "a number of 0 or more that fits into 63 bits", number))
}

fn strip_scheme(url: Cow<'_, str>) -> Cow<'_, str> {
    match url {
        Cow::Borrowed(url) => Cow::Borrowed(url.strip_prefix("file://").unwrap_or(url)),
        Cow::Owned(url) => Cow::Owned(url.strip_prefix("file://").unwrap_or(&url).to_owned()),
    }
}
