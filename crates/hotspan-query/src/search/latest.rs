//! Searching for the most recent traces.
//!
//! A search that judges single spans looks for spans that match; one that judges traces whole looks for spans without
//! which no trace can match. Segments are scanned from the latest back. A trace starts no later than its first such
//! span, so that span's start bounds the place of its trace from above: candidates are read whole from the highest bound
//! down, many at once, until no bound that is left can reach the last of the first N. What was found is then certain,
//! and older segments need not be read. Where a trace must have several such spans and fewer were seen, the others are in
//! what has not been seen: it starts no later than that, and is not read before.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::{IdSet, Segment, Snapshot, Table, arrays};
use hotspan_model::{TenantId, TraceId};
use hotspan_traceql::{NeededSpans, Program, SpanCondition};

use super::SearchQuery;
use super::candidates::{Candidate, Candidates};
use super::chunk_scan::{Hit, SpanScan, TimeRange, Wanted, traces_in_time};
use super::run::{Progress, Scene, reach_back, reach_on};
use crate::error::Result;

/// Segments are scanned together until they have so many rows: enough work for several cores.
const SCANNED_ROWS: u64 = 512 << 10;
/// Candidates that are judged at once, to begin with: as many as are asked for, within these bounds …
const FIRST_BATCH: std::ops::RangeInclusive<usize> = 20..=64;
/// … and at most: each batch without an end is twice as large as the one before.
const LARGEST_BATCH: usize = 4096;
/// Most traces that are remembered because their spans in the time asked for may be elsewhere (R5).
const MAX_ELSEWHERE: usize = 500_000;

#[derive(Debug)]
pub(super) struct LatestTraces {
    /// The latest first.
    segments: Vec<Arc<Segment>>,
    next: usize,
    /// Segments that are not scanned, but may hold more spans of the traces that are found.
    far: Vec<Arc<Segment>>,
    /// Made when the first segments are scanned, since what profiles know is not known before.
    scan: Option<Arc<SpanScan>>,
    range: TimeRange,
    candidates: Candidates,
    /// Traces that satisfy the condition but had no span in the time asked for where they did.
    elsewhere: HashMap<TraceId, Candidate>,
    judged: HashSet<TraceId>,
}

impl LatestTraces {
    pub(super) fn new(snapshot: &Snapshot, tenant: &TenantId, program: &Program, query: &SearchQuery) -> Self {
        let judges_spans = program.search().is_some_and(|search| search.span_filter().is_some());
        let (from, until) = match judges_spans {
            true => (query.from, query.until),
            false => (reach_back(query.from), reach_on(query.until)),
        };
        let all = snapshot.segments(tenant, Table::Spans).to_vec().into_iter();
        let (mut segments, far): (Vec<_>, Vec<_>) = all.partition(|segment| segment.overlaps(from, until));
        segments.sort_by_key(|segment| Reverse(segment.max_time));
        Self {
            segments,
            next: 0,
            far,
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
        self.candidates.least = scan.least();
        let range = self.range;
        let before = self.candidates.unjudged_until();
        let least = scene.best.threshold().unwrap_or(i64::MIN);
        if scan.finds_matches() {
            let range = TimeRange { until: range.until.min(before), ..range };
            let found = scan.latest_matches(&group, range, least, self.candidates.wanted()).await?;
            scene.inspected.spans += found.spans;
            for hit in found.hits.iter().filter(|hit| !self.judged.contains(&hit.trace_id)) {
                self.candidates.add(hit.trace_id, Candidate::new(hit.start, hit.spans));
            }
            self.candidates.forget(found.left_out);
            return Ok(());
        }
        let (candidates, elsewhere, judged) = (&mut self.candidates, &mut self.elsewhere, &self.judged);
        let spans = &mut scene.inspected.spans;
        scan.scan(&group, range, least, &mut |found| {
            *spans += found.spans;
            for Hit { trace_id, start, spans, is_in_time } in found.hits {
                // Who has a span in time starts before its end.
                let candidate = Candidate::new(start.min(range.until - 1), spans);
                if candidate.bound < least || candidate.bound >= before || judged.contains(&trace_id) {
                    continue;
                }
                if is_in_time {
                    candidates.add(trace_id, candidate);
                } else if elsewhere.len() <= MAX_ELSEWHERE {
                    elsewhere.entry(trace_id).and_modify(|known| known.join(candidate)).or_insert(candidate);
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
            let any_span = NeededSpans { condition: SpanCondition::True, least: 1 };
            self.scan = Some(if judges_spans {
                make(Wanted::Matches)
            } else if conditions.len() <= 1 {
                make(Wanted::Necessary(conditions.pop().unwrap_or(any_span)))
            } else {
                let mut rarest: Option<(usize, Arc<SpanScan>)> = None;
                for scan in conditions.into_iter().map(|condition| make(Wanted::Necessary(condition))) {
                    let mut traces = 0;
                    scan.scan(&group[..1], self.range, i64::MIN, &mut |found| traces += found.hits.len()).await?;
                    if rarest.as_ref().is_none_or(|(fewest, _)| traces < *fewest) {
                        rarest = Some((traces, scan));
                    }
                }
                rarest.map_or_else(|| make(Wanted::Necessary(any_span)), |(_, scan)| scan)
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
                    if let Some(candidate) = self.elsewhere.remove(&trace_id) {
                        self.candidates.add(trace_id, candidate);
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
        let waiting = self.candidates.above(unseen, self.far.is_empty());
        let mut waiting = waiting.as_slice();
        let mut size = scene.query.limit.clamp(*FIRST_BATCH.start(), *FIRST_BATCH.end());
        while let Some((_, highest)) = waiting.first() {
            let threshold = scene.best.threshold();
            let may_reach = |bound: i64| threshold.is_none_or(|threshold| bound >= threshold);
            if !may_reach(highest.bound) {
                break;
            }
            let worth_it = waiting.partition_point(|(_, candidate)| may_reach(candidate.bound));
            let (batch, rest) = waiting.split_at(worth_it.min(size));
            let (enough, short): (Vec<_>, Vec<_>) =
                batch.iter().partition(|(_, candidate)| candidate.spans >= self.candidates.least);
            let mut worth_reading: Vec<TraceId> = enough.iter().map(|(trace_id, _)| *trace_id).collect();
            let short = || short.iter().map(|(trace_id, _)| *trace_id);
            worth_reading.extend(self.found_far(scene, short()).await?);
            self.candidates.set_near(short());
            for trace_id in &worth_reading {
                self.candidates.remove(trace_id);
                self.judged.insert(*trace_id);
            }
            scene.judge(worth_reading).await?;
            tokio::task::yield_now().await;
            waiting = rest;
            size = (2 * size).min(LARGEST_BATCH);
        }
        Ok(())
    }

    /// Those of some traces that have spans in segments which are not scanned.
    async fn found_far(&self, scene: &Scene, traces: impl Iterator<Item = TraceId>) -> Result<HashSet<TraceId>> {
        let mut found = HashSet::new();
        let ids = IdSet::traces(traces);
        if ids.is_empty() {
            return Ok(found);
        }
        let reader = scene.engine.lake().reader();
        for segment in &self.far {
            let rows = reader.trace_rows(segment, &ids).await?;
            for batch in reader.rows(segment, &rows, &["trace_id"]).await? {
                let traces = arrays::ids(&batch, "trace_id")?;
                found.extend((0..batch.num_rows()).map(|row| TraceId(arrays::id_at(traces, row))));
            }
        }
        Ok(found)
    }
}
