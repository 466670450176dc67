//! The `tracing` spans that a thread has seen lately, with their records.
//!
//! Finding a span's data in the registry takes a locked reference count, a lock and a hash look-up, for each enter and
//! each exit. A span that is polled often, and one that is entered where it was made, is found here by a comparison.
#![cfg_attr(not(feature = "tracing"), allow(dead_code))]

use super::record::SpanRecord;
use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;

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
    layer: Cell<u64>,
    id: Cell<u64>,
    /// Owns one count of it; null only while the place is unused. The record may outlive its span here, until another
    /// span takes the place: whoever finds it asks whether it is still open.
    record: Cell<*const SpanRecord>,
}

/// A small table without search: each span has one place, and the latest one there wins.
///
/// It has no destructor, so that reaching it takes no check whether it still exists: [`KnownSpans::clear`] is for whoever
/// notices that the thread ends.
#[derive(Debug)]
pub(super) struct KnownSpans {
    places: [Place; PLACES],
}

impl KnownSpans {
    pub(super) const fn new() -> KnownSpans {
        KnownSpans {
            places: [const { Place { layer: Cell::new(0), id: Cell::new(0), record: Cell::new(null()) } }; PLACES],
        }
    }

    #[inline(always)]
    fn place(&self, id: u64) -> &Place {
        &self.places[id as usize % PLACES]
    }

    /// The record of a span that is known. It lives until the next `put`, `take` or `clear`.
    #[inline(always)]
    pub(super) fn get(&self, span: TracingSpan) -> Option<*const SpanRecord> {
        let place = self.place(span.id);
        (place.id.get() == span.id && place.layer.get() == span.layer).then(|| place.record.get())
    }

    /// Remembers a span. Returns what had its place, for the caller to care for.
    pub(super) fn put(&self, span: TracingSpan, record: Arc<SpanRecord>) -> Option<Arc<SpanRecord>> {
        let place = self.place(span.id);
        place.layer.set(span.layer);
        place.id.set(span.id);
        owned(place.record.replace(Arc::into_raw(record)))
    }

    /// Forgets a span, if this is its record.
    pub(super) fn take(&self, span: TracingSpan, record: &Arc<SpanRecord>) -> Option<Arc<SpanRecord>> {
        let place = self.place(span.id);
        if !std::ptr::eq(place.record.get(), Arc::as_ptr(record)) {
            return None;
        }
        place.id.set(0);
        owned(place.record.replace(null()))
    }

    /// Forgets all spans.
    pub(super) fn clear(&self) {
        for place in &self.places {
            place.id.set(0);
            drop(owned(place.record.replace(null())));
        }
    }
}

/// The count that a place had.
fn owned(record: *const SpanRecord) -> Option<Arc<SpanRecord>> {
    // SAFETY: places hold what `put` made of an `Arc`, and each is taken out only once.
    (!record.is_null()).then(|| unsafe { Arc::from_raw(record) })
}

#[cfg(test)]
mod tests {
    use super::super::record::SpanKey;
    use super::*;

    /// Scenario: another layer uses the same id, another span has the same place, a span is forgotten, the table is cleared.
    /// Guarantee: a span gets its own record only, and every count is given back.
    #[test]
    fn spans_get_their_own_records() {
        let span = TracingSpan { layer: 1, id: 5 };
        let record = Arc::new(SpanRecord::new(SpanKey::default()));
        let known = KnownSpans::new();
        assert!(known.put(span, Arc::clone(&record)).is_none());
        assert!(known.get(span).is_some_and(|found| std::ptr::eq(found, Arc::as_ptr(&record))));
        assert!(known.get(TracingSpan { layer: 2, ..span }).is_none());
        assert!(known.get(TracingSpan { id: 5 + PLACES as u64, ..span }).is_none());
        assert!(known.take(span, &Arc::new(SpanRecord::new(SpanKey::default()))).is_none());
        assert!(known.take(span, &record).is_some_and(|taken| Arc::ptr_eq(&taken, &record)));
        assert!(known.get(span).is_none());

        let next = TracingSpan { id: 5 + PLACES as u64, ..span };
        known.put(span, Arc::clone(&record));
        assert!(known.put(next, Arc::clone(&record)).is_some_and(|taken| Arc::ptr_eq(&taken, &record)));
        assert!(known.get(span).is_none());
        assert_eq!(Arc::strong_count(&record), 2);
        known.clear();
        assert_eq!(Arc::strong_count(&record), 1);
        assert!(known.get(next).is_none());
    }
}
