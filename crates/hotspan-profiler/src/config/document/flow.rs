//! The `{…}` and `[…]` forms of settings, over as many lines as they take.

use super::{ConfigError, Line, MAX_DEPTH, Node, Value, accept_key, unquoted};

/// A value being read. Lines are looked at one by one: what stands behind the closing bracket is not for it.
pub(super) struct Flow<'a> {
    lines: &'a [Line<'a>],
    /// How many of the lines have been looked at.
    seen_lines: usize,
    characters: Vec<(char, usize)>,
    position: usize,
    depth: usize,
}

impl<'a> Flow<'a> {
    /// A value that begins in the first of `lines`, behind `offset`, inside of `depth` others.
    pub(super) fn at(lines: &'a [Line<'a>], offset: usize, depth: usize) -> Flow<'a> {
        let mut flow = Flow { lines, seen_lines: 0, characters: Vec::new(), position: 0, depth };
        flow.see_line(offset);
        flow
    }

    /// The value, and how many lines it takes.
    pub(super) fn read(mut self) -> Result<(Node, usize), ConfigError> {
        let node = self.value()?;
        match self.characters[self.position..].iter().find(|(c, _)| !c.is_whitespace()) {
            Some((c, line)) => Err(ConfigError::at(*line, format!("`{c}` after the closing bracket"))),
            None => Ok((node, self.seen_lines)),
        }
    }

    fn see_line(&mut self, offset: usize) -> bool {
        let Some(line) = self.lines.get(self.seen_lines) else { return false };
        self.characters.extend(line.content[offset..].chars().map(|c| (c, line.number)));
        self.characters.push(('\n', line.number));
        self.seen_lines += 1;
        true
    }

    /// The character where the reading stands; there must be one, since a bracket is open.
    fn here(&mut self) -> Result<(char, usize), ConfigError> {
        while self.position >= self.characters.len() {
            if !self.see_line(0) {
                let first = self.lines.first().map_or(0, |line| line.number);
                return Err(ConfigError::at(first, "a bracket is never closed"));
            }
        }
        Ok(self.characters[self.position])
    }

    /// The same behind spaces and ends of lines.
    fn peek(&mut self) -> Result<(char, usize), ConfigError> {
        while self.here()?.0.is_whitespace() {
            self.position += 1;
        }
        self.here()
    }

    fn value(&mut self) -> Result<Node, ConfigError> {
        let (c, line) = self.peek()?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ConfigError::at(line, "settings are nested too deeply"));
        }
        let value = match c {
            '{' => self.mapping()?,
            '[' => self.sequence()?,
            _ => Value::Scalar(self.scalar()?),
        };
        self.depth -= 1;
        Ok(Node { line, value })
    }

    fn mapping(&mut self) -> Result<Value, ConfigError> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        self.position += 1;
        while self.peek()?.0 != '}' {
            let (_, line) = self.peek()?;
            let key = self.scalar()?;
            if self.peek()?.0 != ':' {
                return Err(ConfigError::at(line, format!("`{key}` has no value")));
            }
            accept_key(&entries, &key, line)?;
            self.position += 1;
            entries.push((key, self.value()?));
            self.separator('}')?;
        }
        self.position += 1;
        Ok(Value::Mapping(entries))
    }

    fn sequence(&mut self) -> Result<Value, ConfigError> {
        let mut items = Vec::new();
        self.position += 1;
        while self.peek()?.0 != ']' {
            items.push(self.value()?);
            self.separator(']')?;
        }
        self.position += 1;
        Ok(Value::Sequence(items))
    }

    fn separator(&mut self, close: char) -> Result<(), ConfigError> {
        match self.peek()? {
            (',', _) => {
                self.position += 1;
                Ok(())
            }
            (c, _) if c == close => Ok(()),
            (c, line) => Err(ConfigError::at(line, format!("expected `,` or `{close}`, found `{c}`"))),
        }
    }

    fn scalar(&mut self) -> Result<String, ConfigError> {
        let (first, line) = self.peek()?;
        let start = self.position;
        if first == '"' || first == '\'' {
            self.position += 1;
            loop {
                let (c, _) = self.here()?;
                self.position += if c == '\\' && first == '"' { 2 } else { 1 };
                if c == first {
                    break;
                }
            }
        } else {
            // A colon ends a plain scalar only before a space, so that times and addresses may hold one.
            let ends = |index: usize| match self.characters.get(index).map(|(c, _)| *c) {
                None | Some(',' | '}' | ']' | '\n') => true,
                Some(':') => self.characters.get(index + 1).is_none_or(|(next, _)| next.is_whitespace()),
                _ => false,
            };
            let mut end = start;
            while !ends(end) {
                end += 1;
            }
            self.position = end;
        }
        let text: String =
            self.characters[start..self.position.min(self.characters.len())].iter().map(|(c, _)| c).collect();
        if text.trim().is_empty() {
            return Err(ConfigError::at(line, "a value is missing"));
        }
        unquoted(text.trim(), line)
    }
}
