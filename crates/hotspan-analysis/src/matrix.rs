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
    /// The chance that as many slow requests have more of a node than any fast one, if nothing told them apart.
    exceedance: Vec<f64>,
    /// Samples below each node on either side: how many, and how many periods their time is.
    pub samples: [Vec<(u64, f64)>; 2],
}

impl Matrix {
    /// Sums up the vectors of a ledger.
    pub fn of(ledger: &Ledger) -> Self {
        let [(mut slow, mut slow_covariances), (fast, fast_covariances)] =
            [0, 1].map(|side| moments(&ledger.tree, &ledger.sides[side]));
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
            let mut counts = vec![(0u64, 0.0); ledger.tree.nodes().len()];
            for (leaf, (count, periods)) in &ledger.samples[side] {
                counts[*leaf as usize].0 += count;
                counts[*leaf as usize].1 += periods;
            }
            for id in (1..counts.len()).rev() {
                let parent = ledger.tree.node(id as NodeId).parent as usize;
                counts[parent].0 += counts[id].0;
                counts[parent].1 += counts[id].1;
            }
            counts
        });
        let exceedance = exceedance(ledger);
        Self { moments, differences, share_errors, exceedance, samples }
    }

    /// The difference of a node.
    pub fn difference(&self, node: NodeId) -> Difference {
        self.differences[node as usize]
    }

    /// The chance of a difference as large if there were none: of the means, or of a part of the slow requests.
    pub fn chance(&self, node: NodeId) -> f64 {
        // Two ways to be surprised: the second counts double.
        self.differences[node as usize].p.min(2.0 * self.exceedance[node as usize])
    }

    /// The chance that as many slow requests have more of a node than any fast one.
    pub fn exceedance(&self, node: NodeId) -> f64 {
        self.exceedance[node as usize]
    }

    /// The lower end of what a node has of the whole difference, two standard errors below it.
    pub fn lower(&self, node: NodeId) -> f64 {
        self.differences[node as usize].delta - 2.0 * self.share_errors[node as usize]
    }
}

fn exceedance(ledger: &Ledger) -> Vec<f64> {
    let count = ledger.tree.nodes().len();
    let mut totals = Totals::default();
    // How many requests have the node at all, and the most that one has of it.
    let mut usual = vec![(0usize, f64::NEG_INFINITY); count];
    for vector in &ledger.sides[1] {
        for_each_total(&ledger.tree, &vector.times, &mut totals, |node, value| {
            let (having, most) = &mut usual[node as usize];
            *having += 1;
            *most = most.max(value);
        });
    }
    let fast = ledger.sides[1].len();
    let bounds: Vec<f64> =
        usual.into_iter().map(|(having, most)| if having < fast { most.max(0.0) } else { most }).collect();
    let mut beyond = vec![0usize; count];
    for vector in &ledger.sides[0] {
        for_each_total(&ledger.tree, &vector.times, &mut totals, |node, value| {
            beyond[node as usize] += usize::from(value > bounds[node as usize]);
        });
    }
    let slow = ledger.sides[0].len();
    beyond.into_iter().map(|beyond| chance_of_exceeding(beyond, slow, fast)).collect()
}

/// What each node took in one request, given to `visit` node by node.
pub fn for_each_total(tree: &Tree, leaves: &[(NodeId, f64)], scratch: &mut Totals, mut visit: impl FnMut(NodeId, f64)) {
    scratch.sums.resize(tree.nodes().len(), 0.0);
    scratch.is_touched.resize(tree.nodes().len(), false);
    for (leaf, value) in leaves {
        for node in tree.upward(*leaf) {
            if !scratch.is_touched[node as usize] {
                scratch.is_touched[node as usize] = true;
                scratch.touched.push(node);
            }
            scratch.sums[node as usize] += value;
        }
    }
    for node in scratch.touched.drain(..) {
        visit(node, scratch.sums[node as usize]);
        scratch.sums[node as usize] = 0.0;
        scratch.is_touched[node as usize] = false;
    }
}

/// Room for the sums of one request.
#[derive(Debug, Default)]
pub struct Totals {
    sums: Vec<f64>,
    is_touched: Vec<bool>,
    touched: Vec<NodeId>,
}

/// Moments by node, and the covariance of each node's mean with the mean duration.
fn moments(tree: &Tree, vectors: &[RequestVector]) -> (Vec<Moments>, Vec<f64>) {
    let mut sums = vec![(0.0, 0.0, 0.0); tree.nodes().len()];
    let mut totals = Totals::default();
    for vector in vectors {
        for_each_total(tree, &vector.times, &mut totals, |node, value| {
            let sum = &mut sums[node as usize];
            sum.0 += value;
            sum.1 += value * value;
            sum.2 += value * vector.duration;
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

/// What some nodes with everything below them took in each request, without what other nodes below them took.
pub fn column(tree: &Tree, vectors: &[RequestVector], nodes: &[NodeId], without: &[NodeId]) -> Vec<f64> {
    let belongs = membership(tree, nodes, without);
    let of_request = |vector: &RequestVector| {
        vector.times.iter().filter(|(leaf, _)| belongs[*leaf as usize]).map(|(_, value)| value).sum()
    };
    vectors.iter().map(of_request).collect()
}

/// Variance that sampling brings to the mean of such a column.
pub fn column_noise(tree: &Tree, vectors: &[RequestVector], nodes: &[NodeId], without: &[NodeId]) -> f64 {
    if nodes.iter().any(|node| matches!(tree.node(*node).key, NodeKey::Operation(_) | NodeKey::Root))
        && without.is_empty()
    {
        return 0.0;
    }
    let belongs = membership(tree, nodes, without);
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
