//! Did the change help? Durations and the cost of each function, before and after, with intervals.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use crate::explanation::SideSummary;
use crate::ledger::Ledger;
use crate::matrix::{FEW_REQUESTS, Matrix, column, membership};
use crate::moved::service_name;
use crate::statistics::bootstrap::{Side, difference_intervals};
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::welch::{Moments, welch};
use crate::tree::{NodeId, NodeKey, Tree};
use crate::vocabulary::{TextId, Vocabulary};

/// Whether a change helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Requests are faster than before.
    Faster,
    /// Requests are slower than before.
    Slower,
    /// No difference that could be seen.
    Same,
    /// Too few requests to tell.
    NotEnoughData,
}

/// Before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether it helped.
    pub change: Change,
    /// Requests before.
    pub before: SideSummary,
    /// Requests after.
    pub after: SideSummary,
    /// Milliseconds a request, after minus before.
    pub delta_ms: f64,
    /// The interval of 95 % of that.
    pub interval_ms: [f64; 2],
    /// Functions whose cost changed, the largest change first.
    pub functions: Vec<FunctionChange>,
}

/// What a function costs before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionChange {
    /// The service.
    pub service: String,
    /// The function.
    pub function: String,
    /// Whether it is the service's own code.
    pub is_own: bool,
    /// Milliseconds a request before, on the critical path, with everything it calls.
    pub before_ms: f64,
    /// The same after.
    pub after_ms: f64,
    /// After minus before.
    pub delta_ms: f64,
    /// The interval of 95 % of that.
    pub interval_ms: [f64; 2],
}

/// False discoveries among the functions that are named.
const DISCOVERY_RATE: f64 = 0.01;
const MOST_FUNCTIONS: usize = 15;
/// Functions among which those are looked for that say something of their own.
const MOST_LOOKED_AT: usize = 500;
/// The share of a caller's change that a function has for the two to be one change.
const NEARLY_ALL: f64 = 0.97;

/// Compares two sides of a ledger: index 0 is after, index 1 is before.
pub fn compare(
    vocabulary: &Vocabulary,
    ledger: &Ledger,
    matrix: &Matrix,
    summaries: [SideSummary; 2],
    seed: u64,
) -> Comparison {
    let [after, before] = summaries;
    let durations =
        [0, 1].map(|side| vec![ledger.sides[side].iter().map(|vector| vector.duration).collect::<Vec<f64>>()]);
    let [left, right] = [0, 1].map(|side| Side { columns: &durations[side], known_variance: None });
    let interval = difference_intervals(left, right, seed)[0];
    let difference = matrix.difference(Tree::ROOT);
    let is_enough = after.spans >= FEW_REQUESTS && before.spans >= FEW_REQUESTS;
    let change = match difference.delta {
        _ if !is_enough => Change::NotEnoughData,
        delta if difference.p() < 0.01 && delta < 0.0 && interval.high < 0.0 => Change::Faster,
        delta if difference.p() < 0.01 && delta > 0.0 && interval.low > 0.0 => Change::Slower,
        _ => Change::Same,
    };
    let functions = if is_enough { functions(vocabulary, ledger, seed) } else { Vec::new() };
    Comparison {
        change,
        before,
        after,
        delta_ms: difference.delta / 1e6,
        interval_ms: [interval.low / 1e6, interval.high / 1e6],
        functions,
    }
}

fn functions(vocabulary: &Vocabulary, ledger: &Ledger, seed: u64) -> Vec<FunctionChange> {
    let mut places: HashMap<(String, TextId), Vec<NodeId>> = HashMap::new();
    for (id, node) in ledger.tree.nodes().iter().enumerate() {
        if let NodeKey::Function(function) = node.key {
            let service = service_name(vocabulary, &ledger.tree, id as NodeId);
            places.entry((service, function)).or_default().push(id as NodeId);
        }
    }
    let moments = function_moments(ledger, &places);
    let mut tested: Vec<((String, TextId), f64, f64)> = moments
        .into_iter()
        .map(|(key, sides)| {
            let difference = welch(sides[0], sides[1]);
            (key, difference.delta, difference.p())
        })
        .collect();
    tested.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then_with(|| a.0.cmp(&b.0)));
    let ps: Vec<f64> = tested.iter().map(|(_, _, p)| *p).collect();
    let believed = benjamini_hochberg(&ps, DISCOVERY_RATE);
    let changed: Vec<Changed<'_>> = tested
        .iter()
        .zip(believed)
        .filter(|(_, is)| *is)
        .take(MOST_LOOKED_AT)
        .map(|((key, delta, _), _)| Changed { key, delta: *delta, places: &places[key] })
        .collect();
    let chosen: Vec<&(String, TextId)> =
        telling(&ledger.tree, &changed).into_iter().take(MOST_FUNCTIONS).map(|changed| changed.key).collect();
    let columns = [0, 1].map(|side| {
        let belongs = chosen.iter().map(|key| membership(&ledger.tree, &places[*key], &[]));
        belongs.map(|belongs| column(&ledger.sides[side], &belongs)).collect::<Vec<_>>()
    });
    let [left, right] = [0, 1].map(|side| Side { columns: &columns[side], known_variance: None });
    let intervals = difference_intervals(left, right, seed);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64 / 1e6;
    chosen
        .iter()
        .enumerate()
        .map(|(at, (service, function))| {
            let (after_ms, before_ms) = (mean(&columns[0][at]), mean(&columns[1][at]));
            FunctionChange {
                service: service.clone(),
                function: vocabulary.text_of(*function).to_owned(),
                is_own: places[chosen[at]].iter().any(|node| ledger.tree.node(*node).is_own),
                before_ms,
                after_ms,
                delta_ms: after_ms - before_ms,
                interval_ms: [intervals[at].low / 1e6, intervals[at].high / 1e6],
            }
        })
        .collect()
}

/// A function whose cost changed, and where it is called.
struct Changed<'a> {
    key: &'a (String, TextId),
    delta: f64,
    places: &'a [NodeId],
}

impl Changed<'_> {
    fn is_own(&self, tree: &Tree) -> bool {
        self.places.iter().any(|node| tree.node(*node).is_own)
    }

    /// Whether another one's change is the same but for a little.
    fn is_nearly(&self, other: &Self) -> bool {
        self.delta * other.delta > 0.0 && self.delta.abs() >= NEARLY_ALL * other.delta.abs()
    }
}

/// The functions that say something of their own. A change is seen in all callers of the function that changed, and in what
/// it calls: of such a chain the deepest of own code is told, and libraries below it only with a change of their own.
fn telling<'a, 'c>(tree: &Tree, changed: &'a [Changed<'c>]) -> Vec<&'a Changed<'c>> {
    let mut number: HashMap<NodeId, usize> = HashMap::new();
    for (at, function) in changed.iter().enumerate() {
        number.extend(function.places.iter().map(|node| (*node, at)));
    }
    let mut is_told = vec![true; changed.len()];
    for (below, function) in changed.iter().enumerate() {
        let callers: HashSet<usize> = function
            .places
            .iter()
            .flat_map(|node| tree.upward(*node).skip(1))
            .filter_map(|node| number.get(&node).copied())
            .filter(|above| *above != below)
            .collect();
        for above in callers.into_iter().filter(|above| function.is_nearly(&changed[*above])) {
            let says_more = function.is_own(tree) || !changed[above].is_own(tree);
            is_told[if says_more { above } else { below }] = false;
        }
    }
    changed.iter().zip(is_told).filter(|(_, is_told)| *is_told).map(|(function, _)| function).collect()
}

/// Means by function, over all the places where it is called.
fn function_moments(
    ledger: &Ledger,
    places: &HashMap<(String, TextId), Vec<NodeId>>,
) -> HashMap<(String, TextId), [Moments; 2]> {
    let keys: Vec<&(String, TextId)> = places.keys().collect();
    let mut number = vec![usize::MAX; ledger.tree.nodes().len()];
    for (at, key) in keys.iter().enumerate() {
        for node in &places[*key] {
            number[*node as usize] = at;
        }
    }
    let mut sums = vec![[(0.0, 0.0); 2]; keys.len()];
    let mut scratch = crate::matrix::Totals::default();
    let mut of_request: HashMap<usize, f64> = HashMap::new();
    for (side, vectors) in ledger.sides.iter().enumerate() {
        for vector in vectors {
            of_request.clear();
            crate::matrix::for_each_total(&ledger.tree, &vector.times, &mut scratch, |node, value| {
                if number[node as usize] != usize::MAX {
                    *of_request.entry(number[node as usize]).or_default() += value;
                }
            });
            for (at, value) in &of_request {
                sums[*at][side].0 += value;
                sums[*at][side].1 += value * value;
            }
        }
    }
    let moments =
        |at: usize| [0, 1].map(|side| Moments::of(ledger.sides[side].len(), sums[at][side].0, sums[at][side].1));
    keys.into_iter().enumerate().map(|(at, key)| (key.clone(), moments(at))).collect()
}
