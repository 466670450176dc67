//! Merged call paths with their lines: what a pprof answer is written from.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{NO_PATH, NodeIndex};
use hotspan_model::{Exactness, Frame, PathTable, TenantId};

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::symbols::SymbolIndex;

/// The samples that a question selects, merged by call path down to the line.
#[derive(Debug)]
pub struct MergedPaths {
    /// Frames and call paths.
    pub paths: PathTable<'static>,
    /// The sum of each path that has one.
    pub values: Vec<(NodeIndex, i64)>,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// How Go's profile-guided optimisation wants its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeafTrim {
    /// How many frames to keep, counted from the leaf; 0 keeps all.
    pub keep_frames: usize,
    /// Whether the line of the leaf is left out, so that all samples of a function are one.
    pub ignore_leaf_line: bool,
}

impl Engine {
    /// The samples that a question selects, merged by call path down to the line. `max_nodes` plays no part.
    pub async fn merged_paths(&self, tenant: &TenantId, query: &FlameQuery, trim: LeafTrim) -> Result<MergedPaths> {
        let snapshot = self.snapshot();
        let mut values = self.path_values(tenant, &snapshot, query).await?;
        let memory = self.memory(tenant);
        let mut symbols = memory.symbols.lock().await;
        symbols.catch_up(self.lake(), &snapshot, tenant, query.from, query.until).await?;
        values.keep_call_site(&mut symbols, &query.call_site);
        let mut paths = PathTable::default();
        let mut sums: HashMap<NodeIndex, i64> = HashMap::new();
        let mut stack = Vec::new();
        // In order of id, so that the same question gets the same bytes.
        let mut by_path: Vec<(u64, i64)> = values.values.into_iter().collect();
        by_path.sort_unstable();
        for (path, value) in by_path {
            frames_of(&mut symbols, path, trim, &mut stack);
            values.exactness.unresolved_paths += u64::from(stack.is_empty() && path != 0);
            let frames: Vec<u32> = stack.drain(..).rev().map(|frame| paths.frame(frame)).collect();
            let node = if frames.is_empty() { NO_PATH } else { paths.path(&frames) };
            let sum = sums.entry(node).or_default();
            *sum = sum.saturating_add(value);
        }
        let mut sums: Vec<(NodeIndex, i64)> = sums.into_iter().collect();
        sums.sort_unstable();
        Ok(MergedPaths { paths, values: sums, exactness: values.exactness })
    }
}

/// The frames of a path, the leaf first.
fn frames_of(symbols: &mut SymbolIndex, path: u64, trim: LeafTrim, stack: &mut Vec<Frame<'static>>) {
    let mut at = path;
    while let Some(entry) = symbols.path(at) {
        let own = |text: u32| Cow::Owned(symbols.text(text).to_owned());
        if trim.keep_frames > 0 && stack.len() == trim.keep_frames {
            break;
        }
        let mut frame = match symbols.frame(entry.frame) {
            Some(frame) => Frame {
                function: own(frame.name),
                file: own(frame.file),
                line: frame.line,
                start_line: frame.start_line,
                ..Frame::default()
            },
            None => Frame::named("[unknown]"),
        };
        if stack.is_empty() && trim.ignore_leaf_line {
            frame.line = 0;
        }
        stack.push(frame);
        at = entry.parent;
    }
}
