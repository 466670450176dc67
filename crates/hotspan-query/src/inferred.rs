//! Inferred links: a sample that names nothing belongs to the span that ran on its thread then.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_model::{Labels, LinkStrength, SpanId, TraceId};

use crate::inherited::may_be;
use crate::linked::SampleThread;
use crate::outline::SpanOutline;
use crate::owners::{Owner, SampleClaim};
use crate::process::{Process, Processes};

/// When which spans ran on which threads.
#[derive(Debug, Default)]
pub struct ThreadTimes {
    selected: HashSet<(TraceId, SpanId)>,
    processes: Vec<(Arc<Process>, Vec<ThreadTime>)>,
    numbers: HashMap<Arc<Process>, usize>,
    known: Processes,
}

#[derive(Debug)]
struct ThreadTime {
    start: i64,
    end: i64,
    thread: SampleThread,
    trace_id: TraceId,
    span_id: SpanId,
}

impl ThreadTimes {
    /// Times in which samples of these spans count.
    pub(crate) fn of(selected: HashSet<(TraceId, SpanId)>) -> Self {
        Self { selected, ..Self::default() }
    }

    /// Whether no sample can be matched.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() || self.selected.is_empty()
    }

    /// Notes that a span, selected or not, ran on a thread.
    pub(crate) fn add(&mut self, span: &SpanOutline, thread: SampleThread) {
        let process = self.known.of_span(span);
        let next = self.processes.len();
        let at = *self.numbers.entry(Arc::clone(&process)).or_insert(next);
        if at == next {
            self.processes.push((process, Vec::new()));
        }
        let (trace_id, span_id) = (span.trace_id, span.span_id);
        self.processes[at].1.push(ThreadTime { start: span.start, end: span.end(), thread, trace_id, span_id });
    }

    /// Puts times in order; to be called once all are there.
    pub(crate) fn finish(mut self) -> Self {
        for (_, times) in &mut self.processes {
            times.sort_unstable_by_key(|time| (time.start, time.span_id));
        }
        self
    }

    /// The processes that a series can come from.
    pub(crate) fn processes_of(&self, labels: &Labels) -> Vec<usize> {
        (0..self.processes.len()).filter(|at| self.processes[*at].0.may_have(labels)).collect()
    }

    /// The span that a sample belongs to, if it is selected: the last to have started of those that ran on the thread.
    /// If they are of different traces, nobody can tell.
    pub(crate) fn owner(&self, processes: &[usize], claim: &SampleClaim<'_>) -> Option<Owner> {
        let names_nothing = claim.trace.is_none() && claim.span.is_none();
        if !names_nothing || !claim.timed || (claim.thread_id.is_none() && claim.thread_name.is_empty()) {
            return None;
        }
        let mut last: Option<&ThreadTime> = None;
        for times in processes.iter().map(|at| &self.processes[*at].1) {
            let started = times.partition_point(|time| time.start <= claim.time);
            for time in times[..started].iter().filter(|time| claim.time < time.end) {
                if !says_the_same(&time.thread, claim) {
                    continue;
                }
                if last.is_some_and(|last| last.trace_id != time.trace_id) {
                    return None;
                }
                if last.is_none_or(|last| last.start <= time.start) {
                    last = Some(time);
                }
            }
        }
        let found = last.map(|time| (time.trace_id, time.span_id)).filter(|id| self.selected.contains(id))?;
        Some((Some(found.0), Some(found.1), LinkStrength::Inferred))
    }
}

/// Whether thread and sample say the same, in number or name: saying nothing is not enough here.
fn says_the_same(thread: &SampleThread, claim: &SampleClaim<'_>) -> bool {
    let both_say = (thread.id.is_some() && claim.thread_id.is_some())
        || (!thread.name.is_empty() && !claim.thread_name.is_empty());
    both_say && may_be(thread, claim)
}

#[cfg(test)]
mod tests {
    use hotspan_model::{SpanKind, StatusCode};

    use super::*;

    fn span(trace: u8, id: u8, start: i64, end: i64) -> SpanOutline {
        SpanOutline {
            trace_id: TraceId([trace; 16]),
            span_id: SpanId([id; 8]),
            parent_id: None,
            start,
            duration: end - start,
            service: Arc::from("shop"),
            name: Arc::from("operation"),
            kind: SpanKind::Internal,
            status: StatusCode::Unset,
            resource: Arc::from("{}"),
        }
    }

    /// Scenario: nested spans on one thread, another trace on another thread and, later, on the same one at once.
    /// Guarantee: the innermost gets the sample; other threads, linked samples and doubtful ones get nothing.
    #[test]
    fn threads_tell_whose_a_sample_is() {
        let thread = |id: i64| SampleThread { id: Some(id), name: Arc::from("worker") };
        let spans = [span(1, 1, 0, 100), span(1, 2, 10, 40), span(2, 3, 0, 100), span(2, 4, 60, 70)];
        let selected = spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
        let mut times = ThreadTimes::of(selected);
        for (span, number) in spans.iter().zip([7, 7, 8, 7]) {
            times.add(span, thread(number));
        }
        let times = times.finish();
        let series = times.processes_of(&Labels::from_pairs([("service_name", "shop")]));
        assert!(times.processes_of(&Labels::from_pairs([("service_name", "other")])).is_empty());
        let owner = |time, thread_id: Option<i64>, named: Option<u8>| {
            let claim = SampleClaim {
                series: 0,
                time,
                timed: true,
                trace: named.map(|trace| TraceId([trace; 16])),
                span: None,
                thread_id,
                thread_name: "",
            };
            times.owner(&series, &claim).map(|(_, span, _)| span.unwrap().0[0])
        };
        assert_eq!(owner(5, Some(7), None), Some(1));
        assert_eq!(owner(20, Some(7), None), Some(2));
        assert_eq!(owner(20, Some(8), None), Some(3));
        assert_eq!(owner(65, Some(7), None), None);
        assert_eq!(owner(20, Some(9), None), None);
        assert_eq!(owner(20, None, None), None);
        assert_eq!(owner(20, Some(7), Some(1)), None);
        assert_eq!(owner(100, Some(7), None), None);
    }
}
