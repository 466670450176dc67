//! One span's record: what is published for it, and what only this crate reads.

use super::span_time::{SpanTime, keep_span_time, span_times_are_measured};
use super::thread_slot;
use crate::sampler::clock::ticks;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

/// The identity of a span, as samples carry it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SpanKey {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    /// The first span of this trace in this process: the request.
    pub(crate) local_root: [u8; 8],
    /// W3C trace flags; bit 0 says the trace is sampled.
    pub(crate) flags: u8,
}

impl SpanKey {
    /// True for "no span".
    pub(crate) fn is_none(&self) -> bool {
        self.span_id == [0; 8]
    }
}

/// Bytes of the one attribute we publish: key index, length, 16 hexadecimal digits.
const ATTRIBUTE_BYTES: usize = 18;

/// The record of OTEP 4947: packed, native endian.
#[repr(C, packed(2))]
#[derive(Debug, Clone, Copy)]
pub(super) struct OtepHead {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    valid: u8,
    trace_flags: u8,
    attributes_size: u16,
    attributes: [u8; ATTRIBUTE_BYTES],
}

/// The span is over, though somebody may still hold its record.
const CLOSED: u8 = 1;
/// Time inside the span is measured: decided when it begins, so that enter and exit need not ask anybody else.
const TIMED: u8 = 2;
/// That time has been told.
const TOLD: u8 = 4;

/// A span that can be published. Immutable but for its state and the time counters.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SpanRecord {
    local_root: [u8; 8],
    /// Sum of exit ticks minus sum of enter ticks: while nobody is inside, the time spent inside. Order does not
    /// matter, so several threads may be inside at once.
    inside_ticks: AtomicI64,
    /// Ticks at the first enter; zero before.
    first_enter: AtomicU64,
    last_exit: AtomicU64,
    state: AtomicU8,
    head: OtepHead,
}

impl SpanRecord {
    pub(crate) fn new(key: SpanKey) -> SpanRecord {
        SpanRecord {
            local_root: key.local_root,
            inside_ticks: AtomicI64::new(0),
            first_enter: AtomicU64::new(0),
            last_exit: AtomicU64::new(0),
            state: AtomicU8::new(if span_times_are_measured() { TIMED } else { 0 }),
            head: OtepHead {
                trace_id: key.trace_id,
                span_id: key.span_id,
                valid: 1,
                trace_flags: key.flags,
                attributes_size: ATTRIBUTE_BYTES as u16,
                attributes: local_root_attribute(key.local_root),
            },
        }
    }

    pub(crate) fn key(&self) -> SpanKey {
        SpanKey {
            trace_id: self.head.trace_id,
            span_id: self.head.span_id,
            local_root: self.local_root,
            flags: self.head.trace_flags,
        }
    }

    /// Whether the span goes on.
    #[cfg_attr(not(any(feature = "tracing", test)), allow(dead_code))]
    pub(super) fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CLOSED == 0
    }

    /// Whether the time inside is measured.
    #[inline(always)]
    pub(super) fn is_timed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & TIMED != 0
    }

    /// Whether to enter it takes no more than to publish it: it goes on, and its time is not measured.
    #[cfg_attr(not(any(feature = "tracing", test)), allow(dead_code))]
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.state.load(Ordering::Relaxed) == 0
    }

    /// The span is over: its id may be given to another one from here on.
    #[cfg_attr(not(any(feature = "tracing", test)), allow(dead_code))]
    pub(super) fn close(&self) {
        let before = self.state.fetch_or(CLOSED, Ordering::Relaxed);
        // Less than zero while somebody is inside: then the time is told with the record's end.
        if before & (TIMED | TOLD) == TIMED && self.inside_ticks.load(Ordering::Relaxed) >= 0 {
            self.state.fetch_or(TOLD, Ordering::Relaxed);
            self.tell_time();
        }
    }

    /// Counts the time from here as spent inside, if it is measured.
    #[inline]
    pub(super) fn note_enter(&self) {
        if self.is_timed() {
            let now = ticks();
            self.inside_ticks.fetch_sub(now as i64, Ordering::Relaxed);
            if self.first_enter.load(Ordering::Relaxed) == 0 {
                self.first_enter.store(now, Ordering::Relaxed);
            }
        }
    }

    /// Ends what `note_enter` began.
    #[inline]
    pub(super) fn note_exit(&self) {
        if self.is_timed() && self.first_enter.load(Ordering::Relaxed) != 0 {
            let now = ticks();
            self.inside_ticks.fetch_add(now as i64, Ordering::Relaxed);
            self.last_exit.store(now, Ordering::Relaxed);
        }
    }

    fn tell_time(&self) {
        let (first_enter, last_exit) =
            (self.first_enter.load(Ordering::Relaxed), self.last_exit.load(Ordering::Relaxed));
        if first_enter != 0 && last_exit > first_enter {
            let lifetime_ticks = last_exit - first_enter;
            // An exit that was never seen (a context detached out of order) leaves nonsense; the bounds remain.
            let inside = u64::try_from(self.inside_ticks.load(Ordering::Relaxed)).unwrap_or(0).min(lifetime_ticks);
            keep_span_time(SpanTime {
                key: self.key(),
                inside_ticks: inside,
                lifetime_ticks,
                last_exit_ticks: last_exit,
            });
        }
    }

    /// Where the published part of a record lies. The pointer need not be alive.
    #[inline(always)]
    pub(super) fn head_of(record: *const SpanRecord) -> *const OtepHead {
        record.wrapping_byte_add(offset_of!(SpanRecord, head)).cast()
    }

    /// Gives a count of the record into the care of whoever holds the pointer.
    #[inline(always)]
    pub(super) fn into_head(record: Arc<SpanRecord>) -> *const OtepHead {
        SpanRecord::head_of(Arc::into_raw(record))
    }

    /// Takes the count back.
    ///
    /// # Safety
    /// The pointer must come from `into_head`, and must not be taken back twice.
    #[inline(always)]
    pub(super) unsafe fn from_owned_head(head: *const OtepHead) -> Arc<SpanRecord> {
        // SAFETY: forwarded from the caller.
        unsafe { Arc::from_raw(SpanRecord::from_head(head)) }
    }

    #[inline(always)]
    pub(super) fn from_head(head: *const OtepHead) -> *const SpanRecord {
        head.wrapping_byte_sub(offset_of!(SpanRecord, head)).cast()
    }
}

impl Drop for SpanRecord {
    fn drop(&mut self) {
        if *self.state.get_mut() & (TIMED | TOLD) == TIMED {
            self.tell_time();
        }
    }
}

fn local_root_attribute(local_root: [u8; 8]) -> [u8; ATTRIBUTE_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut attribute = [0; ATTRIBUTE_BYTES];
    attribute[1] = 16;
    for (index, byte) in local_root.into_iter().enumerate() {
        attribute[2 + 2 * index] = DIGITS[usize::from(byte >> 4)];
        attribute[3 + 2 * index] = DIGITS[usize::from(byte & 15)];
    }
    attribute
}

/// Publishes a record, or none if it is null, for sources that own it themselves. The caller keeps the record alive for as long as it is published.
#[cfg_attr(not(any(feature = "opentelemetry", test)), allow(dead_code))]
#[inline(always)]
pub(super) fn publish_record(record: *const SpanRecord) {
    thread_slot::publish(if record.is_null() { std::ptr::null() } else { SpanRecord::head_of(record) });
}

/// The span this thread works on. Safe inside a signal handler.
#[inline]
pub(crate) fn current_span_key() -> Option<SpanKey> {
    let head = thread_slot::published();
    // SAFETY: only this module publishes, and always records that outlive their publication; the reader runs on the
    // publishing thread.
    (!head.is_null()).then(|| unsafe { (*SpanRecord::from_head(head)).key() })
}

/// The record this thread works on, shared.
pub(super) fn current_record() -> Option<Arc<SpanRecord>> {
    let head = thread_slot::published();
    // SAFETY: as above; published records always live in an `Arc`, so its count may be raised while it is current.
    (!head.is_null()).then(|| unsafe {
        let record = SpanRecord::from_head(head);
        Arc::increment_strong_count(record);
        Arc::from_raw(record)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the layout that other profilers read from outside.
    /// Guarantee: the fields lie where OTEP 4947 puts them.
    #[test]
    fn the_record_has_the_published_layout() {
        assert_eq!(offset_of!(OtepHead, trace_id), 0);
        assert_eq!(offset_of!(OtepHead, span_id), 16);
        assert_eq!(offset_of!(OtepHead, valid), 24);
        assert_eq!(offset_of!(OtepHead, trace_flags), 25);
        assert_eq!(offset_of!(OtepHead, attributes_size), 26);
        assert_eq!(offset_of!(OtepHead, attributes), 28);
        let attribute = local_root_attribute([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
        assert_eq!(&attribute[..2], [0, 16]);
        assert_eq!(&attribute[2..], b"0123456789abcdef");
    }

    /// Scenario: a record is published, read back, and withdrawn; another thread looks meanwhile.
    /// Guarantee: the span is seen on its own thread only, and only while it is published.
    #[test]
    fn publication_is_per_thread() {
        let key = SpanKey { trace_id: [1; 16], span_id: [2; 8], local_root: [3; 8], flags: 1 };
        let record = Arc::new(SpanRecord::new(key));
        assert_eq!(current_span_key(), None);
        publish_record(Arc::as_ptr(&record));
        assert_eq!(current_span_key(), Some(key));
        assert!(std::thread::spawn(current_span_key).join().unwrap().is_none());
        let shared = current_record().unwrap();
        assert_eq!(Arc::strong_count(&record), 2);
        assert!(Arc::ptr_eq(&shared, &record));
        publish_record(std::ptr::null());
        assert_eq!(current_span_key(), None);
    }
}
