//! Call paths are content-addressed: the id of a node is the hash of its parent's id and its frame.
//!
//! The id of a path is therefore the same in every file, on every machine, on every day, and merging, diffing
//! and joining profiles is grouping by id, with no remapping. Tables store 64 bits of the hash; the other 64 are
//! compared wherever a symbol is looked up while it is received, so that a collision is found instead of believed.
//!
//! The address is part of a frame only while the frame has no function: with a function, it would split one
//! line into as many frames as it has instructions, and differ from process to process.

use std::fmt;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::frame::{Frame, FrameIndex, FrameTable};

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
    /// The identity of bytes; the default for none.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        let hash = xxh3_128(bytes);
        // Zero means "none" in every table.
        Self { id: (hash as u64).max(1), check: (hash >> 64) as u64 }
    }

    /// The identity of the child of this node that runs `frame`. The default value is the root's parent.
    #[inline]
    pub fn child(self, frame: ContentHash) -> Self {
        self.with([frame.id, frame.check])
    }

    /// The identity of this content followed by two words.
    ///
    /// Each step of a path waits for the one before, so what counts is how long one takes: two multiplications side by side,
    /// where a hash of bytes has several one after another. Words are hashes already, or go with one.
    #[inline]
    pub(crate) fn with(self, [first, second]: [u64; 2]) -> Self {
        let (one, two) = (self.id.rotate_left(29) ^ first, self.check ^ second);
        Self {
            id: folded_product(one ^ KEYS[0], two ^ KEYS[1]).max(1),
            check: folded_product(one ^ KEYS[2], two ^ KEYS[3]),
        }
    }
}

/// Any odd-looking numbers would do; these are the fractional part of pi. They are part of the store's format.
const KEYS: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// Both halves of a product in one word: every bit of either factor reaches every bit of it.
#[inline]
fn folded_product(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

/// Index of a path in a [`PathTable`]. [`NO_PATH`] is the empty path.
pub type PathIndex = u32;
/// The empty path: that of a sample without a stack.
pub const NO_PATH: PathIndex = u32::MAX;

/// A path of a [`PathTable`]: the first steps of an earlier one, and steps of its own.
///
/// `shared` is always more than what that earlier path shares itself, so a walk changes paths at most as often as
/// it takes steps.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    hash: ContentHash,
    base: PathIndex,
    /// How many steps of `base` this path begins with.
    shared: u32,
    /// Its own steps, a range of [`PathTable::steps`].
    first_step: u32,
    own_steps: u32,
}

/// The frames and call paths of a group of profiles.
///
/// Callers of a path are not in the table unless they are paths of samples themselves. A request mostly brings paths
/// that are stored already, and then only their ids count; who needs the callers of one asks for its
/// [chain](Self::chain).
#[derive(Debug, Default)]
pub struct PathTable<'a> {
    /// The frames that paths go through.
    pub frames: FrameTable<'a>,
    paths: Vec<Path>,
    steps: Vec<FrameIndex>,
    path_index: HashMap<u64, PathIndex>,
    last: LastPath,
    collisions: u64,
}

/// The path that was added last, with the identities along it: the next one mostly begins alike.
#[derive(Debug)]
struct LastPath {
    index: PathIndex,
    frames: Vec<FrameIndex>,
    chain: Vec<ContentHash>,
}

impl Default for LastPath {
    fn default() -> Self {
        Self { index: NO_PATH, frames: Vec::new(), chain: Vec::new() }
    }
}

impl LastPath {
    /// Becomes the path of these frames; gives its identity, and how many steps it shares with the one before. The index is
    /// still that one's. None for the empty path.
    fn advance(&mut self, root_to_leaf: &[FrameIndex], frames: &FrameTable<'_>) -> Option<(ContentHash, usize)> {
        let shared = self.frames.iter().zip(root_to_leaf).take_while(|(last, this)| last == this).count();
        self.frames.truncate(shared);
        self.frames.extend_from_slice(&root_to_leaf[shared..]);
        self.chain.truncate(shared);
        let mut hash = self.chain.last().copied().unwrap_or_default();
        self.chain.extend(root_to_leaf[shared..].iter().map(|frame| {
            hash = hash.child(frames.hash(*frame));
            hash
        }));
        if root_to_leaf.is_empty() {
            self.index = NO_PATH;
            return None;
        }
        Some((hash, shared))
    }
}

/// A caller along a path: its frame, and the identity of the path that ends there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    /// The frame.
    pub frame: FrameIndex,
    /// The identity of the node.
    pub hash: ContentHash,
}

impl<'a> PathTable<'a> {
    /// Adds a frame, or finds it.
    pub fn frame(&mut self, frame: Frame<'a>) -> FrameIndex {
        self.frames.add(frame)
    }

    /// Adds a path of frames, the root first, or finds it. What it shares with the one before is not hashed again.
    pub fn path(&mut self, root_to_leaf: &[FrameIndex]) -> PathIndex {
        let Some((hash, shared)) = self.last.advance(root_to_leaf, &self.frames) else { return NO_PATH };
        let index = self.intern(hash, self.last.index, shared, &root_to_leaf[shared..]);
        if self.paths[index as usize].hash == hash {
            self.last.index = index;
        } else {
            // Another path has this id: its steps are not those of this one, so nothing may build on them.
            self.last = LastPath::default();
        }
        index
    }

    /// Adds a path. Nobody looks whether it is there already: who has a table of stacks adds each once.
    pub fn add_path(&mut self, root_to_leaf: &[FrameIndex]) -> PathIndex {
        let Some((hash, shared)) = self.last.advance(root_to_leaf, &self.frames) else { return NO_PATH };
        self.last.index = self.push(hash, self.last.index, shared, &root_to_leaf[shared..]);
        self.last.index
    }

    /// Adds the path that goes one step on from `parent`, into `frame`, or finds it.
    pub fn child(&mut self, parent: PathIndex, frame: FrameIndex) -> PathIndex {
        let (parent_hash, shared) = match self.paths.get(parent as usize) {
            Some(path) => (path.hash, (path.shared + path.own_steps) as usize),
            None => (ContentHash::default(), 0),
        };
        let hash = parent_hash.child(self.frames.hash(frame));
        self.intern(hash, parent, shared, &[frame])
    }

    fn intern(&mut self, hash: ContentHash, base: PathIndex, shared: usize, own_steps: &[FrameIndex]) -> PathIndex {
        let known = self.path_index.get(&hash.id).copied();
        let index = known.unwrap_or_else(|| {
            let index = self.push(hash, base, shared, own_steps);
            self.path_index.insert(hash.id, index);
            index
        });
        self.collisions += u64::from(self.paths[index as usize].hash != hash);
        index
    }

    fn push(&mut self, hash: ContentHash, mut base: PathIndex, shared: usize, own_steps: &[FrameIndex]) -> PathIndex {
        while let Some(path) = self.paths.get(base as usize)
            && shared <= path.shared as usize
        {
            base = path.base;
        }
        self.paths.push(Path {
            hash,
            base,
            shared: shared as u32,
            first_step: self.steps.len() as u32,
            own_steps: own_steps.len() as u32,
        });
        self.steps.extend_from_slice(own_steps);
        (self.paths.len() - 1) as PathIndex
    }

    /// How often a symbol met another one with the same id; it then counts as that one.
    pub fn collisions(&self) -> u64 {
        self.collisions + self.frames.collisions()
    }

    /// Makes room for this many further frames and paths that nobody looks for.
    pub fn reserve(&mut self, frames: usize, paths: usize) {
        self.frames.reserve(frames);
        self.paths.reserve(paths);
    }

    /// How many paths there are: their indices are all below.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// About how many bytes the paths take.
    pub fn path_bytes(&self) -> usize {
        self.paths.len() * (size_of::<Path>() + 24) + self.steps.len() * size_of::<FrameIndex>()
    }

    /// How many frames a path has; none for [`NO_PATH`].
    pub fn depth(&self, path: PathIndex) -> usize {
        self.paths.get(path as usize).map_or(0, |path| (path.shared + path.own_steps) as usize)
    }

    /// The identity of a path; the default for [`NO_PATH`].
    pub fn path_hash(&self, path: PathIndex) -> ContentHash {
        self.paths.get(path as usize).map_or_else(ContentHash::default, |path| path.hash)
    }

    /// The id of a path; zero for [`NO_PATH`].
    pub fn node_id(&self, path: PathIndex) -> NodeId {
        NodeId(self.path_hash(path).id)
    }

    /// The frames of a path, from the leaf to the root, by index.
    pub fn steps_to_root(&self, mut path: PathIndex) -> impl Iterator<Item = FrameIndex> {
        let mut left = self.paths.get(path as usize).map_or(0, |path| path.shared + path.own_steps);
        std::iter::from_fn(move || {
            loop {
                let here = self.paths.get(path as usize).filter(|_| left > 0)?;
                if left > here.shared {
                    left -= 1;
                    return Some(self.steps[(here.first_step + left - here.shared) as usize]);
                }
                path = here.base;
            }
        })
    }

    /// The frames of a path, from the leaf to the root.
    pub fn walk_to_root(&self, path: PathIndex) -> impl Iterator<Item = Frame<'_>> {
        self.steps_to_root(path).map(|frame| self.frames.get(frame))
    }

    /// Fills `chain` with a path and all its callers, from the root to the leaf.
    pub fn chain(&self, path: PathIndex, chain: &mut Vec<ChainLink>) {
        chain.clear();
        chain.extend(self.steps_to_root(path).map(|frame| ChainLink { frame, hash: ContentHash::default() }));
        chain.reverse();
        let mut hash = ContentHash::default();
        for link in chain {
            hash = hash.child(self.frames.hash(link.frame));
            link.hash = hash;
        }
    }

    /// The same table without borrows; every index stays what it is.
    pub fn into_owned(self) -> PathTable<'static> {
        PathTable {
            frames: self.frames.into_owned(),
            paths: self.paths,
            steps: self.steps,
            path_index: self.path_index,
            last: self.last,
            collisions: self.collisions,
        }
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
        let names: Vec<String> = second.walk_to_root(node).map(|frame| frame.function.into_owned()).collect();
        assert_eq!(names, ["parse", "serve", "main"]);
    }

    /// Scenario: a step of a path from identities that differ in one bit, or change places.
    /// Guarantee: either half of what it gives differs in about half of its bits.
    #[test]
    fn every_bit_counts() {
        let (parent, frame) = (ContentHash::of(b"parent"), ContentHash::of(b"frame"));
        let step = parent.child(frame);
        let flipped = |hash: ContentHash, bit: u32| match bit {
            0..64 => ContentHash { id: hash.id ^ 1 << bit, ..hash },
            _ => ContentHash { check: hash.check ^ 1 << (bit - 64), ..hash },
        };
        let neighbours =
            (0..128).flat_map(|bit| [flipped(parent, bit).child(frame), parent.child(flipped(frame, bit))]);
        for other in neighbours.chain([frame.child(parent)]) {
            for differing in [step.id ^ other.id, step.check ^ other.check].map(u64::count_ones) {
                assert!((10..=54).contains(&differing), "{differing} bits of 64");
            }
        }
    }

    /// Scenario: stacks that share a prefix with the one before. Guarantee: its steps are stored once.
    #[test]
    fn prefixes_are_shared() {
        let mut table = PathTable::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| table.frame(Frame::named(name)));
        table.path(&[a, b]);
        table.path(&[a, b, c]);
        table.path(&[a, c]);
        table.path(&[a, b]);
        assert_eq!((table.path_count(), table.steps.len()), (3, 4));
        assert_eq!(table.path(&[]), NO_PATH);
    }

    /// Scenario: paths that share much or nothing with the one before, in both orders: looked for, just added, and step by step.
    /// Guarantee: each has the id it has alone, leads back to its own frames, and has the chain of its callers.
    #[test]
    fn what_is_shared_is_not_mixed_up() {
        let stacks: [&[&str]; 8] = [
            &["a", "b", "c"],
            &["a", "b"],
            &["a", "b", "d"],
            &["a"],
            &[],
            &["d", "b"],
            &["a", "b", "d", "e", "a"],
            &["a", "b", "c"],
        ];
        let id_alone = |stack: &[&str]| {
            let mut table = PathTable::default();
            let frames: Vec<u32> = stack.iter().map(|name| table.frame(Frame::named(name))).collect();
            let path = table.path(&frames);
            table.node_id(path)
        };
        for order in [stacks.to_vec(), stacks.iter().rev().copied().collect()] {
            let mut table = PathTable::default();
            let mut chain = Vec::new();
            for (number, stack) in order.iter().enumerate() {
                let frames: Vec<u32> = stack.iter().map(|name| table.frame(Frame::named(name))).collect();
                let path = match number % 3 {
                    0 => table.path(&frames),
                    1 => table.add_path(&frames),
                    _ => frames.iter().fold(NO_PATH, |parent, frame| table.child(parent, *frame)),
                };
                assert_eq!(table.node_id(path), id_alone(stack), "{stack:?}");
                let mut names: Vec<String> =
                    table.walk_to_root(path).map(|frame| frame.function.into_owned()).collect();
                names.reverse();
                assert_eq!(&names, stack);
                table.chain(path, &mut chain);
                let ids: Vec<NodeId> = chain.iter().map(|link| NodeId(link.hash.id)).collect();
                let alone: Vec<NodeId> = (1..=stack.len()).map(|depth| id_alone(&stack[..depth])).collect();
                assert_eq!(ids, alone, "{stack:?}");
            }
            assert_eq!(table.collisions(), 0);
        }
    }

    /// Scenario: thousands of paths that share nothing but their root with the one before.
    /// Guarantee: a walk changes paths once, not once for each of them.
    #[test]
    fn walks_are_short() {
        let mut table = PathTable::default();
        let root = table.frame(Frame::named("main"));
        let names: Vec<String> = (0..2000).map(|number| format!("f{number}")).collect();
        for name in &names {
            let leaf = table.frame(Frame { function: name.clone().into(), ..Frame::default() });
            table.path(&[root, leaf]);
        }
        assert!(table.paths.iter().skip(1).all(|path| path.base == 0 && path.shared == 1));
    }

    /// Scenario: a path whose stored half of the hash another one has already, added whole and by its last step.
    /// Guarantee: both collisions are counted.
    #[test]
    fn collisions_are_found() {
        let mut table = PathTable::default();
        let frame = table.frame(Frame::named("first"));
        let path = table.path(&[frame]);
        let other = table.frame(Frame::named("other"));
        let hash = ContentHash::default().child(table.frames.hash(other));
        table.path_index.insert(hash.id, path);
        table.path(&[other]);
        table.child(NO_PATH, other);
        assert_eq!(table.collisions(), 2);
    }
}
