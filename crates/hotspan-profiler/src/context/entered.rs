//! The spans a thread has entered by hand or through `tracing`, innermost last.
//!
//! Guards can be dropped in any order. Whatever may have to be published again is owned by the list, or by the table of
//! known spans, so that the thread's pointer never outlives what it points to. Every span pays for what happens here, by
//! the instruction. So the common case (a known span is entered, and left as the innermost) is a few comparisons and
//! stores into [`Nest`], which has no destructor to ask for; everything else goes through [`Owned`], which has.

use super::known_spans::{KnownSpans, TracingSpan};
use super::record::{OtepHead, SpanRecord, current_record};
use super::thread_slot;
use std::cell::{Cell, RefCell};
use std::ptr::{eq, null};
use std::sync::Arc;

/// Spans that a thread can be inside of before the list grows.
const FIRST_CAPACITY: usize = 32;

/// The entry owns a count of its record; else the table of known spans does.
const OWNS: usize = 1;
/// What another source had published is to be published again when the entry is left.
const COVERS: usize = 2;
/// The time inside is measured.
const TIMED: usize = 4;

#[derive(Clone, Copy)]
struct Entry {
    /// The published part of a record. Null only in the first place of the list.
    head: *const OtepHead,
    /// The `tracing` span that was entered; none if this was done by hand.
    span: TracingSpan,
    /// What leaving it takes besides, zero in the common case and in places that are not in use.
    extras: usize,
}

impl Entry {
    const NOBODY: Entry = Entry { head: null(), span: TracingSpan::NONE, extras: 0 };
}

/// The innermost entry of threads that have no list (yet, or any more).
struct Outside(Entry);

// SAFETY: nobody ever writes to it, and the null pointer in it leads nowhere.
unsafe impl Sync for Outside {}

static OUTSIDE: Outside = Outside(Entry::NOBODY);

/// What a thread touches on every enter and exit.
struct Nest {
    /// The innermost entry. Below it there is always another, or it is a first place with the head null.
    innermost: Cell<*const Entry>,
    /// The last place of the list.
    last: Cell<*const Entry>,
    known: KnownSpans,
}

thread_local! {
    static NEST: Nest = const {
        Nest {
            innermost: Cell::new(&raw const OUTSIDE.0),
            last: Cell::new(&raw const OUTSIDE.0),
            known: KnownSpans::new(),
        }
    };
    static OWNED: RefCell<Owned> = const { RefCell::new(Owned::new()) };
}

impl Nest {
    #[inline(always)]
    fn innermost(&self) -> &Entry {
        // SAFETY: it points into the list, which is freed after the pointer has been led away, or to `OUTSIDE`. Places
        // are written by this thread only, and never while such a reference lives.
        unsafe { &*self.innermost.get() }
    }

    /// Enters a span if there is room, and nobody else has published anything since the last change.
    #[inline(always)]
    fn push(&self, head: *const OtepHead, span: TracingSpan, extras: usize) -> bool {
        let innermost = self.innermost.get();
        if eq(innermost, self.last.get()) || thread_slot::published() != self.innermost().head {
            return false;
        }
        self.put(head, span, extras);
        true
    }

    /// Enters a span where there is room for it.
    #[inline(always)]
    fn put(&self, head: *const OtepHead, span: TracingSpan, extras: usize) {
        let next = self.innermost.get().cast_mut().wrapping_add(1);
        // SAFETY: the innermost is not the last, so the next place belongs to the list, and nobody refers to it.
        unsafe {
            (*next).head = head;
            (*next).span = span;
            if extras != 0 {
                (*next).extras = extras;
            }
        }
        self.innermost.set(next);
        thread_slot::publish(head);
    }

    /// Leaves the innermost span if that is the one meant, takes nothing but these extras, and is what is published.
    #[inline(always)]
    fn pop(&self, extras: usize, is_meant: impl FnOnce(&Entry) -> bool) -> bool {
        let entry = self.innermost();
        if !is_meant(entry) || entry.extras != extras || thread_slot::published() != entry.head {
            return false;
        }
        let left = self.innermost.get().cast_mut();
        self.innermost.set(left.wrapping_sub(1));
        if extras != 0 {
            // SAFETY: the place is in the list and nobody refers to it: `OUTSIDE` has no extras and is never meant.
            unsafe { (*left).extras = 0 };
        }
        thread_slot::publish(self.innermost().head);
        true
    }
}

/// What another source (OpenTelemetry's context) had published when a span was entered over it.
struct Covered {
    /// Where in the list the span is.
    depth: usize,
    record: Option<Arc<SpanRecord>>,
}

/// What a thread owns, and everything that happens seldom.
struct Owned {
    /// The list, made by `Box`; its first place is never left. Null before the first enter.
    entries: *mut Entry,
    capacity: usize,
    /// Ordered by depth; mostly empty.
    covered: Vec<Covered>,
    /// A record from another source that an exit has published again: owned until the next change.
    restored: Option<Arc<SpanRecord>>,
}

impl Owned {
    const fn new() -> Owned {
        Owned { entries: std::ptr::null_mut(), capacity: 0, covered: Vec::new(), restored: None }
    }

    /// Where in the list the innermost entry is; zero if the thread is in no span.
    fn depth(&self, nest: &Nest) -> usize {
        // SAFETY: the innermost entry is in the list as soon as there is one.
        if self.entries.is_null() { 0 } else { unsafe { nest.innermost.get().offset_from(self.entries) as usize } }
    }

    /// The entries in use, and what lies below them.
    fn entries(&mut self, nest: &Nest) -> &mut [Entry] {
        if self.entries.is_null() {
            return &mut [];
        }
        let depth = self.depth(nest);
        // SAFETY: the list has this many places, and only this thread, here, refers to them.
        unsafe { std::slice::from_raw_parts_mut(self.entries, depth + 1) }
    }

    /// Moves the list to one with more room.
    fn grow(&mut self, nest: &Nest) {
        let depth = self.depth(nest);
        let capacity = (2 * self.capacity).max(FIRST_CAPACITY);
        let mut entries = vec![Entry::NOBODY; capacity];
        entries[..self.entries(nest).len()].copy_from_slice(self.entries(nest));
        let entries: *mut Entry = Box::into_raw(entries.into_boxed_slice()).cast();
        nest.innermost.set(entries.wrapping_add(depth));
        nest.last.set(entries.wrapping_add(capacity - 1));
        self.free();
        (self.entries, self.capacity) = (entries, capacity);
    }

    fn free(&mut self) {
        if !self.entries.is_null() {
            let entries = std::ptr::slice_from_raw_parts_mut(self.entries, self.capacity);
            // SAFETY: it came from `Box::into_raw` with this length, and nobody points into it any more.
            drop(unsafe { Box::from_raw(entries) });
            self.entries = std::ptr::null_mut();
        }
    }

    /// Enters a span, whatever that takes.
    fn push(&mut self, nest: &Nest, head: *const OtepHead, span: TracingSpan, mut extras: usize) {
        if thread_slot::published() != nest.innermost().head {
            // What another source has published must outlive its withdrawal there.
            self.covered.push(Covered { depth: self.depth(nest) + 1, record: current_record() });
            extras |= COVERS;
        }
        if eq(nest.innermost.get(), nest.last.get()) {
            self.grow(nest);
        }
        nest.put(head, span, extras);
    }

    /// Leaves the latest entry that is meant, wherever it stands. The record that nobody needs any more is for the caller
    /// to drop, after this borrow: dropping it may run other code.
    fn remove(&mut self, nest: &Nest, is_meant: impl Fn(&Entry) -> bool) -> Option<Arc<SpanRecord>> {
        let depth = self.entries(nest).iter().rposition(|entry| !entry.head.is_null() && is_meant(entry))?;
        let innermost = self.depth(nest);
        let entries = self.entries(nest);
        let left = entries[depth];
        entries.copy_within(depth + 1.., depth);
        entries[innermost] = Entry::NOBODY;
        nest.innermost.set(nest.innermost.get().wrapping_sub(1));
        if left.extras & TIMED != 0 {
            // SAFETY: the record is owned by the entry, or by the table of known spans.
            unsafe { (*SpanRecord::from_head(left.head)).note_exit() };
        }
        let was_current = eq(thread_slot::published(), left.head);
        if was_current {
            thread_slot::publish(nest.innermost().head);
        }
        self.uncover(nest, depth, was_current && depth == innermost);
        if left.extras & OWNS == 0 {
            return None;
        }
        // The same span may have been entered again by an entry that relies on this one.
        let heir = self.entries(nest).iter_mut().rfind(|entry| eq(entry.head, left.head) && entry.extras & OWNS == 0);
        if let Some(heir) = heir {
            heir.extras |= OWNS;
            return None;
        }
        // SAFETY: the entry's count came from `into_head` or the table, and is given up with the entry.
        Some(unsafe { SpanRecord::from_owned_head(left.head) })
    }

    /// The entry at `depth` has left the list: what it had covered is published again if it was on top of everything, and
    /// else is covered by the next one now, unless that covers something later itself.
    fn uncover(&mut self, nest: &Nest, depth: usize, was_on_top: bool) {
        let next_covers = self.covered.iter().any(|covered| covered.depth == depth + 1);
        if let Some(index) = self.covered.iter().position(|covered| covered.depth == depth) {
            let next = self.entries(nest).get_mut(depth).filter(|_| !next_covers);
            if let Some(next) = next {
                next.extras |= COVERS;
            } else {
                let record = self.covered.remove(index).record;
                if was_on_top {
                    thread_slot::publish(
                        record.as_ref().map_or(null(), |record| SpanRecord::head_of(Arc::as_ptr(record))),
                    );
                    self.restored = record;
                }
            }
        }
        self.covered.iter_mut().filter(|covered| covered.depth > depth).for_each(|covered| covered.depth -= 1);
    }
}

impl Drop for Owned {
    /// The thread ends: whatever its guards forgot to leave must not stay published.
    fn drop(&mut self) {
        thread_slot::publish(null());
        NEST.with(|nest| {
            for entry in self.entries(nest).iter().filter(|entry| entry.extras & OWNS != 0) {
                // SAFETY: as in `remove`.
                drop(unsafe { SpanRecord::from_owned_head(entry.head) });
            }
            nest.innermost.set(&raw const OUTSIDE.0);
            nest.last.set(&raw const OUTSIDE.0);
            nest.known.clear();
        });
        self.free();
    }
}

/// Works on what the thread owns. `None` on a thread that is shutting down and owns nothing any more: its last destructors
/// run without a span.
fn with_owned<T>(work: impl FnOnce(&mut Owned, &Nest) -> T) -> Option<T> {
    OWNED.try_with(|owned| NEST.with(|nest| Some(work(&mut *owned.try_borrow_mut().ok()?, nest)))).ok().flatten()
}

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

#[cfg(feature = "tracing")]
impl Owned {
    /// A record that the table has given up: if the thread is still inside, an entry owns it from here on.
    fn keep_if_entered(&mut self, nest: &Nest, forgotten: Arc<SpanRecord>) -> Option<Arc<SpanRecord>> {
        let head = SpanRecord::head_of(Arc::as_ptr(&forgotten));
        let entry = self.entries(nest).iter_mut().rfind(|entry| eq(entry.head, head) && entry.extras & OWNS == 0);
        let Some(entry) = entry else { return Some(forgotten) };
        entry.extras |= OWNS;
        SpanRecord::into_head(forgotten);
        None
    }
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
