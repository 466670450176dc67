//! JSON token by token: for files whose nesting follows call stacks, which a recursive reader could not bound.

use std::borrow::Cow;

use crate::file_error::{FileError, Result};
use crate::utf8::without_mark;

/// A piece of JSON. Commas and colons are checked and not reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'a> {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Key(Cow<'a, str>),
    Text(Cow<'a, str>),
    Number(f64),
    Bool,
    Null,
}

/// A walk over the tokens of a text.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    format: &'static str,
    bytes: &'a [u8],
    at: usize,
    /// Where the last token started.
    last: usize,
    /// The brackets that are open: true for objects.
    open: Vec<bool>,
    expects: Expects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Value,
    /// A key, or the end of the object if it has just started.
    Key,
    FirstKey,
    FirstElement,
    CommaOrEnd,
    Nothing,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(format: &'static str, bytes: &'a [u8]) -> Self {
        let start = bytes.len() - without_mark(bytes).len();
        Self { format, bytes, at: start, last: start, open: Vec::new(), expects: Expects::Value }
    }

    /// Where the last token started.
    pub(crate) fn last_offset(&self) -> usize {
        self.last
    }

    /// The last token as it stands in the text: a number may have more digits than fit into a float.
    pub(crate) fn last_text(&self) -> &'a [u8] {
        &self.bytes[self.last..self.at]
    }

    /// The next token, or none after the end of the outermost value.
    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>> {
        self.skip_space();
        self.last = self.at;
        if self.expects == Expects::Nothing {
            return match self.bytes.get(self.at) {
                None => Ok(None),
                Some(_) => Err(self.wrong("the end of the text")),
            };
        }
        if self.expects == Expects::CommaOrEnd {
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    self.skip_space();
                    self.last = self.at;
                    self.expects = if self.in_object() { Expects::Key } else { Expects::Value };
                }
                b'}' | b']' => return self.close().map(Some),
                _ => return Err(self.wrong("a comma or a closing bracket")),
            }
        }
        match (self.expects, self.peek()?) {
            (Expects::FirstKey, b'}') | (Expects::FirstElement, b']') => self.close().map(Some),
            (Expects::FirstKey | Expects::Key, b'"') => {
                let key = self.string()?;
                self.skip_space();
                if self.peek()? != b':' {
                    return Err(self.wrong("a colon"));
                }
                self.at += 1;
                self.expects = Expects::Value;
                Ok(Some(Token::Key(key)))
            }
            (Expects::FirstKey | Expects::Key, _) => Err(self.wrong("a key in quotes")),
            _ => self.value().map(Some),
        }
    }

    /// Skips the value that starts with `first`, whatever it holds.
    pub(crate) fn skip(&mut self, first: &Token<'a>) -> Result<()> {
        if !matches!(first, Token::ObjectStart | Token::ArrayStart) {
            return Ok(());
        }
        let depth = self.open.len() - 1;
        while self.open.len() > depth {
            self.require()?;
        }
        Ok(())
    }

    /// The next token; the end of the text is an error.
    pub(crate) fn require(&mut self) -> Result<Token<'a>> {
        let at = self.at;
        self.next()?.ok_or_else(|| FileError::truncated(self.format, at, "more JSON"))
    }

    /// The next token must be this one.
    pub(crate) fn expect(&mut self, token: &Token<'a>, what: &'static str) -> Result<()> {
        let at = self.at;
        let found = self.require()?;
        if found == *token { Ok(()) } else { Err(FileError::malformed(self.format, at, what, format!("{found:?}"))) }
    }

    fn value(&mut self) -> Result<Token<'a>> {
        let token = match self.peek()? {
            b'{' => return Ok(self.start(true)),
            b'[' => return Ok(self.start(false)),
            b'"' => Token::Text(self.string()?),
            b't' => self.word("true", Token::Bool)?,
            b'f' => self.word("false", Token::Bool)?,
            b'n' => self.word("null", Token::Null)?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(self.wrong("a JSON value")),
        };
        self.after_value();
        Ok(token)
    }

    fn start(&mut self, object: bool) -> Token<'a> {
        self.at += 1;
        self.open.push(object);
        self.expects = if object { Expects::FirstKey } else { Expects::FirstElement };
        if object { Token::ObjectStart } else { Token::ArrayStart }
    }

    fn close(&mut self) -> Result<Token<'a>> {
        let object = self.in_object();
        if self.peek()? != if object { b'}' } else { b']' } {
            return Err(self.wrong(if object { "}" } else { "]" }));
        }
        self.at += 1;
        self.open.pop();
        self.after_value();
        Ok(if object { Token::ObjectEnd } else { Token::ArrayEnd })
    }

    fn after_value(&mut self) {
        self.expects = if self.open.is_empty() { Expects::Nothing } else { Expects::CommaOrEnd };
    }

    fn in_object(&self) -> bool {
        self.open.last().copied().unwrap_or(false)
    }

    fn word(&mut self, word: &'static str, token: Token<'a>) -> Result<Token<'a>> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong(word));
        }
        self.at += word.len();
        Ok(token)
    }

    fn number(&mut self) -> Result<Token<'a>> {
        let rest = &self.bytes[self.at..];
        let length =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count();
        let number = std::str::from_utf8(&rest[..length]).ok().and_then(|text| text.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite()).ok_or_else(|| self.wrong("a number"))?;
        self.at += length;
        Ok(Token::Number(number))
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at;
        let body = &self.bytes[start + 1..];
        let mut at = 0;
        let mut escaped = false;
        loop {
            match memchr::memchr2(b'"', b'\\', &body[at..]) {
                Some(found) if body[at + found] == b'\\' => {
                    escaped = true;
                    at += found + 2;
                    if at > body.len() {
                        return Err(FileError::truncated(self.format, self.bytes.len(), "the end of a string"));
                    }
                }
                Some(found) => {
                    at += found;
                    break;
                }
                None => return Err(FileError::truncated(self.format, self.bytes.len(), "the end of a string")),
            }
        }
        self.at = start + at + 2;
        if escaped {
            let quoted = &self.bytes[start..self.at];
            let text: String = serde_json::from_slice(quoted)
                .map_err(|error| FileError::malformed(self.format, start, "a JSON string", error))?;
            return Ok(Cow::Owned(text));
        }
        match std::str::from_utf8(&body[..at]) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) => Err(FileError::malformed(self.format, start, "text in UTF-8", "other bytes")),
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8> {
        let end = || FileError::truncated(self.format, self.at, "more JSON");
        self.bytes.get(self.at).copied().ok_or_else(end)
    }

    fn wrong(&self, expected: &'static str) -> FileError {
        let found = self.bytes.get(self.at).map_or("the end".to_owned(), |byte| format!("{:?}", char::from(*byte)));
        FileError::malformed(self.format, self.at, expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Result<usize> {
        let mut tokens = Tokens::new("json", text.as_bytes());
        let mut count = 0;
        while tokens.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Scenario: the corners of the grammar, and nesting that no recursion would survive.
    /// Guarantee: valid text is walked to its end, anything else is refused with its place.
    #[test]
    fn grammar() {
        assert_eq!(count(r#" {"a":[1,-2.5e3,"x\"y\u00e9",true,null],"b":{}} "#), Ok(13));
        assert_eq!(count(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), Ok(200_000));
        for wrong in
            ["", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "[1}", "1 2", "\"", "\"\\", "nul", "-", "1e999", "{a:1}"]
        {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert_eq!(count("[1 2]").unwrap_err().offset, 3);
    }
}
