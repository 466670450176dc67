//! The flame tree of profiles of a file, without a store in between.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::frame::{FrameIndex, place_name};
use hotspan_model::{FlameTree, Frame, Profile, ProfileSet};

/// The name that a frame is shown by: its function, or its place in a binary while it has none.
pub fn shown_name<'f>(frame: &'f Frame<'_>) -> Cow<'f, str> {
    match frame.function.as_ref() {
        "" => Cow::Owned(place_name(&frame.mapping, frame.address)),
        function => Cow::Borrowed(function),
    }
}

/// Merges the samples of profiles by function. All must be of one type.
pub fn flame_tree<'p, 's: 'p>(set: &ProfileSet<'_>, profiles: impl IntoIterator<Item = &'p Profile<'s>>) -> FlameTree {
    // Without a limit there always is a tree.
    bounded_flame_tree(set, profiles, usize::MAX).unwrap_or_default()
}

/// The same for files of strangers: none if the tree would have more than about `max_nodes` nodes. A step of a stack may
/// take a byte of a file, and takes hundreds of a tree.
pub fn bounded_flame_tree<'p, 's: 'p>(
    set: &ProfileSet<'_>,
    profiles: impl IntoIterator<Item = &'p Profile<'s>>,
    max_nodes: usize,
) -> Option<FlameTree> {
    let mut tree = FlameTree::default();
    let mut weights: Vec<i64> = vec![0; set.paths.path_count()];
    for sample in profiles.into_iter().flat_map(|profile| &profile.samples) {
        match weights.get_mut(sample.path as usize) {
            Some(weight) => *weight = weight.saturating_add(sample.value),
            None => tree.add_self(FlameTree::ROOT, sample.value),
        }
    }
    // A function may run on several lines at one place of the tree, so frames are told apart first.
    let mut nodes = vec![Node { parent: 0, frame: FrameIndex::MAX, weight: 0, total: 0 }];
    let mut known: HashMap<(usize, FrameIndex), usize> = HashMap::new();
    let mut steps = Vec::new();
    for (path, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0) {
        steps.clear();
        steps.extend(set.paths.steps_to_root(path as u32));
        let mut node = 0;
        for frame in steps.iter().rev() {
            node = *known.entry((node, *frame)).or_insert_with(|| {
                nodes.push(Node { parent: node, frame: *frame, weight: 0, total: 0 });
                nodes.len() - 1
            });
            nodes[node].total = nodes[node].total.saturating_add(*weight);
        }
        nodes[node].weight = *weight;
        if nodes.len() > max_nodes {
            return None;
        }
    }
    let mut places = vec![FlameTree::ROOT];
    for node in &nodes[1..] {
        let frame = set.paths.frames.get(node.frame);
        let name = tree.intern(&shown_name(&frame));
        let place = tree.child(places[node.parent], name);
        if !frame.file.is_empty() {
            let file = tree.intern(&frame.file);
            tree.place(place, file, frame.line, node.total);
        }
        tree.add_self(place, node.weight);
        places.push(place);
    }
    tree.sum_totals();
    Some(tree)
}

/// A frame and how it was reached. Callers stand before what they call.
struct Node {
    parent: usize,
    frame: FrameIndex,
    weight: i64,
    total: i64,
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
        let tree = flame_tree(&set, &set.profiles);
        assert_eq!((tree.nodes().len(), tree.total()), (3, 11));
        assert_eq!((tree.nodes()[2].line, tree.name(tree.nodes()[2].file)), (7, "a.py"));
        let bare = Frame { address: 255, mapping: "/usr/lib/libc.so".into(), ..Frame::default() };
        assert_eq!(shown_name(&bare), "libc.so!0xff");
    }
}
