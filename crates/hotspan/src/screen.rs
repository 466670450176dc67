//! Where an answer goes: a terminal of some width, a pipe or a file.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};

/// What text is drawn for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    width: Option<usize>,
    colour: bool,
}

impl Screen {
    /// The terminal, if an answer goes there.
    pub(crate) fn of(output: Option<&Path>) -> Self {
        if output.is_some() || !io::stdout().is_terminal() {
            return Self { width: None, colour: false };
        }
        let (_, columns) = console::Term::stdout().size();
        // https://no-color.org
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { width: Some(usize::from(columns)), colour }
    }

    /// Its columns. Without, nothing is cut: what reads a pipe or a file wants all of it.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    /// Whether ANSI escapes are welcome.
    pub(crate) fn colour(self) -> bool {
        self.colour
    }

    /// As a server wants to be told.
    pub(crate) fn parameters(self) -> Vec<(&'static str, String)> {
        let width = self.width.map(|width| ("width", width.to_string()));
        width.into_iter().chain(self.colour.then(|| ("colour", "true".to_owned()))).collect()
    }
}

/// Writes an answer where it is wanted. Bytes that are no text do not go to a terminal.
pub(crate) fn write_answer(body: &[u8], output: Option<&Path>, binary: bool) -> anyhow::Result<()> {
    if let Some(path) = output {
        return std::fs::write(path, body).with_context(|| format!("cannot write {}", path.display()));
    }
    let mut stdout = io::stdout().lock();
    if binary && stdout.is_terminal() {
        bail!("this is no text for a terminal; name a file with -o FILE");
    }
    match stdout.write_all(body).and_then(|()| stdout.flush()) {
        // The reader, a pager perhaps, has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the answer"),
    }
}

/// The ending of a file that an answer goes to, in lower case; none if it has none, as `/dev/stdout` has.
pub(crate) fn ending_of(output: &Path) -> Option<String> {
    Some(output.extension()?.to_str()?.to_ascii_lowercase())
}

/// Refuses to guess what a file should hold that ends in none of these.
pub(crate) fn unknown_ending(output: &Path, endings: &str) -> anyhow::Error {
    anyhow!("{}: its ending names no form; use {endings}, or say --format", output.display())
}

/// Says a line, or several. A reader that has seen enough, such as `head`, is no error, and a server goes on without one.
pub(crate) fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Says a line that must not be mixed into the output.
pub(crate) fn say_beside(line: &str) {
    let _ = writeln!(io::stderr().lock(), "hotspan: {line}");
}
