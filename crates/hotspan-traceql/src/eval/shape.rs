//! The tree of a trace's spans: who is whose parent, and the nested-set numbers that answer "is below" at once.
//!
//! Whatever comes in, the result is a forest: a span whose parent is missing is a root, and a cycle of parent links is
//! cut at its earliest span. The numbering depends on start times and ids only, never on the order of the spans.

use hashbrown::HashMap;
use hotspan_model::SpanId;

use crate::source::TraceSource;

const NONE: u32 = u32::MAX;

/// The forest of a trace's spans.
#[derive(Debug, Clone)]
pub struct TraceShape {
    parent: Vec<u32>,
    left: Vec<u32>,
    right: Vec<u32>,
    child_count: Vec<u32>,
}

impl TraceShape {
    /// Finds every span's parent and numbers the spans.
    pub fn of<S: TraceSource>(source: &S) -> Self {
        let count = source.span_count();
        let mut by_time: Vec<u32> = (0..count as u32).collect();
        by_time
            .sort_unstable_by_key(|span| (source.start_nanos(*span as usize), source.span_id(*span as usize), *span));
        let parent = resolve_parents(source, &by_time);
        let mut shape = Self { parent, left: vec![0; count], right: vec![0; count], child_count: vec![0; count] };
        shape.cut_cycles(&by_time);
        shape.number(&by_time);
        shape
    }

    /// The parent, if it is part of the trace.
    #[inline]
    pub fn parent(&self, span: usize) -> Option<usize> {
        match self.parent[span] {
            NONE => None,
            parent => Some(parent as usize),
        }
    }

    /// Number given on entering the span, from 1.
    #[inline]
    pub fn left(&self, span: usize) -> u32 {
        self.left[span]
    }

    /// Number given on leaving the span.
    #[inline]
    pub fn right(&self, span: usize) -> u32 {
        self.right[span]
    }

    /// How many spans have it as their parent.
    #[inline]
    pub fn child_count(&self, span: usize) -> u32 {
        self.child_count[span]
    }

    /// Walks up from every span not yet seen; meeting the own path again means a cycle, which is cut.
    fn cut_cycles(&mut self, by_time: &[u32]) {
        // 0 is unseen; otherwise the number of the walk that saw it.
        let mut seen = vec![0u32; self.parent.len()];
        let mut rank = vec![0u32; self.parent.len()];
        for (at, span) in by_time.iter().enumerate() {
            rank[*span as usize] = at as u32;
        }
        for (walk, start) in by_time.iter().enumerate() {
            let walk = walk as u32 + 1;
            let mut at = *start;
            while at != NONE && seen[at as usize] == 0 {
                seen[at as usize] = walk;
                at = self.parent[at as usize];
            }
            if at == NONE || seen[at as usize] != walk {
                continue;
            }
            let mut earliest = at;
            let mut next = self.parent[at as usize];
            while next != at {
                if rank[next as usize] < rank[earliest as usize] {
                    earliest = next;
                }
                next = self.parent[next as usize];
            }
            self.parent[earliest as usize] = NONE;
        }
    }

    /// Numbers the forest depth first, children in order of time.
    fn number(&mut self, by_time: &[u32]) {
        let count = self.parent.len();
        for parent in self.parent.iter().filter(|parent| **parent != NONE) {
            self.child_count[*parent as usize] += 1;
        }
        // Children of all spans in one array, each span's from its offset on.
        let mut offsets = vec![0u32; count + 1];
        for span in 0..count {
            offsets[span + 1] = offsets[span] + self.child_count[span];
        }
        let mut fill = offsets.clone();
        let mut children = vec![0u32; offsets[count] as usize];
        for span in by_time {
            if let Some(parent) = self.parent(*span as usize) {
                children[fill[parent] as usize] = *span;
                fill[parent] += 1;
            }
        }
        let mut number = 0;
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for root in by_time {
            if self.parent[*root as usize] != NONE {
                continue;
            }
            number += 1;
            self.left[*root as usize] = number;
            stack.push((*root, offsets[*root as usize]));
            while let Some((span, next)) = stack.last_mut() {
                let at = *span as usize;
                number += 1;
                if *next < offsets[at + 1] {
                    let child = children[*next as usize];
                    *next += 1;
                    self.left[child as usize] = number;
                    stack.push((child, offsets[child as usize]));
                } else {
                    self.right[at] = number;
                    stack.pop();
                }
            }
        }
    }
}

/// The position of every span's parent. Of several spans with one id the earliest counts.
fn resolve_parents<S: TraceSource>(source: &S, by_time: &[u32]) -> Vec<u32> {
    let mut by_id: HashMap<SpanId, u32> = HashMap::with_capacity(by_time.len());
    for span in by_time {
        by_id.entry(source.span_id(*span as usize)).or_insert(*span);
    }
    (0..source.span_count())
        .map(|span| {
            let parent = source.parent_id(span).and_then(|id| by_id.get(&id)).copied();
            parent.filter(|parent| *parent as usize != span).unwrap_or(NONE)
        })
        .collect()
}
