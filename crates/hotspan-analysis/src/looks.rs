//! How a cause looks: which line of it costs most, what the functions below it are, how deep and how often they call.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::candidates::Candidate;
use crate::causes::Findings;
use crate::folding::FoldedStack;
use crate::matrix::membership;
use crate::own_code::Ownership;
use crate::signs::Signs;
use crate::tree::NodeKey;
use crate::vocabulary::{FrameId, TextId};

/// What patterns are told by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looks {
    /// The time of a cause by what the functions of its stacks say, from the cause on downwards; as shares of it.
    pub said: Vec<(Signs, f64)>,
    /// How often a function of own code stands in its own stacks, on average over the time.
    pub recursion: f64,
    /// Share of the time that one function spends itself.
    pub widest_leaf: f64,
    /// Frames from the cause on downwards, on average over the time.
    pub depth: f64,
}

impl Looks {
    /// The share of the time whose stacks say something.
    pub fn share(&self, says: impl Fn(Signs) -> bool) -> f64 {
        self.said.iter().filter(|(signs, _)| says(*signs)).map(|(_, share)| share).sum()
    }
}

impl Findings<'_> {
    pub(crate) fn looks(&self, candidate: &Candidate, belongs: &[bool]) -> Looks {
        let tree = &self.ledger.tree;
        // In order, so that the same question adds up to the same shares.
        let mut said: BTreeMap<Signs, f64> = BTreeMap::new();
        let mut leaves: HashMap<TextId, f64> = HashMap::new();
        let (mut whole, mut repeated, mut deep) = (0.0, 0.0, 0.0);
        for placement in tree.placements() {
            if !belongs[placement.leaf as usize] || placement.time[0] <= 0.0 {
                continue;
            }
            let time = placement.time[0];
            whole += time;
            // From the cause on downwards; a cause that is spread begins where it is called.
            let folded = FoldedStack::of(self.vocabulary, placement.stack);
            let from_leaf = tree.upward(placement.leaf).position(|node| candidate.nodes.contains(&node));
            let start = from_leaf.map_or(0, |height| folded.frames.len().saturating_sub(height + 1));
            let inside = &folded.frames[start..];
            let signs = inside.iter().map(|frame| self.sources.signs_of(*frame));
            *said.entry(signs.fold(Signs::default(), Signs::or)).or_default() += time;
            if let Some(frame) = inside.last() {
                *leaves.entry(self.vocabulary.frame_of(*frame).function).or_default() += time;
            }
            // Libraries that follow nested data call themselves, too; what a person can change is own code.
            let is_own = |frame: FrameId| self.vocabulary.ownership_of(frame) == Ownership::Own;
            let repeats = folded.repeats.iter().filter(|(frame, _)| is_own(*frame));
            let most = repeats.map(|(_, times)| *times).max().unwrap_or(1);
            repeated += time * f64::from(most);
            deep += time * inside.len() as f64;
        }
        let whole = f64::max(whole, 1.0);
        let widest_leaf = leaves.values().copied().fold(0.0, f64::max) / whole;
        let said = said.into_iter().map(|(signs, time)| (signs, time / whole)).collect();
        Looks { said, recursion: repeated / whole, widest_leaf, depth: deep / whole }
    }

    /// The file and line of the named function that carry most of the difference.
    pub(crate) fn place(&self, candidate: &Candidate) -> (Option<String>, Option<u32>) {
        let Some(NodeKey::Function(function)) = candidate.function.map(|node| self.ledger.tree.node(node).key) else {
            return (None, None);
        };
        let requests = [0, 1].map(|side| self.ledger.sides[side].len().max(1) as f64);
        let mut lines: HashMap<(TextId, u32), f64> = HashMap::new();
        let belongs = membership(&self.ledger.tree, &candidate.nodes, &[]);
        for placement in self.ledger.tree.placements().iter().filter(|placement| belongs[placement.leaf as usize]) {
            let delta = placement.time[0] / requests[0] - placement.time[1] / requests[1];
            for frame in FoldedStack::of(self.vocabulary, placement.stack).frames {
                let frame = self.vocabulary.frame_of(frame);
                if frame.function == function {
                    *lines.entry((frame.file, frame.line)).or_default() += delta;
                }
            }
        }
        let best = lines.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some(((file, line), _)) = best else { return (None, None) };
        let file = self.vocabulary.text_of(file);
        ((!file.is_empty()).then(|| file.to_owned()), (line > 0).then_some(line))
    }
}
