//! Folding chunks of spans into metrics: as they are decoded where they are not kept, evenly over all cores where they are.
//!
//! Which spans become exemplars follows from their own ids. Their traces are asked for only in the end, by where they are
//! stored: decoding the ids of all traces would cost as much as all the rest.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::HashMap;
use hotspan_lake::arrays;
use hotspan_lake::segment::{Chunk, RowRanges};
use hotspan_model::TraceId;
use hotspan_traceql::{MetricsLimits, MetricsState, Program, Series, SpanCondition, TimeGrid, TraceView};

use super::binding::BoundSpans;
use super::column_masks::TriedTexts;
use super::metrics::limit_of;
use super::profile_fields::ProfileFields;
use super::query_columns::scan_columns;
use super::scan_filter::ScanFilter;
use crate::Engine;
use crate::error::{QueryError, Result};
use crate::side_by_side::Job;

/// What is folded, and how.
pub(super) struct FoldOptions {
    pub(super) engine: Engine,
    pub(super) program: Arc<Program>,
    pub(super) profiles: Option<Arc<ProfileFields>>,
    pub(super) range: (i64, i64),
    pub(super) grid: TimeGrid,
    pub(super) limits: MetricsLimits,
    pub(super) with_span_ids: bool,
    pub(super) with_trace_ids: bool,
}

/// What every core does with its chunks.
pub(super) struct ChunkFold {
    options: FoldOptions,
    /// Rules out spans that no part of the query looks at.
    mask: ScanFilter,
    columns: Vec<String>,
}

/// What became of a chunk.
pub(super) struct LoadedChunk {
    /// Its spans, if they are kept: they may be shared out.
    pub(super) kept: Option<BoundSpans>,
    /// Or what they were folded into.
    pub(super) folded: Option<MetricsState>,
    /// How many spans were looked at.
    pub(super) seen: u64,
}

impl ChunkFold {
    pub(super) fn new(options: FoldOptions) -> Self {
        let program = &options.program;
        // A span that counts satisfies all that is necessary, since each span is judged alone.
        let necessary = program.prefilter().necessary().into_iter().next();
        let necessary = necessary.map_or(SpanCondition::True, |needed| needed.condition);
        let mask = ScanFilter::of(program.fields(), &necessary);
        let mut others = vec!["start_time"];
        if options.with_span_ids {
            others.push("span_id");
        }
        if options.with_trace_ids {
            others.push("trace_id");
        }
        if program.hints().extrapolate {
            others.push("trace_state");
        }
        let mut columns = scan_columns(program.fields(), &others);
        columns.extend(mask.columns());
        columns.sort_unstable();
        columns.dedup();
        Self { options, mask, columns }
    }

    /// Reads a chunk, and folds it where it is not kept.
    pub(super) async fn load(&self, chunk: &Chunk, number: usize) -> Result<LoadedChunk> {
        let mut loaded = LoadedChunk { kept: None, folded: None, seen: 0 };
        let mut memory = TriedTexts::default();
        let mut parts = self.options.engine.lake().reader().scan(chunk, &self.columns).await?;
        while let Some(part) = parts.try_next().await? {
            let (first, rows) = (loaded.seen as usize, part.num_rows());
            loaded.seen += rows as u64;
            let place = Place { chunk: number as u32, row: first as u32 };
            let mask = self.mask.mask(&part, &mut memory);
            let Some(spans) = self.bind(chunk, part, mask, place)? else {
                continue;
            };
            if rows == chunk.rows().len() {
                loaded.kept = Some(spans);
                break;
            }
            let state = match &mut loaded.folded {
                Some(state) => state,
                empty => empty.insert(self.start()?),
            };
            let count = spans.len();
            self.observe(state, &spans, 0..count)?;
            // Whoever asked may have left meanwhile.
            tokio::task::yield_now().await;
        }
        Ok(loaded)
    }

    /// The spans that may count, if there are any.
    fn bind(
        &self,
        chunk: &Chunk,
        batch: RecordBatch,
        mut mask: BooleanBuffer,
        place: Place,
    ) -> Result<Option<BoundSpans>> {
        let (from, until) = self.options.range;
        if chunk.segment().min_time < from || chunk.segment().max_time >= until {
            let starts = arrays::times(&batch, "start_time")?.values().clone();
            let in_time = |row: usize| starts[row] >= from && starts[row] < until;
            mask = &mask & &BooleanBuffer::collect_bool(starts.len(), in_time);
        }
        let kept = mask.count_set_bits();
        if kept == 0 {
            return Ok(None);
        }
        let is_all = kept == batch.num_rows();
        let spans = BoundSpans::bind(batch, self.options.program.fields())?;
        let mut spans = spans.with_profiles(self.options.profiles.as_ref()).at(place);
        if !is_all {
            spans.show(mask.set_indices().map(|row| row as u32).collect());
        }
        Ok(Some(spans))
    }

    /// Folds pieces into a state of their own.
    pub(super) async fn fold(&self, pieces: &[Piece]) -> Result<MetricsState> {
        let mut state = self.start()?;
        for (spans, rows) in pieces {
            for first in rows.clone().step_by(YIELD_ROWS) {
                self.observe(&mut state, spans, first..(first + YIELD_ROWS).min(rows.end))?;
                // Whoever asked may have left meanwhile.
                tokio::task::yield_now().await;
            }
        }
        Ok(state)
    }

    fn start(&self) -> Result<MetricsState> {
        let FoldOptions { program, grid, limits, .. } = &self.options;
        let metrics = program.metrics().ok_or_else(|| QueryError::Invalid("this is a search".to_owned()))?;
        Ok(metrics.start(*grid, *limits))
    }

    fn observe(&self, state: &mut MetricsState, spans: &BoundSpans, rows: Range<usize>) -> Result<()> {
        let Some(metrics) = self.options.program.metrics() else { return Ok(()) };
        metrics.observe_batch(state, &TraceView::of_batch(spans), rows).map_err(|error| limit_of(&error))
    }
}

/// Where spans are stored: the number of their chunk, and the row of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    chunk: u32,
    row: u32,
}

impl Place {
    /// The place of a row as a trace id, to stand for that of its span until it is known.
    pub(super) fn as_trace_id(self, row: usize) -> TraceId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.chunk.to_be_bytes());
        // Chunks have far fewer than four billion rows.
        id[4..8].copy_from_slice(&(self.row + row as u32).to_be_bytes());
        TraceId(id)
    }

    fn of_trace_id(TraceId(id): TraceId) -> Self {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        Self { chunk: number(&id[..4]), row: number(&id[4..8]) }
    }
}

/// Puts the traces of exemplars where their places stand.
pub(super) async fn name_traces(engine: &Engine, chunks: &[Chunk], series: &mut [Series]) -> Result<()> {
    let mut rows: HashMap<u32, Vec<u32>> = HashMap::new();
    for exemplar in series.iter().flat_map(|series| &series.exemplars) {
        let place = Place::of_trace_id(exemplar.trace_id);
        rows.entry(place.chunk).or_default().push(place.row);
    }
    let mut traces: HashMap<Place, TraceId> = HashMap::new();
    for (number, mut rows) in rows {
        let Some(chunk) = chunks.get(number as usize) else { continue };
        rows.sort_unstable();
        rows.dedup();
        let row_of = |row: &u32| chunk.rows().start + *row as usize;
        let ranges: RowRanges = rows.iter().map(|row| row_of(row)..row_of(row) + 1).collect();
        let mut places = rows.iter().map(|row| Place { chunk: number, row: *row });
        for batch in engine.lake().reader().rows(chunk.segment(), &ranges, &["trace_id"]).await? {
            let ids = arrays::ids(&batch, "trace_id")?;
            let known = (0..batch.num_rows()).map(|row| TraceId(arrays::id_at(ids, row)));
            traces.extend(places.by_ref().zip(known));
        }
    }
    for exemplar in series.iter_mut().flat_map(|series| &mut series.exemplars) {
        if let Some(trace_id) = traces.get(&Place::of_trace_id(exemplar.trace_id)) {
            exemplar.trace_id = *trace_id;
        }
    }
    Ok(())
}

/// Some spans of a chunk.
type Piece = (Arc<BoundSpans>, Range<usize>);

/// Cuts spans into at most so many shares, each with about as many spans as the others.
pub(super) fn shares(all: &[Arc<BoundSpans>], most: usize) -> Vec<Vec<Piece>> {
    let total: usize = all.iter().map(|spans| spans.len()).sum();
    let size = total.div_ceil(most.max(1)).max(YIELD_ROWS / 4);
    let mut shares: Vec<Vec<Piece>> = Vec::new();
    let mut room = 0;
    for spans in all {
        let mut first = 0;
        while first < spans.len() {
            if room == 0 {
                shares.push(Vec::new());
                room = size;
            }
            let end = (first + room).min(spans.len());
            if let Some(share) = shares.last_mut() {
                share.push((Arc::clone(spans), first..end));
            }
            room -= end - first;
            first = end;
        }
    }
    shares
}

/// A job that gives one thing.
pub(super) fn single<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Job<T> {
    async move { Ok(futures::stream::once(work).boxed()) }.boxed()
}

/// Rows after which others may use the thread.
const YIELD_ROWS: usize = 64 << 10;
