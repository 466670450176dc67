//! Places in code, and the table of those that a group of profiles goes through.
//!
//! Senders name a function once and refer to it from thousands of places, and most places of a request are stored already.
//! So the table holds each text and each function once, with its hash, and frames of numbers alone: the identity of a frame
//! follows from the hash of its function, and nobody touches the texts of one that is known.

use std::borrow::Cow;

use hashbrown::HashMap;

use crate::call_path::ContentHash;

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
    /// Build id of that binary, as the source spells it; only kept while there is no function.
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

/// What a place in code is called that has no function: its binary and the address in it, or what there is of both.
pub fn place_name(mapping: &str, address: u64) -> String {
    let module = mapping.rsplit('/').next().unwrap_or(mapping);
    match (module, address) {
        // What lies before address 0 is the caller of nobody: Go writes it for threads that it did not start.
        ("", 0 | u64::MAX) => UNKNOWN_PLACE.to_owned(),
        ("", address) => format!("0x{address:x}"),
        (module, address) => format!("{module}!0x{address:x}"),
    }
}

/// What a place is called of which nothing is known.
pub const UNKNOWN_PLACE: &str = "[unknown]";

/// Index of a frame in a [`FrameTable`].
pub type FrameIndex = u32;
/// Index of a function in a [`FrameTable`]; 0 is the one of which nothing is known.
pub type FunctionIndex = u32;
/// Index of a text in a [`FrameTable`]; 0 is the empty text.
pub type TextIndex = u32;

/// A function whose texts are those of a [`FrameTable`]. See [`Frame`] for what the fields mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of a frame")]
pub struct CodedFunction {
    pub name: TextIndex,
    pub system_name: TextIndex,
    pub file: TextIndex,
    pub start_line: u32,
}

/// A frame whose function and texts are those of a [`FrameTable`]. See [`Frame`] for what the fields mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of a frame")]
pub struct CodedFrame {
    pub function: FunctionIndex,
    pub line: u32,
    pub column: u32,
    pub mapping: TextIndex,
    pub build_id: TextIndex,
    pub address: u64,
    pub kind: FrameKind,
    pub attributes: TextIndex,
}

/// The frames of a group of profiles, their functions and their texts.
#[derive(Debug)]
pub struct FrameTable<'a> {
    texts: Vec<Text<'a>>,
    functions: Vec<(CodedFunction, ContentHash)>,
    frames: Vec<CodedFrame>,
    hashes: Vec<ContentHash>,
    /// Those that were added as a whole.
    index: HashMap<u64, FrameIndex>,
    collisions: u64,
    max_text_bytes: usize,
    cut_texts: u64,
}

/// About what a text takes in a [`FrameTable`], beside its bytes.
pub const TEXT_BYTES: usize = size_of::<Text<'_>>();
/// About what a function takes in a [`FrameTable`], beside its texts.
pub const FUNCTION_BYTES: usize = size_of::<(CodedFunction, ContentHash)>();
/// About what a frame takes in a [`FrameTable`], beside its function and texts.
pub const FRAME_BYTES: usize = size_of::<CodedFrame>() + size_of::<ContentHash>();

#[derive(Debug)]
struct Text<'a> {
    text: Cow<'a, str>,
    hash: ContentHash,
}

impl<'a> Text<'a> {
    fn new(text: Cow<'a, str>) -> Self {
        let hash = ContentHash::of(text.as_bytes());
        Self { text, hash }
    }
}

impl Default for FrameTable<'_> {
    fn default() -> Self {
        Self {
            texts: vec![Text::new(Cow::Borrowed(""))],
            functions: vec![(CodedFunction::default(), ContentHash::default())],
            frames: Vec::new(),
            hashes: Vec::new(),
            index: HashMap::new(),
            collisions: 0,
            max_text_bytes: usize::MAX,
            cut_texts: 0,
        }
    }
}

impl<'a> FrameTable<'a> {
    /// Cuts texts that are longer, from now on. JSON is not cut, since half of it can't be read.
    pub fn limit_texts(&mut self, max_bytes: usize) {
        self.max_text_bytes = max_bytes;
    }

    /// How many texts were cut.
    pub fn cut_texts(&self) -> u64 {
        self.cut_texts
    }

    /// Adds a text. Nobody looks whether it is there already: who has tables of texts adds each once.
    pub fn text(&mut self, mut text: Cow<'a, str>) -> TextIndex {
        if text.len() > self.max_text_bytes {
            text = self.shortened(text);
        }
        self.json(text)
    }

    /// Adds JSON, which is a text that stays whole.
    pub fn json(&mut self, text: Cow<'a, str>) -> TextIndex {
        if text.is_empty() {
            return 0;
        }
        self.texts.push(Text::new(text));
        (self.texts.len() - 1) as TextIndex
    }

    #[cold]
    fn shortened(&mut self, text: Cow<'a, str>) -> Cow<'a, str> {
        self.cut_texts += 1;
        let end = text.floor_char_boundary(self.max_text_bytes);
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            // A copy of what is kept, since the rest would stay in memory with it.
            Cow::Owned(text) => Cow::Owned(text[..end].to_owned()),
        }
    }

    /// Adds a function of texts that are in the table. As with texts, nobody looks whether it is there already.
    pub fn function(&mut self, function: CodedFunction) -> FunctionIndex {
        if function == CodedFunction::default() {
            return 0;
        }
        let text = |text: TextIndex| self.texts[text as usize].hash;
        let named = text(function.name).child(text(function.system_name)).child(text(function.file));
        self.functions.push((function, named.with([u64::from(function.start_line), 0])));
        (self.functions.len() - 1) as FunctionIndex
    }

    /// Whether a function has a name; the places of one that has none are known by their address.
    pub fn is_named(&self, function: FunctionIndex) -> bool {
        self.functions[function as usize].0.name != 0
    }

    /// Makes room for this many further texts and functions.
    pub fn reserve_symbols(&mut self, texts: usize, functions: usize) {
        self.texts.reserve(texts);
        self.functions.reserve(functions);
    }

    /// Whether two texts are the same.
    pub fn same_text(&self, one: TextIndex, other: TextIndex) -> bool {
        self.texts[one as usize].hash == self.texts[other as usize].hash
    }

    /// Adds a frame, or finds it among those that were added this way.
    pub fn add(&mut self, frame: Frame<'a>) -> FrameIndex {
        let (texts, functions, cut_texts) = (self.texts.len(), self.functions.len(), self.cut_texts);
        let function = CodedFunction {
            name: self.text(frame.function),
            system_name: self.text(frame.system_name),
            file: self.text(frame.file),
            start_line: frame.start_line,
        };
        let coded = CodedFrame {
            function: self.function(function),
            line: frame.line,
            column: frame.column,
            mapping: self.text(frame.mapping),
            build_id: self.text(frame.build_id),
            address: frame.address,
            kind: frame.kind,
            attributes: self.json(frame.attributes),
        };
        let hash = self.identity(&coded);
        match self.index.get(&hash.id) {
            Some(known) => {
                self.collisions += u64::from(self.hashes[*known as usize] != hash);
                self.texts.truncate(texts);
                self.functions.truncate(functions);
                self.cut_texts = cut_texts;
                *known
            }
            None => {
                let index = self.push(coded, hash);
                self.index.insert(hash.id, index);
                index
            }
        }
    }

    /// Adds a frame of a function and texts that are in the table. Nobody looks whether it is there already: who has a table
    /// of locations adds each once, and two that are the same have one identity.
    #[inline]
    pub fn add_coded(&mut self, frame: CodedFrame) -> FrameIndex {
        let hash = self.identity(&frame);
        self.push(frame, hash)
    }

    #[inline]
    fn push(&mut self, frame: CodedFrame, hash: ContentHash) -> FrameIndex {
        self.frames.push(frame);
        self.hashes.push(hash);
        (self.frames.len() - 1) as FrameIndex
    }

    /// What follows from the function alone is hashed with it; what most frames lack is not hashed, but that they lack it.
    #[inline]
    fn identity(&self, frame: &CodedFrame) -> ContentHash {
        let CodedFrame { function, line, column, mapping, build_id, address, kind, attributes } = *frame;
        let mut hash = self.functions[function as usize].1;
        let mut present = 0;
        for (bit, text) in [mapping, build_id, attributes].into_iter().enumerate() {
            if text != 0 {
                present |= 1 << bit;
                hash = hash.child(self.texts[text as usize].hash);
            }
        }
        if address != 0 {
            present |= 1 << 3;
            hash = hash.with([address, 0]);
        }
        hash.with([u64::from(line) << 32 | u64::from(column), u64::from(kind as u8) << 8 | present])
    }

    /// Makes room for this many further frames.
    pub fn reserve(&mut self, frames: usize) {
        self.frames.reserve(frames);
        self.hashes.reserve(frames);
    }

    /// How many frames there are: their indices are all below.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frame with this index.
    pub fn get(&self, index: FrameIndex) -> Frame<'_> {
        let frame = &self.frames[index as usize];
        let (function, _) = &self.functions[frame.function as usize];
        let text = |text: TextIndex| Cow::Borrowed(self.texts[text as usize].text.as_ref());
        Frame {
            function: text(function.name),
            system_name: text(function.system_name),
            file: text(function.file),
            line: frame.line,
            column: frame.column,
            start_line: function.start_line,
            mapping: text(frame.mapping),
            build_id: text(frame.build_id),
            address: frame.address,
            kind: frame.kind,
            attributes: text(frame.attributes),
        }
    }

    /// What kind of code the frame with this index is.
    pub fn kind(&self, index: FrameIndex) -> FrameKind {
        self.frames[index as usize].kind
    }

    /// The identity of the frame with this index.
    pub fn hash(&self, index: FrameIndex) -> ContentHash {
        self.hashes[index as usize]
    }

    /// All frames, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        (0..self.frames.len() as FrameIndex).map(|index| self.get(index))
    }

    /// How often a frame met another one with the same id; it then counts as that one.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// The same table without borrows; every index stays what it is.
    pub fn into_owned(self) -> FrameTable<'static> {
        let own = |Text { text, hash }: Text<'a>| Text { text: Cow::Owned(text.into_owned()), hash };
        FrameTable {
            texts: self.texts.into_iter().map(own).collect(),
            functions: self.functions,
            frames: self.frames,
            hashes: self.hashes,
            index: self.index,
            collisions: self.collisions,
            max_text_bytes: self.max_text_bytes,
            cut_texts: self.cut_texts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: frames that differ in one field, or in where one text ends and the next begins.
    /// Guarantee: they differ in identity.
    #[test]
    fn every_field_counts() {
        let base = Frame { file: "ab".into(), ..Frame::named("f") };
        let variants = [
            Frame { line: 1, ..base.clone() },
            Frame { column: 1, ..base.clone() },
            Frame { start_line: 1, ..base.clone() },
            Frame { address: 1, ..base.clone() },
            Frame { kind: FrameKind::Native, ..base.clone() },
            Frame { system_name: "m".into(), ..base.clone() },
            Frame { mapping: "m".into(), ..base.clone() },
            Frame { build_id: "m".into(), ..base.clone() },
            Frame { attributes: "m".into(), ..base.clone() },
            Frame { function: "fa".into(), file: "b".into(), ..base.clone() },
            base,
        ];
        let mut table = FrameTable::default();
        for (number, variant) in variants.iter().enumerate() {
            assert_eq!(table.add(variant.clone()), number as u32, "{variant:?}");
        }
        assert!(table.iter().eq(variants));
    }

    /// Scenario: a frame added as a whole, again, and by texts that were added before.
    /// Guarantee: the first two are one frame, which takes its texts once; all have one identity and the same content.
    #[test]
    fn frames_are_found_again() {
        let mut table = FrameTable::default();
        let frame = Frame { file: "a.rs".into(), line: 7, ..Frame::named("work") };
        let first = table.add(frame.clone());
        assert_eq!((table.add(frame.clone()), table.texts.len()), (first, 3));
        let (name, file) = (table.text("work".into()), table.text("a.rs".into()));
        let function = table.function(CodedFunction { name, file, ..CodedFunction::default() });
        let again = table.add_coded(CodedFrame { function, line: 7, ..CodedFrame::default() });
        assert_eq!((table.hash(again), table.get(again)), (table.hash(first), frame.clone()));
        assert_eq!((table.add(frame), table.collisions()), (first, 0));
    }

    /// Scenario: a name longer than the limit, inside a character, again, and with JSON that is longer still.
    /// Guarantee: it is cut before the character and counted once; the JSON stays whole.
    #[test]
    fn long_texts_are_cut_once() {
        let mut table = FrameTable::default();
        table.limit_texts(4);
        let json = "{\"a\":true}";
        let frame = Frame { attributes: json.into(), ..Frame::named("größe") };
        let first = table.add(frame.clone());
        assert_eq!((table.add(frame), table.cut_texts()), (first, 1));
        assert_eq!((table.get(first).function, table.get(first).attributes), ("grö".into(), json.into()));
        assert_eq!(table.add(Frame { attributes: json.into(), ..Frame::named("grö") }), first);
    }

    /// Scenario: places without a function, with and without a binary and an address.
    /// Guarantee: the name says what is known, and that nothing is.
    #[test]
    fn names_of_places() {
        let places = [
            ("/usr/lib/libc.so", 0xff, "libc.so!0xff"),
            ("libc.so", 0, "libc.so!0x0"),
            ("", 0x7f00, "0x7f00"),
            ("", 0, "[unknown]"),
            ("", u64::MAX, "[unknown]"),
        ];
        for (mapping, address, name) in places {
            assert_eq!(place_name(mapping, address), name);
        }
    }

    /// Scenario: a frame whose stored half of the hash another one has already. Guarantee: the collision is counted.
    #[test]
    fn collisions_are_found() {
        let mut table = FrameTable::default();
        let first = table.add(Frame::named("first"));
        let second = table.add(Frame::named("second"));
        let (id, _) = (table.hash(second).id, table.index.clear());
        table.index.insert(id, first);
        assert_eq!((table.add(Frame::named("second")), table.collisions()), (first, 1));
    }
}
