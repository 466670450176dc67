//! What the shop tells about itself: spans by a tracer of its own, profiles by `hotspan-profiler`.

pub(crate) mod export;
pub(crate) mod profiles;
mod resource;
mod span;

pub(crate) use resource::Release;
pub(crate) use span::{Kind, Parent, Span};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;

/// Ended spans that may wait for the exporter: a minute's worth, should the server pause.
const MAX_WAITING: usize = 20_000;

/// An ended span and the release of the service that made it.
pub(crate) type EndedSpan = (Release, OtlpSpan);

/// Where ended spans wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct SpanQueue {
    waiting: Mutex<Vec<EndedSpan>>,
    dropped: AtomicU64,
}

impl SpanQueue {
    /// Queues a span; one that finds no room is counted.
    pub(crate) fn push(&self, span: EndedSpan) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MAX_WAITING {
            waiting.push(span);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Everything that waits.
    pub(crate) fn take(&self) -> Vec<EndedSpan> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts back what could not be sent.
    pub(crate) fn put_back(&self, spans: Vec<EndedSpan>) {
        spans.into_iter().for_each(|span| self.push(span));
    }

    /// Spans that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
