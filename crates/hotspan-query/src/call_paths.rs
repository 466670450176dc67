//! Call paths by id: from what a sample holds to the frames that a person reads.

use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_lake::Snapshot;
use hotspan_model::TenantId;

use crate::Engine;
use crate::error::Result;
use crate::series::SeriesEntry;
use crate::symbols::{PathNode, services_of};

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

/// Call paths that were looked up together. Callers are shared, so that deep stacks cost little.
#[derive(Debug, Clone, Default)]
pub struct CallPaths {
    nodes: HashMap<u64, (u64, u32)>,
    frames: Vec<PathFrame>,
}

impl CallPaths {
    /// The frames of a path, the leaf first; none if the path is not known.
    pub fn frames(&self, path: u64) -> impl Iterator<Item = &PathFrame> {
        self.frame_numbers(path).map(|frame| &self.frames[frame as usize])
    }

    /// The same as numbers of [`CallPaths::frame`]: equal frames have equal numbers.
    pub fn frame_numbers(&self, path: u64) -> impl Iterator<Item = u32> {
        let mut at = path;
        std::iter::from_fn(move || {
            let (caller, frame) = self.nodes.get(&at)?;
            at = *caller;
            Some(*frame)
        })
    }

    /// The caller of a path and the frame at its end; none if the path is not known.
    pub fn node(&self, path: u64) -> Option<(u64, u32)> {
        self.nodes.get(&path).copied()
    }

    /// A frame by its number.
    pub fn frame(&self, number: u32) -> &PathFrame {
        &self.frames[number as usize]
    }

    /// How many different frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }
}

impl Engine {
    /// The frames of call paths that samples of these series have in `from..until`.
    pub async fn call_paths<'e>(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        range: (i64, i64),
        series: impl IntoIterator<Item = &'e SeriesEntry>,
        paths: impl IntoIterator<Item = u64>,
    ) -> Result<CallPaths> {
        let symbols = self.symbols(tenant, snapshot, &services_of(series), range).await?;
        let mut found = CallPaths::default();
        let mut by_text: HashMap<PathFrame, u32> = HashMap::new();
        for id in paths {
            for path in symbols.find(id).into_iter().flat_map(PathNode::to_root) {
                let id = path.symbols.path_of(path.node);
                if found.nodes.contains_key(&id) {
                    break;
                }
                let frame = path.frame();
                let frame = PathFrame {
                    function: Arc::clone(path.text(frame.function)),
                    file: Arc::clone(path.text(frame.file)),
                    line: frame.line,
                };
                let number = *by_text.entry(frame).or_insert_with_key(|frame| {
                    found.frames.push(frame.clone());
                    found.frames.len() as u32 - 1
                });
                let caller = path.symbols.caller_of(path.node).map_or(0, |caller| path.symbols.path_of(caller));
                found.nodes.insert(id, (caller, number));
            }
        }
        Ok(found)
    }
}
