//! A span while it runs: the calling thread works on it until it is dropped, and every sample taken meanwhile is its own.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hotspan_profiler::{Ctx, CtxGuard};
use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span as OtlpSpan, Status};

use super::{Release, SpanQueue};
use crate::mesh::Service;
use crate::random::random_u64;

/// On which side of a call a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Server,
    Client,
    Internal,
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Truth(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Value {
        Value::Whole(i64::from(number))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Fraction(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Truth(truth)
    }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => OtlpValue::StringValue(text),
        Value::Whole(number) => OtlpValue::IntValue(number),
        Value::Fraction(number) => OtlpValue::DoubleValue(number),
        Value::Truth(truth) => OtlpValue::BoolValue(truth),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// What a span hands to the other side of a call, as `traceparent` would.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
}

/// A running span.
#[derive(Debug)]
pub(crate) struct Span {
    release: Release,
    queue: Arc<SpanQueue>,
    started: Instant,
    otlp: OtlpSpan,
    context: Ctx,
    _inside: CtxGuard,
}

impl Span {
    /// Begins a trace.
    pub(crate) fn begin_trace(queue: &Arc<SpanQueue>, release: Release, name: &str, kind: Kind) -> Span {
        let (trace_id, span_id) = (new_trace_id(), new_span_id(release.service));
        Span::begin(queue, release, name, kind, None, Ctx::for_request(trace_id, span_id))
    }

    /// Begins what a service does for a call.
    pub(crate) fn serve(queue: &Arc<SpanQueue>, release: Release, name: &str, parent: Parent) -> Span {
        let context = Ctx::for_request(parent.trace_id, new_span_id(release.service));
        Span::begin(queue, release, name, Kind::Server, Some(parent), context)
    }

    /// Begins a part of what this span does, on the same thread.
    pub(crate) fn child(&self, name: &str, kind: Kind) -> Span {
        let context = self.context.child(new_span_id(self.release.service));
        Span::begin(&self.queue, self.release, name, kind, Some(self.as_parent()), context)
    }

    fn begin(
        queue: &Arc<SpanQueue>,
        release: Release,
        name: &str,
        kind: Kind,
        parent: Option<Parent>,
        context: Ctx,
    ) -> Span {
        let kind = match kind {
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
            Kind::Internal => SpanKind::Internal,
        };
        let otlp = OtlpSpan {
            trace_id: context.trace_id().unwrap_or_default().to_vec(),
            span_id: context.span_id().unwrap_or_default().to_vec(),
            parent_span_id: parent.map(|parent| parent.span_id.to_vec()).unwrap_or_default(),
            name: name.to_owned(),
            kind: kind as i32,
            flags: 0x101,
            start_time_unix_nano: unix_nanos(),
            ..OtlpSpan::default()
        };
        let inside = context.attach();
        Span { release, queue: Arc::clone(queue), started: Instant::now(), otlp, context, _inside: inside }
    }

    /// What a called service needs to go on with this trace.
    pub(crate) fn as_parent(&self) -> Parent {
        Parent {
            trace_id: self.context.trace_id().unwrap_or_default(),
            span_id: self.context.span_id().unwrap_or_default(),
        }
    }

    /// Sets an attribute.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.otlp.attributes.push(attribute(key, value.into()));
    }

    /// Notes something that happened now.
    pub(crate) fn event<const N: usize>(&mut self, name: &str, attributes: [(&str, Value); N]) {
        self.otlp.events.push(Event {
            time_unix_nano: self.now(),
            name: name.to_owned(),
            attributes: attributes.into_iter().map(|(key, value)| attribute(key, value)).collect(),
            ..Event::default()
        });
    }

    /// Marks the span as failed.
    pub(crate) fn fail(&mut self, kind: &str, message: &str) {
        self.otlp.status = Some(Status { message: message.to_owned(), code: StatusCode::Error as i32 });
        self.set("error.type", kind);
        self.event("exception", [("exception.type", kind.into()), ("exception.message", message.into())]);
    }

    /// Time since it began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The trace's id as hexadecimal digits.
    pub(crate) fn trace_id_text(&self) -> String {
        self.otlp.trace_id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// By the monotonic clock, so that a step of the wall clock never makes a span end before it began.
    fn now(&self) -> u64 {
        self.otlp.start_time_unix_nano + u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(0)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.otlp.end_time_unix_nano = self.now();
        self.queue.push((self.release, std::mem::take(&mut self.otlp)));
    }
}

fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn new_trace_id() -> [u8; 16] {
    let (high, low) = (random_u64() | 1, random_u64());
    ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
}

/// The last byte holds the service's number, by which `profiles` knows whose a sample is; the rest is random.
fn new_span_id(service: Service) -> [u8; 8] {
    let mut id = random_u64().to_be_bytes();
    // W3C forbids an id of zeros.
    id[0] |= 1;
    id[7] = service.number();
    id
}

/// The service that made a span.
pub(super) fn service_of_span(span_id: &[u8]) -> Option<Service> {
    Service::ALL.into_iter().find(|service| span_id.len() == 8 && span_id[7] == service.number())
}
