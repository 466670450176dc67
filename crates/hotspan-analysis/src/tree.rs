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

use crate::folding::Folding;
use crate::own_code::Ownership;
use crate::part::Part;
use crate::vocabulary::{EMPTY_STACK, OperationId, StackId, TextId, Vocabulary};

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
    /// The stack.
    pub stack: StackId,
    /// The node of its leaf function, or of the operation if the stack is empty.
    pub leaf: NodeId,
    /// Time seen in it, on the slow and on the fast side.
    pub time: [f64; 2],
    /// What is below the leaf, by [`Part`]; the root where there is nothing.
    parts: [NodeId; Part::ALL.len()],
}

/// The tree.
#[derive(Debug, Clone)]
pub struct Tree {
    nodes: Vec<Node>,
    index: HashMap<(NodeId, NodeKey), NodeId>,
    folding: Folding,
    /// The node of each folded stack below an operation: what stacks have in common is looked up once.
    code: HashMap<u64, NodeId>,
    placements: Vec<Placement>,
    placement_index: HashMap<u64, u32>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node { parent: 0, key: NodeKey::Root, operation: 0, is_own: false };
        Self {
            nodes: vec![root],
            index: HashMap::new(),
            folding: Folding::default(),
            code: HashMap::new(),
            placements: Vec::new(),
            placement_index: HashMap::new(),
        }
    }
}

impl Tree {
    /// The root.
    pub const ROOT: NodeId = 0;

    /// A tree for the stacks of a vocabulary, to which none is added any more.
    pub fn over(vocabulary: &Vocabulary) -> Self {
        Self { folding: Folding::of(vocabulary), ..Self::default() }
    }

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
        if let Some(placement) = self.placement_index.get(&pair(operation, stack)) {
            return *placement;
        }
        let leaf = self.code_node(vocabulary, operation, stack);
        let number = self.placements.len() as u32;
        self.placements.push(Placement { stack, leaf, time: [0.0; 2], parts: [Self::ROOT; Part::ALL.len()] });
        self.placement_index.insert(pair(operation, stack), number);
        number
    }

    /// The node of a stack's leaf function. Callers are mostly known: from the leaf upwards the first one that is ends the
    /// search.
    fn code_node(&mut self, vocabulary: &Vocabulary, operation: NodeId, stack: StackId) -> NodeId {
        let mut node = operation;
        let mut new: Vec<StackId> = Vec::new();
        let mut at = self.folding.folded(stack);
        while at != EMPTY_STACK {
            if let Some(known) = self.code.get(&pair(operation, at)) {
                node = *known;
                break;
            }
            new.push(at);
            at = self.folding.caller_of(at);
        }
        for stack in new.into_iter().rev() {
            let Some(frame) = vocabulary.leaf_of(stack) else { continue };
            let is_own = vocabulary.ownership_of(frame) == Ownership::Own;
            node = self.child(node, NodeKey::Function(vocabulary.frame_of(frame).function), is_own);
            self.code.insert(pair(operation, stack), node);
        }
        node
    }

    /// The leaf for what the time of a placement was spent on.
    pub(crate) fn leaf(&mut self, placement: u32, part: Part) -> NodeId {
        let Placement { leaf, parts, .. } = &self.placements[placement as usize];
        let (function, known) = (*leaf, parts[part as usize]);
        if known != Self::ROOT {
            return known;
        }
        let leaf = self.child(function, NodeKey::Part(part), false);
        self.placements[placement as usize].parts[part as usize] = leaf;
        leaf
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

/// A node and a stack as one number.
fn pair(node: NodeId, stack: StackId) -> u64 {
    u64::from(node) << 32 | u64::from(stack)
}
