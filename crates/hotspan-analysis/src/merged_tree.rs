//! The merged tree: one icicle whose upper part is the spans and whose lower part is their code and waits, so that one
//! picture sums to the whole duration.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use hotspan_model::FlameTree;

use crate::folding::FoldedStack;
use crate::ledger::Ledger;
use crate::part::Part;
use crate::tree::{NodeId, NodeKey};
use crate::vocabulary::{Frame, OperationId, TextId, Vocabulary};

/// Functions of libraries that a short tree shows below own code.
const SHOWN_LIBRARY_FRAMES: usize = 2;

/// The tree of one side of a ledger; values are nanoseconds of one request on average.
///
/// Running code is a function's own value; everything else stands below it under a name in brackets. What samples say
/// beyond a span's time is noise: a negative rest is taken from what is seen, so that no bar is negative and every
/// span keeps its width.
pub fn merged_tree(vocabulary: &Vocabulary, ledger: &Ledger, side: usize) -> FlameTree {
    merged_tree_without(vocabulary, ledger, side, &vec![false; ledger.tree.nodes().len()])
}

/// The same in few lines: without what calls own code, and without the depths of libraries below it.
pub fn short_merged_tree(vocabulary: &Vocabulary, ledger: &Ledger, side: usize) -> FlameTree {
    let nodes = ledger.tree.nodes();
    let is_library = |id: usize| matches!(nodes[id].key, NodeKey::Function(_)) && !nodes[id].is_own;
    let mut leads_to_own: Vec<bool> = nodes.iter().map(|node| node.is_own).collect();
    for id in (1..nodes.len()).rev() {
        // Own code in another operation is reached by a call, not by this function.
        let is_code = !matches!(nodes[id].key, NodeKey::Operation(_));
        leads_to_own[nodes[id].parent as usize] |= leads_to_own[id] && is_code;
    }
    let mut depths = vec![0usize; nodes.len()];
    let mut is_left_out = vec![false; nodes.len()];
    for id in 1..nodes.len() {
        if is_library(id) {
            depths[id] = depths[nodes[id].parent as usize] + 1;
            is_left_out[id] = leads_to_own[id] || depths[id] > SHOWN_LIBRARY_FRAMES;
        }
    }
    merged_tree_without(vocabulary, ledger, side, &is_left_out)
}

fn merged_tree_without(vocabulary: &Vocabulary, ledger: &Ledger, side: usize, is_left_out: &[bool]) -> FlameTree {
    let tree = &ledger.tree;
    let requests = ledger.sides[side].len().max(1) as f64;
    let mut own = vec![0.0; tree.nodes().len()];
    for (leaf, value) in ledger.sides[side].iter().flat_map(|vector| &vector.times) {
        own[*leaf as usize] += value / requests;
    }
    absorb_negative_rests(ledger, &mut own);
    let mut flame = FlameTree::default();
    let mut places = vec![FlameTree::ROOT; tree.nodes().len()];
    let has_value = subtree_has_value(ledger, &own);
    let mut carried = 0.0;
    for id in 1..tree.nodes().len() {
        if !has_value[id] {
            continue;
        }
        let node = tree.node(id as NodeId);
        let above = places[node.parent as usize];
        places[id] = match node.key {
            NodeKey::Root | NodeKey::Part(Part::Cpu) => above,
            NodeKey::Function(_) if is_left_out[id] => above,
            NodeKey::Operation(operation) => {
                let name = flame.intern(&span_name(vocabulary, operation));
                flame.child(above, name)
            }
            NodeKey::Function(function) => {
                let name = flame.intern(vocabulary.text_of(function));
                flame.child(above, name)
            }
            NodeKey::Part(part) => {
                let name = flame.intern(part.label());
                flame.child(above, name)
            }
        };
        // Rounding is carried on, so that the whole is the duration to the nanosecond.
        let value = own[id] + carried;
        let rounded = value.round();
        if own[id] != 0.0 {
            carried = value - rounded;
            flame.add_self(places[id], rounded as i64);
        }
    }
    place_lines(vocabulary, ledger, side, &places, &mut flame);
    flame.sum_totals();
    flame
}

/// How spans of an operation are called in the tree.
fn span_name(vocabulary: &Vocabulary, operation: OperationId) -> String {
    let operation = vocabulary.operation_of(operation);
    let name = format!("{} {}", vocabulary.text_of(operation.service), vocabulary.text_of(operation.name));
    name.trim().to_owned()
}

/// What a name of the tree stands for where it is no function: `span`, or `wait` for what is off the CPU.
pub fn kinds_of_names(vocabulary: &Vocabulary) -> HashMap<String, &'static str> {
    let spans = (0..vocabulary.operation_count()).map(|id| (span_name(vocabulary, id as OperationId), "span"));
    let waits = Part::ALL.into_iter().filter(|part| part.is_waiting());
    spans.chain(waits.map(|part| (part.label().to_owned(), "wait"))).collect()
}

/// Tells where functions stand: at the line that most of their time was seen in.
fn place_lines(vocabulary: &Vocabulary, ledger: &Ledger, side: usize, places: &[usize], flame: &mut FlameTree) {
    let mut time_of: BTreeMap<(NodeId, TextId, u32), f64> = BTreeMap::new();
    for placement in ledger.tree.placements() {
        let frames = FoldedStack::of(vocabulary, placement.stack).frames;
        for (node, frame) in ledger.tree.upward(placement.leaf).zip(frames.into_iter().rev()) {
            let Frame { file, line, .. } = vocabulary.frame_of(frame);
            *time_of.entry((node, file, line)).or_default() += placement.time[side];
        }
    }
    for ((node, file, line), time) in time_of {
        let is_function = matches!(ledger.tree.node(node).key, NodeKey::Function(_));
        // A function that is left out stands where its caller does, whose lines are others.
        let is_shown = places[node as usize] != places[ledger.tree.node(node).parent as usize];
        if is_function && is_shown && places[node as usize] != FlameTree::ROOT {
            let file = flame.intern(vocabulary.text_of(file));
            flame.place(places[node as usize], file, line, time.round() as i64);
        }
    }
}

/// Scales what is seen of an operation where it is more than the operation's time.
fn absorb_negative_rests(ledger: &Ledger, own: &mut [f64]) {
    let tree = &ledger.tree;
    let is_rest = |id: usize| {
        matches!(tree.node(id as NodeId).key, NodeKey::Part(Part::Unexplained | Part::Downstream))
            && matches!(tree.node(tree.node(id as NodeId).parent).key, NodeKey::Operation(_))
    };
    let mut rests: HashMap<NodeId, f64> = HashMap::new();
    for id in (0..own.len()).filter(|id| is_rest(*id)) {
        if own[id] < 0.0 {
            *rests.entry(tree.node(id as NodeId).operation).or_default() += std::mem::take(&mut own[id]);
        }
    }
    let mut seen: HashMap<NodeId, f64> = HashMap::new();
    for (id, value) in own.iter().enumerate().filter(|(_, value)| **value > 0.0) {
        let operation = tree.node(id as NodeId).operation;
        if rests.contains_key(&operation) {
            *seen.entry(operation).or_default() += value;
        }
    }
    for (id, value) in own.iter_mut().enumerate().filter(|(_, value)| **value > 0.0) {
        let operation = tree.node(id as NodeId).operation;
        if let (Some(rest), Some(seen)) = (rests.get(&operation), seen.get(&operation)) {
            *value *= ((seen + rest) / seen).max(0.0);
        }
    }
}

fn subtree_has_value(ledger: &Ledger, own: &[f64]) -> Vec<bool> {
    let mut has_value: Vec<bool> = own.iter().map(|value| *value != 0.0).collect();
    for id in (1..own.len()).rev() {
        let parent = ledger.tree.node(id as NodeId).parent as usize;
        has_value[parent] |= has_value[id];
    }
    has_value
}
