//! The spans a thread has entered by hand or through `tracing`, innermost last.
//!
//! Guards can be dropped in any order. The list owns every record it may have to publish again, so that the
//! thread's pointer never outlives what it points to. Every span pays for what happens here, by the instruction: the
//! common case (the innermost is left first) touches two counts of one record and nothing else that is shared.

use super::known_spans::{KnownSpans, TracingSpan};
use super::record::{OtepHead, SpanRecord, current_record};
use super::thread_slot;
use std::cell::{Cell, UnsafeCell};
use std::ptr::{eq, null};
use std::sync::Arc;

/// Spans that a thread can be inside of before the list grows.
const FIRST_CAPACITY: usize = 32;

#[derive(Clone, Copy)]
struct Entry {
    /// The published part of a record; the entry owns one count of it. Null only in the first place of the list.
    head: *const OtepHead,
    /// The `tracing` span that was entered; none if this was done by hand.
    #[cfg_attr(not(feature = "tracing"), allow(dead_code))]
    span: TracingSpan,
}

/// What another source (OpenTelemetry's context) had published when a span was entered over it.
struct Covered {
    /// Where in the list the span is.
    depth: usize,
    record: Option<Arc<SpanRecord>>,
}

struct Entered {
    /// Place 0 is never used, so that there is always one below.
    entries: Vec<Entry>,
    depth: usize,
    /// Ordered by depth; mostly empty.
    covered: Vec<Covered>,
    /// Depth of the last of them, zero if there is none.
    covered_depth: usize,
    /// A record from another source that an exit has published again: owned until the next change.
    restored: Option<Arc<SpanRecord>>,
    #[cfg_attr(not(feature = "tracing"), allow(dead_code))]
    known: KnownSpans,
}

impl Entered {
    const fn new() -> Entered {
        Entered {
            entries: Vec::new(),
            depth: 0,
            covered: Vec::new(),
            covered_depth: 0,
            restored: None,
            known: KnownSpans::new(),
        }
    }

    #[inline(always)]
    fn push(&mut self, record: Arc<SpanRecord>, span: TracingSpan) {
        record.note_enter();
        let head = SpanRecord::into_head(record);
        let depth = self.depth + 1;
        if thread_slot::published() != INNERMOST.get() {
            self.cover(depth);
        }
        if depth >= self.entries.len() {
            self.grow();
        }
        self.entries[depth] = Entry { head, span };
        self.depth = depth;
        INNERMOST.set(head);
        thread_slot::publish(head);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let unused = Entry { head: null(), span: TracingSpan::NONE };
        self.entries.resize((2 * self.entries.len()).max(FIRST_CAPACITY), unused);
    }

    /// What another source has published must outlive its withdrawal there.
    #[cold]
    #[inline(never)]
    fn cover(&mut self, depth: usize) {
        self.covered.push(Covered { depth, record: current_record() });
        self.covered_depth = depth;
    }

    /// Takes the innermost entry away, if it is the one that is meant. The record is for the caller to drop, after
    /// this borrow: dropping it may run other code.
    #[inline(always)]
    fn pop_if(&mut self, is_meant: impl FnOnce(&Entry) -> bool) -> Option<Arc<SpanRecord>> {
        let depth = self.depth;
        let entry = *self.entries.get(depth)?;
        if depth == 0 || !is_meant(&entry) {
            return None;
        }
        self.depth = depth - 1;
        let below = self.entries[depth - 1].head;
        INNERMOST.set(below);
        let was_current = eq(thread_slot::published(), entry.head);
        if was_current {
            thread_slot::publish(below);
        }
        if depth == self.covered_depth {
            self.uncover(was_current);
        }
        // SAFETY: the entry's count came from `into_head` and is given up with the entry.
        let record = unsafe { SpanRecord::from_owned_head(entry.head) };
        record.note_exit();
        Some(record)
    }

    /// The entry over what another source had published is gone: that is published again, or not needed any more.
    #[cold]
    #[inline(never)]
    fn uncover(&mut self, publish: bool) {
        let covered = self.covered.pop();
        self.covered_depth = self.covered.last().map_or(0, |covered| covered.depth);
        if let Some(covered) = covered
            && publish
        {
            thread_slot::publish(
                covered.record.as_ref().map_or(null(), |record| SpanRecord::head_of(Arc::as_ptr(record))),
            );
            self.restored = covered.record;
        }
    }

    /// Takes an entry out of the middle of the list: the one above it inherits what lay below.
    #[cold]
    #[inline(never)]
    fn remove(&mut self, head: *const OtepHead) -> Option<Arc<SpanRecord>> {
        let depth = (1..=self.depth).rev().find(|depth| eq(self.entries[*depth].head, head))?;
        self.entries.copy_within(depth + 1..=self.depth, depth);
        self.depth -= 1;
        let innermost = self.entries[self.depth].head;
        INNERMOST.set(innermost);
        // What this entry covered is covered by the next one now, unless that covers something later itself.
        if self.covered.iter().any(|covered| covered.depth == depth + 1) {
            self.covered.retain(|covered| covered.depth != depth);
        }
        self.covered.iter_mut().filter(|covered| covered.depth > depth).for_each(|covered| covered.depth -= 1);
        self.covered_depth = self.covered.last().map_or(0, |covered| covered.depth);
        if eq(thread_slot::published(), head) {
            thread_slot::publish(innermost);
        }
        // SAFETY: as in `pop_if`.
        let record = unsafe { SpanRecord::from_owned_head(head) };
        record.note_exit();
        Some(record)
    }
}

impl Drop for Entered {
    /// The thread ends: whatever its guards forgot to leave must not stay published.
    fn drop(&mut self) {
        INNERMOST.set(null());
        thread_slot::publish(null());
        for entry in self.entries.iter().take(self.depth + 1).skip(1) {
            // SAFETY: as in `pop_if`.
            drop(unsafe { SpanRecord::from_owned_head(entry.head) });
        }
    }
}

thread_local! {
    /// The innermost entry's record, or null: what OpenTelemetry's exits need to know, without opening the list.
    static INNERMOST: Cell<*const OtepHead> = const { Cell::new(null()) };
    static ENTERED: UnsafeCell<Entered> = const { UnsafeCell::new(Entered::new()) };
}

/// Works on the thread's list. `None` on a thread that is shutting down and has no list any more: its last
/// destructors run without a span.
#[inline(always)]
fn with_list<T>(work: impl FnOnce(&mut Entered) -> T) -> Option<T> {
    // SAFETY: the list is reached only through this function, on its own thread, and `work` (in this module, all of
    // it) calls nothing that could come back here: it moves records in and out, and drops them outside. The signal
    // handler reads the published pointer only.
    ENTERED.try_with(|entered| work(unsafe { &mut *entered.get() })).ok()
}

/// Makes `record` current on this thread.
#[inline]
pub(super) fn enter(record: &Arc<SpanRecord>) {
    enter_span(record, TracingSpan::NONE);
}

/// Makes the record of a `tracing` span current on this thread.
#[inline]
pub(super) fn enter_span(record: &Arc<SpanRecord>, span: TracingSpan) {
    let _without_list = with_list(|entered| entered.push(Arc::clone(record), span));
}

/// Undoes the latest `enter` of `record`, wherever it stands in the list.
#[inline]
pub(super) fn exit(record: *const SpanRecord) {
    let head = SpanRecord::head_of(record);
    let removed = with_list(|entered| entered.pop_if(|entry| eq(entry.head, head)));
    if let Some(None) = removed {
        let _removed = with_list(|entered| entered.remove(head));
    }
}

/// Enters a `tracing` span that this thread knows. False if it does not.
#[cfg(feature = "tracing")]
#[inline]
pub(super) fn enter_known(span: TracingSpan) -> bool {
    let entered = with_list(|entered| {
        let Some(record) = entered.known.get(span) else { return false };
        entered.push(record, span);
        true
    });
    entered.unwrap_or(false)
}

/// Leaves a `tracing` span if it is the innermost. False if it is not.
#[cfg(feature = "tracing")]
#[inline]
pub(super) fn exit_innermost(span: TracingSpan) -> bool {
    let removed = with_list(|entered| entered.pop_if(|entry| entry.span == span));
    matches!(removed, Some(Some(_)))
}

/// Lets this thread find the record of a `tracing` span without asking the registry.
#[cfg(feature = "tracing")]
pub(super) fn know(span: TracingSpan, record: &Arc<SpanRecord>) {
    let record = Arc::downgrade(record);
    let _forgotten = with_list(|entered| entered.known.put(span, record));
}

/// What to publish when a context without a span of its own becomes current: the innermost of the list.
#[cfg(feature = "opentelemetry")]
#[inline]
pub(super) fn publish_innermost() {
    thread_slot::publish(INNERMOST.get());
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
