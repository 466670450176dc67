//! The `labels` part that the Pyroscope agent sends beside a recording: labels of each context id.

use hashbrown::HashMap;
use hotspan_model::{Labels, Link};

use crate::file_error::{FileError, Result};
use crate::limits::Limits;
use crate::protobuf::{Field, Fields};
use crate::span_identity::Identity;

const FORMAT: &str = "jfr labels";
/// About what a context or a string takes, beside its labels or its text.
const ENTRY_BYTES: usize = 128;
/// About what a label takes, beside its texts.
const LABEL_BYTES: usize = 64;

/// Labels by context, and the strings that spans are named by.
#[derive(Debug, Clone, Default)]
pub(super) struct LabelsSnapshot {
    contexts: HashMap<u64, (Labels, Link)>,
    strings: HashMap<u64, String>,
}

impl LabelsSnapshot {
    /// Reads the protobuf message: contexts (1) and strings (2) are maps, numbers refer to strings.
    pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let mut snapshot = Self::default();
        let mut contexts: Vec<(u64, Vec<(u64, u64)>)> = Vec::new();
        // Two bytes make a context, and a few more give it a long string for each of its labels.
        let mut taken = 0usize;
        let mut take = |bytes: usize, offset: usize| {
            taken = taken.saturating_add(bytes);
            let most = limits.max_decoded_bytes;
            if taken <= most {
                Ok(())
            } else {
                Err(FileError::too_large(FORMAT, offset, "bytes of labels", most as u64))
            }
        };
        let mut fields = Fields::new(FORMAT, bytes, 0);
        while let Some(field) = fields.next()? {
            take(ENTRY_BYTES, field.offset)?;
            match field.number {
                1 => {
                    let (mut key, mut labels) = (0, Vec::new());
                    let mut entry = field.message()?;
                    while let Some(part) = entry.next()? {
                        match part.number {
                            1 => key = part.unsigned()?,
                            2 => read_context(&part, limits, &mut labels)?,
                            _ => {}
                        }
                    }
                    take(labels.len() * size_of::<(u64, u64)>(), field.offset)?;
                    contexts.push((key, labels));
                }
                2 => {
                    let (mut key, mut text) = (0, "");
                    let mut entry = field.message()?;
                    while let Some(part) = entry.next()? {
                        match part.number {
                            1 => key = part.unsigned()?,
                            2 => text = part.text()?,
                            _ => {}
                        }
                    }
                    snapshot.strings.insert(key, text.to_owned());
                }
                _ => {}
            }
        }
        for (context, pairs) in contexts {
            let mut labels = Vec::new();
            let mut identity = Identity::default();
            for (name, value) in pairs {
                if let (Some(name), Some(value)) = (snapshot.strings.get(&name), snapshot.strings.get(&value))
                    && !identity.take_text(name, value)
                {
                    take(LABEL_BYTES + name.len() + value.len(), bytes.len())?;
                    labels.push((name.as_str(), value.as_str()));
                }
            }
            let labels = Labels::from_pairs(labels);
            snapshot.contexts.insert(context, (labels, identity.link()));
        }
        Ok(snapshot)
    }

    /// Labels and span of a context.
    pub(super) fn context(&self, id: u64) -> Option<&(Labels, Link)> {
        self.contexts.get(&id)
    }

    /// A string, such as the name of a span.
    pub(super) fn string(&self, id: u64) -> Option<&str> {
        self.strings.get(&id).map(String::as_str)
    }
}

fn read_context(field: &Field<'_>, limits: &Limits, labels: &mut Vec<(u64, u64)>) -> Result<()> {
    let mut context = field.message()?;
    while let Some(entry) = context.next()? {
        if entry.number == 1 {
            let (mut name, mut value) = (0, 0);
            let mut parts = entry.message()?;
            while let Some(part) = parts.next()? {
                match part.number {
                    1 => name = part.unsigned()?,
                    2 => value = part.unsigned()?,
                    _ => {}
                }
            }
            // Those that a series can't have are kept beside its samples, but nobody has very many.
            if labels.len() == limits.max_item_bytes / LABEL_BYTES {
                return Err(FileError::too_large(FORMAT, entry.offset, "labels of a context", labels.len() as u64));
            }
            labels.push((name, value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{put_bytes, put_number};

    /// Scenario: a context with more labels than a series may have, one of them an id that can't be read.
    /// Guarantee: all are read, to be kept beside the samples; the recording is not refused.
    #[test]
    fn contexts_may_have_many_labels() {
        let message = |fields: &[(u64, u64)]| {
            let mut bytes = Vec::new();
            fields.iter().for_each(|(field, number)| put_number(&mut bytes, *field, *number));
            bytes
        };
        let (mut context, mut part) = (Vec::new(), Vec::new());
        for number in 1..=5 {
            put_bytes(&mut context, 1, &message(&[(1, number), (2, number)]));
            let mut string = message(&[(1, number)]);
            let text = if number == 5 { "span_id".to_owned() } else { format!("l{number}") };
            put_bytes(&mut string, 2, text.as_bytes());
            put_bytes(&mut part, 2, &string);
        }
        let mut entry = message(&[(1, 7)]);
        put_bytes(&mut entry, 2, &context);
        put_bytes(&mut part, 1, &entry);
        let limits = Limits { max_labels: 2, ..Limits::default() };
        let snapshot = LabelsSnapshot::read(&part, &limits).unwrap();
        let (labels, link) = snapshot.context(7).unwrap();
        assert_eq!((labels.len(), labels.get("span_id"), *link), (5, Some("span_id"), Link::default()));
    }
}
