//! Searching for the most recent traces where each span can be judged alone.
//!
//! Segments are read from the latest back. A trace starts no later than its first matching span, so that span's start
//! bounds the place of its trace from above: candidates are read whole from the highest bound down, until no bound
//! that is left can reach the last of the first N. What was found is then certain, and older segments need not be read.

use std::sync::Arc;

use futures::TryStreamExt;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{Segment, Snapshot};
use hotspan_model::{TenantId, TraceId};
use hotspan_traceql::{SpanSource, TraceView};

use super::SearchQuery;
use super::binding::BoundSpans;
use super::run::{Progress, Scene, overlapping};
use crate::error::Result;

#[derive(Debug)]
pub(super) struct LatestSpans {
    /// The latest first.
    segments: Vec<Arc<Segment>>,
    next: usize,
    candidates: Candidates,
    judged: HashSet<TraceId>,
}

impl LatestSpans {
    pub(super) fn new(snapshot: &Snapshot, tenant: &TenantId, query: &SearchQuery) -> Self {
        let mut segments = overlapping(snapshot, tenant, query.from, query.until);
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.max_time));
        Self { segments, next: 0, candidates: Candidates::new(query), judged: HashSet::new() }
    }

    /// Reads one segment, and then the candidates that can't wait.
    pub(super) async fn step(&mut self, scene: &mut Scene) -> Result<Progress> {
        if self.next == 0 {
            scene.inspected.steps = self.segments.len() as u32;
        }
        if let Some(segment) = self.segments.get(self.next) {
            let segment = Arc::clone(segment);
            self.next += 1;
            self.scan(scene, &segment).await?;
            scene.inspected.steps_done = scene.inspected.steps_done.max(self.next as u32);
        }
        let older = self.segments.get(self.next).map(|segment| segment.max_time);
        // What was forgotten is as unseen as what has not been read.
        let unseen = older.max(self.candidates.forgotten);
        for (trace_id, bound) in self.candidates.above(unseen) {
            if scene.best.threshold().is_some_and(|threshold| bound < threshold) {
                break;
            }
            self.candidates.bounds.remove(&trace_id);
            self.judged.insert(trace_id);
            scene.judge(trace_id, bound).await?;
            tokio::task::yield_now().await;
        }
        let unseen = unseen.max(self.candidates.highest());
        let Some(unseen) = unseen else { return Ok(Progress::Over) };
        if scene.best.threshold().is_some_and(|threshold| unseen < threshold) {
            return Ok(Progress::Over);
        }
        if older.is_none() && self.candidates.forgotten.is_some() {
            // Longer traces than expected: read again what had to be forgotten, with more room.
            self.next = 0;
            self.candidates.start_over();
        }
        Ok(Progress::UnseenUpTo(unseen))
    }

    async fn scan(&mut self, scene: &mut Scene, segment: &Arc<Segment>) -> Result<()> {
        let program = Arc::clone(&scene.program);
        let Some(filter) = program.search().and_then(|search| search.span_filter()) else { return Ok(()) };
        let until = scene.query.until.min(self.candidates.matches_until);
        scene.inspected.bytes += segment.bytes();
        let options = scene.scan_options(filter).within("start_time", scene.query.from, until);
        let mut stream = scene.engine.lake().reader().stream(segment, options).await?;
        let mut matches = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            let spans = BoundSpans::bind(batch, program.fields())?.with_profiles(scene.profiles.as_ref());
            scene.inspected.spans += spans.len() as u64;
            matches.clear();
            filter.select(&TraceView::of_batch(&spans), 0..spans.len(), &mut matches);
            let least = scene.best.threshold().unwrap_or(i64::MIN);
            for span in &matches {
                let start = spans.start_nanos(*span as usize);
                if start >= least && self.candidates.may_keep(start) {
                    let trace_id = spans.trace_id(*span as usize);
                    if !self.judged.contains(&trace_id) {
                        self.candidates.add(trace_id, start);
                    }
                }
            }
            // Whoever asked may have left meanwhile.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Traces with matching spans that have not been read whole, and the latest that each can have started.
#[derive(Debug)]
struct Candidates {
    bounds: HashMap<TraceId, i64>,
    room: usize,
    /// The highest bound of those that there was no room for.
    forgotten: Option<i64>,
    matches_until: i64,
}

impl Candidates {
    fn new(query: &SearchQuery) -> Self {
        let room = query.limit.saturating_mul(2).saturating_add(1000);
        Self { bounds: HashMap::new(), room, forgotten: None, matches_until: i64::MAX }
    }

    fn may_keep(&self, start: i64) -> bool {
        self.forgotten.is_none_or(|forgotten| start > forgotten)
    }

    fn add(&mut self, trace_id: TraceId, start: i64) {
        let earliest = self.bounds.entry(trace_id).or_insert(start);
        *earliest = start.min(*earliest);
        if self.bounds.len() > 2 * self.room {
            let mut all: Vec<i64> = self.bounds.values().copied().collect();
            let (_, last_kept, _) = all.select_nth_unstable_by_key(self.room, |bound| std::cmp::Reverse(*bound));
            let last_kept = *last_kept;
            self.forgotten = self.forgotten.max(Some(last_kept));
            self.bounds.retain(|_, bound| *bound > last_kept);
        }
    }

    /// Those whose bound is higher, the highest first.
    fn above(&self, unseen: Option<i64>) -> Vec<(TraceId, i64)> {
        let higher = self.bounds.iter().filter(|(_, bound)| unseen.is_none_or(|unseen| **bound > unseen));
        let mut higher: Vec<(TraceId, i64)> = higher.map(|(id, bound)| (*id, *bound)).collect();
        higher.sort_unstable_by_key(|(id, bound)| (std::cmp::Reverse(*bound), *id));
        higher
    }

    fn highest(&self) -> Option<i64> {
        self.bounds.values().copied().max()
    }

    fn start_over(&mut self) {
        self.matches_until = self.forgotten.take().map_or(i64::MAX, |bound| bound.saturating_add(1));
        self.room = self.room.saturating_mul(8);
    }
}
