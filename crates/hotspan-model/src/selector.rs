//! Label selectors as Prometheus and Pyroscope write them: `{service_name="shop", version!~"1\\..*"}`.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::labels::Labels;

/// More matchers than a person or a dashboard writes. Each may be a pattern, which takes milliseconds to compile.
const MAX_MATCHERS: usize = 100;

/// Memory that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What is wrong with a selector, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

type Result<T> = std::result::Result<T, SelectorError>;

/// Labels that profiles must have. Without matchers, every series fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// What each label must be; all must hold.
    pub matchers: Vec<Matcher>,
}

/// What one label must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The label's name.
    pub name: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Equal(String),
    NotEqual(String),
    StartsWith(String),
    Matches(Pattern),
    MatchesNot(Pattern),
}

/// A regular expression for a whole value.
#[derive(Debug, Clone)]
struct Pattern {
    written: String,
    whole: Regex,
}

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    fn new(written: String) -> std::result::Result<Self, String> {
        // By itself first: `a)|(b` would get the parentheses that it lacks from those around it, and match any part.
        regex_syntax::ast::parse::Parser::new().parse(&written).map_err(|error| error.to_string())?;
        let anchored = RegexBuilder::new(&format!("^(?s:{written})$")).size_limit(MAX_PATTERN_BYTES).build();
        let whole = anchored.map_err(|error| error.to_string())?;
        Ok(Self { written, whole })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Pattern {}

impl Matcher {
    /// The label must have this value; an empty value also fits a label that is not there.
    pub fn equal(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), test: Test::Equal(value.into()) }
    }

    /// The label's value must start with this.
    pub fn starts_with(name: impl Into<String>, start: impl Into<String>) -> Self {
        Self { name: name.into(), test: Test::StartsWith(start.into()) }
    }

    /// The value the label must be equal to, if this matcher says so.
    pub fn equal_value(&self) -> Option<&str> {
        match &self.test {
            Test::Equal(value) => Some(value),
            _ => None,
        }
    }

    /// What the label must be, without its name: `!~"1\\..*"`.
    pub fn condition(&self) -> String {
        match &self.test {
            Test::Equal(value) => format!("={}", quoted(value)),
            Test::NotEqual(value) => format!("!={}", quoted(value)),
            Test::StartsWith(start) => format!("=~{}", quoted(&format!("{}.*", regex::escape(start)))),
            Test::Matches(pattern) => format!("=~{}", quoted(&pattern.written)),
            Test::MatchesNot(pattern) => format!("!~{}", quoted(&pattern.written)),
        }
    }

    fn fits(&self, labels: &Labels) -> bool {
        // As in Prometheus, a label that is not there counts as empty.
        let value = label_value(labels, &self.name).unwrap_or_default();
        match &self.test {
            Test::Equal(wanted) => value == wanted,
            Test::NotEqual(unwanted) => value != unwanted,
            Test::StartsWith(start) => value.starts_with(start.as_str()),
            Test::Matches(pattern) => pattern.whole.is_match(value),
            Test::MatchesNot(pattern) => !pattern.whole.is_match(value),
        }
    }
}

/// The value of a label, or of one that follows from others, or else of the one that has dots where this name has
/// underscores: Grafana's data source can write no dots, and its "profiles for this span" asks for `service_namespace`.
pub fn label_value<'l>(labels: &'l Labels, name: &str) -> Option<&'l str> {
    labels.get(name).or_else(|| labels.derived(name)).or_else(|| {
        let is_same = |known: &str| known.contains('.') && known.len() == name.len() && plain_name(known) == name;
        labels.iter().find(|(known, _)| is_same(known)).map(|(_, value)| value)
    })
}

/// A label's name for those who can write no dots.
pub fn plain_name(name: &str) -> String {
    name.replace('.', "_")
}

impl fmt::Display for Selector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matchers: Vec<String> = self.matchers.iter().map(ToString::to_string).collect();
        write!(out, "{{{}}}", matchers.join(", "))
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = self.name.trim() == self.name && !self.name.contains(ends_bare_name);
        let name = if is_bare { self.name.clone() } else { quoted(&self.name) };
        write!(out, "{name}{}", self.condition())
    }
}

/// A text in quotes, with the escapes that are read.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n").replace('\t', r"\t");
    format!("\"{escaped}\"")
}

fn ends_bare_value(c: char) -> bool {
    matches!(c, ',' | '{' | '}')
}

fn ends_bare_name(c: char) -> bool {
    ends_bare_value(c) || matches!(c, '=' | '!' | '~' | '"')
}

impl Selector {
    /// Whether a label set has what the selector asks for.
    pub fn fits(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|matcher| matcher.fits(labels))
    }

    /// Adds a matcher.
    #[must_use]
    pub fn and(mut self, matcher: Matcher) -> Self {
        self.matchers.push(matcher);
        self
    }

    /// Reads `{name="value", …}`; values may also be bare. An error names the character where it went wrong.
    pub fn parse(text: &str) -> Result<Self> {
        Parser { text, at: 0 }.selector()
    }
}

/// Which escapes a text in quotes may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    OfTexts,
    /// Patterns read most escapes themselves.
    OfPatterns,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn selector(&mut self) -> Result<Selector> {
        self.skip_space();
        self.expect("{")?;
        let mut matchers = Vec::new();
        loop {
            self.skip_space();
            if self.eat("}") {
                break;
            }
            if matchers.len() == MAX_MATCHERS {
                return Err(SelectorError(format!(
                    "a selector has at most {MAX_MATCHERS} matchers, and this one more"
                )));
            }
            matchers.push(self.matcher()?);
            self.skip_space();
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.wrong("the end"));
        }
        Ok(Selector { matchers })
    }

    fn matcher(&mut self) -> Result<Matcher> {
        let name =
            if self.rest().starts_with('"') { self.quoted('"', Escapes::OfTexts)? } else { self.bare(ends_bare_name) };
        if name.is_empty() {
            return Err(self.wrong("a label name"));
        }
        self.skip_space();
        let operator = ["=~", "!~", "!=", "="].into_iter().find(|operator| self.eat(operator));
        let Some(operator) = operator else { return Err(self.wrong("one of =, !=, =~, !~")) };
        self.skip_space();
        let value_at = self.at;
        let value = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => {
                self.quoted(quote, if operator.ends_with('~') { Escapes::OfPatterns } else { Escapes::OfTexts })?
            }
            _ => self.bare(ends_bare_value),
        };
        let pattern = |written: String| {
            Pattern::new(written).map_err(|error| {
                SelectorError(format!("the pattern at character {} is not valid: {error}", self.character(value_at)))
            })
        };
        let test = match operator {
            "=" => Test::Equal(value),
            "!=" => Test::NotEqual(value),
            "=~" => Test::Matches(pattern(value)?),
            _ => Test::MatchesNot(pattern(value)?),
        };
        Ok(Matcher { name, test })
    }

    fn quoted(&mut self, quote: char, escapes: Escapes) -> Result<String> {
        let start = self.at;
        self.at += quote.len_utf8();
        let mut value = String::new();
        while let Some(found) = self.rest().chars().next() {
            self.at += found.len_utf8();
            match found {
                '\\' if quote != '`' => value.push(self.escaped(escapes).unwrap_or('\\')),
                _ if found == quote => return Ok(value),
                _ => value.push(found),
            }
        }
        self.at = start;
        Err(self.wrong("a closing quote for the one"))
    }

    /// The character that follows a backslash, as Prometheus and Go's `%q` write it; none if what follows is no escape, as in
    /// patterns, which are full of backslashes that people do not double.
    fn escaped(&mut self, escapes: Escapes) -> Option<char> {
        let rest = self.rest();
        let number = |digits: &str, radix: u32| {
            let is_number = digits.chars().all(|digit| digit.is_digit(radix));
            // As bytes, these are only a part of a character.
            let is_whole = |code: &u32| digits.len() > 3 || *code < 0x80;
            u32::from_str_radix(digits, radix).ok().filter(|code| is_number && is_whole(code)).and_then(char::from_u32)
        };
        let (found, length) = match (escapes, rest.chars().next()?) {
            (_, 'n') => ('\n', 1),
            (_, 't') => ('\t', 1),
            (_, quote @ ('"' | '\'' | '\\')) => (quote, 1),
            // All others mean something in patterns, or nothing.
            (Escapes::OfPatterns, _) => return None,
            (_, 'a') => ('\u{7}', 1),
            (_, 'b') => ('\u{8}', 1),
            (_, 'f') => ('\u{c}', 1),
            (_, 'r') => ('\r', 1),
            (_, 'v') => ('\u{b}', 1),
            (_, 'x') => (number(rest.get(1..3)?, 16)?, 3),
            (_, 'u') => (number(rest.get(1..5)?, 16)?, 5),
            (_, 'U') => (number(rest.get(1..9)?, 16)?, 9),
            (_, '0'..='7') => (number(rest.get(..3)?, 8)?, 3),
            _ => return None,
        };
        self.at += length;
        Some(found)
    }

    fn bare(&mut self, is_end: fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(is_end).unwrap_or(rest.len());
        self.at += length;
        self.text[self.at - length..self.at].trim().to_owned()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.wrong(&format!("{token:?}"))) }
    }

    /// Characters are counted from 1.
    fn character(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }

    fn wrong(&self, expected: &str) -> SelectorError {
        let character = self.character(self.at);
        let found = self.rest().chars().next().map_or("the end".to_owned(), |found| format!("{found:?}"));
        SelectorError(format!(
            "the selector {:?} has {found} at character {character}, where {expected} was expected",
            self.text
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        Labels::from_pairs([("service_name", "shop"), ("version", "1.2"), ("otel.scope.name", "x")])
    }

    /// Scenario: selectors as people write them. Guarantee: each keeps what it says.
    #[test]
    fn selects() {
        let fits = [
            "{}",
            r#"{service_name="shop"}"#,
            "{service_name=shop}",
            r#"{ service_name = "shop" , version=~"1\..*" }"#,
            r#"{"otel.scope.name"="x"}"#,
            r#"{otel.scope.name="x", absent=""}"#,
            r#"{version!~"2.*", service_name!="other",}"#,
            r#"{otel_scope_name="x", otel_scope_name!="y"}"#,
        ];
        for text in fits {
            assert!(Selector::parse(text).unwrap().fits(&labels()), "{text}");
        }
        let misses = [
            r#"{service_name="sho"}"#,
            r#"{version=~"1"}"#,
            r#"{version!~".*"}"#,
            "{otel_scope_name=y}",
            "{ver.ion=1.2}",
        ];
        for text in misses {
            assert!(!Selector::parse(text).unwrap().fits(&labels()), "{text}");
        }
    }

    /// Scenario: selectors with a mistake. Guarantee: the error names the character and what was expected.
    #[test]
    fn errors_point_at_the_character() {
        let message = |text| Selector::parse(text).unwrap_err().to_string();
        assert!(message("").contains("the end at character 1"));
        assert!(message(r#"{a"x"}"#).contains("'\"' at character 3"), "{}", message(r#"{a"x"}"#));
        assert!(message(r#"{a="x"#).contains("closing quote"));
        assert!(message(r#"{a=~"("}"#).contains("pattern at character 5"));
        assert!(message(r#"{a="x"} y"#).contains("where the end was expected"));
    }
    /// Scenario: selectors of every spelling, with names and values that need quotes, and patterns with backslashes.
    /// Guarantee: what is written from one reads as the same.
    #[test]
    fn what_is_written_reads_as_the_same() {
        for (text, written) in [
            ("{}", "{}"),
            ("{ a = b c , d!~x. }", r#"{a="b c", d!~"x."}"#),
            (r#"{"a b"=~'1\.\d+', "="!=`\"`}"#, r#"{a b=~"1\\.\\d+", "="!="\\\""}"#),
            ("{\" a\"=\"\\n\\t\r\u{0}\"}", "{\" a\"=\"\\n\\t\r\u{0}\"}"),
        ] {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(selector.to_string(), written);
            assert_eq!(Selector::parse(written), Ok(selector), "{written}");
        }
    }

    /// Scenario: one value written plainly, in every escape that Go writes, in those that are none, and as a pattern.
    /// Guarantee: escapes mean their characters, what is no escape stays as it is, and patterns read their own.
    #[test]
    fn escapes_are_read() {
        let labels = Labels::from_pairs([("who", "\u{1f469}\u{200d}\u{1f4bb} a\u{a0}b\r"), ("path", r"C:\dir\xy\u12")]);
        for text in [
            "{who=\"\u{1f469}\u{200d}\u{1f4bb} a\u{a0}b\r\"}",
            r#"{who="\U0001f469\u200d\U0001f4bb \x61\u00a0\142\r"}"#,
            r#"{"\u0077ho"="\U0001f469\u200d\U0001f4bb a\u00a0b\x0d"}"#,
            r#"{who=~"\U0001f469\u200d.{2}\x61\u00a0\w\r"}"#,
            r#"{path="C:\dir\xy\u12"}"#,
            r#"{path=~"C:\\\\dir.*"}"#,
        ] {
            assert!(Selector::parse(text).unwrap().fits(&labels), "{text}");
        }
    }

    /// Scenario: a pattern that is only one inside other parentheses. Guarantee: refused; it would match parts of values.
    #[test]
    fn patterns_are_whole_by_themselves() {
        assert!(Selector::parse(r#"{version=~"1)|(.*"}"#).unwrap_err().to_string().contains("character 11"));
        assert!(Selector::parse(r#"{é=~"("}"#).unwrap_err().to_string().contains("pattern at character 5"));
    }

    /// Scenario: as many matchers as a selector may have, and one more. Guarantee: taken, and refused with the number.
    #[test]
    fn selectors_are_bounded() {
        let of = |count: usize| format!("{{{}}}", vec!["a=~x"; count].join(","));
        assert_eq!(Selector::parse(&of(MAX_MATCHERS)).unwrap().matchers.len(), MAX_MATCHERS);
        assert!(Selector::parse(&of(MAX_MATCHERS + 1)).unwrap_err().to_string().contains("at most 100"));
    }
}
