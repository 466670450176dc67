//! Requests times nodes: for each node of the tree, what it and everything below it took on either side.

use crate::ledger::{Ledger, RequestVector};
use crate::statistics::exceedance::chance_of_exceeding;
use crate::statistics::welch::{Difference, Moments, welch};
use crate::tree::{NodeId, NodeKey, Tree};

/// With fewer requests than this, their spread says nothing: what sampling alone brings is taken instead.
pub const FEW_REQUESTS: usize = 5;

/// The comparison of two sides, node by node.
#[derive(Debug)]
pub struct Matrix {
    /// Means and their certainty by node, for the slow and the fast side.
    pub moments: [Vec<Moments>; 2],
    /// The difference by node, slow minus fast.
    pub differences: Vec<Difference>,
    /// How surely each node's share of the whole difference is known: the standard error of what is not in proportion.
    share_errors: Vec<f64>,
    /// How many slow requests have more of a node than any fast one.
    beyond: Vec<u32>,
    /// How many requests there are on either side.
    requests: [usize; 2],
    /// Samples below each node on either side: how many, and how many periods their time is.
    pub samples: [Vec<(u64, f64)>; 2],
}

impl Matrix {
    /// Sums up the vectors of a ledger.
    pub fn of(ledger: &Ledger) -> Self {
        let tree = &ledger.tree;
        let mut most = Most::of_none(tree.nodes().len());
        let (fast, fast_covariances) = moments(tree, &ledger.sides[1], |node, value| most.add(node, value));
        let bounds = most.bounds(ledger.sides[1].len());
        let mut beyond = vec![0u32; tree.nodes().len()];
        let (mut slow, mut slow_covariances) = moments(tree, &ledger.sides[0], |node, value| {
            beyond[node as usize] += u32::from(value > bounds[node as usize]);
        });
        let few = ledger.sides[0].len();
        if (1..FEW_REQUESTS).contains(&few) {
            // The spread of so few is not known; that of the others is what they are judged by.
            let scale = ledger.sides[1].len() as f64 / few as f64;
            for (slow, fast) in slow.iter_mut().zip(&fast) {
                slow.mean_variance += fast.mean_variance * scale;
            }
            for (slow, fast) in slow_covariances.iter_mut().zip(&fast_covariances) {
                *slow += fast * scale;
            }
        }
        let differences: Vec<Difference> = slow.iter().zip(&fast).map(|(slow, fast)| welch(*slow, *fast)).collect();
        let whole = differences[Tree::ROOT as usize];
        let covariances = slow_covariances.iter().zip(&fast_covariances).map(|(slow, fast)| slow + fast);
        let share_errors = differences.iter().zip(covariances).map(|(difference, covariance)| {
            let share = if whole.delta > 0.0 { difference.delta / whole.delta } else { 0.0 };
            let variance = difference.error.powi(2) + (share * whole.error).powi(2) - 2.0 * share * covariance;
            variance.max(0.0).sqrt()
        });
        let share_errors = share_errors.collect();
        let moments = [slow, fast];
        let samples = [0, 1].map(|side| {
            let mut counts = ledger.samples[side].clone();
            counts.resize(tree.nodes().len(), (0, 0.0));
            for id in (1..counts.len()).rev() {
                let parent = tree.node(id as NodeId).parent as usize;
                counts[parent].0 += counts[id].0;
                counts[parent].1 += counts[id].1;
            }
            counts
        });
        let requests = [0, 1].map(|side| ledger.sides[side].len());
        Self { moments, differences, share_errors, beyond, requests, samples }
    }

    /// The difference of a node.
    pub fn difference(&self, node: NodeId) -> Difference {
        self.differences[node as usize]
    }

    /// The chance of a difference as large if there were none: of the means, or of a part of the slow requests.
    pub fn chance(&self, node: NodeId) -> f64 {
        // Two ways to be surprised: the second counts double.
        self.differences[node as usize].p().min(2.0 * self.exceedance(node))
    }

    /// The chance that as many slow requests have more of a node than any fast one, if nothing told them apart.
    pub fn exceedance(&self, node: NodeId) -> f64 {
        chance_of_exceeding(self.beyond[node as usize] as usize, self.requests[0], self.requests[1])
    }

    /// The lower end of what a node has of the whole difference, two standard errors below it.
    pub fn lower(&self, node: NodeId) -> f64 {
        self.differences[node as usize].delta - 2.0 * self.share_errors[node as usize]
    }
}

/// The most that one request has of each node.
struct Most {
    /// By node: how many requests have it at all, and the most that one has of it.
    seen: Vec<(usize, f64)>,
}

impl Most {
    fn of_none(nodes: usize) -> Self {
        Self { seen: vec![(0, f64::NEG_INFINITY); nodes] }
    }

    fn add(&mut self, node: NodeId, value: f64) {
        let (having, most) = &mut self.seen[node as usize];
        *having += 1;
        *most = most.max(value);
    }

    /// The most by node; requests that do not have a node have nothing of it.
    fn bounds(self, requests: usize) -> Vec<f64> {
        let bound = |(having, most): (usize, f64)| if having < requests { most.max(0.0) } else { most };
        self.seen.into_iter().map(bound).collect()
    }
}

/// What each node took in one request, given to `visit` node by node.
pub fn for_each_total(tree: &Tree, leaves: &[(NodeId, f64)], scratch: &mut Totals, mut visit: impl FnMut(NodeId, f64)) {
    let Totals { sums, is_touched, touched, chains } = scratch;
    sums.resize(tree.nodes().len(), 0.0);
    is_touched.resize(tree.nodes().len(), false);
    // Each leaf brings a chain of nodes upwards that no leaf before it has: every node is met once, not once a leaf.
    for (leaf, value) in leaves {
        sums[*leaf as usize] += value;
        let first = touched.len();
        for node in tree.upward(*leaf) {
            if std::mem::replace(&mut is_touched[node as usize], true) {
                break;
            }
            touched.push(node);
        }
        if touched.len() > first {
            chains.push(first);
        }
    }
    // A chain hangs on an earlier one: from the last to the first, each from its leaf upwards, all below a node is in it
    // before it is passed on.
    let mut end = touched.len();
    for first in chains.drain(..).rev() {
        for node in &touched[first..end] {
            let value = sums[*node as usize];
            if *node != Tree::ROOT {
                sums[tree.node(*node).parent as usize] += value;
            }
        }
        end = first;
    }
    for node in touched.drain(..) {
        visit(node, std::mem::take(&mut sums[node as usize]));
        is_touched[node as usize] = false;
    }
}

/// Room for the sums of one request.
#[derive(Debug, Default)]
pub struct Totals {
    sums: Vec<f64>,
    is_touched: Vec<bool>,
    touched: Vec<NodeId>,
    /// Where in `touched` each chain begins.
    chains: Vec<usize>,
}

/// Moments by node, and the covariance of each node's mean with the mean duration. Each request's nodes are shown to
/// `visit` as well.
fn moments(tree: &Tree, vectors: &[RequestVector], mut visit: impl FnMut(NodeId, f64)) -> (Vec<Moments>, Vec<f64>) {
    let mut sums = vec![(0.0, 0.0, 0.0); tree.nodes().len()];
    let mut totals = Totals::default();
    for vector in vectors {
        for_each_total(tree, &vector.times, &mut totals, |node, value| {
            let sum = &mut sums[node as usize];
            sum.0 += value;
            sum.1 += value * value;
            sum.2 += value * vector.duration;
            visit(node, value);
        });
    }
    let count = vectors.len();
    let mut moments: Vec<Moments> = sums.iter().map(|(sum, squares, _)| Moments::of(count, *sum, *squares)).collect();
    let n = count as f64;
    let duration = vectors.iter().map(|vector| vector.duration).sum::<f64>() / n.max(1.0);
    let covariance = |(sum, _, products): &(f64, f64, f64)| {
        if count > 1 { (products - sum * duration) / (n - 1.0) / n } else { 0.0 }
    };
    let covariances = sums.iter().map(covariance).collect();
    if (1..FEW_REQUESTS).contains(&count) {
        let noise = sampling_noise(tree, vectors);
        for (moments, noise) in moments.iter_mut().zip(noise) {
            moments.mean_variance += noise / (count * count) as f64;
        }
    }
    (moments, covariances)
}

/// Variance that sampling brings to each node's sum. The whole of an operation is measured by its spans, not by
/// samples: there is no such noise in it.
fn sampling_noise(tree: &Tree, vectors: &[RequestVector]) -> Vec<f64> {
    let mut noise = vec![0.0; tree.nodes().len()];
    for (leaf, variance) in vectors.iter().flat_map(|vector| &vector.noise) {
        for node in tree.upward(*leaf) {
            if matches!(tree.node(node).key, NodeKey::Operation(_) | NodeKey::Root) {
                break;
            }
            noise[node as usize] += variance;
        }
    }
    noise
}

/// What the leaves that belong took in each request.
pub fn column(vectors: &[RequestVector], belongs: &[bool]) -> Vec<f64> {
    let of_request = |vector: &RequestVector| {
        vector.times.iter().filter(|(leaf, _)| belongs[*leaf as usize]).map(|(_, value)| value).sum()
    };
    vectors.iter().map(of_request).collect()
}

/// Variance that sampling brings to the mean of such a column.
pub fn column_noise(vectors: &[RequestVector], belongs: &[bool]) -> f64 {
    let sum: f64 = vectors
        .iter()
        .flat_map(|vector| &vector.noise)
        .filter(|(leaf, _)| belongs[*leaf as usize])
        .map(|(_, variance)| variance)
        .sum();
    sum / (vectors.len().max(1) as f64).powi(2)
}

/// For each node, whether it is one of `nodes` or below one, and not below one of `without`.
pub fn membership(tree: &Tree, nodes: &[NodeId], without: &[NodeId]) -> Vec<bool> {
    let mut belongs = vec![false; tree.nodes().len()];
    for id in 0..belongs.len() {
        let node = id as NodeId;
        let above = id > 0 && belongs[tree.node(node).parent as usize];
        belongs[id] = !without.contains(&node) && (above || nodes.contains(&node));
    }
    belongs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;

    /// Scenario: leaves that share callers at several heights, in any order, one of them met twice in a row of requests.
    /// Guarantee: every node on a way up is shown once with the sum of the leaves below it, and nothing stays behind.
    #[test]
    fn totals_are_sums_of_what_lies_below() {
        let mut tree = Tree::default();
        let operation = tree.child(Tree::ROOT, NodeKey::Operation(0), false);
        let outer = tree.child(operation, NodeKey::Function(1), true);
        let inner = tree.child(outer, NodeKey::Function(2), true);
        let leaves = [(inner, Part::Cpu), (operation, Part::Unexplained), (outer, Part::Lock), (inner, Part::Io)]
            .map(|(above, part)| tree.child(above, NodeKey::Part(part), false));
        let mut scratch = Totals::default();
        for values in [[1.0, 2.0, 4.0, 8.0], [3.0, -5.0, 0.5, 0.25]] {
            let request: Vec<(NodeId, f64)> = leaves.into_iter().zip(values).collect();
            let mut seen = vec![None; tree.nodes().len()];
            for_each_total(&tree, &request, &mut scratch, |node, value| {
                assert_eq!(seen[node as usize].replace(value), None, "{node} was shown twice");
            });
            for node in 0..tree.nodes().len() as NodeId {
                let below = request.iter().filter(|(leaf, _)| tree.is_within(*leaf, node)).map(|(_, value)| value);
                assert_eq!(seen[node as usize], Some(below.sum::<f64>()), "{node}");
            }
        }
    }
}
