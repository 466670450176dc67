//! Carrying a span by hand: to other threads, thread pools, and executors that know nothing of tracing.

use super::entered;
use super::record::{SpanKey, SpanRecord, current_record};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The span that work belongs to. Cheap to clone and to send elsewhere.
///
/// ```
/// use hotspan_profiler::Ctx;
///
/// let request = Ctx::for_request([1; 16], [2; 8]);
/// let _entered = request.attach();
/// let carried = Ctx::capture();
/// std::thread::spawn(move || {
///     let _entered = carried.attach();
///     // Samples taken here belong to the request.
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Clone, Default)]
pub struct Ctx {
    record: Option<Arc<SpanRecord>>,
}

impl Ctx {
    /// The span the calling thread works on now, from whatever source; empty if there is none.
    pub fn capture() -> Ctx {
        Ctx { record: current_record() }
    }

    /// A span that begins a request in this process: conditions are decided for it as a whole.
    pub fn for_request(trace_id: [u8; 16], span_id: [u8; 8]) -> Ctx {
        Ctx::new(SpanKey { trace_id, span_id, local_root: span_id, flags: 1 })
    }

    /// A span inside this one, of the same request.
    #[must_use]
    pub fn child(&self, span_id: [u8; 8]) -> Ctx {
        match &self.record {
            Some(record) => Ctx::new(SpanKey { span_id, ..record.key() }),
            None => Ctx::default(),
        }
    }

    /// The same span with the W3C flag that says whether its trace is sampled.
    #[must_use]
    pub fn sampled(&self, sampled: bool) -> Ctx {
        match &self.record {
            Some(record) => Ctx::new(SpanKey { flags: u8::from(sampled), ..record.key() }),
            None => Ctx::default(),
        }
    }

    fn new(key: SpanKey) -> Ctx {
        Ctx { record: (!key.is_none()).then(|| Arc::new(SpanRecord::new(key))) }
    }

    /// Makes this the calling thread's span until the guard is dropped.
    pub fn attach(&self) -> CtxGuard {
        if let Some(record) = &self.record {
            entered::enter(record);
        }
        CtxGuard { record: self.record.as_ref().map_or(std::ptr::null(), Arc::as_ptr) }
    }

    /// Wraps a future so that every poll of it happens inside this span, on whichever thread.
    pub fn wrap<F: Future>(&self, future: F) -> Attached<F> {
        Attached { ctx: self.clone(), future }
    }

    /// The trace id, if there is a span.
    pub fn trace_id(&self) -> Option<[u8; 16]> {
        self.record.as_ref().map(|record| record.key().trace_id)
    }

    /// The span id, if there is a span.
    pub fn span_id(&self) -> Option<[u8; 8]> {
        self.record.as_ref().map(|record| record.key().span_id)
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("trace_id", &self.trace_id()).field("span_id", &self.span_id()).finish()
    }
}

/// Keeps a [`Ctx`] current; dropping it restores what was current before.
#[derive(Debug)]
#[must_use = "the span is left as soon as the guard is dropped"]
pub struct CtxGuard {
    /// Only compared, never read: the thread's list owns the record. A raw pointer also keeps the guard on the thread
    /// where it was made.
    record: *const SpanRecord,
}

impl Drop for CtxGuard {
    fn drop(&mut self) {
        if !self.record.is_null() {
            entered::exit(self.record);
        }
    }
}

/// A future that is polled inside a [`Ctx`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Attached<F> {
    ctx: Ctx,
    future: F,
}

impl<F: Future> Future for Attached<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is never moved out of the pinned struct; `ctx` is not pinned and has no self-references.
        let (ctx, future) = unsafe {
            let this = self.get_unchecked_mut();
            (&this.ctx, Pin::new_unchecked(&mut this.future))
        };
        let _inside = ctx.attach();
        future.poll(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a context is captured, sent to another thread and attached there.
    /// Guarantee: the other thread works on the same span, and on none before and after.
    #[test]
    fn a_captured_span_travels() {
        let request = Ctx::for_request([7; 16], [8; 8]);
        let _inside = request.child([9; 8]).attach();
        let carried = Ctx::capture();
        std::thread::spawn(move || {
            assert_eq!(Ctx::capture().span_id(), None);
            let inside = carried.attach();
            assert_eq!(Ctx::capture().span_id(), Some([9; 8]));
            assert_eq!(Ctx::capture().trace_id(), Some([7; 16]));
            drop(inside);
            assert_eq!(Ctx::capture().span_id(), None);
        })
        .join()
        .unwrap();
    }

    /// Scenario: a span id of zeros, which W3C forbids.
    /// Guarantee: it is no span at all.
    #[test]
    fn an_invalid_span_is_none() {
        let _inside = Ctx::for_request([1; 16], [0; 8]).attach();
        assert_eq!(Ctx::capture().span_id(), None);
        assert_eq!(Ctx::default().child([1; 8]).span_id(), None);
    }
}
