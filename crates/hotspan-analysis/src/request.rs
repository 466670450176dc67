//! One request as the analysis sees it: the span in question with everything below it, and the samples of those spans.

use hotspan_model::{LinkStrength, SpanId, SpanKind, TraceId};

use crate::vocabulary::{OperationId, StackId, TextId};

/// A request: what is explained, compared and resampled.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Its trace.
    pub trace_id: TraceId,
    /// The span in question first; parents stand before their children.
    pub spans: Vec<RequestSpan>,
    /// Samples of these spans.
    pub samples: Vec<RequestSample>,
}

impl Request {
    /// How long the span in question took.
    pub fn duration(&self) -> i64 {
        self.spans.first().map_or(0, |span| (span.end - span.start).max(0))
    }
}

/// A span of a request.
#[derive(Debug, Clone)]
pub struct RequestSpan {
    /// Its id.
    pub span_id: SpanId,
    /// Index of the caller in [`Request::spans`]; none for the span in question.
    pub parent: Option<u32>,
    /// What it does.
    pub operation: OperationId,
    /// Its role in a call.
    pub role: SpanKind,
    /// The machine or process whose clock it was timed with.
    pub clock: TextId,
    /// Start in nanoseconds since 1970.
    pub start: i64,
    /// End; not before the start.
    pub end: i64,
    /// Whether it failed.
    pub failed: bool,
    /// Attributes of the span and its resource.
    pub attributes: Vec<(TextId, AttributeValue)>,
}

/// The value of an attribute, as far as slow and fast requests can be told apart by it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttributeValue {
    /// A text or a truth value.
    Text(TextId),
    /// A number.
    Number(f64),
}

/// What a sample measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Time on a CPU.
    Cpu,
    /// Time off the CPU.
    OffCpu,
    /// Time, on the CPU or off it.
    Wall,
    /// Time waiting for a lock, as the lock saw it.
    Lock,
    /// Time in which an asynchronous span was not polled.
    Parked,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::OffCpu, Self::Wall, Self::Lock, Self::Parked];

    /// The short name of the profile type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off_cpu",
            Self::Wall => "wall",
            Self::Lock => "lock",
            Self::Parked => "span_parked",
        }
    }
}

/// A sample of one of the request's spans.
#[derive(Debug, Clone, Copy)]
pub struct RequestSample {
    /// Index of its span in [`Request::spans`].
    pub span: u32,
    /// What was running or waiting.
    pub stack: StackId,
    /// What it measures.
    pub measure: Measure,
    /// When, where the source says so.
    pub time: Option<i64>,
    /// Nanoseconds.
    pub value: i64,
    /// How it came to its span.
    pub link: LinkStrength,
}
