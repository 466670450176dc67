//! Merged call paths with their lines: what a pprof answer is written from.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{NO_PATH, PathIndex};
use hotspan_model::{Exactness, Frame, PathTable, TenantId};

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::symbols::PathNode;

/// The samples that a question selects, merged by call path down to the line.
#[derive(Debug)]
pub struct MergedPaths {
    /// Frames and call paths.
    pub paths: PathTable<'static>,
    /// The sum of each path that has one.
    pub values: Vec<(PathIndex, i64)>,
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
        let mut found = self.path_sums(tenant, &snapshot, query).await?;
        let unresolved = found.count_unresolved();
        let mut paths = PathTable::default();
        let mut sums: HashMap<PathIndex, i64> = HashMap::new();
        let mut stack = Vec::new();
        // In order of id, so that the same question gets the same bytes.
        let mut by_path: Vec<(u64, PathNode<'_>, i64)> =
            found.paths().map(|(path, value)| (path.symbols.path_of(path.node), path, value)).collect();
        by_path.sort_unstable_by_key(|(id, _, _)| *id);
        for (_, path, value) in by_path {
            frames_of(path, trim, &mut stack);
            let frames: Vec<u32> = stack.drain(..).rev().map(|frame| paths.frame(frame)).collect();
            let sum = sums.entry(paths.path(&frames)).or_default();
            *sum = sum.saturating_add(value);
        }
        if unresolved != 0 {
            sums.insert(NO_PATH, unresolved);
        }
        let mut sums: Vec<(PathIndex, i64)> = sums.into_iter().collect();
        sums.sort_unstable();
        Ok(MergedPaths { paths, values: sums, exactness: found.exactness })
    }
}

/// The frames of a path, the leaf first.
fn frames_of(path: PathNode<'_>, trim: LeafTrim, stack: &mut Vec<Frame<'static>>) {
    let most = if trim.keep_frames > 0 { trim.keep_frames } else { usize::MAX };
    for path in path.to_root().take(most) {
        let frame = path.frame();
        let own = |text: u32| Cow::Owned(path.text(text).as_ref().to_owned());
        stack.push(Frame {
            function: own(frame.function),
            file: own(frame.file),
            line: if stack.is_empty() && trim.ignore_leaf_line { 0 } else { frame.line },
            start_line: frame.start_line,
            ..Frame::default()
        });
    }
}
