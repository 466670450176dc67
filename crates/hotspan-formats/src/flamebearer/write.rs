//! Flamebearer out, for one tree or two.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use hotspan_model::flame::Children;
use hotspan_model::{FlameTree, ProfileType};
use serde::Serialize;

use crate::diff_tree::DiffTree;
use crate::flame_frames::{FrameFacts, frame_facts};

/// What the root is called.
const TOTAL: &str = "total";

/// The bars.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Flamebearer {
    /// Function names; the first is `total`.
    pub names: Vec<String>,
    /// Bars by depth.
    pub levels: Vec<Vec<i64>>,
    /// Value of the whole graph; of both sides together for two trees.
    pub num_ticks: i64,
    /// The largest self value of any bar.
    pub max_self: i64,
    /// What is known of each name besides; left out where nobody asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<FrameFacts>,
    /// Place among the names of what pruning folded, which a function may be called as well.
    #[serde(skip)]
    folded_name: Option<usize>,
}

/// How to draw the bars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// `single` or `double`.
    pub format: &'static str,
    /// The client that took the profiles.
    pub spy_name: String,
    /// Values in a second of time, for values that are time.
    pub sample_rate: u32,
    /// What values are.
    pub units: String,
    /// The profile type.
    pub name: String,
}

/// Values over time, drawn above a flame graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// Start in seconds since 1970.
    pub start_time: i64,
    /// One value for each step.
    pub samples: Vec<u64>,
    /// Length of a step in seconds.
    pub duration_delta: i64,
    /// Always empty; clients expect the key.
    pub watermarks: Option<BTreeMap<i32, i64>>,
}

/// The answer of `/pyroscope/render` and `/pyroscope/render-diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlamebearerProfile {
    /// Version of this format.
    pub version: u32,
    /// The bars.
    pub flamebearer: Flamebearer,
    /// How to draw them.
    pub metadata: Metadata,
    /// Values over time.
    pub timeline: Option<Timeline>,
    /// Values over time by group.
    pub groups: Option<BTreeMap<String, Timeline>>,
    /// Never filled; clients expect the key.
    pub heatmap: Option<()>,
    /// Value of the left side of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ticks: Option<i64>,
    /// Value of the right side of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right_ticks: Option<i64>,
}

impl Metadata {
    /// How Pyroscope describes values of this type.
    pub fn for_type(format: &'static str, profile_type: &ProfileType) -> Self {
        let (units, sample_rate) = match profile_type.sample_type.as_str() {
            "cpu" => ("samples", 1_000_000_000),
            "inuse_objects" | "alloc_objects" | "goroutine" | "samples" => ("objects", 100),
            _ => (profile_type.sample_unit.as_str(), 100),
        };
        let name = profile_type.sample_type.clone();
        Self { format, spy_name: "unknown".to_owned(), sample_rate, units: units.to_owned(), name }
    }
}

impl FlamebearerProfile {
    /// The flame graph of one tree.
    pub fn single(tree: &FlameTree, profile_type: &ProfileType) -> Self {
        Self::around(Flamebearer::single(tree), Metadata::for_type("single", profile_type), None)
    }

    /// The flame graph of two trees.
    pub fn double(tree: &DiffTree, profile_type: &ProfileType) -> Self {
        let root = &tree.nodes()[0];
        let ticks = Some((root.left.total, root.right.total));
        Self::around(Flamebearer::double(tree), Metadata::for_type("double", profile_type), ticks)
    }

    fn around(flamebearer: Flamebearer, metadata: Metadata, ticks: Option<(i64, i64)>) -> Self {
        Self {
            version: 1,
            flamebearer,
            metadata,
            timeline: None,
            groups: None,
            heatmap: None,
            left_ticks: ticks.map(|(left, _)| left),
            right_ticks: ticks.map(|(_, right)| right),
        }
    }
}

impl Flamebearer {
    /// Bars of four numbers: offset, total, self, name.
    pub fn single(tree: &FlameTree) -> Self {
        if tree.is_empty() {
            return Self::default();
        }
        let nodes = tree.nodes();
        Self::layout(
            &tree.children_by_name(),
            |node| ([[nodes[node].total, nodes[node].self_value]], nodes[node].name),
            |name| tree.name(name),
            tree.folded_name(),
        )
    }

    /// Bars of seven numbers: offset, total, self of the left side, the same of the right side, name.
    pub fn double(tree: &DiffTree) -> Self {
        let nodes = tree.nodes();
        if nodes.len() == 1 && nodes[0].left.total == 0 && nodes[0].right.total == 0 {
            return Self::default();
        }
        let bar = |node: usize| {
            let (left, right) = (nodes[node].left, nodes[node].right);
            ([[left.total, left.self_value], [right.total, right.self_value]], nodes[node].name)
        };
        Self::layout(&tree.children_by_name(), bar, |name| tree.name_text(name), None)
    }

    /// The same bars with what trees know of the functions: the first that knows one tells.
    #[must_use]
    pub fn with_frames(mut self, trees: &[&FlameTree]) -> Self {
        self.frames = frame_facts(&self.names, trees);
        // The root and what was folded are no functions, though functions may be called the same.
        let root = self.levels.first().and_then(|bars| bars.last()).map(|name| *name as usize);
        for place in [root, self.folded_name].into_iter().flatten() {
            self.frames[place] = FrameFacts::default();
        }
        self
    }

    /// The same bars of one tree with the names ordered by the self values in `whole`, the tree before it was pruned.
    ///
    /// Scripts print the first names as the top functions. `total` and the `other` of pruning, which are none, are
    /// therefore the last, and names without a bar are listed too, where they are among the first `max_names`: a function
    /// that is called from everywhere can be the hottest and have small bars alone. For answers that no flame graph is
    /// drawn from by position.
    #[must_use]
    pub fn with_names_by_self(mut self, whole: &FlameTree, max_names: usize) -> Self {
        const NUMBERS_A_BAR: usize = 4;
        if self.names.is_empty() {
            return self;
        }
        let by_self = names_by_self(whole);
        let own_of: HashMap<&str, i64> = by_self.iter().copied().collect();
        let without_bar: Vec<String> = {
            let functions = self.names.iter().enumerate().skip(1).filter(|(index, _)| self.folded_name != Some(*index));
            let with_bar: HashSet<&str> = functions.map(|(_, name)| name.as_str()).collect();
            let first = by_self.iter().take(max_names).map(|(name, _)| *name);
            first.filter(|name| !with_bar.contains(name)).map(str::to_owned).collect()
        };
        self.names.extend(without_bar);
        let rank = |index: usize| {
            let name = self.names[index].as_str();
            // The root and what was folded have names that functions may have as well, with places of their own.
            (index == 0, self.folded_name == Some(index), Reverse(own_of.get(name).copied().unwrap_or(0)), index)
        };
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by_key(|index| rank(*index));
        let mut new_index = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_index[*old] = new as i64;
        }
        self.folded_name = self.folded_name.map(|old| new_index[old] as usize);
        for bar in self.levels.iter_mut().flat_map(|level| level.chunks_exact_mut(NUMBERS_A_BAR)) {
            if let Some(name) = new_index.get(bar[NUMBERS_A_BAR - 1] as usize) {
                bar[NUMBERS_A_BAR - 1] = *name;
            }
        }
        self.names = order.iter().map(|old| std::mem::take(&mut self.names[*old])).collect();
        self
    }

    /// Places bars for `SIDES` trees. `bar` gives total and self value of each side, and the number of the name.
    fn layout<'t, const SIDES: usize>(
        children: &Children,
        bar: impl Fn(usize) -> ([[i64; 2]; SIDES], u32),
        text_of: impl Fn(u32) -> &'t str,
        folded_name: Option<u32>,
    ) -> Self {
        const UNSEEN: usize = usize::MAX;
        let mut graph = Self { names: vec![TOTAL.to_owned()], ..Self::default() };
        // By the number of a name: its place among the names.
        let mut places: Vec<usize> = Vec::new();
        // Bars of each level from right to left, since that is the order in which they are met.
        let mut levels: Vec<Vec<([i64; SIDES], usize, usize)>> = Vec::new();
        let mut stack = vec![(0, 0, [0i64; SIDES])];
        while let Some((node, level, offsets)) = stack.pop() {
            let (values, number) = bar(node);
            if node != 0 && places.len() <= number as usize {
                places.resize(number as usize + 1, UNSEEN);
            }
            let name = match places.get_mut(number as usize).filter(|_| node != 0) {
                None => 0,
                Some(place) => {
                    if *place == UNSEEN {
                        // A function may have the root's name: readers go by place, so that each has its own.
                        *place = graph.names.len();
                        graph.names.push(text_of(number).to_owned());
                        if folded_name == Some(number) {
                            graph.folded_name = Some(*place);
                        }
                    }
                    *place
                }
            };
            if levels.len() == level {
                levels.push(Vec::new());
            }
            levels[level].push((offsets, node, name));
            graph.max_self = values.iter().fold(graph.max_self, |most, [_, own]| most.max(*own));
            // A function's own value comes first, its callees to the right of it.
            let mut next = offsets;
            for (offset, [_, own]) in next.iter_mut().zip(values) {
                *offset = offset.saturating_add(own);
            }
            for child in &children[node] {
                stack.push((*child, level + 1, next));
                for (offset, [total, _]) in next.iter_mut().zip(bar(*child).0) {
                    *offset = offset.saturating_add(total);
                }
            }
        }
        graph.num_ticks = bar(0).0.iter().fold(0, |sum, [total, _]| sum.saturating_add(*total));
        graph.levels = levels
            .into_iter()
            .map(|bars| {
                let mut numbers = Vec::with_capacity(bars.len() * (3 * SIDES + 1));
                let mut ends = [0i64; SIDES];
                for (offsets, node, name) in bars.into_iter().rev() {
                    for (side, [total, own]) in bar(node).0.into_iter().enumerate() {
                        numbers.extend([offsets[side].saturating_sub(ends[side]), total, own]);
                        ends[side] = offsets[side].saturating_add(total);
                    }
                    numbers.push(name as i64);
                }
                numbers
            })
            .collect();
        graph
    }
}

/// The functions of a tree that have a value themselves, with its sum over all paths, the largest first.
fn names_by_self(tree: &FlameTree) -> Vec<(&str, i64)> {
    let mut sums = vec![0i64; tree.name_count()];
    for node in &tree.nodes()[1..] {
        let sum = &mut sums[node.name as usize];
        *sum = sum.saturating_add(node.self_value);
    }
    let named = sums.into_iter().enumerate().filter(|(_, own)| *own != 0);
    let mut named: Vec<(&str, i64)> = named.map(|(name, own)| (tree.name(name as u32), own)).collect();
    named.sort_unstable_by_key(|(name, own)| (Reverse(*own), *name));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(stacks: &[(&[&str], i64)]) -> FlameTree {
        let mut tree = FlameTree::default();
        for (stack, value) in stacks {
            tree.add_stack(stack.iter().copied(), *value);
        }
        tree
    }

    /// Scenario: two callees of one function. Guarantee: the names and levels that Pyroscope gives for it.
    #[test]
    fn single_layout() {
        let graph = Flamebearer::single(&tree(&[(&["main", "x"], 3), (&["main", "y"], 5)]));
        assert_eq!(graph.names, ["total", "main", "y", "x"]);
        assert_eq!(graph.levels, [vec![0, 8, 0, 0], vec![0, 8, 0, 1], vec![0, 3, 3, 3, 0, 5, 5, 2]]);
        assert_eq!((graph.num_ticks, graph.max_self), (8, 5));
        assert_eq!(Flamebearer::single(&FlameTree::default()), Flamebearer::default());
    }

    /// Scenario: a caller with a value of its own, and a gap under a bar without callees.
    /// Guarantee: callees start after the caller's own value, and offsets skip the gap.
    #[test]
    fn offsets_skip_what_has_no_children() {
        let graph = Flamebearer::single(&tree(&[(&["a"], 4), (&["b"], 1), (&["b", "c"], 2)]));
        assert_eq!(graph.names, ["total", "b", "c", "a"]);
        assert_eq!(graph.levels[1], [0, 4, 4, 3, 0, 3, 1, 1]);
        assert_eq!(graph.levels[2], [5, 2, 2, 2]);
    }

    /// Scenario: names ordered for scripts. Guarantee: the largest self value first, bars keep their names.
    #[test]
    fn names_by_self_value() {
        let whole = tree(&[(&["main", "x"], 3), (&["main", "y"], 5)]);
        let graph = Flamebearer::single(&whole).with_names_by_self(&whole, 10);
        assert_eq!(graph.names, ["y", "x", "main", "total"]);
        assert_eq!(graph.levels, [vec![0, 8, 0, 3], vec![0, 8, 0, 2], vec![0, 3, 3, 1, 0, 5, 5, 0]]);
        assert_eq!(Flamebearer::default().with_names_by_self(&whole, 10), Flamebearer::default());
    }

    /// Scenario: a pruned graph whose hottest function has small bars alone, all folded; one with a function `other`.
    /// Guarantee: the hottest is first though it has no bar, what was folded is last, and the function keeps its place.
    #[test]
    fn names_of_a_pruned_graph() {
        let whole = tree(&[(&["a", "hot"], 4), (&["b", "hot"], 4), (&["a"], 5), (&["b"], 6), (&["c", "cold"], 1)]);
        let (pruned, _) = whole.pruned(2);
        let graph = Flamebearer::single(&pruned).with_names_by_self(&whole, 3);
        assert_eq!(graph.names, ["hot", "b", "a", "other", "total"]);
        assert_eq!(graph.levels[0], [0, 20, 0, 4]);
        let names_of = |bars: &[i64]| -> Vec<i64> { bars.chunks_exact(4).map(|bar| bar[3]).collect() };
        assert_eq!((names_of(&graph.levels[1]), names_of(&graph.levels[2])), (vec![2, 1, 3], vec![3, 3]));
        let whole = tree(&[(&["main", "other"], 4), (&["main"], 1)]);
        assert_eq!(Flamebearer::single(&whole).with_names_by_self(&whole, 9).names, ["other", "main", "total"]);
    }

    /// Scenario: functions called as the root and as what pruning folds, the first the hottest of all; whole and pruned.
    /// Guarantee: both stand where their values put them; the root and what was folded stay last, with values of their own.
    #[test]
    fn functions_with_names_of_ours() {
        let whole =
            tree(&[(&["main", "total"], 90), (&["main", "x"], 10), (&["main", "y"], 5), (&["main", "other"], 50)]);
        let graph = Flamebearer::single(&whole).with_names_by_self(&whole, 9);
        assert_eq!(graph.names, ["total", "other", "x", "y", "main", "total"]);
        let (pruned, _) = whole.pruned(3);
        let graph = Flamebearer::single(&pruned).with_names_by_self(&whole, 2);
        assert_eq!(graph.names, ["total", "other", "main", "other", "total"]);
        assert_eq!((&graph.levels[0], &graph.levels[1]), (&vec![0, 155, 0, 4], &vec![0, 155, 0, 2]));
        let mut bars: Vec<&[i64]> = graph.levels[2].chunks_exact(4).collect();
        bars.sort_by_key(|bar| bar[3]);
        let values: Vec<(i64, i64)> = bars.iter().map(|bar| (bar[3], bar[1])).collect();
        assert_eq!(values, [(0, 90), (1, 50), (3, 15)]);

        let mut placed = whole;
        let (file, total) = (placed.intern("a.rs"), placed.find_name("total").unwrap());
        let node = placed.nodes().iter().position(|node| node.name == total).unwrap();
        placed.place(node, file, 7, 90);
        let graph = Flamebearer::single(&placed).with_frames(&[&placed]);
        let function = graph.names.iter().rposition(|name| name == "total").unwrap();
        let lines = (graph.frames[0].line, graph.frames[function].line);
        assert_eq!((graph.names[0].as_str(), lines), ("total", (0, 7)));
    }

    /// Scenario: a function that vanished and one that is new.
    /// Guarantee: seven numbers a bar, zero on the side where it is not, ticks of both sides.
    #[test]
    fn double_layout() {
        let left = tree(&[(&["main", "old"], 3), (&["main", "both"], 1)]);
        let right = tree(&[(&["main", "both"], 2), (&["main", "young"], 5)]);
        let profile = FlamebearerProfile::double(&DiffTree::new(&left, &right), &ProfileType::cpu());
        assert_eq!((profile.left_ticks, profile.right_ticks), (Some(4), Some(7)));
        assert_eq!(profile.flamebearer.num_ticks, 11);
        assert_eq!(profile.flamebearer.names, ["total", "main", "young", "old", "both"]);
        assert_eq!(profile.flamebearer.levels[2], [0, 1, 1, 0, 2, 2, 4, 0, 3, 3, 0, 0, 0, 3, 0, 0, 0, 0, 5, 5, 2]);
    }
}
