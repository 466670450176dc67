//! Judging traces: each with all its spans wherever they are (R3), but with no more columns than it takes to tell whether
//! it matches and where it stands. What is shown of a trace is read when it is given out.

use std::sync::Arc;

use arrow::array::RecordBatch;
use hotspan_lake::segment::RowRanges;
use hotspan_lake::{IdSet, Segment, Table};
use hotspan_model::TraceId;
use hotspan_traceql::{FieldTable, SpanSource, TraceFacts};

use super::binding::BoundSpans;
use super::chunk_fold::single;
use super::found::{found, matched};
use super::gather::{group_by_trace, join};
use super::order::Rank;
use super::query_columns::{columns_of, judged_columns};
use super::run::Scene;
use super::{FoundTrace, SearchOrder};
use crate::Engine;
use crate::error::Result;
use crate::side_by_side::{Job, side_by_side};

/// Spans that are judged at once, about: traces may be long, and only so many fit into memory (R5).
const JUDGED_SPANS: usize = 500_000;

impl Scene {
    /// Evaluates traces and keeps the places of those that match and are among the first. Where spans are judged one by one
    /// the traces must have one that matches, so that only their places are looked for.
    pub(super) async fn judge(&mut self, traces: impl IntoIterator<Item = TraceId>) -> Result<()> {
        let program = Arc::clone(&self.program);
        let is_known = program.search().is_some_and(|search| search.span_filter().is_some());
        // Without fields, nothing is bound but what every span has.
        let none = FieldTable::default();
        let fields = if is_known { &none } else { program.fields() };
        let columns = match is_known {
            true => {
                [&["trace_id", "start_time"], self.order_columns()].concat().into_iter().map(str::to_owned).collect()
            }
            false => judged_columns(&program, self.order_columns()),
        };
        let mut waiting = vec![traces.into_iter().collect()];
        while let Some(mut spans) = self.read_next(&mut waiting, &columns, fields).await? {
            for rows in std::mem::take(&mut spans.traces) {
                spans.spans.show(rows);
                self.inspected.traces += 1;
                let (spans, query) = (&spans.spans, &self.query);
                if is_known || (program.prefilter().may_match(spans) && matched(&program, spans, query).is_some()) {
                    let facts = TraceFacts::of(spans);
                    self.best.add(Rank::new(&facts, spans.trace_id(0), query.order), None);
                }
            }
        }
        Ok(())
    }

    /// The traces that nothing can displace any more, with what is shown of them.
    pub(super) async fn show_certain(&mut self, unseen: Option<i64>) -> Result<Vec<FoundTrace>> {
        let mut certain = self.best.take_certain(unseen);
        let unread: Vec<TraceId> =
            certain.iter().filter(|(_, trace)| trace.is_none()).map(|(rank, _)| rank.trace_id()).collect();
        let columns = columns_of(self.program.fields());
        let mut waiting = vec![unread];
        let mut read = hashbrown::HashMap::new();
        while let Some(mut spans) = self.read_next(&mut waiting, &columns, self.program.fields()).await? {
            for rows in std::mem::take(&mut spans.traces) {
                spans.spans.show(rows);
                if let Some(trace) = found(&self.program, &spans.spans, &self.query) {
                    read.insert(trace.trace_id, trace);
                }
            }
        }
        for (rank, trace) in &mut certain {
            if trace.is_none() {
                *trace = read.remove(&rank.trace_id());
            }
        }
        Ok(certain.into_iter().filter_map(|(_, trace)| trace).collect())
    }

    /// What tells where a trace stands, besides its start.
    fn order_columns(&self) -> &'static [&'static str] {
        match self.query.order {
            SearchOrder::Recent => &[],
            SearchOrder::Duration => &["duration"],
        }
    }

    /// Reads the spans of some of the traces that wait; none when no trace does.
    async fn read_next(
        &self,
        waiting: &mut Vec<Vec<TraceId>>,
        columns: &[String],
        fields: &FieldTable,
    ) -> Result<Option<TraceSpans>> {
        let segments = self.snapshot.segments(&self.tenant, Table::Spans).to_vec();
        while let Some(mut traces) = waiting.pop() {
            let ids = IdSet::traces(traces.iter().copied());
            if ids.is_empty() {
                continue;
            }
            let mut places: Vec<(Arc<Segment>, RowRanges)> = Vec::new();
            for segment in &segments {
                let rows = self.engine.lake().reader().trace_rows(segment, &ids).await?;
                places.push((Arc::clone(segment), rows));
            }
            let spans: usize = places.iter().flat_map(|(_, rows)| rows).map(ExactSizeIterator::len).sum();
            if spans > JUDGED_SPANS && traces.len() > 1 {
                waiting.push(traces.split_off(traces.len() / 2));
                waiting.push(traces);
                continue;
            }
            let Some(joined) = join(self.engine.rows_at(places, columns).await?)? else { continue };
            let traces = group_by_trace(&joined)?;
            let spans = BoundSpans::bind(joined, fields)?.with_profiles(self.profiles.as_ref());
            return Ok(Some(TraceSpans { spans, traces }));
        }
        Ok(None)
    }
}

/// The spans of some traces, and the rows of each.
struct TraceSpans {
    spans: BoundSpans,
    traces: Vec<Vec<u32>>,
}

impl Engine {
    /// Rows of several segments, read on all cores and given in order.
    async fn rows_at(&self, places: Vec<(Arc<Segment>, RowRanges)>, columns: &[String]) -> Result<Vec<RecordBatch>> {
        let columns: Arc<[String]> = columns.into();
        let mut jobs: Vec<Job<(usize, Vec<RecordBatch>)>> = Vec::new();
        for (segment, rows) in places.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            for chunk in self.lake().reader().chunks(&segment).await? {
                let inside = chunk.clip(&rows);
                if inside.is_empty() {
                    continue;
                }
                let (lake, segment, columns) = (Arc::clone(self.lake()), Arc::clone(&segment), Arc::clone(&columns));
                let number = jobs.len();
                jobs.push(single(async move { Ok((number, lake.reader().rows(&segment, &inside, &columns).await?)) }));
            }
        }
        let mut read = Vec::new();
        side_by_side(jobs, &mut |part| {
            read.push(part);
            Ok(())
        })
        .await?;
        read.sort_unstable_by_key(|(number, _)| *number);
        Ok(read.into_iter().flat_map(|(_, batches)| batches).collect())
    }
}
