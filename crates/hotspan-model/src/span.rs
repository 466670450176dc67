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
pub enum SpanKind {
    /// Not said.
    #[default]
    Unspecified,
    /// Inside one service.
    Internal,
    /// Answers a remote call.
    Server,
    /// Makes a remote call.
    Client,
    /// Sends a message.
    Producer,
    /// Receives a message.
    Consumer,
    /// Something that OTLP says today and did not when this was written.
    Other(Unlisted),
}

/// A number that OTLP's list does not have. Only the numbers of others become one, so that everything has one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unlisted(i8);

impl SpanKind {
    /// The kind with this OTLP number.
    pub const fn from_number(number: i8) -> Self {
        match number {
            0 => Self::Unspecified,
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            4 => Self::Producer,
            5 => Self::Consumer,
            other => Self::Other(Unlisted(other)),
        }
    }

    /// Its OTLP number.
    pub const fn number(self) -> i8 {
        match self {
            Self::Unspecified => 0,
            Self::Internal => 1,
            Self::Server => 2,
            Self::Client => 3,
            Self::Producer => 4,
            Self::Consumer => 5,
            Self::Other(Unlisted(number)) => number,
        }
    }

    /// Its name in OTLP, if it has one.
    pub const fn otlp_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Unspecified => "SPAN_KIND_UNSPECIFIED",
            Self::Internal => "SPAN_KIND_INTERNAL",
            Self::Server => "SPAN_KIND_SERVER",
            Self::Client => "SPAN_KIND_CLIENT",
            Self::Producer => "SPAN_KIND_PRODUCER",
            Self::Consumer => "SPAN_KIND_CONSUMER",
            Self::Other(_) => return None,
        })
    }
}

/// The outcome of a span; numbers as in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StatusCode {
    /// Not said.
    #[default]
    Unset,
    /// Explicitly fine.
    Ok,
    /// Failed.
    Error,
    /// Something that OTLP says today and did not when this was written.
    Other(Unlisted),
}

impl StatusCode {
    /// The code with this OTLP number.
    pub const fn from_number(number: i8) -> Self {
        match number {
            0 => Self::Unset,
            1 => Self::Ok,
            2 => Self::Error,
            other => Self::Other(Unlisted(other)),
        }
    }

    /// Its OTLP number.
    pub const fn number(self) -> i8 {
        match self {
            Self::Unset => 0,
            Self::Ok => 1,
            Self::Error => 2,
            Self::Other(Unlisted(number)) => number,
        }
    }

    /// Its name in OTLP, if it has one.
    pub const fn otlp_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Unset => "STATUS_CODE_UNSET",
            Self::Ok => "STATUS_CODE_OK",
            Self::Error => "STATUS_CODE_ERROR",
            Self::Other(_) => return None,
        })
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
