//! Searching for the longest traces where each span can be judged alone: who matches, how long each took, and then
//! the longest of them whole.

use std::sync::Arc;

use futures::TryStreamExt;
use hashbrown::HashMap;
use hotspan_lake::{ReadOptions, Segment, Snapshot, arrays};
use hotspan_model::{TenantId, TraceId};
use hotspan_traceql::{SpanSource, TraceView};

use super::SearchQuery;
use super::binding::BoundSpans;
use super::run::{Progress, Scene, overlapping, reach_back, reach_on};
use crate::error::{QueryError, Result};

/// Most traces that are put in order by duration: what bounds the memory.
const MAX_TRACES: usize = 1_000_000;

#[derive(Debug)]
pub(super) struct LongestTraces {
    matching: Vec<Arc<Segment>>,
    around: Vec<Arc<Segment>>,
    next: usize,
    extents: HashMap<TraceId, Extent>,
}

#[derive(Debug, Clone, Copy)]
struct Extent {
    start: i64,
    end: i64,
}

impl LongestTraces {
    pub(super) fn new(snapshot: &Snapshot, tenant: &TenantId, query: &SearchQuery) -> Self {
        Self {
            matching: overlapping(snapshot, tenant, query.from, query.until),
            around: overlapping(snapshot, tenant, reach_back(query.from), reach_on(query.until)),
            next: 0,
            extents: HashMap::new(),
        }
    }

    pub(super) async fn step(&mut self, scene: &mut Scene) -> Result<Progress> {
        scene.inspected.steps = (self.matching.len() + self.around.len()) as u32;
        scene.inspected.steps_done = self.next as u32;
        let at = self.next;
        self.next += 1;
        if let Some(segment) = self.matching.get(at).cloned() {
            self.find_matching(scene, &segment).await?;
            return Ok(Progress::UnseenUpTo(i64::MAX));
        }
        if let Some(segment) = self.around.get(at - self.matching.len()).cloned() {
            self.measure(scene, &segment).await?;
            return Ok(Progress::UnseenUpTo(i64::MAX));
        }
        let mut order: Vec<(i64, TraceId, i64)> = self
            .extents
            .drain()
            .map(|(id, extent)| (extent.end.saturating_sub(extent.start), id, extent.start))
            .collect();
        order.sort_unstable_by_key(|(duration, id, _)| (std::cmp::Reverse(*duration), *id));
        for (duration, trace_id, start) in order {
            if scene.best.threshold().is_some_and(|threshold| duration < threshold) {
                break;
            }
            scene.judge(trace_id, start).await?;
            tokio::task::yield_now().await;
        }
        Ok(Progress::Over)
    }

    async fn find_matching(&mut self, scene: &mut Scene, segment: &Arc<Segment>) -> Result<()> {
        let program = Arc::clone(&scene.program);
        let Some(filter) = program.search().and_then(|search| search.span_filter()) else { return Ok(()) };
        scene.inspected.bytes += segment.bytes();
        let options = scene.scan_options(filter).within("start_time", scene.query.from, scene.query.until);
        let mut stream = scene.engine.lake().reader().stream(segment, options).await?;
        let mut matches = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            let spans = BoundSpans::bind(batch, program.fields())?.with_profiles(scene.profiles.as_ref());
            scene.inspected.spans += spans.len() as u64;
            matches.clear();
            filter.select(&TraceView::of_batch(&spans), 0..spans.len(), &mut matches);
            for span in &matches {
                let start = spans.start_nanos(*span as usize);
                self.extents.entry(spans.trace_id(*span as usize)).or_insert(Extent { start, end: start });
            }
            if self.extents.len() > MAX_TRACES {
                return Err(QueryError::Limit(format!(
                    "more than {MAX_TRACES} traces match (limit: traces ordered by duration); \
                     ask for less time or more narrowly"
                )));
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn measure(&mut self, scene: &mut Scene, segment: &Arc<Segment>) -> Result<()> {
        let options = ReadOptions::columns(&["trace_id", "start_time", "duration"]);
        let mut stream = scene.engine.lake().reader().stream(segment, options).await?;
        while let Some(batch) = stream.try_next().await? {
            let trace_ids = arrays::ids(&batch, "trace_id")?;
            let starts = arrays::times(&batch, "start_time")?.values();
            let durations = arrays::int64s(&batch, "duration")?.values();
            for row in 0..batch.num_rows() {
                if let Some(extent) = self.extents.get_mut(&TraceId(arrays::id_at(trace_ids, row))) {
                    extent.start = extent.start.min(starts[row]);
                    extent.end = extent.end.max(starts[row].saturating_add(durations[row].max(0)));
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
