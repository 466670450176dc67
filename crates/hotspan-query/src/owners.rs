//! Whose samples are asked for, and how a sample is told to be one of them.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::IdSet;
use hotspan_model::{LinkStrength, SpanId, TraceId};

use crate::inferred::ThreadTimes;
use crate::inherited::Inheritance;
use crate::process::{ProcessTime, covers, united};
use crate::series::SeriesEntry;

/// A span of a trace. Without a trace, a span of that id in any trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanKey {
    /// Its trace, if it is known.
    pub trace_id: Option<TraceId>,
    /// Its own id.
    pub span_id: SpanId,
}

/// Whose samples are asked for. This is part of a question, so it says nothing of what it rests on: the answer does.
#[derive(Debug, Clone)]
pub enum SampleOwners {
    /// Samples that name one of these spans. Those that name the span but no trace count too.
    Spans(Vec<SpanKey>),
    /// Samples that name one of these traces, with a span or without, or no trace but a span that one of them has.
    Traces(Vec<TraceId>),
    /// Samples that these processes gave at these times, whatever they name.
    Processes(Vec<ProcessTime>),
    /// Samples of spans, where those that name a local root may belong to a span below it.
    Heirs(Arc<Inheritance>),
    /// Samples that name nothing, and were taken on the threads of spans while these ran.
    Threads(Arc<ThreadTimes>),
    /// Samples of any of these. They must not overlap.
    Several(Vec<SampleOwners>),
    /// Every sample, whatever it names.
    Everybody,
}

impl SampleOwners {
    /// The parts that are read one after another.
    pub(crate) fn parts(&self) -> &[Self] {
        match self {
            Self::Several(parts) => parts,
            single => std::slice::from_ref(single),
        }
    }

    /// Whether nobody is asked for.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Spans(spans) => spans.is_empty(),
            Self::Traces(traces) => traces.is_empty(),
            Self::Processes(processes) => processes.is_empty(),
            Self::Heirs(inheritance) => inheritance.is_empty(),
            Self::Threads(threads) => threads.is_empty(),
            Self::Several(parts) => parts.iter().all(Self::is_empty),
            Self::Everybody => false,
        }
    }
}

/// A sample, as far as it tells whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleClaim<'r> {
    /// Which series it is of.
    pub(crate) series: usize,
    pub(crate) time: i64,
    pub(crate) timed: bool,
    pub(crate) trace: Option<TraceId>,
    pub(crate) span: Option<SpanId>,
    pub(crate) thread_id: Option<i64>,
    /// Empty if not known.
    pub(crate) thread_name: &'r str,
}

/// The trace and span that a sample belongs to, and how surely.
pub(crate) type Owner = (Option<TraceId>, Option<SpanId>, LinkStrength);

/// The trace and span that somebody names.
pub(crate) type NamedOwner = (Option<TraceId>, Option<SpanId>);

/// Decides whether a sample belongs to somebody who is asked for.
pub(crate) enum OwnerFilter {
    /// By the span that it names.
    Spans {
        /// The trace of each span; `None` stands for any.
        first: HashMap<SpanId, Option<TraceId>>,
        /// Spans whose id occurs in several traces.
        others: HashSet<(TraceId, SpanId)>,
    },
    /// By the trace that it names, or the span if it names no trace.
    Traces { traces: HashSet<TraceId>, spans: HashMap<SpanId, TraceId> },
    /// By series and time; the times stand in the order of the series.
    Times(Vec<Vec<(i64, i64)>>),
    /// By the span that it names, or one below that.
    Heirs(Arc<Inheritance>),
    /// By series, thread and time: for each series, which processes it can come from.
    Threads(Arc<ThreadTimes>, Vec<Vec<usize>>),
    /// All.
    Everybody,
}

impl OwnerFilter {
    /// Samples of traces, the spans of which are known.
    pub(crate) fn of_traces(traces: &[TraceId], spans: HashMap<SpanId, TraceId>) -> Self {
        Self::Traces { traces: traces.iter().copied().collect(), spans }
    }

    pub(crate) fn new(owners: &SampleOwners, series: &[SeriesEntry]) -> Self {
        match owners {
            SampleOwners::Everybody | SampleOwners::Several(_) => Self::Everybody,
            SampleOwners::Traces(traces) => Self::of_traces(traces, HashMap::new()),
            SampleOwners::Heirs(inheritance) => Self::Heirs(Arc::clone(inheritance)),
            SampleOwners::Threads(threads) => {
                let processes = series.iter().map(|entry| threads.processes_of(&entry.labels)).collect();
                Self::Threads(Arc::clone(threads), processes)
            }
            SampleOwners::Processes(processes) => {
                let times = |entry: &SeriesEntry| {
                    let fitting = processes.iter().filter(|process| process.process.may_have(&entry.labels));
                    united(fitting.flat_map(|process| process.times.iter().copied()).collect())
                };
                Self::Times(series.iter().map(times).collect())
            }
            SampleOwners::Spans(spans) => {
                let mut first: HashMap<SpanId, Option<TraceId>> = HashMap::with_capacity(spans.len());
                let mut others = HashSet::new();
                for key in spans {
                    let known = first.entry(key.span_id).or_insert(key.trace_id);
                    match (key.trace_id, *known) {
                        (None, _) => *known = None,
                        (Some(trace), Some(other)) if trace != other => {
                            others.insert((trace, key.span_id));
                        }
                        _ => {}
                    }
                }
                Self::Spans { first, others }
            }
        }
    }

    /// The ids that samples are found by; none if they are found by time.
    pub(crate) fn id_set(&self) -> Option<Arc<IdSet>> {
        match self {
            Self::Spans { first, .. } => Some(Arc::new(IdSet::spans(first.keys().copied()))),
            Self::Traces { traces, spans } => {
                Some(Arc::new(IdSet::traces(traces.iter().copied()).or(IdSet::spans(spans.keys().copied()))))
            }
            Self::Heirs(inheritance) => Some(Arc::new(IdSet::spans(inheritance.named_spans()))),
            Self::Times(_) | Self::Threads(..) | Self::Everybody => None,
        }
    }

    /// Whether it looks at threads.
    pub(crate) fn needs_threads(&self) -> bool {
        matches!(self, Self::Heirs(_) | Self::Threads(..))
    }

    /// The owner of something that is known by ids alone, if it is asked for.
    pub(crate) fn named_owner(&self, trace: Option<TraceId>, span: Option<SpanId>) -> Option<NamedOwner> {
        let claim = SampleClaim { series: 0, time: 0, timed: false, trace, span, thread_id: None, thread_name: "" };
        self.owner(&claim).map(|(trace, span, _)| (trace, span))
    }

    /// The owner of a sample, if it is asked for.
    pub(crate) fn owner(&self, claim: &SampleClaim<'_>) -> Option<Owner> {
        let exact = |trace, span| Some((trace, span, LinkStrength::Exact));
        match self {
            Self::Everybody => exact(claim.trace, claim.span),
            Self::Times(times) if covers(times.get(claim.series)?, claim.time) => exact(claim.trace, claim.span),
            Self::Times(_) => None,
            Self::Traces { traces, spans } => match claim.trace {
                Some(trace) if traces.contains(&trace) => exact(Some(trace), claim.span),
                Some(_) => None,
                None => exact(Some(*spans.get(&claim.span?)?), claim.span),
            },
            Self::Heirs(inheritance) => inheritance.owner(claim),
            Self::Threads(threads, processes) => threads.owner(processes.get(claim.series)?, claim),
            Self::Spans { first, others } => {
                let span = claim.span?;
                let first = *first.get(&span)?;
                match (claim.trace, first) {
                    (trace, None) => exact(trace, Some(span)),
                    (None, first) => exact(first, Some(span)),
                    (Some(trace), Some(first)) if trace == first || others.contains(&(trace, span)) => {
                        exact(Some(trace), Some(span))
                    }
                    _ => None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(trace: Option<u8>, span: u8) -> SpanKey {
        SpanKey { trace_id: trace.map(|trace| TraceId([trace; 16])), span_id: SpanId([span; 8]) }
    }

    /// Scenario: spans with equal ids in two traces, a span of any trace, samples that name no trace.
    /// Guarantee: a sample belongs to the span of its own trace; without a trace, to the span that was asked for.
    #[test]
    fn owners_of_samples() {
        let (trace, span) = (|number: u8| Some(TraceId([number; 16])), |number: u8| Some(SpanId([number; 8])));
        let owner = |filter: &OwnerFilter, trace, span| filter.named_owner(trace, span);
        let spans = vec![key(Some(1), 7), key(Some(2), 7), key(None, 8), key(Some(3), 9)];
        let filter = OwnerFilter::new(&SampleOwners::Spans(spans), &[]);
        assert_eq!(owner(&filter, trace(1), span(7)), Some((trace(1), span(7))));
        assert_eq!(owner(&filter, trace(2), span(7)), Some((trace(2), span(7))));
        assert_eq!(owner(&filter, trace(3), span(7)), None);
        assert_eq!(owner(&filter, None, span(9)), Some((trace(3), span(9))));
        assert_eq!(owner(&filter, trace(5), span(8)), Some((trace(5), span(8))));
        assert_eq!(owner(&filter, trace(3), None), None);
        let filter = OwnerFilter::new(&SampleOwners::Traces(vec![TraceId([1; 16])]), &[]);
        assert_eq!(owner(&filter, trace(1), None), Some((trace(1), None)));
        assert_eq!(owner(&filter, trace(2), span(7)), None);
        assert_eq!(owner(&filter, None, span(7)), None);
        let spans = HashMap::from_iter([(SpanId([7; 8]), TraceId([1; 16]))]);
        let filter = OwnerFilter::of_traces(&[TraceId([1; 16])], spans);
        assert_eq!(owner(&filter, None, span(7)), Some((trace(1), span(7))));
        assert_eq!(owner(&filter, trace(2), span(7)), None);
        assert_eq!(owner(&filter, None, span(8)), None);
        assert_eq!(owner(&filter, None, None), None);
    }
}
