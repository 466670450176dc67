//! From sums by call path to a flame graph: the trees of all services as one, merged by function and pruned.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_model::FlameTree;
use hotspan_model::flame::NodeText;

use crate::path_sums::PathSums;
use crate::symbols::{Node, Place, ROOT, ServiceSymbols};

/// The pruned tree of functions with the values of the paths that were summed.
pub(crate) fn build_tree(sums: &mut PathSums, max_nodes: usize) -> FlameTree {
    let unresolved = sums.count_unresolved();
    let services: Vec<ServiceTree<'_>> = sums
        .symbols
        .services()
        .zip(&sums.values)
        .filter(|(_, values)| values.iter().any(|value| *value != 0))
        .map(|(symbols, values)| ServiceTree::new(symbols, values))
        .collect();
    let merged = MergedTree::of(&services);
    let (mut tree, pruned) = FlameTree::from_arrays(&merged.parents, &merged.self_values, max_nodes, |place| {
        let (service, node, value) = merged.hottest_line(place as Place);
        let frame = service.symbols.frame_of(node);
        NodeText {
            name: service.symbols.text(frame.function),
            file: service.symbols.text(frame.file),
            line: frame.line,
            line_weight: value,
            kind: frame.kind,
            module: service.symbols.text(frame.module),
        }
    });
    if unresolved != 0 {
        let name = tree.intern("[unknown]");
        let index = tree.child(FlameTree::ROOT, name);
        tree.add_self(index, unresolved);
        tree.sum_totals();
    }
    drop(merged);
    drop(services);
    sums.exactness.pruned_nodes = pruned.nodes;
    sums.exactness.pruned_value = pruned.value;
    tree
}

/// The paths of a service with their values and totals.
struct ServiceTree<'s> {
    symbols: &'s ServiceSymbols,
    values: &'s [i64],
    totals: Vec<i64>,
}

impl<'s> ServiceTree<'s> {
    fn new(symbols: &'s ServiceSymbols, values: &'s [i64]) -> Self {
        let mut totals = values.to_vec();
        for node in (0..totals.len()).rev() {
            if let Some(caller) = symbols.caller_of(node as Node) {
                totals[caller as usize] = totals[caller as usize].saturating_add(totals[node]);
            }
        }
        Self { symbols, values, totals }
    }

    fn self_values(&self) -> Vec<i64> {
        let mut sums = vec![0i64; self.symbols.place_count()];
        for (node, value) in self.values.iter().enumerate() {
            let sum = &mut sums[self.symbols.place_of(node as Node) as usize];
            *sum = sum.saturating_add(*value);
        }
        sums
    }

    /// The node of a place that carries most itself, or leads to most where none does: value, total, frame, node.
    fn hottest_node(&self, place: Place) -> Option<(i64, i64, u64, Node)> {
        let weigh = |node: Node| {
            let (value, total) = (self.values[node as usize], self.totals[node as usize]);
            (value, total, self.symbols.frame_id_of(node), node)
        };
        self.symbols.nodes_at(place).map(weigh).max()
    }
}

/// The trees of several services as one.
struct MergedTree<'t> {
    services: &'t [ServiceTree<'t>],
    parents: Cow<'t, [Place]>,
    self_values: Vec<i64>,
    /// For each place, the first service that has it, and its place there; nothing if there is one service only.
    first: Vec<(u32, Place)>,
    /// Further services that have a place.
    others: HashMap<Place, Vec<(u32, Place)>>,
}

impl<'t> MergedTree<'t> {
    fn of(services: &'t [ServiceTree<'t>]) -> Self {
        if let [only] = services {
            let parents = Cow::Borrowed(only.symbols.parents());
            let self_values = only.self_values();
            return Self { services, parents, self_values, first: Vec::new(), others: HashMap::new() };
        }
        let mut merging = Merging::default();
        for number in 0..services.len() {
            merging.add(services, number);
        }
        Self {
            services,
            parents: Cow::Owned(merging.parents),
            self_values: merging.self_values,
            first: merging.first,
            others: merging.others,
        }
    }

    /// The line that carries most of a place: the service, the node, and its own value.
    fn hottest_line(&self, place: Place) -> (&'t ServiceTree<'t>, Node, i64) {
        let (service, here) = self.first.get(place as usize).copied().unwrap_or((0, place));
        let others = self.others.get(&place).map_or(&[][..], Vec::as_slice);
        let all = std::iter::once((service, here)).chain(others.iter().copied());
        let hottest = all.filter_map(|(service, here)| {
            let service = &self.services[service as usize];
            let (value, total, frame, node) = service.hottest_node(here)?;
            Some(((value, total, frame), service, node))
        });
        // Every place but the root has a node, and the root is not asked for.
        let hottest = hottest.max_by_key(|(weight, _, _)| *weight);
        hottest.map_or((&self.services[0], 0, 0), |((value, _, _), service, node)| (service, node, value))
    }
}

/// Trees being merged. Where only one service has a place, what lies below it is taken over as it stands.
#[derive(Default)]
struct Merging {
    parents: Vec<Place>,
    self_values: Vec<i64>,
    first: Vec<(u32, Place)>,
    others: HashMap<Place, Vec<(u32, Place)>>,
    /// For each service, where its places went.
    places: Vec<Vec<Place>>,
    /// Callees by caller and function, of those places that a second service has come to.
    callees: HashMap<(Place, u32), Place>,
    listed: HashSet<Place>,
    functions: FunctionNumbers,
}

impl Merging {
    fn add(&mut self, services: &[ServiceTree<'_>], number: usize) {
        let symbols = services[number].symbols;
        let sums = services[number].self_values();
        if self.parents.is_empty() {
            self.push(ROOT, (0, ROOT));
            self.listed.insert(ROOT);
        }
        self.functions.of_services.push(vec![FunctionNumbers::UNSET; symbols.text_count()]);
        let known = self.parents.len() as Place;
        let mut places = vec![ROOT; symbols.place_count()];
        self.self_values[ROOT as usize] = self.self_values[ROOT as usize].saturating_add(sums[ROOT as usize]);
        for place in 1..symbols.place_count() as Place {
            let caller = places[symbols.parents()[place as usize] as usize];
            let here = (number as u32, place);
            let merged = if caller < known { self.callee(services, caller, here) } else { self.push(caller, here) };
            places[place as usize] = merged;
            let sum = &mut self.self_values[merged as usize];
            *sum = sum.saturating_add(sums[place as usize]);
        }
        self.places.push(places);
    }

    fn push(&mut self, caller: Place, here: (u32, Place)) -> Place {
        self.parents.push(caller);
        self.self_values.push(0);
        self.first.push(here);
        self.parents.len() as Place - 1
    }

    /// The callee of a place that services before have, which it gets now if it has none with this function.
    fn callee(&mut self, services: &[ServiceTree<'_>], caller: Place, here: (u32, Place)) -> Place {
        if self.listed.insert(caller) {
            let (service, place) = self.first[caller as usize];
            let symbols = services[service as usize].symbols;
            for callee in symbols.callees(place) {
                let function = self.functions.number(symbols, service, callee);
                self.callees.insert((caller, function), self.places[service as usize][callee as usize]);
            }
        }
        let function = self.functions.number(services[here.0 as usize].symbols, here.0, here.1);
        if let Some(merged) = self.callees.get(&(caller, function)).copied() {
            self.others.entry(merged).or_default().push(here);
            return merged;
        }
        let merged = self.push(caller, here);
        self.callees.insert((caller, function), merged);
        merged
    }
}

/// Functions of all services by number: each service numbers its texts itself.
#[derive(Default)]
struct FunctionNumbers {
    by_name: HashMap<Arc<str>, u32>,
    of_services: Vec<Vec<u32>>,
}

impl FunctionNumbers {
    const UNSET: u32 = u32::MAX;

    fn number(&mut self, symbols: &ServiceSymbols, service: u32, place: Place) -> u32 {
        let function = symbols.function(place);
        let number = &mut self.of_services[service as usize][function as usize];
        if *number == Self::UNSET {
            let next = self.by_name.len() as u32;
            *number = *self.by_name.entry(Arc::clone(symbols.text(function))).or_insert(next);
        }
        *number
    }
}
