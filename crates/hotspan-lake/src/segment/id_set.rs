//! Bulk look-ups: the rows of a whole set of traces or spans, in one pass over a segment.
//!
//! The index says where the ids' runs start. Where they are sparse, exactly those rows are read; where they are dense,
//! reading on is cheaper than jumping, and every row is tried against the set. Either way a segment is cut into parts
//! that can be read side by side.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hashbrown::HashSet;
use hotspan_model::{SpanId, TraceId};
use xxhash_rust::xxh3::xxh3_64;

use super::id_index::IdKind;
use super::lookup::join;
use super::{ReadOptions, RowRanges, Segment, SegmentReader};
use crate::arrays;
use crate::error::Result;

/// Rows that one part covers: some row groups.
const PART_ROWS: usize = 1 << 20;
/// Rows read behind the start of a run before looking whether it goes on.
const FIRST_STRETCH: usize = 16;
/// With more than one run in this many rows, every row is read.
const DENSE: usize = 48;

/// Ids of one kind, to look rows up by; with [`IdSet::or`], of both kinds.
#[derive(Debug, Clone)]
pub struct IdSet {
    kind: IdKind,
    ids: HashSet<u128>,
    /// Hashes as the index has them, sorted.
    hashes: Vec<u64>,
    /// A bit for the last bytes of each id: most rows are ruled out without hashing.
    bits: Vec<u64>,
    mask: usize,
    /// Ids of the other kind: a row that holds one of them counts as well.
    other: Option<Box<IdSet>>,
}

impl IdSet {
    /// A set of traces.
    pub fn traces(ids: impl IntoIterator<Item = TraceId>) -> Self {
        Self::new(IdKind::Trace, ids.into_iter().map(|id| id.0.to_vec()))
    }

    /// A set of spans.
    pub fn spans(ids: impl IntoIterator<Item = SpanId>) -> Self {
        Self::new(IdKind::Span, ids.into_iter().map(|id| id.0.to_vec()))
    }

    fn new(kind: IdKind, given: impl Iterator<Item = Vec<u8>>) -> Self {
        let mut ids = HashSet::new();
        let mut hashes = Vec::new();
        for id in given {
            if ids.insert(number(&id)) {
                hashes.push(xxh3_64(&id));
            }
        }
        hashes.sort_unstable();
        let mask = (16 * ids.len()).next_power_of_two().max(1024) - 1;
        let mut bits = vec![0u64; (mask + 1) / 64];
        for id in &ids {
            let at = *id as usize & mask;
            bits[at / 64] |= 1 << (at % 64);
        }
        Self { kind, ids, hashes, bits, mask, other: None }
    }

    /// Rows that hold an id of the other set, which is of the other kind, count as well.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        debug_assert!(self.kind != other.kind && other.other.is_none(), "one set for each kind");
        if self.is_empty() {
            return other;
        }
        self.other = (!other.is_empty()).then(|| Box::new(other));
        self
    }

    /// The set of each kind.
    fn kinds(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.other.as_deref())
    }

    /// The columns that say whether a row counts.
    fn columns(&self) -> Vec<&'static str> {
        self.kinds().map(|set| set.kind.column()).collect()
    }

    /// What kind of ids they are, besides those of an [`IdSet::or`].
    pub fn kind(&self) -> IdKind {
        self.kind
    }

    /// How many ids there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The hashes of the ids, sorted.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Whether it holds an id, given as bytes.
    pub fn holds(&self, id: &[u8]) -> bool {
        let number = number(id);
        let at = number as usize & self.mask;
        self.bits[at / 64] & 1 << (at % 64) != 0 && self.ids.contains(&number)
    }

    fn matches(&self, batch: &RecordBatch) -> BooleanArray {
        let columns: Vec<_> =
            self.kinds().filter_map(|set| Some((set, arrays::ids(batch, set.kind.column()).ok()?))).collect();
        let is_in = |row| columns.iter().any(|(set, ids)| ids.is_valid(row) && set.holds(ids.value(row)));
        BooleanArray::new(BooleanBuffer::collect_bool(batch.num_rows(), is_in), None)
    }
}

/// An id as a number; its size is the same for all ids of a kind.
fn number(id: &[u8]) -> u128 {
    id.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// A part of a segment that may hold rows with ids of a set.
#[derive(Debug, Clone)]
pub struct IdPart {
    segment: Arc<Segment>,
    rows: Range<usize>,
    /// Where runs start, if they are few.
    starts: Option<Vec<u32>>,
}

impl SegmentReader {
    /// The parts of a segment that may hold rows with these ids; none if the index rules it out.
    pub async fn id_parts(&self, segment: &Arc<Segment>, ids: &IdSet) -> Result<Vec<IdPart>> {
        let rows = segment.rows as usize;
        let index = self.id_index(segment).await?.filter(|index| ids.kinds().all(|set| index.maps(set.kind)));
        let Some(index) = index else {
            let part = |first: usize| IdPart {
                segment: Arc::clone(segment),
                rows: first..(first + PART_ROWS).min(rows),
                starts: None,
            };
            return Ok((0..rows).step_by(PART_ROWS).map(part).collect());
        };
        let mut starts = Vec::new();
        for set in ids.kinds() {
            starts.extend(index.rows_of_all(self.store(), set.kind, &set.hashes).await?);
        }
        if ids.other.is_some() {
            starts.sort_unstable();
            starts.dedup();
        }
        let part = |(rows, starts)| IdPart { segment: Arc::clone(segment), rows, starts };
        Ok(cut(rows, &starts, PART_ROWS).into_iter().map(part).collect())
    }

    /// The rows of a part whose id is in the set, with the columns that the options ask for. The options may restrict
    /// the time; they must not have a predicate.
    pub async fn rows_in_part(
        &self,
        part: &IdPart,
        ids: &Arc<IdSet>,
        options: ReadOptions,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        match &part.starts {
            Some(starts) => {
                let rows = self.runs(part, ids, starts).await?;
                if rows.is_empty() {
                    return Ok(futures::stream::empty().boxed());
                }
                self.stream(&part.segment, options.rows(rows)).await
            }
            None => {
                let set = Arc::clone(ids);
                let options =
                    options.rows(vec![part.rows.clone()]).matching(&ids.columns(), move |batch| set.matches(batch));
                self.stream(&part.segment, options).await
            }
        }
    }

    /// The exact rows of runs that start at `starts`: the ids' own column is read along them until each run ends, or
    /// the part does. A run may be followed by another one that is in the set too: both are found once.
    async fn runs(&self, part: &IdPart, ids: &IdSet, starts: &[u32]) -> Result<RowRanges> {
        let limit = part.rows.end;
        let stretch = |start: usize, length: usize| start..start.saturating_add(length).min(limit);
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut pending = join(starts.iter().map(|start| stretch(*start as usize, FIRST_STRETCH)));
        let mut length = FIRST_STRETCH;
        while !pending.is_empty() {
            let options = ReadOptions::columns(&ids.columns()).rows(pending.clone());
            let batches: Vec<RecordBatch> = self.stream(&part.segment, options).await?.try_collect().await?;
            let mut matches = batches.iter().flat_map(|batch| {
                let matches = ids.matches(batch);
                (0..matches.len()).map(move |row| matches.value(row)).collect::<Vec<bool>>()
            });
            length *= 8;
            let mut longer: Vec<Range<usize>> = Vec::new();
            for range in pending {
                let mut run: Option<usize> = None;
                for row in range.clone() {
                    let is_in = matches.next().unwrap_or(false);
                    match (is_in, run) {
                        (true, None) => run = Some(row),
                        (false, Some(start)) => {
                            found.push(start..row);
                            run = None;
                        }
                        _ => {}
                    }
                }
                if let Some(start) = run {
                    found.push(start..range.end);
                    if range.end < limit {
                        longer.push(stretch(range.end, length));
                    }
                }
            }
            pending = join(longer.into_iter());
        }
        found.sort_unstable_by_key(|range| range.start);
        Ok(join(found.into_iter()))
    }
}

/// Cuts a segment into parts of about `part_rows` rows: those with many runs are to be read whole, others along their
/// runs, and those without any are left out. Parts do not overlap.
fn cut(rows: usize, starts: &[u32], part_rows: usize) -> Vec<(Range<usize>, Option<Vec<u32>>)> {
    let mut parts: Vec<(Range<usize>, Option<Vec<u32>>)> = Vec::new();
    for first in (0..rows).step_by(part_rows) {
        let range = first..(first + part_rows).min(rows);
        let from = starts.partition_point(|start| (*start as usize) < range.start);
        let until = starts.partition_point(|start| (*start as usize) < range.end);
        let inside = &starts[from..until];
        if inside.len() * DENSE > range.len() {
            parts.push((range, None));
            continue;
        }
        // The last run of a part that is read whole may go on behind it.
        let goes_on = parts.last().is_some_and(|(before, starts)| starts.is_none() && before.end == range.start);
        let goes_on = goes_on && inside.first() != Some(&(first as u32));
        let starts: Vec<u32> = goes_on.then_some(first as u32).into_iter().chain(inside.iter().copied()).collect();
        if let Some(first) = starts.first() {
            parts.push((*first as usize..range.end, Some(starts)));
        }
    }
    // A run is followed across the edge of its part, but not into what the next part reads itself.
    let mut next = rows;
    for (range, starts) in parts.iter_mut().rev() {
        if starts.is_some() {
            range.end = next;
        }
        next = range.start;
    }
    parts
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, FixedSizeBinaryArray};

    use super::*;

    /// Scenario: runs of any length, many and few, in parts of a hundred rows.
    /// Guarantee: every row of every run lies in exactly one part: read whole, or behind a start without a gap.
    #[test]
    fn parts_cover_every_run_once() {
        for seed in 0..200u32 {
            let mut random = seed;
            let mut next = |below: u32| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 8) % below
            };
            let spread = 1 + next(120);
            let mut rows = 0usize;
            let mut runs: Vec<Range<usize>> = Vec::new();
            while rows < 1500 {
                let start = rows + next(spread) as usize;
                let length = 1 + if next(9) == 0 { next(300) } else { next(4) } as usize;
                runs.push(start..start + length);
                rows = start + length;
            }
            let starts: Vec<u32> = runs.iter().map(|run| run.start as u32).collect();
            let parts = cut(rows + 3, &starts, 100);
            assert!(parts.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start), "{parts:?}");
            for row in runs.iter().flat_map(|run| run.clone().map(move |row| (run.start, row))) {
                let (run, row) = row;
                let reads = parts.iter().filter(|(range, starts)| match starts {
                    None => range.contains(&row),
                    // A run that a part before has begun is followed from that part's end.
                    Some(starts) => {
                        range.contains(&row)
                            && starts
                                .iter()
                                .any(|start| (*start as usize) >= run.min(range.start) && *start as usize <= row)
                    }
                });
                assert_eq!(reads.count(), 1, "row {row} of the run at {run}: {parts:?}");
            }
        }
    }

    /// Scenario: ids that share their last bytes, and ids of both kinds. Guarantee: only members are held.
    #[test]
    fn membership() {
        let set = IdSet::spans((0..1000u64).map(|number| SpanId((number << 32 | 7).to_be_bytes())));
        assert_eq!((set.len(), set.kind()), (1000, IdKind::Span));
        assert!(set.holds(&(999u64 << 32 | 7).to_be_bytes()));
        assert!(!set.holds(&(1000u64 << 32 | 7).to_be_bytes()));
        assert!(!set.holds(&8u64.to_be_bytes()));
        let traces = IdSet::traces([TraceId([3; 16]), TraceId([3; 16])]);
        assert_eq!((traces.len(), traces.is_empty()), (1, false));
        assert!(traces.holds(&[3; 16]) && !traces.holds(&[4; 16]));
        assert!(IdSet::traces([]).is_empty() && !IdSet::traces([]).holds(&[0; 16]));
    }

    /// Scenario: rows that name a trace and a span, one of them or none, tried against sets of one kind and of both.
    /// Guarantee: a row counts if it holds an id of either kind that is asked for.
    #[test]
    fn either_kind_counts() {
        let column = |ids: [Option<u8>; 5], width: usize| {
            let ids = ids.map(|id| id.map(|id| vec![id; width]));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids.into_iter(), width as i32).unwrap())
        };
        let traces = column([Some(1), Some(1), None, None, Some(2)], 16);
        let spans = column([Some(7), None, Some(7), None, Some(7)], 8);
        let batch = RecordBatch::try_from_iter([("trace_id", traces as ArrayRef), ("span_id", spans as ArrayRef)]);
        let batch = batch.unwrap();
        let matching = |ids: &IdSet| ids.matches(&batch).values().set_indices().collect::<Vec<_>>();
        let (traces, spans) = (IdSet::traces([TraceId([1; 16])]), IdSet::spans([SpanId([7; 8])]));
        assert_eq!(matching(&traces), [0, 1]);
        assert_eq!(matching(&spans), [0, 2, 4]);
        assert_eq!(matching(&traces.clone().or(spans)), [0, 1, 2, 4]);
        assert_eq!(matching(&traces.clone().or(IdSet::spans([]))), [0, 1]);
        assert_eq!(matching(&IdSet::spans([]).or(traces)), [0, 1]);
    }
}
