//! Scanning chunks of spans: which traces have a span that satisfies a condition, and when it started.

use std::sync::Arc;

use arrow::array::{Array, FixedSizeBinaryArray};
use arrow::buffer::BooleanBuffer;
use futures::{FutureExt, StreamExt};
use hotspan_lake::segment::{Chunk, RowRanges};
use hotspan_lake::{Segment, arrays};
use hotspan_model::TraceId;
use hotspan_traceql::{Program, SpanCondition, SpanFilter, TraceView};

use super::binding::{BoundSpans, scan_columns};
use super::profile_fields::ProfileFields;
use super::scan_filter::ScanFilter;
use crate::Engine;
use crate::error::Result;
use crate::side_by_side::{Job, side_by_side};

/// A condition on single spans, ready to be looked for in many chunks.
#[derive(Debug)]
pub(super) struct SpanScan {
    engine: Engine,
    program: Arc<Program>,
    profiles: Option<Arc<ProfileFields>>,
    wanted: Wanted,
    mask: ScanFilter,
}

/// What spans are looked for.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// Those that the whole of a search asks for.
    Matches,
    /// Those without which no trace can match.
    Necessary(SpanCondition),
}

/// The spans of one trace in a chunk that satisfy the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) trace_id: TraceId,
    /// Start of the earliest of them.
    pub(super) start: i64,
    /// Whether a span of the trace, satisfying or not, is in the time asked for, as far as the chunk can tell.
    pub(super) is_in_time: bool,
}

/// What a chunk holds of what is looked for.
#[derive(Debug, Clone, Default)]
pub(super) struct ChunkHits {
    pub(super) hits: Vec<Hit>,
    pub(super) spans: u64,
}

/// The time that spans may start in.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeRange {
    pub(super) from: i64,
    pub(super) until: i64,
}

impl TimeRange {
    fn holds(self, time: i64) -> bool {
        (self.from..self.until).contains(&time)
    }

    fn holds_all_of(self, segment: &Segment) -> bool {
        segment.min_time >= self.from && segment.max_time < self.until
    }
}

impl SpanScan {
    pub(super) fn new(
        engine: &Engine,
        program: &Arc<Program>,
        profiles: Option<&Arc<ProfileFields>>,
        wanted: Wanted,
    ) -> Self {
        let fields = program.fields();
        let mask = match &wanted {
            Wanted::Matches => {
                let filter = program.search().and_then(|search| search.span_filter());
                filter.map_or_else(ScanFilter::default, |filter| ScanFilter::of(fields, filter.condition()))
            }
            Wanted::Necessary(condition) => ScanFilter::of(fields, condition),
        };
        Self { engine: engine.clone(), program: Arc::clone(program), profiles: profiles.cloned(), wanted, mask }
    }

    /// Scans segments on all cores and hands what each chunk holds to `each`. Matches must start in the time range, and
    /// no earlier than `least`; what is merely necessary may start whenever it likes.
    pub(super) async fn scan(
        self: &Arc<Self>,
        segments: &[Arc<Segment>],
        range: TimeRange,
        least: i64,
        each: &mut (dyn FnMut(ChunkHits) + Send + '_),
    ) -> Result<()> {
        let mut jobs: Vec<Job<ChunkHits>> = Vec::new();
        for segment in segments {
            for chunk in self.engine.lake().reader().chunks(segment).await? {
                let scan = Arc::clone(self);
                let work = async move { scan.hits(&chunk, range, least).await };
                jobs.push(async move { Ok(futures::stream::once(work).boxed()) }.boxed());
            }
        }
        side_by_side(jobs, &mut |hits| {
            each(hits);
            Ok(())
        })
        .await
    }

    async fn hits(&self, chunk: &Chunk, range: TimeRange, least: i64) -> Result<ChunkHits> {
        let mut columns = self.mask.columns();
        columns.extend(["trace_id".to_owned(), "start_time".to_owned()]);
        let batch = self.engine.lake().reader().columns(chunk, &columns).await?;
        let starts = arrays::times(&batch, "start_time")?.values().clone();
        let mut mask = self.mask.mask(&batch);
        if matches!(self.wanted, Wanted::Matches) && !(range.holds_all_of(chunk.segment()) && least == i64::MIN) {
            let from = range.from.max(least);
            let until = range.until;
            mask = &mask & &BooleanBuffer::collect_bool(starts.len(), |row| starts[row] >= from && starts[row] < until);
        }
        let mut rows: Vec<u32> = mask.set_indices().map(|row| row as u32).collect();
        let spans = batch.num_rows() as u64;
        if !self.is_exact() {
            rows = self.evaluate(chunk, &rows).await?;
        }
        let ids = arrays::ids(&batch, "trace_id")?;
        let mut hits = group(&rows, ids, &starts);
        match self.wanted {
            Wanted::Matches => {}
            Wanted::Necessary(_) if range.holds_all_of(chunk.segment()) => {}
            // Where every span will do, those in time speak for themselves.
            Wanted::Necessary(SpanCondition::True) => {
                hits.retain_mut(|(_, row)| neighbours(ids, *row).any(|row| range.holds(starts[row])));
            }
            Wanted::Necessary(_) => hits.iter_mut().for_each(|(hit, row)| {
                hit.is_in_time = neighbours(ids, *row).any(|row| range.holds(starts[row]));
            }),
        }
        Ok(ChunkHits { hits: hits.into_iter().map(|(hit, _)| hit).collect(), spans })
    }

    fn filter(&self) -> Option<&SpanFilter> {
        self.program.search().and_then(|search| search.span_filter())
    }

    /// Whether a row that passes the mask satisfies the condition.
    fn is_exact(&self) -> bool {
        let says_all = match self.wanted {
            Wanted::Matches => self.filter().is_some_and(SpanFilter::is_exact),
            Wanted::Necessary(_) => true,
        };
        says_all && self.mask.is_exact()
    }

    /// Those of some rows that satisfy the condition, which asks for more than masks can tell.
    async fn evaluate(&self, chunk: &Chunk, rows: &[u32]) -> Result<Vec<u32>> {
        let columns = scan_columns(self.program.fields(), &["trace_id", "start_time"]);
        let first = chunk.rows().start;
        let mut kept = Vec::new();
        for part in rows.chunks(EVALUATED_ROWS) {
            let ranges = ranges_of(part, first);
            let batches = self.engine.lake().reader().rows(chunk.segment(), &ranges, &columns).await?;
            let mut places = part.iter();
            for batch in batches {
                let count = batch.num_rows();
                let spans = BoundSpans::bind(batch, self.program.fields())?.with_profiles(self.profiles.as_ref());
                let view = TraceView::of_batch(&spans);
                for (span, place) in (0..count).zip(&mut places) {
                    let satisfies = match (&self.wanted, self.filter()) {
                        (Wanted::Matches, Some(filter)) => filter.matches(&view, span),
                        (Wanted::Matches, None) => true,
                        (Wanted::Necessary(condition), _) => condition.holds(&spans, span),
                    };
                    if satisfies {
                        kept.push(*place);
                    }
                }
            }
        }
        Ok(kept)
    }
}

/// Rows that are evaluated at once: what bounds the memory of columns that are not kept.
const EVALUATED_ROWS: usize = 64 << 10;

/// Rows as ranges, counted from the start of the segment.
fn ranges_of(rows: &[u32], first: usize) -> RowRanges {
    let mut ranges = RowRanges::new();
    for row in rows.iter().map(|row| *row as usize + first) {
        match ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}

/// A hit for each run of rows of one trace, and the last of its rows.
fn group(rows: &[u32], ids: &FixedSizeBinaryArray, starts: &[i64]) -> Vec<(Hit, usize)> {
    let mut hits: Vec<(Hit, usize)> = Vec::new();
    for row in rows.iter().map(|row| *row as usize) {
        match hits.last_mut() {
            Some((hit, last)) if ids.value(*last) == ids.value(row) => {
                hit.start = hit.start.min(starts[row]);
                *last = row;
            }
            _ => {
                let trace_id = TraceId(arrays::id_at(ids, row));
                hits.push((Hit { trace_id, start: starts[row], is_in_time: true }, row));
            }
        }
    }
    hits
}

/// The rows around a row that belong to the same trace and lie next to it.
fn neighbours(ids: &FixedSizeBinaryArray, row: usize) -> impl Iterator<Item = usize> + '_ {
    let id = ids.value(row);
    let is_same = move |row: &usize| ids.value(*row) == id;
    let before = (0..row).rev().take_while(is_same);
    (row..ids.len()).take_while(is_same).chain(before)
}

/// The traces that have a span in a time, in a chunk.
pub(super) async fn traces_in_time(engine: &Engine, chunk: &Chunk, range: TimeRange) -> Result<Vec<TraceId>> {
    let batch = engine.lake().reader().columns(chunk, &["trace_id", "start_time"]).await?;
    let ids = arrays::ids(&batch, "trace_id")?;
    let starts = arrays::times(&batch, "start_time")?.values();
    let mut found: Vec<TraceId> = Vec::new();
    for row in (0..batch.num_rows()).filter(|row| range.holds(starts[*row])) {
        if found.last().is_none_or(|last| last.0 != ids.value(row)) {
            found.push(TraceId(arrays::id_at(ids, row)));
        }
    }
    Ok(found)
}
