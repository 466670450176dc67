//! Two flame trees laid over each other: what a differential flame graph is drawn from.

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use hotspan_model::flame::{Children, OTHER};

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

impl DiffNode {
    /// Takes in a node with all that lies below it.
    fn fold(&mut self, node: &Self) {
        for (sum, side) in [(&mut self.left, node.left), (&mut self.right, node.right)] {
            sum.self_value = sum.self_value.saturating_add(side.total);
            sum.total = sum.total.saturating_add(side.total);
        }
        self.in_left |= node.in_left;
        self.in_right |= node.in_right;
    }
}

/// Two flame trees in one. Node 0 is the root; parents stand before their children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffTree {
    nodes: Vec<DiffNode>,
    names: Vec<String>,
    folded: u64,
    /// The name of what pruning folded, which is no function's.
    folded_name: Option<u32>,
}

impl DiffTree {
    /// Lays `right` over `left`.
    pub fn new(left: &FlameTree, right: &FlameTree) -> Self {
        let root = DiffNode { in_left: true, in_right: true, ..DiffNode::default() };
        let mut tree = Self { nodes: vec![root], names: Vec::new(), folded: 0, folded_name: None };
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut children: HashMap<(usize, u32), usize> = HashMap::new();
        for (source, is_left) in [(left, true), (right, false)] {
            let mut place: Vec<usize> = Vec::with_capacity(source.nodes().len());
            for (index, node) in source.nodes().iter().enumerate() {
                let at = if index == FlameTree::ROOT {
                    0
                } else {
                    let name = match source.folded_name() == Some(node.name) {
                        true => tree.name_for_folded(),
                        false => tree.intern(&mut names, source.name(node.name)),
                    };
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

    fn name_for_folded(&mut self) -> u32 {
        *self.folded_name.get_or_insert_with(|| {
            self.names.push(OTHER.to_owned());
            (self.names.len() - 1) as u32
        })
    }

    /// Keeps the `max_nodes` nodes that are largest on both sides together, and folds the others into a child
    /// `other` of their nearest kept caller, so that every total stays as it was. 0 keeps all.
    pub fn pruned(self, max_nodes: usize) -> Self {
        let size = |node: &DiffNode| node.left.total.unsigned_abs().saturating_add(node.right.total.unsigned_abs());
        if max_nodes == 0 || self.nodes.len() <= max_nodes + 1 {
            return self;
        }
        let mut sizes: Vec<u64> = self.nodes.iter().skip(1).map(size).collect();
        let (_, threshold, _) = sizes.select_nth_unstable_by(max_nodes - 1, |a, b| b.cmp(a));
        let threshold = *threshold;
        let mut room = max_nodes - self.nodes.iter().skip(1).filter(|node| size(node) > threshold).count();
        let mut small = Self { nodes: vec![self.nodes[0].clone()], names: self.names, ..self };
        let other = small.name_for_folded();
        let mut others: HashMap<usize, usize> = HashMap::new();
        // For each node: where it went, and whether it was kept itself.
        let mut places = vec![(0, true); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let (parent, parent_kept) = places[node.parent];
            let at_threshold = size(node) == threshold && room > 0;
            if parent_kept && (size(node) > threshold || at_threshold) {
                room -= usize::from(at_threshold);
                small.nodes.push(DiffNode { parent, ..node.clone() });
                places[index] = (small.nodes.len() - 1, true);
                if node.name == other {
                    others.insert(parent, small.nodes.len() - 1);
                }
                continue;
            }
            small.folded += 1;
            // What lies below a folded node is in its total already.
            let at = if parent_kept {
                let at = *others.entry(parent).or_insert_with(|| {
                    small.nodes.push(DiffNode { parent, name: other, ..DiffNode::default() });
                    small.nodes.len() - 1
                });
                small.nodes[at].fold(node);
                at
            } else {
                parent
            };
            places[index] = (at, false);
        }
        small
    }

    /// How many nodes pruning has folded away.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// All nodes, parents first.
    pub fn nodes(&self) -> &[DiffNode] {
        &self.nodes
    }

    /// The name of a node; empty for the root.
    pub fn name(&self, node: usize) -> &str {
        if node == 0 { "" } else { self.name_text(self.nodes[node].name) }
    }

    /// A name by its number, which nodes but the root have.
    pub(crate) fn name_text(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// The children of every node, in byte order of their names, `other` last.
    pub fn children_by_name(&self) -> Children {
        Children::by_name(&self.nodes, |node| node.parent, |node| self.name_text(node.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: two trees laid over each other and pruned to every size.
    /// Guarantee: totals of both sides stay, no more nodes than asked are kept, and what is new stays marked.
    #[test]
    fn pruning_keeps_totals() {
        let (mut left, mut right) = (FlameTree::default(), FlameTree::default());
        left.add_stack(["main", "a", "x"], 50);
        left.add_stack(["main", "b"], 3);
        right.add_stack(["main", "a", "y"], 70);
        right.add_stack(["main", "c", "d"], 2);
        for max_nodes in 1..8 {
            let tree = DiffTree::new(&left, &right).pruned(max_nodes);
            let root = &tree.nodes()[0];
            assert_eq!((root.left.total, root.right.total), (53, 72));
            let kept = (1..tree.nodes().len()).filter(|node| tree.name(*node) != OTHER).count();
            assert_eq!(kept, max_nodes.min(7), "{max_nodes}");
            assert_eq!(kept as u64 + tree.folded(), 7, "{max_nodes}");
            for (index, node) in tree.nodes().iter().enumerate() {
                let below = |side: fn(&DiffNode) -> Side| {
                    let children = tree.nodes().iter().enumerate().skip(1).filter(|(_, child)| child.parent == index);
                    children.map(|(_, child)| side(child).total).sum::<i64>() + side(node).self_value
                };
                assert_eq!((below(|n| n.left), below(|n| n.right)), (node.left.total, node.right.total), "{max_nodes}");
            }
            let y = (0..tree.nodes().len()).find(|node| tree.name(*node) == "y");
            assert!(y.is_none_or(|y| tree.nodes()[y].presence() == Presence::New));
        }
    }
}
