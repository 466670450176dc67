//! Texts, values and attribute sets, with what keeps them within bounds: UTF-8 repair, length, nesting, memory.
//!
//! A text that is not UTF-8 is usually one that a sender cut in the middle of a character. Its span is worth
//! more than its purity: the wrong bytes become U+FFFD, and the answer says so (R4).

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};

use hotspan_model::{Attribute, Value};

use super::fault::{Fault, Locate as _, Problem, Read};
use super::outcome::Outcome;
use super::wire::{BYTES, Field, Reader};
use crate::Limits;
use crate::utf8::from_utf8;

/// Owns the repaired texts that borrowed fields point to; nothing is allocated until one is needed.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    texts: OnceCell<Vec<OnceCell<String>>>,
    used: Cell<usize>,
}

/// A request with more broken names than this is not worth repairing.
const MAX_REPAIRS: usize = 4096;

impl Repairs {
    fn keep(&self, text: String) -> Read<&str> {
        let slots = self.texts.get_or_init(|| (0..MAX_REPAIRS).map(|_| OnceCell::new()).collect());
        let slot = slots.get(self.used.get()).ok_or_else(|| Fault::new(Problem::Repairs))?;
        self.used.set(self.used.get() + 1);
        Ok(slot.get_or_init(|| text))
    }
}

/// Reads the texts and attributes of one item (a span, a resource, a scope) after another.
#[derive(Debug)]
pub(crate) struct ItemReader<'a, 'l> {
    limits: &'l Limits,
    /// Where borrowed texts are repaired; none where only owned ones are read.
    repairs: Option<&'a Repairs>,
    /// Texts that keys and values may refer to by index; empty for traces, which have no dictionary.
    dictionary: &'l [Cow<'a, str>],
    /// Memory that the current item may still take.
    allowance: usize,
    repaired: u64,
    cut: u64,
    /// Numbers of kinds and outcomes that are too large to be kept.
    unkept: u64,
    /// Attribute vectors of earlier events and links, to be filled again.
    spare: Vec<Vec<Attribute<'a>>>,
}

impl<'a, 'l> ItemReader<'a, 'l> {
    pub(crate) fn new(limits: &'l Limits, repairs: &'a Repairs, dictionary: &'l [Cow<'a, str>]) -> Self {
        Self { repairs: Some(repairs), ..Self::without_repairs(limits, dictionary) }
    }

    /// Whether a time is taken.
    #[inline]
    pub(crate) fn check_time(&self, time: i64) -> Read<()> {
        self.limits.clock.check(time).map_err(|outside| Fault::new(outside.into()))
    }

    /// A reader for items that have no borrowed texts.
    pub(crate) fn without_repairs(limits: &'l Limits, dictionary: &'l [Cow<'a, str>]) -> Self {
        let allowance = limits.max_item_bytes;
        Self { limits, repairs: None, dictionary, allowance, repaired: 0, cut: 0, unkept: 0, spare: Vec::new() }
    }

    /// How much memory the current item takes.
    pub(crate) fn charged(&self) -> usize {
        self.limits.max_item_bytes - self.allowance
    }

    /// Begins another item with a full allowance.
    pub(crate) fn start_item(&mut self) {
        self.allowance = self.limits.max_item_bytes;
    }

    /// Takes down the repairs since the last call; `locate` gives the path of the item.
    pub(crate) fn note_repairs(&mut self, outcome: &mut Outcome, locate: impl Fn(Box<Fault>) -> Box<Fault>) {
        if self.repaired + self.cut + self.unkept == 0 {
            return;
        }
        if self.repaired > 0 {
            outcome.note_many(&locate(Fault::new(Problem::NotUtf8)), self.repaired);
        }
        if self.cut > 0 {
            let limit = self.limits.max_text_bytes;
            outcome.note_many(&locate(Fault::new(Problem::TooLong { limit })), self.cut);
        }
        if self.unkept > 0 {
            outcome.note_many(&locate(Fault::new(Problem::Code)), self.unkept);
        }
        (self.repaired, self.cut, self.unkept) = (0, 0, 0);
    }

    /// Accounts for memory that the item takes.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Read<()> {
        match self.allowance.checked_sub(bytes) {
            Some(left) => {
                self.allowance = left;
                Ok(())
            }
            None => Err(Fault::new(Problem::Size { limit: self.limits.max_item_bytes })),
        }
    }

    /// A text that may be owned.
    #[inline]
    pub(crate) fn text(&mut self, bytes: &'a [u8]) -> Read<Cow<'a, str>> {
        match from_utf8(bytes) {
            Ok(text) if text.len() <= self.limits.max_text_bytes => Ok(Cow::Borrowed(text)),
            Ok(text) => Ok(Cow::Borrowed(self.shorten(text))),
            Err(_) => Ok(Cow::Owned(self.repair(bytes)?)),
        }
    }

    /// A text that has to be borrowed.
    #[inline]
    pub(crate) fn borrowed_text(&mut self, bytes: &'a [u8]) -> Read<&'a str> {
        match from_utf8(bytes) {
            Ok(text) if text.len() <= self.limits.max_text_bytes => Ok(text),
            Ok(text) => Ok(self.shorten(text)),
            Err(_) => {
                let text = self.repair(bytes)?;
                self.repairs.ok_or_else(|| Fault::new(Problem::Repairs))?.keep(text)
            }
        }
    }

    #[cold]
    fn shorten<'t>(&mut self, text: &'t str) -> &'t str {
        self.cut += 1;
        &text[..text.floor_char_boundary(self.limits.max_text_bytes)]
    }

    #[cold]
    fn repair(&mut self, bytes: &[u8]) -> Read<String> {
        self.repaired += 1;
        let kept = &bytes[..bytes.len().min(self.limits.max_text_bytes)];
        if kept.len() < bytes.len() {
            self.cut += 1;
        }
        // A wrong byte becomes three.
        self.charge(kept.len().saturating_mul(3))?;
        Ok(String::from_utf8_lossy(kept).into_owned())
    }

    /// The number of a kind or an outcome, of which OTLP has a handful; whatever it adds to them will fit.
    #[inline]
    pub(crate) fn code(&mut self, number: i32) -> i8 {
        i8::try_from(number).unwrap_or_else(|_| {
            self.unkept += 1;
            0
        })
    }

    /// An empty vector of attributes, used before if possible.
    pub(crate) fn spare_vec(&mut self) -> Vec<Attribute<'a>> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a vector back for later use.
    pub(crate) fn give_back(&mut self, mut attributes: Vec<Attribute<'a>>) {
        // Enough for any span that is common; the rest may as well be freed.
        if self.spare.len() < 64 && attributes.capacity() <= 256 {
            attributes.clear();
            self.spare.push(attributes);
        }
    }

    /// A `KeyValue` that is an element of `attributes`.
    #[inline]
    pub(crate) fn attribute(&mut self, from: &mut Reader<'a>, field: Field, into: &mut Vec<Attribute<'a>>) -> Read<()> {
        let index = into.len();
        let message = from.message(field).element("attributes", index)?;
        self.key_value(message, 1, into).element("attributes", index)
    }

    /// Reads a `KeyValue` into its place at the end of the list, since an attribute is long to move.
    #[inline]
    fn key_value(&mut self, mut message: Reader<'a>, depth: usize, into: &mut Vec<Attribute<'a>>) -> Read<()> {
        self.charge(size_of::<Attribute<'_>>())?;
        let attribute = into.push_mut(Attribute { key: Cow::Borrowed(""), value: Value::Empty });
        let mut key_index = 0;
        if message.next_is(1, BYTES) {
            attribute.key = message.raw_bytes().and_then(|bytes| self.text(bytes)).field("key")?;
        }
        if message.next_is(2, BYTES) {
            let value = message.raw_bytes().map(Reader::new).field("value")?;
            self.value(value, &mut attribute.value, depth).field("value")?;
        }
        while let Some(field) = message.field()? {
            match field.number {
                1 => attribute.key = message.bytes(field).and_then(|bytes| self.text(bytes)).field("key")?,
                2 => {
                    let value = message.message(field).field("value")?;
                    self.value(value, &mut attribute.value, depth).field("value")?;
                }
                3 => key_index = message.int32(field).field("key_strindex")?,
                _ => message.skip(field)?,
            }
        }
        if attribute.key.is_empty() && key_index != 0 {
            attribute.key = self.dictionary_text(key_index).field("key_strindex")?.unwrap_or_default();
        }
        Ok(())
    }

    /// An `AnyValue`. Of several values the last one counts, but lists that follow each other are joined, as
    /// protobuf's rules for repeated occurrences of a message demand.
    pub(crate) fn value(&mut self, mut message: Reader<'a>, into: &mut Value<'a>, depth: usize) -> Read<()> {
        if message.next_is(1, BYTES) {
            let text = message.raw_bytes().and_then(|bytes| self.text(bytes)).field("string_value")?;
            *into = Value::String(text);
        }
        while let Some(field) = message.field()? {
            match field.number {
                1 => {
                    let text = message.bytes(field).and_then(|bytes| self.text(bytes)).field("string_value")?;
                    *into = Value::String(text);
                }
                2 => *into = Value::Bool(message.varint(field).field("bool_value")? != 0),
                3 => *into = Value::Int(message.varint(field).field("int_value")? as i64),
                4 => *into = Value::Double(f64::from_bits(message.fixed64(field).field("double_value")?)),
                5 => {
                    let list = message.message(field).field("array_value")?;
                    self.array(list, into, depth).field("array_value")?;
                }
                6 => {
                    let list = message.message(field).field("kvlist_value")?;
                    self.key_values(list, into, depth).field("kvlist_value")?;
                }
                7 => {
                    let bytes = message.bytes(field).field("bytes_value")?;
                    let kept = bytes.len().min(self.limits.max_text_bytes);
                    self.cut += u64::from(kept < bytes.len());
                    *into = Value::Bytes(Cow::Borrowed(&bytes[..kept]));
                }
                8 => {
                    let index = message.int32(field).field("string_value_strindex")?;
                    let text = self.dictionary_text(index).field("string_value_strindex")?;
                    *into = text.map_or(Value::Empty, Value::String);
                }
                _ => message.skip(field)?,
            }
        }
        Ok(())
    }

    fn array(&mut self, mut list: Reader<'a>, into: &mut Value<'a>, depth: usize) -> Read<()> {
        self.check_depth(depth)?;
        let mut values = match std::mem::take(into) {
            Value::Array(values) => values,
            _ => Vec::new(),
        };
        while let Some(field) = list.field()? {
            if field.number != 1 {
                list.skip(field)?;
                continue;
            }
            self.charge(size_of::<Value<'_>>())?;
            let mut value = Value::Empty;
            let message = list.message(field).element("values", values.len())?;
            self.value(message, &mut value, depth + 1).element("values", values.len())?;
            values.push(value);
        }
        *into = Value::Array(values);
        Ok(())
    }

    fn key_values(&mut self, mut list: Reader<'a>, into: &mut Value<'a>, depth: usize) -> Read<()> {
        self.check_depth(depth)?;
        let mut values = match std::mem::take(into) {
            Value::KeyValues(values) => values,
            _ => Vec::new(),
        };
        while let Some(field) = list.field()? {
            if field.number != 1 {
                list.skip(field)?;
                continue;
            }
            let index = values.len();
            let message = list.message(field).element("values", index)?;
            self.key_value(message, depth + 1, &mut values).element("values", index)?;
        }
        *into = Value::KeyValues(values);
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Read<()> {
        let limit = self.limits.max_nesting;
        if depth > limit { Err(Fault::new(Problem::Nesting { limit })) } else { Ok(()) }
    }

    /// A text by its index. Where there is no dictionary, as with traces, the field means nothing.
    fn dictionary_text(&mut self, index: i32) -> Read<Option<Cow<'a, str>>> {
        let dictionary = self.dictionary;
        if dictionary.is_empty() {
            return Ok(None);
        }
        let Some(text) = usize::try_from(index).ok().and_then(|at| dictionary.get(at)) else {
            let len = dictionary.len();
            return Err(Fault::new(Problem::Index { found: i64::from(index), table: "string_table", len }));
        };
        // A few bytes can refer to a long text again and again, and each becomes a copy in the end.
        self.charge(text.len())?;
        Ok(Some(text.clone()))
    }
}
