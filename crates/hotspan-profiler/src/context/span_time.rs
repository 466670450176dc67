//! Time inside and outside each span: what async code spends polling, and what it spends waiting.
//!
//! Enter and exit already pass through here to publish the span, so the counters cost two reads of the processor's
//! tick counter per pair. Off until wall-clock profiling is on.

use super::record::SpanKey;
use crate::doorbell::DOORBELL;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Spans that may wait to be collected: a bound for memory (R5). The monitor is woken for half as many.
const MAX_WAITING: usize = 65_536;

/// How long a span was worked on, measured from its first enter to its last exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanTime {
    pub(crate) key: SpanKey,
    pub(crate) inside_ticks: u64,
    pub(crate) lifetime_ticks: u64,
    pub(crate) last_exit_ticks: u64,
}

static MEASURED: AtomicBool = AtomicBool::new(false);
static WAITING: Mutex<Vec<SpanTime>> = Mutex::new(Vec::new());
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Turns the measurement on or off, for spans that begin from here on.
pub(crate) fn measure_span_times(on: bool) {
    MEASURED.store(on, Ordering::Relaxed);
}

#[inline(always)]
pub(super) fn span_times_are_measured() -> bool {
    MEASURED.load(Ordering::Relaxed)
}

pub(super) fn keep_span_time(time: SpanTime) {
    if !span_times_are_measured() {
        return; // turned off since the span began: nobody collects
    }
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.len() < MAX_WAITING {
        waiting.push(time);
        if waiting.len() == MAX_WAITING / 2 {
            DOORBELL.ring();
        }
    } else {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// What has been measured since the last call, and how many spans had no room.
pub(crate) fn take_span_times() -> (Vec<SpanTime>, u64) {
    let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    (waiting, DROPPED.swap(0, Ordering::Relaxed))
}
