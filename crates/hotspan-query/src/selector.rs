//! Label selectors as Prometheus and Pyroscope write them: `{service_name="shop", version!~"1\\..*"}`.

use std::fmt;

use hotspan_model::Labels;
use regex::Regex;

use crate::error::{QueryError, Result};

/// Labels that profiles must have. Without matchers, every series fits.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    /// What each label must be; all must hold.
    pub matchers: Vec<Matcher>,
}

/// What one label must be.
#[derive(Debug, Clone)]
pub struct Matcher {
    /// The label's name.
    pub name: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Equal(String),
    NotEqual(String),
    StartsWith(String),
    Matches(Regex),
    MatchesNot(Regex),
}

impl Matcher {
    /// The label must have this value; an empty value also fits a label that is not there.
    pub fn equal(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), test: Test::Equal(value.into()) }
    }

    /// The label's value must start with this.
    pub fn starts_with(name: impl Into<String>, start: impl Into<String>) -> Self {
        Self { name: name.into(), test: Test::StartsWith(start.into()) }
    }

    /// The same test for a label of another name.
    #[must_use]
    pub fn renamed(&self, name: String) -> Self {
        Self { name, test: self.test.clone() }
    }

    /// The value the label must be equal to, if this matcher says so.
    pub fn equal_value(&self) -> Option<&str> {
        match &self.test {
            Test::Equal(value) => Some(value),
            _ => None,
        }
    }

    fn fits(&self, labels: &Labels) -> bool {
        // As in Prometheus, a label that is not there counts as empty.
        let value = label_value(labels, &self.name).unwrap_or_default();
        match &self.test {
            Test::Equal(wanted) => value == wanted,
            Test::NotEqual(unwanted) => value != unwanted,
            Test::StartsWith(start) => value.starts_with(start.as_str()),
            Test::Matches(pattern) => pattern.is_match(value),
            Test::MatchesNot(pattern) => !pattern.is_match(value),
        }
    }
}

/// The value of a label, or else of the one that has dots where this name has underscores: Grafana's data source can
/// write no dots, and its "profiles for this span" asks for `service_namespace`.
pub(crate) fn label_value<'l>(labels: &'l Labels, name: &str) -> Option<&'l str> {
    labels.get(name).or_else(|| {
        let is_same = |known: &str| known.contains('.') && known.len() == name.len() && plain_name(known) == name;
        labels.iter().find(|(known, _)| is_same(known)).map(|(_, value)| value)
    })
}

/// A label's name for those who can write no dots.
pub fn plain_name(name: &str) -> String {
    name.replace('.', "_")
}

impl fmt::Display for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.test {
            Test::Equal(value) => write!(out, "{name}={value:?}"),
            Test::NotEqual(value) => write!(out, "{name}!={value:?}"),
            Test::StartsWith(start) => write!(out, "{name}=~{:?}", format!("{}.*", regex::escape(start))),
            Test::Matches(pattern) => write!(out, "{name}=~{:?}", pattern.as_str()),
            Test::MatchesNot(pattern) => write!(out, "{name}!~{:?}", pattern.as_str()),
        }
    }
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
        let name = if self.rest().starts_with('"') { self.quoted('"')? } else { self.bare(&['=', '!', '~', '"']) };
        if name.is_empty() {
            return Err(self.wrong("a label name"));
        }
        self.skip_space();
        let operator = ["=~", "!~", "!=", "="].into_iter().find(|operator| self.eat(operator));
        let Some(operator) = operator else { return Err(self.wrong("one of =, !=, =~, !~")) };
        self.skip_space();
        let value_at = self.at;
        let value = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => self.quoted(quote)?,
            _ => self.bare(&[]),
        };
        let pattern = |at: usize| {
            // Patterns match the whole value, and are bounded so that a hostile one costs nothing.
            let anchored = format!("^(?s:{value})$");
            let compiled = regex::RegexBuilder::new(&anchored).size_limit(1 << 20).build();
            compiled.map_err(|error| {
                QueryError::Invalid(format!("the pattern at character {} is not valid: {error}", at + 1))
            })
        };
        let test = match operator {
            "=" => Test::Equal(value),
            "!=" => Test::NotEqual(value),
            "=~" => Test::Matches(pattern(value_at)?),
            _ => Test::MatchesNot(pattern(value_at)?),
        };
        Ok(Matcher { name, test })
    }

    fn quoted(&mut self, quote: char) -> Result<String> {
        let start = self.at;
        self.at += quote.len_utf8();
        let mut value = String::new();
        let mut escaped = false;
        while let Some(found) = self.rest().chars().next() {
            self.at += found.len_utf8();
            match found {
                _ if escaped => {
                    match found {
                        'n' => value.push('\n'),
                        't' => value.push('\t'),
                        '"' | '\'' | '\\' => value.push(found),
                        // Regular expressions are full of backslashes that people do not double.
                        other => value.extend(['\\', other]),
                    }
                    escaped = false;
                }
                '\\' if quote != '`' => escaped = true,
                _ if found == quote => return Ok(value),
                _ => value.push(found),
            }
        }
        self.at = start;
        Err(self.wrong("a closing quote for the one"))
    }

    fn bare(&mut self, ends: &[char]) -> String {
        let rest = self.rest();
        let stop = |c: char| c == ',' || c == '}' || c == '{' || ends.contains(&c);
        let length = rest.find(stop).unwrap_or(rest.len());
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

    fn wrong(&self, expected: &str) -> QueryError {
        let character = self.text[..self.at].chars().count() + 1;
        let found = self.rest().chars().next().map_or("the end".to_owned(), |found| format!("{found:?}"));
        QueryError::Invalid(format!(
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
}
