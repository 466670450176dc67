//! Clocks that differ: a span can't begin before its caller, nor a call be answered after it has ended.
//!
//! Each call from one clock to another bounds the offset between the two: the called span must lie inside the calling
//! one. Where spans keep lying outside, the offset is estimated once for the pair of clocks, from the middles of
//! these bounds (a call takes about as long to go as to come back), and the called side is shifted by it.

use hashbrown::HashMap;
use hotspan_model::SpanKind;
use serde::Serialize;

use crate::request::Request;
use crate::vocabulary::{TextId, Vocabulary};

/// A correction that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockSkew {
    /// The clock that counts.
    pub from: String,
    /// The clock that was shifted.
    pub to: String,
    /// By how much, in milliseconds.
    pub offset_ms: f64,
    /// Calls that the estimate rests on.
    pub calls: usize,
    /// How many of them lay outside their caller.
    pub outside: usize,
}

/// Rounding and the resolution of clocks put spans outside by less than this.
const TOLERANCE: i64 = 2_000;
/// A pair of clocks is corrected if at least this share of its calls lies outside.
const OUTSIDE_SHARE: f64 = 0.3;

#[derive(Debug, Default)]
struct PairBounds {
    middles: Vec<i64>,
    outside: usize,
}

/// Finds the offsets between the clocks of these requests and shifts spans and samples by them.
pub fn correct_clocks(vocabulary: &Vocabulary, sides: &mut [&mut [Request]]) -> Vec<ClockSkew> {
    let mut pairs: HashMap<(TextId, TextId), PairBounds> = HashMap::new();
    for request in sides.iter().flat_map(|side| side.iter()) {
        for span in &request.spans {
            let Some(caller) = span.parent.map(|parent| &request.spans[parent as usize]) else { continue };
            if caller.clock == span.clock {
                continue;
            }
            // What is not waited for may well end later than its caller; only its start is bound.
            let is_call = caller.role == SpanKind::Client && span.role == SpanKind::Server;
            let least = caller.start - span.start;
            let most = if is_call { caller.end - span.end } else { i64::MAX };
            let bounds = pairs.entry((caller.clock, span.clock)).or_default();
            let is_outside = least > TOLERANCE || most < -TOLERANCE;
            bounds.outside += usize::from(is_outside);
            if least <= most {
                let middle = if is_call { least.midpoint(most) } else { least.max(0) };
                bounds.middles.push(middle);
            }
        }
    }
    let mut offsets: HashMap<(TextId, TextId), i64> = HashMap::new();
    let mut corrections = Vec::new();
    for ((from, to), mut bounds) in pairs {
        let calls = bounds.middles.len();
        if calls == 0 || (bounds.outside as f64) < OUTSIDE_SHARE * calls as f64 {
            continue;
        }
        bounds.middles.sort_unstable();
        let offset = bounds.middles[calls / 2];
        if offset.abs() <= TOLERANCE {
            continue;
        }
        offsets.insert((from, to), offset);
        corrections.push(ClockSkew {
            from: vocabulary.text_of(from).to_owned(),
            to: vocabulary.text_of(to).to_owned(),
            offset_ms: offset as f64 / 1e6,
            calls,
            outside: bounds.outside,
        });
    }
    if !offsets.is_empty() {
        for request in sides.iter_mut().flat_map(|side| side.iter_mut()) {
            shift(request, &offsets);
        }
    }
    corrections.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    corrections
}

/// Shifts each span by the offsets on the way from the span in question to it.
fn shift(request: &mut Request, offsets: &HashMap<(TextId, TextId), i64>) {
    let mut shifts = vec![0i64; request.spans.len()];
    for index in 1..request.spans.len() {
        let Some(parent) = request.spans[index].parent.map(|parent| parent as usize) else { continue };
        let pair = (request.spans[parent].clock, request.spans[index].clock);
        let offset = if pair.0 == pair.1 { 0 } else { offsets.get(&pair).copied().unwrap_or(0) };
        shifts[index] = shifts[parent].saturating_add(offset);
        let span = &mut request.spans[index];
        span.start = span.start.saturating_add(shifts[index]);
        span.end = span.end.saturating_add(shifts[index]);
    }
    for sample in &mut request.samples {
        sample.time = sample.time.map(|time| time.saturating_add(shifts[sample.span as usize]));
    }
}
