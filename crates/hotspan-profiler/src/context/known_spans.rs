//! The `tracing` spans that a thread has seen lately, with their records.
//!
//! Finding a span's data in the registry takes a locked reference count, a lock and a hash look-up, for each enter and
//! each exit. A span that is polled often, and one that is entered where it was made, is found here by a comparison.
#![cfg_attr(not(feature = "tracing"), allow(dead_code))]

use super::record::SpanRecord;
use std::sync::{Arc, Weak};

/// A power of two: the place of a span is the low bits of its id, which registries count up.
const PLACES: usize = 32;

/// A span of one registry. Two registries may give out the same ids at once, so the layer is part of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TracingSpan {
    pub(super) layer: u64,
    pub(super) id: u64,
}

impl TracingSpan {
    /// No `tracing` span. Ids are never zero.
    pub(super) const NONE: TracingSpan = TracingSpan { layer: 0, id: 0 };
}

#[derive(Debug)]
struct Place {
    span: TracingSpan,
    /// Weak: a record ends with its span, not when its place is taken by another.
    record: Weak<SpanRecord>,
}

/// A small table without search: each span has one place, and the latest one there wins.
#[derive(Debug)]
pub(super) struct KnownSpans {
    places: [Place; PLACES],
}

impl KnownSpans {
    pub(super) const fn new() -> KnownSpans {
        KnownSpans { places: [const { Place { span: TracingSpan::NONE, record: Weak::new() } }; PLACES] }
    }

    /// The record of a span that is known and still open: registries use ids again.
    #[inline(always)]
    pub(super) fn get(&self, span: TracingSpan) -> Option<Arc<SpanRecord>> {
        let place = &self.places[span.id as usize % PLACES];
        if place.span != span {
            return None;
        }
        place.record.upgrade().filter(|record| record.is_open())
    }

    /// Remembers a span. Returns what had its place, for the caller to drop.
    pub(super) fn put(&mut self, span: TracingSpan, record: Weak<SpanRecord>) -> Weak<SpanRecord> {
        let place = &mut self.places[span.id as usize % PLACES];
        place.span = span;
        std::mem::replace(&mut place.record, record)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::SpanKey;
    use super::*;

    /// Scenario: a known span closes and its id is given out again; another layer uses the same id; a record is gone.
    /// Guarantee: none of them gets the old record.
    #[test]
    fn ids_that_come_back_are_not_mistaken() {
        let span = TracingSpan { layer: 1, id: 5 };
        let record = Arc::new(SpanRecord::new(SpanKey::default()));
        let mut known = KnownSpans::new();
        known.put(span, Arc::downgrade(&record));
        assert!(known.get(span).is_some_and(|found| Arc::ptr_eq(&found, &record)));
        assert!(known.get(TracingSpan { layer: 2, ..span }).is_none());
        assert!(known.get(TracingSpan { id: 5 + PLACES as u64, ..span }).is_none());
        // Somebody still holds the record, but the span is over.
        record.close();
        assert!(known.get(span).is_none());
        let next = Arc::new(SpanRecord::new(SpanKey::default()));
        known.put(span, Arc::downgrade(&next));
        drop(next);
        assert!(known.get(span).is_none());
    }
}
