//! Traces that a search for the latest may find, and the latest that each can have started.

use std::cmp::Reverse;

use hashbrown::HashMap;
use hotspan_model::TraceId;

use super::SearchQuery;

/// What was seen of a trace that has not been read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// It starts no later than this.
    pub(super) bound: i64,
    /// How many of the spans that are looked for were seen of it.
    pub(super) spans: usize,
    /// Whether it is known that all its spans are where somebody looks.
    pub(super) is_near: bool,
}

impl Candidate {
    pub(super) fn new(bound: i64, spans: usize) -> Self {
        Self { bound, spans, is_near: false }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.bound = self.bound.min(other.bound);
        self.spans = self.spans.saturating_add(other.spans);
    }
}

/// Candidates, as many as there is room for (R5).
#[derive(Debug)]
pub(super) struct Candidates {
    known: HashMap<TraceId, Candidate>,
    room: usize,
    /// How many are looked for where each of them matches, which is more than are asked for: they are looked for by the start
    /// of a span, and asked for by their own.
    wanted: usize,
    /// How many spans a trace must have.
    pub(super) least: usize,
    /// The highest bound of those that there was no room for.
    pub(super) forgotten: Option<i64>,
    /// All with higher bounds were remembered the last time.
    remembered_from: i64,
}

impl Candidates {
    pub(super) fn new(query: &SearchQuery) -> Self {
        let room = query.limit.saturating_mul(2).saturating_add(1000);
        let wanted = query.limit.saturating_mul(3).saturating_add(20);
        Self { known: HashMap::new(), room, wanted, least: 1, forgotten: None, remembered_from: i64::MAX }
    }

    pub(super) fn add(&mut self, trace_id: TraceId, candidate: Candidate) {
        if let Some(known) = self.known.get_mut(&trace_id) {
            known.join(candidate);
            return;
        }
        if self.forgotten.is_some_and(|forgotten| candidate.bound <= forgotten) {
            return;
        }
        self.known.insert(trace_id, candidate);
        if self.known.len() > 2 * self.room {
            let mut all: Vec<i64> = self.known.values().map(|candidate| candidate.bound).collect();
            let (_, last_kept, _) = all.select_nth_unstable_by_key(self.room, |bound| Reverse(*bound));
            let last_kept = *last_kept;
            self.forgotten = self.forgotten.max(Some(last_kept));
            self.known.retain(|_, candidate| candidate.bound > last_kept);
        }
    }

    /// How many matching traces are looked for at once.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// Notes that there are further ones up to a bound.
    pub(super) fn forget(&mut self, bound: Option<i64>) {
        self.forgotten = self.forgotten.max(bound);
    }

    pub(super) fn remove(&mut self, trace_id: &TraceId) {
        self.known.remove(trace_id);
    }

    /// Notes that traces have no spans where nobody looks.
    pub(super) fn set_near(&mut self, traces: impl Iterator<Item = TraceId>) {
        for trace_id in traces {
            if let Some(candidate) = self.known.get_mut(&trace_id) {
                candidate.is_near = true;
            }
        }
    }

    /// Those whose bound is higher than what has not been seen, the highest first. Of those with too few spans the others
    /// are unseen too, so that they start no later, unless there are spans where nobody looks.
    pub(super) fn above(&self, unseen: Option<i64>, is_all_near: bool) -> Vec<(TraceId, Candidate)> {
        let is_higher = |candidate: &Candidate| unseen.is_none_or(|unseen| candidate.bound > unseen);
        let higher = self.known.iter().map(|(id, candidate)| (*id, *candidate)).filter(|(_, it)| is_higher(it));
        let mut higher: Vec<(TraceId, Candidate)> = higher
            .filter(|(_, candidate)| candidate.spans >= self.least || !(is_all_near || candidate.is_near))
            .collect();
        higher.sort_unstable_by_key(|(id, candidate)| (Reverse(candidate.bound), *id));
        higher
    }

    /// The highest bound of those that may match by what was seen of them.
    pub(super) fn highest(&self) -> Option<i64> {
        self.known.values().filter(|candidate| candidate.spans >= self.least).map(|candidate| candidate.bound).max()
    }

    /// Spans that start later need not be seen again: their traces were judged. Where spans are counted, all need to be.
    pub(super) fn unjudged_until(&self) -> i64 {
        if self.least > 1 { i64::MAX } else { self.remembered_from }
    }

    /// Makes more room, to see again what there was no room for.
    pub(super) fn start_over(&mut self) {
        self.remembered_from = self.forgotten.take().map_or(i64::MAX, |bound| bound.saturating_add(1));
        self.room = self.room.saturating_mul(8);
        self.wanted = self.wanted.saturating_mul(8);
        if self.least > 1 {
            self.known.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::SearchOrder;

    fn candidates(limit: usize, least: usize) -> Candidates {
        let order = SearchOrder::Recent;
        let query = SearchQuery { from: 0, until: i64::MAX, limit, spans_per_set: 3, order, after: None };
        Candidates { least, ..Candidates::new(&query) }
    }

    fn id(number: u32) -> TraceId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        TraceId(id)
    }

    /// Scenario: spans of traces come one by one, some of traces that need another.
    /// Guarantee: the earliest span is the bound, spans add up, and a trace with too few of them is worth reading only
    /// where its others may lie out of sight.
    #[test]
    fn spans_add_up() {
        let mut seen = candidates(20, 2);
        for (trace, bound) in [(1, 50), (2, 40), (1, 30), (3, 60)] {
            seen.add(id(trace), Candidate::new(bound, 1));
        }
        let ids = |found: Vec<(TraceId, Candidate)>| found.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        assert_eq!(seen.above(None, true), [(id(1), Candidate::new(30, 2))]);
        assert_eq!(ids(seen.above(None, false)), [id(3), id(2), id(1)]);
        assert_eq!(ids(seen.above(Some(40), false)), [id(3)]);
        assert_eq!(seen.highest(), Some(30));
        seen.set_near([id(3)].into_iter());
        assert_eq!(ids(seen.above(None, false)), [id(2), id(1)]);
    }

    /// Scenario: more traces than there is room for, the latest of which come last.
    /// Guarantee: the latest are kept, and what was forgotten is told, until there is room for all.
    #[test]
    fn what_is_forgotten_is_told() {
        let mut seen = candidates(0, 1);
        let add_all = |seen: &mut Candidates| {
            for number in 0..5000 {
                seen.add(id(number), Candidate::new(i64::from(number), 1));
            }
        };
        add_all(&mut seen);
        let forgotten = seen.forgotten.unwrap();
        let kept = seen.above(None, true);
        assert!(kept.len() <= 2001);
        assert_eq!(kept.iter().filter(|(_, candidate)| candidate.bound > forgotten).count(), 4999 - forgotten as usize);
        seen.start_over();
        assert_eq!(seen.unjudged_until(), forgotten + 1);
        add_all(&mut seen);
        assert_eq!((seen.forgotten, seen.above(None, true).len()), (None, 5000));
    }
}
