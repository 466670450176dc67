//! Text from bytes that may be anything.

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
}
