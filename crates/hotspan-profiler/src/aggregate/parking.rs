//! Samples of requests that have not ended: they wait here for the decision.

use super::batch::{Batch, Measurement};
use super::conditions::Conditions;
use crate::context::EndedRequest;
use std::collections::{HashMap, VecDeque};

/// Measurements that may wait at once (R5); the oldest requests are folded beyond it.
const MAX_PARKED: usize = 100_000;
/// A request that has not ended by then is folded: its end was probably never told.
const MAX_WAIT_NS: u64 = 60_000_000_000;

type RequestKey = ([u8; 16], [u8; 8]);

#[derive(Debug, Default)]
struct Parked {
    first_seen_ns: u64,
    measurements: Vec<Measurement>,
    /// Decided while still running: slow already.
    keep: bool,
}

/// What became of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ParkingCounts {
    pub(crate) kept_requests: u64,
    pub(crate) folded_requests: u64,
    /// Folded because they never ended, or because there was no more room.
    pub(crate) undecided_requests: u64,
}

/// The waiting room.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    requests: HashMap<RequestKey, Parked>,
    /// By arrival, to find the oldest without searching. Keys may be gone already.
    arrivals: VecDeque<RequestKey>,
    parked: usize,
    counts: ParkingCounts,
}

impl Parking {
    /// Takes a measurement of a request that still runs. Says since when the request has been seen.
    pub(crate) fn park(&mut self, measurement: Measurement, conditions: &Conditions, batch: &mut Batch) -> u64 {
        let key = (measurement.key.span.trace_id, measurement.key.span.local_root);
        let now = measurement.monotonic_ns;
        let request = self.requests.entry(key).or_insert_with(|| {
            self.arrivals.push_back(key);
            Parked { first_seen_ns: now, ..Parked::default() }
        });
        let first_seen_ns = request.first_seen_ns;
        let running_ns = u128::from(now.saturating_sub(first_seen_ns));
        let is_slow = conditions.slow_request_threshold.is_some_and(|threshold| running_ns >= threshold.as_nanos());
        if is_slow && !request.keep {
            // Slow already, however it ends: no need to wait.
            request.keep = true;
            self.parked -= request.measurements.len();
            request.measurements.drain(..).for_each(|waiting| batch.add(waiting));
        }
        if request.keep {
            batch.add(measurement);
        } else {
            request.measurements.push(measurement);
            self.parked += 1;
        }
        while self.parked > MAX_PARKED && self.fold_oldest(batch) {}
        first_seen_ns
    }

    /// Decides about a request that has ended.
    pub(crate) fn decide(&mut self, ended: &EndedRequest, keep: bool, batch: &mut Batch) {
        // Most requests are shorter than a sampling period and have no samples at all.
        let Some(request) = self.requests.remove(&(ended.trace_id, ended.local_root)) else { return };
        self.parked -= request.measurements.len();
        if keep || request.keep {
            self.counts.kept_requests += 1;
            request.measurements.into_iter().for_each(|measurement| batch.add(measurement));
        } else {
            self.counts.folded_requests += 1;
            request.measurements.into_iter().for_each(|measurement| batch.fold(measurement));
        }
    }

    /// Folds requests that have waited too long for their end.
    pub(crate) fn fold_forgotten(&mut self, now_ns: u64, batch: &mut Batch) {
        while let Some(key) = self.arrivals.front() {
            match self.requests.get(key) {
                Some(request) if now_ns.saturating_sub(request.first_seen_ns) <= MAX_WAIT_NS => return,
                Some(_) => {
                    self.fold_oldest(batch);
                }
                None => {
                    self.arrivals.pop_front();
                }
            }
        }
    }

    /// Folds everything: nothing will be decided any more.
    pub(crate) fn fold_all(&mut self, batch: &mut Batch) {
        while self.fold_oldest(batch) {}
    }

    fn fold_oldest(&mut self, batch: &mut Batch) -> bool {
        while let Some(key) = self.arrivals.pop_front() {
            if let Some(request) = self.requests.remove(&key) {
                self.parked -= request.measurements.len();
                self.counts.undecided_requests += 1;
                request.measurements.into_iter().for_each(|measurement| batch.fold(measurement));
                return true;
            }
        }
        false
    }

    /// Whether no request is known that still runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn counts(&self) -> ParkingCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::GroupKey;
    use super::super::profile_type::ProfileType;
    use super::*;
    use crate::context::{RequestOutcome, SpanKey};
    use std::time::Duration;

    fn measurement(trace: u8, at_ns: u64, value: u64) -> Measurement {
        let span = SpanKey { trace_id: [trace; 16], span_id: [9; 8], local_root: [trace; 8], flags: 1 };
        let key = GroupKey { profile: ProfileType::Cpu, stack: vec![1, 2].into(), span, tid: 1 };
        Measurement { key, value, monotonic_ns: at_ns }
    }

    fn ended(trace: u8) -> EndedRequest {
        let outcome = RequestOutcome { duration: Duration::from_millis(5), is_error: false, is_sampled: true };
        EndedRequest { trace_id: [trace; 16], local_root: [trace; 8], outcome }
    }

    /// Scenario: many requests with samples end, some are kept, some folded, some never end.
    /// Guarantee: totals are exact whatever was decided; only kept ones have spans and times.
    #[test]
    fn decisions_never_change_totals() {
        let (mut parking, mut batch) = (Parking::default(), Batch::default());
        let conditions = Conditions { profile_errors: true, ..Conditions::default() };
        let mut total = 0;
        for trace in 1..=30u8 {
            for sample in 0..u64::from(trace) {
                parking.park(measurement(trace, sample, 10 + sample), &conditions, &mut batch);
                total += 10 + sample;
            }
        }
        for trace in 1..=20u8 {
            parking.decide(&ended(trace), trace % 2 == 0, &mut batch);
        }
        parking.fold_all(&mut batch);
        assert_eq!(batch.total(ProfileType::Cpu), total);
        let counts = ParkingCounts { kept_requests: 10, folded_requests: 10, undecided_requests: 10 };
        assert_eq!(parking.counts(), counts);
        assert_eq!(parking.parked, 0);
        assert_eq!(batch.groups.iter().filter(|(key, _)| !key.span.is_none()).count(), 10);
        assert!(batch.groups.iter().all(|(key, values)| key.span.is_none() == values.timed.is_empty()));
    }

    /// Scenario: a request is seen running for longer than the slow threshold.
    /// Guarantee: its samples are kept at once, those before and those after, without waiting for its end.
    #[test]
    fn a_slow_request_is_kept_while_it_runs() {
        let (mut parking, mut batch) = (Parking::default(), Batch::default());
        let conditions =
            Conditions { slow_request_threshold: Some(Duration::from_nanos(100)), ..Conditions::default() };
        parking.park(measurement(1, 1_000, 1), &conditions, &mut batch);
        assert!(batch.is_empty());
        parking.park(measurement(1, 1_100, 2), &conditions, &mut batch);
        parking.park(measurement(1, 1_101, 4), &conditions, &mut batch);
        assert_eq!(batch.total(ProfileType::Cpu), 7);
        parking.decide(&ended(1), false, &mut batch);
        assert_eq!(parking.counts().kept_requests, 1);
    }

    /// Scenario: requests whose end is never told.
    /// Guarantee: after a minute they are folded and counted as undecided.
    #[test]
    fn forgotten_requests_are_folded() {
        let (mut parking, mut batch) = (Parking::default(), Batch::default());
        let conditions = Conditions { profile_errors: true, ..Conditions::default() };
        parking.park(measurement(1, 0, 5), &conditions, &mut batch);
        parking.park(measurement(2, MAX_WAIT_NS, 6), &conditions, &mut batch);
        parking.fold_forgotten(MAX_WAIT_NS + 1, &mut batch);
        assert_eq!(batch.total(ProfileType::Cpu), 5);
        assert_eq!(parking.counts().undecided_requests, 1);
    }
}
