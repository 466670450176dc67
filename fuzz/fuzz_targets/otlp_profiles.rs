//! Any bytes give an answer, and a set whose indices all point somewhere. And as many dice, they give a request in the
//! generated types, which our reader reads to the same profiles as a plain translation of them.
#![no_main]

use hotspan_formats::Limits;
use hotspan_formats::otlp::{WireVersion, decode_profiles, decode_profiles_as};
use hotspan_model::ProfileSet;
use hotspan_model::call_path::NO_PATH;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

#[path = "../../crates/hotspan-formats/tests/otlp/dice.rs"]
mod dice;
#[path = "../../crates/hotspan-formats/tests/otlp/profile_oracle.rs"]
mod profile_oracle;
#[path = "../../crates/hotspan-formats/tests/otlp/random_profiles.rs"]
mod random_profiles;
#[allow(dead_code, reason = "the translation of spans is not needed")]
#[path = "../../crates/hotspan-formats/tests/otlp/trace_oracle.rs"]
mod trace_oracle;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_decoded_bytes: 64 << 20, ..Limits::default() };
    if let Ok((set, outcome, _)) = decode_profiles(bytes, &limits, 42) {
        check(&set);
        assert!(outcome.message().len() < 8192);
    }
    let request = random_profiles::request(&mut dice::Dice::new(bytes));
    let encoded = request.encode_to_vec();
    let read = decode_profiles_as(Some(WireVersion::V1_10), &encoded, &Limits::default(), 42);
    let (set, outcome, _) = read.expect("the generated types wrote it");
    let (lines, profiles, samples) = profile_oracle::translate(&request, 42);
    assert_eq!(profile_oracle::describe(&set), lines);
    assert_eq!((outcome.rejected, outcome.rejected_samples), (profiles, samples));
});

fn check(set: &ProfileSet<'_>) {
    for sample in set.profiles.iter().flat_map(|profile| &profile.samples) {
        assert!(sample.path == NO_PATH || (sample.path as usize) < set.paths.path_count());
        assert!((sample.link as usize) < set.links.len());
        assert!((sample.thread as usize) < set.threads.len());
        assert!((sample.labels as usize) < set.label_sets.len());
        assert!((sample.attributes as usize) < set.attribute_sets.len());
    }
    for path in 0..set.paths.path_count() as u32 {
        let mut steps = set.paths.steps_to_root(path);
        assert!(steps.all(|frame| (frame as usize) < set.paths.frames.len()));
    }
}
