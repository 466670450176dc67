//! Call paths by id: from what a sample holds to the frames that a person reads.

use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_lake::Snapshot;
use hotspan_model::{Exactness, TenantId};

use crate::Engine;
use crate::error::Result;
use crate::series::SeriesEntry;
use crate::symbols::{Node, ServiceSymbols, services_of};

/// A frame of a call path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathFrame {
    /// The function, or where in which binary it is.
    pub function: Arc<str>,
    /// The file; empty if not known.
    pub file: Arc<str>,
    /// The line; 0 if not known.
    pub line: u32,
}

/// A call: the frame at its end, and the call that it was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Which of [`CallPaths::calls`] it was made from; none at a root.
    pub caller: Option<u32>,
    /// Which of [`CallPaths::frame`] it is.
    pub frame: u32,
}

/// Call paths that were looked up together. Callers are shared, so that deep stacks cost little.
#[derive(Debug, Clone, Default)]
pub struct CallPaths {
    calls: Vec<Call>,
    /// The last call of each path that was asked for.
    paths: HashMap<u64, u32>,
    frames: Vec<PathFrame>,
    exactness: Exactness,
}

impl CallPaths {
    /// The frames of a path, the leaf first; none if the path is not known.
    pub fn frames(&self, path: u64) -> impl Iterator<Item = &PathFrame> {
        self.frame_numbers(path).map(|frame| &self.frames[frame as usize])
    }

    /// The same as numbers of [`CallPaths::frame`]: equal frames have equal numbers.
    pub fn frame_numbers(&self, path: u64) -> impl Iterator<Item = u32> {
        let mut at = self.last_call(path);
        std::iter::from_fn(move || {
            let call = self.calls[at? as usize];
            at = call.caller;
            Some(call.frame)
        })
    }

    /// All calls, callers before what they call.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Which of [`CallPaths::calls`] a path ends with; none if the path is not known.
    pub fn last_call(&self, path: u64) -> Option<u32> {
        self.paths.get(&path).copied()
    }

    /// A frame by its number.
    pub fn frame(&self, number: u32) -> &PathFrame {
        &self.frames[number as usize]
    }

    /// What they rest on: how many of the paths that were asked for are not known.
    pub fn exactness(&self) -> Exactness {
        self.exactness
    }

    /// How many different frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }
}

/// The path of samples that came without a stack: there is nothing to be known of it.
const NO_STACK: u64 = 0;

impl Engine {
    /// The frames of call paths that samples of these series have in `from..until`. Numbers follow the order of the paths.
    pub async fn call_paths<'e>(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        range: (i64, i64),
        series: impl IntoIterator<Item = &'e SeriesEntry>,
        paths: impl IntoIterator<Item = u64>,
    ) -> Result<CallPaths> {
        let paths: Vec<u64> = paths.into_iter().collect();
        let symbols = self.symbols_of_paths(tenant, snapshot, &services_of(series), range, &paths).await?;
        let mut look_up = LookUp { services: symbols.services().map(KnownCalls::of).collect(), ..LookUp::default() };
        for path in paths {
            look_up.add(path);
        }
        Ok(look_up.found)
    }
}

/// A look-up under way.
#[derive(Default)]
struct LookUp<'s> {
    services: Vec<KnownCalls<'s>>,
    /// The service that had the last path: the next one is mostly of the same.
    last: usize,
    by_text: HashMap<PathFrame, u32>,
    found: CallPaths,
}

/// The symbols of a service, and what of them has a number already.
struct KnownCalls<'s> {
    symbols: &'s ServiceSymbols,
    /// By node, one more than the number of its call; 0 is none. Made when the first path is found here.
    calls: Vec<u32>,
    /// By the service's own number of a frame.
    frames: HashMap<u32, u32>,
}

impl<'s> KnownCalls<'s> {
    fn of(symbols: &'s Arc<ServiceSymbols>) -> Self {
        Self { symbols, calls: Vec::new(), frames: HashMap::new() }
    }
}

impl LookUp<'_> {
    /// Adds a path. The same id has the same frames in all services: any that knows it will do.
    fn add(&mut self, path: u64) {
        let all = (self.last..self.services.len()).chain(0..self.last);
        let found = all.into_iter().find_map(|at| Some((at, self.services[at].symbols.node_of(path)?)));
        if let Some((at, node)) = found {
            self.last = at;
            let call = self.call(at, node);
            self.found.paths.insert(path, call);
        } else if path != NO_STACK {
            self.found.exactness.unresolved_paths += 1;
        }
    }

    /// The call of a node, with all that lead to it.
    fn call(&mut self, service: usize, node: Node) -> u32 {
        let known = &mut self.services[service];
        if known.calls.is_empty() {
            known.calls.resize(known.symbols.node_count(), 0);
        }
        let mut new: Vec<Node> = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at.filter(|node| known.calls[*node as usize] == 0) {
            new.push(node);
            at = known.symbols.caller_of(node);
        }
        let mut caller = at.map(|node| known.calls[node as usize] - 1);
        for node in new.into_iter().rev() {
            let (symbols, frame) = (known.symbols, known.symbols.frame_of(node));
            let (by_text, all) = (&mut self.by_text, &mut self.found.frames);
            let frame = *known.frames.entry(symbols.frame_number_of(node)).or_insert_with(|| {
                let frame = PathFrame {
                    function: Arc::clone(symbols.text(frame.function)),
                    file: Arc::clone(symbols.text(frame.file)),
                    line: frame.line,
                };
                *by_text.entry(frame).or_insert_with_key(|frame| {
                    all.push(frame.clone());
                    all.len() as u32 - 1
                })
            });
            self.found.calls.push(Call { caller, frame });
            let number = self.found.calls.len() as u32;
            known.calls[node as usize] = number;
            caller = Some(number - 1);
        }
        // The node itself has a call by now, and so is what the loop ended with.
        caller.unwrap_or_default()
    }
}
