//! Labels of a sample: the span and thread they name, the moment, and the rest.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::attribute::write_json_object;
use hotspan_model::profile::Thread;
use hotspan_model::{Attribute, Labels, Link, Value};

use super::FORMAT;
use super::outline::{Index, Outline};
use crate::decode_options::filled;
use crate::file_error::{FileError, Result};
use crate::label_roles::{self, LabelRole};
use crate::limits::Limits;
use crate::protobuf::Fields;
use crate::set_builder::SetBuilder;
use crate::span_identity::{Identity, is_id};

/// What the labels of a sample come down to: indexes into the tables of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SampleFacts {
    pub(super) link: u32,
    pub(super) thread: u32,
    pub(super) labels: u32,
    pub(super) attributes: u32,
    /// The sample's own time; 0 if it has none.
    pub(super) time: i64,
}

/// Reads label lists, each distinct one once: neighbouring samples mostly carry the same labels.
#[derive(Debug)]
pub(super) struct LabelReader<'a> {
    known: HashMap<&'a [u8], SampleFacts>,
    default_link: Link,
    /// The facts of a sample without labels.
    plain: SampleFacts,
    limits: Limits,
}

impl<'a> LabelReader<'a> {
    pub(super) fn new(default_link: Link, limits: &Limits, builder: &mut SetBuilder<'a>) -> Self {
        let plain = SampleFacts { link: builder.link(default_link), ..SampleFacts::default() };
        Self { known: HashMap::new(), default_link, plain, limits: limits.clone() }
    }

    /// The facts in `region`: the bytes of a sample from its first label's tag to the end of its last label.
    /// They serve as key, since equal bytes mean equal labels.
    pub(super) fn facts(
        &mut self,
        region: &'a [u8],
        base: usize,
        outline: &Outline<'a>,
        builder: &mut SetBuilder<'a>,
    ) -> Result<SampleFacts> {
        if region.is_empty() {
            return Ok(self.plain);
        }
        if let Some(facts) = self.known.get(region) {
            return Ok(*facts);
        }
        let facts = self.read(region, base, outline, builder)?;
        self.known.insert(region, facts);
        Ok(facts)
    }

    fn read(
        &self,
        region: &'a [u8],
        base: usize,
        outline: &Outline<'a>,
        builder: &mut SetBuilder<'a>,
    ) -> Result<SampleFacts> {
        let Limits { max_labels, max_label_bytes, .. } = self.limits;
        let mut reading = Reading { max_labels, max_label_bytes, ..Reading::default() };
        let mut fields = Fields::new(FORMAT, region, base);
        let mut text_bytes = 0;
        while let Some(field) = fields.next()? {
            if field.number == 3 {
                let label = RawLabel::read(field.message()?, outline)?;
                // A few bytes name texts of any length, any number of times.
                text_bytes += label.key.len() + label.text.map_or(0, str::len) + label.unit.len();
                if text_bytes > self.limits.max_item_bytes {
                    let most = self.limits.max_item_bytes as u64;
                    return Err(FileError::too_large(FORMAT, field.offset, "bytes of labels of a sample", most));
                }
                reading.add(&label);
            }
        }
        let Identity { span, local_root, .. } = reading.identity;
        if let (Some(span), Some(root)) = (span, local_root)
            && span != root
        {
            // The span is the link, and its local root is worth keeping beside it.
            let value = Value::String(Cow::Owned(root.to_string()));
            reading.attributes.push(Attribute::new("local_root_span_id", value));
        }
        let link = filled(reading.identity.link(), self.default_link);
        let mut json = String::new();
        if !reading.attributes.is_empty() {
            write_json_object(&reading.attributes, &mut json);
        }
        Ok(SampleFacts {
            link: builder.link(link),
            thread: builder.thread(reading.thread),
            labels: builder.labels(reading.labels),
            attributes: builder.attributes(json),
            time: reading.time,
        })
    }
}

#[derive(Debug, Default)]
struct RawLabel<'a> {
    key: &'a str,
    text: Option<&'a str>,
    number: i64,
    unit: &'a str,
}

impl<'a> RawLabel<'a> {
    fn read(mut fields: Fields<'a>, outline: &Outline<'a>) -> Result<Self> {
        let mut label = Self::default();
        while let Some(field) = fields.next()? {
            match field.number {
                1 => label.key = outline.string(Index::of(&field)?)?,
                2 => label.text = Some(outline.string(Index::of(&field)?)?),
                3 => label.number = field.signed()?,
                4 => label.unit = outline.string(Index::of(&field)?)?,
                _ => {}
            }
        }
        // Proto3 leaves zeros out: text 0 is the empty string, which no label means.
        label.text = label.text.filter(|text| !text.is_empty());
        Ok(label)
    }
}

#[derive(Debug, Default)]
struct Reading<'a> {
    identity: Identity,
    thread: Thread<'a>,
    labels: Labels,
    attributes: Vec<Attribute<'a>>,
    time: i64,
    max_labels: usize,
    max_label_bytes: usize,
}

impl<'a> Reading<'a> {
    fn add(&mut self, label: &RawLabel<'a>) {
        let RawLabel { key, text, number, .. } = *label;
        let is_id = match text {
            Some(text) => self.identity.take_text(key, text),
            None => self.identity.take_number(key, number),
        };
        if is_id {
            return;
        }
        match (label_roles::role_of(key), text) {
            (LabelRole::ThreadId, None) | (LabelRole::ThreadName, None) => self.thread.id = Some(number),
            (LabelRole::ThreadId, Some(text)) => match text.parse() {
                Ok(id) => self.thread.id = Some(id),
                Err(_) => self.keep_as_attribute(label),
            },
            (LabelRole::ThreadName, Some(name)) => self.thread.name = Cow::Borrowed(name),
            (LabelRole::EndTime, None) if number > 0 => self.time = number,
            (_, Some(text)) if self.may_be_label(key, text) => self.labels.set(key, text),
            _ => self.keep_as_attribute(label),
        }
    }

    /// Labels select series: internal ones, ids that can't be read, and overlong or overmany ones can't.
    fn may_be_label(&self, key: &str, text: &str) -> bool {
        !key.starts_with("__")
            && !is_id(key)
            && text.len() <= self.max_label_bytes
            && self.labels.len() < self.max_labels
    }

    /// What is neither a label nor an id stays beside the sample: numbers would make a series each.
    fn keep_as_attribute(&mut self, label: &RawLabel<'a>) {
        let value = match label.text {
            Some(text) => Value::str(text),
            None if label.unit.is_empty() => Value::Int(label.number),
            None => Value::KeyValues(vec![
                Attribute::new("value", Value::Int(label.number)),
                Attribute::new("unit", Value::str(label.unit)),
            ]),
        };
        self.attributes.push(Attribute::new(label.key, value));
    }
}
