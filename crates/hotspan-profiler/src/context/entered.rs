//! The spans a thread has entered by hand or through `tracing`, innermost last.
//!
//! Guards can be dropped in any order. The list owns every record it may have to publish again, so that the
//! thread's pointer never outlives what it points to. Every span pays for what happens here, so the common case
//! (the innermost is left first) touches one reference count and nothing else that is shared.

use super::record::{SpanRecord, current_record, is_current, nothing_is_published, publish_record};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What was current before a span was entered.
enum Outer {
    Nothing,
    /// The entry below in the list, which keeps its record alive.
    Below,
    /// A record from another source.
    Other(Arc<SpanRecord>),
}

struct Entry {
    record: Arc<SpanRecord>,
    outer: Outer,
}

struct Entered {
    entries: Vec<Entry>,
    /// A record from another source that an exit has published again: owned until the next change.
    restored: Option<Arc<SpanRecord>>,
}

impl Entered {
    #[inline]
    fn innermost(&self) -> *const SpanRecord {
        self.entries.last().map_or(std::ptr::null(), |entry| Arc::as_ptr(&entry.record))
    }
}

impl Drop for Entered {
    /// The thread ends: whatever its guards forgot to leave must not stay published.
    fn drop(&mut self) {
        INNERMOST.set(std::ptr::null());
        publish_record(None);
    }
}

thread_local! {
    /// The record of the innermost entry, or null: what OpenTelemetry's exits need to know, without opening the list.
    static INNERMOST: Cell<*const SpanRecord> = const { Cell::new(std::ptr::null()) };
    static ENTERED: RefCell<Entered> = const { RefCell::new(Entered { entries: Vec::new(), restored: None }) };
}

/// Makes `record` current on this thread.
#[inline]
pub(super) fn enter(record: &Arc<SpanRecord>) {
    record.note_enter();
    // A thread that is shutting down has no list any more; its last destructors run without a span.
    let _without_list = ENTERED.try_with(|entered| {
        let entries = &mut entered.borrow_mut().entries;
        let outer = match entries.last() {
            _ if nothing_is_published() => Outer::Nothing,
            Some(below) if is_current(&below.record) => Outer::Below,
            _ => current_record().map_or(Outer::Nothing, Outer::Other),
        };
        entries.push(Entry { record: Arc::clone(record), outer });
        INNERMOST.set(Arc::as_ptr(record));
        publish_record(Some(record));
    });
}

/// Undoes the latest `enter` of `record`, wherever it stands in the list.
#[inline]
pub(super) fn exit(record: *const SpanRecord) {
    // What is removed is dropped after the borrow ends: dropping a record may run other code.
    let _removed = ENTERED.try_with(|entered| {
        let mut entered = entered.borrow_mut();
        let is_innermost = entered.entries.last().is_some_and(|entry| std::ptr::eq(Arc::as_ptr(&entry.record), record));
        if !is_innermost {
            return leave_out_of_order(&mut entered, record);
        }
        let removed = entered.entries.pop()?;
        INNERMOST.set(entered.innermost());
        removed.record.note_exit();
        let mut released = None;
        if is_current(&removed.record) {
            match &removed.outer {
                Outer::Nothing => publish_record(None),
                Outer::Below => publish_record(entered.entries.last().map(|below| &*below.record)),
                Outer::Other(outer) => {
                    publish_record(Some(outer));
                    released = entered.restored.replace(Arc::clone(outer));
                }
            }
        }
        Some((removed, released))
    });
}

/// The entry leaves the middle of the list: the one above it inherits what lay below.
#[cold]
fn leave_out_of_order(entered: &mut Entered, record: *const SpanRecord) -> Option<(Entry, Option<Arc<SpanRecord>>)> {
    let index = entered.entries.iter().rposition(|entry| std::ptr::eq(Arc::as_ptr(&entry.record), record))?;
    let mut removed = entered.entries.remove(index);
    INNERMOST.set(entered.innermost());
    removed.record.note_exit();
    if let Some(above) = entered.entries.get_mut(index)
        && matches!(above.outer, Outer::Below)
    {
        above.outer = std::mem::replace(&mut removed.outer, Outer::Nothing);
    }
    if is_current(&removed.record) {
        publish_record(entered.entries.last().map(|entry| &*entry.record));
    }
    Some((removed, None))
}

/// What to publish when a context without a span of its own becomes current: the innermost of the list.
#[cfg(feature = "opentelemetry")]
#[inline]
pub(super) fn publish_innermost() {
    // SAFETY: the pointer is that of a record which the list owns, or null; both change together, on this thread.
    publish_record(unsafe { INNERMOST.get().as_ref() });
}

#[cfg(test)]
mod tests {
    use super::super::record::{SpanKey, current_span_key};
    use super::*;

    fn record(id: u8) -> Arc<SpanRecord> {
        Arc::new(SpanRecord::new(SpanKey { trace_id: [1; 16], span_id: [id; 8], local_root: [1; 8], flags: 0 }))
    }

    fn current_id() -> u8 {
        current_span_key().map_or(0, |key| key.span_id[0])
    }

    /// Scenario: three spans are entered and left in order.
    /// Guarantee: each exit restores the one around it.
    #[test]
    fn nesting_restores_the_outer_span() {
        let (a, b, c) = (record(1), record(2), record(3));
        enter(&a);
        enter(&b);
        enter(&c);
        assert_eq!(current_id(), 3);
        exit(Arc::as_ptr(&c));
        assert_eq!(current_id(), 2);
        exit(Arc::as_ptr(&b));
        assert_eq!(current_id(), 1);
        exit(Arc::as_ptr(&a));
        assert_eq!(current_id(), 0);
    }

    /// Scenario: the outer spans are left and dropped before the inner one.
    /// Guarantee: the inner one stays current, and afterwards nothing that is gone is published.
    #[test]
    fn leaving_out_of_order_never_publishes_the_dead() {
        let (a, b, c) = (record(1), record(2), record(3));
        enter(&a);
        enter(&b);
        enter(&c);
        exit(Arc::as_ptr(&b));
        drop(b);
        assert_eq!(current_id(), 3);
        exit(Arc::as_ptr(&a));
        drop(a);
        exit(Arc::as_ptr(&c));
        assert_eq!(current_id(), 0);
    }

    /// Scenario: the same span is entered twice, as a recursive function does.
    /// Guarantee: it stays current until the outermost exit.
    #[test]
    fn reentry_counts() {
        let a = record(1);
        enter(&a);
        enter(&a);
        exit(Arc::as_ptr(&a));
        assert_eq!(current_id(), 1);
        exit(Arc::as_ptr(&a));
        assert_eq!(current_id(), 0);
    }
}
