//! Call paths are content-addressed: the id of a node is the hash of its parent's id and its frame.
//!
//! The id of a path is therefore the same in every file, on every machine, on every day, and merging, diffing
//! and joining profiles is grouping by id, with no remapping. Tables store 64 bits of the hash; the other 64 are
//! compared wherever a symbol is looked up while it is received, so that a collision is found instead of believed.
//!
//! The address is part of a frame only while the frame has no function: with a function, it would split one
//! line into as many frames as it has instructions, and differ from process to process.

use std::borrow::Cow;
use std::fmt;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// Identity of a node of the call tree, that is, of a path from a root to a frame. Zero is "no path".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u64);

/// Identity of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FrameId(pub u64);

impl fmt::Debug for NodeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl fmt::Debug for FrameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// A 128-bit content hash: the half that is stored everywhere, and the half that detects collisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentHash {
    /// The half that serves as id; never zero for real content.
    pub id: u64,
    /// The half that two different contents with the same id differ in.
    pub check: u64,
}

impl ContentHash {
    fn from_u128(hash: u128) -> Self {
        // Zero means "none" in every table.
        Self { id: (hash as u64).max(1), check: (hash >> 64) as u64 }
    }

    /// The identity of the child of this node that runs `frame`. The default value is the root's parent.
    pub fn child(self, frame: ContentHash) -> Self {
        let mut bytes = [0u8; 32];
        bytes[0..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.check.to_le_bytes());
        bytes[16..24].copy_from_slice(&frame.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&frame.check.to_le_bytes());
        Self::from_u128(xxh3_128(&bytes))
    }
}

/// What kind of code a frame is, as far as its source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum FrameKind {
    /// Not said.
    #[default]
    Unknown = 0,
    /// Compiled ahead of time: C, C++, Rust, Go.
    Native = 1,
    /// The kernel.
    Kernel = 2,
    /// Interpreted or compiled at run time by a virtual machine.
    Managed = 3,
    /// Compiled at run time; a virtual machine that tells it apart from `Managed`.
    Jit = 4,
    /// Inlined into its caller.
    Inlined = 5,
    /// Garbage collector, scheduler or another part of the runtime.
    Runtime = 6,
}

impl FrameKind {
    /// The kind with this number in a table; unknown numbers are `Unknown`.
    pub fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Native,
            2 => Self::Kernel,
            3 => Self::Managed,
            4 => Self::Jit,
            5 => Self::Inlined,
            6 => Self::Runtime,
            _ => Self::Unknown,
        }
    }

    /// The kind that OpenTelemetry's `profile.frame.type` names.
    pub fn from_otel(name: &str) -> Self {
        match name {
            "native" | "go" | "rust" => Self::Native,
            "kernel" => Self::Kernel,
            "" => Self::Unknown,
            _ => Self::Managed,
        }
    }
}

/// One place in code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Frame<'a> {
    /// The function as a person reads it; empty while it is not symbolised.
    pub function: Cow<'a, str>,
    /// The function as the linker or the virtual machine names it, if that differs.
    pub system_name: Cow<'a, str>,
    /// Source file.
    pub file: Cow<'a, str>,
    /// Line in it; 0 if not known.
    pub line: u32,
    /// Column; 0 if not known.
    pub column: u32,
    /// The line where the function starts; 0 if not known.
    pub start_line: u32,
    /// The binary or library it was loaded from.
    pub mapping: Cow<'a, str>,
    /// Build id of that binary, as the source spells it.
    pub build_id: Cow<'a, str>,
    /// Address in the binary's own address space; only kept while there is no function.
    pub address: u64,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Any further attributes, as JSON; usually empty.
    pub attributes: Cow<'a, str>,
}

impl Frame<'_> {
    /// A frame that is known by its name alone, as in collapsed stacks.
    pub fn named(function: &str) -> Frame<'_> {
        Frame { function: Cow::Borrowed(function), ..Frame::default() }
    }

    /// The content hash of this frame.
    pub fn identity(&self) -> ContentHash {
        self.identity_with(&mut Vec::new())
    }

    /// The same with a buffer that is used again: hashing in one go is far faster than in pieces this small.
    fn identity_with(&self, bytes: &mut Vec<u8>) -> ContentHash {
        bytes.clear();
        let texts = [&self.function, &self.system_name, &self.file, &self.mapping, &self.build_id, &self.attributes];
        for text in texts {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        for number in [self.line, self.column, self.start_line, u32::from(self.kind as u8)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.address.to_le_bytes());
        ContentHash::from_u128(xxh3_128(bytes))
    }

    /// The same frame without borrows.
    pub fn into_owned(self) -> Frame<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Frame {
            function: own(self.function),
            system_name: own(self.system_name),
            file: own(self.file),
            line: self.line,
            column: self.column,
            start_line: self.start_line,
            mapping: own(self.mapping),
            build_id: own(self.build_id),
            address: self.address,
            kind: self.kind,
            attributes: own(self.attributes),
        }
    }
}

/// Index of a frame in a [`PathTable`].
pub type FrameIndex = u32;
/// Index of a node in a [`PathTable`]. [`NO_PATH`] is the empty path.
pub type NodeIndex = u32;
/// The empty path: the parent of every root, and the path of a sample without a stack.
pub const NO_PATH: NodeIndex = u32::MAX;

/// A node of a [`PathTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathNode {
    /// The caller; always earlier in the table, or [`NO_PATH`].
    pub parent: NodeIndex,
    /// The frame it runs.
    pub frame: FrameIndex,
    /// Its identity.
    pub hash: ContentHash,
}

/// The distinct frames and call paths of a group of profiles. Parents stand before their children.
#[derive(Debug, Default)]
pub struct PathTable<'a> {
    frames: Vec<Frame<'a>>,
    frame_hashes: Vec<ContentHash>,
    frame_index: HashMap<u64, FrameIndex>,
    nodes: Vec<PathNode>,
    node_index: HashMap<u64, NodeIndex>,
    /// The last path that was added, with the identities along it.
    last_path: Vec<FrameIndex>,
    chain: Vec<ContentHash>,
    scratch: Vec<u8>,
    collisions: u64,
}

impl<'a> PathTable<'a> {
    /// Adds a frame, or finds it.
    pub fn frame(&mut self, frame: Frame<'a>) -> FrameIndex {
        let hash = frame.identity_with(&mut self.scratch);
        let index = *self.frame_index.entry(hash.id).or_insert_with(|| {
            self.frames.push(frame);
            self.frame_hashes.push(hash);
            (self.frames.len() - 1) as FrameIndex
        });
        self.collisions += u64::from(self.frame_hashes[index as usize] != hash);
        index
    }

    /// Adds a path of frames, the root first, or finds it.
    ///
    /// The ids of the whole chain are computed first and looked up from the leaf: most paths are known, and
    /// then cost one look-up however deep they are. What a path shares with the one before is not hashed again.
    pub fn path(&mut self, root_to_leaf: &[FrameIndex]) -> NodeIndex {
        let shared = self.last_path.iter().zip(root_to_leaf).take_while(|(last, this)| last == this).count();
        self.last_path.truncate(shared);
        self.last_path.extend_from_slice(&root_to_leaf[shared..]);
        self.chain.truncate(shared);
        let mut hash = self.chain.last().copied().unwrap_or_default();
        for frame in &root_to_leaf[shared..] {
            hash = hash.child(self.frame_hashes[*frame as usize]);
            self.chain.push(hash);
        }
        let mut known = root_to_leaf.len();
        let mut node = NO_PATH;
        while known > 0 {
            if let Some(found) = self.node_index.get(&self.chain[known - 1].id) {
                node = *found;
                self.collisions += u64::from(self.nodes[node as usize].hash != self.chain[known - 1]);
                break;
            }
            known -= 1;
        }
        for (frame, hash) in root_to_leaf.iter().zip(&self.chain).skip(known) {
            self.nodes.push(PathNode { parent: node, frame: *frame, hash: *hash });
            node = (self.nodes.len() - 1) as NodeIndex;
            self.node_index.insert(hash.id, node);
        }
        node
    }

    /// Adds the child of `parent` that runs `frame`, or finds it.
    pub fn child(&mut self, parent: NodeIndex, frame: FrameIndex) -> NodeIndex {
        let parent_hash = if parent == NO_PATH { ContentHash::default() } else { self.nodes[parent as usize].hash };
        let hash = parent_hash.child(self.frame_hashes[frame as usize]);
        let index = *self.node_index.entry(hash.id).or_insert_with(|| {
            self.nodes.push(PathNode { parent, frame, hash });
            (self.nodes.len() - 1) as NodeIndex
        });
        self.collisions += u64::from(self.nodes[index as usize].hash != hash);
        index
    }

    /// How often a symbol met another one with the same id; it then counts as that one.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// Makes room for this many further frames and nodes.
    pub fn reserve(&mut self, frames: usize, nodes: usize) {
        self.frames.reserve(frames);
        self.frame_hashes.reserve(frames);
        self.frame_index.reserve(frames);
        self.nodes.reserve(nodes);
        self.node_index.reserve(nodes);
    }

    /// All nodes, parents first.
    pub fn nodes(&self) -> &[PathNode] {
        &self.nodes
    }

    /// All frames.
    pub fn frames(&self) -> &[Frame<'a>] {
        &self.frames
    }

    /// The identity of a frame.
    pub fn frame_hash(&self, frame: FrameIndex) -> ContentHash {
        self.frame_hashes[frame as usize]
    }

    /// The id of a path; zero for [`NO_PATH`].
    pub fn node_id(&self, node: NodeIndex) -> NodeId {
        if node == NO_PATH { NodeId(0) } else { NodeId(self.nodes[node as usize].hash.id) }
    }

    /// The frames of a path, from the leaf to the root.
    pub fn walk_to_root(&self, mut node: NodeIndex) -> impl Iterator<Item = &Frame<'a>> {
        std::iter::from_fn(move || {
            let here = self.nodes.get(node as usize)?;
            node = here.parent;
            Some(&self.frames[here.frame as usize])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the same stack added in two tables, whole and step by step. Guarantee: one id.
    #[test]
    fn ids_depend_on_content_alone() {
        let mut first = PathTable::default();
        let frames: Vec<u32> = ["main", "serve", "parse"].map(|name| first.frame(Frame::named(name))).to_vec();
        let leaf = first.path(&frames);

        let mut second = PathTable::default();
        second.frame(Frame::named("unrelated"));
        let mut node = NO_PATH;
        for name in ["main", "serve", "parse"] {
            let frame = second.frame(Frame::named(name));
            node = second.child(node, frame);
        }
        assert_eq!(first.node_id(leaf), second.node_id(node));
        let names: Vec<&str> = second.walk_to_root(node).map(|frame| frame.function.as_ref()).collect();
        assert_eq!(names, ["parse", "serve", "main"]);
    }

    /// Scenario: two stacks with a shared prefix. Guarantee: the prefix is stored once, parents first.
    #[test]
    fn prefixes_are_shared() {
        let mut table = PathTable::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| table.frame(Frame::named(name)));
        table.path(&[a, b]);
        table.path(&[a, b, c]);
        table.path(&[a, c]);
        assert_eq!(table.nodes().len(), 4);
        for (index, node) in table.nodes().iter().enumerate() {
            assert!(node.parent == NO_PATH || (node.parent as usize) < index);
        }
        assert_eq!(table.path(&[]), NO_PATH);
    }

    /// Scenario: paths that share much or nothing with the one before, in both orders.
    /// Guarantee: each has the id it has alone.
    #[test]
    fn what_is_shared_is_not_mixed_up() {
        let stacks: [&[&str]; 6] =
            [&["a", "b", "c"], &["a", "b"], &["a", "b", "d"], &[], &["d", "b"], &["a", "b", "c"]];
        let id_alone = |stack: &[&str]| {
            let mut table = PathTable::default();
            let frames: Vec<u32> = stack.iter().map(|name| table.frame(Frame::named(name))).collect();
            let node = table.path(&frames);
            table.node_id(node)
        };
        for order in [stacks.to_vec(), stacks.iter().rev().copied().collect()] {
            let mut table = PathTable::default();
            for stack in order {
                let frames: Vec<u32> = stack.iter().map(|name| table.frame(Frame::named(name))).collect();
                let node = table.path(&frames);
                assert_eq!(table.node_id(node), id_alone(stack), "{stack:?}");
            }
            assert_eq!(table.collisions(), 0);
        }
    }

    /// Scenario: a frame and a path whose stored half of the hash another one has already.
    /// Guarantee: both collisions are counted.
    #[test]
    fn collisions_are_found() {
        let mut table = PathTable::default();
        let frame = table.frame(Frame::named("first"));
        let path = table.path(&[frame]);
        let (other_frame, other) = (Frame::named("second").identity(), Frame::named("second"));
        table.frame_index.insert(other_frame.id, frame);
        table.frame(other);
        assert_eq!(table.collisions(), 1);
        let third = table.frame(Frame::named("third"));
        let hash = ContentHash::default().child(table.frame_hash(third));
        table.node_index.insert(hash.id, path);
        table.path(&[third]);
        table.child(NO_PATH, third);
        assert_eq!(table.collisions(), 3);
    }

    /// Scenario: frames that differ in one field. Guarantee: they differ in identity.
    #[test]
    fn every_field_counts() {
        let base = Frame { file: "ab".into(), ..Frame::named("f") };
        let variants = [
            Frame { line: 1, ..base.clone() },
            Frame { column: 1, ..base.clone() },
            Frame { start_line: 1, ..base.clone() },
            Frame { address: 1, ..base.clone() },
            Frame { kind: FrameKind::Native, ..base.clone() },
            Frame { mapping: "m".into(), ..base.clone() },
            Frame { build_id: "m".into(), ..base.clone() },
            Frame { function: "fa".into(), file: "b".into(), ..base.clone() },
        ];
        for variant in variants {
            assert_ne!(variant.identity(), base.identity(), "{variant:?}");
        }
    }
}
