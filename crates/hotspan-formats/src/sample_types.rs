//! What the profiles of a file measure, by names that fit into a menu.

use hotspan_model::{FlameTree, ProfileSet, ProfileType};

use crate::file_error::{FileError, Result};
use crate::limits::Limits;
use crate::profile_tree::bounded_flame_tree;

/// Memory that a node of a tree takes while it is built, measured with millions of them.
const NODE_BYTES: usize = 300;

/// A type of values in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleType {
    /// What it is called: `cpu`, or all five parts if another type of the file would be called the same.
    pub name: String,
    /// What it is.
    pub profile_type: ProfileType,
}

impl SampleType {
    /// The types of a file, each once, in its order.
    pub fn all_of(set: &ProfileSet<'_>) -> Vec<Self> {
        let mut types: Vec<&ProfileType> = Vec::new();
        for profile in &set.profiles {
            if !types.contains(&&profile.profile_type) {
                types.push(&profile.profile_type);
            }
        }
        let named = |own: &&ProfileType| {
            let same = types.iter().filter(|other| other.sample_type == own.sample_type).count();
            let name = if same == 1 { own.sample_type.clone() } else { own.to_string() };
            Self { name, profile_type: (*own).clone() }
        };
        types.iter().map(named).collect()
    }

    /// Whether someone who writes `text` means this type.
    pub fn is_called(&self, text: &str) -> bool {
        self.name == text || self.profile_type.to_string() == text
    }

    /// Whether values of both can be compared: what is measured is the same, and so is its unit.
    pub fn compares_with(&self, other: &Self) -> bool {
        let (own, others) = (&self.profile_type, &other.profile_type);
        own == others || (self.name == other.name && own.sample_unit == others.sample_unit)
    }

    /// The flame tree of all profiles of this type: a file may have one for each process or thread. It may take as much
    /// memory as the decoded file (R5).
    pub fn tree_of(&self, set: &ProfileSet<'_>, limits: &Limits) -> Result<FlameTree> {
        let profiles = set.profiles.iter().filter(|profile| profile.profile_type == self.profile_type);
        let max_nodes = limits.max_decoded_bytes / NODE_BYTES;
        bounded_flame_tree(set, profiles, max_nodes)
            .ok_or_else(|| FileError::too_large("flame graph", 0, "nodes", max_nodes as u64))
    }
}

#[cfg(test)]
mod tests {
    use hotspan_model::{Frame, Profile, Sample};

    use super::*;
    use crate::{DecodeOptions, Fault, collapsed};

    /// Scenario: a file with two kinds of contention, and CPU time of two processes.
    /// Guarantee: contention is told apart by full names, CPU time is one type whose tree has the samples of both.
    #[test]
    fn types_of_a_file() {
        let mut set = ProfileSet::default();
        let frame = set.paths.frame(Frame::named("main"));
        let path = set.paths.path(&[frame]);
        for name in ["cpu", "mutex_count", "cpu", "block_count"] {
            let sample = Sample { path, value: 5, time: 0, timed: false, link: 0, thread: 0, labels: 0, attributes: 0 };
            let profile_type = name.parse().unwrap();
            set.profiles.push(Profile { profile_type, samples: vec![sample], ..Profile::default() });
        }
        let types = SampleType::all_of(&set);
        let names: Vec<&str> = types.iter().map(|one| one.name.as_str()).collect();
        let [mutex, block] = ["mutex", "block"].map(|name| format!("{name}:contentions:count:contentions:count"));
        assert_eq!(names, ["cpu", &mutex, &block]);
        let total = |at: usize| types[at].tree_of(&set, &Limits::default()).unwrap().total();
        assert_eq!((total(0), total(1)), (10, 5));
        assert!(types[0].is_called("cpu") && types[0].is_called(&ProfileType::cpu().to_string()));
        assert!(types[1].compares_with(&types[1]) && !types[1].compares_with(&types[2]));
        let bytes = ProfileType::from_parts(["x", "cpu", "bytes", "", ""]);
        assert!(!types[0].compares_with(&SampleType { name: "cpu".to_owned(), profile_type: bytes }));
    }

    /// Scenario: long stacks that differ from the root on, in a file whose steps take little memory.
    /// Guarantee: drawn while the nodes fit into the limit, refused beyond it.
    #[test]
    fn wide_trees_are_refused() {
        let text: String = (0..100).map(|n| format!("root{n};{} 1\n", ["f"; 20].join(";"))).collect();
        let set = collapsed::decode(text.as_bytes(), &DecodeOptions::default()).unwrap();
        let types = SampleType::all_of(&set);
        let room_for = |nodes: usize| Limits { max_decoded_bytes: nodes * NODE_BYTES, ..Limits::default() };
        assert_eq!(types[0].tree_of(&set, &room_for(2101)).unwrap().nodes().len(), 2101);
        let error = types[0].tree_of(&set, &room_for(2100)).unwrap_err();
        assert_eq!(error.fault, Fault::TooLarge);
        assert!(error.to_string().contains("at most 2100 nodes"), "{error}");
    }
}
