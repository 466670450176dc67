//! Scanning chunks of spans: which traces have a span that satisfies a condition, and when it started.

use std::sync::Arc;

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hotspan_lake::segment::{Chunk, RowRanges};
use hotspan_lake::{Segment, arrays};
use hotspan_model::TraceId;
use hotspan_traceql::{NeededSpans, Program, SpanCondition, SpanFilter, TraceView};

use super::binding::BoundSpans;
use super::column_masks::TriedTexts;
use super::profile_fields::ProfileFields;
use super::query_columns::scan_columns;
use super::scan_filter::ScanFilter;
use crate::Engine;
use crate::error::Result;
use crate::side_by_side::{Job, side_by_side};

/// A condition on single spans, ready to be looked for in many chunks.
#[derive(Debug)]
pub(super) struct SpanScan {
    pub(super) engine: Engine,
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
    Necessary(NeededSpans),
}

/// The spans of one trace in a chunk that satisfy the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) trace_id: TraceId,
    /// Start of the earliest of them.
    pub(super) start: i64,
    /// How many they are, each as often as it is stored.
    pub(super) spans: usize,
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
            Wanted::Necessary(needed) => ScanFilter::of(fields, &needed.condition),
        };
        Self { engine: engine.clone(), program: Arc::clone(program), profiles: profiles.cloned(), wanted, mask }
    }

    /// Whether each of the spans that are looked for makes its trace match.
    pub(super) fn finds_matches(&self) -> bool {
        matches!(self.wanted, Wanted::Matches)
    }

    /// How many of the spans a trace has at least, if it matches.
    pub(super) fn least(&self) -> usize {
        match &self.wanted {
            Wanted::Matches => 1,
            Wanted::Necessary(needed) => needed.least,
        }
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
        let (rows, spans) = self.masked_rows(chunk).await?;
        let timed = self.timed_traces(chunk, &rows, range).await?;
        let rows = self.satisfying(chunk, rows, &timed.starts, range, least).await?;
        let mut hits = timed.group(&rows);
        match self.wanted {
            Wanted::Matches => {}
            Wanted::Necessary(_) if range.holds_all_of(chunk.segment()) => {}
            // Where every span will do, those in time speak for themselves.
            Wanted::Necessary(NeededSpans { condition: SpanCondition::True, least: 1 }) => {
                hits.retain(|(_, row)| timed.has_neighbour_in(range, *row));
            }
            Wanted::Necessary(_) => hits.iter_mut().for_each(|(hit, row)| {
                hit.is_in_time = timed.has_neighbour_in(range, *row);
            }),
        }
        Ok(ChunkHits { hits: hits.into_iter().map(|(hit, _)| hit).collect(), spans })
    }

    /// The rows of a chunk that the mask lets through, and how many it was tried on.
    pub(super) async fn masked_rows(&self, chunk: &Chunk) -> Result<(Vec<u32>, u64)> {
        let mut rows: Vec<u32> = Vec::new();
        let mut scanned = 0;
        let mut memory = TriedTexts::default();
        let mut parts = self.engine.lake().reader().scan(chunk, &self.mask.columns()).await?;
        while let Some(part) = parts.try_next().await? {
            rows.extend(self.mask.mask(&part, &mut memory).set_indices().map(|row| (scanned + row) as u32));
            scanned += part.num_rows();
        }
        Ok((rows, scanned as u64))
    }

    /// Those of the rows that are in time and satisfy the condition.
    pub(super) async fn satisfying(
        &self,
        chunk: &Chunk,
        mut rows: Vec<u32>,
        starts: &Starts,
        range: TimeRange,
        least: i64,
    ) -> Result<Vec<u32>> {
        if matches!(self.wanted, Wanted::Matches) && !(range.holds_all_of(chunk.segment()) && least == i64::MIN) {
            let in_time = TimeRange { from: range.from.max(least), until: range.until };
            rows.retain(|row| in_time.holds(starts.of(*row)));
        }
        if self.is_exact() { Ok(rows) } else { self.evaluate(chunk, &rows).await }
    }

    /// Traces and starts of the rows that a mask lets through: where only they are looked at, and are few, no others are
    /// decoded.
    async fn timed_traces(&self, chunk: &Chunk, rows: &[u32], range: TimeRange) -> Result<TimedTraces> {
        let asks_neighbours = matches!(self.wanted, Wanted::Necessary(_)) && !range.holds_all_of(chunk.segment());
        let reader = self.engine.lake().reader();
        if asks_neighbours || rows.len() > chunk.rows().len() / SPARSE {
            return TimedTraces::of(&reader.columns(chunk, &TRACE_AND_START).await?, None);
        }
        let batches = reader.rows(chunk.segment(), &ranges_of(rows, chunk.rows().start), &TRACE_AND_START).await?;
        // A chunk is one row group, so that its rows come as one batch, or none.
        match batches.first() {
            Some(batch) => TimedTraces::of(batch, Some(rows.to_vec())),
            None => Ok(TimedTraces::default()),
        }
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
        let columns = scan_columns(self.program.fields(), &TRACE_AND_START);
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
                        (Wanted::Necessary(needed), _) => needed.condition.holds(&spans, span),
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

/// What says whose a span is and when it started.
const TRACE_AND_START: [&str; 2] = ["trace_id", "start_time"];
/// One row in so many and fewer are picked: the reader then decides whether all pages are worth decoding.
pub(super) const SPARSE: usize = 16;
/// Rows that are evaluated at once: what bounds the memory of columns that are not kept.
const EVALUATED_ROWS: usize = 64 << 10;

/// Rows as ranges, counted from the start of the segment.
pub(super) fn ranges_of(rows: &[u32], first: usize) -> RowRanges {
    let mut ranges = RowRanges::new();
    for row in rows.iter().map(|row| *row as usize + first) {
        match ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}

/// Whose the rows of a chunk are, and when they started: of all rows, or of some.
#[derive(Debug)]
struct TimedTraces {
    traces: FixedSizeBinaryArray,
    starts: Starts,
}

/// When rows of a chunk started: all of them, or some.
#[derive(Debug)]
pub(super) struct Starts {
    times: ScalarBuffer<i64>,
    /// The rows that are known, in ascending order, if not all are.
    rows: Option<Vec<u32>>,
}

impl Default for TimedTraces {
    fn default() -> Self {
        Self { traces: FixedSizeBinaryArray::new_null(16, 0), starts: Starts::default() }
    }
}

impl Default for Starts {
    fn default() -> Self {
        Self { times: Vec::new().into(), rows: Some(Vec::new()) }
    }
}

impl Starts {
    pub(super) fn new(batch: &RecordBatch, rows: Option<Vec<u32>>) -> Result<Self> {
        Ok(Self { times: arrays::times(batch, "start_time")?.values().clone(), rows })
    }

    /// Where a row of the chunk stands in the arrays. It must be one that is known.
    fn place(&self, row: u32) -> usize {
        match &self.rows {
            Some(rows) => rows.partition_point(|known| *known < row),
            None => row as usize,
        }
    }

    pub(super) fn of(&self, row: u32) -> i64 {
        self.times[self.place(row)]
    }
}

impl TimedTraces {
    fn of(batch: &RecordBatch, rows: Option<Vec<u32>>) -> Result<Self> {
        Ok(Self { traces: arrays::ids(batch, "trace_id")?.clone(), starts: Starts::new(batch, rows)? })
    }

    /// A hit for each run of rows of one trace, and where the last of its rows stands.
    fn group(&self, rows: &[u32]) -> Vec<(Hit, usize)> {
        let mut hits: Vec<(Hit, usize)> = Vec::new();
        for place in rows.iter().map(|row| self.starts.place(*row)) {
            match hits.last_mut() {
                Some((hit, last)) if self.traces.value(*last) == self.traces.value(place) => {
                    hit.start = hit.start.min(self.starts.times[place]);
                    hit.spans += 1;
                    *last = place;
                }
                _ => {
                    let trace_id = TraceId(arrays::id_at(&self.traces, place));
                    hits.push((Hit { trace_id, start: self.starts.times[place], spans: 1, is_in_time: true }, place));
                }
            }
        }
        hits
    }

    /// Whether one of the rows around a row that belong to the same trace and lie next to it is in time. All must be known.
    fn has_neighbour_in(&self, range: TimeRange, place: usize) -> bool {
        let id = self.traces.value(place);
        let is_same = |place: &usize| self.traces.value(*place) == id;
        let before = (0..place).rev().take_while(is_same);
        (place..self.traces.len()).take_while(is_same).chain(before).any(|place| range.holds(self.starts.times[place]))
    }
}

/// The traces that have a span in a time, in a chunk.
pub(super) async fn traces_in_time(engine: &Engine, chunk: &Chunk, range: TimeRange) -> Result<Vec<TraceId>> {
    let batch = engine.lake().reader().columns(chunk, &TRACE_AND_START).await?;
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
