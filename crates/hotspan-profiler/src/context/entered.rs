//! Entering and leaving spans, by hand or through `tracing`: the short way where nothing special is to be done, the long
//! way through what the thread owns otherwise.

use super::known_spans::TracingSpan;
use super::nest::{Entry, NEST, OWNS, TIMED, with_owned};
use super::record::{OtepHead, SpanRecord};
#[cfg(feature = "opentelemetry")]
use super::thread_slot;
use std::ptr::eq;
use std::sync::Arc;

/// Makes `record` current on this thread.
#[inline]
pub(super) fn enter(record: &Arc<SpanRecord>) {
    let head = SpanRecord::into_head(Arc::clone(record));
    if record.is_timed() || !NEST.with(|nest| nest.push(head, TracingSpan::NONE, OWNS)) {
        enter_slowly(record, head);
    }
}

#[cold]
#[inline(never)]
fn enter_slowly(record: &SpanRecord, head: *const OtepHead) {
    record.note_enter();
    let extras = OWNS | if record.is_timed() { TIMED } else { 0 };
    if with_owned(|owned, nest| owned.push(nest, head, TracingSpan::NONE, extras)).is_none() {
        // SAFETY: the count came from `into_head`, and nobody else has taken it.
        drop(unsafe { SpanRecord::from_owned_head(head) });
    }
}

/// Undoes the latest `enter` of `record`, wherever it stands in the list.
#[inline]
pub(super) fn exit(record: *const SpanRecord) {
    let head = SpanRecord::head_of(record);
    if NEST.with(|nest| nest.pop(OWNS, |entry| is_by_hand(entry, head))) {
        // SAFETY: the count came from `into_head` and is given up with the entry.
        drop(unsafe { SpanRecord::from_owned_head(head) });
    } else {
        exit_slowly(head);
    }
}

#[cold]
#[inline(never)]
fn exit_slowly(head: *const OtepHead) {
    drop(with_owned(|owned, nest| owned.remove(nest, |entry| is_by_hand(entry, head))).flatten());
}

/// Whether this is an entry of `enter`, of this record: `tracing` may have entered the same one.
#[inline(always)]
fn is_by_hand(entry: &Entry, head: *const OtepHead) -> bool {
    eq(entry.head, head) && entry.span.id == TracingSpan::NONE.id
}

/// Enters a `tracing` span that this thread knows. False if it does not, or if that takes more than to publish it.
#[cfg(feature = "tracing")]
#[inline(always)]
pub(super) fn enter_known(span: TracingSpan) -> bool {
    NEST.with(|nest| {
        let Some(record) = nest.known.get(span) else { return false };
        // SAFETY: known records live until they are forgotten, which nothing here does.
        unsafe { (*record).is_plain() && nest.push(SpanRecord::head_of(record), span, 0) }
    })
}

/// Enters a `tracing` span that this thread knows, whatever that takes. False if it does not, or if the one it knows is over:
/// registries use ids again.
#[cfg(feature = "tracing")]
pub(super) fn enter_known_slowly(span: TracingSpan) -> bool {
    let entered = with_owned(|owned, nest| {
        let Some(record) = nest.known.get(span) else { return false };
        // SAFETY: known records live until they are forgotten, which nothing here does.
        let open = unsafe { &*record };
        if !open.is_open() {
            return false;
        }
        open.note_enter();
        owned.push(nest, SpanRecord::head_of(record), span, if open.is_timed() { TIMED } else { 0 });
        true
    });
    // A thread that ends has no list: nothing more is to be tried.
    entered.unwrap_or(true)
}

/// Leaves a `tracing` span if it is the innermost and nothing else is to be done. False if there is more to it.
#[cfg(feature = "tracing")]
#[inline(always)]
pub(super) fn exit_innermost(span: TracingSpan) -> bool {
    NEST.with(|nest| nest.pop(0, |entry| entry.span == span))
}

/// Leaves a `tracing` span wherever it stands in the list, if it is there.
#[cfg(feature = "tracing")]
#[cold]
#[inline(never)]
pub(super) fn exit_out_of_order(span: TracingSpan) {
    drop(with_owned(|owned, nest| owned.remove(nest, |entry| entry.span == span)).flatten());
}

/// Lets this thread find the record of a `tracing` span without asking the registry.
#[cfg(feature = "tracing")]
pub(super) fn know(span: TracingSpan, record: &Arc<SpanRecord>) {
    let forgotten = with_owned(|owned, nest| {
        let forgotten = nest.known.put(span, Arc::clone(record))?;
        owned.keep_if_entered(nest, forgotten)
    });
    drop(forgotten.flatten());
}

/// The span is over: this thread needs its record no longer.
#[cfg(feature = "tracing")]
pub(super) fn forget(span: TracingSpan, record: &Arc<SpanRecord>) {
    let forgotten = with_owned(|owned, nest| {
        let forgotten = nest.known.take(span, record)?;
        owned.keep_if_entered(nest, forgotten)
    });
    drop(forgotten.flatten());
}

/// What to publish when a context without a span of its own becomes current: the innermost of the list.
#[cfg(feature = "opentelemetry")]
#[inline]
pub(super) fn publish_innermost() {
    NEST.with(|nest| thread_slot::publish(nest.innermost().head));
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

    /// Scenario: another source publishes spans between ours, which are then left in and out of order.
    /// Guarantee: each exit brings back what was published when its span was entered, and keeps it alive.
    #[test]
    fn other_sources_are_restored() {
        let (a, b, other) = (record(1), record(2), record(9));
        enter(&a);
        super::super::record::publish_record(Arc::as_ptr(&other));
        enter(&b);
        drop(other);
        exit(Arc::as_ptr(&b));
        assert_eq!(current_id(), 9);
        enter(&b);
        exit(Arc::as_ptr(&a));
        assert_eq!(current_id(), 2);
        exit(Arc::as_ptr(&b));
        assert_eq!(current_id(), 9);
        super::super::record::publish_record(std::ptr::null());
        enter(&a);
        super::super::record::publish_record(std::ptr::null());
        enter(&b);
        exit(Arc::as_ptr(&b));
        assert_eq!(current_id(), 0);
        exit(Arc::as_ptr(&a));
        assert_eq!(current_id(), 0);
    }

    /// Scenario: a span that the thread is inside of, twice, loses its place among the known ones to another; both end.
    /// Guarantee: its record lives until it is left for good and no longer, and an id that is used again finds nothing.
    #[cfg(feature = "tracing")]
    #[test]
    fn a_span_that_is_known_no_longer_lives_until_it_is_left() {
        let span = |id| TracingSpan { layer: 9, id };
        let (a, b) = (record(1), record(2));
        know(span(1), &a);
        assert!(enter_known(span(1)) || enter_known_slowly(span(1)));
        assert!(enter_known(span(1)));
        know(span(33), &b);
        assert_eq!(Arc::strong_count(&a), 2);
        assert!(!enter_known(span(1)) && !enter_known_slowly(span(1)));
        assert!(enter_known(span(33)));
        assert_eq!(current_id(), 2);
        assert!(exit_innermost(span(33)));
        assert!(!exit_innermost(span(1)), "there is a count to give back");
        exit_out_of_order(span(1));
        assert_eq!((current_id(), Arc::strong_count(&a)), (1, 2));
        exit_out_of_order(span(1));
        assert_eq!((current_id(), Arc::strong_count(&a)), (0, 1));

        b.close();
        assert!(!enter_known(span(33)) && !enter_known_slowly(span(33)));
        forget(span(33), &b);
        assert_eq!((current_id(), Arc::strong_count(&b)), (0, 1));
    }

    /// Scenario: more nested spans than the list first has room for, on a thread that ends inside them all.
    /// Guarantee: all are found again, and the thread's end gives the records back.
    #[test]
    fn deep_nesting_and_the_end_of_a_thread() {
        let records: Vec<_> = (1..=100).map(record).collect();
        let ids = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                records.iter().for_each(enter);
                exit(Arc::as_ptr(&records[99]));
                (current_id(), Arc::strong_count(&records[0]))
            });
            inside.join().unwrap()
        });
        assert_eq!(ids, (99, 2));
        assert!(records.iter().all(|record| Arc::strong_count(record) == 1));
    }
}
