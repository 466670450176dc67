//! Searching where traces must be judged whole: structure, aggregates, facts about the trace.
//!
//! Slices of the id space are read one after another. Any slice may hold the most recent trace, so what was found
//! is certain only with the last one.

use std::sync::Arc;

use hotspan_lake::{Segment, Snapshot};
use hotspan_model::TenantId;

use super::SearchQuery;
use super::found::found;
use super::gather::{Slice, gather, slices};
use super::order::Rank;
use super::run::{Progress, Scene, overlapping, reach_back, reach_on};
use crate::error::Result;

#[derive(Debug)]
pub(super) struct WholeTraces {
    segments: Vec<Arc<Segment>>,
    slices: Vec<Slice>,
    next: usize,
}

impl WholeTraces {
    pub(super) fn new(snapshot: &Snapshot, tenant: &TenantId, query: &SearchQuery) -> Self {
        let segments = overlapping(snapshot, tenant, reach_back(query.from), reach_on(query.until));
        let slices = slices(&segments);
        Self { segments, slices, next: 0 }
    }

    pub(super) async fn step(&mut self, scene: &mut Scene) -> Result<Progress> {
        scene.inspected.steps = self.slices.len() as u32;
        scene.inspected.bytes = self.segments.iter().map(|segment| segment.bytes()).sum();
        let Some(slice) = self.slices.get(self.next) else { return Ok(Progress::Over) };
        self.next += 1;
        let program = Arc::clone(&scene.program);
        if let Some(mut gathered) = gather(scene.engine.lake(), &self.segments, *slice, program.fields()).await? {
            gathered.spans = gathered.spans.with_profiles(scene.profiles.as_ref());
            for rows in std::mem::take(&mut gathered.traces) {
                gathered.spans.show(rows);
                scene.inspected.traces += 1;
                scene.inspected.spans += gathered.spans.len() as u64;
                if program.prefilter().may_match(&gathered.spans)
                    && let Some(trace) = found(&program, &gathered.spans, &scene.query)
                {
                    let rank = Rank::of(&trace, scene.query.order);
                    scene.best.add(rank, Some(trace));
                }
            }
        }
        scene.inspected.steps_done = self.next as u32;
        tokio::task::yield_now().await;
        Ok(if self.next < self.slices.len() { Progress::UnseenUpTo(i64::MAX) } else { Progress::Over })
    }
}
