//! Sums by call path, kept where the symbols of the paths are.

use hashbrown::HashMap;
use hotspan_model::Exactness;

use crate::stack_filter::StackFilter;
use crate::symbols::{PathNode, Symbols};

/// The sums of the samples that a question selects, by call path.
#[derive(Debug, Default)]
pub(crate) struct PathSums {
    pub(crate) symbols: Symbols,
    /// By service, then by node.
    pub(crate) values: Vec<Vec<i64>>,
    /// Paths that no service knows; 0 is that of samples without a stack.
    unresolved: HashMap<u64, i64>,
    pub(crate) exactness: Exactness,
}

impl PathSums {
    pub(crate) fn new(symbols: Symbols) -> Self {
        let values = symbols.services().map(|service| vec![0; service.node_count()]).collect();
        Self { symbols, values, ..Self::default() }
    }

    /// Adds values of paths that a service has, by its number.
    pub(crate) fn add_rows(&mut self, service: usize, paths: &[u64], sums: &[i64]) {
        let (Some(symbols), values) = (self.symbols.services().nth(service), &mut self.values[service]) else { return };
        for (path, value) in paths.iter().zip(sums) {
            let sum = match symbols.node_of(*path) {
                Some(node) => &mut values[node as usize],
                None => self.unresolved.entry(*path).or_default(),
            };
            *sum = sum.saturating_add(*value);
        }
    }

    /// Adds the value of a path, whichever service has it.
    pub(crate) fn add(&mut self, path: u64, value: i64) {
        let mut services = self.symbols.services().enumerate();
        let found = services.find_map(|(number, symbols)| Some((number, symbols.node_of(path)?)));
        let sum = match found {
            Some((service, node)) => &mut self.values[service][node as usize],
            None => self.unresolved.entry(path).or_default(),
        };
        *sum = sum.saturating_add(value);
    }

    /// Leaves out the paths that a filter does not keep.
    pub(crate) fn keep_stacks(&mut self, filter: &StackFilter) {
        if filter.is_empty() {
            return;
        }
        self.unresolved.clear();
        for (symbols, values) in self.symbols.services().zip(&mut self.values) {
            let kept = symbols.kept_by(filter);
            for (node, value) in values.iter_mut().enumerate() {
                if !kept[symbols.place_of(node as u32) as usize] {
                    *value = 0;
                }
            }
        }
    }

    /// The paths that have a value and are known; one that several services have may come several times.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (PathNode<'_>, i64)> {
        self.symbols.services().zip(&self.values).flat_map(|(symbols, values)| {
            let with_value = values.iter().enumerate().filter(|(_, value)| **value != 0);
            with_value.map(|(node, value)| (PathNode { symbols, node: node as u32 }, *value))
        })
    }

    /// Notes how many paths are not known, and gives their sum.
    pub(crate) fn count_unresolved(&mut self) -> i64 {
        self.exactness.unresolved_paths += self.unresolved.keys().filter(|path| **path != 0).count() as u64;
        self.unresolved.values().fold(0, |sum, value| sum.saturating_add(*value))
    }
}
