//! What is in force, as TOML that can be saved as a file, or as JSON.

use hotspan_server::config::{Entry, Kind, SCRAPE_KEYS};
use serde_json::json;

use super::{Loaded, scrape};

/// One line a key: `key = value  # where it came from`.
pub(super) fn as_toml(loaded: &Loaded) -> String {
    let lines: Vec<(String, Entry)> = loaded.config.entries().map(|entry| (assignment(&entry), entry)).collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (line, entry) in lines {
        text.push_str(&format!("{line:width$}  # {}\n", entry.origin));
    }
    text.push_str(&scrape::as_toml(&loaded.config.settings.scrape));
    text
}

fn assignment(entry: &Entry) -> String {
    let name = entry.key.name;
    match (&entry.value, entry.key.kind()) {
        (None, _) => format!("# {name} is secret"),
        (Some(value), Kind::Integer | Kind::Boolean) => format!("{name} = {value}"),
        (Some(value), _) => format!("{name} = {}", toml::Value::String(value.clone())),
    }
}

/// A list of objects with `key`, `value`, `origin` and, if it came from a file, its place.
pub(super) fn as_json(loaded: &Loaded) -> String {
    let entries = loaded.config.entries().map(|entry| {
        let secret = entry.key.secret;
        json!({ "key": entry.key.name, "value": entry.value, "secret": secret, "origin": entry.origin.to_string() })
    });
    let jobs = loaded.config.settings.scrape.iter().enumerate().flat_map(|(number, job)| {
        SCRAPE_KEYS.iter().map(move |key| {
            let name = format!("scrape[{number}].{}", key.name);
            json!({ "key": name, "value": key.value(job).toml(), "secret": false, "origin": "file" })
        })
    });
    format!("{:#}\n", serde_json::Value::Array(entries.chain(jobs).collect()))
}
