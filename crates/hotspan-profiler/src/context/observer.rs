//! OpenTelemetry: its context observer publishes spans, a span processor sees requests end.

use super::entered;
use super::record::{SpanKey, SpanRecord, current_record, publish_record};
use super::requests::{RequestOutcome, request_ended};
use super::span_time::span_times_are_measured;
use opentelemetry::Context;
use opentelemetry::context::{ContextObserver, GlobalContextObserver, ObserverContextView};
use opentelemetry::trace::{SpanContext, SpanId, Status, TraceContextExt};
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Why OpenTelemetry's contexts cannot be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    /// OpenTelemetry allows one observer per process, and another library was first.
    #[error("another context observer is installed already; use the `tracing` layer instead")]
    AnotherObserver,
}

/// Publishes the span of every OpenTelemetry context that is attached from now on, on any thread.
///
/// Contexts that were created earlier are not seen: call this before the first span starts.
///
/// # Errors
/// If another library has installed its observer before.
pub fn observe_opentelemetry() -> Result<(), ObserveError> {
    GlobalContextObserver::set(Arc::new(Observer));
    // `set` does not say whether it was heeded. A context made now has our view, or the other observer won.
    let probe = Context::new().with_value(Probe);
    let is_ours = probe.observer_view().as_ref().is_some_and(|view| view.as_any().is::<SpanRecord>());
    if is_ours { Ok(()) } else { Err(ObserveError::AnotherObserver) }
}

/// Marks the context by which `observe_opentelemetry` finds out who observes.
struct Probe;

impl ObserverContextView for SpanRecord {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Observer;

impl Observer {
    /// The record that `make_view` stored in a context. Every span pays for this twice, hence no checked downcast.
    #[inline(always)]
    fn record_of(context: &Context) -> Option<&SpanRecord> {
        let view = context.observer_view().as_ref()?;
        // SAFETY: OpenTelemetry calls only the one registered observer, this one, and stores only views that its
        // `make_view` made, all of which are span records.
        Some(unsafe { &*Arc::as_ptr(view).cast::<SpanRecord>() })
    }

    #[inline(always)]
    fn publish(record: Option<&SpanRecord>) {
        publish_record(record.map_or(std::ptr::null(), std::ptr::from_ref));
    }
}

impl ContextObserver for Observer {
    #[inline]
    fn on_context_enter(&self, from: &Context, to: &Context) {
        let entered = Self::record_of(to);
        Self::publish(entered);
        if span_times_are_measured()
            && let Some(record) = entered
            && !Self::record_of(from).is_some_and(|from| std::ptr::eq(from, record))
        {
            record.note_enter();
        }
    }

    #[inline]
    fn on_context_exit(&self, from: &Context, to: &Context) {
        let restored = Self::record_of(to);
        if restored.is_some() {
            Self::publish(restored);
        } else {
            entered::publish_innermost();
        }
        if span_times_are_measured()
            && let Some(record) = Self::record_of(from)
            && !restored.is_some_and(|restored| std::ptr::eq(restored, record))
        {
            record.note_exit();
        }
    }

    fn make_view(&self, context: &Context) -> Option<Arc<dyn ObserverContextView>> {
        if !context.has_active_span() {
            return context.get::<Probe>().map(|_| Arc::new(SpanRecord::new(SpanKey::default())) as _);
        }
        let span = context.span();
        let span_context = span.span_context();
        // A remote span is a parent, not work of this process.
        if !span_context.is_valid() || span_context.is_remote() {
            return None;
        }
        Some(record_for(span_context))
    }
}

/// The record of a span: shared if it is current already, otherwise of the same request as the current one if they
/// have the trace in common.
fn record_for(span: &SpanContext) -> Arc<SpanRecord> {
    let (trace_id, span_id) = (span.trace_id().to_bytes(), span.span_id().to_bytes());
    let current = current_record();
    let mut local_root = span_id;
    if let Some(current) = current {
        let key = current.key();
        if key.trace_id == trace_id {
            if key.span_id == span_id {
                return current;
            }
            local_root = key.local_root;
        }
    }
    Arc::new(SpanRecord::new(SpanKey { trace_id, span_id, local_root, flags: span.trace_flags().to_u8() }))
}

/// Sees requests end, so that conditions can be decided: add it to the tracer provider.
///
/// A request is a span without a parent in this process. OpenTelemetry shows processors only spans that it records: where
/// a tracer drops spans from the start, such a request is kept if it is slow, and otherwise folded when it is a minute old.
#[derive(Debug, Default, Clone, Copy)]
pub struct RequestSpanProcessor;

impl SpanProcessor for RequestSpanProcessor {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.parent_span_id != SpanId::INVALID && !span.parent_span_is_remote {
            return;
        }
        let outcome = RequestOutcome {
            duration: span.end_time.duration_since(span.start_time).unwrap_or_default(),
            is_error: matches!(span.status, Status::Error { .. }),
            is_sampled: span.span_context.is_sampled(),
        };
        request_ended(span.span_context.trace_id().to_bytes(), span.span_context.span_id().to_bytes(), outcome);
    }

    fn force_flush(&self) -> opentelemetry_sdk::error::OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> opentelemetry_sdk::error::OTelSdkResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::current_span_key;
    use super::*;
    use opentelemetry::trace::{Tracer, TracerProvider};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    fn current_id() -> Option<[u8; 8]> {
        current_span_key().map(|key| key.span_id)
    }

    /// Scenario: OpenTelemetry spans are attached, nested, carried to a thread, and a remote parent is attached.
    /// Guarantee: the innermost local span is published on its thread, with the request's first span as local root.
    #[test]
    fn attached_contexts_are_published() {
        observe_opentelemetry().unwrap();
        let provider = SdkTracerProvider::builder().build();
        let tracer = provider.tracer("test");
        let outer = Context::current_with_span(tracer.start("outer"));
        let outer_id = outer.span().span_context().span_id().to_bytes();
        let outer_guard = outer.attach();
        assert_eq!(current_id(), Some(outer_id));
        {
            let inner = Context::current_with_span(tracer.start("inner"));
            let inner_id = inner.span().span_context().span_id().to_bytes();
            let _inner_guard = inner.attach();
            assert_eq!(current_id(), Some(inner_id));
            assert_eq!(current_span_key().unwrap().local_root, outer_id);
            let with_value = Context::current_with_value(5u8);
            let carried = std::thread::spawn(move || {
                let _guard = with_value.attach();
                current_id()
            });
            assert_eq!(carried.join().unwrap(), Some(inner_id));
        }
        assert_eq!(current_id(), Some(outer_id));
        drop(outer_guard);
        assert_eq!(current_id(), None);

        let remote = SpanContext::new(
            opentelemetry::TraceId::from(5),
            SpanId::from(6),
            opentelemetry::TraceFlags::SAMPLED,
            true,
            opentelemetry::trace::TraceState::NONE,
        );
        let _guard = Context::new().with_remote_span_context(remote).attach();
        assert_eq!(current_id(), None);
    }

    /// Scenario: a context without a span is attached over one that has one, then detached.
    /// Guarantee: nothing is published in between, and the span comes back.
    #[test]
    fn an_empty_context_hides_the_span() {
        observe_opentelemetry().unwrap();
        let provider = SdkTracerProvider::builder().build();
        let outer = Context::current_with_span(provider.tracer("test").start("outer")).attach();
        let id = current_id();
        assert!(id.is_some());
        let empty = Context::new().attach();
        assert_eq!(current_id(), None);
        drop(empty);
        assert_eq!(current_id(), id);
        drop(outer);
    }
}
