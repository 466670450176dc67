//! Any bytes give an answer, and a set whose indices all point somewhere.
#![no_main]

use hotspan_formats::Limits;
use hotspan_formats::otlp::decode_profiles;
use hotspan_model::ProfileSet;
use hotspan_model::call_path::NO_PATH;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_decoded_bytes: 64 << 20, ..Limits::default() };
    if let Ok((set, outcome, _)) = decode_profiles(bytes, &limits, 42) {
        check(&set);
        assert!(outcome.message().len() < 8192);
    }
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
