//! Stacks that are deeper than allowed: the leaf side stays, where the values are, below a frame that says so (R4).

use hotspan_model::call_path::{PathIndex, PathTable};
use hotspan_model::frame::FrameIndex;
use hotspan_model::{Frame, ProfileSet};

/// The frame at the root of a stack that was too deep.
const TRUNCATED: &str = "[truncated]";

/// A stack that is being collected, the leaf first. What lies beyond the deepest frame allowed is only counted, so that
/// a stack of millions of frames takes no memory.
#[derive(Debug)]
pub(crate) struct LeafSide {
    frames: Vec<FrameIndex>,
    cut: u64,
    /// Whether the profiler had cut it already, nobody knows by how much.
    was_cut: bool,
    max_depth: usize,
}

impl LeafSide {
    pub(crate) fn new(max_depth: usize) -> Self {
        Self { frames: Vec::new(), cut: 0, was_cut: false, max_depth: max_depth.max(1) }
    }

    /// Starts another stack.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        (self.cut, self.was_cut) = (0, false);
    }

    /// Whether further frames are only counted: then nobody needs to find out what they are.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= self.max_depth
    }

    /// Adds a caller of the frame before.
    #[inline]
    pub(crate) fn push(&mut self, frame: FrameIndex) {
        if self.is_full() {
            self.cut += 1;
        } else {
            self.frames.push(frame);
        }
    }

    /// Adds several frames, the innermost first.
    #[inline]
    pub(crate) fn extend(&mut self, frames: &[FrameIndex]) {
        // Nearly always: copying one would be a call.
        if let [frame] = frames {
            return self.push(*frame);
        }
        let kept = frames.len().min(self.max_depth - self.frames.len());
        self.frames.extend_from_slice(&frames[..kept]);
        self.cut += (frames.len() - kept) as u64;
    }

    /// Counts frames that nobody looked at.
    #[inline]
    pub(crate) fn skip(&mut self, frames: u64) {
        self.cut += frames;
    }

    /// Says that callers are missing that were never recorded.
    #[inline]
    pub(crate) fn lacks_callers(&mut self) {
        self.was_cut = true;
    }

    /// How many frames were cut.
    #[inline]
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// The stack from the root to the leaf. Call it once for each stack.
    #[inline]
    pub(crate) fn root_first(&mut self, paths: &mut PathTable<'_>) -> &[FrameIndex] {
        if self.cut > 0 || self.was_cut {
            self.frames.push(paths.frame(Frame::named(TRUNCATED)));
        }
        self.frames.reverse();
        &self.frames
    }

    /// The path of the stack in a set, which counts what was cut.
    pub(crate) fn path_in(&mut self, set: &mut ProfileSet<'_>) -> PathIndex {
        set.cut_frames += self.cut;
        let stack = self.root_first(&mut set.paths);
        set.paths.path(stack)
    }
}

/// The path one step on from `parent`, into `frame`, for formats that hold trees.
///
/// Below the deepest frame allowed each step takes one from the root side. Such a path shares nothing with its parent's:
/// whoever reads trees of strangers watches how much paths take.
pub(crate) fn child_path(
    set: &mut ProfileSet<'_>,
    parent: PathIndex,
    frame: FrameIndex,
    max_depth: usize,
) -> PathIndex {
    let max_depth = max_depth.max(1);
    if set.paths.depth(parent) < max_depth {
        return set.paths.child(parent, frame);
    }
    let mut stack = LeafSide::new(max_depth);
    stack.push(frame);
    // A parent that was cut has one frame more, which says so and is not taken over.
    let kept: Vec<FrameIndex> = set.paths.steps_to_root(parent).take(max_depth - 1).collect();
    stack.extend(&kept);
    stack.skip(1);
    stack.path_in(set)
}

#[cfg(test)]
mod tests {
    use hotspan_model::call_path::NO_PATH;

    use super::*;

    fn names(set: &ProfileSet<'_>, path: PathIndex) -> Vec<String> {
        set.paths.walk_to_root(path).map(|frame| frame.function.into_owned()).collect()
    }

    /// Scenario: one stack of five frames where three are allowed, frame by frame, as a whole, and step by step from the root.
    /// Guarantee: the three nearest the leaf below a frame that says so, two counted, and the same path each time.
    #[test]
    fn the_leaf_side_stays() {
        let mut set = ProfileSet::default();
        let frames = ["e", "d", "c", "b", "a"].map(|name| set.paths.frame(Frame::named(name)));
        let mut stack = LeafSide::new(3);
        frames.iter().for_each(|frame| stack.push(*frame));
        let pushed = stack.path_in(&mut set);
        assert_eq!((names(&set, pushed), set.cut_frames), (["e", "d", "c", TRUNCATED].map(str::to_owned).to_vec(), 2));
        stack.clear();
        stack.extend(&frames);
        assert_eq!((stack.path_in(&mut set), set.cut_frames), (pushed, 4));
        set.cut_frames = 0;
        let walked = frames.iter().rev().fold(NO_PATH, |path, frame| child_path(&mut set, path, *frame, 3));
        assert_eq!((walked, set.cut_frames), (pushed, 2));
    }

    /// Scenario: a stack as deep as allowed. Guarantee: it stays as it is, and nothing is counted.
    #[test]
    fn the_deepest_is_whole() {
        let mut set = ProfileSet::default();
        let frames = ["b", "a"].map(|name| set.paths.frame(Frame::named(name)));
        let mut stack = LeafSide::new(2);
        stack.extend(&frames);
        assert!(stack.is_full());
        let path = stack.path_in(&mut set);
        assert_eq!((names(&set, path), set.cut_frames), (vec!["b".to_owned(), "a".to_owned()], 0));
    }
}
