//! Text from bytes that may be anything.

use std::ops::Range;
use std::str::Utf8Error;

/// The bytes as text. Nearly all that senders write is short and ASCII, which the check of the standard library, made for
/// long texts, takes byte by byte.
#[inline]
pub(crate) fn from_utf8(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

/// Texts that lie near each other, as those of a table of strings do, with a few bytes of ASCII between them: they are checked
/// together, which takes a tenth of the time.
#[derive(Debug)]
pub(crate) struct Neighbours<'a> {
    bytes: &'a [u8],
    /// What is known to be text, and where it starts.
    checked: &'a str,
    start: usize,
}

impl<'a> Neighbours<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, checked: "", start: 0 }
    }

    /// The text in a range of the bytes. Call it for texts in the order in which they lie.
    #[inline]
    pub(crate) fn text(&mut self, range: Range<usize>) -> Option<&'a str> {
        self.checked_text(&range).or_else(|| {
            // What comes next was not looked at yet, unless this is no text: then it is the last one that is asked for.
            let rest = self.bytes.get(range.start..)?;
            let end = std::str::from_utf8(rest).map_or_else(|wrong| wrong.valid_up_to(), str::len);
            (self.checked, self.start) = (std::str::from_utf8(&rest[..end]).ok()?, range.start);
            self.checked_text(&range)
        })
    }

    #[inline]
    fn checked_text(&self, range: &Range<usize>) -> Option<&'a str> {
        self.checked.get(range.start.checked_sub(self.start)?..range.end.checked_sub(self.start)?)
    }
}

/// Text without the byte order mark that some editors write before it. It says no more than that this is UTF-8.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: texts of every length around what is looked at at once, with one byte somewhere that is not ASCII: part of a
    /// character, or of none. Guarantee: what the standard library says.
    #[test]
    fn as_the_standard_library_says() {
        for length in 0..40 {
            let ascii = vec![b'a'; length];
            assert_eq!(from_utf8(&ascii), std::str::from_utf8(&ascii));
            for at in 0..length {
                for other in ["\u{e9}".as_bytes(), b"\xc3", b"\xff", b"\x80"] {
                    let mut bytes = ascii.clone();
                    bytes.splice(at..=at, other.iter().copied());
                    assert_eq!(from_utf8(&bytes), std::str::from_utf8(&bytes));
                }
            }
        }
    }

    /// Scenario: texts behind one another, ASCII and not, short, empty and too long for a length of one byte, with bytes that
    /// are no text between some; one that is no text.
    /// Guarantee: each is given as it is, the last is not.
    #[test]
    fn neighbours_are_checked_together() {
        let long = "long ".repeat(100);
        let texts = ["", "main", "\u{e9}t\u{e9}", &long, "after", "\u{1f525}", ""];
        let mut bytes = Vec::new();
        let mut ranges = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            bytes.extend_from_slice(if number % 3 == 2 { b"\xff\x80" } else { b"2\x05" });
            ranges.push(bytes.len()..bytes.len() + text.len());
            bytes.extend_from_slice(text.as_bytes());
        }
        let wrong = bytes.len()..bytes.len() + 3;
        bytes.extend_from_slice(b"a\xe9b");
        let mut neighbours = Neighbours::new(&bytes);
        let found: Vec<_> = ranges.into_iter().map(|range| neighbours.text(range)).collect();
        assert_eq!(found, texts.map(Some));
        assert_eq!((neighbours.text(wrong), neighbours.text(bytes.len()..bytes.len() + 1)), (None, None));
    }
}
