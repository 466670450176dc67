//! Flamebearer JSON as Hotspan's own endpoints give it: with files, lines and origins beside the names.

use hotspan_formats::diff_tree::DiffTree;
use hotspan_formats::flame_frames::frame_facts;
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_model::{FlameTree, ProfileType};
use serde_json::{Value, json};

/// The flame graph of one tree.
pub(crate) fn single(tree: &FlameTree, profile_type: &ProfileType) -> Value {
    with_frames(&FlamebearerProfile::single(tree, profile_type), &[tree])
}

/// The flame graph of two trees that are laid over each other.
pub(crate) fn double(tree: &DiffTree, sides: [&FlameTree; 2], profile_type: &ProfileType) -> Value {
    with_frames(&FlamebearerProfile::double(tree, profile_type), &sides)
}

fn with_frames(profile: &FlamebearerProfile, trees: &[&FlameTree]) -> Value {
    let mut answer = json!(profile);
    answer["flamebearer"]["frames"] = json!(frame_facts(&profile.flamebearer.names, trees));
    answer
}
