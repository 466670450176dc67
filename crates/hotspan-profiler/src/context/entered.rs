//! The spans a thread has entered by hand or through `tracing`, innermost last.
//!
//! Guards can be dropped in any order. The list owns every record it may have to publish again, so that the
//! thread's pointer never outlives what it points to.

use super::record::{SpanRecord, current_record, is_current, publish_record};
use std::cell::RefCell;
use std::sync::Arc;

struct Entry {
    record: Arc<SpanRecord>,
    /// What was current before, from whatever source.
    outer: Option<Arc<SpanRecord>>,
}

#[derive(Default)]
struct Entered {
    entries: Vec<Entry>,
    /// A record from another source that an exit has published again: owned until the next change.
    restored: Option<Arc<SpanRecord>>,
}

impl Drop for Entered {
    /// The thread ends: whatever its guards forgot to leave must not stay published.
    fn drop(&mut self) {
        publish_record(None);
    }
}

thread_local! {
    static ENTERED: RefCell<Entered> = const { RefCell::new(Entered { entries: Vec::new(), restored: None }) };
}

/// Makes `record` current on this thread.
pub(super) fn enter(record: &Arc<SpanRecord>) {
    let outer = current_record();
    record.note_enter();
    let entry = Entry { record: Arc::clone(record), outer };
    // A thread that is shutting down has no list any more; its last destructors run without a span.
    let kept = ENTERED.try_with(|entered| entered.borrow_mut().entries.push(entry)).is_ok();
    if kept {
        publish_record(Some(record));
    }
}

/// Undoes the latest `enter` of `record`, wherever it stands in the list.
pub(super) fn exit(record: &SpanRecord) {
    record.note_exit();
    // The removed entry is dropped after the borrow ends: dropping a record may run other code.
    let _removed = ENTERED.try_with(|entered| {
        let Entered { entries, restored } = &mut *entered.borrow_mut();
        let index = entries.iter().rposition(|entry| std::ptr::eq(Arc::as_ptr(&entry.record), record))?;
        let removed = entries.remove(index);
        let mut released = None;
        if is_current(record) {
            publish_record(removed.outer.as_deref());
            let listed = |outer: &Arc<SpanRecord>| entries.iter().any(|entry| Arc::ptr_eq(&entry.record, outer));
            released = std::mem::replace(restored, removed.outer.clone().filter(|outer| !listed(outer)));
        } else if let Some(inner) = entries.get_mut(index)
            && inner.outer.as_ref().is_some_and(|outer| std::ptr::eq(Arc::as_ptr(outer), record))
        {
            inner.outer.clone_from(&removed.outer);
        }
        Some((removed, released))
    });
}

/// What to publish when a context without a span of its own becomes current: the innermost of the list.
#[cfg(feature = "opentelemetry")]
pub(super) fn publish_innermost() {
    let published =
        ENTERED.try_with(|entered| publish_record(entered.borrow().entries.last().map(|entry| &*entry.record)));
    if published.is_err() {
        publish_record(None);
    }
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
        exit(&c);
        assert_eq!(current_id(), 2);
        exit(&b);
        assert_eq!(current_id(), 1);
        exit(&a);
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
        exit(&b);
        drop(b);
        assert_eq!(current_id(), 3);
        exit(&a);
        drop(a);
        exit(&c);
        assert_eq!(current_id(), 0);
    }

    /// Scenario: the same span is entered twice, as a recursive function does.
    /// Guarantee: it stays current until the outermost exit.
    #[test]
    fn reentry_counts() {
        let a = record(1);
        enter(&a);
        enter(&a);
        exit(&a);
        assert_eq!(current_id(), 1);
        exit(&a);
        assert_eq!(current_id(), 0);
    }
}
