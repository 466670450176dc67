//! Searching for the longest traces where each span can be judged alone: who matches, how long each took, and then
//! the longest of them whole.

use std::sync::Arc;

use arrow::array::RecordBatch;
use hashbrown::HashMap;
use hotspan_lake::{IdSet, Segment, Snapshot, Table, arrays};
use hotspan_model::{TenantId, TraceId};

use super::SearchQuery;
use super::chunk_scan::{SpanScan, TimeRange, Wanted};
use super::run::{Progress, Scene, overlapping, reach_back, reach_on};
use crate::error::{QueryError, Result};

/// Most traces that are put in order by duration: what bounds the memory.
const MAX_TRACES: usize = 1_000_000;
/// Traces that are read whole at once.
const JUDGED_TRACES: usize = 64;

#[derive(Debug)]
pub(super) struct LongestTraces {
    matching: Vec<Arc<Segment>>,
    /// Where most of the rest of the traces is: read as it comes.
    around: Vec<Arc<Segment>>,
    /// All other segments: asked for the traces by id.
    far: Vec<Arc<Segment>>,
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
        let (from, until) = (reach_back(query.from), reach_on(query.until));
        let all = snapshot.segments(tenant, Table::Spans).to_vec().into_iter();
        let (around, far) = all.partition(|segment| segment.overlaps(from, until));
        Self {
            matching: overlapping(snapshot, tenant, query.from, query.until),
            around,
            far,
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
        self.measure_far(scene).await?;
        let mut order: Vec<(i64, TraceId)> =
            self.extents.drain().map(|(id, extent)| (extent.end.saturating_sub(extent.start), id)).collect();
        order.sort_unstable_by_key(|(duration, id)| (std::cmp::Reverse(*duration), *id));
        for batch in order.chunks(JUDGED_TRACES) {
            let threshold = scene.best.threshold();
            let worth_it =
                batch.iter().filter(|(duration, _)| threshold.is_none_or(|threshold| *duration >= threshold));
            let worth_it: Vec<TraceId> = worth_it.map(|(_, id)| *id).collect();
            if worth_it.is_empty() {
                break;
            }
            scene.judge(worth_it).await?;
            tokio::task::yield_now().await;
        }
        Ok(Progress::Over)
    }

    async fn find_matching(&mut self, scene: &mut Scene, segment: &Arc<Segment>) -> Result<()> {
        let scan = SpanScan::new(&scene.engine, &scene.program, scene.profiles.as_ref(), Wanted::Matches);
        let range = TimeRange { from: scene.query.from, until: scene.query.until };
        scene.inspected.bytes += segment.bytes();
        let (extents, spans) = (&mut self.extents, &mut scene.inspected.spans);
        Arc::new(scan)
            .scan(std::slice::from_ref(segment), range, i64::MIN, &mut |found| {
                *spans += found.spans;
                for hit in found.hits {
                    extents.entry(hit.trace_id).or_insert(Extent { start: hit.start, end: hit.start });
                }
            })
            .await?;
        if self.extents.len() > MAX_TRACES {
            return Err(QueryError::Limit(format!(
                "more than {MAX_TRACES} traces match (limit: traces ordered by duration); \
                 ask for less time or more narrowly"
            )));
        }
        Ok(())
    }

    async fn measure(&mut self, scene: &mut Scene, segment: &Arc<Segment>) -> Result<()> {
        let reader = scene.engine.lake().reader();
        for chunk in reader.chunks(segment).await? {
            self.widen(&reader.columns(&chunk, &EXTENT_COLUMNS).await?)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn measure_far(&mut self, scene: &Scene) -> Result<()> {
        let reader = scene.engine.lake().reader();
        let ids = IdSet::traces(self.extents.keys().copied());
        for segment in std::mem::take(&mut self.far) {
            let rows = reader.trace_rows(&segment, &ids).await?;
            for batch in reader.rows(&segment, &rows, &EXTENT_COLUMNS).await? {
                self.widen(&batch)?;
            }
        }
        Ok(())
    }

    /// Widens the extents of traces by their spans in a batch.
    fn widen(&mut self, batch: &RecordBatch) -> Result<()> {
        let trace_ids = arrays::ids(batch, "trace_id")?;
        let starts = arrays::times(batch, "start_time")?.values();
        let durations = arrays::int64s(batch, "duration")?.values();
        let mut row = 0;
        while row < batch.num_rows() {
            // Spans of a trace lie together: it is looked up once.
            let first = row;
            while row < batch.num_rows() && trace_ids.value(row) == trace_ids.value(first) {
                row += 1;
            }
            let Some(extent) = self.extents.get_mut(&TraceId(arrays::id_at(trace_ids, first))) else { continue };
            for row in first..row {
                extent.start = extent.start.min(starts[row]);
                extent.end = extent.end.max(starts[row].saturating_add(durations[row].max(0)));
            }
        }
        Ok(())
    }
}

const EXTENT_COLUMNS: [&str; 3] = ["trace_id", "start_time", "duration"];
