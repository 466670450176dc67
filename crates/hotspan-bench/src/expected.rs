//! The right answers, kept while the data is made.

use std::collections::{HashMap, HashSet};

use hotspan_generator::workload::{GeneratedSpan, RARE_ATTRIBUTE};
use hotspan_generator::{Oracle, OracleDetail, SampleKind, Window, Workload};
use hotspan_model::{SpanKind, StatusCode, TraceId};

/// An hour, which most questions are about.
pub(crate) const HOUR: i64 = 3_600_000_000_000;
/// The service that questions about one service name.
pub(crate) const SERVICE: u16 = 4;
/// The service that every trace begins in, which has the most spans.
pub(crate) const FRONT: u16 = 0;
/// Every so many traces are remembered, to be looked up.
const PROBED_TRACES: u64 = 100;

/// TraceQL searches whose matching traces are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    ServiceAndDuration,
    RareAttribute,
    Regex,
    Count,
    Structural,
}

impl Search {
    pub(crate) const ALL: [Self; 5] =
        [Self::ServiceAndDuration, Self::RareAttribute, Self::Regex, Self::Count, Self::Structural];

    pub(crate) fn query(self, service: &str) -> String {
        match self {
            Self::ServiceAndDuration => format!("{{ resource.service.name = \"{service}\" && duration > 500ms }}"),
            Self::RareAttribute => format!("{{ span.{} = \"{}\" }}", RARE_ATTRIBUTE.0, RARE_ATTRIBUTE.1),
            Self::Regex => "{ name =~ \"GET /api/v.*/orders.*\" && status = error }".to_owned(),
            Self::Count => "{ kind = server && status = error } | count() > 1".to_owned(),
            Self::Structural => "{ resource.service.name = \"api-gateway\" } >> { status = error }".to_owned(),
        }
    }

    /// Whether a trace matches. Its spans stand parents first.
    fn matches(self, trace: &[GeneratedSpan<'_>]) -> bool {
        let failed = |span: &GeneratedSpan<'_>| span.span.status == StatusCode::Error;
        match self {
            Self::ServiceAndDuration => {
                trace.iter().any(|span| span.service == SERVICE && span.span.end - span.span.start > 500_000_000)
            }
            Self::RareAttribute => trace.iter().any(|span| span.rare),
            Self::Regex => trace.iter().any(|span| {
                let name = span.span.name.strip_prefix("GET /api/v");
                failed(span) && name.is_some_and(|rest| rest.contains("/orders"))
            }),
            Self::Count => trace.iter().filter(|span| failed(span) && span.span.kind == SpanKind::Server).count() > 1,
            Self::Structural => {
                // Ids of spans at or below the gateway, which is the first service.
                let mut below = HashSet::new();
                trace.iter().any(|span| {
                    let is_below = span.span.parent_id.is_some_and(|parent| below.contains(&parent));
                    if is_below || span.service == 0 {
                        below.insert(span.span.span_id);
                    }
                    is_below && failed(span)
                })
            }
        }
    }
}

/// Spans that take longer than others, and the CPU time of the samples that name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlowestSpans {
    /// In nanoseconds; negative if all count.
    pub(crate) longer_than: i64,
    pub(crate) count: u64,
    pub(crate) value: i64,
}

impl SlowestSpans {
    /// The TraceQL that selects them.
    pub(crate) fn query(self, service: &str) -> String {
        match self.longer_than {
            ..0 => format!("{{ resource.service.name = \"{service}\" }}"),
            nanos => format!("{{ resource.service.name = \"{service}\" && duration > {nanos}ns }}"),
        }
    }
}

/// Sums, and traces that searches find.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) oracle: Oracle,
    /// Start of the data.
    pub(crate) from: i64,
    /// End of the first hour, or of the data if there is less.
    pub(crate) hour_end: i64,
    /// End of the data.
    pub(crate) until: i64,
    matching: [HashSet<TraceId>; Search::ALL.len()],
    /// Spans of [`SERVICE`] and [`FRONT`] that start in the first hour: their durations, and the CPU time of the samples
    /// that name them.
    cohorts: HashMap<u16, Vec<(i64, i64)>>,
}

impl Expected {
    pub(crate) fn new(workload: &Workload) -> Self {
        let settings = workload.settings();
        let from = settings.first_instant();
        Self {
            oracle: Oracle::new(workload, OracleDetail::OneTraceIn(PROBED_TRACES)),
            from,
            hour_end: settings.end_instant().min(from + HOUR),
            until: settings.end_instant(),
            matching: Default::default(),
            cohorts: HashMap::from([SERVICE, FRONT].map(|service| (service, Vec::new()))),
        }
    }

    pub(crate) fn add(&mut self, window: &Window<'_>) {
        self.oracle.add(window);
        for trace in window.spans.chunk_by(|left, right| left.span.trace_id == right.span.trace_id) {
            for (search, matching) in Search::ALL.into_iter().zip(&mut self.matching) {
                if search.matches(trace) {
                    matching.insert(trace[0].span.trace_id);
                }
            }
        }
        if window.start >= self.hour_end {
            return;
        }
        let mut values = vec![0i64; window.spans.len()];
        for profile in window.profiles.iter().filter(|profile| profile.kind == SampleKind::Cpu) {
            for sample in &profile.samples {
                if let Some(value) = sample.span.and_then(|span| values.get_mut(span as usize)) {
                    *value += sample.value;
                }
            }
        }
        for (span, value) in window.spans.iter().zip(values) {
            let is_in_hour = (self.from..self.hour_end).contains(&span.span.start);
            if let Some(cohort) = self.cohorts.get_mut(&span.service).filter(|_| is_in_hour) {
                cohort.push((span.span.end - span.span.start, value));
            }
        }
    }

    /// The slowest spans of [`SERVICE`] or [`FRONT`] in the first hour, at most so many.
    pub(crate) fn slowest(&self, service: u16, most: usize) -> SlowestSpans {
        let mut spans = self.cohorts.get(&service).cloned().unwrap_or_default();
        spans.sort_unstable_by_key(|(duration, _)| std::cmp::Reverse(*duration));
        // Spans that are as slow as the first one left out are left out too.
        let longer_than = spans.get(most).map_or(-1, |(duration, _)| *duration);
        spans.retain(|(duration, _)| *duration > longer_than);
        SlowestSpans { longer_than, count: spans.len() as u64, value: spans.iter().map(|(_, value)| value).sum() }
    }

    /// Traces that match.
    pub(crate) fn matching(&self, search: Search) -> &HashSet<TraceId> {
        &self.matching[search as usize]
    }
}
