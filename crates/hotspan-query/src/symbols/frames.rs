//! The frames of a service, and the texts that they are made of.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use hashbrown::HashMap;
use hotspan_lake::arrays::{self, Texts};
use hotspan_model::FrameKind;
use hotspan_model::frame::place_name;
use xxhash_rust::xxh3::xxh3_64;

use super::id_search::IdIndex;
use crate::error::Result;

/// The columns of frames that are read.
pub(super) const FRAME_COLUMNS: [&str; 9] =
    ["service_id", "id", "function", "file", "line", "start_line", "mapping", "address", "kind"];

/// The number of the frame that stands for those that are not stored.
pub(super) const UNKNOWN_FRAME: u32 = 0;

/// One place in code. Texts are numbers in the service's [`TextTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameEntry {
    pub(crate) function: u32,
    pub(crate) file: u32,
    /// The binary or library, without its folder.
    pub(crate) module: u32,
    pub(crate) line: u32,
    pub(crate) start_line: u32,
    pub(crate) kind: FrameKind,
}

/// The frames of a service by id.
#[derive(Debug, Clone)]
pub(super) struct FrameTable {
    ids: Vec<u64>,
    index: IdIndex,
    /// The frame that is not stored, then one for each id.
    entries: Vec<FrameEntry>,
    pub(super) texts: TextTable,
}

impl Default for FrameTable {
    fn default() -> Self {
        let mut texts = TextTable::default();
        texts.intern("");
        let unknown = FrameEntry {
            function: texts.intern("[unknown]"),
            file: 0,
            module: 0,
            line: 0,
            start_line: 0,
            kind: FrameKind::Unknown,
        };
        Self { ids: Vec::new(), index: IdIndex::default(), entries: vec![unknown], texts }
    }
}

impl FrameTable {
    /// The number of a frame; [`UNKNOWN_FRAME`] if it is not stored.
    pub(super) fn number(&self, id: u64) -> u32 {
        self.index.find(&self.ids, id).map_or(UNKNOWN_FRAME, |at| at as u32 + 1)
    }

    pub(super) fn entry(&self, number: u32) -> &FrameEntry {
        &self.entries[number as usize]
    }

    /// Adds rows of frames; those that are there already mean the same.
    pub(super) fn extend(&mut self, rows: &[(RecordBatch, Range<usize>)]) -> Result<()> {
        let added = rows.iter().map(|(_, range)| range.len()).sum::<usize>();
        if added == 0 {
            return Ok(());
        }
        let known = self.ids.iter().copied().zip(self.entries[1..].iter().copied());
        let mut frames: Vec<(u64, FrameEntry)> = Vec::with_capacity(self.ids.len() + added);
        frames.extend(known);
        for (batch, range) in rows {
            let columns = FrameColumns::of(batch)?;
            frames.extend(range.clone().map(|row| (columns.ids[row], columns.entry(row, &mut self.texts))));
        }
        if !frames.is_sorted_by_key(|(id, _)| *id) {
            frames.sort_by_key(|(id, _)| *id);
        }
        frames.dedup_by_key(|(id, _)| *id);
        self.ids = frames.iter().map(|(id, _)| *id).collect();
        self.index = IdIndex::of(&self.ids);
        self.entries.truncate(1);
        self.entries.extend(frames.iter().map(|(_, entry)| *entry));
        Ok(())
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.ids.len() * (8 + size_of::<FrameEntry>()) + self.texts.bytes
    }
}

/// The columns of a batch of frames.
struct FrameColumns<'b> {
    ids: &'b [u64],
    functions: Texts<'b>,
    files: Texts<'b>,
    modules: Texts<'b>,
    lines: &'b [u32],
    start_lines: &'b [u32],
    addresses: &'b [u64],
    kinds: &'b [u8],
}

impl<'b> FrameColumns<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Self> {
        Ok(Self {
            ids: arrays::uint64s(batch, "id")?.values(),
            functions: arrays::texts(batch, "function")?,
            files: arrays::texts(batch, "file")?,
            modules: arrays::texts(batch, "mapping")?,
            lines: arrays::uint32s(batch, "line")?.values(),
            start_lines: arrays::uint32s(batch, "start_line")?.values(),
            addresses: arrays::uint64s(batch, "address")?.values(),
            kinds: arrays::uint8s(batch, "kind")?.values(),
        })
    }

    fn entry(&self, row: usize, texts: &mut TextTable) -> FrameEntry {
        let mapping = self.modules.get(row);
        let module = mapping.rsplit('/').next().unwrap_or(mapping);
        let function = match self.functions.get(row) {
            "" => Cow::Owned(place_name(mapping, self.addresses[row])),
            function => Cow::Borrowed(function),
        };
        FrameEntry {
            function: texts.intern(&function),
            file: texts.intern(self.files.get(row)),
            module: texts.intern(module),
            line: self.lines[row],
            start_line: self.start_lines[row],
            kind: FrameKind::from_number(self.kinds[row]),
        }
    }
}

/// Texts by number; 0 is the empty one.
#[derive(Debug, Clone, Default)]
pub(super) struct TextTable {
    texts: Vec<Arc<str>>,
    /// What texts are put in order by where any order will do that follows from them alone.
    hashes: Vec<u64>,
    numbers: HashMap<Arc<str>, u32>,
    bytes: usize,
}

impl TextTable {
    fn intern(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        let shared: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&shared));
        self.hashes.push(xxh3_64(text.as_bytes()));
        self.numbers.insert(shared, number);
        self.bytes += text.len() + 80;
        number
    }

    pub(super) fn get(&self, number: u32) -> &Arc<str> {
        &self.texts[number as usize]
    }

    pub(super) fn hash(&self, number: u32) -> u64 {
        self.hashes[number as usize]
    }

    /// The number of a text, if it is there.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}
