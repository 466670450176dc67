//! What may be a cause: blamed nodes, named by own code, and what lies around them where they are not sure enough.

use hashbrown::HashMap;
use hotspan_model::SpanKind;

use crate::blame::Blame;
use crate::causes::{FEWEST_SAMPLES, Findings};
use crate::moved::node_name;
use crate::part::Part;
use crate::tree::{NodeId, NodeKey, Tree};

/// A function with this share of all that a span does is the span itself under another name.
const NEARLY_ALL: f64 = 0.8;
/// Library functions that are named on the way.
const MOST_VIA: usize = 3;
/// A function with this share of an operation's own time stands for it, where nothing more is sure.
const MOST_OF_OPERATION: f64 = 0.5;
/// Periods of sampling that it must have for that.
const FEWEST_OF_ONE: f64 = 3.0;
/// The same where usual requests are seen to do little else in that operation.
const FEWEST_LIKE_OTHERS: f64 = 2.0;

/// A cause before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Disjoint nodes; they and everything below are the cause.
    pub(crate) nodes: Vec<NodeId>,
    /// The function that is named.
    pub(crate) function: Option<NodeId>,
    /// Functions of libraries on the way.
    pub(crate) via: Vec<String>,
    /// The operation it is in.
    pub(crate) operation: NodeId,
}

impl Findings<'_> {
    /// Names what was blamed. None if that is the span in question as a whole, which would say nothing.
    pub(crate) fn candidate(&self, blame: &Blame) -> Option<Candidate> {
        let tree = &self.ledger.tree;
        let here = tree.node(blame.node);
        let holder = if matches!(here.key, NodeKey::Part(_)) { here.parent } else { blame.node };
        let operation = here.operation;
        // From the holder upwards to the operation.
        let functions: Vec<NodeId> = tree.upward(holder).take_while(|node| *node != operation).collect();
        let own = functions.iter().position(|node| tree.node(*node).is_own);
        if let Some(first) = blame.spread.first() {
            let name = node_name(self.vocabulary, tree, *first);
            let named = match own {
                _ if tree.node(*first).is_own => *first,
                Some(at) => functions[at],
                None => *first,
            };
            let via = if named == *first { Vec::new() } else { vec![name] };
            return Some(Candidate { nodes: blame.spread.clone(), function: Some(named), via, operation });
        }
        let named = own.unwrap_or(0);
        if let Some(function) = functions.get(named) {
            if blame.is_thin && self.is_nearly_all(*function) {
                return None;
            }
            let below = functions[..named].iter().rev();
            let via = below.take(MOST_VIA).map(|node| node_name(self.vocabulary, tree, *node)).collect();
            return Some(Candidate { nodes: vec![*function], function: Some(*function), via, operation });
        }
        let is_in_question = tree.node(operation).parent == Tree::ROOT;
        let is_call =
            matches!(here.key, NodeKey::Part(Part::Downstream | Part::Lock | Part::Io | Part::Scheduling | Part::Gc));
        if operation == Tree::ROOT || (is_in_question && !is_call) {
            return None;
        }
        Some(Candidate { nodes: vec![blame.node], function: None, via: Vec::new(), operation })
    }

    /// Whether a function is nearly all that the span in question does anyway: naming it would say nothing.
    fn is_nearly_all(&self, function: NodeId) -> bool {
        let tree = &self.ledger.tree;
        let operation = tree.node(function).operation;
        let usual = |node: NodeId| self.matrix.moments[1][node as usize].mean;
        let functions = self.own_nodes(operation).filter(|id| matches!(tree.node(*id).key, NodeKey::Function(_)));
        let rest: f64 = functions.map(usual).sum();
        // Where the others were not sampled at all, nothing is known to be usual.
        tree.node(operation).parent == Tree::ROOT && rest > 0.0 && usual(function) >= NEARLY_ALL * rest
    }

    /// What lies around a candidate that is not sure enough: its operation as a whole, which spans measure without the
    /// noise of samples, then the operation that called it. None once that is the one in question.
    pub(crate) fn around(&self, candidate: &Candidate) -> Option<Candidate> {
        let tree = &self.ledger.tree;
        let mut operation = candidate.operation;
        if candidate.nodes != [operation] && self.is_most_of_its_operation(candidate) {
            // How much it is is not sure, but the operation does little else.
            return Some(Candidate { nodes: vec![operation], ..candidate.clone() });
        }
        if candidate.nodes == [operation] {
            operation = tree.node(tree.node(operation).parent).operation;
        }
        while self.is_seen_call(operation) {
            operation = tree.node(tree.node(operation).parent).operation;
        }
        let is_below = operation != Tree::ROOT && tree.node(operation).parent != Tree::ROOT;
        is_below.then(|| Candidate { nodes: vec![operation], function: None, via: Vec::new(), operation })
    }

    /// An operation that was blamed as a whole, or for what is not seen of it, named by the function that most of it is.
    /// Where waits are not seen, what is not seen may be one: there it must be most of the difference as well.
    pub(crate) fn named_by_code(&self, candidate: Candidate) -> Candidate {
        let tree = &self.ledger.tree;
        let operation = candidate.operation;
        let NodeKey::Operation(id) = tree.node(operation).key else { return candidate };
        let sees_waiting = self.sources.sees_waiting(self.vocabulary.operation_of(id).service);
        if candidate.function.is_some() || self.calls.ends_walk(operation) {
            return candidate;
        }
        let stands_for_it = |function: &Candidate| {
            self.is_most_of_its_operation(function) && (sees_waiting || self.is_most_of_the_difference(function))
        };
        let depth = |function: &Candidate| function.nodes.iter().map(|node| tree.upward(*node).count()).max();
        let deepest = self.own_functions(operation).into_iter().filter(stands_for_it).max_by_key(depth);
        match deepest.and_then(|deepest| deepest.function) {
            Some(function) => Candidate { nodes: vec![operation], function: Some(function), ..candidate },
            None => candidate,
        }
    }

    /// The functions of own code in an operation, each wherever it was called from: where stacks are cut, or it is called in
    /// two ways, it has more than one place.
    fn own_functions(&self, operation: NodeId) -> Vec<Candidate> {
        let tree = &self.ledger.tree;
        let mut places: Vec<Vec<NodeId>> = Vec::new();
        let mut index: HashMap<NodeKey, usize> = HashMap::new();
        for id in self.ledger.below(operation) {
            let node = tree.node(id);
            let is_topmost = || {
                let mut above = tree.upward(node.parent).take_while(|above| *above != operation);
                !above.any(|above| tree.node(above).key == node.key)
            };
            if node.is_own && matches!(node.key, NodeKey::Function(_)) && is_topmost() {
                let at = *index.entry(node.key).or_insert_with(|| {
                    places.push(Vec::new());
                    places.len() - 1
                });
                places[at].push(id);
            }
        }
        let functions = places.into_iter().map(|nodes| {
            let function = nodes.first().copied();
            Candidate { nodes, function, via: Vec::new(), operation }
        });
        functions.collect()
    }

    /// Whether what is seen of an operation is mostly this.
    fn is_most_of_its_operation(&self, candidate: &Candidate) -> bool {
        let tree = &self.ledger.tree;
        let slow = |node: NodeId| self.matrix.moments[0][node as usize].mean;
        let own: f64 = self.own_nodes(candidate.operation).map(slow).sum();
        let of_this: f64 = candidate.nodes.iter().map(|node| slow(*node)).sum();
        let periods = self.periods(&candidate.nodes, 0);
        let is_enough =
            periods >= FEWEST_OF_ONE || (periods >= FEWEST_LIKE_OTHERS && self.is_all_that_others_do(candidate));
        let is_below = tree.node(candidate.operation).parent != Tree::ROOT;
        is_below && candidate.function.is_some() && is_enough && of_this >= MOST_OF_OPERATION * own
    }

    /// Whether usual requests, too, are hardly ever seen doing anything else in this operation.
    fn is_all_that_others_do(&self, candidate: &Candidate) -> bool {
        let usual = |node: NodeId| self.matrix.moments[1][node as usize].mean;
        let is_seen = |id: &NodeId| {
            !matches!(self.ledger.tree.node(*id).key, NodeKey::Part(Part::Unexplained | Part::Downstream))
        };
        let seen: f64 = self.own_nodes(candidate.operation).filter(is_seen).map(usual).sum();
        let of_this: f64 = candidate.nodes.iter().map(|node| usual(*node)).sum();
        self.periods(&candidate.nodes, 1) >= FEWEST_SAMPLES && of_this >= NEARLY_ALL * seen
    }

    /// Whether what an operation takes longer is mostly this.
    fn is_most_of_the_difference(&self, candidate: &Candidate) -> bool {
        let delta = |node: NodeId| self.matrix.difference(node).delta;
        let own: f64 = self.own_nodes(candidate.operation).map(delta).sum();
        let of_this: f64 = candidate.nodes.iter().map(|node| delta(*node)).sum();
        of_this > 0.0 && of_this >= MOST_OF_OPERATION * own
    }

    /// What an operation does itself: its functions and waits, and what is not seen of it.
    fn own_nodes(&self, operation: NodeId) -> impl Iterator<Item = NodeId> {
        let children = self.ledger.children[operation as usize].iter().copied();
        children.filter(|id| !matches!(self.ledger.tree.node(*id).key, NodeKey::Operation(_)))
    }

    /// Whether this is a call whose other side is seen: it waits for that, and has nothing to tell itself.
    fn is_seen_call(&self, operation: NodeId) -> bool {
        let NodeKey::Operation(operation) = self.ledger.tree.node(operation).key else { return false };
        let operation = self.vocabulary.operation_of(operation);
        matches!(operation.role, SpanKind::Client | SpanKind::Producer)
            && !self.vocabulary.text_of(operation.callee).is_empty()
    }
}

/// Causes in the same function of the same service are one, wherever it was called from.
pub(crate) fn merged(tree: &Tree, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut merged: Vec<Candidate> = Vec::new();
    let mut index: HashMap<(NodeKey, NodeKey), usize> = HashMap::new();
    for candidate in candidates {
        let operation = tree.node(candidate.operation).key;
        let subject = tree.node(candidate.function.unwrap_or(candidate.nodes[0])).key;
        match index.get(&(operation, subject)) {
            Some(at) => {
                let nodes = &mut merged[*at].nodes;
                nodes.extend(&candidate.nodes);
                nodes.sort_unstable();
                nodes.dedup();
                let all = nodes.clone();
                nodes.retain(|node| !all.iter().any(|other| other != node && tree.is_within(*node, *other)));
            }
            None => {
                index.insert((operation, subject), merged.len());
                merged.push(candidate);
            }
        }
    }
    merged
}

/// The nodes of other causes inside one: they are not counted twice.
pub(crate) fn nested_in(tree: &Tree, candidates: &[Candidate], at: usize) -> Vec<NodeId> {
    let others = candidates.iter().enumerate().filter(|(other, _)| *other != at).flat_map(|(_, other)| &other.nodes);
    let inside =
        |node: &&NodeId| candidates[at].nodes.iter().any(|above| above != *node && tree.is_within(**node, *above));
    others.filter(inside).copied().collect()
}
