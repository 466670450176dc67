//! Which requests keep their samples in full.

use crate::context::EndedRequest;
use std::time::Duration;

/// When a request's samples are exported one by one, with their times and spans. A request that meets none of the
/// conditions is folded into the service's aggregate: its CPU time still counts, its identity does not travel.
///
/// Without any condition every request is kept in full.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// Keep requests that took at least this long.
    pub slow_request_threshold: Option<Duration>,
    /// Keep requests that end while the machine's processors are at least this busy, in percent.
    pub cpu_threshold_percent: Option<f64>,
    /// Keep requests that failed.
    pub profile_errors: bool,
    /// Keep this share of all requests (0 to 1), chosen by trace id, so that all services choose the same.
    pub request_share: Option<f64>,
    /// Keep requests whose trace is sampled.
    pub sampled_traces: bool,
}

impl Conditions {
    /// True if nothing is conditional.
    pub fn keep_everything(&self) -> bool {
        *self == Conditions::default()
    }

    /// Whether a request that has ended keeps its samples.
    pub(crate) fn keep(&self, request: &EndedRequest, cpu_percent: f64) -> bool {
        let outcome = &request.outcome;
        self.keep_everything()
            || self.slow_request_threshold.is_some_and(|threshold| outcome.duration >= threshold)
            || self.cpu_threshold_percent.is_some_and(|threshold| cpu_percent >= threshold)
            || (self.profile_errors && outcome.is_error)
            || (self.sampled_traces && outcome.is_sampled)
            || self.request_share.is_some_and(|share| position_of(request.trace_id) < share)
    }
}

/// Where a trace lies between 0 and 1: its last seven bytes are random by W3C's rule.
fn position_of(trace_id: [u8; 16]) -> f64 {
    let random = trace_id[9..].iter().fold(0u64, |value, byte| (value << 8) | u64::from(*byte));
    random as f64 / (1u64 << 56) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::RequestOutcome;

    fn request(millis: u64, is_error: bool, is_sampled: bool, last: u8) -> EndedRequest {
        let mut trace_id = [1; 16];
        trace_id[9] = last;
        let outcome = RequestOutcome { duration: Duration::from_millis(millis), is_error, is_sampled };
        EndedRequest { trace_id, local_root: [1; 8], outcome }
    }

    /// Scenario: each condition alone, met and not met.
    /// Guarantee: one that is met is enough; without any, everything is kept.
    #[test]
    fn any_condition_is_enough() {
        let none = Conditions::default();
        assert!(none.keep(&request(1, false, false, 255), 0.0));
        let slow = Conditions { slow_request_threshold: Some(Duration::from_secs(1)), ..Conditions::default() };
        assert!(slow.keep(&request(1_000, false, false, 0), 0.0) && !slow.keep(&request(999, true, true, 0), 99.0));
        let busy = Conditions { cpu_threshold_percent: Some(80.0), ..Conditions::default() };
        assert!(busy.keep(&request(1, false, false, 0), 80.0) && !busy.keep(&request(1, false, false, 0), 79.0));
        let errors = Conditions { profile_errors: true, ..Conditions::default() };
        assert!(errors.keep(&request(1, true, false, 0), 0.0) && !errors.keep(&request(1, false, false, 0), 0.0));
        let sampled = Conditions { sampled_traces: true, ..Conditions::default() };
        assert!(sampled.keep(&request(1, false, true, 0), 0.0) && !sampled.keep(&request(1, false, false, 0), 0.0));
        let half = Conditions { request_share: Some(0.5), ..Conditions::default() };
        assert!(half.keep(&request(1, false, false, 127), 0.0) && !half.keep(&request(1, false, false, 128), 0.0));
    }
}
