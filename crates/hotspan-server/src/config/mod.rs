//! The configuration: every key, its value in force, and where that value came from.
//!
//! ```text
//! keys (one table) --+--> set(key, text, origin) -> Settings      defaults < file < variables < flags
//!                    +--> entries()   -> `hotspan config show`
//!                    +--> docs        -> docs/configuration.md
//! ```
//!
//! Values arrive here as text, whoever wrote them; who reads files, variables and flags is the binary.

mod docs;
mod field;
mod keys;
mod scrape;
mod suggest;
mod units;

use std::fmt;

pub use docs::markdown;
pub use field::Kind;
pub use keys::{KEYS, Key};
pub use scrape::{SCRAPE_KEYS, ScrapeKey, ScrapeValue, missing};
pub use suggest::{nearest_key, nearest_section, nearest_variable};

use crate::settings::Settings;

/// Where a value came from; later ones win.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of a file.
    File {
        /// The file, as it was named.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File { path, line, .. } => write!(out, "{path}:{line}"),
            Self::Variable(name) => out.write_str(name),
            Self::Flag(name) => write!(out, "--{name}"),
        }
    }
}

/// Something in the configuration that can't be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Where it stands.
    pub origin: Origin,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.origin)?;
        if let Origin::File { column, .. } = self.origin {
            write!(out, ":{column}")?;
        }
        write!(out, ": {}", self.message)
    }
}

/// Settings, and where each of them came from.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is in force.
    pub settings: Settings,
    /// For each of [`KEYS`], in their order.
    origins: Vec<Origin>,
}

/// One value in force.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its key.
    pub key: &'static Key,
    /// The value as text, or none if it is secret.
    pub value: Option<String>,
    /// Where it came from.
    pub origin: Origin,
}

impl Default for Config {
    fn default() -> Self {
        Self { settings: Settings::default(), origins: vec![Origin::Default; KEYS.len()] }
    }
}

impl Config {
    /// Sets a value. One that can't be followed changes nothing.
    pub fn set(&mut self, key: &'static Key, text: &str, origin: Origin) -> Result<(), Problem> {
        if let Err(message) = key.write(&mut self.settings, text) {
            return Err(Problem { origin, message });
        }
        for (place, other) in self.origins.iter_mut().zip(KEYS) {
            if other.name == key.name {
                *place = origin.clone();
            }
        }
        Ok(())
    }

    /// Every value in force, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        KEYS.iter().zip(&self.origins).map(|(key, origin)| Entry {
            key,
            value: key.shown(&self.settings),
            origin: origin.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable() -> Origin {
        Origin::Variable("X".to_owned())
    }

    /// Scenario: every key is set to the text that shows its default.
    /// Guarantee: it is accepted and shows the same again, so that what is shown can be written into a file.
    #[test]
    fn what_is_shown_can_be_read() {
        let mut config = Config::default();
        let defaults: Vec<Entry> = config.entries().collect();
        for entry in &defaults {
            config.set(entry.key, &entry.value.clone().unwrap(), variable()).unwrap();
        }
        for (before, after) in defaults.iter().zip(config.entries()) {
            assert_eq!(before.value, after.value, "{}", after.key.name);
            assert_eq!(after.origin, variable());
        }
        assert_eq!(format!("{:?}", config.settings), format!("{:?}", Settings::default()));
    }

    /// Scenario: values that are wrong by type or by bounds, one for every kind.
    /// Guarantee: the message has key, value and what is allowed, and the value in force stays.
    #[test]
    fn wrong_values_are_explained_and_change_nothing() {
        let wrong = [
            ("http", "localhost", "host:port"),
            ("ingest.flush_interval", "5 minuts", "250ms"),
            ("ingest.flush_bytes", "8 megs", "64MiB"),
            ("limits.max_labels", "many", "whole number"),
            ("multi_tenancy", "maybe", "true or false"),
            ("log.format", "xml", "auto, text or json"),
            ("log.level", "loud", "error, warn, info"),
            ("store", "", "folder"),
            ("compaction.second_level_files", "1", "at least 2"),
            ("limits.max_nesting", "1000", "at most 128"),
            ("retention.spans", "1s", "at least 1m"),
        ];
        let mut config = Config::default();
        for (name, value, allowed) in wrong {
            let problem = config.set(Key::named(name).unwrap(), value, variable()).unwrap_err().to_string();
            for part in ["X: ", name, value, allowed] {
                assert!(problem.contains(part), "{problem:?} lacks {part:?}");
            }
        }
        assert_eq!(format!("{:?}", config.settings), format!("{:?}", Settings::default()));
    }
}
