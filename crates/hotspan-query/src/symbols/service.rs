//! The call paths of one service as arrays: made once, read by every question.
//!
//! Stored nodes tell lines apart; flame graphs merge by function. Nodes that share their callers' functions and their
//! own have one *place*. Places are numbered by level, so that callers stand before callees and the callees of one
//! caller side by side; nodes are numbered by place. Values are then carried up in one backward pass over an array,
//! and whatever belongs to a place is a range.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::arrays;

use super::frames::{FrameEntry, FrameTable};
use super::id_search::IdIndex;
use crate::error::Result;
use crate::stack_filter::{Met, StackFilter};

/// A place in the tree of functions. 0 is the root.
pub(crate) type Place = u32;
/// A call path of a service.
pub(crate) type Node = u32;

/// The root as a place.
pub(crate) const ROOT: Place = 0;
/// The caller of a root.
const NO_NODE: Node = u32::MAX;

/// The columns of nodes that are read.
pub(super) const NODE_COLUMNS: [&str; 4] = ["service_id", "id", "parent", "frame"];

/// Rows of one service in a batch.
pub(super) type ServiceRows = (RecordBatch, Range<usize>);

/// A node as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StoredNode {
    id: u64,
    parent: u64,
    frame: u64,
}

/// The call paths of one service.
#[derive(Debug, Default)]
pub(crate) struct ServiceSymbols {
    /// Ids in ascending order, and the node of each.
    ids: Vec<u64>,
    nodes: Vec<Node>,
    index: IdIndex,
    /// By node: as it is stored, its caller, and its frame.
    stored: Vec<StoredNode>,
    callers: Vec<Node>,
    frames: Vec<u32>,
    node_places: Vec<Place>,
    /// By place: its caller, its function, its first node and its first callee; the latter two have an end besides.
    parents: Vec<Place>,
    functions: Vec<u32>,
    first_nodes: Vec<Node>,
    first_callees: Vec<Place>,
    table: Arc<FrameTable>,
}

impl ServiceSymbols {
    /// These symbols and further ones.
    pub(super) fn with(&self, nodes: &[ServiceRows], frames: &[ServiceRows]) -> Result<Self> {
        let mut table = FrameTable::clone(&self.table);
        table.extend(frames)?;
        let added = nodes.iter().map(|(_, range)| range.len()).sum::<usize>();
        let mut rows: Vec<StoredNode> = Vec::with_capacity(self.ids.len() + added);
        rows.extend(self.nodes.iter().map(|node| self.stored[*node as usize]));
        for (batch, range) in nodes {
            let ids = arrays::uint64s(batch, "id")?.values();
            let parents = arrays::uint64s(batch, "parent")?.values();
            let frames = arrays::uint64s(batch, "frame")?.values();
            rows.extend(range.clone().map(|row| StoredNode { id: ids[row], parent: parents[row], frame: frames[row] }));
        }
        if !rows.is_sorted_by_key(|row| row.id) {
            rows.sort_unstable();
        }
        rows.dedup_by_key(|row| row.id);
        Ok(Self::of_rows(&rows, Arc::new(table)))
    }

    /// Those of some paths alone: what is done with them then takes as long as there are such paths, not as long as there
    /// is code in the service.
    pub(super) fn only(&self, paths: &[u64]) -> Self {
        let mut on_the_way: Vec<StoredNode> = Vec::new();
        let mut seen: HashSet<Node> = HashSet::new();
        for path in paths {
            let mut next = self.node_of(*path);
            // One that was seen has all its callers, too.
            while let Some(node) = next.filter(|node| seen.insert(*node)) {
                on_the_way.push(self.stored[node as usize]);
                next = self.caller_of(node);
            }
        }
        on_the_way.sort_unstable();
        Self::of_rows(&on_the_way, Arc::clone(&self.table))
    }

    /// These symbols and those of further ones that some paths need: the nodes on their way to the root, and their frames.
    pub(super) fn with_paths(&self, nodes: &[ServiceRows], frames: &[ServiceRows], paths: &[u64]) -> Result<Self> {
        let node_ids = sorted_ids(nodes)?;
        let (Some(node_ids), Some(frame_ids)) = (node_ids, sorted_ids(frames)?) else {
            return self.with(nodes, frames);
        };
        let (mut on_the_way, mut used) = (Vec::new(), Vec::new());
        let mut seen: HashSet<u64> = HashSet::new();
        for path in paths {
            let mut id = *path;
            // One that was seen has all its callers, too; a circle in a damaged table ends there.
            while seen.insert(id)
                && let Some((batch, row)) = find(&node_ids, id)
            {
                on_the_way.push((nodes[batch].0.clone(), row..row + 1));
                used.push(arrays::uint64s(&nodes[batch].0, "frame")?.value(row));
                id = arrays::uint64s(&nodes[batch].0, "parent")?.value(row);
            }
        }
        used.sort_unstable();
        used.dedup();
        let used = used.iter().filter_map(|id| find(&frame_ids, *id));
        let used: Vec<ServiceRows> = used.map(|(batch, row)| (frames[batch].0.clone(), row..row + 1)).collect();
        self.with(&on_the_way, &used)
    }

    /// Arranges nodes that are sorted by id.
    fn of_rows(rows: &[StoredNode], table: Arc<FrameTable>) -> Self {
        let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
        let index = IdIndex::of(&ids);
        let frames: Vec<u32> = rows.iter().map(|row| table.number(row.frame)).collect();
        let callers: Vec<u32> =
            rows.iter().map(|row| index.find(&ids, row.parent).map_or(NO_NODE, |at| at as u32)).collect();
        let found = FoundPlaces::of(&callers, |row| table.entry(frames[row]).function);
        let (order, first_callees) = found.by_level(|function| table.texts.hash(function));
        let mut new_places = vec![ROOT; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_places[*old as usize] = new as Place;
        }
        let node_places: Vec<Place> = found.of_rows.iter().map(|place| new_places[*place as usize]).collect();
        // Nodes by place: those of a place in the order of their ids.
        let mut first_nodes = vec![0; order.len() + 1];
        for place in &node_places {
            first_nodes[*place as usize + 1] += 1;
        }
        for place in 0..order.len() {
            first_nodes[place + 1] += first_nodes[place];
        }
        let mut next = first_nodes.clone();
        let nodes: Vec<Node> = node_places
            .iter()
            .map(|place| {
                let node = next[*place as usize];
                next[*place as usize] += 1;
                node
            })
            .collect();
        let mut row_of = vec![0u32; rows.len()];
        for (row, node) in nodes.iter().enumerate() {
            row_of[*node as usize] = row as u32;
        }
        let by_node = |row: &u32| *row as usize;
        let caller_of = |row: &u32| {
            let caller = callers[*row as usize];
            // A caller whose own callers run in a circle stands nowhere; so do they.
            let is_above = caller != NO_NODE && nodes[caller as usize] < nodes[*row as usize];
            if is_above { nodes[caller as usize] } else { NO_NODE }
        };
        Self {
            stored: row_of.iter().map(|row| rows[by_node(row)]).collect(),
            callers: row_of.iter().map(caller_of).collect(),
            frames: row_of.iter().map(|row| frames[by_node(row)]).collect(),
            node_places: row_of.iter().map(|row| node_places[by_node(row)]).collect(),
            parents: order.iter().map(|old| new_places[found.parents[*old as usize] as usize]).collect(),
            functions: order.iter().map(|old| found.functions[*old as usize]).collect(),
            ids,
            nodes,
            index,
            first_nodes,
            first_callees,
            table,
        }
    }

    /// How many nodes there are.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// How many places there are, the root among them.
    pub(crate) fn place_count(&self) -> usize {
        self.parents.len()
    }

    /// The node of a path.
    pub(crate) fn node_of(&self, path: u64) -> Option<Node> {
        self.index.find(&self.ids, path).map(|at| self.nodes[at])
    }

    /// The id of a node's path.
    pub(crate) fn path_of(&self, node: Node) -> u64 {
        self.stored[node as usize].id
    }

    /// The caller of a node; none at a root.
    pub(crate) fn caller_of(&self, node: Node) -> Option<Node> {
        Some(self.callers[node as usize]).filter(|caller| *caller != NO_NODE)
    }

    /// The frame of a node.
    pub(crate) fn frame_of(&self, node: Node) -> &FrameEntry {
        self.table.entry(self.frames[node as usize])
    }

    /// The number of a node's frame in this service: equal numbers are the same frame.
    pub(crate) fn frame_number_of(&self, node: Node) -> u32 {
        self.frames[node as usize]
    }

    /// What orders the frames of a place where nothing else does.
    pub(crate) fn frame_id_of(&self, node: Node) -> u64 {
        self.stored[node as usize].frame
    }

    /// The place of a node.
    pub(crate) fn place_of(&self, node: Node) -> Place {
        self.node_places[node as usize]
    }

    /// The caller of each place.
    pub(crate) fn parents(&self) -> &[Place] {
        &self.parents
    }

    /// The nodes of a place.
    pub(crate) fn nodes_at(&self, place: Place) -> Range<Node> {
        self.first_nodes[place as usize]..self.first_nodes[place as usize + 1]
    }

    /// The callees of a place.
    pub(crate) fn callees(&self, place: Place) -> Range<Place> {
        self.first_callees[place as usize]..self.first_callees[place as usize + 1]
    }

    /// The function at a place, as the number of a text.
    pub(crate) fn function(&self, place: Place) -> u32 {
        self.functions[place as usize]
    }

    /// A text by its number.
    pub(crate) fn text(&self, number: u32) -> &Arc<str> {
        self.table.texts.get(number)
    }

    /// How many texts there are.
    pub(crate) fn text_count(&self) -> usize {
        self.table.texts.len()
    }

    /// For each place, whether it starts with these functions, the root first.
    fn below(&self, call_site: &[String]) -> Vec<bool> {
        let wanted: Vec<Option<u32>> = call_site.iter().map(|function| self.table.texts.number(function)).collect();
        // How many of the functions lead to each place; one more than there are, where another one does.
        let lost = wanted.len() + 1;
        let mut depths: Vec<usize> = vec![0; self.place_count()];
        for place in 1..depths.len() {
            let depth = depths[self.parents[place] as usize];
            depths[place] = match wanted.get(depth) {
                Some(function) if *function == Some(self.functions[place]) => depth + 1,
                Some(_) => lost,
                None => depth,
            };
        }
        depths.into_iter().map(|depth| depth == wanted.len()).collect()
    }

    /// For each place, whether a filter keeps the stacks that end there.
    pub(crate) fn kept_by(&self, filter: &StackFilter) -> Vec<bool> {
        let mut kept = self.below(&filter.call_site);
        // At the root are samples without a stack.
        kept[ROOT as usize] = false;
        if !filter.tests_functions() {
            return kept;
        }
        let mut met_by: Vec<Option<Met>> = vec![None; self.text_count()];
        let mut met = vec![Met::default(); kept.len()];
        for place in 1..kept.len() {
            let function = self.functions[place];
            let own = *met_by[function as usize].get_or_insert_with(|| filter.met_by(self.text(function)));
            met[place] = met[self.parents[place] as usize].and(own);
            kept[place] &= filter.keeps(met[place]);
        }
        kept
    }

    /// For each place, whether a function that is wanted leads to it.
    pub(crate) fn places_through(&self, is_wanted: &(dyn Fn(&str) -> bool + Sync)) -> Vec<bool> {
        let wanted: Vec<bool> =
            (0..self.text_count() as u32).map(|text| is_wanted(self.table.texts.get(text))).collect();
        let mut through = vec![false; self.place_count()];
        for place in 1..through.len() {
            through[place] = through[self.parents[place] as usize] || wanted[self.functions[place] as usize];
        }
        through
    }

    /// The functions that lead to a place, its own first.
    pub(crate) fn functions_to(&self, place: Place) -> impl Iterator<Item = &Arc<str>> {
        let above = |place: &Place| Some(self.parents[*place as usize]).filter(|caller| *caller != ROOT);
        let first = Some(place).filter(|place| *place != ROOT);
        std::iter::successors(first, above).map(|place| self.text(self.function(place)))
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let (node, place) = (8 + 4 + size_of::<StoredNode>() + 4 + 4 + 4, 4 + 4 + 4 + 4);
        self.node_count() * node + self.place_count() * place + self.table.bytes()
    }
}

/// Ids in ascending order, and the row of the first.
type IdRun<'b> = (&'b [u64], usize);

/// The ids of rows; none if some are out of order, as they are in young segments.
fn sorted_ids(rows: &[ServiceRows]) -> Result<Option<Vec<IdRun<'_>>>> {
    let mut found = Vec::with_capacity(rows.len());
    for (batch, range) in rows {
        let ids = &arrays::uint64s(batch, "id")?.values()[range.clone()];
        if !ids.is_sorted() {
            return Ok(None);
        }
        found.push((ids, range.start));
    }
    Ok(Some(found))
}

/// Which batch has an id, and in which row.
fn find(ids: &[IdRun<'_>], id: u64) -> Option<(usize, usize)> {
    let mut batches = ids.iter().enumerate();
    batches.find_map(|(batch, (ids, first))| Some((batch, first + ids.binary_search(&id).ok()?)))
}

/// Places in the order that they were found in.
struct FoundPlaces {
    of_rows: Vec<Place>,
    parents: Vec<Place>,
    functions: Vec<u32>,
}

impl FoundPlaces {
    /// The places of nodes that name their callers by row.
    fn of(callers: &[u32], function_of: impl Fn(usize) -> u32) -> Self {
        const UNSEEN: Place = u32::MAX;
        const ON_THE_WAY: Place = u32::MAX - 1;
        let mut found = Self { of_rows: vec![UNSEEN; callers.len()], parents: vec![ROOT], functions: vec![0] };
        let mut places: HashMap<u64, Place> = HashMap::with_capacity(callers.len());
        let mut chain: Vec<u32> = Vec::new();
        for row in 0..callers.len() as u32 {
            let mut at = row;
            while at != NO_NODE && found.of_rows[at as usize] == UNSEEN {
                found.of_rows[at as usize] = ON_THE_WAY;
                chain.push(at);
                at = callers[at as usize];
            }
            // A caller that is not stored leaves the rest under the root; so does a circle in a damaged table.
            let known = if at == NO_NODE { ROOT } else { found.of_rows[at as usize] };
            let mut place = if known == ON_THE_WAY { ROOT } else { known };
            while let Some(node) = chain.pop() {
                let function = function_of(node as usize);
                let next = found.parents.len() as Place;
                let callee = *places.entry(u64::from(place) << 32 | u64::from(function)).or_insert(next);
                if callee == next {
                    found.parents.push(place);
                    found.functions.push(function);
                }
                place = callee;
                found.of_rows[node as usize] = place;
            }
        }
        found
    }

    /// The places level by level, and for each where its callees start. The order of callees follows from their
    /// functions alone, so that answers do not depend on what else is known.
    fn by_level(&self, rank: impl Fn(u32) -> u64) -> (Vec<Place>, Vec<Place>) {
        let count = self.parents.len();
        let mut starts = vec![0u32; count + 1];
        for parent in &self.parents[1..] {
            starts[*parent as usize + 1] += 1;
        }
        for place in 0..count {
            starts[place + 1] += starts[place];
        }
        let mut next = starts.clone();
        let mut callees = vec![ROOT; count - 1];
        for (place, parent) in self.parents.iter().enumerate().skip(1) {
            callees[next[*parent as usize] as usize] = place as Place;
            next[*parent as usize] += 1;
        }
        let mut order: Vec<Place> = Vec::with_capacity(count);
        let mut first_callees: Vec<Place> = Vec::with_capacity(count + 1);
        order.push(ROOT);
        for at in 0..count {
            let place = order[at] as usize;
            let siblings = &mut callees[starts[place] as usize..starts[place + 1] as usize];
            if siblings.len() > 1 {
                siblings.sort_unstable_by_key(|place| rank(self.functions[*place as usize]));
            }
            first_callees.push(order.len() as Place);
            order.extend_from_slice(siblings);
        }
        first_callees.push(order.len() as Place);
        (order, first_callees)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, UInt64Array};

    use super::*;

    fn symbols(rows: &[(u64, u64, u64)]) -> ServiceSymbols {
        let mut rows: Vec<StoredNode> =
            rows.iter().map(|(id, parent, frame)| StoredNode { id: *id, parent: *parent, frame: *frame }).collect();
        rows.sort_unstable();
        ServiceSymbols::of_rows(&rows, Arc::default())
    }

    /// Scenario: a tree, a node whose caller is not stored, and two that call each other in a damaged table.
    /// Guarantee: callers stand before callees, every node has one place under its caller's, and nothing hangs.
    #[test]
    fn callers_before_callees() {
        let known = symbols(&[(9, 0, 1), (5, 9, 1), (7, 9, 2), (3, 5, 1), (100, 77, 1), (20, 21, 1), (21, 20, 1)]);
        assert_eq!(known.node_count(), 7);
        for node in 0..known.node_count() as Node {
            assert!(known.nodes_at(known.place_of(node)).contains(&node));
            assert_eq!(known.node_of(known.path_of(node)), Some(node));
            match known.caller_of(node) {
                Some(caller) => {
                    assert!(caller < node);
                    assert_eq!(known.parents()[known.place_of(node) as usize], known.place_of(caller));
                    assert!(known.callees(known.place_of(caller)).contains(&known.place_of(node)));
                }
                None => assert_eq!(known.parents()[known.place_of(node) as usize], ROOT),
            }
        }
        // All frames are unknown, so all nodes of a level are one place.
        assert_eq!(known.nodes_at(1).len(), 3, "9, 100 and one of the circle");
        assert_eq!(known.place_count(), 4);
    }

    /// Scenario: nodes of two files, in and out of order, of which a few paths are asked for, one of them not stored.
    /// Guarantee: those paths lead to the root over the same nodes as among all symbols, and nothing else is read.
    #[test]
    fn picked_paths() {
        let file = |rows: &[(u64, u64)]| -> ServiceRows {
            let column = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as ArrayRef;
            let batch = RecordBatch::try_from_iter([
                ("id", column(rows.iter().map(|(id, _)| *id).collect())),
                ("parent", column(rows.iter().map(|(_, parent)| *parent).collect())),
                ("frame", column(vec![1; rows.len()])),
            ]);
            (batch.unwrap(), 1..rows.len())
        };
        // The first row of each file is another service's. 70 calls itself, as only a damaged table has it.
        let sorted = [file(&[(9, 9), (10, 0), (20, 10), (40, 30), (70, 70)]), file(&[(0, 0), (30, 20), (50, 20)])];
        let young = [file(&[(9, 9), (40, 30), (10, 0), (20, 10), (70, 70)]), file(&[(0, 0), (30, 20), (50, 20)])];
        let all = ServiceSymbols::default().with(&sorted, &[]).unwrap();
        let way = |symbols: &ServiceSymbols, path: u64| {
            let callers = std::iter::successors(symbols.node_of(path), |node| symbols.caller_of(*node));
            callers.map(|node| symbols.path_of(node)).collect::<Vec<_>>()
        };
        for (files, count) in [(&sorted, 5), (&young, 6)] {
            let picked = ServiceSymbols::default().with_paths(files, &[], &[40, 41, 30, 70]).unwrap();
            assert_eq!(picked.node_count(), count);
            assert_eq!(way(&picked, 40), [40, 30, 20, 10]);
            for path in [40, 41, 30, 70] {
                assert_eq!(way(&picked, path), way(&all, path));
            }
            let only = all.only(&[40, 41, 30, 70]);
            assert_eq!(only.node_count(), 5);
            for path in [40, 41, 30, 70] {
                assert_eq!(way(&only, path), way(&all, path));
            }
        }
    }

    /// Scenario: paths that are stored, and others next to them. Guarantee: the former are found, at their own node.
    #[test]
    fn paths_by_id() {
        let rows: Vec<(u64, u64, u64)> = (1..200u64).map(|id| (id << 56 | id, 0, 0)).collect();
        let known = symbols(&rows);
        for (id, _, _) in rows {
            assert_eq!(known.node_of(id).map(|node| known.path_of(node)), Some(id));
            assert_eq!((known.node_of(id + 1), known.node_of(id - 1)), (None, None));
        }
        assert_eq!((known.node_of(0), known.node_of(u64::MAX)), (None, None));
    }
}
