//! What a span counts for: hints may ask to look at a share of the spans only, or to make up for those that the
//! sender's sampling left out.

use crate::plan::{Hints, Sampling};
use crate::source::SpanSource;

/// Which spans are looked at, and what each of them stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weighing {
    sampling: Option<Share>,
    extrapolate: bool,
}

/// A share of the spans or traces: those whose mixed ids lie below a bound, so that every worker chooses the same.
#[derive(Debug, Clone, PartialEq)]
struct Share {
    whole_traces: bool,
    below: u64,
    weight: f64,
}

impl Weighing {
    pub(super) fn of(hints: &Hints) -> Self {
        // Without a share it is ours to choose, and all of it is the best.
        let sampling = hints.sample.and_then(|Sampling { traces, share }| {
            let share = share.filter(|share| *share > 0.0 && *share < 1.0)?;
            let below = (share * u64::MAX as f64) as u64;
            Some(Share { whole_traces: traces.unwrap_or(true), below, weight: 1.0 / share })
        });
        Self { sampling, extrapolate: hints.extrapolate }
    }

    /// Whether every span is looked at and stands for itself.
    pub(super) fn is_even(&self) -> bool {
        self.sampling.is_none() && !self.extrapolate
    }

    /// Whether a span is looked at.
    #[inline]
    pub(super) fn keeps<S: SpanSource>(&self, source: &S, span: usize) -> bool {
        let Some(share) = &self.sampling else { return true };
        let mut word = source.trace_id(span).0.iter().fold(0u64, |word, byte| word.rotate_left(9) ^ u64::from(*byte));
        if !share.whole_traces {
            word ^= u64::from_be_bytes(source.span_id(span).0).rotate_left(32);
        }
        mix(word) < share.below
    }

    /// How many spans a span stands for.
    #[inline]
    pub(super) fn weight<S: SpanSource>(&self, source: &S, span: usize) -> f64 {
        let of_share = self.sampling.as_ref().map_or(1.0, |share| share.weight);
        if self.extrapolate { of_share * source.adjusted_count(span) } else { of_share }
    }
}

/// Spreads every bit, so that sequential ids are chosen evenly.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// How many spans one stands for by its W3C trace state: OpenTelemetry's threshold `ot=th:…` says which share of them
/// was left out. 1 where nothing is said, or nonsense.
pub fn adjusted_count(trace_state: &str) -> f64 {
    let Some(ot) = trace_state.split(',').find_map(|entry| entry.trim().strip_prefix("ot=")) else { return 1.0 };
    let Some(threshold) = ot.split(';').find_map(|entry| entry.strip_prefix("th:")) else { return 1.0 };
    if threshold.is_empty() || threshold.len() > 14 {
        return 1.0;
    }
    // Trailing zeros are left out: the digits are the highest of 56 bits.
    let digits = u64::from_str_radix(threshold, 16).ok();
    let left_out =
        digits.map(|digits| digits << (4 * (14 - threshold.len()))).map(|value| value as f64 / 2f64.powi(56));
    left_out.map_or(1.0, |share| 1.0 / (1.0 - share))
}

#[cfg(test)]
mod tests {
    use hotspan_model::SpanId;

    use super::adjusted_count;
    use crate::memory::{MemorySpan, MemoryTrace};
    use crate::{MetricsLimits, Program, TimeGrid};

    fn count(hint: &str) -> f64 {
        let span =
            |number: u64| MemorySpan { id: SpanId(number.to_be_bytes()), start_nanos: 5, ..MemorySpan::default() };
        let trace = MemoryTrace { spans: (1..=8000).map(span).collect(), ..MemoryTrace::default() };
        let program = Program::new(&format!("{{ }} | count_over_time() {hint}")).unwrap();
        let metrics = program.metrics().unwrap();
        let mut state = metrics.start(TimeGrid::instant(0, 10).unwrap(), MetricsLimits::default());
        let source = trace.bind(program.fields());
        metrics.observe_trace(&mut state, &program.view(&source)).unwrap();
        metrics.finish(state).first().map_or(0.0, |series| series.points[0].value)
    }

    /// Scenario: a quarter of the spans, all of them, and whole traces. Guarantee: the count is about that of all spans,
    /// exactly where all are looked at, and a trace is taken or left whole.
    #[test]
    fn shares_are_scaled_up() {
        assert_eq!(count(""), 8000.0);
        assert_eq!(count("with(sample=true)"), 8000.0);
        let quarter = count("with(span_sample=0.25)");
        assert!(quarter != 8000.0 && (quarter / 8000.0 - 1.0).abs() < 0.08, "{quarter}");
        let half = count("with(trace_sample=0.5)");
        assert!(half == 0.0 || half == 16000.0, "{half}");
    }

    /// Scenario: trace states with and without a threshold. Guarantee: the count is one over the share that was kept.
    #[test]
    fn thresholds_become_counts() {
        for (trace_state, count) in [
            ("", 1.0),
            ("vendor=x", 1.0),
            ("ot=th:0", 1.0),
            ("ot=th:8", 2.0),
            ("vendor=x,ot=rv:abc;th:c", 4.0),
            ("ot=th:e", 8.0),
            ("ot=th:zz", 1.0),
            ("ot=th:123456789012345", 1.0),
        ] {
            assert_eq!(adjusted_count(trace_state), count, "{trace_state}");
        }
    }
}
