//! Searching for the most recent traces.
//!
//! A search that judges single spans looks for spans that match; one that judges traces whole looks for spans without
//! which no trace can match. Segments are scanned from the latest back. A trace starts no later than its first such
//! span, so that span's start bounds the place of its trace from above: candidates are read whole from the highest bound
//! down, many at once, until no bound that is left can reach the last of the first N. What was found is then certain,
//! and older segments need not be read.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::{Segment, Snapshot};
use hotspan_model::{TenantId, TraceId};
use hotspan_traceql::{Program, SpanCondition};

use super::SearchQuery;
use super::chunk_scan::{Hit, SpanScan, TimeRange, Wanted, traces_in_time};
use super::run::{Progress, Scene, overlapping, reach_back, reach_on};
use crate::error::Result;

/// Segments are scanned together until they have so many rows: enough work for several cores.
const SCANNED_ROWS: u64 = 512 << 10;
/// Candidates that are read whole at once, to begin with …
const FIRST_BATCH: usize = 64;
/// … and at most: each batch without an end is twice as large as the one before.
const LARGEST_BATCH: usize = 4096;
/// Most traces that are remembered because their spans in the time asked for may be elsewhere (R5).
const MAX_ELSEWHERE: usize = 500_000;

#[derive(Debug)]
pub(super) struct LatestTraces {
    /// The latest first.
    segments: Vec<Arc<Segment>>,
    next: usize,
    /// Made when the first segments are scanned, since what profiles know is not known before.
    scan: Option<Arc<SpanScan>>,
    range: TimeRange,
    candidates: Candidates,
    /// Traces that satisfy the condition but had no span in the time asked for where they did.
    elsewhere: HashMap<TraceId, i64>,
    judged: HashSet<TraceId>,
}

impl LatestTraces {
    pub(super) fn new(snapshot: &Snapshot, tenant: &TenantId, program: &Program, query: &SearchQuery) -> Self {
        let judges_spans = program.search().is_some_and(|search| search.span_filter().is_some());
        let mut segments = if judges_spans {
            overlapping(snapshot, tenant, query.from, query.until)
        } else {
            overlapping(snapshot, tenant, reach_back(query.from), reach_on(query.until))
        };
        segments.sort_by_key(|segment| Reverse(segment.max_time));
        Self {
            segments,
            next: 0,
            scan: None,
            range: TimeRange { from: query.from, until: query.until },
            candidates: Candidates::new(query),
            elsewhere: HashMap::new(),
            judged: HashSet::new(),
        }
    }

    /// Scans some segments, and then judges the candidates that can't wait.
    pub(super) async fn step(&mut self, scene: &mut Scene) -> Result<Progress> {
        scene.inspected.steps = self.segments.len() as u32;
        self.scan_next(scene).await?;
        if self.elsewhere.len() > MAX_ELSEWHERE {
            return Ok(Progress::TooMany);
        }
        scene.inspected.steps_done = scene.inspected.steps_done.max(self.next as u32);
        let older = self.segments.get(self.next).map(|segment| segment.max_time);
        if older.is_none() {
            self.promote(scene).await?;
        } else if !self.elsewhere.is_empty() {
            // Any of them may be among the first: nothing is certain before all has been scanned.
            return Ok(Progress::UnseenUpTo(i64::MAX));
        }
        // What was forgotten is as unseen as what has not been read.
        let unseen = older.max(self.candidates.forgotten);
        self.judge_above(scene, unseen).await?;
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

    async fn scan_next(&mut self, scene: &mut Scene) -> Result<()> {
        // The first segment alone, so that a stream has something to show at once.
        let most_rows = if self.next == 0 { 1 } else { SCANNED_ROWS };
        let mut rows = 0;
        let mut group = Vec::new();
        while rows < most_rows
            && let Some(segment) = self.segments.get(self.next)
        {
            rows += segment.rows;
            scene.inspected.bytes += segment.bytes();
            group.push(Arc::clone(segment));
            self.next += 1;
        }
        let Some(scan) = self.scan_for(scene, &group).await? else { return Ok(()) };
        let range = self.range;
        let before = self.candidates.matches_until;
        let least = scene.best.threshold().unwrap_or(i64::MIN);
        let (candidates, elsewhere, judged) = (&mut self.candidates, &mut self.elsewhere, &self.judged);
        let spans = &mut scene.inspected.spans;
        scan.scan(&group, range, least, &mut |found| {
            *spans += found.spans;
            for Hit { trace_id, start, is_in_time } in found.hits {
                // Who has a span in time starts before its end.
                let bound = start.min(range.until - 1);
                if bound < least || bound >= before || judged.contains(&trace_id) {
                    continue;
                }
                if is_in_time {
                    candidates.add(trace_id, bound);
                } else if elsewhere.len() <= MAX_ELSEWHERE {
                    let earliest = elsewhere.entry(trace_id).or_insert(bound);
                    *earliest = bound.min(*earliest);
                }
            }
        })
        .await
    }

    /// The scan, made at first: of the conditions that are necessary, the one that the fewest traces satisfy.
    async fn scan_for(&mut self, scene: &Scene, group: &[Arc<Segment>]) -> Result<Option<Arc<SpanScan>>> {
        if self.scan.is_none() && !group.is_empty() {
            let make = |wanted| {
                let scan = SpanScan::new(&scene.engine, &scene.program, scene.profiles.as_ref(), wanted);
                Arc::new(scan)
            };
            let judges_spans = scene.program.search().is_some_and(|search| search.span_filter().is_some());
            let mut conditions = scene.program.prefilter().necessary();
            self.scan = Some(if judges_spans {
                make(Wanted::Matches)
            } else if conditions.len() <= 1 {
                make(Wanted::Necessary(conditions.pop().unwrap_or(SpanCondition::True)))
            } else {
                let mut rarest: Option<(usize, Arc<SpanScan>)> = None;
                for scan in conditions.into_iter().map(|condition| make(Wanted::Necessary(condition))) {
                    let mut traces = 0;
                    scan.scan(&group[..1], self.range, i64::MIN, &mut |found| traces += found.hits.len()).await?;
                    if rarest.as_ref().is_none_or(|(fewest, _)| traces < *fewest) {
                        rarest = Some((traces, scan));
                    }
                }
                rarest.map_or_else(|| make(Wanted::Necessary(SpanCondition::True)), |(_, scan)| scan)
            });
        }
        Ok(self.scan.clone())
    }

    /// Makes candidates of those traces whose spans in the time asked for are elsewhere than those that satisfy the
    /// condition.
    async fn promote(&mut self, scene: &Scene) -> Result<()> {
        if self.elsewhere.is_empty() {
            return Ok(());
        }
        let in_time = self.segments.iter().filter(|segment| segment.overlaps(self.range.from, self.range.until));
        for segment in in_time {
            for chunk in scene.engine.lake().reader().chunks(segment).await? {
                for trace_id in traces_in_time(&scene.engine, &chunk, self.range).await? {
                    if let Some(start) = self.elsewhere.remove(&trace_id) {
                        self.candidates.add(trace_id, start);
                    }
                }
                tokio::task::yield_now().await;
            }
        }
        self.elsewhere.clear();
        Ok(())
    }

    /// Judges the candidates above what is unseen, the highest first, until the rest can't be among the first.
    async fn judge_above(&mut self, scene: &mut Scene, unseen: Option<i64>) -> Result<()> {
        let waiting = self.candidates.above(unseen);
        let mut waiting = waiting.as_slice();
        let mut size = FIRST_BATCH;
        while let Some((_, highest)) = waiting.first() {
            let threshold = scene.best.threshold();
            if threshold.is_some_and(|threshold| *highest < threshold) {
                break;
            }
            let worth_it = waiting.partition_point(|(_, bound)| threshold.is_none_or(|threshold| *bound >= threshold));
            let (batch, rest) = waiting.split_at(worth_it.min(size));
            for (trace_id, _) in batch {
                self.candidates.bounds.remove(trace_id);
                self.judged.insert(*trace_id);
            }
            scene.judge(batch.iter().map(|(trace_id, _)| *trace_id)).await?;
            tokio::task::yield_now().await;
            waiting = rest;
            size = (2 * size).min(LARGEST_BATCH);
        }
        Ok(())
    }
}

/// Traces that have not been read whole, and the latest that each can have started.
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

    fn add(&mut self, trace_id: TraceId, start: i64) {
        if self.forgotten.is_some_and(|forgotten| start <= forgotten) {
            return;
        }
        let earliest = self.bounds.entry(trace_id).or_insert(start);
        *earliest = start.min(*earliest);
        if self.bounds.len() > 2 * self.room {
            let mut all: Vec<i64> = self.bounds.values().copied().collect();
            let (_, last_kept, _) = all.select_nth_unstable_by_key(self.room, |bound| Reverse(*bound));
            let last_kept = *last_kept;
            self.forgotten = self.forgotten.max(Some(last_kept));
            self.bounds.retain(|_, bound| *bound > last_kept);
        }
    }

    /// Those whose bound is higher, the highest first.
    fn above(&self, unseen: Option<i64>) -> Vec<(TraceId, i64)> {
        let higher = self.bounds.iter().filter(|(_, bound)| unseen.is_none_or(|unseen| **bound > unseen));
        let mut higher: Vec<(TraceId, i64)> = higher.map(|(id, bound)| (*id, *bound)).collect();
        higher.sort_unstable_by_key(|(id, bound)| (Reverse(*bound), *id));
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
