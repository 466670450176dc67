//! Symbols of a tenant: from a call-path id to its place in one tree of functions.
//!
//! Stored paths tell lines apart; flame graphs merge by function. The index keeps the merged tree of all paths it
//! has read, with callers before callees, so that a flame graph is: add each value at its path's place, then
//! carry totals up in one backward pass. Names are looked up only for what is shown.

use hashbrown::HashMap;
use hotspan_lake::{Lake, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::TenantId;

use crate::error::Result;

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

/// A function under a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionNode {
    pub(crate) parent: Place,
    /// A text: the function, or the address of one without a name.
    pub(crate) name: u32,
}

/// A frame as stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameEntry {
    pub(crate) name: u32,
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) start_line: u32,
}

/// Everything that has been read of a tenant's symbols.
#[derive(Debug)]
pub(crate) struct SymbolIndex {
    paths: HashMap<u64, PathEntry>,
    functions: Vec<FunctionNode>,
    children: HashMap<(Place, u32), Place>,
    frames: HashMap<u64, u32>,
    frame_entries: Vec<FrameEntry>,
    texts: Vec<String>,
    text_index: HashMap<String, u32>,
    /// For each day, all rows up to this version have been read.
    versions: HashMap<i64, i64>,
}

impl Default for SymbolIndex {
    fn default() -> Self {
        let mut index = Self {
            paths: HashMap::new(),
            functions: vec![FunctionNode { parent: 0, name: 0 }],
            children: HashMap::new(),
            frames: HashMap::new(),
            frame_entries: Vec::new(),
            texts: Vec::new(),
            text_index: HashMap::new(),
            versions: HashMap::new(),
        };
        index.intern("");
        index
    }
}

/// Symbols beyond this many paths are forgotten before the next day is read.
const MAX_PATHS: usize = 8_000_000;

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
        if self.paths.len() > MAX_PATHS {
            *self = Self::default();
        }
        let day_of = |time: i64| Table::Nodes.partition_of(time);
        let mut nodes: Vec<(u64, u64, u64)> = Vec::new();
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
                for batch in lake.reader().read_all(segment, ReadOptions::default()).await? {
                    match table {
                        Table::Frames => self.add_frames(&batch)?,
                        _ => {
                            let ids = arrays::uint64s(&batch, "id")?.values();
                            let parents = arrays::uint64s(&batch, "parent")?.values();
                            let frames = arrays::uint64s(&batch, "frame")?.values();
                            nodes.extend(
                                ids.iter().zip(parents).zip(frames).map(|((id, parent), frame)| (*id, *parent, *frame)),
                            );
                        }
                    }
                }
            }
        }
        self.add_nodes(&nodes);
        for day in days {
            self.versions.insert(day, snapshot.version());
        }
        Ok(())
    }

    fn add_frames(&mut self, batch: &arrow::array::RecordBatch) -> Result<()> {
        let ids = arrays::uint64s(batch, "id")?.values();
        let functions = arrays::texts(batch, "function")?;
        let files = arrays::texts(batch, "file")?;
        let mappings = arrays::texts(batch, "mapping")?;
        let lines = arrays::uint32s(batch, "line")?.values();
        let start_lines = arrays::uint32s(batch, "start_line")?.values();
        let addresses = arrays::uint64s(batch, "address")?.values();
        for (row, id) in ids.iter().enumerate() {
            if self.frames.contains_key(id) {
                continue;
            }
            let function = functions.get(row);
            let name = if function.is_empty() {
                let mapping = mappings.get(row).rsplit('/').next().unwrap_or_default().to_owned();
                self.intern(&format!("{mapping}!0x{:x}", addresses[row]))
            } else {
                self.intern(function)
            };
            let file = self.intern(files.get(row));
            self.frames.insert(*id, self.frame_entries.len() as u32);
            self.frame_entries.push(FrameEntry { name, file, line: lines[row], start_line: start_lines[row] });
        }
        Ok(())
    }

    /// Adds nodes in any order: callers are placed before their callees.
    fn add_nodes(&mut self, nodes: &[(u64, u64, u64)]) {
        let pending: HashMap<u64, (u64, u64)> = nodes
            .iter()
            .filter(|(id, _, _)| !self.paths.contains_key(id))
            .map(|(id, parent, frame)| (*id, (*parent, *frame)))
            .collect();
        let mut chain: Vec<(u64, u64, u64)> = Vec::new();
        for start in pending.keys() {
            let mut id = *start;
            let mut place = None;
            while place.is_none() {
                if id == 0 {
                    place = Some(0);
                } else if let Some(known) = self.paths.get(&id) {
                    place = Some(known.place);
                } else if let Some((parent, frame)) = pending.get(&id)
                    // A damaged table could hold a circle; a chain is never longer than all nodes.
                    && chain.len() <= pending.len()
                {
                    chain.push((id, *parent, *frame));
                    id = *parent;
                } else {
                    // The caller is not stored: the rest hangs under the root, which the answer reports.
                    place = Some(0);
                }
            }
            let mut place = place.unwrap_or(0);
            while let Some((id, parent, frame)) = chain.pop() {
                let frame = self.frames.get(&frame).copied().unwrap_or(u32::MAX);
                let name = match self.frame_entries.get(frame as usize) {
                    Some(entry) => entry.name,
                    None => self.intern("[unknown]"),
                };
                place = self.child(place, name);
                self.paths.insert(id, PathEntry { place, frame, parent });
            }
        }
    }

    fn child(&mut self, parent: Place, name: u32) -> Place {
        let functions = &mut self.functions;
        *self.children.entry((parent, name)).or_insert_with(|| {
            functions.push(FunctionNode { parent, name });
            (functions.len() - 1) as Place
        })
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(index) = self.text_index.get(text) {
            return *index;
        }
        let index = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.text_index.insert(text.to_owned(), index);
        index
    }

    pub(crate) fn path(&self, id: u64) -> Option<PathEntry> {
        self.paths.get(&id).copied()
    }

    /// The place of a stack of functions, the root first; none if no stored path starts so.
    pub(crate) fn place_of(&self, functions: &[String]) -> Option<Place> {
        functions.iter().try_fold(0, |place, name| {
            let name = self.text_index.get(name)?;
            self.children.get(&(place, *name)).copied()
        })
    }

    /// Whether a place is `caller` or below it.
    pub(crate) fn is_under(&self, mut place: Place, caller: Place) -> bool {
        // Callers stand before callees: below the number of the caller there is nothing to find.
        while place > caller {
            place = self.functions[place as usize].parent;
        }
        place == caller
    }

    pub(crate) fn functions(&self) -> &[FunctionNode] {
        &self.functions
    }

    pub(crate) fn frame(&self, frame: u32) -> Option<FrameEntry> {
        self.frame_entries.get(frame as usize).copied()
    }

    pub(crate) fn text(&self, index: u32) -> &str {
        &self.texts[index as usize]
    }
}
