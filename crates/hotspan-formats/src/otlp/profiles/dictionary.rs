//! The tables that all profiles of a request share, found first though they come last on the wire.
//!
//! One walk sorts the entries by table and leaves most of them as bytes: a function or location that no stack uses
//! costs nothing, and one that many stacks use is read once.

use std::borrow::Cow;

use hotspan_model::{Link, SpanId, TraceId, Value};

use super::super::attributes::ItemReader;
use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::outcome::Outcome;
use super::super::wire::Reader;
use super::budget::Budget;
use super::mappings::Mapping;
use crate::Limits;

/// Entries of a table that room is made for ahead of reading them.
const MAX_ENTRIES_AHEAD: usize = 1 << 13;

/// The tables, those that are read on demand as bytes.
#[derive(Debug, Default)]
pub(super) struct Dictionary<'a> {
    pub(super) strings: Vec<Cow<'a, str>>,
    pub(super) attributes: Vec<Entry<TableAttribute<'a>>>,
    pub(super) mappings: Vec<Entry<Mapping<'a>>>,
    pub(super) links: Vec<Link>,
    pub(super) functions: Vec<&'a [u8]>,
    pub(super) locations: Vec<&'a [u8]>,
    pub(super) stacks: Vec<&'a [u8]>,
}

/// An entry, or the reason why whatever uses it can't be kept.
pub(super) type Entry<T> = Result<T, String>;

/// An entry of the attribute table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TableAttribute<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) value: Value<'a>,
    pub(super) unit: Cow<'a, str>,
}

/// Attribute and mapping entries as bytes, until the strings they need are known.
#[derive(Debug, Default)]
pub(super) struct Unread<'a> {
    attributes: Vec<&'a [u8]>,
    mappings: Vec<&'a [u8]>,
}

impl<'a> Dictionary<'a> {
    /// Sorts the entries of a `ProfilesDictionary` by table. Called once for each part, should it come in parts.
    pub(super) fn collect(
        &mut self,
        mut message: Reader<'a>,
        unread: &mut Unread<'a>,
        items: &mut ItemReader<'a, '_>,
        budget: &mut Budget,
    ) -> Read<()> {
        self.reserve_for(message.rest().len());
        while let Some(field) = message.field()? {
            let (table, name) = match field.number {
                1 => (&mut unread.mappings, "mapping_table"),
                2 => (&mut self.locations, "location_table"),
                3 => (&mut self.functions, "function_table"),
                4 => {
                    let link = message.message(field).element("link_table", self.links.len())?;
                    let link = read_link(link).element("link_table", self.links.len())?;
                    budget.charge(size_of::<Link>() * 2)?;
                    self.links.push(link);
                    continue;
                }
                5 => {
                    let bytes = message.bytes(field).element("string_table", self.strings.len())?;
                    budget.charge(size_of::<Cow<'_, str>>())?;
                    items.start_item();
                    let text = items.text(bytes).element("string_table", self.strings.len())?;
                    budget.charge(owned_bytes(&text))?;
                    self.strings.push(text);
                    continue;
                }
                6 => (&mut unread.attributes, "attribute_table"),
                7 => (&mut self.stacks, "stack_table"),
                _ => {
                    message.skip(field)?;
                    continue;
                }
            };
            let entry = message.bytes(field).element(name, table.len())?;
            // Locations and stacks have a place for what they become, too.
            budget.charge(2 * size_of::<&[u8]>())?;
            table.push(entry);
        }
        Ok(())
    }

    /// Makes room for the entries of so many bytes, as profilers write them: tables that grow are copied again and again. A
    /// guess; they still grow as they need.
    fn reserve_for(&mut self, bytes: usize) {
        let expected = |bytes_each: usize| (bytes / bytes_each).min(MAX_ENTRIES_AHEAD);
        self.strings.reserve(expected(80));
        self.locations.reserve(expected(64));
        self.functions.reserve(expected(96));
        self.stacks.reserve(expected(256));
    }

    /// Reads the entries that need strings, once those are all there.
    pub(super) fn resolve(
        &mut self,
        unread: &Unread<'a>,
        limits: &Limits,
        budget: &mut Budget,
        outcome: &mut Outcome,
    ) -> Read<()> {
        let strings = std::mem::take(&mut self.strings);
        let mut items = ItemReader::without_repairs(limits, &strings);
        for (index, bytes) in unread.attributes.iter().enumerate() {
            budget.charge(size_of::<Entry<TableAttribute<'_>>>())?;
            let entry = read_attribute(Reader::new(bytes), &mut items, &strings).element("attribute_table", index);
            budget.charge(items.charged())?;
            self.attributes.push(keep_entry(entry)?);
            items.note_repairs(outcome, |fault| fault.element("attribute_table", index).field("dictionary"));
        }
        self.strings = strings;
        for (index, bytes) in unread.mappings.iter().enumerate() {
            budget.charge(size_of::<Entry<Mapping<'_>>>())?;
            let entry = Mapping::read(Reader::new(bytes), self, budget).element("mapping_table", index);
            self.mappings.push(keep_entry(entry)?);
        }
        Ok(())
    }

    /// The text with this index.
    pub(super) fn text(&self, index: i32) -> Read<&Cow<'a, str>> {
        let text = usize::try_from(index).ok().and_then(|at| self.strings.get(at));
        match text {
            Some(text) => Ok(text),
            // An empty dictionary has no empty text either, but 0 still means "not set".
            None if index == 0 => Ok(&Cow::Borrowed("")),
            None => Err(wrong_index(index, "string_table", self.strings.len())),
        }
    }

    /// The attribute with this index; none for the null entry.
    pub(super) fn attribute(&self, index: i32) -> Read<Option<&TableAttribute<'a>>> {
        let entry = usize::try_from(index).ok().and_then(|at| self.attributes.get(at));
        match entry {
            Some(Ok(attribute)) if attribute.key.is_empty() && attribute.value == Value::Empty => Ok(None),
            Some(Ok(attribute)) => Ok(Some(attribute)),
            Some(Err(reason)) => Err(Fault::new(Problem::Dictionary(reason.clone()))),
            None if index == 0 => Ok(None),
            None => Err(wrong_index(index, "attribute_table", self.attributes.len())),
        }
    }
}

/// What a text takes beyond the request it borrows from.
#[allow(clippy::ptr_arg, reason = "whether it is owned is the question")]
pub(super) fn owned_bytes(text: &Cow<'_, str>) -> usize {
    if matches!(text, Cow::Owned(_)) { text.len() } else { 0 }
}

/// An index that points outside of its table.
#[cold]
pub(super) fn wrong_index(index: i32, table: &'static str, len: usize) -> Box<Fault> {
    Fault::new(Problem::Index { found: i64::from(index), table, len })
}

fn keep_entry<T>(entry: Read<T>) -> Read<Entry<T>> {
    match entry {
        Ok(entry) => Ok(Ok(entry)),
        Err(fault) if fault.problem.is_fatal() => Err(fault.field("dictionary")),
        Err(fault) => Ok(Err(fault.field("dictionary").to_string())),
    }
}

fn read_attribute<'a>(
    mut message: Reader<'a>,
    items: &mut ItemReader<'a, '_>,
    strings: &[Cow<'a, str>],
) -> Read<TableAttribute<'a>> {
    items.start_item();
    let mut attribute = TableAttribute::default();
    let (mut key, mut unit) = (0, 0);
    while let Some(field) = message.field()? {
        match field.number {
            1 => key = message.int32(field).field("key_strindex")?,
            2 => {
                let value = message.message(field).field("value")?;
                items.value(value, &mut attribute.value, 1).field("value")?;
            }
            3 => unit = message.int32(field).field("unit_strindex")?,
            _ => message.skip(field)?,
        }
    }
    let text = |index: i32| match usize::try_from(index).ok().and_then(|at| strings.get(at)) {
        Some(text) => Ok(text.clone()),
        None if index == 0 => Ok(Cow::Borrowed("")),
        None => Err(wrong_index(index, "string_table", strings.len())),
    };
    attribute.key = text(key).field("key_strindex")?;
    attribute.unit = text(unit).field("unit_strindex")?;
    Ok(attribute)
}

/// A link. An id of the wrong size says nothing, and must not cost the sample that refers to it.
fn read_link(mut message: Reader<'_>) -> Read<Link> {
    let mut link = Link::default();
    while let Some(field) = message.field()? {
        match field.number {
            1 => link.trace_id = TraceId::from_slice(message.bytes(field).field("trace_id")?).unwrap_or_default(),
            2 => link.span_id = SpanId::from_slice(message.bytes(field).field("span_id")?).unwrap_or_default(),
            _ => message.skip(field)?,
        }
    }
    Ok(link)
}
