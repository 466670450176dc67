//! The list of a thread's entered spans, innermost last, and who owns what is in it.
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
pub(super) const OWNS: usize = 1;
/// What another source had published is to be published again when the entry is left.
const COVERS: usize = 2;
/// The time inside is measured.
pub(super) const TIMED: usize = 4;

#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The published part of a record. Null only in the first place of the list.
    pub(super) head: *const OtepHead,
    /// The `tracing` span that was entered; none if this was done by hand.
    pub(super) span: TracingSpan,
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
pub(super) struct Nest {
    /// The innermost entry. Below it there is always another, or it is a first place with the head null.
    innermost: Cell<*const Entry>,
    /// The last place of the list.
    last: Cell<*const Entry>,
    pub(super) known: KnownSpans,
}

thread_local! {
    pub(super) static NEST: Nest = const {
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
    pub(super) fn innermost(&self) -> &Entry {
        // SAFETY: it points into the list, which is freed after the pointer has been led away, or to `OUTSIDE`. Places
        // are written by this thread only, and never while such a reference lives.
        unsafe { &*self.innermost.get() }
    }

    /// Enters a span if there is room, and nobody else has published anything since the last change.
    #[inline(always)]
    pub(super) fn push(&self, head: *const OtepHead, span: TracingSpan, extras: usize) -> bool {
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
    pub(super) fn pop(&self, extras: usize, is_meant: impl FnOnce(&Entry) -> bool) -> bool {
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
pub(super) struct Owned {
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
    pub(super) fn push(&mut self, nest: &Nest, head: *const OtepHead, span: TracingSpan, mut extras: usize) {
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
    pub(super) fn remove(&mut self, nest: &Nest, is_meant: impl Fn(&Entry) -> bool) -> Option<Arc<SpanRecord>> {
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
pub(super) fn with_owned<T>(work: impl FnOnce(&mut Owned, &Nest) -> T) -> Option<T> {
    OWNED.try_with(|owned| NEST.with(|nest| Some(work(&mut *owned.try_borrow_mut().ok()?, nest)))).ok().flatten()
}

#[cfg(feature = "tracing")]
impl Owned {
    /// A record that the table has given up: if the thread is still inside, an entry owns it from here on.
    pub(super) fn keep_if_entered(&mut self, nest: &Nest, forgotten: Arc<SpanRecord>) -> Option<Arc<SpanRecord>> {
        let head = SpanRecord::head_of(Arc::as_ptr(&forgotten));
        let entry = self.entries(nest).iter_mut().rfind(|entry| eq(entry.head, head) && entry.extras & OWNS == 0);
        let Some(entry) = entry else { return Some(forgotten) };
        entry.extras |= OWNS;
        SpanRecord::into_head(forgotten);
        None
    }
}
