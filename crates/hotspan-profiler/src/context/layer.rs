//! `tracing` without OpenTelemetry: a layer that gives every span an identity and publishes it on enter and exit.
//!
//! If the trace continues one from outside, put the ids on the request's span as fields `trace_id` (32 hexadecimal
//! digits) and `span_id` (16); otherwise they are made up here.

use super::entered;
use super::known_spans::TracingSpan;
use super::record::{SpanKey, SpanRecord};
use super::requests::{RequestOutcome, request_ended};
use crate::random::random_u64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Publishes the active `tracing` span to the profiler.
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let _ = tracing_subscriber::registry().with(hotspan_profiler::SpanLayer::new()).try_init();
/// ```
#[derive(Debug)]
pub struct SpanLayer {
    finest_level: Level,
    /// Tells this layer's spans from those of other layers in the process.
    number: u64,
}

impl Default for SpanLayer {
    fn default() -> SpanLayer {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        SpanLayer { finest_level: Level::INFO, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Clone for SpanLayer {
    /// A layer of its own: the copy may go into another registry, which gives out the same ids.
    fn clone(&self) -> SpanLayer {
        SpanLayer { finest_level: self.finest_level, ..SpanLayer::default() }
    }
}

impl SpanLayer {
    /// A layer that publishes spans of level INFO and coarser; finer ones count for the span around them.
    pub fn new() -> SpanLayer {
        SpanLayer::default()
    }

    /// Publishes spans down to this level.
    #[must_use]
    pub fn with_finest_level(mut self, finest_level: Level) -> SpanLayer {
        self.finest_level = finest_level;
        self
    }

    #[inline(always)]
    fn span(&self, id: &Id) -> TracingSpan {
        TracingSpan { layer: self.number, id: id.into_u64() }
    }

    #[cold]
    #[inline(never)]
    #[expect(clippy::needless_pass_by_value, reason = "a reference would have to be made where this is not called")]
    fn enter_slowly<S: Subscriber + for<'a> LookupSpan<'a>>(&self, id: &Id, context: Context<'_, S>) {
        let span = self.span(id);
        if entered::enter_known_slowly(span) {
            return;
        }
        if let Some(record) = record_of(id, &context) {
            entered::know(span, &record);
            entered::enter_known_slowly(span);
        }
    }
}

fn record_of<S: Subscriber + for<'a> LookupSpan<'a>>(id: &Id, context: &Context<'_, S>) -> Option<Arc<SpanRecord>> {
    let span = context.span(id)?;
    span.extensions().get::<Published>().map(|published| Arc::clone(&published.record))
}

/// The identity that a [`SpanLayer`] has given to a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanIds {
    /// Its trace.
    pub trace_id: [u8; 16],
    /// The span itself.
    pub span_id: [u8; 8],
}

/// The identity of an open span, for layers that come after the [`SpanLayer`]; none if it does not publish the span.
pub fn span_ids<'a, R: LookupSpan<'a>>(span: &tracing_subscriber::registry::SpanRef<'a, R>) -> Option<SpanIds> {
    let extensions = span.extensions();
    let key = extensions.get::<Published>()?.record.key();
    Some(SpanIds { trace_id: key.trace_id, span_id: key.span_id })
}

/// What the layer keeps with each span it publishes.
struct Published {
    record: Arc<SpanRecord>,
    /// Only the first span of a request has these.
    request: Option<Request>,
}

struct Request {
    started: Instant,
    failed: AtomicBool,
}

#[derive(Default)]
struct Ids {
    trace_id: Option<[u8; 16]>,
    span_id: Option<[u8; 8]>,
    failed: bool,
}

impl Visit for Ids {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "trace_id" => self.trace_id = parse_hex(value),
            "span_id" => self.span_id = parse_hex(value),
            "otel.status_code" => self.failed |= value.eq_ignore_ascii_case("error"),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.failed |= field.name() == "error" && value;
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if matches!(field.name(), "trace_id" | "span_id" | "otel.status_code") {
            let text = format!("{value:?}");
            self.record_str(field, text.trim_matches('"'));
        } else {
            self.failed |= field.name() == "error";
        }
    }
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    (bytes != [0; N]).then_some(bytes)
}

fn random_id<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&(random_u64() | 1).to_be_bytes()[..chunk.len()]);
    }
    bytes
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if *attributes.metadata().level() > self.finest_level {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let mut ids = Ids::default();
        attributes.record(&mut ids);
        let parent = span
            .scope()
            .skip(1)
            .find_map(|ancestor| ancestor.extensions().get::<Published>().map(|published| published.record.key()));
        let span_id = ids.span_id.unwrap_or_else(random_id);
        let key = match parent {
            Some(parent) => SpanKey { span_id, ..parent },
            None => {
                SpanKey { trace_id: ids.trace_id.unwrap_or_else(random_id), span_id, local_root: span_id, flags: 1 }
            }
        };
        let request =
            parent.is_none().then(|| Request { started: Instant::now(), failed: AtomicBool::new(ids.failed) });
        let record = Arc::new(SpanRecord::new(key));
        entered::know(self.span(id), &record);
        span.extensions_mut().insert(Published { record, request });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut ids = Ids::default();
        values.record(&mut ids);
        if ids.failed {
            mark_failed(id, &context);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR
            && let Some(span) = context.event_span(event)
        {
            mark_failed(&span.id(), &context);
        }
    }

    #[inline]
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !entered::enter_known(self.span(id)) {
            self.enter_slowly(id, context);
        }
    }

    #[inline]
    fn on_exit(&self, id: &Id, _context: Context<'_, S>) {
        if !entered::exit_innermost(self.span(id)) {
            entered::exit_out_of_order(self.span(id));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        // Taken out, so that the record ends with the span and not with the registry's reuse of its memory.
        let Some(published) = span.extensions_mut().remove::<Published>() else { return };
        published.record.close();
        entered::forget(self.span(&id), &published.record);
        if let Some(request) = &published.request {
            let key = published.record.key();
            let outcome = RequestOutcome {
                duration: request.started.elapsed(),
                is_error: request.failed.load(Ordering::Relaxed),
                is_sampled: key.flags & 1 == 1,
            };
            request_ended(key.trace_id, key.local_root, outcome);
        }
    }
}

/// An error anywhere below counts for the request.
fn mark_failed<S: Subscriber + for<'a> LookupSpan<'a>>(id: &Id, context: &Context<'_, S>) {
    let Some(span) = context.span(id) else { return };
    for ancestor in span.scope() {
        let extensions = ancestor.extensions();
        if let Some(request) = extensions.get::<Published>().and_then(|published| published.request.as_ref()) {
            request.failed.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::current_span_key;
    use super::super::requests::{take_ended_requests, watch_requests};
    use super::*;
    use tracing::{Instrument, info_span, trace_span};
    use tracing_subscriber::prelude::*;

    /// Scenario: nested spans, a too-fine span, ids given as fields, an error inside, and an async block.
    /// Guarantee: the innermost published span is current, the request's outcome is told once with its ids.
    #[test]
    fn tracing_spans_are_published() {
        let subscriber = tracing_subscriber::registry().with(SpanLayer::new());
        watch_requests(true);
        let trace = "0af7651916cd43dd8448eb211c80319c";
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", trace_id = trace, span_id = "b7ad6b7169203331");
            request.in_scope(|| {
                let outer = current_span_key().unwrap();
                assert_eq!(outer.trace_id, parse_hex(trace).unwrap());
                assert_eq!(outer.local_root, outer.span_id);
                info_span!("inner").in_scope(|| {
                    let inner = current_span_key().unwrap();
                    assert_eq!((inner.trace_id, inner.local_root), (outer.trace_id, outer.span_id));
                    assert_ne!(inner.span_id, outer.span_id);
                    trace_span!("fine").in_scope(|| assert_eq!(current_span_key(), Some(inner)));
                    tracing::error!("broken");
                });
                assert_eq!(current_span_key(), Some(outer));
            });
            assert_eq!(current_span_key(), None);
            let polled = async { current_span_key() }.instrument(request);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            assert_eq!(runtime.block_on(polled).unwrap().span_id, parse_hex("b7ad6b7169203331").unwrap());
        });
        let trace_id = parse_hex(trace).unwrap();
        let ended: Vec<_> = take_ended_requests().0.into_iter().filter(|end| end.trace_id == trace_id).collect();
        assert_eq!(ended.len(), 1);
        assert!(ended[0].outcome.is_error);
    }

    /// Scenario: ids that are not hexadecimal, have the wrong length, or are all zero.
    /// Guarantee: they are refused rather than misread.
    #[test]
    fn malformed_ids_are_refused() {
        assert_eq!(parse_hex::<8>("b7ad6b716920333"), None);
        assert_eq!(parse_hex::<8>("zzad6b7169203331"), None);
        assert_eq!(parse_hex::<8>("0000000000000000"), None);
        assert!(parse_hex::<8>("b7ad6b7169203331").is_some());
    }
}
