//! Which requests: attribute values that slow requests have and fast ones do not.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use crate::ledger::Ledger;
use crate::request::{AttributeValue, Request};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::welch::{Moments, two_sided_p, welch};
use crate::tree::NodeId;
use crate::vocabulary::{TextId, Vocabulary};

/// An attribute that tells slow requests from fast ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Separating {
    /// Its name.
    pub attribute: String,
    /// The value that slow requests have; none where a number is larger or smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Share of slow requests with the value, or their mean.
    pub slow: f64,
    /// Share of fast requests with the value, or their mean.
    pub fast: f64,
}

/// Attributes that are named at most.
const NAMED: usize = 3;
/// The shares must differ by this much for a value to separate anything.
const LEAST_DIFFERENCE: f64 = 0.3;
const DISCOVERY_RATE: f64 = 0.001;
/// Distinct numbers from which on a number is an amount and not a code.
const AMOUNT: usize = 8;

/// The attributes that separate the requests `slow` of the slow side, by the spans in question and by those of the
/// operation that is blamed. `known` are names that the question itself is about: they would only repeat it.
pub fn separating_attributes(
    vocabulary: &Vocabulary,
    ledger: &Ledger,
    sides: [&[Request]; 2],
    slow: &[usize],
    operation: NodeId,
    known: &dyn Fn(&str) -> bool,
) -> Vec<Separating> {
    let counts = [slow.len() as f64, sides[1].len() as f64];
    let fast: Vec<usize> = (0..sides[1].len()).collect();
    if counts[0] < 5.0 || counts[1] < 5.0 {
        return Vec::new();
    }
    let mut texts: HashMap<(TextId, TextId), [f64; 2]> = HashMap::new();
    let mut numbers: HashMap<TextId, [Vec<f64>; 2]> = HashMap::new();
    for (side, chosen) in [slow, fast.as_slice()].into_iter().enumerate() {
        for at in chosen {
            let (request, vector) = (&sides[side][*at], &ledger.sides[side][*at]);
            let blamed = vector.spans.iter().find(|(node, _)| *node == operation).map_or(0, |(_, span)| *span as usize);
            let mut seen: HashSet<(TextId, TextId)> = HashSet::new();
            let spans = [Some(0), (blamed != 0).then_some(blamed)];
            for (key, value) in spans.into_iter().flatten().flat_map(|span| &request.spans[span].attributes) {
                match value {
                    AttributeValue::Text(text) => {
                        if seen.insert((*key, *text)) {
                            texts.entry((*key, *text)).or_default()[side] += 1.0;
                        }
                    }
                    AttributeValue::Number(number) => {
                        if seen.insert((*key, TextId::MAX)) {
                            numbers.entry(*key).or_default()[side].push(*number);
                        }
                    }
                }
            }
        }
    }
    let mut found: Vec<(f64, f64, Separating)> = Vec::new();
    for ((key, value), having) in texts {
        let shares = [having[0] / counts[0], having[1] / counts[1]];
        let (p, z) = proportions(having, counts);
        let separating = Separating {
            attribute: vocabulary.text_of(key).to_owned(),
            value: Some(vocabulary.text_of(value).to_owned()),
            slow: shares[0],
            fast: shares[1],
        };
        // What slow requests lack says less than what they have.
        let is_strong = shares[0] - shares[1] >= LEAST_DIFFERENCE;
        found.push((if is_strong { p } else { 1.0 }, z, separating));
    }
    for (key, values) in numbers {
        let distinct: HashSet<u64> = values.iter().flatten().map(|value| value.to_bits()).collect();
        let [slow, fast] = [0, 1].map(|side| {
            let values = &values[side];
            Moments::of(values.len(), values.iter().sum(), values.iter().map(|value| value * value).sum())
        });
        let difference = welch(slow, fast);
        let spread = (fast.mean_variance * fast.count).sqrt().max(fast.mean.abs() * 0.05);
        let is_strong = distinct.len() >= AMOUNT
            && slow.count >= 0.8 * counts[0]
            && fast.count >= 0.8 * counts[1]
            && difference.delta.abs() > 1.5 * spread;
        let attribute = vocabulary.text_of(key).to_owned();
        let separating = Separating { attribute, value: None, slow: slow.mean, fast: fast.mean };
        let z = difference.delta.abs() / difference.error.max(f64::MIN_POSITIVE);
        found.push((if is_strong { difference.p() } else { 1.0 }, z, separating));
    }
    let ps: Vec<f64> = found.iter().map(|(p, ..)| *p).collect();
    let believed = benjamini_hochberg(&ps, DISCOVERY_RATE);
    let mut separating: Vec<(f64, Separating)> = found
        .into_iter()
        .zip(believed)
        .filter(|((p, _, separating), is)| *is && *p < 1.0 && !known(&separating.attribute))
        .map(|((_, z, separating), _)| (z, separating))
        .collect();
    separating.sort_by(|(a_z, a), (b_z, b)| {
        b_z.total_cmp(a_z).then_with(|| (&a.attribute, &a.value).cmp(&(&b.attribute, &b.value)))
    });
    let mut named: Vec<Separating> = Vec::new();
    for (_, candidate) in separating {
        if named.len() < NAMED && named.iter().all(|known| known.attribute != candidate.attribute) {
            named.push(candidate);
        }
    }
    named
}

/// Compares two shares; the chance of a difference as large, and how many standard errors it is.
fn proportions(having: [f64; 2], counts: [f64; 2]) -> (f64, f64) {
    let pooled = (having[0] + having[1]) / (counts[0] + counts[1]);
    let error = (pooled * (1.0 - pooled) * (1.0 / counts[0] + 1.0 / counts[1])).sqrt();
    let difference = having[0] / counts[0] - having[1] / counts[1];
    if error <= 0.0 {
        return (1.0, 0.0);
    }
    let z = difference / error;
    (two_sided_p(z, counts[0] + counts[1] - 2.0), z.abs())
}
