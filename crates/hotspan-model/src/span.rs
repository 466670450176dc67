//! A span and what surrounds it, as OTLP has them, borrowed from the request they came in.

use crate::attribute::Attribute;
use crate::entity_ref::EntityRef;
use crate::ids::{SpanId, TraceId};

/// What produced a group of spans or profiles.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resource<'a> {
    /// Attributes, `service.name` among them.
    pub attributes: Vec<Attribute<'a>>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// The schema that the attributes follow, or empty.
    pub schema_url: &'a str,
    /// The entities that the attributes tell of.
    pub entity_refs: Vec<EntityRef<'a>>,
}

/// The instrumentation scope of a group of spans or profiles.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope<'a> {
    /// Name of the instrumentation.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Attributes of the scope.
    pub attributes: Vec<Attribute<'a>>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// The schema that the data in this scope follows, or empty.
    pub schema_url: &'a str,
}

/// One operation of one service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Span<'a> {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// Its own id, unique in the trace.
    pub span_id: SpanId,
    /// The span that called it; none for a root.
    pub parent_id: Option<SpanId>,
    /// W3C trace state.
    pub trace_state: &'a str,
    /// W3C trace flags in the low 8 bits, and OTLP's own bits above.
    pub flags: u32,
    /// Operation name.
    pub name: &'a str,
    /// Role of the span in a call.
    pub kind: SpanKind,
    /// Start in nanoseconds since 1970.
    pub start: i64,
    /// End in nanoseconds since 1970; may lie before the start when a clock jumped.
    pub end: i64,
    /// Attributes.
    pub attributes: Vec<Attribute<'a>>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// Events in the order sent.
    pub events: Vec<Event<'a>>,
    /// How many events the sender left out.
    pub dropped_events_count: u32,
    /// Links in the order sent.
    pub links: Vec<SpanLink<'a>>,
    /// How many links the sender left out.
    pub dropped_links_count: u32,
    /// Outcome.
    pub status: StatusCode,
    /// Description of the outcome.
    pub status_message: &'a str,
}

/// Something that happened at a moment of a span.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event<'a> {
    /// When, in nanoseconds since 1970.
    pub time: i64,
    /// Its name, `exception` for instance.
    pub name: &'a str,
    /// Attributes.
    pub attributes: Vec<Attribute<'a>>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
}

/// A pointer from one span to another, in this trace or in another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpanLink<'a> {
    /// The other trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// W3C trace state of the other span.
    pub trace_state: &'a str,
    /// Attributes.
    pub attributes: Vec<Attribute<'a>>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// Trace flags of the other span.
    pub flags: u32,
}

/// The role of a span in a call; numbers as in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(i8)]
pub enum SpanKind {
    /// Not said.
    #[default]
    Unspecified = 0,
    /// Inside one service.
    Internal = 1,
    /// Answers a remote call.
    Server = 2,
    /// Makes a remote call.
    Client = 3,
    /// Sends a message.
    Producer = 4,
    /// Receives a message.
    Consumer = 5,
}

impl SpanKind {
    /// The kind with this OTLP number; numbers of the future become `Unspecified`.
    pub fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            4 => Self::Producer,
            5 => Self::Consumer,
            _ => Self::Unspecified,
        }
    }
}

/// The outcome of a span; numbers as in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(i8)]
pub enum StatusCode {
    /// Not said.
    #[default]
    Unset = 0,
    /// Explicitly fine.
    Ok = 1,
    /// Failed.
    Error = 2,
}

impl StatusCode {
    /// The code with this OTLP number; numbers of the future become `Unset`.
    pub fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Ok,
            2 => Self::Error,
            _ => Self::Unset,
        }
    }
}

/// Takes spans as they are read. A resource is announced before its scopes, a scope before its spans.
pub trait TraceSink {
    /// What the following spans were produced by.
    fn resource(&mut self, resource: &Resource<'_>);
    /// What the following spans were recorded by.
    fn scope(&mut self, scope: &Scope<'_>);
    /// A span of the resource and scope announced last.
    fn span(&mut self, span: &Span<'_>);
}
