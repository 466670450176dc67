//! The latest spans that match: found by when they started, and only then asked for their traces. Matches lie all over a file,
//! so that the trace of each is a page to decode, and a search for the latest needs those of few.

use std::sync::Arc;

use hashbrown::HashSet;
use hotspan_lake::segment::Chunk;
use hotspan_lake::{Segment, arrays};
use hotspan_model::TraceId;

use super::chunk_fold::single;
use super::chunk_scan::{Hit, SPARSE, SpanScan, Starts, TimeRange, ranges_of};
use crate::error::Result;
use crate::side_by_side::{Job, side_by_side};

/// The latest spans that match, by trace.
#[derive(Debug, Default)]
pub(super) struct LatestMatches {
    pub(super) hits: Vec<Hit>,
    /// How many spans were looked at.
    pub(super) spans: u64,
    /// Start of the latest that were left out.
    pub(super) left_out: Option<i64>,
}

/// The spans of a chunk that match.
#[derive(Debug)]
struct Sighting {
    chunk: Chunk,
    rows: Vec<u32>,
    starts: Vec<i64>,
    spans: u64,
}

/// A span that matches: when it started, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    start: i64,
    sighting: usize,
    row: u32,
}

impl SpanScan {
    /// The latest matches in segments that start in a time and no earlier than `least`: of so many traces, or of all.
    pub(super) async fn latest_matches(
        self: &Arc<Self>,
        segments: &[Arc<Segment>],
        range: TimeRange,
        least: i64,
        traces: usize,
    ) -> Result<LatestMatches> {
        let mut jobs: Vec<Job<Sighting>> = Vec::new();
        for segment in segments {
            for chunk in self.engine.lake().reader().chunks(segment).await? {
                let scan = Arc::clone(self);
                jobs.push(single(async move { scan.sight(chunk, range, least).await }));
            }
        }
        let mut sightings: Vec<Sighting> = Vec::new();
        side_by_side(jobs, &mut |sighting| {
            sightings.push(sighting);
            Ok(())
        })
        .await?;
        let in_sighting = |(number, sighting): (usize, &Sighting)| {
            let places = sighting.rows.iter().zip(&sighting.starts);
            places.map(|(row, start)| Match { start: *start, sighting: number, row: *row }).collect::<Vec<_>>()
        };
        let mut waiting: Vec<Match> = sightings.iter().enumerate().flat_map(in_sighting).collect();
        let mut found =
            LatestMatches { spans: sightings.iter().map(|one| one.spans).sum(), ..LatestMatches::default() };
        let mut known: HashSet<TraceId> = HashSet::new();
        let mut most = traces;
        while known.len() < traces && !waiting.is_empty() {
            let rest = waiting.len().saturating_sub(most);
            if rest > 0 {
                waiting.select_nth_unstable(rest);
            }
            let hits = self.traces_of(&sightings, waiting.split_off(rest)).await?;
            known.extend(hits.iter().map(|hit| hit.trace_id));
            found.hits.extend(hits);
            // Some traces have many spans that match.
            most = most.saturating_mul(4);
        }
        found.left_out = waiting.iter().map(|one| one.start).max();
        Ok(found)
    }

    async fn sight(&self, chunk: Chunk, range: TimeRange, least: i64) -> Result<Sighting> {
        let (rows, spans) = self.masked_rows(&chunk).await?;
        let reader = self.engine.lake().reader();
        let starts = if rows.len() > chunk.rows().len() / SPARSE {
            Starts::new(&reader.columns(&chunk, &["start_time"]).await?, None)?
        } else {
            let ranges = ranges_of(&rows, chunk.rows().start);
            // A chunk is one row group, so that its rows come as one batch, or none.
            match reader.rows(chunk.segment(), &ranges, &["start_time"]).await?.first() {
                Some(batch) => Starts::new(batch, Some(rows.clone()))?,
                None => Starts::default(),
            }
        };
        let rows = self.satisfying(&chunk, rows, &starts, range, least).await?;
        let starts = rows.iter().map(|row| starts.of(*row)).collect();
        Ok(Sighting { chunk, rows, starts, spans })
    }

    /// The traces of some matches.
    async fn traces_of(&self, sightings: &[Sighting], mut matches: Vec<Match>) -> Result<Vec<Hit>> {
        matches.sort_unstable_by_key(|one| (one.sighting, one.row));
        let mut jobs: Vec<Job<Vec<Hit>>> = Vec::new();
        for of_chunk in matches.chunk_by(|left, right| left.sighting == right.sighting) {
            let (chunk, of_chunk) = (sightings[of_chunk[0].sighting].chunk.clone(), of_chunk.to_vec());
            let lake = Arc::clone(self.engine.lake());
            jobs.push(single(async move {
                let rows: Vec<u32> = of_chunk.iter().map(|one| one.row).collect();
                let ranges = ranges_of(&rows, chunk.rows().start);
                let mut hits: Vec<Hit> = Vec::new();
                let mut starts = of_chunk.iter().map(|one| one.start);
                for batch in lake.reader().rows(chunk.segment(), &ranges, &["trace_id"]).await? {
                    let ids = arrays::ids(&batch, "trace_id")?;
                    for (row, start) in (0..batch.num_rows()).zip(starts.by_ref()) {
                        let trace_id = TraceId(arrays::id_at(ids, row));
                        match hits.last_mut().filter(|hit| hit.trace_id == trace_id) {
                            Some(hit) => {
                                hit.start = hit.start.min(start);
                                hit.spans += 1;
                            }
                            None => hits.push(Hit { trace_id, start, spans: 1, is_in_time: true }),
                        }
                    }
                }
                Ok(hits)
            }));
        }
        let mut found = Vec::new();
        side_by_side(jobs, &mut |hits| {
            found.extend(hits);
            Ok(())
        })
        .await?;
        Ok(found)
    }
}
