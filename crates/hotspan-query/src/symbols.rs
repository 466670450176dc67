//! Symbols of a tenant: from a call-path id to its place in one tree of functions.
//!
//! Stored paths tell lines apart; flame graphs merge by function. The tables of nodes and frames are kept as sorted
//! columns, as they were read; a path is looked up in them the first time that it is asked for, and from then on has
//! a place in the merged tree, callers before callees. A flame graph is then: add each value at its path's place, and
//! carry totals up in one backward pass.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use hashbrown::HashMap;
use hotspan_lake::{Lake, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::{Frame, FrameKind, TenantId};

use crate::error::Result;
use crate::id_search::find;

/// A place in the tree of functions. 0 is the root.
pub(crate) type Place = u32;

/// What is known of one stored path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathEntry {
    pub(crate) place: Place,
    pub(crate) frame: u32,
    /// The caller's path; 0 at the root.
    pub(crate) parent: u64,
}

/// A frame that has been looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameEntry {
    pub(crate) name: u32,
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) start_line: u32,
    /// The binary or library, without its folder.
    pub(crate) module: u32,
    pub(crate) kind: FrameKind,
}

/// Everything that has been read of a tenant's symbols.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    nodes: Vec<NodeBlock>,
    frames: Vec<FrameBlock>,
    tree: FunctionTree,
    /// For each day, all rows up to this version have been read.
    versions: HashMap<i64, i64>,
}

/// Nodes of one or several segments, sorted by id.
#[derive(Debug, Default)]
struct NodeBlock {
    ids: Vec<u64>,
    parents: Vec<u64>,
    frames: Vec<u64>,
}

/// Frames of one segment, sorted by id.
#[derive(Debug)]
struct FrameBlock {
    ids: Vec<u64>,
    rows: Vec<u32>,
    batch: RecordBatch,
}

/// The paths that were asked for, merged by function.
#[derive(Debug)]
struct FunctionTree {
    paths: HashMap<u64, PathEntry>,
    parents: Vec<Place>,
    names: Vec<u32>,
    /// The first frame that was seen at each place: where callers stand that no sample was taken in.
    first_frames: Vec<u32>,
    children: HashMap<(Place, u32), Place>,
    frame_index: HashMap<u64, u32>,
    frames: Vec<FrameEntry>,
    texts: Vec<Arc<str>>,
    text_index: HashMap<Arc<str>, u32>,
}

impl Default for FunctionTree {
    fn default() -> Self {
        let mut tree = Self {
            paths: HashMap::new(),
            parents: vec![0],
            names: vec![0],
            first_frames: vec![u32::MAX],
            children: HashMap::new(),
            frame_index: HashMap::new(),
            frames: Vec::new(),
            texts: Vec::new(),
            text_index: HashMap::new(),
        };
        tree.intern("");
        tree
    }
}

/// The columns of frames that are kept.
const FRAME_COLUMNS: [&str; 8] = ["id", "function", "file", "line", "start_line", "mapping", "address", "kind"];

/// Symbols beyond this many nodes are forgotten before more are read.
const MAX_NODES: usize = 16_000_000;
/// More blocks than this are joined, so that a look-up stays short.
const MAX_BLOCKS: usize = 12;

impl SymbolIndex {
    /// Reads what was committed since the last time for the days that `from..until` touches.
    pub(crate) async fn catch_up(
        &mut self,
        lake: &Lake,
        snapshot: &Snapshot,
        tenant: &TenantId,
        from: i64,
        until: i64,
    ) -> Result<()> {
        if self.nodes.iter().map(|block| block.ids.len()).sum::<usize>() > MAX_NODES {
            *self = Self::default();
        }
        let day_of = |time: i64| Table::Nodes.partition_of(time);
        let mut days: Vec<i64> = Vec::new();
        for table in [Table::Frames, Table::Nodes] {
            for segment in snapshot.segments(tenant, table).iter().filter(|segment| segment.overlaps(from, until)) {
                // A segment holds rows of the days from `min_time` to `max_time`.
                let first_day = day_of(segment.min_time.max(day_of(from)));
                let last_day = day_of(segment.max_time.min(until.saturating_sub(1)));
                let unread = (first_day..=last_day)
                    .step_by(Table::Nodes.partition_length() as usize)
                    .filter(|day| self.versions.get(day).is_none_or(|version| segment.data_version > *version));
                let unread: Vec<i64> = unread.collect();
                if unread.is_empty() {
                    continue;
                }
                days.extend(unread);
                let options = match table {
                    Table::Frames => ReadOptions::columns(&FRAME_COLUMNS),
                    _ => ReadOptions::columns(&["id", "parent", "frame"]),
                };
                for batch in lake.reader().read_all(segment, options.batch_rows(1 << 20)).await? {
                    match table {
                        Table::Frames => self.frames.push(FrameBlock::new(batch)?),
                        _ => self.nodes.push(NodeBlock::new(&batch)?),
                    }
                }
            }
        }
        if self.nodes.len() > MAX_BLOCKS {
            self.nodes = vec![NodeBlock::join(&self.nodes)];
        }
        for day in days {
            self.versions.insert(day, snapshot.version());
        }
        Ok(())
    }

    /// The place of a path, which it gets now if this is the first time.
    pub(crate) fn path(&mut self, id: u64) -> Option<PathEntry> {
        if let Some(entry) = self.tree.paths.get(&id) {
            return Some(*entry);
        }
        let mut chain: Vec<(u64, u64, u64)> = Vec::new();
        let mut at = id;
        let mut place = 0;
        while at != 0 {
            if let Some(known) = self.tree.paths.get(&at) {
                place = known.place;
                break;
            }
            // A caller that is not stored leaves the rest under the root; a circle in a damaged table ends here too.
            let Some((parent, frame)) = self.node(at).filter(|_| chain.len() < 100_000) else { break };
            chain.push((at, parent, frame));
            at = parent;
        }
        if chain.first().is_none_or(|(first, _, _)| *first != id) {
            return None;
        }
        while let Some((node, parent, frame)) = chain.pop() {
            let frame = self.frame_of(frame);
            let name = self.tree.frames[frame as usize].name;
            place = self.tree.child(place, name, frame);
            self.tree.paths.insert(node, PathEntry { place, frame, parent });
        }
        self.tree.paths.get(&id).copied()
    }

    fn node(&self, id: u64) -> Option<(u64, u64)> {
        self.nodes.iter().find_map(|block| {
            let at = find(&block.ids, id)?;
            Some((block.parents[at], block.frames[at]))
        })
    }

    /// The number of a frame, which it gets now if this is the first time.
    fn frame_of(&mut self, id: u64) -> u32 {
        if let Some(frame) = self.tree.frame_index.get(&id) {
            return *frame;
        }
        let found = self.frames.iter().find_map(|block| Some((block, find(&block.ids, id)?)));
        let frame = match found {
            Some((block, at)) => block.frame_at(block.rows[at] as usize),
            None => Frame::named("[unknown]"),
        };
        let entry = FrameEntry {
            name: self.tree.intern(&frame.function),
            file: self.tree.intern(&frame.file),
            line: frame.line,
            start_line: frame.start_line,
            module: self.tree.intern(&frame.mapping),
            kind: frame.kind,
        };
        self.tree.frames.push(entry);
        let number = (self.tree.frames.len() - 1) as u32;
        self.tree.frame_index.insert(id, number);
        number
    }

    /// The caller of each place.
    pub(crate) fn parents(&self) -> &[Place] {
        &self.tree.parents
    }

    /// The function at a place.
    pub(crate) fn function(&self, place: usize) -> &str {
        &self.tree.texts[self.tree.names[place] as usize]
    }

    /// The first frame that was seen at a place; none for the root.
    pub(crate) fn first_frame(&self, place: usize) -> Option<FrameEntry> {
        self.frame(*self.tree.first_frames.get(place)?)
    }

    pub(crate) fn frame(&self, frame: u32) -> Option<FrameEntry> {
        self.tree.frames.get(frame as usize).copied()
    }

    /// The functions of a path, the leaf first; none if the path is not stored.
    pub(crate) fn functions_of(&mut self, path: u64) -> Vec<&str> {
        let mut place = self.path(path).map_or(0, |entry| entry.place);
        let mut functions = Vec::new();
        while place != 0 {
            functions.push(self.function(place as usize));
            place = self.tree.parents[place as usize];
        }
        functions
    }

    /// Whether a path starts with these functions, the root first.
    pub(crate) fn starts_with(&mut self, path: u64, functions: &[String]) -> bool {
        let Some(entry) = self.path(path) else { return false };
        let mut places: Vec<Place> = Vec::new();
        let mut place = entry.place;
        while place != 0 {
            places.push(place);
            place = self.tree.parents[place as usize];
        }
        let mut names = places.iter().rev().map(|place| self.function(*place as usize));
        functions.iter().all(|function| names.next() == Some(function))
    }

    pub(crate) fn shared_text(&self, index: u32) -> Arc<str> {
        Arc::clone(&self.tree.texts[index as usize])
    }

    pub(crate) fn text(&self, index: u32) -> &str {
        &self.tree.texts[index as usize]
    }
}

impl NodeBlock {
    fn new(batch: &RecordBatch) -> Result<Self> {
        let block = Self {
            ids: arrays::uint64s(batch, "id")?.values().to_vec(),
            parents: arrays::uint64s(batch, "parent")?.values().to_vec(),
            frames: arrays::uint64s(batch, "frame")?.values().to_vec(),
        };
        // Compacted segments are sorted; what was just received is not.
        Ok(if block.ids.is_sorted() { block } else { Self::join(&[block]) })
    }

    /// One sorted block with each node once.
    fn join(blocks: &[Self]) -> Self {
        let count = blocks.iter().map(|block| block.ids.len()).sum();
        let mut rows: Vec<(u64, u64, u64)> = Vec::with_capacity(count);
        for block in blocks {
            rows.extend(
                block
                    .ids
                    .iter()
                    .zip(&block.parents)
                    .zip(&block.frames)
                    .map(|((id, parent), frame)| (*id, *parent, *frame)),
            );
        }
        rows.sort_unstable();
        rows.dedup_by_key(|(id, _, _)| *id);
        Self {
            ids: rows.iter().map(|(id, _, _)| *id).collect(),
            parents: rows.iter().map(|(_, parent, _)| *parent).collect(),
            frames: rows.iter().map(|(_, _, frame)| *frame).collect(),
        }
    }
}

impl FrameBlock {
    fn new(batch: RecordBatch) -> Result<Self> {
        let ids = arrays::uint64s(&batch, "id")?.values();
        let mut rows: Vec<u32> = (0..batch.num_rows() as u32).collect();
        rows.sort_unstable_by_key(|row| ids[*row as usize]);
        Ok(Self { ids: rows.iter().map(|row| ids[*row as usize]).collect(), rows, batch })
    }

    /// A frame as people read it; one without a function is named by its binary and address.
    fn frame_at(&self, row: usize) -> Frame<'_> {
        let text = |column: &str| arrays::texts(&self.batch, column).map_or("", |texts| texts.get(row));
        let line = |column: &str| arrays::uint32s(&self.batch, column).map_or(0, |lines| lines.value(row));
        let module = text("mapping").rsplit('/').next().unwrap_or_default();
        let function = match text("function") {
            "" => {
                let address = arrays::uint64s(&self.batch, "address").map_or(0, |addresses| addresses.value(row));
                Cow::Owned(format!("{module}!0x{address:x}"))
            }
            function => Cow::Borrowed(function),
        };
        Frame {
            function,
            file: text("file").into(),
            line: line("line"),
            start_line: line("start_line"),
            mapping: module.into(),
            kind: FrameKind::from_number(arrays::uint8s(&self.batch, "kind").map_or(0, |kinds| kinds.value(row))),
            ..Frame::default()
        }
    }
}

impl FunctionTree {
    fn child(&mut self, parent: Place, name: u32, frame: u32) -> Place {
        if let Some(place) = self.children.get(&(parent, name)) {
            return *place;
        }
        let place = self.parents.len() as Place;
        self.parents.push(parent);
        self.names.push(name);
        self.first_frames.push(frame);
        self.children.insert((parent, name), place);
        place
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(index) = self.text_index.get(text) {
            return *index;
        }
        let index = self.texts.len() as u32;
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.text_index.insert(text, index);
        index
    }
}
