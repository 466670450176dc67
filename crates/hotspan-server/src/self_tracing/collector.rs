//! A `tracing` layer that keeps the server's own finished spans until the feed takes them.

use std::sync::{Arc, Mutex, PoisonError};

use hotspan_lake::catalog::now_nanos;
use hotspan_model::{SpanId, SpanKind, StatusCode, TraceId, Value};
use hotspan_profiler::span_ids;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::SelfTracingCounters;

/// Spans that may wait for the feed, which comes every second.
const MAX_WAITING: usize = 4096;
/// The longest text of an attribute.
const MAX_TEXT: usize = 1024;

/// A span of the server.
#[derive(Debug, Clone)]
pub(super) struct OwnSpan {
    pub(super) trace_id: TraceId,
    pub(super) span_id: SpanId,
    pub(super) parent_id: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) status: StatusCode,
    pub(super) attributes: Vec<(&'static str, Value<'static>)>,
}

/// Finished spans.
#[derive(Debug)]
pub(super) struct Finished {
    spans: Mutex<Vec<OwnSpan>>,
    counters: Arc<SelfTracingCounters>,
}

impl Finished {
    pub(super) fn new(counters: Arc<SelfTracingCounters>) -> Self {
        Self { spans: Mutex::default(), counters }
    }

    fn push(&self, span: OwnSpan) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < MAX_WAITING {
            spans.push(span);
        } else {
            SelfTracingCounters::add(&self.counters.dropped, 1);
        }
    }

    /// What has finished since the last call.
    pub(super) fn take(&self) -> Vec<OwnSpan> {
        std::mem::take(&mut *self.spans.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The layer. It comes after the profiler's, which gives spans their ids.
#[derive(Debug)]
pub(super) struct SpanCollector {
    finished: Arc<Finished>,
}

impl SpanCollector {
    pub(super) fn new(finished: Arc<Finished>) -> Self {
        Self { finished }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanCollector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let Some(ids) = span_ids(&span) else { return };
        let parent_id = span.parent().and_then(|parent| span_ids(&parent)).map(|ids| SpanId(ids.span_id));
        let mut own = OwnSpan {
            trace_id: TraceId(ids.trace_id),
            span_id: SpanId(ids.span_id),
            parent_id,
            name: attributes.metadata().name().to_owned(),
            kind: SpanKind::Internal,
            start: now_nanos(),
            end: 0,
            status: StatusCode::Unset,
            attributes: Vec::new(),
        };
        attributes.record(&mut FieldsOf(&mut own));
        span.extensions_mut().insert(own);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(own) = span.extensions_mut().get_mut::<OwnSpan>()
        {
            values.record(&mut FieldsOf(own));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let own = context.span(&id).and_then(|span| span.extensions_mut().remove::<OwnSpan>());
        if let Some(mut own) = own {
            own.end = now_nanos();
            self.finished.push(own);
        }
    }
}

/// Fields become attributes, but for those that say something about the span itself.
struct FieldsOf<'s>(&'s mut OwnSpan);

impl FieldsOf<'_> {
    fn set(&mut self, field: &Field, value: Value<'static>) {
        self.0.attributes.push((field.name(), value));
    }
}

impl Visit for FieldsOf<'_> {
    fn record_str(&mut self, field: &Field, text: &str) {
        match field.name() {
            "otel.name" => text.clone_into(&mut self.0.name),
            "otel.kind" if text == "server" => self.0.kind = SpanKind::Server,
            "otel.status_code" if text == "ERROR" => self.0.status = StatusCode::Error,
            "parent_span_id" => self.0.parent_id = hotspan_formats::span_identity::parse_span_id(text),
            // The profiler's layer has read these.
            "trace_id" | "span_id" => {}
            _ => {
                let end = text.floor_char_boundary(MAX_TEXT);
                self.set(field, Value::String(text[..end].to_owned().into()));
            }
        }
    }

    fn record_i64(&mut self, field: &Field, number: i64) {
        self.set(field, Value::Int(number));
    }

    fn record_u64(&mut self, field: &Field, number: u64) {
        self.set(field, Value::Int(i64::try_from(number).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, is_true: bool) {
        self.set(field, Value::Bool(is_true));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
