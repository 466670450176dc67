//! Relations between sets of spans, in time that depends on the sets and not on the trace.

use crate::ast::{Relation, StructuralForm};
use crate::eval::TraceShape;

/// The spans that `lhs op rhs` gives; both sides and the result are in ascending order.
pub(crate) fn relate(
    shape: &TraceShape,
    relation: Relation,
    form: StructuralForm,
    lhs: &[u32],
    rhs: &[u32],
) -> Vec<u32> {
    match form {
        StructuralForm::Right => keep(shape, relation, lhs, rhs, true),
        StructuralForm::RightWithout => keep(shape, relation, lhs, rhs, false),
        StructuralForm::Both => {
            let right = keep(shape, relation, lhs, rhs, true);
            let left = keep(shape, mirrored(relation), rhs, lhs, true);
            union(&left, &right)
        }
    }
}

fn mirrored(relation: Relation) -> Relation {
    match relation {
        Relation::Child => Relation::Parent,
        Relation::Parent => Relation::Child,
        Relation::Descendant => Relation::Ancestor,
        Relation::Ancestor => Relation::Descendant,
        Relation::Sibling => Relation::Sibling,
    }
}

/// All spans of both, each once, in ascending order.
pub(crate) fn union(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut both = Vec::with_capacity(left.len() + right.len());
    both.extend_from_slice(left);
    both.extend_from_slice(right);
    both.sort_unstable();
    both.dedup();
    both
}

/// The right-hand spans that do (or do not) have the relation to some left-hand span.
fn keep(shape: &TraceShape, relation: Relation, lhs: &[u32], rhs: &[u32], wanted: bool) -> Vec<u32> {
    let related: Box<dyn Fn(u32) -> bool + '_> = match relation {
        Relation::Child => Box::new(|span| {
            shape.parent(span as usize).is_some_and(|parent| lhs.binary_search(&(parent as u32)).is_ok())
        }),
        Relation::Parent => {
            let parents = parents_of(shape, lhs);
            Box::new(move |span| parents.binary_search(&span).is_ok())
        }
        Relation::Descendant => {
            let outermost = outermost(shape, lhs);
            Box::new(move |span| {
                let left = shape.left(span as usize);
                let before = outermost.partition_point(|(from, _)| *from < left);
                before > 0 && outermost[before - 1].1 > left
            })
        }
        Relation::Ancestor => {
            let mut lefts: Vec<u32> = lhs.iter().map(|span| shape.left(*span as usize)).collect();
            lefts.sort_unstable();
            Box::new(move |span| {
                let next = lefts.partition_point(|left| *left <= shape.left(span as usize));
                lefts.get(next).is_some_and(|left| *left < shape.right(span as usize))
            })
        }
        Relation::Sibling => {
            let parents = parents_of(shape, lhs);
            Box::new(move |span| {
                let Some(parent) = shape.parent(span as usize) else { return false };
                let parent = parent as u32;
                let from = parents.partition_point(|other| *other < parent);
                let siblings = parents[from..].iter().take_while(|other| **other == parent).take(2).count();
                // The span itself may be among the left-hand ones; it is not its own sibling.
                siblings > usize::from(lhs.binary_search(&span).is_ok())
            })
        }
    };
    rhs.iter().copied().filter(|span| related(*span) == wanted).collect()
}

/// The parents of spans in ascending order, one for each span that has one.
fn parents_of(shape: &TraceShape, spans: &[u32]) -> Vec<u32> {
    let mut parents: Vec<u32> =
        spans.iter().filter_map(|span| shape.parent(*span as usize)).map(|parent| parent as u32).collect();
    parents.sort_unstable();
    parents
}

/// The intervals of spans that no other of them encloses, in ascending order; they do not overlap.
fn outermost(shape: &TraceShape, spans: &[u32]) -> Vec<(u32, u32)> {
    let mut intervals: Vec<(u32, u32)> =
        spans.iter().map(|span| (shape.left(*span as usize), shape.right(*span as usize))).collect();
    intervals.sort_unstable();
    let mut outermost: Vec<(u32, u32)> = Vec::new();
    for interval in intervals {
        if outermost.last().is_none_or(|last| last.1 < interval.0) {
            outermost.push(interval);
        }
    }
    outermost
}
