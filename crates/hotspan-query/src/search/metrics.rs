//! TraceQL metrics: series over time, from single spans or from whole traces.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_lake::segment::Chunk;
use hotspan_lake::{ReadOptions, Segment, Snapshot};
use hotspan_model::{Exactness, TenantId};
use hotspan_traceql::{MetricsError, MetricsLimits, MetricsState, Program, Series, TimeGrid, TraceView};

use super::Inspected;
use super::binding::BoundSpans;
use super::chunk_fold::{ChunkFold, FoldOptions, LoadedChunk, name_traces, shares, single};
use super::gather::{Slice, gather_with, slices};
use super::profile_fields::ProfileFields;
use super::query_columns::{CORE_COLUMNS, columns_of_field, scan_columns};
use super::run::{overlapping, reach_back, reach_on};
use crate::Engine;
use crate::error::{QueryError, Result};
use crate::side_by_side::{cores, side_by_side};

/// Series, and what was looked at.
#[derive(Debug, Clone, Default)]
pub struct MetricsAnswer {
    /// The series, as far as the work has come.
    pub series: Vec<Series>,
    /// What was looked at so far.
    pub inspected: Inspected,
    /// What that rests on: all spans that were evaluated.
    pub exactness: Exactness,
    /// What had to be left out (R4).
    pub notes: Vec<String>,
}

/// A metrics query under way. Dropping it ends it.
#[derive(Debug)]
pub struct MetricsRun {
    engine: Engine,
    program: Arc<Program>,
    range: (i64, i64),
    segments: Vec<Arc<Segment>>,
    /// None where single spans will do, and each segment is read by itself.
    slices: Option<Vec<Slice>>,
    next: usize,
    grid: TimeGrid,
    limits: MetricsLimits,
    state: Option<MetricsState>,
    /// Whether spans are told apart: for exemplars, or to look at a share of them.
    needs_ids: bool,
    /// Chunks that were folded in.
    chunks: Vec<Chunk>,
    inspected: Inspected,
    tenant: TenantId,
    snapshot: Arc<Snapshot>,
    /// What profiles know of spans, once it has been read.
    profiles: Option<Arc<ProfileFields>>,
}

/// Rows of segments that are folded in at once, about: enough work for several cores.
const FOLDED_ROWS: u64 = 1 << 20;
/// How long a partial result is waited for, after the first.
const PART_INTERVAL: Duration = Duration::from_millis(300);

impl Engine {
    /// Starts a metrics query that gives its series as far as they are known, again and again.
    pub fn start_metrics(
        &self,
        tenant: &TenantId,
        program: &Arc<Program>,
        grid: TimeGrid,
        (from, until): (i64, i64),
        limits: MetricsLimits,
    ) -> Result<MetricsRun> {
        let metrics = program.metrics().ok_or_else(|| {
            QueryError::Invalid("this is a search; a metrics query ends in rate() or the like".to_owned())
        })?;
        let snapshot = self.snapshot();
        let (segments, slices) = if program.needs().whole_trace {
            let segments = overlapping(&snapshot, tenant, reach_back(from), reach_on(until));
            let slices = slices(&segments);
            (segments, Some(slices))
        } else {
            (overlapping(&snapshot, tenant, from, until), None)
        };
        let steps = slices.as_ref().map_or(segments.len(), Vec::len) as u32;
        Ok(MetricsRun {
            engine: self.clone(),
            program: Arc::clone(program),
            range: (from, until),
            segments,
            slices,
            next: 0,
            grid,
            limits,
            needs_ids: limits.exemplars > 0 || program.hints().sample.is_some(),
            chunks: Vec::new(),
            state: Some(metrics.start(grid, limits)),
            inspected: Inspected { steps, ..Inspected::default() },
            tenant: tenant.clone(),
            snapshot,
            profiles: None,
        })
    }
}

impl MetricsRun {
    /// The series as far as they are known; none when all has been given. Readers put parts together point by point,
    /// and a point that a later part lacks stays: what may turn out otherwise is given at the end alone.
    pub async fn next_part(&mut self) -> Result<Option<MetricsAnswer>> {
        if self.state.is_none() {
            return Ok(None);
        }
        let is_first = self.next == 0;
        let started = Instant::now();
        while self.step().await? {
            if is_first || started.elapsed() > PART_INTERVAL {
                return Ok(Some(self.so_far()));
            }
        }
        Ok(Some(self.finish().await?))
    }

    /// The series when all is done, without parts before.
    pub async fn into_answer(mut self) -> Result<MetricsAnswer> {
        while self.step().await? {}
        self.finish().await
    }

    /// What is known of the series, without exemplars: their values grow too, and others may be chosen in the end.
    fn so_far(&self) -> MetricsAnswer {
        let series = match (&self.state, self.program.metrics()) {
            (Some(state), Some(metrics)) if !metrics.takes_back() => metrics.finish(state.clone()),
            _ => Vec::new(),
        };
        let series = series.into_iter().map(|series| Series { exemplars: Vec::new(), ..series });
        let (series, exactness) = (series.collect(), self.exactness());
        MetricsAnswer { series, inspected: self.inspected, exactness, notes: Vec::new() }
    }

    fn exactness(&self) -> Exactness {
        self.engine.exactness_of_search(&self.tenant, self.range, self.inspected.spans, self.profiles.as_deref())
    }

    async fn finish(&mut self) -> Result<MetricsAnswer> {
        let state = self.state.take();
        let (Some(state), Some(metrics)) = (state, self.program.metrics()) else { return Ok(MetricsAnswer::default()) };
        let notes = state.notes();
        let mut series = metrics.finish(state);
        if !self.chunks.is_empty() && !self.needs_trace_ids() {
            name_traces(&self.engine, &self.chunks, &mut series).await?;
        }
        Ok(MetricsAnswer { series, inspected: self.inspected, exactness: self.exactness(), notes })
    }

    /// Whether the trace of every span is asked for, and not only that of exemplars.
    fn needs_trace_ids(&self) -> bool {
        let is_field = self.program.fields().iter().any(|(_, field)| columns_of_field(field).contains(&"trace_id"));
        is_field || self.program.hints().sample.is_some()
    }

    /// Folds the next piece in. Says whether there are more.
    async fn step(&mut self) -> Result<bool> {
        let at = self.next;
        if at == 0 {
            let fields = self.program.fields();
            self.profiles = self.engine.profile_fields(&self.tenant, &self.snapshot, fields, self.range).await?;
        }
        match &self.slices {
            Some(slices) => {
                self.next += 1;
                if let Some(slice) = slices.get(at) {
                    self.fold_slice(*slice).await?;
                }
            }
            None if self.program.reads_every_attribute() => {
                self.next += 1;
                if let Some(segment) = self.segments.get(at).cloned() {
                    self.fold_segment(&segment).await?;
                }
            }
            None => {
                // The first segment alone, so that a stream has something to show at once.
                let most_rows = if at == 0 { 1 } else { FOLDED_ROWS };
                let mut rows = 0;
                while rows < most_rows
                    && let Some(segment) = self.segments.get(self.next)
                {
                    rows += segment.rows;
                    self.next += 1;
                }
                let group = self.segments[at.min(self.next)..self.next].to_vec();
                self.fold_chunks(&group).await?;
            }
        }
        self.inspected.steps_done = self.inspected.steps.min(self.next as u32);
        Ok(self.next < self.inspected.steps as usize)
    }

    /// Folds whole columns of several segments in, on all cores: each has a state of its own, and they are merged.
    async fn fold_chunks(&mut self, segments: &[Arc<Segment>]) -> Result<()> {
        let first = self.chunks.len();
        for segment in segments {
            self.inspected.bytes += segment.bytes();
            self.chunks.extend(self.engine.lake().reader().chunks(segment).await?);
        }
        let fold = Arc::new(ChunkFold::new(FoldOptions {
            engine: self.engine.clone(),
            program: Arc::clone(&self.program),
            profiles: self.profiles.clone(),
            range: self.range,
            grid: self.grid,
            limits: self.limits,
            with_span_ids: self.needs_ids,
            with_trace_ids: self.needs_trace_ids(),
        }));
        let Some(state) = &mut self.state else { return Ok(()) };
        let mut kept: Vec<Arc<BoundSpans>> = Vec::new();
        let inspected = &mut self.inspected;
        let load = |(number, chunk): (usize, &Chunk)| {
            let (fold, chunk) = (Arc::clone(&fold), chunk.clone());
            single(async move { fold.load(&chunk, number).await })
        };
        let jobs = self.chunks.iter().enumerate().skip(first).map(load).collect();
        side_by_side(jobs, &mut |loaded: LoadedChunk| {
            inspected.spans += loaded.seen;
            kept.extend(loaded.kept.map(Arc::new));
            loaded.folded.map_or(Ok(()), |folded| state.merge(&folded).map_err(|error| limit_of(&error)))
        })
        .await?;
        let jobs = shares(&kept, cores()).into_iter().map(|pieces| {
            let fold = Arc::clone(&fold);
            single(async move { fold.fold(&pieces).await })
        });
        side_by_side(jobs.collect(), &mut |folded: MetricsState| state.merge(&folded).map_err(|error| limit_of(&error)))
            .await
    }

    async fn fold_slice(&mut self, slice: Slice) -> Result<()> {
        let (Some(metrics), Some(state)) = (self.program.metrics(), &mut self.state) else { return Ok(()) };
        let (fields, options) = (self.program.fields(), options_for(&self.program, &CORE_COLUMNS));
        let gathered = gather_with(self.engine.lake(), &self.segments, slice, fields, &options).await?;
        let Some(mut gathered) = gathered else { return Ok(()) };
        gathered.spans = gathered.spans.with_profiles(self.profiles.as_ref());
        for rows in std::mem::take(&mut gathered.traces) {
            gathered.spans.show(rows);
            self.inspected.traces += 1;
            self.inspected.spans += gathered.spans.len() as u64;
            metrics.observe_trace(state, &self.program.view(&gathered.spans)).map_err(|error| limit_of(&error))?;
        }
        self.inspected.bytes = self.segments.iter().map(|segment| segment.bytes()).sum();
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn fold_segment(&mut self, segment: &Arc<Segment>) -> Result<()> {
        let (Some(metrics), Some(state)) = (self.program.metrics(), &mut self.state) else { return Ok(()) };
        self.inspected.bytes += segment.bytes();
        let others: &[&str] = if self.needs_ids { &["start_time", "trace_id", "span_id"] } else { &["start_time"] };
        let options = options_for(&self.program, others).within("start_time", self.range.0, self.range.1);
        let mut stream = self.engine.lake().reader().stream(segment, options).await?;
        while let Some(batch) = stream.try_next().await? {
            let spans = BoundSpans::bind(batch, self.program.fields())?.with_profiles(self.profiles.as_ref());
            self.inspected.spans += spans.len() as u64;
            metrics
                .observe_batch(state, &TraceView::of_batch(&spans), 0..spans.len())
                .map_err(|error| limit_of(&error))?;
            // Whoever asked may have left meanwhile.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// How to read what a program asks for, besides `others`.
fn options_for(program: &Program, others: &[&str]) -> ReadOptions {
    let mut others = others.to_vec();
    if program.hints().extrapolate {
        others.push("trace_state");
    }
    if program.reads_every_attribute() {
        others.extend(["attributes", "attributes_json", "resource"]);
        return ReadOptions::columns(&scan_columns(program.fields(), &others)).with_prefix(ATTRIBUTE_PREFIX);
    }
    ReadOptions::columns(&scan_columns(program.fields(), &others))
}

pub(super) fn limit_of(error: &MetricsError) -> QueryError {
    QueryError::Limit(error.to_string())
}
