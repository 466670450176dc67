//! What the attributes of a sample say: labels, thread, span, service, and the rest.
//!
//! Samples share few distinct lists of attributes, so each list is understood once, and a sample costs one look-up.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::profile::Thread;
use hotspan_model::{Labels, Link, ProfileSet, SpanId, Value};

use super::super::fault::{Locate as _, Read};
use super::super::wire::Reader;
use super::budget::Budget;
use super::context::write_table_attribute;
use super::dictionary::{Dictionary, TableAttribute};
use crate::Limits;
use crate::span_identity::{Identity, is_id};

/// Texts that differ from event to event, and numbers that came as texts: as labels they would make a series of
/// every sample.
const PER_EVENT_KEYS: &[&str] = &[
    "code.stacktrace",
    "db.query.text",
    "db.statement",
    "exception.message",
    "exception.stacktrace",
    "http.target",
    "http.url",
    "pid",
    "process.pid",
    "request.id",
    "request_id",
    "requestId",
    "session.id",
    "thread.id",
    "thread_id",
    "tid",
    "url.full",
    "url.path",
    "url.query",
];

/// What a list of attributes says; indices into the tables of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Facts {
    pub(super) labels: u32,
    pub(super) thread: u32,
    pub(super) attributes: u32,
    pub(super) link: Link,
    /// A service of its own: index into [`FactTable::services`] plus one, or zero.
    pub(super) service: u32,
}

/// Lists of attributes that were understood, and where their facts are kept.
#[derive(Debug, Default)]
pub(super) struct FactTable<'a> {
    known: HashMap<Box<[u8]>, Facts>,
    label_sets: HashMap<Labels, u32>,
    threads: HashMap<Thread<'a>, u32>,
    attribute_sets: HashMap<String, u32>,
    links: HashMap<Link, u32>,
    service_numbers: HashMap<String, u32>,
    pub(super) services: Vec<String>,
}

impl<'a> FactTable<'a> {
    /// The facts of a list of attributes, given as the packed varints of its indices.
    #[inline]
    pub(super) fn get(
        &mut self,
        packed: &[u8],
        dictionary: &Dictionary<'a>,
        set: &mut ProfileSet<'a>,
        limits: &Limits,
        budget: &mut Budget,
    ) -> Read<Facts> {
        if packed.is_empty() {
            return Ok(Facts::default());
        }
        if let Some(facts) = self.known.get(packed) {
            return Ok(*facts);
        }
        let facts = self.understand(packed, dictionary, set, limits, budget).field("attribute_indices")?;
        budget.charge(packed.len() + size_of::<Facts>() + 32)?;
        self.known.insert(packed.into(), facts);
        Ok(facts)
    }

    fn understand(
        &mut self,
        packed: &[u8],
        dictionary: &Dictionary<'a>,
        set: &mut ProfileSet<'a>,
        limits: &Limits,
        budget: &mut Budget,
    ) -> Read<Facts> {
        let mut labels = Labels::default();
        let mut thread = Thread::default();
        let mut identity = Identity::default();
        let mut service = None;
        let mut others = Others::default();
        let mut indices = Reader::new(packed);
        while !indices.rest().is_empty() {
            let index = indices.raw_varint()? as i32;
            let Some(attribute) = dictionary.attribute(index)? else { continue };
            if take_thread(attribute, &mut thread) || take_identity(attribute, &mut identity) {
                continue;
            }
            match attribute.value.as_str() {
                Some(text) if attribute.key == "service.name" && !text.is_empty() => {
                    let short = limits.short_label(text);
                    service = Some(short);
                    if short.len() < text.len() {
                        others.push(attribute, budget)?;
                    }
                }
                _ if is_label(attribute, limits) && labels.len() < limits.max_labels => {
                    let value = attribute.value.to_label();
                    budget.charge(attribute.key.len() + value.len() + 48)?;
                    labels.set(attribute.key.as_ref(), value);
                }
                _ => others.push(attribute, budget)?,
            }
        }
        if let (Some(root), Some(span)) = (identity.local_root, identity.span)
            && root != span
        {
            // The link has no place for it, but it tells how far the trace came into this process.
            others.push_local_root(root);
        }
        Ok(Facts {
            labels: self.intern_labels(labels, set),
            thread: self.intern_thread(thread, set),
            attributes: self.intern_attributes(others.finish(), set, budget)?,
            link: identity.link(),
            service: service.map_or(Ok(0), |name| self.intern_service(name, budget))?,
        })
    }

    fn intern_labels(&mut self, labels: Labels, set: &mut ProfileSet<'a>) -> u32 {
        if labels.is_empty() {
            return 0;
        }
        *self.label_sets.entry(labels).or_insert_with_key(|labels| {
            set.label_sets.push(labels.clone());
            (set.label_sets.len() - 1) as u32
        })
    }

    fn intern_thread(&mut self, thread: Thread<'a>, set: &mut ProfileSet<'a>) -> u32 {
        if thread == Thread::default() {
            return 0;
        }
        *self.threads.entry(thread).or_insert_with_key(|thread| {
            set.threads.push(thread.clone());
            (set.threads.len() - 1) as u32
        })
    }

    fn intern_attributes(&mut self, json: String, set: &mut ProfileSet<'a>, budget: &mut Budget) -> Read<u32> {
        if json.is_empty() {
            return Ok(0);
        }
        budget.charge(json.len() + 2 * size_of::<String>())?;
        Ok(*self.attribute_sets.entry(json).or_insert_with_key(|json| {
            set.attribute_sets.push(json.clone());
            (set.attribute_sets.len() - 1) as u32
        }))
    }

    fn intern_service(&mut self, name: &str, budget: &mut Budget) -> Read<u32> {
        if let Some(known) = self.service_numbers.get(name) {
            return Ok(*known);
        }
        budget.charge(2 * (name.len() + 32))?;
        self.services.push(name.to_owned());
        let number = self.services.len() as u32;
        self.service_numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The index of a link that is not from the link table.
    pub(super) fn intern_link(&mut self, link: Link, set: &mut ProfileSet<'a>, budget: &mut Budget) -> Read<u32> {
        if link == Link::default() {
            return Ok(0);
        }
        if let Some(known) = self.links.get(&link) {
            return Ok(*known);
        }
        budget.charge(3 * size_of::<Link>())?;
        let number = set.links.len() as u32;
        set.links.push(link);
        self.links.insert(link, number);
        Ok(number)
    }
}

fn take_thread<'a>(attribute: &TableAttribute<'a>, thread: &mut Thread<'a>) -> bool {
    match (attribute.key.as_ref(), &attribute.value) {
        ("thread.name" | "thread_name", Value::String(name)) => {
            thread.name = name.clone();
            true
        }
        ("thread.id" | "thread_id", Value::Int(id)) => {
            thread.id = Some(*id);
            true
        }
        ("thread.id" | "thread_id", Value::String(text)) => match text.trim().parse() {
            Ok(id) => {
                thread.id = Some(id);
                true
            }
            Err(_) => false,
        },
        _ => false,
    }
}

/// Takes an attribute that names a span or trace.
pub(super) fn take_identity(attribute: &TableAttribute<'_>, identity: &mut Identity) -> bool {
    take_identity_value(&attribute.key, &attribute.value, identity)
}

/// Takes a key and value that name a span or trace.
pub(super) fn take_identity_value(key: &str, value: &Value<'_>, identity: &mut Identity) -> bool {
    match value {
        Value::String(text) => identity.take_text(key, text),
        Value::Int(number) => identity.take_number(key, *number),
        Value::Bytes(bytes) => identity.take_bytes(key, bytes),
        _ => false,
    }
}

/// Whether an attribute of a sample is worth being matched on: words are, numbers of events and ids are not.
fn is_label(attribute: &TableAttribute<'_>, limits: &Limits) -> bool {
    let key = attribute.key.as_ref();
    if key.is_empty() || PER_EVENT_KEYS.contains(&key) || !attribute.unit.is_empty() || is_id(key) {
        return false;
    }
    match &attribute.value {
        Value::String(text) => !text.is_empty() && limits.may_be_label(key, text),
        Value::Bool(_) => true,
        _ => false,
    }
}

/// Attributes that are kept as JSON.
#[derive(Default)]
struct Others {
    json: String,
    count: usize,
}

impl Others {
    fn push(&mut self, attribute: &TableAttribute<'_>, budget: &mut Budget) -> Read<()> {
        self.open();
        let before = self.json.len();
        write_table_attribute(attribute, self.count, &mut self.json);
        budget.charge(self.json.len() - before)?;
        self.count += 1;
        Ok(())
    }

    fn push_local_root(&mut self, root: SpanId) {
        self.open();
        let value = Value::String(Cow::Owned(root.to_string()));
        let attribute = TableAttribute { key: Cow::Borrowed("local_root_span_id"), value, unit: Cow::Borrowed("") };
        write_table_attribute(&attribute, self.count, &mut self.json);
        self.count += 1;
    }

    fn open(&mut self) {
        if self.count == 0 {
            self.json.push('{');
        }
    }

    fn finish(mut self) -> String {
        if self.count > 0 {
            self.json.push('}');
        }
        self.json
    }
}
