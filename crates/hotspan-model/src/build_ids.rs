//! Which build of a binary profiles speak of, where frames do not say: those that have a name keep none, for the same code
//! in two builds is one place.

use hashbrown::HashMap;

/// The build ids of binaries by file, as far as all mappings agree on them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildIds {
    /// Empty where two mappings disagree, which then nothing mends.
    by_file: HashMap<String, String>,
}

impl BuildIds {
    /// Learns from the mappings of a profile, as [`ProfileContext`](crate::profile::ProfileContext) has them.
    pub fn learn(&mut self, mappings: &str) {
        let Ok(serde_json::Value::Array(mappings)) = serde_json::from_str(mappings) else { return };
        for mapping in mappings {
            let text = |key: &str| mapping[key].as_str().unwrap_or_default();
            let (file, build_id) = (text("filename"), text("build_id"));
            match self.by_file.get_mut(file) {
                Some(known) if known != build_id => known.clear(),
                Some(_) => {}
                None => drop(self.by_file.insert(file.to_owned(), build_id.to_owned())),
            }
        }
    }

    /// The build id of a binary; empty if it is not known.
    pub fn of(&self, file: &str) -> &str {
        self.by_file.get(file).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: mappings that say the same build of one binary, and two builds of another, the first of them twice.
    /// Guarantee: what they agree on is known; what they do not stays unknown, whoever comes last.
    #[test]
    fn builds_that_disagree_are_not_known() {
        let mut builds = BuildIds::default();
        let mapping = |file: &str, build: &str| format!("{{\"filename\":\"{file}\",\"build_id\":\"{build}\"}}");
        for build in ["1", "2", "1"] {
            builds.learn(&format!("[{},{}]", mapping("/bin/same", "a"), mapping("/bin/app", build)));
        }
        builds.learn("");
        assert_eq!((builds.of("/bin/same"), builds.of("/bin/app"), builds.of("/bin/other")), ("a", "", ""));
    }
}
