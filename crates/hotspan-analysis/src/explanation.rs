//! The answer of `explain`, as it is sent: what docs/explain.md describes field by field.

use serde::Serialize;

use crate::calls::CallChange;
use crate::clock_skew::ClockSkew;
use crate::comparison::Comparison;
use crate::moved::Moved;
use crate::patterns::Pattern;
use crate::separating::Separating;

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There are causes.
    Found,
    /// The requests do not differ, or nothing that was measured explains why.
    Nothing,
    /// Too little was measured to tell.
    NotEnoughData,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// What came out.
    pub verdict: Verdict,
    /// The causes, the one that surely costs most first. They do not overlap.
    pub causes: Vec<Cause>,
    /// Where most of the time goes, whatever others do; told where there are no causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widest: Option<Widest>,
    /// The requests in question.
    pub slow: SideSummary,
    /// Those they are compared with.
    pub fast: SideSummary,
    /// Milliseconds that a request in question takes longer.
    pub delta_ms: f64,
    /// The interval of 95 % of that.
    pub interval_ms: [f64; 2],
    /// Whether they take longer beyond chance.
    pub is_slower: bool,
    /// The smallest difference a request that could have been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_visible_ms: Option<f64>,
    /// Where the time of a request goes; the parts add up to the duration.
    pub ledger: LedgerSummary,
    /// The operations that delay the answer, callers before callees.
    pub critical_path: Vec<PathStep>,
    /// What the answer rests on.
    pub coverage: Coverage,
    /// Cost that went from one function to another without making a difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
    /// Whether a change helped, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// What to know besides, for a person.
    pub notes: Vec<String>,
}

/// A cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What its time is spent on: cpu, lock, io, gc, downstream, scheduling or waiting.
    pub kind: &'static str,
    /// The service it is in.
    pub service: String,
    /// The operation it is in.
    pub operation: String,
    /// The service that the operation calls, where it is a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callee: Option<String>,
    /// The function to look at, of own code where there is any; none if the operation as a whole is the cause.
    pub function: Option<String>,
    /// Its file.
    pub file: Option<String>,
    /// The line of it that costs most.
    pub line: Option<u32>,
    /// Functions of libraries that it spends the time in, callers first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// Milliseconds in a slow request, on average.
    pub slow_ms: f64,
    /// Milliseconds in a fast request.
    pub fast_ms: f64,
    /// The difference.
    pub delta_ms: f64,
    /// The interval of 95 % of the difference.
    pub interval_ms: [f64; 2],
    /// The part of the whole difference that this is. Shares add up to at most one.
    pub share: f64,
    /// Slow requests that have it.
    pub spans: usize,
    /// Samples behind it, on both sides.
    pub samples: u64,
    /// For time on the CPU: what of the difference was spent waiting for one, since the machine was busy.
    #[serde(skip_serializing_if = "is_nothing")]
    pub waiting_for_cpu_ms: f64,
    /// The most telling pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// All patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
    /// What usually helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helps: Option<&'static str>,
    /// More calls or slower calls, where the number of calls changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallChange>,
    /// Which requests: attributes that slow ones have.
    #[serde(rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Separating>,
    /// Traces in which it costs most.
    pub traces: Vec<String>,
    /// Where to see it.
    pub link: String,
}

fn is_nothing(value: &f64) -> bool {
    *value == 0.0
}

/// Where most of the time goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Widest {
    /// The service.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// The function of own code, where samples tell.
    pub function: Option<String>,
    /// Its file.
    pub file: Option<String>,
    /// The line of it that costs most.
    pub line: Option<u32>,
    /// Milliseconds a request.
    pub ms: f64,
    /// The part of the duration that this is.
    pub share: f64,
}

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SideSummary {
    /// Requests that were looked at.
    pub spans: usize,
    /// How many of them have samples.
    pub with_samples: usize,
    /// Samples on the critical path.
    pub samples: u64,
    /// Mean duration.
    pub mean_ms: f64,
    /// Median duration.
    pub p50_ms: f64,
    /// Duration that one in twenty exceeds.
    pub p95_ms: f64,
    /// Duration that one in a hundred exceeds.
    pub p99_ms: f64,
}

/// Where the time goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerSummary {
    /// Mean duration of a request in question.
    pub duration_ms: f64,
    /// Mean duration of one it is compared with.
    pub fast_duration_ms: f64,
    /// The parts, which add up to the durations.
    pub parts: Vec<LedgerPart>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerPart {
    /// cpu, gc, lock, io, scheduling, waiting, downstream, unexplained; child where child spans are not looked into.
    pub kind: &'static str,
    /// Which child, for children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Milliseconds in a request in question, on average. May be negative by chance where there are few samples.
    pub ms: f64,
    /// The same in a request that it is compared with.
    pub fast_ms: f64,
    /// The difference.
    pub delta_ms: f64,
}

/// An operation on the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStep {
    /// The service.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// The service that it calls, where it is a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callee: Option<String>,
    /// How many operations above it lie on the path.
    pub depth: usize,
    /// Milliseconds of its own on the path, without its callees, in a request in question.
    pub ms: f64,
    /// The same in a request that it is compared with.
    pub fast_ms: f64,
    /// The part of the duration that this is.
    pub share: f64,
    /// How often it is called in a request in question.
    pub calls: f64,
}

/// What the answer rests on, and what it does not see.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Coverage {
    /// Share of the time of requests in question that is explained.
    pub explained: f64,
    /// Share of the time of all requests that is in samples: what `exactness.coverage` is in every answer.
    pub sampled: f64,
    /// Samples that name their span.
    pub exact_samples: u64,
    /// Samples that name the local root and were given to a child by thread and time.
    pub inherited_samples: u64,
    /// Samples that were matched by thread and time alone.
    pub inferred_samples: u64,
    /// Share of the time seen in functions without a name.
    pub unsymbolised: f64,
    /// Share of the time seen by samples without a time of their own, counted by the critical share of their span.
    pub estimated: f64,
    /// Time between two samples of CPU profiles, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_period_ms: Option<f64>,
    /// Services on the path with the profile types that were seen.
    pub services: Vec<ServiceCoverage>,
    /// Spans and samples of this time that were rejected when they came, as far as is known.
    pub dropped: u64,
    /// Clocks that were corrected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clock_skew: Vec<ClockSkew>,
    /// Requests that matched, before they were thinned out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<Matched>,
}

/// How many requests there are of which some were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Matched {
    /// In question.
    pub slow: usize,
    /// Compared with.
    pub fast: usize,
}

/// What was seen of a service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceCoverage {
    /// The service.
    pub service: String,
    /// Milliseconds that it has on the critical path, in a request in question or compared with, on average.
    pub ms: f64,
    /// Profile types with samples of these requests.
    pub profiles: Vec<&'static str>,
}
