//! The TOML file: which keys it sets, where each stands, and where it is wrong.

use hotspan_server::ScrapeJob;
use hotspan_server::config::{KEYS, Key, Kind, Origin, Problem, nearest_key, nearest_section};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key that a file sets.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) key: &'static Key,
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// The keys that it sets.
    pub(super) entries: Vec<FileEntry>,
    /// Its `[[scrape]]`s.
    pub(super) scrape: Vec<ScrapeJob>,
    /// All that is wrong with the rest.
    pub(super) problems: Vec<Problem>,
}

/// Reads a file's bytes, which must be UTF-8.
pub(super) fn parse_bytes(name: &str, bytes: &[u8]) -> Parsed {
    let wrong = match std::str::from_utf8(bytes) {
        Ok(text) => return parse(name, text),
        Err(error) => error.valid_up_to(),
    };
    // Up to there it is text.
    let text = String::from_utf8_lossy(&bytes[..wrong]);
    let mut reading = Reading { name, text: &text, parsed: Parsed::default() };
    reading.problem(wrong, format!("the byte 0x{:02X} is not UTF-8; save the file as UTF-8", bytes[wrong]));
    reading.parsed
}

/// Reads a file.
pub(super) fn parse(name: &str, text: &str) -> Parsed {
    let mut reading = Reading { name, text, parsed: Parsed::default() };
    match DeTable::parse(text) {
        Ok(table) => reading.table("", table.get_ref()),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            reading.problem(at, format!("not TOML: {}", error.message()));
        }
    }
    reading.parsed
}

/// A file that is being read.
pub(super) struct Reading<'a> {
    name: &'a str,
    text: &'a str,
    pub(super) parsed: Parsed,
}

impl Reading<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let full_name = format!("{prefix}{}", name.get_ref());
            match (Key::named(&full_name), value.get_ref()) {
                (None, DeValue::Array(jobs)) if full_name == "scrape" => self.scrape(jobs),
                (Some(key), _) => self.value(key, value),
                (None, DeValue::Table(inner)) if is_section(&full_name) => self.table(&format!("{full_name}."), inner),
                (None, _) if full_name == "scrape" => {
                    self.problem(name.span().start, "scrape is a list of tables: write [[scrape]]".to_owned());
                }
                (None, _) if is_section(&full_name) => {
                    self.problem(name.span().start, format!("{full_name} is a table: write [{full_name}]"));
                }
                (None, DeValue::Table(_)) if prefix.is_empty() => {
                    let hint = nearest_section(&full_name).map(|section| format!("; did you mean [{section}]?"));
                    let known = || "; `hotspan config show` lists every key".to_owned();
                    let message = format!("unknown section [{full_name}]{}", hint.unwrap_or_else(known));
                    self.problem(name.span().start, message);
                }
                (None, _) => {
                    let hint = nearest_key(&full_name).map(|key| format!("; did you mean {}?", key.name));
                    let known = || "; `hotspan config show` lists every key".to_owned();
                    let message = format!("unknown key {full_name}{}", hint.unwrap_or_else(known));
                    self.problem(name.span().start, message);
                }
            }
        }
    }

    fn value(&mut self, key: &'static Key, value: &Spanned<DeValue<'_>>) {
        let origin = self.origin(value.span().start);
        match text_of(key.kind(), value.get_ref()) {
            Some(text) => self.parsed.entries.push(FileEntry { key, text, origin }),
            None => {
                let found = if key.secret {
                    "the value"
                } else {
                    self.text.get(value.span()).and_then(|text| text.lines().next()).unwrap_or_default()
                };
                let quotes = match (key.kind(), value.get_ref()) {
                    (Kind::Integer | Kind::Boolean, DeValue::String(_)) => ", without quotes",
                    (Kind::Integer | Kind::Boolean | Kind::Size, _) => "",
                    (_, DeValue::String(_)) => "",
                    _ => ", in quotes",
                };
                let message = format!("{}: {found} is not {}{quotes}", key.name, key.kind().allowed());
                self.parsed.problems.push(Problem { origin, message });
            }
        }
    }

    /// Notes what is wrong at a place.
    pub(super) fn problem(&mut self, at: usize, message: String) {
        let origin = self.origin(at);
        self.parsed.problems.push(Problem { origin, message });
    }

    fn origin(&self, at: usize) -> Origin {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        Origin::File { path: self.name.to_owned(), line, column: before[line_start..].chars().count() + 1 }
    }
}

fn is_section(name: &str) -> bool {
    KEYS.iter().any(|key| key.section() == Some(name))
}

/// The text of a value whose TOML type suits the kind.
fn text_of(kind: Kind, value: &DeValue<'_>) -> Option<String> {
    match (kind, value) {
        (Kind::Integer | Kind::Size, DeValue::Integer(number)) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        (Kind::Boolean, DeValue::Boolean(value)) => Some(value.to_string()),
        (Kind::Integer | Kind::Boolean, DeValue::String(_)) => None,
        (_, DeValue::String(text)) => Some(text.clone().into_owned()),
        _ => None,
    }
}

/// The line that a problem stands in, with a mark under the place.
pub(super) fn excerpt(text: &str, origin: &Origin) -> String {
    let Origin::File { line, column, .. } = origin else { return String::new() };
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let gutter = line.to_string();
    // Tabs are kept, so that the mark stands under its place however wide they are shown.
    let indent: String = source.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("  {gutter} | {source}\n  {} | {indent}^\n", " ".repeat(gutter.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse("f", text).problems.iter().map(ToString::to_string).collect()
    }

    /// Scenario: a file with every TOML type a key can have, in sections, dotted and inline.
    /// Guarantee: all keys are read, as text, with the line and column of their value.
    #[test]
    fn keys_are_read_with_their_place() {
        let text = "store = 'x'\nlimits.max_labels = 0x40\nlog = { format = \"json\" }\n[ingest]\n\
                    flush_bytes = 1_000_000\nflush_interval = \"1s\" # why\n";
        let Parsed { mut entries, problems, .. } = parse("f", text);
        assert!(problems.is_empty(), "{problems:?}");
        entries.sort_by(|a, b| a.origin.cmp(&b.origin));
        let read: Vec<_> = entries.iter().map(|entry| (entry.key.name, entry.text.as_str())).collect();
        let expected = [
            ("store", "x"),
            ("limits.max_labels", "64"),
            ("log.format", "json"),
            ("ingest.flush_bytes", "1000000"),
            ("ingest.flush_interval", "1s"),
        ];
        assert_eq!(read, expected);
        assert_eq!(entries[4].origin, Origin::File { path: "f".to_owned(), line: 6, column: 18 });
    }

    /// Scenario: files that are wrong in one way each. Guarantee: the place is exact and the way out is named.
    #[test]
    fn what_is_wrong_is_pointed_at() {
        assert_eq!(
            problems("[ingest]\nflush_intervl = 1")[0],
            "f:2:1: unknown key ingest.flush_intervl; did you mean ingest.flush_interval?"
        );
        assert_eq!(problems("\n[ingst]\na = 1\nb = 2"), ["f:2:2: unknown section [ingst]; did you mean [ingest]?"]);
        assert!(
            problems("limits.max_labels = \"5\"")[0]
                .starts_with("f:1:21: limits.max_labels: \"5\" is not a whole number")
        );
        assert!(problems("limits.max_labels = \"5\"")[0].ends_with("without quotes"));
        assert!(problems("ingest.flush_interval = 5")[0].ends_with("in quotes"));
        for wrong in ["limits = 5", "limits = []"] {
            assert_eq!(problems(wrong), ["f:1:1: limits is a table: write [limits]"]);
        }
        assert_eq!(problems("[[limits]]"), ["f:1:3: limits is a table: write [limits]"]);
        assert_eq!(problems("scrape = 5"), ["f:1:1: scrape is a list of tables: write [[scrape]]"]);
        assert_eq!(problems("[scrape]\na = 1"), ["f:1:2: scrape is a list of tables: write [[scrape]]"]);
        assert!(problems("http = \"é\n")[0].starts_with("f:1:"));
        assert!(problems("[http]\nx = 1")[0].contains("http:"));
        assert!(problems("[[store]]\nx = 1")[0].contains("store:"));
    }

    /// Scenario: a file in Latin-1, and one in UTF-16 with its mark. Guarantee: the first byte that is wrong is pointed at.
    #[test]
    fn what_is_not_utf8_is_pointed_at() {
        let first = |bytes: &[u8]| parse_bytes("f", bytes).problems[0].to_string();
        let latin = b"# \xc3\xa9\nstore = \"caf\xe9\"\n";
        assert_eq!(first(latin), "f:2:13: the byte 0xE9 is not UTF-8; save the file as UTF-8");
        assert!(first(b"\xff\xfes\0t\0").starts_with("f:1:1: the byte 0xFF"));
    }
}
