//! The part of YAML that settings need, with the line of everything: mappings, lists, plain and quoted scalars, and
//! the `{…}` and `[…]` forms, which make JSON readable too. What is not understood is refused, never guessed.

mod flow;

use super::ConfigError;
use flow::Flow;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Text as written, without quotes.
    Scalar(String),
    Sequence(Vec<Node>),
    Mapping(Vec<(String, Node)>),
}

struct Line<'a> {
    number: usize,
    indent: usize,
    content: &'a str,
}

/// How deep settings may nest: far beyond need, well below what a stack bears.
const MAX_DEPTH: usize = 16;
/// How many there may be side by side: each new one is compared with all.
const MAX_ENTRIES: usize = 1_000;

/// Reads a document whose first line has the number `first_line`.
pub(crate) fn parse(text: &str, first_line: usize) -> Result<Node, ConfigError> {
    let mut lines = Vec::new();
    for (offset, raw) in text.lines().enumerate() {
        let number = first_line + offset;
        let content = without_comment(raw).trim_end();
        let indent = content.len() - content.trim_start_matches(' ').len();
        if content[indent..].starts_with('\t') {
            return Err(ConfigError::at(number, "tabs cannot indent; use spaces"));
        }
        if !content.trim().is_empty() && content != "---" {
            lines.push(Line { number, indent, content: &content[indent..] });
        }
    }
    let mut parser = Blocks { lines, position: 0, depth: 0 };
    let Some(first) = parser.lines.first() else {
        return Ok(Node { line: first_line, value: Value::Mapping(Vec::new()) });
    };
    let indent = first.indent;
    let node = if first.content.starts_with(['{', '[']) { parser.flow(0)? } else { parser.block(indent)? };
    match parser.lines.get(parser.position) {
        Some(line) => Err(ConfigError::at(line.number, "this line does not belong to what precedes it")),
        None => Ok(node),
    }
}

/// Cuts a comment off: a `#` at the start or after a space, outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut previous = ' ';
    for (index, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            // A quote inside a word is an apostrophe.
            None if (c == '"' || c == '\'') && " {[,:".contains(previous) => quote = Some(c),
            None if c == '#' && previous == ' ' => return &line[..index],
            None => {}
        }
        previous = c;
    }
    line
}

struct Blocks<'a> {
    lines: Vec<Line<'a>>,
    position: usize,
    depth: usize,
}

impl Blocks<'_> {
    fn block(&mut self, indent: usize) -> Result<Node, ConfigError> {
        let number = self.lines[self.position].number;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ConfigError::at(number, "settings are nested too deeply"));
        }
        let is_sequence = |content: &str| content == "-" || content.starts_with("- ");
        let value = if is_sequence(self.lines[self.position].content) {
            let mut items = Vec::new();
            while let Some(line) = self.lines.get(self.position)
                && line.indent == indent
                && is_sequence(line.content)
            {
                items.push(self.item()?);
            }
            Value::Sequence(items)
        } else {
            let mut entries: Vec<(String, Node)> = Vec::new();
            while let Some(line) = self.lines.get(self.position)
                && line.indent == indent
                && !is_sequence(line.content)
            {
                let number = line.number;
                let (key, node) = self.entry(indent)?;
                accept_key(&entries, &key, number)?;
                entries.push((key, node));
            }
            Value::Mapping(entries)
        };
        self.depth -= 1;
        if let Some(line) = self.lines.get(self.position)
            && line.indent > indent
        {
            return Err(ConfigError::at(line.number, "this line is indented further than its neighbours"));
        }
        Ok(Node { line: number, value })
    }

    fn item(&mut self) -> Result<Node, ConfigError> {
        let line = &self.lines[self.position];
        let offset = line.content.len() - line.content[1..].trim_start().len();
        if line.content == "-" || line.content[offset..].contains(": ") {
            return Err(ConfigError::at(line.number, "lists of settings are written as plain values"));
        }
        self.scalar_or_flow(offset)
    }

    fn entry(&mut self, indent: usize) -> Result<(String, Node), ConfigError> {
        let line = &self.lines[self.position];
        let number = line.number;
        let colon = line
            .content
            .find(": ")
            .or_else(|| line.content.ends_with(':').then(|| line.content.len() - 1))
            .ok_or_else(|| ConfigError::at(number, format!("expected `name: value`, found `{}`", line.content)))?;
        let key = unquoted(line.content[..colon].trim(), number)?;
        let value_at = line.content.len() - line.content[colon + 1..].trim_start().len();
        if value_at < line.content.len() {
            return Ok((key, self.scalar_or_flow(value_at)?));
        }
        self.position += 1;
        match self.lines.get(self.position) {
            Some(next) if next.indent > indent || (next.indent == indent && next.content.starts_with("- ")) => {
                let inner = next.indent;
                Ok((key, self.block(inner)?))
            }
            _ => Ok((key, Node { line: number, value: Value::Scalar(String::new()) })),
        }
    }

    fn scalar_or_flow(&mut self, offset: usize) -> Result<Node, ConfigError> {
        let line = &self.lines[self.position];
        let text = &line.content[offset..];
        if text.starts_with(['{', '[']) {
            return self.flow(offset);
        }
        if text.starts_with(['&', '*', '!', '|', '>', '@', '`', '%']) {
            return Err(ConfigError::at(line.number, format!("`{text}` is YAML that settings do not use")));
        }
        let node = Node { line: line.number, value: Value::Scalar(unquoted(text, line.number)?) };
        self.position += 1;
        Ok(node)
    }

    /// A `{…}` or `[…]` value, which may go on over several lines.
    fn flow(&mut self, offset: usize) -> Result<Node, ConfigError> {
        let (node, lines) = Flow::at(&self.lines[self.position..], offset, self.depth).read()?;
        self.position += lines;
        Ok(node)
    }
}

/// Whether a mapping may have one more key, and this one.
fn accept_key(entries: &[(String, Node)], key: &str, line: usize) -> Result<(), ConfigError> {
    if entries.iter().any(|(known, _)| known == key) {
        return Err(ConfigError::at(line, format!("`{key}` is set twice")));
    }
    if entries.len() >= MAX_ENTRIES {
        return Err(ConfigError::at(line, format!("more than {MAX_ENTRIES} settings in one place")));
    }
    Ok(())
}

/// A scalar without its quotes.
fn unquoted(text: &str, line: usize) -> Result<String, ConfigError> {
    let Some(quote @ ('"' | '\'')) = text.chars().next() else { return Ok(text.to_owned()) };
    let inner = text[1..].strip_suffix(quote).ok_or_else(|| ConfigError::at(line, "a quote is never closed"))?;
    if quote == '\'' {
        return Ok(inner.replace("''", "'"));
    }
    let mut plain = String::new();
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        plain.push(match (c, c == '\\') {
            (_, true) => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(escaped @ ('"' | '\\' | '/')) => escaped,
                _ => return Err(ConfigError::at(line, "an escape that settings do not use")),
            },
            (c, false) => c,
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(node: &Node) -> String {
        match &node.value {
            Value::Scalar(text) => format!("{text}@{}", node.line),
            Value::Sequence(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" ")),
            Value::Mapping(entries) => {
                format!("{{{}}}", entries.iter().map(|(k, v)| format!("{k}={}", show(v))).collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Scenario: block and flow forms, comments, quotes, and a flow value over several lines.
    /// Guarantee: structure, text and line numbers are right.
    #[test]
    fn settings_are_read_with_their_lines() {
        let text = "\
# comment
cpu: {enabled: true, sample_rate: 100} # why
outer:
  time: 12:30
  names:
  - a b
  - 'it''s'
  text: \"x # y\"
flow: [1,
  {k: 'v'}]
";
        let shown = show(&parse(text, 1).unwrap());
        assert_eq!(
            shown,
            "{cpu={enabled=true@2 sample_rate=100@2} outer={time=12:30@4 names=[a b@6 it's@7] text=x # y@8} \
             flow=[1@9 {k=v@10}]}"
        );
        let json = parse("{\n \"rate\": 200,\n \"types\": [\"cpu\", \"heap\"], \"until\": null }", 1).unwrap();
        assert_eq!(show(&json), "{rate=200@2 types=[cpu@3 heap@3] until=null@3}");
        assert_eq!(show(&parse("", 1).unwrap()), "{}");
    }

    /// Scenario: malformed documents of many kinds.
    /// Guarantee: each is refused with the line that is wrong, and none panics.
    #[test]
    fn mistakes_are_refused_with_their_line() {
        for (text, line) in [
            ("a: 1\n\tb: 2", 2),
            ("a: 1\na: 2", 2),
            ("a: 1\n   b: 2", 2),
            ("a:\n  b: 1\n c: 2", 3),
            ("just words", 1),
            ("a: {b: 1", 1),
            ("a: {b}", 1),
            ("a: {b: 1 c: 2}}", 1),
            ("a: \"open", 1),
            ("x: 1\na: &anchor 1", 2),
            ("a: {b: 1, b: 2}", 1),
            ("a: [1, ,]", 1),
            ("[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", 1),
        ] {
            let error = parse(text, 1).unwrap_err();
            assert_eq!(error.line, Some(line), "{text:?}: {error}");
        }
    }

    /// Scenario: more keys side by side than anyone has, in both forms.
    /// Guarantee: they are refused where there are too many.
    #[test]
    fn too_many_keys_are_refused() {
        let block: String = (0..2_000).map(|number| format!("key{number}: 1\n")).collect();
        let flow = format!("{{{}}}", block.replace('\n', ",\n"));
        assert_eq!(parse(&block, 1).unwrap_err().line, Some(1_001));
        assert_eq!(parse(&flow, 1).unwrap_err().line, Some(1_001));
    }

    /// Scenario: a list in brackets over a hundred thousand lines, as a server could send one.
    /// Guarantee: each line is looked at once. Were it all from the start for each, this test would take hours.
    #[test]
    fn long_lists_take_no_long_time() {
        let node = parse(&format!("a: [\n{}]", "1,\n".repeat(100_000)), 1).unwrap();
        let Value::Mapping(entries) = node.value else { panic!("no mapping") };
        assert!(matches!(&entries[0].1.value, Value::Sequence(items) if items.len() == 100_000));
    }
}
