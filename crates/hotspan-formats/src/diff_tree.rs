//! Two flame trees laid over each other: what a differential flame graph is drawn from.

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use hotspan_model::flame::{Children, OTHER, Pruned};

use crate::measure::Measure;

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
    fn take_in(&mut self, node: &Self) {
        for (sum, side) in [(&mut self.left, node.left), (&mut self.right, node.right)] {
            sum.self_value = sum.self_value.saturating_add(side.total);
            sum.total = sum.total.saturating_add(side.total);
        }
        self.in_left |= node.in_left;
        self.in_right |= node.in_right;
    }
}

/// What pruning has folded away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Folded {
    /// How many nodes, each counted once though it may be on both sides.
    pub nodes: u64,
    /// What was on the left, as measured.
    pub left: Pruned,
    /// What was on the right, as measured.
    pub right: Pruned,
}

impl Folded {
    fn count(&mut self, node: &DiffNode) {
        self.nodes += 1;
        for (sum, side, is_in) in
            [(&mut self.left, node.left, node.in_left), (&mut self.right, node.right, node.in_right)]
        {
            sum.nodes += u64::from(is_in);
            sum.value = sum.value.saturating_add(side.self_value);
        }
    }
}

/// Two flame trees in one. Node 0 is the root; parents stand before their children. Values are those of the two trees;
/// what they are divided by to be compared is kept beside them.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffTree {
    nodes: Vec<DiffNode>,
    names: Vec<String>,
    measure: Measure,
    folded: Folded,
    /// The name of what pruning folded, which is no function's.
    folded_name: Option<u32>,
}

impl DiffTree {
    /// Lays `right` over `left`. Values are compared as they are, unless [`DiffTree::measured_by`] says more.
    pub fn new(left: &FlameTree, right: &FlameTree) -> Self {
        let root = DiffNode { in_left: true, in_right: true, ..DiffNode::default() };
        let mut tree = Self {
            nodes: vec![root],
            names: Vec::new(),
            measure: Measure::NONE,
            folded: Folded::default(),
            folded_name: None,
        };
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

    /// The same tree with what its values are divided by where they are compared.
    #[must_use]
    pub fn measured_by(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    /// What values are divided by where they are compared.
    pub fn measure(&self) -> &Measure {
        &self.measure
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

    /// Keeps the `max_nodes` nodes that are largest on both sides together as they are compared, and folds the others into a child
    /// `other` of their nearest kept caller, so that every total stays as it was. 0 keeps all.
    pub fn pruned(self, max_nodes: usize) -> Self {
        let measure = self.measure;
        let size = |node: &DiffNode| {
            let (left, right) = measure.rates(node.left.total, node.right.total);
            left.abs() + right.abs()
        };
        if max_nodes == 0 || self.nodes.len() <= max_nodes + 1 {
            return self;
        }
        let mut sizes: Vec<f64> = self.nodes.iter().skip(1).map(size).collect();
        let (_, threshold, _) = sizes.select_nth_unstable_by(max_nodes - 1, |a, b| b.total_cmp(a));
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
            small.folded.count(node);
            // What lies below a folded node is in its total already.
            let at = if parent_kept {
                let at = *others.entry(parent).or_insert_with(|| {
                    small.nodes.push(DiffNode { parent, name: other, ..DiffNode::default() });
                    small.nodes.len() - 1
                });
                small.nodes[at].take_in(node);
                at
            } else {
                parent
            };
            places[index] = (at, false);
        }
        small
    }

    /// The same paths with the values of either side multiplied, for formats of whole numbers that are drawn as they are.
    ///
    /// A value that is rounded hands on what it gained or lost to the next one in the order of drawing. So every total is
    /// within 1 of what it should be, even where each value below it is far less than 1 and would be rounded away.
    #[must_use]
    pub fn scaled(mut self, (left, right): (f64, f64)) -> Self {
        let order = self.in_order_of_drawing();
        let (mut on_left, mut on_right) = (Scaling::by(left), Scaling::by(right));
        for index in order {
            let node = &mut self.nodes[index];
            node.left.self_value = on_left.scaled(node.left.self_value);
            node.right.self_value = on_right.scaled(node.right.self_value);
        }
        self.sum_totals();
        self
    }

    /// All nodes, each followed by what lies below it.
    fn in_order_of_drawing(&self) -> Vec<usize> {
        let children = self.children_by_name();
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut stack = vec![0];
        while let Some(node) = stack.pop() {
            order.push(node);
            stack.extend(children[node].iter().rev());
        }
        order
    }

    fn sum_totals(&mut self) {
        for node in &mut self.nodes {
            (node.left.total, node.right.total) = (node.left.self_value, node.right.self_value);
        }
        // Parents stand before children, so one backward pass carries every total up.
        for index in (1..self.nodes.len()).rev() {
            let DiffNode { parent, left, right, .. } = self.nodes[index];
            let parent = &mut self.nodes[parent];
            parent.left.total = parent.left.total.saturating_add(left.total);
            parent.right.total = parent.right.total.saturating_add(right.total);
        }
    }

    /// What pruning has folded away.
    pub fn folded(&self) -> Folded {
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

/// Multiplies values one after the other and rounds them without losing what rounding takes.
struct Scaling {
    factor: f64,
    /// What earlier values lack, or have too much: at most a half.
    carried: f64,
}

impl Scaling {
    fn by(factor: f64) -> Self {
        Self { factor, carried: 0.0 }
    }

    fn scaled(&mut self, value: i64) -> i64 {
        // Not every whole number is a float.
        if self.factor == 1.0 {
            return value;
        }
        let exact = value as f64 * self.factor + self.carried;
        // A half is rounded up on either side of zero, so that what has no value gets none below zero.
        let whole = (exact + 0.5).floor();
        self.carried = exact - whole;
        whole as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(tree: &DiffTree, name: &str) -> bool {
        (0..tree.nodes().len()).any(|node| tree.name(node) == name)
    }

    /// Scenario: two trees laid over each other and pruned to every size.
    /// Guarantee: totals of both sides stay, no more nodes than asked are kept, what is new stays marked, and what is folded
    /// is counted with its value, on each side what that side had.
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
            let folded = tree.folded();
            assert_eq!(kept as u64 + folded.nodes, 7, "{max_nodes}");
            // `main` and `a` are on both sides, `x` and `b` on the left alone, `y`, `c` and `d` on the right.
            let on_both = ["main", "a"].into_iter().filter(|name| !has(&tree, name)).count() as u64;
            assert_eq!(folded.left.nodes + folded.right.nodes, folded.nodes + on_both, "{max_nodes}");
            let others = tree.nodes().iter().enumerate().filter(|(node, _)| tree.name(*node) == OTHER);
            let (left, right) =
                others.fold((0, 0), |sum, (_, node)| (sum.0 + node.left.total, sum.1 + node.right.total));
            assert_eq!((folded.left.value, folded.right.value), (left, right), "{max_nodes}");
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
    /// Scenario: 200 functions of 4 each, the same in a time ten times as long, and values that are divided by 1,000.
    /// Guarantee: no total is more than 1 off, that of any caller included; nothing is below zero; a factor of 1 keeps all.
    #[test]
    fn scaling_keeps_totals() {
        let mut tree = FlameTree::default();
        for number in 0..200 {
            let (group, function) = (format!("group{}", number % 4), format!("f{number}"));
            tree.add_stack(["main", group.as_str(), function.as_str()], 4);
        }
        for factor in [0.001, 0.1, 0.3, 1.0 / 3.0, 1.4, 10.0] {
            let scaled = DiffTree::new(&tree, &tree).scaled((1.0, factor));
            for node in scaled.nodes() {
                let expected = node.left.total as f64 * factor;
                assert!((node.right.total as f64 - expected).abs() <= 1.0, "{factor}: {node:?}");
                assert!(node.right.self_value >= 0, "{factor}: {node:?}");
            }
            assert_eq!(scaled.nodes()[0].right.total, (800.0 * factor).round() as i64, "{factor}");
        }
        let mut long = FlameTree::default();
        long.add_stack(["main"], i64::MAX - 1);
        let same = DiffTree::new(&long, &long).scaled((1.0, 2.0));
        assert_eq!((same.nodes()[0].left.total, same.nodes()[0].right.total), (i64::MAX - 1, i64::MAX));
    }

    /// Scenario: a function of 9 in one second and one of 50 in ten, and room for one of them.
    /// Guarantee: what is larger by the second is kept.
    #[test]
    fn pruning_goes_by_the_measure() {
        let (mut left, mut right) = (FlameTree::default(), FlameTree::default());
        left.add_stack(["short"], 9);
        right.add_stack(["long"], 50);
        let kept = |measure: Measure| {
            let tree = DiffTree::new(&left, &right).measured_by(measure).pruned(1);
            ["short", "long"].map(|name| has(&tree, name))
        };
        assert_eq!(kept(Measure::NONE), [false, true]);
        assert_eq!(kept(Measure { left: 1.0, right: 10.0, noun: "second" }), [true, false]);
    }
}
