//! The tree that all requests of a question share: operations above, their code below, and at the leaves what the
//! time was spent on.
//!
//! ```text
//! everything
//! └─ checkout POST /api/checkout            operation: a span on the critical path
//!    ├─ tax POST /v1/tax                    operation: called by the one above
//!    │  └─ calculate_tax                    function
//!    │     └─ lookup_tax_rate               function
//!    │        ├─ serde_json::from_str
//!    │        │  └─ [on CPU]                part
//!    │        └─ [waiting for a lock]
//!    └─ [unexplained]
//! ```

use hashbrown::HashMap;

use crate::own_code::Ownership;
use crate::part::Part;
use crate::vocabulary::{FrameId, OperationId, StackId, TextId, Vocabulary};

/// Number of a node. Parents have smaller numbers than their children.
pub type NodeId = u32;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKey {
    /// Everything.
    Root,
    /// A span of this operation, called by the operation above.
    Operation(OperationId),
    /// A function, called by the function above.
    Function(TextId),
    /// What the time of the function or operation above was spent on.
    Part(Part),
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The node above; the root is its own.
    pub parent: NodeId,
    /// What it stands for.
    pub key: NodeKey,
    /// The operation it belongs to: itself, or the nearest above.
    pub operation: NodeId,
    /// Whether it is a function of the service's own code.
    pub is_own: bool,
}

/// Where a stack lies below an operation.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The node of its leaf function, or of the operation if the stack is empty.
    pub leaf: NodeId,
    /// The frame that each node on the way stands for in this stack.
    pub frames: Vec<(NodeId, FrameId)>,
    /// Functions that occur more than once in the stack, and how often.
    pub repeats: Vec<(NodeId, u32)>,
    /// Time seen in it, on the slow and on the fast side.
    pub time: [f64; 2],
}

/// The tree.
#[derive(Debug, Clone)]
pub struct Tree {
    nodes: Vec<Node>,
    index: HashMap<(NodeId, NodeKey), NodeId>,
    placements: Vec<Placement>,
    placement_index: HashMap<(NodeId, StackId), u32>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node { parent: 0, key: NodeKey::Root, operation: 0, is_own: false };
        Self { nodes: vec![root], index: HashMap::new(), placements: Vec::new(), placement_index: HashMap::new() }
    }
}

impl Tree {
    /// The root.
    pub const ROOT: NodeId = 0;

    /// A node.
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id as usize]
    }

    /// All nodes, parents first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The child of a node with this key, which is added if it is new.
    pub fn child(&mut self, parent: NodeId, key: NodeKey, is_own: bool) -> NodeId {
        if let Some(id) = self.index.get(&(parent, key)) {
            return *id;
        }
        let id = self.nodes.len() as NodeId;
        let operation = match key {
            NodeKey::Operation(_) => id,
            _ => self.nodes[parent as usize].operation,
        };
        self.nodes.push(Node { parent, key, operation, is_own });
        self.index.insert((parent, key), id);
        id
    }

    /// The place of a stack below an operation. Recursion is folded: a function stands once on every path.
    pub fn place(&mut self, vocabulary: &Vocabulary, operation: NodeId, stack: StackId) -> u32 {
        if let Some(placement) = self.placement_index.get(&(operation, stack)) {
            return *placement;
        }
        // (function, node, frame, how often)
        let mut chain: Vec<(TextId, NodeId, FrameId, u32)> = Vec::new();
        let mut repeats: Vec<(NodeId, u32)> = Vec::new();
        for frame in vocabulary.stack_of(stack) {
            let function = vocabulary.frame_of(*frame).function;
            if let Some(at) = chain.iter().position(|(known, ..)| *known == function) {
                chain.truncate(at + 1);
                chain[at].2 = *frame;
                chain[at].3 += 1;
                let (node, times) = (chain[at].1, chain[at].3);
                repeats.retain(|(known, _)| *known != node);
                repeats.push((node, times));
            } else {
                let above = chain.last().map_or(operation, |(_, node, ..)| *node);
                let is_own = vocabulary.ownership_of(*frame) == Ownership::Own;
                let node = self.child(above, NodeKey::Function(function), is_own);
                chain.push((function, node, *frame, 1));
            }
        }
        let placement = Placement {
            leaf: chain.last().map_or(operation, |(_, node, ..)| *node),
            frames: chain.iter().map(|(_, node, frame, _)| (*node, *frame)).collect(),
            repeats,
            time: [0.0; 2],
        };
        self.placements.push(placement);
        let number = (self.placements.len() - 1) as u32;
        self.placement_index.insert((operation, stack), number);
        number
    }

    /// A placement by its number.
    pub fn placement(&self, number: u32) -> &Placement {
        &self.placements[number as usize]
    }

    /// All placements.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Adds time to a placement.
    pub(crate) fn add_time(&mut self, placement: u32, side: usize, time: f64) {
        self.placements[placement as usize].time[side] += time;
    }

    /// The nodes from one to the root, itself first, the root last.
    pub fn upward(&self, from: NodeId) -> impl Iterator<Item = NodeId> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let here = next?;
            next = (here != Self::ROOT).then(|| self.nodes[here as usize].parent);
            Some(here)
        })
    }

    /// Whether `node` is `above` or lies below it.
    pub fn is_within(&self, node: NodeId, above: NodeId) -> bool {
        // Numbers grow downwards, so that the walk may stop early.
        self.upward(node).take_while(|here| *here >= above).any(|here| here == above)
    }

    /// The children of each node, in order of their numbers.
    pub fn children(&self) -> Vec<Vec<NodeId>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent as usize].push(id as NodeId);
        }
        children
    }
}
