//! Merged call paths with their lines: what a pprof answer is written from.

use std::borrow::Cow;
use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use hotspan_model::call_path::{NO_PATH, PathIndex};
use hotspan_model::flame::OTHER;
use hotspan_model::frame::FrameIndex;
use hotspan_model::{BuildIds, Exactness, Frame, PathTable, TenantId};

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
    /// The builds of binaries whose frames have names, which do not say it themselves.
    pub build_ids: BuildIds,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

impl MergedPaths {
    /// Keeps the `max_nodes` callers and callees below which most lies, and folds the others into a callee `other` of
    /// their nearest kept caller, so that the sum stays as it was. 0 keeps all.
    #[must_use]
    pub fn pruned(mut self, max_nodes: usize) -> Self {
        let mut tree = CallTree::of(&self);
        if max_nodes == 0 || tree.totals.len() <= max_nodes {
            return self;
        }
        let kept = tree.largest(max_nodes);
        let other = self.paths.frame(Frame::named(OTHER));
        let mut sums: HashMap<PathIndex, i64> = HashMap::new();
        for (path, value) in std::mem::take(&mut self.values) {
            let mut frames: Vec<FrameIndex> = self.paths.steps_to_root(path).collect();
            frames.reverse();
            let length = tree.nodes_of(&frames).iter().take_while(|node| kept[**node as usize]).count();
            if length < frames.len() {
                frames.truncate(length);
                frames.push(other);
                self.exactness.pruned_value = self.exactness.pruned_value.saturating_add(value);
            }
            let sum = sums.entry(self.paths.path(&frames)).or_default();
            *sum = sum.saturating_add(value);
        }
        self.exactness.pruned_nodes = kept.iter().filter(|kept| !**kept).count() as u64;
        self.values = sums.into_iter().collect();
        self.values.sort_unstable();
        self
    }
}

/// The callers and callees of merged paths, callers first, with what lies below each.
#[derive(Debug, Default)]
struct CallTree {
    nodes: HashMap<(u32, FrameIndex), u32>,
    totals: Vec<i64>,
}

impl CallTree {
    fn of(merged: &MergedPaths) -> Self {
        let mut tree = Self::default();
        for (path, value) in &merged.values {
            let mut frames: Vec<FrameIndex> = merged.paths.steps_to_root(*path).collect();
            frames.reverse();
            for node in tree.nodes_of(&frames) {
                tree.totals[node as usize] = tree.totals[node as usize].saturating_add(*value);
            }
        }
        tree
    }

    /// The nodes along a stack, the root first.
    fn nodes_of(&mut self, frames: &[FrameIndex]) -> Vec<u32> {
        let mut caller = u32::MAX;
        let step = |frame: &FrameIndex| {
            let next = self.totals.len() as u32;
            caller = *self.nodes.entry((caller, *frame)).or_insert(next);
            if caller == next {
                self.totals.push(0);
            }
            caller
        };
        frames.iter().map(step).collect()
    }

    /// For each node, whether it is among the largest. Of two that are alike the caller comes first.
    fn largest(&self, count: usize) -> Vec<bool> {
        let mut by_size: Vec<usize> = (0..self.totals.len()).collect();
        by_size.sort_unstable_by_key(|node| (Reverse(self.totals[*node].unsigned_abs()), *node));
        let mut kept = vec![false; self.totals.len()];
        by_size.iter().take(count).for_each(|node| kept[*node] = true);
        kept
    }
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
    /// The samples that a question selects, merged by call path down to the line. `max_nodes` plays no part: a file is
    /// whole, or is [pruned](MergedPaths::pruned) by whoever wants it small.
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
        let mut seen: HashSet<u64> = HashSet::new();
        for (_, path, _) in &by_path {
            seen.extend(path.to_root().map(PathNode::frame_id));
        }
        let frames = self.whole_frames(tenant, &snapshot, &found.symbols, &seen).await?;
        let build_ids = match frames.values().any(|frame| !frame.mapping.is_empty()) {
            true => self.build_ids(tenant, &snapshot, &found.symbols).await?,
            false => BuildIds::default(),
        };
        for (_, path, value) in by_path {
            frames_of(path, &frames, trim, &mut stack);
            let frames: Vec<u32> = stack.drain(..).rev().map(|frame| paths.frame(frame)).collect();
            let sum = sums.entry(paths.path(&frames)).or_default();
            *sum = sum.saturating_add(value);
        }
        if unresolved != 0 {
            sums.insert(NO_PATH, unresolved);
        }
        let mut sums: Vec<(PathIndex, i64)> = sums.into_iter().collect();
        sums.sort_unstable();
        Ok(MergedPaths { paths, values: sums, build_ids, exactness: found.exactness })
    }
}

/// The frames of a path, the leaf first.
fn frames_of(
    path: PathNode<'_>,
    frames: &HashMap<u64, Frame<'static>>,
    trim: LeafTrim,
    stack: &mut Vec<Frame<'static>>,
) {
    let most = if trim.keep_frames > 0 { trim.keep_frames } else { usize::MAX };
    for path in path.to_root().take(most) {
        let mut frame = frames.get(&path.frame_id()).cloned().unwrap_or_else(|| shown_frame(path));
        if stack.is_empty() && trim.ignore_leaf_line {
            (frame.line, frame.column) = (0, 0);
        }
        stack.push(frame);
    }
}

/// What flame graphs show of a frame: all there is, if the frame itself is not stored.
fn shown_frame(path: PathNode<'_>) -> Frame<'static> {
    let frame = path.frame();
    let own = |text: u32| Cow::Owned(path.text(text).as_ref().to_owned());
    Frame {
        function: own(frame.function),
        file: own(frame.file),
        line: frame.line,
        start_line: frame.start_line,
        ..Frame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(merged: &MergedPaths) -> Vec<(String, i64)> {
        let stack = |path: PathIndex| {
            let names: Vec<String> = merged.paths.walk_to_root(path).map(|frame| frame.function.into_owned()).collect();
            names.into_iter().rev().collect::<Vec<_>>().join(";")
        };
        let mut all: Vec<(String, i64)> = merged.values.iter().map(|(path, value)| (stack(*path), *value)).collect();
        all.sort_unstable();
        all
    }

    /// Scenario: a profile with seven nodes and a sample without a stack, pruned to more nodes than it has, and to fewer.
    /// Guarantee: the largest stay with their callers, what is folded hangs below its caller, and the sum never changes.
    #[test]
    fn what_is_folded_hangs_below_its_caller() {
        let merged = || {
            let mut merged = MergedPaths {
                paths: PathTable::default(),
                values: Vec::new(),
                build_ids: BuildIds::default(),
                exactness: Exactness::default(),
            };
            for (stack, value) in [("main;a;hot", 50), ("main;a;cold", 1), ("main;b;x", 4), ("main;b;y", 3), ("", 9)] {
                let names = stack.split(';').filter(|name| !name.is_empty());
                let frames: Vec<u32> = names.map(|name| merged.paths.frame(Frame::named(name))).collect();
                merged.values.push((merged.paths.path(&frames), value));
            }
            merged
        };
        for max_nodes in [0, 7, 100] {
            assert_eq!(stacks(&merged().pruned(max_nodes)), stacks(&merged()), "{max_nodes}");
        }
        let small = merged().pruned(4);
        let named =
            |all: &[(&str, i64)]| all.iter().map(|(stack, value)| ((*stack).to_owned(), *value)).collect::<Vec<_>>();
        let expected = [("", 9), ("main;a;hot", 50), ("main;a;other", 1), ("main;b;other", 7)];
        assert_eq!(stacks(&small), named(&expected));
        assert_eq!((small.exactness.pruned_nodes, small.exactness.pruned_value), (3, 8));
        let smallest = merged().pruned(1);
        assert_eq!(stacks(&smallest), named(&[("", 9), ("main;other", 58)]));
    }
}
