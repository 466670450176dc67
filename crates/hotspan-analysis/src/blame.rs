//! Blame: from the whole difference down to the deepest nodes that explain it.
//!
//! A node is looked at only if the node above it differs, and its children are tested together as one family, with
//! false discoveries kept few (hierarchical Benjamini-Hochberg). The walk goes into the child that carries at least
//! four fifths of the difference, and into others that have a real share of the whole and a name of their own. Where no
//! single child carries that much, it stops at own code, since that is what a person can change; above it (operations,
//! frameworks) it follows each child that carries a real share.

use hashbrown::HashMap;

use crate::calls::Calls;
use crate::ledger::Ledger;
use crate::matrix::Matrix;
use crate::part::Part;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::tree::{NodeId, NodeKey};
use crate::vocabulary::TextId;

/// False discoveries among the tests of one family of operations.
const DISCOVERY_RATE: f64 = 0.01;
/// The same for the code inside an operation that differs: that there is something to find is known by then, and samples
/// are few.
const CODE_DISCOVERY_RATE: f64 = 0.05;
/// The share of a difference that a single child must carry for the walk to go on whatever the others are.
const SINGLE_CHILD: f64 = 0.8;
/// The share of a difference that is collecting garbage for it to be one cause in all callers.
const COLLECTING: f64 = 0.7;
/// Time on the CPU beside time waited for one from which on running is the cause, and waiting its consequence.
const RUNS_TOO: f64 = 0.1;
/// The share that a child must carry where what is left is spread over many.
const ONLY_LARGE_CHILD: f64 = 0.5;

/// How much more than another one shrank a child may have grown, or less, for the cost to have moved.
const MOVED_ALIKE: f64 = 1.5;

/// The part of what the first child grew by that others shrank by, from which on the cost moved between them.
const MOSTLY_MOVED: f64 = 0.5;

/// The chance at which requests that have more of something than any usual one are believed to be no coincidence.
pub(crate) const SOME_EXCEED: f64 = 0.005;

/// A place that explains a part of the difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Blame {
    /// Where the walk stopped.
    pub node: NodeId,
    /// The nodes of one function below it that carry the difference together, where it is called from many places.
    pub spread: Vec<NodeId>,
    /// Whether nothing below it has a real share: the difference is spread thinly.
    pub is_thin: bool,
}

/// What the walk looks at.
#[derive(Debug)]
pub struct Walk<'a> {
    /// The vectors.
    pub ledger: &'a Ledger,
    /// Their comparison.
    pub matrix: &'a Matrix,
    /// How often operations were called.
    pub calls: &'a Calls,
    /// Nanoseconds below which a difference is not worth naming, though requests have more than any usual one.
    pub smallest: f64,
    /// The same for what is larger on average only.
    pub usual: f64,
}

impl Walk<'_> {
    /// All places that explain a part of the difference; they do not overlap.
    pub fn blame(&self) -> Vec<Blame> {
        let children = &self.ledger.children;
        let mut blamed = Vec::new();
        let mut pending: Vec<NodeId> = vec![crate::tree::Tree::ROOT];
        while let Some(node) = pending.pop() {
            match self.step(node, &children[node as usize]) {
                Step::Into(next) => pending.extend(next),
                Step::Stop { is_thin } => blamed.push(self.stop(node, is_thin)),
            }
        }
        blamed
    }

    fn delta(&self, node: NodeId) -> f64 {
        self.matrix.difference(node).delta
    }

    /// The children that differ, tested as one family.
    fn believed(&self, family: &[NodeId], rate: f64) -> Vec<NodeId> {
        let chances: Vec<f64> = family.iter().map(|child| self.matrix.chance(*child)).collect();
        let believed = benjamini_hochberg(&chances, rate);
        family.iter().zip(believed).filter(|(_, is)| *is).map(|(child, _)| *child).collect()
    }

    /// The children that grew, but for those whose growth is what another one shrank by: that cost moved.
    fn without_moved(&self, differing: &[NodeId]) -> Vec<NodeId> {
        let (mut more, less): (Vec<NodeId>, Vec<NodeId>) =
            differing.iter().partition(|child| self.delta(**child) > 0.0);
        let is_gone = |child: &NodeId| self.is_function(*child) && -self.delta(*child) >= self.smallest;
        for gone in less.into_iter().filter(is_gone).map(|child| -self.delta(child)) {
            let off_by = |child: &NodeId| (self.delta(*child) / gone).ln().abs();
            let nearest = more.iter().copied().min_by(|a, b| off_by(a).total_cmp(&off_by(b)));
            more.retain(|child| Some(*child) != nearest || off_by(child) > MOVED_ALIKE.ln());
        }
        more
    }

    /// What the functions among some children shrank by.
    fn shrunk(&self, differing: &[NodeId]) -> f64 {
        let less = differing.iter().filter(|child| self.is_function(**child) && self.delta(**child) < 0.0);
        less.map(|child| -self.delta(*child)).sum()
    }

    fn is_function(&self, node: NodeId) -> bool {
        matches!(self.ledger.tree.node(node).key, NodeKey::Function(_))
    }

    /// Whether a node surely has a real share, be it in all requests a little or in a few of them much.
    fn is_large(&self, node: NodeId) -> bool {
        let is_in_some = self.delta(node) >= self.smallest && self.matrix.exceedance(node) < SOME_EXCEED;
        is_in_some || self.matrix.lower(node) >= self.usual
    }

    fn step(&self, node: NodeId, children: &[NodeId]) -> Step {
        if self.calls.ends_walk(node) {
            return Step::Stop { is_thin: false };
        }
        let delta = self.delta(node);
        let (operations, code): (Vec<NodeId>, Vec<NodeId>) =
            children.iter().partition(|child| matches!(self.ledger.tree.node(**child).key, NodeKey::Operation(_)));
        let mut differing: Vec<NodeId> = self.believed(&operations, DISCOVERY_RATE);
        differing.extend(self.believed(&code, CODE_DISCOVERY_RATE));
        let mut more = self.without_moved(&differing);
        more.sort_by(|a, b| self.delta(*b).total_cmp(&self.delta(*a)));
        let Some(first) = more.first().copied() else { return Step::Stop { is_thin: true } };
        let is_named = |child: &NodeId| {
            let child = self.ledger.tree.node(*child);
            matches!(child.key, NodeKey::Operation(_)) || (matches!(child.key, NodeKey::Function(_)) && child.is_own)
        };
        let mut large: Vec<NodeId> = more.into_iter().filter(|child| self.is_large(*child)).collect();
        if self.shrunk(&differing) >= MOSTLY_MOVED * self.delta(first) {
            return Step::Stop { is_thin: true };
        }
        if self.delta(first) >= SINGLE_CHILD * delta {
            large.retain(|child| *child != first && is_named(child));
            large.insert(0, first);
            return Step::Into(large);
        }
        let here = self.ledger.tree.node(node);
        let is_own = matches!(here.key, NodeKey::Function(_)) && here.is_own;
        let is_thin = large.iter().map(|child| self.delta(*child)).sum::<f64>() < ONLY_LARGE_CHILD * delta;
        match large.as_slice() {
            [] => Step::Stop { is_thin },
            _ if is_own && is_thin => Step::Stop { is_thin },
            [_] => Step::Into(large),
            // Whoever allocates helps to collect: that is one cause, however many functions it slows down.
            _ if is_own && self.collecting(node) >= COLLECTING * delta => Step::Stop { is_thin: false },
            _ if !is_own || large.iter().all(is_named) => Step::Into(large),
            _ => Step::Stop { is_thin: false },
        }
    }

    /// Where the walk ends. If nothing below stands out, perhaps one function does that is called from many places.
    fn stop(&self, node: NodeId, is_thin: bool) -> Blame {
        let delta = self.delta(node);
        let children = &self.ledger.children[node as usize];
        let is_carried = children.iter().any(|child| self.delta(*child) >= ONLY_LARGE_CHILD * delta);
        let is_part = matches!(self.ledger.tree.node(node).key, NodeKey::Part(_));
        let spread =
            if is_carried || is_part || self.calls.ends_walk(node) { Vec::new() } else { self.spread_function(node) };
        Blame { node, is_thin: is_thin && spread.is_empty() && !is_part, spread }
    }

    /// The difference below a node that is garbage collection.
    fn collecting(&self, above: NodeId) -> f64 {
        let tree = &self.ledger.tree;
        let is_collecting = |id: &NodeId| tree.node(*id).key == NodeKey::Part(Part::Gc) && tree.is_within(*id, above);
        (above..tree.nodes().len() as NodeId).filter(is_collecting).map(|id| self.delta(id)).sum()
    }

    /// The most particular function that carries the difference from all the places below a node where it is called.
    fn spread_function(&self, above: NodeId) -> Vec<NodeId> {
        let tree = &self.ledger.tree;
        let mut places: HashMap<TextId, Vec<NodeId>> = HashMap::new();
        for id in self.ledger.below(above) {
            if let NodeKey::Function(function) = tree.node(id).key {
                places.entry(function).or_default().push(id);
            }
        }
        let sum = |nodes: &[NodeId], of: &dyn Fn(NodeId) -> f64| nodes.iter().map(|node| of(*node)).sum::<f64>();
        let needed = SINGLE_CHILD * self.delta(above);
        let carrying = places.into_iter().filter(|(_, nodes)| {
            let error = sum(nodes, &|node| self.matrix.difference(node).error.powi(2)).sqrt();
            let delta = sum(nodes, &|node| self.delta(node));
            nodes.len() > 1 && delta >= needed && delta > 3.5 * error
        });
        // Own code before libraries, the most particular first; the number decides between equals, so that the same
        // question gets the same answer.
        let best = carrying.min_by(|(a, a_nodes), (b, b_nodes)| {
            let rank = |nodes: &[NodeId]| {
                let is_own = nodes.iter().all(|node| tree.node(*node).is_own);
                (!is_own, sum(nodes, &|node| self.matrix.moments[0][node as usize].mean))
            };
            let (left, right) = (rank(a_nodes), rank(b_nodes));
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)).then(a.cmp(b))
        });
        best.map(|(_, nodes)| nodes).unwrap_or_default()
    }
}

enum Step {
    Into(Vec<NodeId>),
    Stop { is_thin: bool },
}

/// What most of a set of leaves' difference was spent on.
pub fn kind_of(ledger: &Ledger, matrix: &Matrix, belongs: &[bool]) -> Part {
    let mut deltas = [0.0; Part::ALL.len()];
    for (id, node) in ledger.tree.nodes().iter().enumerate() {
        if let NodeKey::Part(part) = node.key
            && belongs[id]
        {
            deltas[part as usize] += matrix.differences[id].delta;
        }
    }
    let best = Part::ALL.into_iter().max_by(|a, b| deltas[*a as usize].total_cmp(&deltas[*b as usize]));
    match best {
        // Who runs much waits for a CPU now and then, the more the busier the machine is.
        Some(Part::Scheduling) => {
            let running = [Part::Cpu, Part::Gc].map(|part| deltas[part as usize]);
            match running[0] + running[1] > RUNS_TOO * deltas[Part::Scheduling as usize] {
                true if running[0] >= running[1] => Part::Cpu,
                true => Part::Gc,
                false => Part::Scheduling,
            }
        }
        best => best.unwrap_or(Part::Unexplained),
    }
}
