//! Two flame trees laid over each other: what a differential flame graph is drawn from.

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use hotspan_model::flame::{FlameIndex, OTHER};

/// Values of one side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Side {
    /// Value measured in the function itself.
    pub self_value: i64,
    /// Value measured in the function and everything it called.
    pub total: i64,
}

/// Which sides a frame was seen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// On both.
    #[default]
    Both,
    /// Only on the right: it is new.
    New,
    /// Only on the left: it has vanished.
    Vanished,
}

/// A call path with its values on either side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffNode {
    /// The caller; the root is its own parent.
    pub parent: usize,
    /// Index of the name in [`DiffTree::name`].
    pub name: u32,
    /// The baseline.
    pub left: Side,
    /// What it is compared with.
    pub right: Side,
    in_left: bool,
    in_right: bool,
}

impl DiffNode {
    /// Which sides it was seen on.
    pub fn presence(&self) -> Presence {
        match (self.in_left, self.in_right) {
            (false, true) => Presence::New,
            (true, false) => Presence::Vanished,
            _ => Presence::Both,
        }
    }
}

/// Two flame trees in one. Node 0 is the root; parents stand before their children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffTree {
    nodes: Vec<DiffNode>,
    names: Vec<String>,
}

impl DiffTree {
    /// Lays `right` over `left`.
    pub fn new(left: &FlameTree, right: &FlameTree) -> Self {
        let mut tree =
            Self { nodes: vec![DiffNode { in_left: true, in_right: true, ..DiffNode::default() }], names: Vec::new() };
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut children: HashMap<(usize, u32), usize> = HashMap::new();
        for (source, is_left) in [(left, true), (right, false)] {
            let mut place: Vec<usize> = Vec::with_capacity(source.nodes().len());
            for (index, node) in source.nodes().iter().enumerate() {
                let at = if index == FlameTree::ROOT {
                    0
                } else {
                    let name = tree.intern(&mut names, source.name(node.name));
                    let parent = place[node.parent];
                    *children.entry((parent, name)).or_insert_with(|| {
                        tree.nodes.push(DiffNode { parent, name, ..DiffNode::default() });
                        tree.nodes.len() - 1
                    })
                };
                place.push(at);
                let side = Side { self_value: node.self_value, total: node.total };
                if is_left {
                    (tree.nodes[at].left, tree.nodes[at].in_left) = (side, true);
                } else {
                    (tree.nodes[at].right, tree.nodes[at].in_right) = (side, true);
                }
            }
        }
        tree
    }

    fn intern(&mut self, names: &mut HashMap<String, u32>, name: &str) -> u32 {
        if let Some(index) = names.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        names.insert(name.to_owned(), index);
        index
    }

    /// All nodes, parents first.
    pub fn nodes(&self) -> &[DiffNode] {
        &self.nodes
    }

    /// The name of a node; empty for the root.
    pub fn name(&self, node: usize) -> &str {
        if node == 0 { "" } else { &self.names[self.nodes[node].name as usize] }
    }

    /// The children of every node, in byte order of their names, `other` last.
    pub fn children_by_name(&self) -> Vec<Vec<FlameIndex>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(index);
        }
        for siblings in &mut children {
            siblings.sort_unstable_by_key(|index| (self.name(*index) == OTHER, self.name(*index)));
        }
        children
    }
}
