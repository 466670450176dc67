//! Stacks without recursion: on every path a function stands once, where it was called first.
//!
//! What a function calls when it calls itself again counts as called by its first call: `a b c a d` is folded to `a d`.

use crate::vocabulary::{EMPTY_STACK, FrameId, StackId, TextId, Vocabulary};

/// For each stack, the one that stands for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folding {
    /// The stack that ends with the first call of the same function; mostly the stack itself.
    first: Vec<StackId>,
    /// The folded stack that this one is called from.
    caller: Vec<StackId>,
}

impl Folding {
    /// Folds all stacks.
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let count = vocabulary.stack_count();
        let mut folding = Self { first: vec![EMPTY_STACK; count], caller: vec![EMPTY_STACK; count] };
        let function =
            |stack: StackId| vocabulary.leaf_of(stack).map_or(0, |frame| vocabulary.frame_of(frame).function);
        let functions: Vec<TextId> = (0..count as StackId).map(function).collect();
        for stack in 1..count {
            let caller = folding.first[vocabulary.caller_of(stack as StackId) as usize];
            let mut above = caller;
            while above != EMPTY_STACK && functions[above as usize] != functions[stack] {
                above = folding.caller[above as usize];
            }
            folding.first[stack] = if above == EMPTY_STACK { stack as StackId } else { above };
            folding.caller[stack] = caller;
        }
        folding
    }

    /// The stack that stands for one.
    pub(crate) fn folded(&self, stack: StackId) -> StackId {
        self.first[stack as usize]
    }

    /// The folded stack that a folded one is called from.
    pub(crate) fn caller_of(&self, folded: StackId) -> StackId {
        self.caller[folded as usize]
    }
}

/// One stack, folded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoldedStack {
    /// Its frames, the root first; of a function that called itself, the frame of its last call.
    pub(crate) frames: Vec<FrameId>,
    /// Functions that occur more than once, by the frame of their first call, and how often.
    pub(crate) repeats: Vec<(FrameId, u32)>,
}

impl FoldedStack {
    /// Folds a stack.
    pub(crate) fn of(vocabulary: &Vocabulary, stack: StackId) -> Self {
        let mut root_to_leaf: Vec<FrameId> = vocabulary.frames_from_leaf(stack).collect();
        root_to_leaf.reverse();
        // (function, first call, last call, how often)
        let mut chain: Vec<(TextId, FrameId, FrameId, u32)> = Vec::new();
        let mut repeats: Vec<(FrameId, u32)> = Vec::new();
        for frame in root_to_leaf {
            let function = vocabulary.frame_of(frame).function;
            match chain.iter().position(|(known, ..)| *known == function) {
                Some(at) => {
                    chain.truncate(at + 1);
                    chain[at].2 = frame;
                    chain[at].3 += 1;
                    let (_, first, _, times) = chain[at];
                    repeats.retain(|(known, _)| *known != first);
                    repeats.push((first, times));
                }
                None => chain.push((function, frame, frame, 1)),
            }
        }
        Self { frames: chain.into_iter().map(|(_, _, last, _)| last).collect(), repeats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a stack without recursion, one in which a function calls itself through others and then something else,
    /// one that calls itself directly, and the empty one.
    /// Guarantee: each function stands once, at its first call, with the line of its last; repeats are counted.
    #[test]
    fn recursion_is_folded() {
        let mut vocabulary = Vocabulary::default();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| vocabulary.frame(name, "f.rs", 1));
        let a_again = vocabulary.frame("a", "f.rs", 9);
        let plain = vocabulary.stack(&[a, b, c]);
        let through = vocabulary.stack(&[a, b, c, a_again, d]);
        let direct = vocabulary.stack(&[a, b, b, b]);
        let folding = Folding::of(&vocabulary);
        let chain = |stack: StackId| {
            let up = std::iter::successors(Some(folding.folded(stack)), |at| Some(folding.caller_of(*at)));
            let frames = up.map_while(|at| vocabulary.leaf_of(at));
            frames.map(|frame| vocabulary.function_of(frame)).collect::<Vec<_>>()
        };
        assert_eq!(chain(plain), ["c", "b", "a"]);
        assert_eq!(chain(through), ["d", "a"]);
        assert_eq!(chain(direct), ["b", "a"]);
        assert!(chain(EMPTY_STACK).is_empty());
        let folded = FoldedStack::of(&vocabulary, through);
        assert_eq!(folded, FoldedStack { frames: vec![a_again, d], repeats: vec![(a, 2)] });
        assert_eq!(FoldedStack::of(&vocabulary, direct).repeats, [(b, 3)]);
        assert_eq!(FoldedStack::of(&vocabulary, EMPTY_STACK), FoldedStack::default());
    }
}
