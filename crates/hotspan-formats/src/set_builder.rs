//! Fills the tables of a [`ProfileSet`], each row once, in no more memory than it may take (R5).

use std::borrow::Cow;
use std::hash::Hash;

use hashbrown::HashMap;
use hotspan_model::profile::Thread;
use hotspan_model::{Labels, Link, ProfileSet, Sample};

use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::limits::Limits;

/// What a name, function or place takes: a slot in its table, and its share of the hash maps.
pub(crate) const SYMBOL_BYTES: usize = 256;

/// A set under construction.
#[derive(Debug)]
pub(crate) struct SetBuilder<'a> {
    /// The set so far.
    pub(crate) set: ProfileSet<'a>,
    labels: HashMap<Labels, u32>,
    threads: HashMap<Thread<'a>, u32>,
    attributes: HashMap<String, u32>,
    links: HashMap<Link, u32>,
    format: &'static str,
    /// About how many bytes the set takes, without its paths.
    taken: usize,
    pub(crate) limits: Limits,
}

impl<'a> SetBuilder<'a> {
    pub(crate) fn new(format: &'static str, options: &DecodeOptions) -> Self {
        let mut builder = Self::around(ProfileSet::default(), format, options);
        builder.set.paths.frames.limit_texts(options.limits.max_text_bytes);
        builder
    }

    /// For a set that is finished but for what the options say.
    pub(crate) fn around(set: ProfileSet<'a>, format: &'static str, options: &DecodeOptions) -> Self {
        Self {
            set,
            labels: HashMap::new(),
            threads: HashMap::new(),
            attributes: HashMap::new(),
            links: HashMap::new(),
            format,
            taken: 0,
            limits: options.limits.clone(),
        }
    }

    /// Takes room for what was read at `offset`. A file that needs more than there is gets refused.
    pub(crate) fn take(&mut self, bytes: usize, offset: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(bytes);
        self.check_room(offset)
    }

    /// Takes room for a name, function or place with this much text of its own.
    pub(crate) fn take_symbol(&mut self, text_bytes: usize, offset: usize) -> Result<()> {
        self.take(SYMBOL_BYTES + text_bytes, offset)
    }

    /// Takes room for a sample.
    pub(crate) fn take_sample(&mut self, offset: usize) -> Result<()> {
        self.take(size_of::<Sample>(), offset)
    }

    /// Counts symbols that are in the tables already; [`Self::check_room`] then tells.
    pub(crate) fn note_symbols(&mut self, count: usize, text_bytes: usize) {
        self.taken = self.taken.saturating_add(count * (SYMBOL_BYTES + text_bytes));
    }

    /// Refuses the file if tables and paths have grown beyond what they may take.
    pub(crate) fn check_room(&self, offset: usize) -> Result<()> {
        self.check_room_for(0, offset)
    }

    /// The same with some bytes on top that may become free again.
    pub(crate) fn check_room_for(&self, bytes: usize, offset: usize) -> Result<()> {
        let most = self.limits.max_decoded_bytes;
        if self.taken.saturating_add(self.set.paths.path_bytes()).saturating_add(bytes) <= most {
            return Ok(());
        }
        let what = "bytes of names, call paths, labels and samples";
        Err(FileError::too_large(self.format, offset, what, most as u64))
    }

    /// Index of a label set.
    pub(crate) fn labels(&mut self, labels: Labels) -> u32 {
        let bytes = labels.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        intern(&mut self.labels, &mut self.set.label_sets, labels, (&mut self.taken, bytes))
    }

    /// A text as far as it may be kept; one that is cut is counted.
    #[inline]
    pub(crate) fn kept_text<'t>(&mut self, text: &'t str) -> &'t str {
        let most = self.limits.max_text_bytes;
        if text.len() <= most {
            return text;
        }
        self.set.cut_texts += 1;
        &text[..text.floor_char_boundary(most)]
    }

    /// Index of a thread.
    pub(crate) fn thread(&mut self, mut thread: Thread<'a>) -> u32 {
        if thread.name.len() > self.limits.max_text_bytes {
            let kept = thread.name.floor_char_boundary(self.limits.max_text_bytes);
            thread.name = Cow::Owned(thread.name[..kept].to_owned());
            self.set.cut_texts += u64::from(!self.threads.contains_key(&thread));
        }
        let bytes = if let Cow::Owned(name) = &thread.name { name.len() } else { 0 };
        intern(&mut self.threads, &mut self.set.threads, thread, (&mut self.taken, bytes))
    }

    /// Index of a thread that is in the table.
    pub(crate) fn known_thread(&self, thread: &Thread<'a>) -> Option<u32> {
        if *thread == Thread::default() { Some(0) } else { self.threads.get(thread).copied() }
    }

    /// Index of a set of attributes in JSON.
    pub(crate) fn attributes(&mut self, json: String) -> u32 {
        let bytes = json.len();
        intern(&mut self.attributes, &mut self.set.attribute_sets, json, (&mut self.taken, bytes))
    }

    /// Index of a link.
    pub(crate) fn link(&mut self, link: Link) -> u32 {
        intern(&mut self.links, &mut self.set.links, link, (&mut self.taken, 0))
    }
}

/// Index of a row in a table whose first row is the default one. A new row is added to `taken`, with the `bytes` that it
/// refers to.
fn intern<T: Clone + Eq + Hash + Default>(
    index: &mut HashMap<T, u32>,
    table: &mut Vec<T>,
    row: T,
    (taken, bytes): (&mut usize, usize),
) -> u32 {
    if row == T::default() {
        return 0;
    }
    *index.entry(row).or_insert_with_key(|row| {
        // Once in the table and once in its index.
        *taken = taken.saturating_add(2 * (size_of::<T>() + bytes) + 16);
        table.push(row.clone());
        (table.len() - 1) as u32
    })
}
