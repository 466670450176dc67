//! The flame tree: call paths merged by function, with self and total values.
//!
//! Stored paths tell lines and addresses apart; a flame graph does not. Building a tree folds the nodes that
//! share a function and a parent, and remembers for each the line that carries the most.

use hashbrown::HashMap;

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
    names: Vec<String>,
    name_index: HashMap<String, u32>,
    children: HashMap<(FlameIndex, u32), FlameIndex>,
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
        self.names.push(name.to_owned());
        self.name_index.insert(name.to_owned(), index);
        index
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

    /// Adds to a node's own value; totals are brought up to date by [`FlameTree::sum_totals`].
    pub fn add_self(&mut self, node: FlameIndex, value: i64) {
        self.nodes[node].self_value += value;
    }

    /// Computes totals from self values.
    pub fn sum_totals(&mut self) {
        for node in &mut self.nodes {
            node.total = node.self_value;
        }
        // Parents stand before children, so one backward pass carries every total up.
        for index in (1..self.nodes.len()).rev() {
            let (parent, total) = (self.nodes[index].parent, self.nodes[index].total);
            self.nodes[parent].total += total;
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
    pub fn children_by_name(&self) -> Vec<Vec<FlameIndex>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(index);
        }
        for siblings in &mut children {
            siblings.sort_unstable_by_key(|index| {
                let name = self.name(self.nodes[*index].name);
                (name == OTHER, name)
            });
        }
        children
    }

    /// Keeps the `max_nodes` nodes with the largest totals and folds the others into a child `other` of their
    /// nearest kept caller, so that every total stays as it was.
    pub fn pruned(&self, max_nodes: usize) -> (Self, Pruned) {
        if max_nodes == 0 || self.nodes.len() <= max_nodes + 1 {
            return (self.clone(), Pruned::default());
        }
        let mut totals: Vec<i64> = self.nodes[1..].iter().map(|node| node.total.abs()).collect();
        let (_, threshold, _) = totals.select_nth_unstable_by(max_nodes - 1, |a, b| b.cmp(a));
        let threshold = *threshold;
        let mut room_at_threshold =
            max_nodes - self.nodes[1..].iter().filter(|node| node.total.abs() > threshold).count();

        let mut tree = Self::default();
        let mut pruned = Pruned::default();
        let other = tree.intern(OTHER);
        // For each old node: where it went, and whether it was kept itself.
        let mut place: Vec<(FlameIndex, bool)> = vec![(Self::ROOT, true)];
        tree.nodes[Self::ROOT].self_value = self.nodes[Self::ROOT].self_value;
        for node in &self.nodes[1..] {
            let (parent, parent_kept) = place[node.parent];
            let total = node.total.abs();
            let fits = total > threshold || (total == threshold && room_at_threshold > 0);
            if parent_kept && fits {
                if total == threshold {
                    room_at_threshold -= 1;
                }
                let (name, file) = (self.name(node.name).to_owned(), self.name(node.file).to_owned());
                let (name, file) = (tree.intern(&name), tree.intern(&file));
                let kept = tree.child(parent, name);
                tree.nodes[kept].self_value += node.self_value;
                tree.place(kept, file, node.line, node.line_weight);
                place.push((kept, true));
            } else {
                pruned.nodes += 1;
                pruned.value += node.self_value;
                let folded = if parent_kept { tree.child(parent, other) } else { parent };
                tree.nodes[folded].self_value += node.self_value;
                place.push((folded, false));
            }
        }
        tree.sum_totals();
        (tree, pruned)
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
        assert_eq!((same, pruned), (tree, Pruned::default()));
    }
}
