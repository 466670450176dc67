//! Cost that only moved: one child of a node grew, another shrank, and the node itself stayed as it was.

use serde::Serialize;

use crate::ledger::Ledger;
use crate::matrix::Matrix;
use crate::tree::{NodeId, NodeKey, Tree};
use crate::vocabulary::Vocabulary;

/// Cost that went from one function to another. Never a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// The service.
    pub service: String,
    /// What calls both.
    pub within: String,
    /// What costs less in slow requests.
    pub from: String,
    /// What costs more.
    pub to: String,
    /// How much, in milliseconds a request.
    pub ms: f64,
}

/// How many standard errors both changes must be from zero: there are many nodes, and none was asked for.
const SURE: f64 = 5.0;
const SHOWN: usize = 5;

/// Cost that moved between siblings, the largest first.
pub fn moved(vocabulary: &Vocabulary, ledger: &Ledger, matrix: &Matrix) -> Vec<Moved> {
    let mut found: Vec<Moved> = Vec::new();
    for (above, children) in ledger.children.iter().enumerate() {
        let is_sure = |node: &&NodeId| {
            let difference = matrix.difference(**node);
            matches!(ledger.tree.node(**node).key, NodeKey::Function(_))
                && difference.delta.abs() > SURE * difference.error
                && matrix.samples.iter().any(|side| side[**node as usize].1 >= 8.0)
        };
        let delta = |node: &NodeId| matrix.difference(*node).delta;
        let sure: Vec<&NodeId> = children.iter().filter(is_sure).collect();
        let most = sure.iter().max_by(|a, b| delta(a).total_cmp(&delta(b)));
        let least = sure.iter().min_by(|a, b| delta(a).total_cmp(&delta(b)));
        let (Some(most), Some(least)) = (most, least) else { continue };
        let (gain, loss) = (delta(most), -delta(least));
        let size = gain.min(loss);
        let left = matrix.differences[above].delta.abs();
        if size <= 0.0 || left > 0.25 * size || gain.max(loss) > 1.5 * size {
            continue;
        }
        found.push(Moved {
            service: service_name(vocabulary, &ledger.tree, **most),
            within: node_name(vocabulary, &ledger.tree, above as NodeId),
            from: node_name(vocabulary, &ledger.tree, **least),
            to: node_name(vocabulary, &ledger.tree, **most),
            ms: size / 1e6,
        });
    }
    found.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    found.truncate(SHOWN);
    found
}

/// What a node is called.
pub fn node_name(vocabulary: &Vocabulary, tree: &Tree, node: NodeId) -> String {
    match tree.node(node).key {
        NodeKey::Root => "everything".to_owned(),
        NodeKey::Operation(operation) => vocabulary.text_of(vocabulary.operation_of(operation).name).to_owned(),
        NodeKey::Function(function) => vocabulary.text_of(function).to_owned(),
        NodeKey::Part(part) => part.label().to_owned(),
    }
}

/// The service that an operation calls, if it is a call whose other side was seen.
pub fn callee_name(vocabulary: &Vocabulary, tree: &Tree, operation: NodeId) -> Option<String> {
    let NodeKey::Operation(operation) = tree.node(operation).key else { return None };
    let callee = vocabulary.text_of(vocabulary.operation_of(operation).callee);
    (!callee.is_empty()).then(|| callee.to_owned())
}

/// The service that a node belongs to.
pub fn service_name(vocabulary: &Vocabulary, tree: &Tree, node: NodeId) -> String {
    match tree.node(tree.node(node).operation).key {
        NodeKey::Operation(operation) => vocabulary.text_of(vocabulary.operation_of(operation).service).to_owned(),
        _ => String::new(),
    }
}
