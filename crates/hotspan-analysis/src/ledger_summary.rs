//! The ledger of a cohort in a few lines: parts that add up to the mean duration, and the operations on the path.

use hashbrown::{HashMap, HashSet};

use crate::calls::Calls;
use crate::explanation::{LedgerPart, LedgerSummary, PathStep, SideSummary};
use crate::ledger::Ledger;
use crate::moved::{callee_name, node_name, service_name};
use crate::part::Part;
use crate::request::Request;
use crate::tree::{NodeId, NodeKey, Tree};
use crate::vocabulary::Vocabulary;

/// How far a ledger looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Into child spans: their time is told as what they spend it on.
    Through,
    /// The spans in question alone: children are parts by their operation.
    OwnSpan,
}

/// Mean nanoseconds by leaf for each side, in order: sums of floating-point numbers depend on it.
fn leaf_means(ledger: &Ledger) -> [Vec<(NodeId, f64)>; 2] {
    [0, 1].map(|side| {
        let mut means: Vec<Option<f64>> = vec![None; ledger.tree.nodes().len()];
        let requests = ledger.sides[side].len().max(1) as f64;
        for (leaf, value) in ledger.sides[side].iter().flat_map(|vector| &vector.times) {
            *means[*leaf as usize].get_or_insert(0.0) += value / requests;
        }
        let seen = means.into_iter().enumerate().filter_map(|(leaf, mean)| Some((leaf as NodeId, mean?)));
        seen.collect()
    })
}

/// The parts of both sides. They add up to the mean durations.
pub fn ledger_summary(vocabulary: &Vocabulary, ledger: &Ledger, reach: Reach) -> LedgerSummary {
    let means = leaf_means(ledger);
    let mut parts = [[0.0; Part::ALL.len()]; 2];
    let mut children: HashMap<String, [f64; 2]> = HashMap::new();
    for side in [0, 1] {
        for (leaf, value) in &means[side] {
            let operation = ledger.tree.node(*leaf).operation;
            let is_own = ledger.tree.node(operation).parent == Tree::ROOT;
            if reach == Reach::OwnSpan && !is_own {
                let child = ledger.tree.upward(*leaf).find(|node| {
                    let parent = ledger.tree.node(*node).parent;
                    ledger.tree.node(parent).parent == Tree::ROOT
                        && matches!(ledger.tree.node(*node).key, NodeKey::Operation(_))
                });
                let child = child.unwrap_or(operation);
                let name = format!(
                    "{} {}",
                    service_name(vocabulary, &ledger.tree, child),
                    node_name(vocabulary, &ledger.tree, child)
                );
                children.entry(name).or_default()[side] += value;
            } else if let NodeKey::Part(part) = ledger.tree.node(*leaf).key {
                parts[side][part as usize] += value;
            }
        }
    }
    let part = |kind: &'static str, label: Option<String>, [slow, fast]: [f64; 2]| LedgerPart {
        kind,
        label,
        ms: slow / 1e6,
        fast_ms: fast / 1e6,
        delta_ms: (slow - fast) / 1e6,
    };
    let mut told: Vec<LedgerPart> = Part::ALL
        .into_iter()
        .map(|kind| part(kind.name(), None, [0, 1].map(|side| parts[side][kind as usize])))
        .filter(|part| part.ms != 0.0 || part.fast_ms != 0.0)
        .collect();
    let mut named: Vec<(String, [f64; 2])> = children.into_iter().collect();
    named.sort_by(|a, b| b.1[0].total_cmp(&a.1[0]).then_with(|| a.0.cmp(&b.0)));
    let before_rest = told.iter().position(|part| part.kind == Part::Unexplained.name()).unwrap_or(told.len());
    told.splice(before_rest..before_rest, named.into_iter().map(|(name, times)| part("child", Some(name), times)));
    let durations = [0, 1].map(|side| {
        let vectors = &ledger.sides[side];
        vectors.iter().map(|vector| vector.duration).sum::<f64>() / vectors.len().max(1) as f64 / 1e6
    });
    LedgerSummary { duration_ms: durations[0], fast_duration_ms: durations[1], parts: told }
}

/// Operations with their own time on the path, callers first, then in the order in which they begin; those with hardly any
/// are left out, but for callers of others.
pub fn path_steps(vocabulary: &Vocabulary, ledger: &Ledger, calls: &Calls, slow: &[Request]) -> Vec<PathStep> {
    const LEAST_SHARE: f64 = 0.005;
    let means = leaf_means(ledger);
    let mut own: HashMap<NodeId, [f64; 2]> = HashMap::new();
    for side in [0, 1] {
        for (leaf, value) in &means[side] {
            own.entry(ledger.tree.node(*leaf).operation).or_default()[side] += value;
        }
    }
    let vectors = &ledger.sides[0];
    let duration = vectors.iter().map(|vector| vector.duration).sum::<f64>() / vectors.len().max(1) as f64;
    let children = &ledger.children;
    let begins = beginnings(ledger, slow);
    let shown: HashSet<NodeId> = own
        .iter()
        .filter(|(_, [slow, fast])| slow.max(*fast) >= LEAST_SHARE * duration)
        .flat_map(|(node, _)| ledger.tree.upward(*node))
        .collect();
    let mut steps = Vec::new();
    let mut pending: Vec<(NodeId, usize)> = vec![(Tree::ROOT, 0)];
    while let Some((node, depth)) = pending.pop() {
        let is_operation = matches!(ledger.tree.node(node).key, NodeKey::Operation(_));
        if is_operation {
            let [slow, fast] = own.get(&node).copied().unwrap_or_default();
            steps.push(PathStep {
                service: service_name(vocabulary, &ledger.tree, node),
                operation: node_name(vocabulary, &ledger.tree, node),
                callee: callee_name(vocabulary, &ledger.tree, node),
                depth,
                ms: slow / 1e6,
                fast_ms: fast / 1e6,
                share: if duration > 0.0 { slow / duration } else { 0.0 },
                calls: calls.change(node).map_or(0.0, |change| change.slow),
            });
        }
        let below = depth + usize::from(is_operation);
        let mut operations: Vec<NodeId> = children[node as usize]
            .iter()
            .filter(|child| matches!(ledger.tree.node(**child).key, NodeKey::Operation(_)) && shown.contains(*child))
            .copied()
            .collect();
        // Pushed last is told first.
        let begin = |child: &NodeId| begins.get(child).copied().unwrap_or(f64::INFINITY);
        operations.sort_by(|a, b| begin(b).total_cmp(&begin(a)).then(b.cmp(a)));
        pending.extend(operations.into_iter().map(|child| (child, below)));
    }
    steps
}

/// How long after its request began each operation first began, on average over the requests that have it.
fn beginnings(ledger: &Ledger, slow: &[Request]) -> HashMap<NodeId, f64> {
    let mut sums: HashMap<NodeId, (f64, f64)> = HashMap::new();
    for (request, vector) in slow.iter().zip(&ledger.sides[0]) {
        for (node, span) in &vector.spans {
            let offset = request.spans[*span as usize].start - request.spans[0].start;
            let (sum, count) = sums.entry(*node).or_default();
            *sum += offset as f64;
            *count += 1.0;
        }
    }
    sums.into_iter().map(|(node, (sum, count))| (node, sum / count)).collect()
}

/// Durations and evidence of a side.
pub fn side_summary(ledger: &Ledger, side: usize) -> SideSummary {
    let vectors = &ledger.sides[side];
    if vectors.is_empty() {
        return SideSummary::default();
    }
    let mut durations: Vec<f64> = vectors.iter().map(|vector| vector.duration / 1e6).collect();
    durations.sort_by(f64::total_cmp);
    let at = |share: f64| durations[((durations.len() - 1) as f64 * share).round() as usize];
    SideSummary {
        spans: vectors.len(),
        with_samples: vectors.iter().filter(|vector| vector.samples > 0).count(),
        samples: vectors.iter().map(|vector| u64::from(vector.samples)).sum(),
        mean_ms: durations.iter().sum::<f64>() / durations.len() as f64,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
    }
}
