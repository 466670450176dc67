//! Profilers that name the local root only: their samples say what a service did for a request, not in which inner span.
//!
//! Inner spans of such a service have no samples, though the code in them was sampled. Told apart, they would look as if
//! they waited; they are therefore folded into the span that has the samples. What an inner span waits for by itself is
//! not folded: no sample of its caller lies in its time.

use hashbrown::{HashMap, HashSet};
use hotspan_model::SpanKind;

use crate::request::Request;
use crate::vocabulary::{OperationId, Vocabulary};

/// Share of an inner operation's time that samples of its caller must cover for it to be folded.
const COVERED: f64 = 0.05;
/// How much more than its own time a caller's samples must be worth, where they have no times.
const MORE_THAN_OWN: f64 = 1.2;
/// Pairs of samples and spans of one request that are looked at (R5).
const MOST_PAIRS: usize = 1_000_000;

/// Folds inner spans without samples of their own into the span whose samples cover them. Says which operations.
pub fn fold_silent_spans(vocabulary: &Vocabulary, sides: &mut [&mut Vec<Request>]) -> Vec<OperationId> {
    let all = || sides.iter().flat_map(|side| side.iter());
    let sampled: HashSet<OperationId> = all()
        .flat_map(|request| request.samples.iter().map(|sample| request.spans[sample.span as usize].operation))
        .collect();
    let mut covered: HashMap<OperationId, (f64, f64)> = HashMap::new();
    let mut untimed: HashMap<OperationId, (f64, f64)> = HashMap::new();
    let mut inner: HashMap<OperationId, HashSet<OperationId>> = HashMap::new();
    for request in all() {
        let owners = owners(vocabulary, request, &sampled);
        let silent: Vec<(usize, u32)> =
            owners.iter().enumerate().filter_map(|(span, owner)| Some((span, (*owner)?))).collect();
        if silent.is_empty() || silent.len() * request.samples.len() > MOST_PAIRS {
            continue;
        }
        for (span, owner) in &silent {
            let span = &request.spans[*span];
            let owner_operation = request.spans[*owner as usize].operation;
            inner.entry(owner_operation).or_default().insert(span.operation);
            covered.entry(span.operation).or_default().1 += (span.end - span.start) as f64;
            // Inside its owner only once, whatever lies in between.
            let is_direct = span.parent == Some(*owner);
            untimed.entry(owner_operation).or_default().1 -=
                if is_direct { (span.end - span.start) as f64 } else { 0.0 };
        }
        let mut counted: HashSet<u32> = HashSet::new();
        for sample in &request.samples {
            let owner = &request.spans[sample.span as usize];
            if counted.insert(sample.span) {
                untimed.entry(owner.operation).or_default().1 += (owner.end - owner.start) as f64;
            }
            match sample.time {
                None => untimed.entry(owner.operation).or_default().0 += sample.value as f64,
                Some(time) => {
                    let inside = silent.iter().filter(|(span, by)| {
                        let span = &request.spans[*span];
                        *by == sample.span && (span.start..span.end).contains(&time)
                    });
                    for (span, _) in inside {
                        covered.entry(request.spans[*span].operation).or_default().0 += sample.value as f64;
                    }
                }
            }
        }
    }
    let by_time = covered.iter().filter(|(_, (seen, time))| *seen > COVERED * time).map(|(operation, _)| *operation);
    let by_worth = untimed
        .iter()
        .filter(|(_, (seen, own))| *seen > 0.0 && *seen > MORE_THAN_OWN * own.max(0.0))
        .flat_map(|(owner, _)| inner.get(owner).into_iter().flatten().copied());
    let folded: HashSet<OperationId> = by_time.chain(by_worth).collect();
    for request in sides.iter_mut().flat_map(|side| side.iter_mut()) {
        fold(vocabulary, request, &folded);
    }
    let mut folded: Vec<OperationId> = folded.into_iter().collect();
    folded.sort_unstable();
    folded
}

/// For each inner span without samples, the nearest caller in the same service that has some.
fn owners(vocabulary: &Vocabulary, request: &Request, sampled: &HashSet<OperationId>) -> Vec<Option<u32>> {
    let mut owners: Vec<Option<u32>> = vec![None; request.spans.len()];
    for index in 1..request.spans.len() {
        let span = &request.spans[index];
        let Some(parent) = span.parent else { continue };
        let caller = &request.spans[parent as usize];
        if !is_inner(vocabulary, request, index) || sampled.contains(&span.operation) {
            continue;
        }
        owners[index] = if sampled.contains(&caller.operation) { Some(parent) } else { owners[parent as usize] };
    }
    owners
}

fn is_inner(vocabulary: &Vocabulary, request: &Request, index: usize) -> bool {
    let span = &request.spans[index];
    let service = |span: &crate::request::RequestSpan| vocabulary.operation_of(span.operation).service;
    matches!(span.role, SpanKind::Internal | SpanKind::Unspecified | SpanKind::Other(_))
        && span.parent.is_some_and(|parent| service(&request.spans[parent as usize]) == service(span))
}

/// Takes the folded spans out; what they called is called by their caller.
fn fold(vocabulary: &Vocabulary, request: &mut Request, folded: &HashSet<OperationId>) {
    let is_folded: Vec<bool> = (0..request.spans.len())
        .map(|index| {
            index > 0 && folded.contains(&request.spans[index].operation) && is_inner(vocabulary, request, index)
        })
        .collect();
    if !is_folded.contains(&true) {
        return;
    }
    // Where each span went, or the nearest caller that is left.
    let mut places: Vec<u32> = Vec::with_capacity(request.spans.len());
    let mut kept = Vec::with_capacity(request.spans.len());
    for (index, mut span) in std::mem::take(&mut request.spans).into_iter().enumerate() {
        let parent = span.parent.map(|parent| places[parent as usize]);
        if is_folded[index] {
            places.push(parent.unwrap_or(0));
        } else {
            places.push(kept.len() as u32);
            span.parent = parent;
            kept.push(span);
        }
    }
    request.spans = kept;
    for sample in &mut request.samples {
        sample.span = places[sample.span as usize];
    }
}
