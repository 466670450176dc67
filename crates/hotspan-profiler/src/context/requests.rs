//! Requests that have ended, with what the conditions need to know about them.

use crate::doorbell::DOORBELL;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Ended requests that may wait for the monitor, which is woken for half as many.
const MAX_WAITING: usize = 65_536;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOutcome {
    /// From its first span's start to that span's end.
    pub duration: Duration,
    /// Whether it failed.
    pub is_error: bool,
    /// Whether its trace is sampled.
    pub is_sampled: bool,
}

/// One ended request: its trace, and its first span in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedRequest {
    pub(crate) trace_id: [u8; 16],
    pub(crate) local_root: [u8; 8],
    pub(crate) outcome: RequestOutcome,
}

static WATCHED: AtomicBool = AtomicBool::new(false);
static ENDED: Mutex<Vec<EndedRequest>> = Mutex::new(Vec::new());
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Whether ends of requests are of interest: only when conditions are configured.
pub(crate) fn watch_requests(on: bool) {
    WATCHED.store(on, Ordering::Relaxed);
}

/// Tells the profiler that a request has ended. The OpenTelemetry processor and the `tracing` layer call this by
/// themselves; those who use [`Ctx`](crate::Ctx) by hand call it once per request.
pub fn request_ended(trace_id: [u8; 16], local_root_span_id: [u8; 8], outcome: RequestOutcome) {
    if !WATCHED.load(Ordering::Relaxed) {
        return;
    }
    let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
    if ended.len() < MAX_WAITING {
        ended.push(EndedRequest { trace_id, local_root: local_root_span_id, outcome });
        if ended.len() == MAX_WAITING / 2 {
            DOORBELL.ring();
        }
    } else {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Requests that have ended since the last call, and how many had no room.
pub(crate) fn take_ended_requests() -> (Vec<EndedRequest>, u64) {
    let ended = std::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    (ended, DROPPED.swap(0, Ordering::Relaxed))
}
