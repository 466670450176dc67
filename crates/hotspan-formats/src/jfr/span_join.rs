//! async-profiler's `Span` events: stretches of time on a thread, which samples inside them belong to.

use hashbrown::HashMap;
use hotspan_model::profile::Thread;
use hotspan_model::{Link, Sample, SpanId, TraceId};

use crate::decode_options::filled;
use crate::set_builder::SetBuilder;

/// What a span is tagged with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Tag {
    /// The tag names a span or trace.
    Link(Link),
    /// The tag is a name.
    Name(String),
}

impl Tag {
    /// Reads a tag: a W3C `traceparent`, an id of 16 or 32 digits, both with a separator, or a name.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (mut trace_id, mut span_id) = (None, None);
        for part in text.split(['-', ':', '/', ',', ' ']) {
            let hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
            match part.len() {
                32 if hex => trace_id = part.parse::<TraceId>().ok(),
                16 if hex => span_id = part.parse::<SpanId>().ok(),
                // Version and flags of a traceparent.
                2 if hex => {}
                _ => return Some(Self::Name(text.to_owned())),
            }
        }
        if trace_id.is_none() && span_id.is_none() {
            return Some(Self::Name(text.to_owned()));
        }
        Some(Self::Link(Link { trace_id: trace_id.unwrap_or_default(), span_id: span_id.unwrap_or_default() }))
    }
}

/// Spans by thread.
#[derive(Debug, Default)]
pub(super) struct SpanJoin {
    spans: HashMap<u32, Vec<(i64, i64, u32)>>,
    tags: Vec<Tag>,
    tag_index: HashMap<Tag, u32>,
}

/// How many spans that started before a sample are looked at for one that still ran.
const MOST_ENCLOSING: usize = 64;

impl SpanJoin {
    pub(super) fn add(&mut self, thread: u32, start: i64, end: i64, tag: Tag) {
        let Self { tags, tag_index, spans } = self;
        let tag = *tag_index.entry(tag).or_insert_with_key(|tag| {
            tags.push(tag.clone());
            (tags.len() - 1) as u32
        });
        spans.entry(thread).or_default().push((start, end, tag));
    }

    /// Gives samples inside spans their span, unless they name their own.
    pub(super) fn apply<'s>(
        &mut self,
        samples: impl Iterator<Item = &'s mut Sample>,
        builder: &mut SetBuilder<'static>,
    ) {
        if self.spans.is_empty() {
            return;
        }
        self.sort();
        // A tag gives a link, or a label on top of those that the sample has.
        let mut named: HashMap<(u32, u32), u32> = HashMap::new();
        for sample in samples {
            let Some(tag) = self.tag_of(sample) else { continue };
            match &self.tags[tag as usize] {
                Tag::Link(link) => {
                    let own = builder.set.links[sample.link as usize];
                    if own.span_id.is_zero() {
                        sample.link = builder.link(filled(*link, own));
                    }
                }
                Tag::Name(name) => {
                    let known = named.get(&(tag, sample.labels)).copied();
                    sample.labels = known.unwrap_or_else(|| {
                        let mut labels = builder.set.label_sets[sample.labels as usize].clone();
                        labels.set_default("span_name", name.as_str());
                        let index = builder.labels(labels);
                        named.insert((tag, sample.labels), index);
                        index
                    });
                }
            }
        }
    }

    fn sort(&mut self) {
        for spans in self.spans.values_mut() {
            spans.sort_unstable();
            // One that reaches back is known from its chunk and from an earlier reading.
            spans.dedup();
        }
    }

    /// The tag of the innermost span that a sample lies in.
    fn tag_of(&self, sample: &Sample) -> Option<u32> {
        let spans = self.spans.get(&sample.thread)?;
        let started = spans.partition_point(|(start, ..)| *start <= sample.time);
        let enclosing = spans[..started].iter().rev().take(MOST_ENCLOSING);
        enclosing.into_iter().find(|(_, end, _)| *end >= sample.time).map(|(.., tag)| *tag)
    }
}

/// Spans that began before the chunk that tells of them. A recording names a span when it ends, so samples of earlier
/// chunks lie in such a span: whoever reads chunk by chunk knows them all only at the end, and hands them to a second reading.
#[derive(Debug, Clone, Default)]
pub struct FarSpans {
    spans: Vec<FarSpan>,
    threads: Vec<Thread<'static>>,
    thread_index: HashMap<Thread<'static>, u32>,
    bytes: usize,
    /// Whether they come from a reading that saw the whole recording.
    complete: bool,
}

#[derive(Debug, Clone)]
struct FarSpan {
    /// Index of its thread.
    thread: u32,
    start: i64,
    end: i64,
    tag: Tag,
}

impl FarSpans {
    /// Notes a span, and says how many bytes all take.
    pub(super) fn add(&mut self, thread: &Thread<'static>, (start, end): (i64, i64), tag: &Tag) -> usize {
        if self.complete {
            return self.bytes;
        }
        let thread = self.thread_index.get(thread).copied().unwrap_or_else(|| {
            self.bytes += 2 * (size_of::<Thread<'_>>() + thread.name.len());
            self.threads.push(thread.clone());
            self.thread_index.insert(thread.clone(), self.threads.len() as u32 - 1);
            self.threads.len() as u32 - 1
        });
        let text = if let Tag::Name(name) = tag { name.len() } else { 0 };
        self.bytes += size_of::<FarSpan>() + text;
        self.spans.push(FarSpan { thread, start, end, tag: tag.clone() });
        self.bytes
    }

    /// All that a recording has, now that it has been read.
    pub(super) fn completed(self) -> Self {
        Self { complete: true, ..self }
    }

    /// Adds those that a chunk of this time has samples of.
    pub(super) fn join(&self, (from, until): (i64, i64), builder: &SetBuilder<'static>, spans: &mut SpanJoin) {
        let known: Vec<Option<u32>> = self.threads.iter().map(|thread| builder.known_thread(thread)).collect();
        for span in self.spans.iter().filter(|span| span.start <= until && span.end >= from) {
            if let Some(thread) = known[span.thread as usize] {
                spans.add(thread, span.start, span.end, span.tag.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: tags as services write them. Guarantee: ids become links, everything else is a name.
    #[test]
    fn tags() {
        let Some(Tag::Link(link)) = Tag::read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") else {
            panic!("a traceparent is a link");
        };
        assert_eq!(link.span_id.to_string(), "00f067aa0ba902b7");
        assert!(matches!(Tag::read("00f067aa0ba902b7"), Some(Tag::Link(_))));
        assert_eq!(Tag::read("GET /cart"), Some(Tag::Name("GET /cart".into())));
        assert_eq!(Tag::read("ab"), Some(Tag::Name("ab".into())));
        assert_eq!(Tag::read(""), None);
    }

    /// Scenario: nested spans on one thread. Guarantee: a sample belongs to the innermost, none to another thread.
    #[test]
    fn innermost_span_wins() {
        let mut join = SpanJoin::default();
        join.add(1, 0, 100, Tag::Name("outer".into()));
        join.add(1, 10, 20, Tag::Name("inner".into()));
        join.sort();
        let sample =
            |thread, time| Sample { path: 0, value: 1, time, timed: true, link: 0, thread, labels: 0, attributes: 0 };
        assert_eq!(join.tag_of(&sample(1, 15)), Some(1));
        assert_eq!(join.tag_of(&sample(1, 50)), Some(0));
        assert_eq!(join.tag_of(&sample(1, 101)), None);
        assert_eq!(join.tag_of(&sample(2, 15)), None);
    }
}
