//! The code of a service: its functions, and the tree of call paths that samples are taken in.
//!
//! A region of the tree belongs to each operation, and one to background work, so that the samples of a request
//! show the code of its operation. Paths share prefixes, as they do in real programs: a new path follows an old
//! one for a while before it branches off.

use super::vocabulary::{self, Language};
use crate::random::{Random, Skewed, Stream};
use crate::settings::Settings;

/// Index of a node of a [`CallTree`].
pub type NodeNumber = u32;
/// The parent of a root.
pub const NO_NODE: NodeNumber = u32::MAX;

/// The region of background work: garbage collection, timers, whatever belongs to no request.
pub const BACKGROUND: usize = 0;

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its full name.
    pub name: String,
    /// Its source file: an index into [`CallTree::files`].
    pub file: u32,
    /// Where it starts.
    pub start_line: u32,
}

/// A call path: a function called from a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNode {
    /// The caller, or [`NO_NODE`].
    pub parent: NodeNumber,
    /// Index into [`CallTree::functions`].
    pub function: u32,
    /// The line that runs.
    pub line: u32,
    depth: u32,
}

/// Paths that the samples of one operation end in.
#[derive(Debug, Clone, Default)]
struct Region {
    top: NodeNumber,
    leaves: Vec<NodeNumber>,
    chooser: Skewed,
}

/// Functions and call paths of one service.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    /// The functions.
    pub functions: Vec<Function>,
    /// The source files.
    pub files: Vec<String>,
    /// The call paths; a caller stands before what it calls.
    pub nodes: Vec<CallNode>,
    regions: Vec<Region>,
}

impl CallTree {
    /// A tree with a region for background work and one for each handler, given by name.
    pub(super) fn grow(settings: &Settings, service: u16, name: &str, language: Language, handlers: &[String]) -> Self {
        let mut random = Random::of(settings.seed, Stream::CallTree, u64::from(service));
        let mut tree = Self::default();
        for (function, file) in language.runtime_frames() {
            tree.add_function(function, file, 40);
        }
        let runtime = tree.functions.len() as u32;
        tree.add_own_functions(settings, name, language, &mut random);
        let mut growth = Growth {
            own_functions: Skewed::zipf(tree.functions.len() - runtime as usize, 1.05),
            first_own: runtime,
            max_depth: settings.max_stack_depth,
            children: Vec::new(),
        };
        let mut entry = NO_NODE;
        for function in 0..runtime {
            entry = growth.add_child(&mut tree, entry, function, 52 + function);
        }
        let shares = Skewed::zipf(handlers.len() + 1, 0.8);
        let mut stacks = vec![1; handlers.len() + 1];
        for _ in 0..settings.stacks_per_service {
            stacks[shares.pick(&mut random)] += 1;
        }
        for (region, stacks) in stacks.into_iter().enumerate() {
            let top = match region.checked_sub(1).and_then(|handler| handlers.get(handler)) {
                Some(handler) => {
                    let function = tree.add_function(handler, "handlers", 10 + region as u32 * 40);
                    growth.add_child(&mut tree, entry, function, 17 + region as u32 * 40)
                }
                None => growth.add_child(&mut tree, NO_NODE, 0, 12),
            };
            let grown = growth.region(&mut tree, top, stacks, &mut random);
            tree.regions.push(grown);
        }
        tree
    }

    fn add_function(&mut self, name: &str, file: &str, start_line: u32) -> u32 {
        let file = match self.files.iter().rposition(|known| known == file) {
            Some(index) => index,
            None => {
                self.files.push(file.to_owned());
                self.files.len() - 1
            }
        };
        self.functions.push(Function { name: name.to_owned(), file: file as u32, start_line });
        self.functions.len() as u32 - 1
    }

    /// Functions by class, as many as the settings say, then shuffled: what is called often is not all in one file.
    fn add_own_functions(&mut self, settings: &Settings, service: &str, language: Language, random: &mut Random) {
        let first = self.functions.len();
        let wanted = first + settings.functions_per_service as usize;
        let mut class_number = 0;
        while self.functions.len() < wanted {
            class_number += 1;
            let package = random.word(vocabulary::PACKAGES);
            // The number keeps classes apart that draw the same words.
            let subject = format!("{}{class_number}", random.word(vocabulary::NOUNS));
            let role = random.word(vocabulary::ROLES);
            let methods = random.between(3, 14) as usize;
            for method in 0..methods.min(wanted - self.functions.len()) {
                let verb = vocabulary::VERBS[(method + class_number) % vocabulary::VERBS.len()];
                let object = random.word(vocabulary::NOUNS);
                let (name, file) = language.function(service, package, (&subject, role), (verb, object));
                self.add_function(&name, &file, 20 + method as u32 * 35);
            }
        }
        for index in (first + 1..self.functions.len()).rev() {
            let other = first + random.below(index - first + 1);
            self.functions.swap(index, other);
        }
    }

    /// Adds a path below an operation's handler that ends in a function which nothing else calls.
    pub(super) fn plant(&mut self, region: usize, function: &str, file: &str, line: u32) -> NodeNumber {
        let top = self.regions.get(region).map_or(NO_NODE, |region| region.top);
        let function = self.add_function(function, file, line.saturating_sub(4));
        let depth = self.nodes.get(top as usize).map_or(0, |node| node.depth) + 1;
        self.nodes.push(CallNode { parent: top, function, line, depth });
        self.nodes.len() as NodeNumber - 1
    }

    /// A path of a region, the likely ones most of the time.
    pub(crate) fn pick_path(&self, region: usize, random: &mut Random) -> NodeNumber {
        let Some(region) = self.regions.get(region) else {
            return 0;
        };
        region.leaves.get(region.chooser.pick(random)).copied().unwrap_or(region.top)
    }

    /// The nodes of a path, the innermost first.
    pub fn leaf_to_root(&self, leaf: NodeNumber) -> impl Iterator<Item = (NodeNumber, &CallNode)> {
        let mut next = leaf;
        std::iter::from_fn(move || {
            let number = next;
            let node = self.nodes.get(number as usize)?;
            next = node.parent;
            Some((number, node))
        })
    }

    /// The function of a node.
    pub fn function(&self, node: &CallNode) -> &Function {
        &self.functions[node.function as usize]
    }
}

/// What is needed while a tree grows.
struct Growth {
    own_functions: Skewed,
    first_own: u32,
    max_depth: u32,
    children: Vec<Vec<NodeNumber>>,
}

impl Growth {
    fn add_child(&mut self, tree: &mut CallTree, parent: NodeNumber, function: u32, line: u32) -> NodeNumber {
        let depth = tree.nodes.get(parent as usize).map_or(0, |node| node.depth) + 1;
        let number = tree.nodes.len() as NodeNumber;
        tree.nodes.push(CallNode { parent, function, line, depth });
        self.children.push(Vec::new());
        if let Some(siblings) = self.children.get_mut(parent as usize) {
            siblings.push(number);
        }
        number
    }

    fn region(&mut self, tree: &mut CallTree, top: NodeNumber, stacks: usize, random: &mut Random) -> Region {
        let leaves: Vec<NodeNumber> = (0..stacks).map(|_| self.stack(tree, top, random)).collect();
        let chooser = Skewed::zipf(leaves.len(), 0.75);
        Region { top, leaves, chooser }
    }

    /// One path: along known ones near the root, on its own near the leaf.
    fn stack(&mut self, tree: &mut CallTree, top: NodeNumber, random: &mut Random) -> NodeNumber {
        let max = i64::from(self.max_depth);
        let depth = match random.below(10) {
            0..=2 => random.between(max / 5, max / 3),
            3..=6 => random.between(max / 3, max * 2 / 3),
            _ => random.between(max * 2 / 3, max),
        };
        let branch_below = (depth as f64 * (0.84 + 0.15 * random.unit())) as u32;
        let mut node = top;
        while i64::from(tree.nodes[node as usize].depth) < depth {
            let shared = tree.nodes[node as usize].depth < branch_below && random.chance(0.995);
            let known = &self.children[node as usize];
            node = if shared && !known.is_empty() {
                // The square favours what was there first, which is then shared by most.
                let at = random.unit() * random.unit() * known.len() as f64;
                known[at as usize]
            } else {
                let function = self.first_own + self.own_functions.pick(random) as u32;
                // Few call sites in each function: what a function calls, it calls from few lines.
                let line = tree.functions[function as usize].start_line + random.between(1, 3) as u32 * 7;
                self.add_child(tree, node, function, line)
            };
        }
        node
    }
}
