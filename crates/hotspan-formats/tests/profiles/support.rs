//! What the tests ask of a decoded file.

use std::collections::BTreeMap;

use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_formats::profile_tree::flame_tree;
use hotspan_formats::{DecodeOptions, Limits, decode_file, expanded, pprof};
use hotspan_model::{Profile, ProfileSet};

/// A file that a real tool wrote.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A file with one profile as Grafana would export it.
pub(crate) fn flamebearer_of(name: &str) -> Vec<u8> {
    let bytes = fixture(name);
    let set = decode_file(&bytes, &DecodeOptions::default()).unwrap();
    let tree = flame_tree(&set, &set.profiles);
    serde_json::to_vec(&FlamebearerProfile::single(&tree, &set.profiles[0].profile_type)).unwrap()
}

/// The profile of this five-part type.
pub(crate) fn profile<'s, 'a>(set: &'s ProfileSet<'a>, profile_type: &str) -> &'s Profile<'a> {
    let types: Vec<String> = set.profiles.iter().map(|profile| profile.profile_type.to_string()).collect();
    let at = types.iter().position(|known| known == profile_type);
    &set.profiles[at.unwrap_or_else(|| panic!("{profile_type} is not among {types:?}"))]
}

/// Values summed by stack, written as in collapsed files.
pub(crate) fn sums(set: &ProfileSet<'_>, profile: &Profile<'_>) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for sample in &profile.samples {
        let mut names: Vec<String> = set
            .paths
            .walk_to_root(sample.path)
            .map(|frame| match frame.function.as_ref() {
                "" => format!("{:x}", frame.address),
                name => format!("{name}:{}", frame.line),
            })
            .collect();
        names.reverse();
        *sums.entry(names.join(";")).or_insert(0) += sample.value;
    }
    sums
}

/// The share of a profile that lies in or below a function.
pub(crate) fn share_of(set: &ProfileSet<'_>, profile: &Profile<'_>, function: &str) -> f64 {
    let all: i64 = profile.samples.iter().map(|sample| sample.value).sum();
    let below: i64 = profile
        .samples
        .iter()
        .filter(|sample| set.paths.walk_to_root(sample.path).any(|frame| frame.function.contains(function)))
        .map(|sample| sample.value)
        .sum();
    below as f64 / all as f64
}

/// Asserts that the set survives being written as pprof: the same sums of every stack in every column.
pub(crate) fn assert_same_through_pprof(set: &ProfileSet<'_>) {
    let bytes = pprof::encode(set);
    let plain = expanded(&bytes, &Limits::default()).unwrap();
    let again = pprof::decode(&plain, &DecodeOptions::default()).unwrap();
    let mut before: BTreeMap<(String, String), BTreeMap<String, i64>> = BTreeMap::new();
    for profile in &set.profiles {
        let column = (profile.profile_type.sample_type.clone(), profile.profile_type.sample_unit.clone());
        let column = before.entry(column).or_default();
        for (stack, value) in sums(set, profile) {
            *column.entry(stack).or_insert(0) += value;
        }
    }
    for profile in &again.profiles {
        let column = (profile.profile_type.sample_type.clone(), profile.profile_type.sample_unit.clone());
        let mut expected = before.remove(&column).unwrap();
        expected.retain(|_, value| *value != 0);
        assert_eq!(sums(&again, profile), expected, "{column:?}");
    }
    assert!(before.is_empty(), "columns lost: {:?}", before.keys());
    let linked = |set: &ProfileSet<'_>| {
        let mut linked: BTreeMap<String, i64> = BTreeMap::new();
        for sample in set.profiles.iter().flat_map(|profile| &profile.samples) {
            *linked.entry(format!("{:?}", set.links[sample.link as usize])).or_insert(0) += sample.value;
        }
        linked
    };
    assert_eq!(linked(set), linked(&again));
}
