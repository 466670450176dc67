//! Anchored regular expressions in RE2's syntax.
//!
//! Patterns made of plain text, alternatives and `.*` at the ends are what people write most; they are matched without
//! an automaton.

use regex::{Regex, RegexBuilder};

/// A compiled pattern that must match the whole text; `.` matches a newline too, as in Prometheus.
#[derive(Debug, Clone)]
pub struct Matcher {
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    OneOf(Vec<String>),
    Prefix(String),
    Suffix(String),
    Contains(String),
    Automaton(Regex),
}

/// Memory an automaton may take.
const SIZE_LIMIT: usize = 1 << 21;

impl Matcher {
    /// Compiles a pattern; the error is one line for a person.
    pub fn new(pattern: &str) -> Result<Self, String> {
        if let Some(how) = without_automaton(pattern) {
            return Ok(Self { how });
        }
        let check = RegexBuilder::new(&as_rust_syntax(pattern)).size_limit(SIZE_LIMIT).nest_limit(64).build();
        let anchored = format!("^(?s:{})$", as_rust_syntax(pattern));
        check
            .and_then(|_| RegexBuilder::new(&anchored).size_limit(SIZE_LIMIT).nest_limit(65).build())
            .map(|regex| Self { how: How::Automaton(regex) })
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => format!("pattern needs more than {limit} bytes"),
                error => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or("pattern is not valid").trim();
                    last.strip_prefix("error: ").unwrap_or(last).to_owned()
                }
            })
    }

    /// Whether the whole text matches.
    #[inline]
    pub fn is_match(&self, text: &str) -> bool {
        match &self.how {
            How::OneOf(words) => words.iter().any(|word| word == text),
            How::Prefix(prefix) => text.starts_with(prefix.as_str()),
            How::Suffix(suffix) => text.ends_with(suffix.as_str()),
            How::Contains(part) => text.contains(part.as_str()),
            How::Automaton(regex) => regex.is_match(text),
        }
    }

    /// The only texts that match, if they can be listed: such a pattern is an equality in disguise.
    pub fn exact_words(&self) -> Option<&[String]> {
        match &self.how {
            How::OneOf(words) => Some(words),
            _ => None,
        }
    }
}

fn is_plain(text: &str) -> bool {
    !text.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'])
}

fn without_automaton(pattern: &str) -> Option<How> {
    if pattern.split('|').all(is_plain) {
        return Some(How::OneOf(pattern.split('|').map(str::to_owned).collect()));
    }
    let after = pattern.strip_prefix(".*");
    let inner = after.unwrap_or(pattern);
    let before = inner.strip_suffix(".*");
    let plain = before.unwrap_or(inner);
    if !is_plain(plain) {
        return None;
    }
    match (after.is_some(), before.is_some()) {
        (true, true) => Some(How::Contains(plain.to_owned())),
        (true, false) => Some(How::Suffix(plain.to_owned())),
        (false, true) => Some(How::Prefix(plain.to_owned())),
        (false, false) => None,
    }
}

/// Rewrites what the two dialects read differently: RE2's `\d \w \s \b` are ASCII, and inside `[…]` the characters
/// `[`, `&&`, `--` and `~~` are ordinary in RE2 but operators in Rust.
fn as_rust_syntax(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_is_empty = false;
    while let Some(c) = chars.next() {
        let starts_class = !in_class && c == '[';
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some('b') if !in_class => out.push_str("(?-u:\\b)"),
                Some('B') if !in_class => out.push_str("(?-u:\\B)"),
                Some('Q') => {
                    let mut quoted = String::new();
                    while let Some(c) = chars.next() {
                        if c == '\\' && chars.peek() == Some(&'E') {
                            chars.next();
                            break;
                        }
                        quoted.push(c);
                    }
                    out.push_str(&regex::escape(&quoted));
                }
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if starts_class => {
                in_class = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                class_is_empty = true;
                continue;
            }
            '[' => {
                if chars.peek() == Some(&':') {
                    out.push('[');
                    for c in chars.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                } else {
                    out.push_str("\\[");
                }
            }
            // A bracket in first place is ordinary.
            ']' if in_class && class_is_empty => out.push_str("\\]"),
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && (class_is_empty || chars.peek() == Some(&'-')) => out.push_str("\\-"),
            c => out.push(c),
        }
        class_is_empty = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: patterns of each shape against texts that match in part, in whole and not at all.
    /// Guarantee: only whole matches count, and the shortcuts agree with the automaton.
    #[test]
    fn matches_whole_texts() {
        let cases = [
            ("GET", "GET", true),
            ("GET", "GET /", false),
            ("GET|POST", "POST", true),
            ("GET.*", "GET /\nx", true),
            (".*x", "a\nx", true),
            (".*mid.*", "amidb", true),
            ("a.c", "a\nc", true),
            ("a|bc.", "bcd", true),
            ("a|bc.", "ad", false),
            ("", "", true),
            ("", "a", false),
            ("(?i)get", "GeT", true),
            ("\\d+", "12", true),
            ("\\d+", "١", false),
            ("[\\d.]+", "1.2", true),
            ("[[]x", "[x", true),
            ("[a&&b]+", "&ab", true),
            ("\\Qa.b\\E+", "a.bb", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Matcher::new(pattern).unwrap().is_match(text), expected, "{pattern} on {text}");
        }
    }

    /// Scenario: patterns that are not valid or too big.
    /// Guarantee: an error of one line, and a group cannot be closed behind the anchors' back.
    #[test]
    fn refuses_bad_patterns() {
        for pattern in ["(", "a)(b", "[", "*", "a{100000}{100000}", "\\"] {
            let error = Matcher::new(pattern).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
