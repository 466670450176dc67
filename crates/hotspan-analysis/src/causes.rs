//! From candidates to causes: made disjoint, measured with intervals, and ranked.

use crate::blame::{Blame, SOME_EXCEED, kind_of};
use crate::calls::Calls;
use crate::candidates::{Candidate, merged, nested_in};
use crate::explanation::Cause;
use crate::ledger::Ledger;
use crate::matrix::{FEW_REQUESTS, Matrix, column, column_noise, membership};
use crate::moved::{callee_name, node_name, service_name};
use crate::part::Part;
use crate::patterns::patterns_of;
use crate::request::Request;
use crate::sources::Sources;
use crate::statistics::bootstrap::{Interval, Resampled, Side};
use crate::statistics::exceedance::chance_of_exceeding;
use crate::statistics::welch::Moments;
use crate::tree::{NodeId, NodeKey, Tree};
use crate::vocabulary::Vocabulary;

/// The share of the whole difference that all causes together must surely have: a cohort that was chosen by duration is
/// slow by construction, and every noisy part is a little larger in it.
pub const JOINT_SHARE: f64 = 0.2;
/// The share that a cause must surely have by itself; one of them at least.
pub const LEADING_SHARE: f64 = 0.1;
/// The same for those that stand out beside it: requests have more of them than any usual one has, which is no matter of
/// having been chosen.
pub const FURTHER_SHARE: f64 = 0.05;
/// The part of the slow requests that must have more of something than any fast one for it to stand out.
const STANDS_OUT: f64 = 0.1;
/// Samples that a cause must have on the side that has more of it.
pub const FEWEST_SAMPLES: f64 = 8.0;
/// The share of what a request is slower by that makes something the reason for it.
const MOST_OF_IT: f64 = 0.5;
/// Requests that must be slow by something for it to be a cause of some of them.
const FEWEST_CARRIERS: usize = 2;
/// Standard errors that 95 % of a normal distribution lie within.
const NORMAL_95: f64 = 1.96;
/// Operations around an unsure candidate that are tried.
const MOST_STEPS_OUT: usize = 24;
/// Causes that are named at most.
const MOST_CAUSES: usize = 10;

/// Everything that is known when causes are named.
#[derive(Debug)]
pub struct Findings<'a> {
    /// The words.
    pub vocabulary: &'a Vocabulary,
    /// The requests: slow, fast.
    pub sides: [&'a [Request]; 2],
    /// Their vectors.
    pub ledger: &'a Ledger,
    /// Their comparison.
    pub matrix: &'a Matrix,
    /// Their calls.
    pub calls: &'a Calls,
    /// Which profiles there are.
    pub sources: &'a Sources,
    /// Seed of resampling.
    pub seed: u64,
}

/// A cause, and what else is known about it.
#[derive(Debug)]
pub struct Found {
    /// The cause.
    pub cause: Cause,
    /// The node of its operation.
    pub operation: NodeId,
    /// The slow requests that are slow by this above all.
    pub carriers: Vec<usize>,
}

impl Findings<'_> {
    /// The causes that blame leads to, ranked.
    pub fn causes(&self, blamed: &[Blame]) -> Vec<Found> {
        let tree = &self.ledger.tree;
        let named = blamed.iter().filter_map(|blame| self.candidate(blame));
        let mut candidates = merged(tree, named.map(|candidate| self.named_by_code(candidate)).collect());
        // Who is not sure enough is told by what lies around, one step at a time.
        for _ in 0..MOST_STEPS_OUT {
            let measured = self.measure(&candidates);
            let are_sure = measured.causes.iter().all(|measured| measured.is_sure);
            let found = if are_sure { self.ranked(&candidates, &measured) } else { Vec::new() };
            // Of a handful of requests, samples may tell what it is, and too little of how much: spans do.
            let is_enough = |candidate: &Candidate, measured: &Measured| {
                let is_told_by_spans = || self.is_measured(candidate, &measured.without);
                measured.is_sure && (!are_sure || self.sides[0].len() >= FEW_REQUESTS || is_told_by_spans())
            };
            let both = || candidates.iter().zip(&measured.causes);
            if !found.is_empty() || both().all(|(candidate, measured)| is_enough(candidate, measured)) {
                return found;
            }
            let next = both().filter_map(|(candidate, measured)| match is_enough(candidate, measured) {
                true => Some(candidate.clone()),
                false => self.around(candidate).map(|wider| self.named_by_code(wider)),
            });
            candidates = merged(tree, next.collect());
        }
        Vec::new()
    }

    /// Ranks candidates that are sure, if together they surely explain enough.
    fn ranked(&self, candidates: &[Candidate], measurement: &Measurement) -> Vec<Found> {
        let shares = || measurement.causes.iter().map(|measured| measured.sure_share);
        let is_led = shares().any(|share| share >= LEADING_SHARE);
        if !is_led || shares().sum::<f64>().max(measurement.joint_share.low) < JOINT_SHARE {
            return Vec::new();
        }
        let mut found: Vec<(f64, Found)> = candidates
            .iter()
            .zip(&measurement.causes)
            .map(|(candidate, measured)| {
                let cause = self.cause(candidate, measured);
                let carriers = measured.carriers.clone();
                (measured.interval.low, Found { cause, operation: candidate.operation, carriers })
            })
            .collect();
        found.sort_by(|(a_low, a), (b_low, b)| {
            let by_size = || b.cause.delta_ms.total_cmp(&a.cause.delta_ms);
            let by_name = || (&a.cause.service, &a.cause.function).cmp(&(&b.cause.service, &b.cause.function));
            b_low.total_cmp(a_low).then_with(by_size).then_with(by_name)
        });
        found.truncate(MOST_CAUSES);
        let total = self.matrix.difference(Tree::ROOT).delta / 1e6;
        let whole = found.iter().map(|(_, found)| found.cause.delta_ms).sum::<f64>().max(total);
        let shared = found.into_iter().map(|(_, mut found)| {
            found.cause.share = found.cause.delta_ms / whole;
            found
        });
        shared.collect()
    }

    /// Measures candidates, each without those that lie inside it.
    fn measure(&self, candidates: &[Candidate]) -> Measurement {
        let without: Vec<Vec<NodeId>> =
            (0..candidates.len()).map(|at| nested_in(&self.ledger.tree, candidates, at)).collect();
        let both = || candidates.iter().zip(&without);
        let belongs: Vec<Vec<bool>> =
            both().map(|(candidate, without)| membership(&self.ledger.tree, &candidate.nodes, without)).collect();
        let columns = [0, 1].map(|side| {
            let vectors = &self.ledger.sides[side];
            // The whole difference last, for shares.
            let whole = vectors.iter().map(|vector| vector.duration).collect();
            belongs.iter().map(|belongs| column(vectors, belongs)).chain([whole]).collect::<Vec<_>>()
        });
        let noise_of = |side: usize, at: usize| match self.is_measured(&candidates[at], &without[at]) {
            true => 0.0,
            false => column_noise(&self.ledger.sides[side], &belongs[at]),
        };
        let noise = [0, 1].map(|side| {
            let all = || (0..candidates.len()).map(|at| noise_of(side, at));
            (self.ledger.sides[side].len() < FEW_REQUESTS).then(|| all().chain([0.0]).collect::<Vec<_>>())
        });
        let [slow, fast] = [0, 1].map(|side| Side { columns: &columns[side], known_variance: noise[side].as_deref() });
        let resampled = Resampled::draw(slow, fast, self.seed);
        let whole = candidates.len();
        let joint_share = resampled.joint_share(&(0..whole).collect::<Vec<_>>(), whole);
        let causes = candidates.iter().enumerate().map(|(at, candidate)| {
            let without = without[at].clone();
            let [slow, fast] = [0, 1].map(|side| columns[side][at].clone());
            let (interval, share) = (resampled.interval(at), resampled.share(at, whole));
            let periods = self.most_periods(candidate, &without);
            let carriers = carriers(&slow, &fast, [&columns[0][whole], &columns[1][whole]]);
            let mut measured =
                Measured { slow, fast, interval, share, carriers, without, is_sure: false, sure_share: 0.0 };
            measured.judge(self.matrix.difference(Tree::ROOT).delta, || noise_of(0, at));
            let is_seen =
                candidate.nodes == [candidate.operation] || candidate.function.is_none() || periods >= FEWEST_SAMPLES;
            measured.is_sure &= is_seen;
            measured
        });
        Measurement { causes: causes.collect(), joint_share }
    }

    /// Whether a candidate is a span as a whole: its time is measured, not sampled.
    fn is_measured(&self, candidate: &Candidate, without: &[NodeId]) -> bool {
        let is_span = |node: &NodeId| matches!(self.ledger.tree.node(*node).key, NodeKey::Operation(_) | NodeKey::Root);
        candidate.nodes.iter().any(is_span) && without.is_empty()
    }

    /// Periods of sampling that a candidate's time is, on the side that has more of it.
    fn most_periods(&self, candidate: &Candidate, without: &[NodeId]) -> f64 {
        let on = |side: usize| self.periods(&candidate.nodes, side) - self.periods(without, side);
        on(0).max(on(1))
    }

    /// Periods of sampling that the time of some nodes is on one side.
    pub(crate) fn periods(&self, nodes: &[NodeId], side: usize) -> f64 {
        nodes.iter().map(|node| self.matrix.samples[side][*node as usize].1).sum()
    }

    fn cause(&self, candidate: &Candidate, measured: &Measured) -> Cause {
        let tree = &self.ledger.tree;
        let without = measured.without.as_slice();
        let belongs = membership(tree, &candidate.nodes, without);
        let kind = match kind_of(self.ledger, self.matrix, &belongs) {
            Part::Unexplained => Part::Waiting,
            seen => seen,
        };
        let operation_call = self.calls.change(candidate.operation);
        let calls = operation_call.filter(|change| change.slow.max(change.fast) >= 1.5);
        let patterns = patterns_of(kind, &self.looks(candidate, &belongs), operation_call);
        let (file, line) = candidate.function.map_or((None, None), |_| self.place(candidate));
        let samples = [0, 1].iter().map(|side| {
            let of =
                |nodes: &[NodeId]| nodes.iter().map(|node| self.matrix.samples[*side][*node as usize].0).sum::<u64>();
            of(&candidate.nodes).saturating_sub(of(without))
        });
        let slow_ms = mean(&measured.slow) / 1e6;
        let fast_ms = mean(&measured.fast) / 1e6;
        Cause {
            kind: kind.name(),
            service: service_name(self.vocabulary, tree, candidate.operation),
            operation: node_name(self.vocabulary, tree, candidate.operation),
            callee: callee_name(self.vocabulary, tree, candidate.operation),
            function: candidate.function.map(|node| node_name(self.vocabulary, tree, node)),
            file,
            line,
            via: candidate.via.clone(),
            slow_ms,
            fast_ms,
            delta_ms: slow_ms - fast_ms,
            interval_ms: [measured.interval.low / 1e6, measured.interval.high / 1e6],
            share: 0.0,
            spans: measured.having(),
            samples: samples.sum(),
            waiting_for_cpu_ms: if matches!(kind, Part::Cpu | Part::Gc) {
                self.delta_of(Part::Scheduling, &belongs) / 1e6
            } else {
                0.0
            },
            pattern: patterns.first().copied(),
            helps: patterns.first().map(|pattern| pattern.helps()),
            patterns,
            calls,
            requests: Vec::new(),
            traces: self.examples(&measured.slow),
            link: String::new(),
        }
    }

    /// What of a difference was spent on one thing.
    fn delta_of(&self, part: Part, belongs: &[bool]) -> f64 {
        let nodes = self.ledger.tree.nodes().iter().enumerate();
        let of_part = nodes.filter(|(id, node)| belongs[*id] && node.key == NodeKey::Part(part));
        of_part.map(|(id, _)| self.matrix.differences[id].delta).sum::<f64>().max(0.0)
    }

    /// Traces of the slow requests that have most of a cause.
    fn examples(&self, slow: &[f64]) -> Vec<String> {
        let mut order: Vec<usize> = (0..slow.len()).collect();
        order.sort_by(|a, b| slow[*b].total_cmp(&slow[*a]).then(a.cmp(b)));
        order.iter().take(3).map(|at| self.sides[0][*at].trace_id.to_string()).collect()
    }
}

/// Candidates side by side.
struct Measurement {
    causes: Vec<Measured>,
    /// What all of them together have of the whole difference.
    joint_share: Interval,
}

struct Measured {
    slow: Vec<f64>,
    fast: Vec<f64>,
    interval: Interval,
    /// Of the whole difference.
    share: Interval,
    /// The slow requests that are slow by this above all.
    carriers: Vec<usize>,
    /// Nodes inside that are causes of their own.
    without: Vec<NodeId>,
    is_sure: bool,
    /// The share of the whole difference that this surely has.
    sure_share: f64,
}

impl Measured {
    /// Judges whether this has a real share of the difference: in the mean, or as what some of the requests are slow by.
    fn judge(&mut self, difference: f64, sampling_noise: impl FnOnce() -> f64) {
        let most = self.fast.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let beyond = self.slow.iter().filter(|value| **value > most).count();
        let stands_out = beyond as f64 >= STANDS_OUT * self.slow.len() as f64;
        let needed = if stands_out { FURTHER_SHARE } else { LEADING_SHARE };
        if self.interval.low > 0.0 && self.share.low >= needed {
            self.is_sure = true;
            self.sure_share = self.share.low;
            return;
        }
        let delta = mean(&self.slow) - mean(&self.fast);
        let is_in_some = self.carriers.len() >= FEWEST_CARRIERS
            && chance_of_exceeding(beyond, self.slow.len(), self.fast.len()) < SOME_EXCEED
            && delta >= FURTHER_SHARE * difference;
        // Which requests are in question is given, and that some have it and others not is no chance: what is left is how
        // well they were sampled, and how usual requests vary.
        if !is_in_some {
            return;
        }
        let squares = self.fast.iter().map(|value| value * value).sum();
        let usual = Moments::of(self.fast.len(), self.fast.iter().sum(), squares);
        let error = NORMAL_95 * (sampling_noise() + usual.mean_variance).sqrt();
        if delta > error {
            self.is_sure = true;
            self.interval = Interval { low: delta - error, high: delta + error };
            self.sure_share = if difference > 0.0 { self.interval.low / difference } else { 0.0 };
        }
    }

    /// Slow requests with clearly more of it than is usual.
    fn having(&self) -> usize {
        let mut usual = self.fast.clone();
        usual.sort_unstable_by(f64::total_cmp);
        let bound = usual.get(usual.len() * 19 / 20).copied().unwrap_or(0.0).max(0.0);
        self.slow.iter().filter(|value| **value > bound).count()
    }
}

/// The slow requests in which something takes more than in any fast one, and is most of what they are slower by.
fn carriers(slow: &[f64], fast: &[f64], [durations, usual]: [&[f64]; 2]) -> Vec<usize> {
    let most = fast.iter().copied().fold(0.0, f64::max);
    let (mean_cost, mean_duration) = (mean(fast), mean(usual));
    let is_carrier = |(at, value): (usize, &f64)| {
        let is_most = value - mean_cost >= MOST_OF_IT * (durations[at] - mean_duration);
        (*value > most && is_most).then_some(at)
    };
    slow.iter().enumerate().filter_map(is_carrier).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
