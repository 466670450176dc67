//! Where most of the time goes, whatever others do: what can be said when nothing is known to compare with, or nothing differs.

use crate::candidates::Candidate;
use crate::causes::Findings;
use crate::explanation::Widest;
use crate::moved::{node_name, service_name};
use crate::part::Part;
use crate::tree::{NodeId, NodeKey, Tree};

/// The share of the time that a node must have to be named.
const MOST: f64 = 0.5;

impl Findings<'_> {
    /// The deepest place that most of the time of the requests in question goes to; none if that is they themselves.
    pub(crate) fn widest(&self) -> Option<Widest> {
        let tree = &self.ledger.tree;
        let slow = |node: NodeId| self.matrix.moments[0][node as usize].mean;
        let children = &self.ledger.children;
        let mut here = Tree::ROOT;
        let is_seen = |node: &&NodeId| !matches!(tree.node(**node).key, NodeKey::Part(Part::Unexplained));
        while let Some(next) =
            children[here as usize].iter().filter(is_seen).max_by(|a, b| slow(**a).total_cmp(&slow(**b)))
            && slow(*next) >= MOST * slow(Tree::ROOT)
        {
            here = *next;
        }
        let operation = tree.node(here).operation;
        let own = tree.upward(here).take_while(|node| *node != operation).find(|node| tree.node(*node).is_own);
        let is_told = own.is_some() || (operation != Tree::ROOT && tree.node(operation).parent != Tree::ROOT);
        if !is_told {
            return None;
        }
        let node = own.unwrap_or(operation);
        let place = own.map(|node| Candidate { nodes: vec![node], function: Some(node), via: Vec::new(), operation });
        let (file, line) = place.map_or((None, None), |candidate| self.place(&candidate));
        Some(Widest {
            service: service_name(self.vocabulary, tree, operation),
            operation: node_name(self.vocabulary, tree, operation),
            function: own.map(|node| node_name(self.vocabulary, tree, node)),
            file,
            line,
            ms: slow(node) / 1e6,
            share: slow(node) / slow(Tree::ROOT).max(1.0),
        })
    }
}
