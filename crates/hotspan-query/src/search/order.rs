//! The order of what a search finds, and places in it that a next page can start from.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hotspan_model::TraceId;
use hotspan_traceql::TraceFacts;

use super::FoundTrace;
use crate::error::QueryError;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchOrder {
    /// The trace that started last.
    #[default]
    Recent,
    /// The trace that took longest.
    Duration,
}

impl FromStr for SearchOrder {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        match text {
            "recent" | "start" => Ok(Self::Recent),
            "duration" => Ok(Self::Duration),
            other => Err(QueryError::Invalid(format!("order {other:?} is not known; use recent or duration"))),
        }
    }
}

/// Where a trace stands in its order. No two traces stand in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(Reverse<i64>, TraceId);

impl Rank {
    pub(super) fn of(trace: &FoundTrace, order: SearchOrder) -> Self {
        let key = match order {
            SearchOrder::Recent => trace.start,
            SearchOrder::Duration => trace.duration,
        };
        Self(Reverse(key), trace.trace_id)
    }

    pub(super) fn new(facts: &TraceFacts, trace_id: TraceId, order: SearchOrder) -> Self {
        let key = match order {
            SearchOrder::Recent => facts.start_nanos,
            SearchOrder::Duration => facts.duration_nanos,
        };
        Self(Reverse(key), trace_id)
    }

    /// Whose place it is.
    pub(super) fn trace_id(self) -> TraceId {
        self.1
    }

    /// The start or the duration.
    pub(super) fn key(self) -> i64 {
        self.0.0
    }
}

/// As text it is a cursor: what a page gives so that the next one can go on behind its last trace.
impl fmt::Display for Rank {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}{}", self.key(), self.1)
    }
}

impl FromStr for Rank {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let parse = || {
            let (key, id) = text.split_at_checked(16)?;
            let key = u64::from_str_radix(key, 16).ok()?.cast_signed();
            (id.len() == 32).then(|| id.parse().ok()).flatten().map(|id| Self(Reverse(key), id))
        };
        parse().ok_or_else(|| {
            QueryError::Invalid(format!(
                "cursor {text:?} is not known; pass back nextCursor of the page before, as it is"
            ))
        })
    }
}

/// The first traces of an order, up to a limit.
#[derive(Debug)]
pub(super) struct Best {
    /// With what is shown of them, where it has been read.
    traces: BTreeMap<Rank, Option<FoundTrace>>,
    limit: usize,
    /// Traces up to this place are on earlier pages.
    after: Option<Rank>,
    /// The last that was given out.
    given: Option<Rank>,
}

impl Best {
    pub(super) fn new(limit: usize, after: Option<Rank>) -> Self {
        Self { traces: BTreeMap::new(), limit, after, given: None }
    }

    pub(super) fn add(&mut self, rank: Rank, trace: Option<FoundTrace>) {
        if self.after.is_some_and(|after| rank <= after) {
            return;
        }
        self.traces.insert(rank, trace);
        if self.traces.len() > self.limit {
            self.traces.pop_last();
        }
    }

    /// The key that another trace must reach to be among the first; none while there is room.
    pub(super) fn threshold(&self) -> Option<i64> {
        let is_full = self.traces.len() >= self.limit;
        self.traces.last_key_value().filter(|_| is_full).map(|(rank, _)| rank.key())
    }

    /// The traces that nothing can displace any more, each once: what is still unseen has keys up to `unseen`.
    pub(super) fn take_certain(&mut self, unseen: Option<i64>) -> Vec<(Rank, Option<FoundTrace>)> {
        let after = self.given.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let waiting = self.traces.range_mut((after, std::ops::Bound::Unbounded));
        let certain = waiting.take_while(|(rank, _)| unseen.is_none_or(|unseen| rank.key() > unseen));
        let certain: Vec<(Rank, Option<FoundTrace>)> = certain.map(|(rank, trace)| (*rank, trace.take())).collect();
        if let Some((rank, _)) = certain.last() {
            self.given = Some(*rank);
        }
        certain
    }

    /// Where the next page starts, if this one is full.
    pub(super) fn next_page(&self) -> Option<Rank> {
        let is_full = self.traces.len() >= self.limit;
        self.traces.last_key_value().filter(|_| is_full).map(|(rank, _)| *rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(start: i64, number: u8) -> Rank {
        Rank(Reverse(start), TraceId([number; 16]))
    }

    /// Scenario: traces come in any order, some certain before all are seen.
    /// Guarantee: each is given once, in order, and never one that a later trace displaces.
    #[test]
    fn certain_traces_are_given_once() {
        let mut best = Best::new(3, None);
        for (start, number) in [(10, 1), (50, 2), (40, 3)] {
            best.add(rank(start, number), None);
        }
        let starts =
            |traces: Vec<(Rank, Option<FoundTrace>)>| traces.iter().map(|(rank, _)| rank.key()).collect::<Vec<_>>();
        assert_eq!(starts(best.take_certain(Some(40))), [50]);
        assert_eq!(best.threshold(), Some(10));
        best.add(rank(40, 1), None);
        assert_eq!(starts(best.take_certain(Some(9))), [40, 40]);
        assert_eq!(starts(best.take_certain(None)), [0i64; 0]);
        let cursor: Rank = best.next_page().unwrap().to_string().parse().unwrap();
        let mut second = Best::new(3, Some(cursor));
        for (start, number) in [(10, 1), (50, 2), (40, 3), (40, 4)] {
            second.add(rank(start, number), None);
        }
        assert_eq!(starts(second.take_certain(None)), [40, 10]);
        assert!("zz".parse::<Rank>().is_err() && "".parse::<Rank>().is_err());
    }
}
