//! "Did you mean": the known name that is nearest to one that is not.

use super::keys::{KEYS, Key};

/// The key that was probably meant by an unknown name.
pub fn nearest_key(name: &str) -> Option<&'static Key> {
    let name = &*name.to_lowercase();
    let last = last_part(name);
    // A key in the wrong section, or in none.
    let mut same_end = KEYS.iter().filter(|key| last_part(key.name) == last);
    if let (Some(only), None) = (same_end.next(), same_end.next()) {
        return Some(only);
    }
    // A flag's name in a file, with dashes or underscores.
    if let Some(key) = KEYS.iter().find(|key| key.flag.is_some_and(|flag| flag == last.replace('_', "-"))) {
        return Some(key);
    }
    let distance_of = |key: &Key| distance(name, key.name).min(distance(last, last_part(key.name)) + 1);
    let nearest = KEYS.iter().min_by_key(|key| distance_of(key))?;
    (distance_of(nearest) <= tolerance(last)).then_some(nearest)
}

/// The section that was probably meant by an unknown one.
pub fn nearest_section(name: &str) -> Option<&'static str> {
    let nearest = KEYS.iter().filter_map(|key| key.section()).min_by_key(|section| distance(name, section))?;
    (distance(name, nearest) <= tolerance(name)).then_some(nearest)
}

/// The variable that was probably meant by an unknown one. Stricter than for files, since the environment is
/// full of variables that are meant for others.
pub fn nearest_variable(name: &str) -> Option<String> {
    if let Some(key) = name.strip_prefix("HOTSPAN_").and_then(key_of_short_name) {
        return Some(key.variable());
    }
    let mut variables: Vec<String> = KEYS.iter().map(Key::variable).collect();
    variables.sort_by_key(|variable| distance(name, variable));
    let nearest = variables.into_iter().next()?;
    let in_section = KEYS.iter().filter_map(|key| key.section()).any(|section| {
        name.strip_prefix("HOTSPAN_").is_some_and(|rest| rest.starts_with(&format!("{}_", section.to_uppercase())))
    });
    (in_section || distance(name, &nearest) <= 2).then_some(nearest)
}

/// The key of a variable that is named after less than a key's full name: a flag, the end of one key alone, or a section, of
/// which the first key is the most usual.
fn key_of_short_name(rest: &str) -> Option<&'static Key> {
    let short = rest.to_lowercase();
    let flag = short.replace('_', "-");
    let mut same_end = KEYS.iter().filter(|key| last_part(key.name) == short);
    let only = same_end.next().filter(|_| same_end.next().is_none());
    KEYS.iter()
        .find(|key| key.flag == Some(flag.as_str()))
        .or(only)
        .or_else(|| KEYS.iter().find(|key| key.section() == Some(short.as_str())))
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn tolerance(name: &str) -> usize {
    (name.chars().count() / 3).clamp(1, 4)
}

/// How many letters must be inserted, removed, changed or swapped with the next to make one text the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let first: Vec<usize> = (0..=to.len()).collect();
    let mut rows = vec![first];
    for i in 0..from.len() {
        let mut row = vec![i + 1];
        for j in 0..to.len() {
            let changed = rows[i][j] + usize::from(from[i] != to[j]);
            let is_swapped = i > 0 && j > 0 && (from[i - 1], from[i]) == (to[j], to[j - 1]);
            let swapped = if is_swapped { rows[i - 1][j - 1] + 1 } else { usize::MAX };
            row.push(changed.min(rows[i][j + 1] + 1).min(row[j] + 1).min(swapped));
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: names with a slip of the pen, in the wrong section, cut short, or of something else altogether.
    /// Guarantee: the key that was meant is named, and nothing is where nothing is near.
    #[test]
    fn the_nearest_name_is_found() {
        let nearest = |name| nearest_key(name).map(|key| key.name);
        assert_eq!(nearest("ingest.flush_intervall"), Some("ingest.flush_interval"));
        assert_eq!(nearest("flush_interval"), Some("ingest.flush_interval"));
        assert_eq!(nearest("compact_after"), Some("compaction.first_level_age"));
        assert_eq!(nearest("htpp"), Some("http"));
        assert_eq!(nearest("stroe"), Some("store"));
        assert_eq!(nearest("HTTP"), Some("http"));
        assert_eq!(nearest("colour"), None);
        assert_eq!(nearest_section("retenton"), Some("retention"));
        assert_eq!(nearest_section("database"), None);
        let variable = |name| nearest_variable(name);
        assert_eq!(variable("HOTSPAN_HTPP").as_deref(), Some("HOTSPAN_HTTP"));
        assert!(variable("HOTSPAN_RETENTION_TRACES").is_some());
        for (short, meant) in [
            ("HOTSPAN_SELF_TRACING", "HOTSPAN_SELF_TRACING_ENABLED"),
            ("HOTSPAN_FLUSH_INTERVAL", "HOTSPAN_INGEST_FLUSH_INTERVAL"),
            ("HOTSPAN_COMPACT_AFTER", "HOTSPAN_COMPACTION_FIRST_LEVEL_AGE"),
            ("HOTSPAN_MAX_BYTES", "HOTSPAN_LIMITS_MAX_BYTES"),
            ("HOTSPAN_LOG", "HOTSPAN_LOG_LEVEL"),
        ] {
            assert_eq!(variable(short).as_deref(), Some(meant), "{short}");
        }
        assert_eq!(variable("HOTSPAN_PROFILING_CPU_RATE"), None);
        assert_eq!(variable("HOTSPAN_SERVICE_PORT"), None);
    }
}
