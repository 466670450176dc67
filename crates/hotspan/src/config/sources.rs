//! The one rule of precedence: default < file < environment variable < flag.

use std::path::{Path, PathBuf};

use anyhow::Context;
use hotspan_server::config::{Config, KEYS, Key, Origin, Problem, nearest_variable};

use super::file;

/// Names the file, where no flag does.
const FILE_VARIABLE: &str = "HOTSPAN_CONFIG";
/// Read if it is there, where neither flag nor variable names a file.
const USUAL_FILE: &str = "hotspan.toml";

/// What the command line said.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(super) file: Option<PathBuf>,
    pub(super) values: Vec<(&'static Key, String)>,
    /// What the command takes where nobody says anything, if that differs from the usual.
    pub(super) defaults: Defaults,
}

/// Names of keys and the values that they have at first.
pub(super) type Defaults = &'static [(&'static str, &'static str)];

/// The configuration in force, and what is odd about it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) warnings: Vec<String>,
}

/// Reads all sources, or names everything that is wrong in them.
pub(crate) fn load(given: &Given) -> anyhow::Result<Loaded> {
    let mut config = Config::default();
    let mut problems = Vec::new();
    for (name, text) in given.defaults {
        let key = Key::named(name).with_context(|| format!("there is no key {name}"))?;
        problems.extend(config.set(key, text, Origin::Default).err());
    }
    if let Some(path) = file_to_read(given) {
        let name = path.display().to_string();
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read the configuration {name}"))?;
        problems.extend(apply_file(&mut config, &name, &bytes).2);
    }
    let (variables, warnings) = variables(std::env::vars_os().filter_map(|(name, value)| {
        // A value that is no Unicode can't be right for any key; shown with marks, it is refused by its type.
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    }));
    let flags = given.values.iter().filter_map(|(key, text)| Some((*key, text, Origin::Flag(key.flag?.to_owned()))));
    let variables = variables.iter().map(|(key, text)| (*key, text, Origin::Variable(key.variable())));
    for (key, text, origin) in variables.chain(flags) {
        problems.extend(config.set(key, text, origin).err());
    }
    if problems.is_empty() {
        return Ok(Loaded { config, warnings });
    }
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    anyhow::bail!("{}", lines.join("\nhotspan: "))
}

/// How many keys a file sets, how many services it scrapes, and everything that is wrong in it.
pub(super) fn check_file(name: &str, bytes: &[u8]) -> (usize, usize, Vec<Problem>) {
    apply_file(&mut Config::default(), name, bytes)
}

fn apply_file(config: &mut Config, name: &str, bytes: &[u8]) -> (usize, usize, Vec<Problem>) {
    let file::Parsed { entries, scrape, mut problems } = file::parse_bytes(name, bytes);
    let (count, jobs) = (entries.len(), scrape.len());
    for entry in entries {
        problems.extend(config.set(entry.key, &entry.text, entry.origin).err());
    }
    config.settings.scrape = scrape;
    problems.sort_by(|a, b| a.origin.cmp(&b.origin));
    (count, jobs, problems)
}

fn file_to_read(given: &Given) -> Option<PathBuf> {
    let from_variable = || std::env::var_os(FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    // A command with defaults of its own, such as the demo, leaves the server's file and store alone.
    let usual = || Some(PathBuf::from(USUAL_FILE)).filter(|path| given.defaults.is_empty() && Path::exists(path));
    given.file.clone().or_else(from_variable).or_else(usual)
}

/// The variables that set a key, and warnings about those that nearly do.
///
/// An unknown variable is no error: the profiler has variables of its own, and Kubernetes makes some for a
/// service that is called `hotspan`.
fn variables(all: impl Iterator<Item = (String, String)>) -> (Vec<(&'static Key, String)>, Vec<String>) {
    let (mut known, mut warnings) = (Vec::new(), Vec::new());
    for (name, value) in all.filter(|(name, value)| name.starts_with("HOTSPAN_") && !value.is_empty()) {
        if let Some(key) = KEYS.iter().find(|key| key.variable() == name) {
            known.push((key, value));
        } else if name != FILE_VARIABLE
            && let Some(nearest) = nearest_variable(&name)
        {
            warnings.push(format!("the variable {name} sets nothing; did you mean {nearest}?"));
        }
    }
    (known, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: variables that are known, empty, misspelt, named after a flag, and meant for others.
    /// Guarantee: the first count, those that nearly set something are warned of, the rest are left alone.
    #[test]
    fn variables_are_told_apart() {
        let all = [
            ("HOTSPAN_RETENTION_SPANS", "3d"),
            ("HOTSPAN_HTTP", ""),
            ("HOTSPAN_STROE", "x"),
            ("HOTSPAN_SELF_TRACING", "false"),
            ("HOTSPAN_CONFIG", "x"),
            ("HOTSPAN_PROFILING_CPU_RATE", "100"),
            ("HOTSPAN_SERVICE_HOST", "10.0.0.1"),
            ("PATH", "/bin"),
        ];
        let (known, warnings) = variables(all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(
            known.iter().map(|(key, text)| (key.name, text.as_str())).collect::<Vec<_>>(),
            [("retention.spans", "3d")]
        );
        let expected = [
            "the variable HOTSPAN_STROE sets nothing; did you mean HOTSPAN_STORE?",
            "the variable HOTSPAN_SELF_TRACING sets nothing; did you mean HOTSPAN_SELF_TRACING_ENABLED?",
        ];
        assert_eq!(warnings, expected);
    }
}
