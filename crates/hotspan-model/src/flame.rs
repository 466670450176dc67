//! The flame tree: call paths merged by function, with self and total values.
//!
//! Stored paths tell lines and addresses apart; a flame graph does not. Building a tree folds the nodes that
//! share a function and a parent, and remembers for each the line that carries the most.

use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::frame::FrameKind;

/// Index of a node in a [`FlameTree`].
pub type FlameIndex = usize;

/// A node of the flame tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlameNode {
    /// The caller; the root is its own parent.
    pub parent: FlameIndex,
    /// Index of the function's name in [`FlameTree::names`].
    pub name: u32,
    /// Index of the file's name in [`FlameTree::names`]; 0 if not known.
    pub file: u32,
    /// The line that carries most of the value; 0 if not known.
    pub line: u32,
    /// Value measured in this function itself.
    pub self_value: i64,
    /// Value measured in this function and everything it called.
    pub total: i64,
    line_weight: i64,
}

/// Merged call paths. Node 0 is the root, which stands for everything; parents stand before their children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameTree {
    nodes: Vec<FlameNode>,
    names: Vec<Arc<str>>,
    name_index: HashMap<Arc<str>, u32>,
    children: HashMap<(FlameIndex, u32), FlameIndex>,
    origins: HashMap<u32, Origin>,
    /// The name of what pruning folded. It is no function's, though a function may be called the same.
    folded_name: Option<u32>,
}

/// Where a function comes from, whoever calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Index of the binary's or library's name in [`FlameTree::names`]; 0 if not known.
    pub module: u32,
}

/// What pruning folded away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// How many nodes.
    pub nodes: u64,
    /// The value they carried.
    pub value: i64,
}

/// The name under which folded nodes are shown, as in Pyroscope.
pub const OTHER: &str = "other";

impl Default for FlameTree {
    fn default() -> Self {
        let mut tree = Self {
            nodes: vec![FlameNode::default()],
            names: Vec::new(),
            name_index: HashMap::new(),
            children: HashMap::new(),
            origins: HashMap::new(),
            folded_name: None,
        };
        tree.intern("");
        tree
    }
}

impl FlameTree {
    /// The root.
    pub const ROOT: FlameIndex = 0;

    /// Index of a name, which is added if it is new. Index 0 is the empty name.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(index) = self.name_index.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        let name: Arc<str> = Arc::from(name);
        self.names.push(Arc::clone(&name));
        self.name_index.insert(name, index);
        index
    }

    /// Index of the name of what pruning folded, if it folded anything. Of a function that is called [`OTHER`] as well it is
    /// told apart by its index.
    pub fn folded_name(&self) -> Option<u32> {
        self.folded_name
    }

    fn name_for_folded(&mut self) -> u32 {
        *self.folded_name.get_or_insert_with(|| {
            self.names.push(Arc::from(OTHER));
            (self.names.len() - 1) as u32
        })
    }

    /// The child of `parent` that runs the function `name`, which is added if it is new.
    pub fn child(&mut self, parent: FlameIndex, name: u32) -> FlameIndex {
        if let Some(index) = self.children.get(&(parent, name)) {
            return *index;
        }
        let index = self.nodes.len();
        self.nodes.push(FlameNode { parent, name, ..FlameNode::default() });
        self.children.insert((parent, name), index);
        index
    }

    /// Names the place of a node, if `weight` is the largest that was seen for it.
    pub fn place(&mut self, node: FlameIndex, file: u32, line: u32, weight: i64) {
        let node = &mut self.nodes[node];
        if weight > node.line_weight || (node.file == 0 && node.line == 0) {
            (node.file, node.line, node.line_weight) = (file, line, weight);
        }
    }

    /// Says where a function comes from, unless that has been said: `module` is the index of a name.
    pub fn describe(&mut self, name: u32, kind: FrameKind, module: u32) {
        if kind == FrameKind::Unknown && module == 0 {
            return;
        }
        self.origins.entry(name).or_insert(Origin { kind, module });
    }

    /// Where a function comes from.
    pub fn origin(&self, name: u32) -> Origin {
        self.origins.get(&name).copied().unwrap_or_default()
    }

    /// Adds to a node's own value; totals are brought up to date by [`FlameTree::sum_totals`].
    pub fn add_self(&mut self, node: FlameIndex, value: i64) {
        add(&mut self.nodes[node].self_value, value);
    }

    /// Computes totals from self values.
    pub fn sum_totals(&mut self) {
        for node in &mut self.nodes {
            node.total = node.self_value;
        }
        // Parents stand before children, so one backward pass carries every total up.
        for index in (1..self.nodes.len()).rev() {
            let (parent, total) = (self.nodes[index].parent, self.nodes[index].total);
            add(&mut self.nodes[parent].total, total);
        }
    }

    /// Adds a stack of function names, the root first. For tests and small inputs.
    pub fn add_stack<'n>(&mut self, root_to_leaf: impl IntoIterator<Item = &'n str>, value: i64) {
        let mut node = Self::ROOT;
        for name in root_to_leaf {
            let name = self.intern(name);
            node = self.child(node, name);
        }
        self.add_self(node, value);
        self.sum_totals();
    }

    /// All nodes, parents first.
    pub fn nodes(&self) -> &[FlameNode] {
        &self.nodes
    }

    /// Index of a name, if the tree has it.
    pub fn find_name(&self, name: &str) -> Option<u32> {
        self.name_index.get(name).copied()
    }

    /// How many names there are: their indices are all below.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// A name by its index.
    pub fn name(&self, index: u32) -> &str {
        &self.names[index as usize]
    }

    /// Everything that was measured.
    pub fn total(&self) -> i64 {
        self.nodes[Self::ROOT].total
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1 && self.nodes[0].self_value == 0
    }

    /// The children of every node, in byte order of their names, `other` last.
    pub fn children_by_name(&self) -> Children {
        Children::by_name(&self.nodes, |node| node.parent, |node| self.name(node.name))
    }

    /// Keeps the `max_nodes` nodes with the largest totals and folds the others into a child `other` of their
    /// nearest kept caller, so that every total stays as it was. 0 keeps all.
    pub fn pruned(&self, max_nodes: usize) -> (Self, Pruned) {
        if max_nodes == 0 || self.nodes.len() <= max_nodes + 1 {
            return (self.clone(), Pruned::default());
        }
        let parents: Vec<u32> = self.nodes.iter().map(|node| node.parent as u32).collect();
        let self_values: Vec<i64> = self.nodes.iter().map(|node| node.self_value).collect();
        Self::from_arrays(&parents, &self_values, max_nodes, |index| {
            let node = &self.nodes[index];
            let origin = self.origin(node.name);
            NodeText {
                name: self.name(node.name),
                file: self.name(node.file),
                line: node.line,
                line_weight: node.line_weight,
                kind: origin.kind,
                module: self.name(origin.module),
            }
        })
    }

    /// Builds a pruned tree from arrays in which callers stand before callees and index 0 is the root. Nodes without
    /// any value are left out; texts are asked for only where a node is kept.
    pub fn from_arrays<'t>(
        parents: &[u32],
        self_values: &[i64],
        max_nodes: usize,
        text_of: impl Fn(usize) -> NodeText<'t>,
    ) -> (Self, Pruned) {
        let mut totals = self_values.to_vec();
        let mut has_value: Vec<bool> = self_values.iter().map(|value| *value != 0).collect();
        for index in (1..totals.len()).rev() {
            let parent = parents[index] as usize;
            totals[parent] = totals[parent].saturating_add(totals[index]);
            has_value[parent] |= has_value[index];
        }
        let mut cut = Cut::at(max_nodes, &totals, &has_value);
        let mut tree = Self::default();
        let expected = if max_nodes == 0 { totals.len() } else { totals.len().min(max_nodes) };
        tree.nodes.reserve(expected);
        tree.children.reserve(expected);
        let mut pruned = Pruned::default();
        let mut texts = TextsByPlace::default();
        // For each node: where it went, and whether it was kept itself.
        let mut places: Vec<(FlameIndex, bool)> = vec![(Self::ROOT, true); totals.len()];
        tree.nodes[Self::ROOT].self_value = self_values.first().copied().unwrap_or(0);
        for index in (1..totals.len()).filter(|index| has_value[*index]) {
            let (parent, parent_kept) = places[parents[index] as usize];
            if parent_kept && cut.keeps(totals[index]) {
                let text = text_of(index);
                let (name, file) = (texts.intern(text.name, &mut tree), texts.intern(text.file, &mut tree));
                let kept = tree.child(parent, name);
                add(&mut tree.nodes[kept].self_value, self_values[index]);
                tree.place(kept, file, text.line, text.line_weight);
                let module = texts.intern(text.module, &mut tree);
                tree.describe(name, text.kind, module);
                places[index] = (kept, true);
            } else {
                pruned.nodes += 1;
                add(&mut pruned.value, self_values[index]);
                let folded = if parent_kept {
                    let other = tree.name_for_folded();
                    tree.child(parent, other)
                } else {
                    parent
                };
                add(&mut tree.nodes[folded].self_value, self_values[index]);
                places[index] = (folded, false);
            }
        }
        tree.sum_totals();
        (tree, pruned)
    }
}

/// Adds to a sum, which stays at the largest number there is rather than to become negative.
fn add(sum: &mut i64, value: i64) {
    *sum = sum.saturating_add(value);
}

/// The children of every node of a tree: `children[node]` are its children, in order.
#[derive(Debug)]
pub struct Children {
    /// Those of the first node, of the second, and so on.
    all: Vec<FlameIndex>,
    /// Where those of each node start, and where the last ones end.
    starts: Vec<usize>,
}

impl Children {
    /// The children of nodes of which the first is the root, in byte order of their names, [`OTHER`] last.
    pub fn by_name<'n, N>(nodes: &'n [N], parent: impl Fn(&N) -> FlameIndex, name: impl Fn(&'n N) -> &'n str) -> Self {
        let mut starts = vec![0; nodes.len() + 1];
        for node in nodes.iter().skip(1) {
            starts[parent(node) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut all = vec![0; nodes.len().saturating_sub(1)];
        for (index, node) in nodes.iter().enumerate().skip(1) {
            let place = &mut next[parent(node)];
            all[*place] = index;
            *place += 1;
        }
        for siblings in starts.windows(2) {
            all[siblings[0]..siblings[1]].sort_unstable_by_key(|index| {
                let name = name(&nodes[*index]);
                (name == OTHER, name, *index)
            });
        }
        Self { all, starts }
    }
}

impl std::ops::Index<FlameIndex> for Children {
    type Output = [FlameIndex];

    fn index(&self, node: FlameIndex) -> &[FlameIndex] {
        &self.all[self.starts[node]..self.starts[node + 1]]
    }
}

/// What a kept node is called, and where it is.
#[derive(Debug, Clone, Copy)]
pub struct NodeText<'t> {
    /// The function.
    pub name: &'t str,
    /// The file; empty if not known.
    pub file: &'t str,
    /// The line; 0 if not known.
    pub line: u32,
    /// How much of the node's value the line carries.
    pub line_weight: i64,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// The binary or library; empty if not known.
    pub module: &'t str,
}

/// Indices of names by where their texts lie in memory: the nodes of a function share its text, and where it lies is
/// hashed faster than what it says.
#[derive(Default)]
struct TextsByPlace<'t> {
    known: HashMap<(*const u8, usize), u32>,
    texts: PhantomData<&'t str>,
}

impl<'t> TextsByPlace<'t> {
    fn intern(&mut self, text: &'t str, tree: &mut FlameTree) -> u32 {
        if text.is_empty() {
            return 0;
        }
        *self.known.entry((text.as_ptr(), text.len())).or_insert_with(|| tree.intern(text))
    }
}

/// The total that a node needs to be kept, and how many may be kept that have just that.
struct Cut {
    threshold: i64,
    room_at_threshold: usize,
}

impl Cut {
    fn at(max_nodes: usize, totals: &[i64], has_value: &[bool]) -> Self {
        let candidates = || totals.iter().zip(has_value).skip(1).filter(|(_, has_value)| **has_value);
        let mut sizes: Vec<i64> = candidates().map(|(total, _)| total.abs()).collect();
        if max_nodes == 0 || sizes.len() <= max_nodes {
            return Self { threshold: -1, room_at_threshold: 0 };
        }
        let (_, threshold, _) = sizes.select_nth_unstable_by(max_nodes - 1, |a, b| b.cmp(a));
        let threshold = *threshold;
        let larger = candidates().filter(|(total, _)| total.abs() > threshold).count();
        Self { threshold, room_at_threshold: max_nodes - larger }
    }

    fn keeps(&mut self, total: i64) -> bool {
        let size = total.abs();
        if size == self.threshold && self.room_at_threshold > 0 {
            self.room_at_threshold -= 1;
            return true;
        }
        size > self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_tree() -> FlameTree {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "x"], 3);
        tree.add_stack(["main", "y"], 5);
        tree.add_stack(["main", "y", "z"], 1);
        tree
    }

    /// Scenario: stacks that share callers. Guarantee: totals are the sums of what lies below.
    #[test]
    fn totals_add_up() {
        let tree = sample_tree();
        assert_eq!(tree.total(), 9);
        let y = tree.nodes().iter().find(|node| tree.name(node.name) == "y").unwrap();
        assert_eq!((y.self_value, y.total), (5, 6));
    }

    /// Scenario: values that together have more than fits into 64 bits, in a tree and in one pruned from it.
    /// Guarantee: sums stay at the largest number there is.
    #[test]
    fn sums_stay_in_range() {
        let mut tree = FlameTree::default();
        for name in ["x", "x", "y", "z"] {
            tree.add_stack(["main", name], i64::MAX);
        }
        assert_eq!((tree.total(), tree.nodes()[1].total, tree.nodes()[2].self_value), (i64::MAX, i64::MAX, i64::MAX));
        let (small, pruned) = tree.pruned(1);
        assert_eq!((small.total(), pruned.value), (i64::MAX, i64::MAX));
    }

    /// Scenario: a tree pruned to few nodes. Guarantee: the total stays, and what was folded is reported.
    #[test]
    fn pruning_keeps_totals() {
        let tree = sample_tree();
        for max_nodes in 1..6 {
            let (small, pruned) = tree.pruned(max_nodes);
            assert_eq!(small.total(), tree.total());
            let kept = small.nodes()[1..].iter().filter(|node| small.name(node.name) != OTHER).count();
            assert!(kept <= max_nodes);
            assert_eq!(kept as u64 + pruned.nodes, 4);
        }
        let (same, pruned) = tree.pruned(0);
        assert_eq!(same.folded_name(), None);
        assert_eq!((same, pruned), (tree, Pruned::default()));
    }

    /// Scenario: a tree with a function called `other`, pruned. Guarantee: what was folded is not added to the function.
    #[test]
    fn a_function_called_other() {
        let mut tree = FlameTree::default();
        for (name, value) in [("other", 50), ("hot", 90), ("x", 10), ("y", 5)] {
            tree.add_stack(["main", name], value);
        }
        let (small, pruned) = tree.pruned(3);
        assert_eq!(pruned, Pruned { nodes: 2, value: 15 });
        let folded = small.folded_name().unwrap();
        let own = |is_folded: bool| -> Vec<i64> {
            let named = small.nodes()[1..].iter().filter(|node| small.name(node.name) == OTHER);
            named.filter(|node| (node.name == folded) == is_folded).map(|node| node.self_value).collect()
        };
        assert_eq!((own(false), own(true)), (vec![50], vec![15]));
    }
}
