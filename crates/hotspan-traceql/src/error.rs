//! What is wrong with a query, where, and what was probably meant.

use std::fmt;

use crate::suggest::nearest;

/// A half-open range of bytes in the query text.
///
/// Two ranges are always equal: a position says where a node was written, not what it means, so that
/// `parse(display(ast)) == ast` can hold.
#[derive(Debug, Clone, Copy, Default, Eq)]
pub struct SourceRange {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl PartialEq for SourceRange {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SourceRange {
    /// A range of bytes.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The smallest range that holds both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A query that cannot be run: the place, the reason, and what would fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceqlError {
    /// Bytes of the query the error is about.
    pub range: SourceRange,
    /// Line of the first byte, counted from 1.
    pub line: usize,
    /// Column of the first byte in characters, counted from 1.
    pub column: usize,
    /// What is wrong, as one sentence without a full stop.
    pub message: String,
    /// What could have stood there, if that can be said.
    pub expected: Option<String>,
    /// The nearest thing that would have been right.
    pub suggestion: Option<String>,
}

impl TraceqlError {
    /// An error at a place; line and column are filled in by [`TraceqlError::locate`].
    pub(crate) fn at(range: SourceRange, message: impl Into<String>) -> Self {
        Self { range, line: 1, column: 1, message: message.into(), expected: None, suggestion: None }
    }

    pub(crate) fn expecting(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(crate) fn suggesting(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Computes line and column from the text the range points into.
    pub(crate) fn locate(mut self, text: &str) -> Self {
        let start = floor_char_boundary(text, self.range.start);
        let before = &text[..start];
        self.line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        self.column = before[line_start..].chars().count() + 1;
        self
    }

    /// Suggests one of the names that a store knows, where the query has something near to it: an error about `htp.method`
    /// can then name `span.http.method`. Names are given with their scopes.
    pub fn suggest_from<'a>(mut self, query: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let start = floor_char_boundary(query, self.range.start);
        let typed = query[start..].split(|c| !crate::syntax::is_attribute_name_char(c)).next().unwrap_or_default();
        let bare = typed.trim_start_matches('.');
        let known: Vec<&str> = known.into_iter().collect();
        let unscoped = |name: &'a str| name.split_once('.').map_or(name, |(_, rest)| rest);
        let exact = known.iter().find(|name| unscoped(name) == bare || **name == bare);
        let near = || {
            let close = nearest(bare, known.iter().map(|name| unscoped(name)))?;
            known.iter().find(|name| unscoped(name) == close)
        };
        if let Some(name) = exact.or_else(near) {
            self.suggestion = Some((*name).to_owned());
        }
        self
    }

    /// The message for a person: the line of the query, a caret under the place, and what would fit.
    ///
    /// ```
    /// let query = "{ duraton > 2s }";
    /// let error = hotspan_traceql::parse(query).unwrap_err();
    /// assert_eq!(error.render(query), "\
    /// 1:3: unknown name `duraton`
    ///   { duraton > 2s }
    ///     ^^^^^^^
    ///   did you mean `duration`?");
    /// ```
    pub fn render(&self, query: &str) -> String {
        let start = floor_char_boundary(query, self.range.start);
        let line_start = query[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = query[start..].find('\n').map_or(query.len(), |at| start + at);
        let end = floor_char_boundary(query, self.range.end.clamp(start, line_end));
        let (line, caret_from, caret_to) = window(&query[line_start..line_end], start - line_start, end - line_start);
        let indent: String = line[..caret_from].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let carets = "^".repeat(line[caret_from..caret_to].chars().count().max(1));
        let mut text = format!("{}:{}: {}\n  {line}\n  {indent}{carets}", self.line, self.column, self.message);
        if let Some(expected) = &self.expected {
            text.push_str(&format!("\n  expected {expected}"));
        }
        if let Some(suggestion) = &self.suggestion {
            text.push_str(&format!("\n  did you mean `{suggestion}`?"));
        }
        text
    }
}

/// Cuts a very long line to what surrounds the caret, so that an error in a generated query stays readable.
fn window(line: &str, from: usize, to: usize) -> (String, usize, usize) {
    const AROUND: usize = 80;
    if line.len() <= 2 * AROUND {
        return (line.to_owned(), from, to);
    }
    let cut_from = floor_char_boundary(line, from.saturating_sub(AROUND));
    let cut_to = floor_char_boundary(line, (from + AROUND).min(line.len()));
    let lead = if cut_from > 0 { "..." } else { "" };
    let trail = if cut_to < line.len() { "..." } else { "" };
    let shown = format!("{lead}{}{trail}", &line[cut_from..cut_to]);
    (shown, lead.len() + from - cut_from, lead.len() + to.min(cut_to) - cut_from)
}

/// The nearest character boundary at or before `at`.
pub(crate) fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for TraceqlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)?;
        if let Some(expected) = &self.expected {
            write!(out, "; expected {expected}")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(out, "; did you mean `{suggestion}`?")?;
        }
        Ok(())
    }
}

impl std::error::Error for TraceqlError {}

#[cfg(test)]
mod tests {
    /// Scenario: an attribute without its scope, and one mistyped, with the names of a store at hand.
    /// Guarantee: the full name is suggested; where nothing is near, the error stays as it was.
    #[test]
    fn suggests_known_attributes() {
        let known = ["span.http.method", "resource.service.name"];
        for (query, expected) in [
            ("{ http.method = 1 }", Some("span.http.method")),
            ("{ htp.method = 1 }", Some("span.http.method")),
            ("{ servce.name = 1 }", Some("resource.service.name")),
            ("{ zzz = 1 }", None),
        ] {
            let error = crate::parse(query).unwrap_err().suggest_from(query, known);
            assert_eq!(error.suggestion.as_deref(), expected, "{query}");
        }
    }

    /// Scenario: an error far into one very long line.
    /// Guarantee: the rendering stays short and the caret is under the place.
    #[test]
    fn long_lines_are_cut() {
        let query = format!("{{ .a = \"{}\" && nmae = 1 }}", "x".repeat(5000));
        let rendered = crate::parse(&query).unwrap_err().render(&query);
        let lines: Vec<&str> = rendered.lines().collect();
        assert!(rendered.len() < 600);
        let caret = lines[2].find('^').unwrap();
        assert!(lines[1][caret..].starts_with("nmae"), "{rendered}");
    }
}
