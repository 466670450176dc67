//! The flame tree of one profile of a file, without a store in between.

use std::borrow::Cow;

use hotspan_model::call_path::NO_PATH;
use hotspan_model::{FlameTree, Frame, Profile, ProfileSet};

/// The name that a frame is shown by: its function, or its place in a binary while it has none.
pub fn shown_name<'f>(frame: &'f Frame<'_>) -> Cow<'f, str> {
    match (frame.function.as_ref(), frame.mapping.as_ref()) {
        ("", "") => Cow::Owned(format!("0x{:x}", frame.address)),
        ("", mapping) => {
            let binary = mapping.rsplit('/').next().unwrap_or(mapping);
            Cow::Owned(format!("{binary}!0x{:x}", frame.address))
        }
        (function, _) => Cow::Borrowed(function),
    }
}

/// Merges the samples of a profile by function.
pub fn flame_tree(set: &ProfileSet<'_>, profile: &Profile<'_>) -> FlameTree {
    let mut tree = FlameTree::default();
    // Only nodes that lead to a sample of this profile belong into its tree.
    let mut weights: Vec<i64> = vec![0; set.paths.nodes().len()];
    let mut totals = weights.clone();
    for sample in &profile.samples {
        match weights.get_mut(sample.path as usize) {
            Some(weight) => *weight = weight.saturating_add(sample.value),
            None => tree.add_self(FlameTree::ROOT, sample.value),
        }
    }
    let mut needed: Vec<bool> = weights.iter().map(|weight| *weight != 0).collect();
    for (index, node) in set.paths.nodes().iter().enumerate().rev() {
        totals[index] = totals[index].saturating_add(weights[index]);
        if node.parent != NO_PATH && needed[index] {
            needed[node.parent as usize] = true;
            totals[node.parent as usize] = totals[node.parent as usize].saturating_add(totals[index]);
        }
    }
    let mut places = vec![FlameTree::ROOT; set.paths.nodes().len()];
    for (index, node) in set.paths.nodes().iter().enumerate() {
        if !needed[index] {
            continue;
        }
        let frame = &set.paths.frames()[node.frame as usize];
        let parent = if node.parent == NO_PATH { FlameTree::ROOT } else { places[node.parent as usize] };
        let name = tree.intern(&shown_name(frame));
        let place = tree.child(parent, name);
        if !frame.file.is_empty() {
            let file = tree.intern(&frame.file);
            tree.place(place, file, frame.line, totals[index]);
        }
        tree.add_self(place, weights[index]);
        places[index] = place;
    }
    tree.sum_totals();
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeOptions, collapsed};

    /// Scenario: one function on two lines, and a frame without a function.
    /// Guarantee: lines fold into one node that names the heavier one; addresses are shown with their binary.
    #[test]
    fn lines_fold() {
        let text = b"main (a.py:1);work (a.py:5) 2\nmain (a.py:1);work (a.py:7) 9\n";
        let set = collapsed::decode(text, &DecodeOptions::default()).unwrap();
        let tree = flame_tree(&set, &set.profiles[0]);
        assert_eq!((tree.nodes().len(), tree.total()), (3, 11));
        assert_eq!((tree.nodes()[2].line, tree.name(tree.nodes()[2].file)), (7, "a.py"));
        let bare = Frame { address: 255, mapping: "/usr/lib/libc.so".into(), ..Frame::default() };
        assert_eq!(shown_name(&bare), "libc.so!0xff");
    }
}
