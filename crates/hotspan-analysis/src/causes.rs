//! From blamed nodes to causes: named by own code, made disjoint, measured with intervals, and ranked.

use hashbrown::HashMap;

use crate::blame::{Blame, kind_of};
use crate::calls::Calls;
use crate::explanation::Cause;
use crate::ledger::Ledger;
use crate::matrix::{FEW_REQUESTS, Matrix, column, column_noise, membership};
use crate::moved::{node_name, service_name};
use crate::part::Part;
use crate::patterns::{Looks, patterns_of};
use crate::request::Request;
use crate::statistics::bootstrap::{Interval, Resampled, Side};
use crate::tree::{NodeId, NodeKey, Tree};
use crate::vocabulary::{TextId, Vocabulary};

/// The share of the whole difference that the first cause must surely have: a cohort that was chosen by duration is
/// slow by construction, and every noisy part is a little larger in it.
pub const FIRST_SHARE: f64 = 0.2;
/// The same for further causes.
pub const FURTHER_SHARE: f64 = 0.1;
/// Samples that a cause must have on the side that has more of it.
pub const FEWEST_SAMPLES: f64 = 8.0;
/// A function with this share of all that a span does is the span itself under another name.
const NEARLY_ALL: f64 = 0.8;
/// Causes that are named at most.
const MOST_CAUSES: usize = 10;
/// Library functions that are named on the way.
const MOST_VIA: usize = 4;

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
    /// Seed of resampling.
    pub seed: u64,
}

/// A cause before it is measured.
#[derive(Debug, Clone)]
struct Candidate {
    /// Disjoint nodes; they and everything below are the cause.
    nodes: Vec<NodeId>,
    /// The function that is named.
    function: Option<NodeId>,
    via: Vec<String>,
    operation: NodeId,
}

impl Findings<'_> {
    /// The causes that blame leads to, ranked, each with the node of its operation.
    pub fn causes(&self, blamed: &[Blame]) -> Vec<(Cause, NodeId)> {
        let candidates = merged(&self.ledger.tree, blamed.iter().filter_map(|blame| self.candidate(blame)).collect());
        let causes = self.ranked(&candidates);
        // Where no function is sure enough, the operation may be that several of them share.
        if causes.is_empty() { self.ranked(&by_operation(&self.ledger.tree, &candidates)) } else { causes }
    }

    /// Measures candidates and keeps those that surely explain enough.
    fn ranked(&self, candidates: &[Candidate]) -> Vec<(Cause, NodeId)> {
        let without: Vec<Vec<NodeId>> =
            (0..candidates.len()).map(|at| nested_in(&self.ledger.tree, candidates, at)).collect();
        let measured = self.measure(candidates, &without);
        let total = self.matrix.difference(Tree::ROOT).delta;
        let mut causes: Vec<(Interval, f64, Cause, NodeId)> = Vec::new();
        for (at, (candidate, measured)) in candidates.iter().zip(&measured).enumerate() {
            let is_sampled = candidate.function.is_some();
            if is_sampled && self.most_periods(candidate, &without[at]) < FEWEST_SAMPLES {
                continue;
            }
            if measured.interval.low > 0.0 && measured.share.low >= FURTHER_SHARE {
                let cause = self.cause(candidate, &without[at], measured);
                causes.push((measured.interval, measured.share.low, cause, candidate.operation));
            }
        }
        causes.sort_by(|(a_interval, _, a, _), (b_interval, _, b, _)| {
            let by_name = || (&a.service, &a.function).cmp(&(&b.service, &b.function));
            b_interval.low.total_cmp(&a_interval.low).then_with(by_name)
        });
        if !causes.iter().any(|(_, share, ..)| *share >= FIRST_SHARE) {
            return Vec::new();
        }
        causes.truncate(MOST_CAUSES);
        let whole = causes.iter().map(|(_, _, cause, _)| cause.delta_ms).sum::<f64>().max(total / 1e6);
        let shared = causes.into_iter().map(|(_, _, mut cause, operation)| {
            cause.share = cause.delta_ms / whole;
            (cause, operation)
        });
        shared.collect()
    }

    /// Names what was blamed. None if that is the span in question as a whole, which would say nothing.
    fn candidate(&self, blame: &Blame) -> Option<Candidate> {
        let tree = &self.ledger.tree;
        let here = tree.node(blame.node);
        let holder = if matches!(here.key, NodeKey::Part(_)) { here.parent } else { blame.node };
        let operation = here.operation;
        // From the holder upwards to the operation.
        let functions: Vec<NodeId> = tree.upward(holder).take_while(|node| *node != operation).collect();
        let own = functions.iter().position(|node| tree.node(*node).is_own);
        if let Some(first) = blame.spread.first() {
            let name = node_name(self.vocabulary, tree, *first);
            let named = match own {
                _ if tree.node(*first).is_own => *first,
                Some(at) => functions[at],
                None => *first,
            };
            let via = if named == *first { Vec::new() } else { vec![name] };
            return Some(Candidate { nodes: blame.spread.clone(), function: Some(named), via, operation });
        }
        let named = own.unwrap_or(0);
        if let Some(function) = functions.get(named) {
            if blame.is_thin && self.is_nearly_all(*function) {
                return None;
            }
            let below = functions[..named].iter().rev();
            let via = below.take(MOST_VIA).map(|node| node_name(self.vocabulary, tree, *node)).collect();
            return Some(Candidate { nodes: vec![*function], function: Some(*function), via, operation });
        }
        let is_in_question = tree.node(operation).parent == Tree::ROOT;
        let is_call =
            matches!(here.key, NodeKey::Part(Part::Downstream | Part::Lock | Part::Io | Part::Scheduling | Part::Gc));
        if operation == Tree::ROOT || (is_in_question && !is_call) {
            return None;
        }
        Some(Candidate { nodes: vec![blame.node], function: None, via: Vec::new(), operation })
    }

    /// Whether a function is nearly all that the span in question does anyway: naming it would say nothing.
    fn is_nearly_all(&self, function: NodeId) -> bool {
        let tree = &self.ledger.tree;
        let operation = tree.node(function).operation;
        let usual = |node: NodeId| self.matrix.moments[1][node as usize].mean;
        let rest: f64 = (operation..tree.nodes().len() as NodeId)
            .filter(|id| tree.node(*id).parent == operation && matches!(tree.node(*id).key, NodeKey::Function(_)))
            .map(usual)
            .sum();
        tree.node(operation).parent == Tree::ROOT && usual(function) >= NEARLY_ALL * rest
    }

    fn measure(&self, candidates: &[Candidate], without: &[Vec<NodeId>]) -> Vec<Measured> {
        let columns = [0, 1].map(|side| {
            let vectors = &self.ledger.sides[side];
            let of = |(candidate, without): (&Candidate, &Vec<NodeId>)| {
                column(&self.ledger.tree, vectors, &candidate.nodes, without)
            };
            // The whole difference last, for shares.
            let whole = vectors.iter().map(|vector| vector.duration).collect();
            candidates.iter().zip(without).map(of).chain([whole]).collect::<Vec<_>>()
        });
        let noise = [0, 1].map(|side| {
            let vectors = &self.ledger.sides[side];
            let of = |(candidate, without): (&Candidate, &Vec<NodeId>)| {
                column_noise(&self.ledger.tree, vectors, &candidate.nodes, without)
            };
            (vectors.len() < FEW_REQUESTS)
                .then(|| candidates.iter().zip(without).map(of).chain([0.0]).collect::<Vec<_>>())
        });
        let [slow, fast] = [0, 1].map(|side| Side { columns: &columns[side], known_variance: noise[side].as_deref() });
        let resampled = Resampled::draw(slow, fast, self.seed);
        let [slow_columns, fast_columns] = columns;
        let both = slow_columns.into_iter().zip(fast_columns).take(candidates.len()).enumerate();
        both.map(|(at, (slow, fast))| {
            let (interval, share) = (resampled.interval(at), resampled.share(at, candidates.len()));
            Measured { slow, fast, interval, share }
        })
        .collect()
    }

    /// Periods of sampling that a candidate's time is, on the side that has more of it.
    fn most_periods(&self, candidate: &Candidate, without: &[NodeId]) -> f64 {
        let sum = |side: usize| -> f64 {
            let of =
                |nodes: &[NodeId]| nodes.iter().map(|node| self.matrix.samples[side][*node as usize].1).sum::<f64>();
            of(&candidate.nodes) - of(without)
        };
        sum(0).max(sum(1))
    }

    fn cause(&self, candidate: &Candidate, without: &[NodeId], measured: &Measured) -> Cause {
        let tree = &self.ledger.tree;
        let belongs = membership(tree, &candidate.nodes, without);
        let kind = match kind_of(self.ledger, self.matrix, &belongs) {
            Part::Unexplained => Part::Waiting,
            seen => seen,
        };
        let operation_call = self.calls.change(candidate.operation);
        let calls = operation_call.filter(|change| change.slow.max(change.fast) >= 1.5);
        let looks = self.looks(candidate, &belongs);
        let patterns = patterns_of(&Looks {
            kind,
            functions: &looks.functions,
            recursion: looks.recursion,
            widest_leaf: looks.widest_leaf,
            depth: looks.depth,
            calls: operation_call,
        });
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
            function: candidate.function.map(|node| node_name(self.vocabulary, tree, node)),
            file,
            line,
            via: candidate.via.clone(),
            slow_ms,
            fast_ms,
            delta_ms: slow_ms - fast_ms,
            interval_ms: [measured.interval.low / 1e6, measured.interval.high / 1e6],
            share: 0.0,
            spans: measured.slow.iter().filter(|value| **value > 0.0).count(),
            samples: samples.sum(),
            pattern: patterns.first().copied(),
            helps: patterns.first().map(|pattern| pattern.helps()),
            patterns,
            calls,
            requests: Vec::new(),
            traces: self.examples(&measured.slow),
            link: String::new(),
        }
    }

    /// The file and line of the named function that carry most of the difference.
    fn place(&self, candidate: &Candidate) -> (Option<String>, Option<u32>) {
        let Some(NodeKey::Function(function)) = candidate.function.map(|node| self.ledger.tree.node(node).key) else {
            return (None, None);
        };
        let requests = [0, 1].map(|side| self.ledger.sides[side].len().max(1) as f64);
        let mut lines: HashMap<(TextId, u32), f64> = HashMap::new();
        for placement in self.ledger.tree.placements() {
            if !candidate.nodes.iter().any(|node| self.ledger.tree.is_within(placement.leaf, *node)) {
                continue;
            }
            let delta = placement.time[0] / requests[0] - placement.time[1] / requests[1];
            for (_, frame) in &placement.frames {
                let frame = self.vocabulary.frame_of(*frame);
                if frame.function == function {
                    *lines.entry((frame.file, frame.line)).or_default() += delta;
                }
            }
        }
        let best = lines.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some(((file, line), _)) = best else { return (None, None) };
        let file = self.vocabulary.text_of(file);
        ((!file.is_empty()).then(|| file.to_owned()), (line > 0).then_some(line))
    }

    fn looks(&self, candidate: &Candidate, belongs: &[bool]) -> CauseLooks {
        let tree = &self.ledger.tree;
        let mut times: HashMap<TextId, f64> = HashMap::new();
        let mut leaves: HashMap<TextId, f64> = HashMap::new();
        let (mut whole, mut repeated, mut deep) = (0.0, 0.0, 0.0);
        for placement in tree.placements() {
            if !belongs[placement.leaf as usize] || placement.time[0] <= 0.0 {
                continue;
            }
            let time = placement.time[0];
            whole += time;
            // From the cause on downwards; a cause that is spread begins where it is called.
            let start = placement.frames.iter().position(|(node, _)| candidate.nodes.contains(node)).unwrap_or(0);
            let inside = &placement.frames[start..];
            for (_, frame) in inside {
                *times.entry(self.vocabulary.frame_of(*frame).function).or_default() += time;
            }
            if let Some((_, frame)) = inside.last() {
                *leaves.entry(self.vocabulary.frame_of(*frame).function).or_default() += time;
            }
            let most = placement.repeats.iter().map(|(_, times)| *times).max().unwrap_or(1);
            repeated += time * f64::from(most);
            deep += time * inside.len() as f64;
        }
        let whole = f64::max(whole, 1.0);
        let mut functions: Vec<(String, f64)> =
            times.iter().map(|(name, time)| (self.vocabulary.text_of(*name).to_owned(), time / whole)).collect();
        functions.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let widest_leaf = leaves.values().copied().fold(0.0, f64::max) / whole;
        CauseLooks { functions, recursion: repeated / whole, widest_leaf, depth: deep / whole }
    }

    /// Traces of the slow requests that have most of a cause.
    fn examples(&self, slow: &[f64]) -> Vec<String> {
        let mut order: Vec<usize> = (0..slow.len()).collect();
        order.sort_by(|a, b| slow[*b].total_cmp(&slow[*a]).then(a.cmp(b)));
        order.iter().take(3).map(|at| self.sides[0][*at].trace_id.to_string()).collect()
    }
}

struct Measured {
    slow: Vec<f64>,
    fast: Vec<f64>,
    interval: Interval,
    /// Of the whole difference.
    share: Interval,
}

struct CauseLooks {
    functions: Vec<(String, f64)>,
    recursion: f64,
    widest_leaf: f64,
    depth: f64,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Causes in the same function of the same service are one, wherever it was called from.
fn merged(tree: &Tree, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut merged: Vec<Candidate> = Vec::new();
    let mut index: HashMap<(NodeKey, NodeKey), usize> = HashMap::new();
    for candidate in candidates {
        let operation = tree.node(candidate.operation).key;
        let subject = tree.node(candidate.function.unwrap_or(candidate.nodes[0])).key;
        match index.get(&(operation, subject)) {
            Some(at) => {
                let nodes = &mut merged[*at].nodes;
                nodes.extend(&candidate.nodes);
                nodes.sort_unstable();
                nodes.dedup();
                let all = nodes.clone();
                nodes.retain(|node| !all.iter().any(|other| other != node && tree.is_within(*node, *other)));
            }
            None => {
                index.insert((operation, subject), merged.len());
                merged.push(candidate);
            }
        }
    }
    merged
}

/// Operations, other than the one in question, in which several candidates lie.
fn by_operation(tree: &Tree, candidates: &[Candidate]) -> Vec<Candidate> {
    let mut operations: Vec<Candidate> = Vec::new();
    for candidate in candidates.iter().filter(|candidate| tree.node(candidate.operation).parent != Tree::ROOT) {
        match operations.iter_mut().find(|known| known.operation == candidate.operation) {
            Some(known) => known.nodes.extend(&candidate.nodes),
            None => operations.push(Candidate { function: None, via: Vec::new(), ..candidate.clone() }),
        }
    }
    operations.retain(|operation| operation.nodes.len() > 1);
    operations
}

/// The nodes of other causes inside one: they are not counted twice.
fn nested_in(tree: &Tree, candidates: &[Candidate], at: usize) -> Vec<NodeId> {
    let others = candidates.iter().enumerate().filter(|(other, _)| *other != at).flat_map(|(_, other)| &other.nodes);
    let inside =
        |node: &&NodeId| candidates[at].nodes.iter().any(|above| above != *node && tree.is_within(**node, *above));
    others.filter(inside).copied().collect()
}
