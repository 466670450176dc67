//! More calls or slower calls? The difference of a repeated operation, split exactly into the two.

use hashbrown::HashMap;
use hotspan_model::SpanKind;
use serde::Serialize;

use crate::ledger::Ledger;
use crate::matrix::Matrix;
use crate::tree::{NodeId, NodeKey};
use crate::vocabulary::Vocabulary;

/// How often an operation was called in a request, and what that explains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CallChange {
    /// Calls in a slow request, on average.
    pub slow: f64,
    /// Calls in a fast request, on average.
    pub fast: f64,
    /// Milliseconds of the difference that come from calling more often.
    pub more_calls_ms: f64,
    /// Milliseconds of the difference that come from calls that take longer. Both together are the difference.
    pub slower_calls_ms: f64,
    /// Share of the calls in slow requests that failed.
    pub failed_share: f64,
}

impl CallChange {
    /// Whether calling again and again is what makes the difference.
    pub fn is_mostly_more(&self) -> bool {
        let whole = self.more_calls_ms + self.slower_calls_ms;
        // One call where there was none is a new call, not a repeated one.
        self.slow >= 2.0 && self.slow >= 1.3 * self.fast + 0.5 && self.more_calls_ms >= 0.5 * whole && whole > 0.0
    }

    /// Whether the calls are made again since they fail. Those that fail may take longer, too.
    pub fn is_retrying(&self) -> bool {
        self.slow >= 2.0 && self.slow >= 1.3 * self.fast + 0.5 && self.more_calls_ms > 0.0 && self.failed_share >= 0.2
    }
}

/// Calls by operation node.
#[derive(Debug)]
pub struct Calls {
    /// The change of each operation's calls, and whether they go to another process.
    operations: HashMap<NodeId, (CallChange, bool)>,
}

impl Calls {
    /// Counts the calls on both sides.
    pub fn of(vocabulary: &Vocabulary, ledger: &Ledger, matrix: &Matrix) -> Self {
        let mut sums: HashMap<NodeId, [(f64, f64); 2]> = HashMap::new();
        for (side, vectors) in ledger.sides.iter().enumerate() {
            for (node, calls, failed) in vectors.iter().flat_map(|vector| &vector.calls) {
                let sum = &mut sums.entry(*node).or_default()[side];
                sum.0 += f64::from(*calls);
                sum.1 += f64::from(*failed);
            }
        }
        let requests = [0, 1].map(|side| ledger.sides[side].len().max(1) as f64);
        let change = |(id, sums): (NodeId, [(f64, f64); 2])| {
            let NodeKey::Operation(operation) = ledger.tree.node(id).key else { return None };
            let calls = [0, 1].map(|side| sums[side].0 / requests[side]);
            let times = [0, 1].map(|side| matrix.moments[side][id as usize].mean / 1e6);
            let per_call = [0, 1].map(|side| if calls[side] > 0.0 { times[side] / calls[side] } else { 0.0 });
            // Without calls on one side, there is no telling how long they would have taken: all is "more".
            let (more, slower) = if calls[0] > 0.0 && calls[1] > 0.0 {
                let more = (calls[0] - calls[1]) * (per_call[0] + per_call[1]) / 2.0;
                let slower = (per_call[0] - per_call[1]) * (calls[0] + calls[1]) / 2.0;
                (more, slower)
            } else {
                (times[0] - times[1], 0.0)
            };
            let failed_share = sums[0].1 / sums[0].0.max(1.0);
            let (slow, fast) = (calls[0], calls[1]);
            let change = CallChange { slow, fast, more_calls_ms: more, slower_calls_ms: slower, failed_share };
            let role = vocabulary.operation_of(operation).role;
            Some((id, (change, !matches!(role, SpanKind::Internal | SpanKind::Unspecified | SpanKind::Other(_)))))
        };
        Self { operations: sums.into_iter().filter_map(change).collect() }
    }

    /// The change of an operation's calls; none for other nodes.
    pub fn change(&self, node: NodeId) -> Option<CallChange> {
        self.operations.get(&node).map(|(change, _)| *change)
    }

    /// Whether the walk ends at this operation: what is called too often need not be slow itself.
    pub fn ends_walk(&self, node: NodeId) -> bool {
        let again_and_again = |change: &CallChange| change.is_mostly_more() || change.is_retrying();
        self.operations.get(&node).is_some_and(|(change, is_remote)| *is_remote && again_and_again(change))
    }
}
