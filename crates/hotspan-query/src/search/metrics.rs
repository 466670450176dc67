//! TraceQL metrics: series over time, from single spans or from whole traces.

use futures::TryStreamExt;
use hotspan_lake::ReadOptions;
use hotspan_model::TenantId;
use hotspan_traceql::{MetricsError, MetricsLimits, Program, Series, TimeGrid, TraceView};

use super::binding::{BoundSpans, columns_of};
use super::gather::{gather, slices};
use super::run::{overlapping, reach_back, reach_on};
use crate::Engine;
use crate::error::{QueryError, Result};

/// Series, and what was looked at.
#[derive(Debug, Clone, Default)]
pub struct MetricsAnswer {
    /// The series.
    pub series: Vec<Series>,
    /// Spans that were evaluated.
    pub inspected_spans: u64,
    /// Bytes of the segments that were opened.
    pub inspected_bytes: u64,
}

impl Engine {
    /// The series of a metrics query over the times `from..until` on a grid.
    pub async fn metrics(
        &self,
        tenant: &TenantId,
        program: &Program,
        grid: TimeGrid,
        from: i64,
        until: i64,
    ) -> Result<MetricsAnswer> {
        let metrics = program.metrics().ok_or_else(|| {
            QueryError::Invalid("this is a search; a metrics query ends in rate() or the like".to_owned())
        })?;
        let snapshot = self.snapshot();
        let limit = |error: MetricsError| QueryError::Limit(error.to_string());
        let mut state = metrics.start(grid, MetricsLimits::default());
        let mut answer = MetricsAnswer::default();
        if program.needs().whole_trace {
            let segments = overlapping(&snapshot, tenant, reach_back(from), reach_on(until));
            answer.inspected_bytes = segments.iter().map(|segment| segment.bytes()).sum();
            for slice in slices(&segments) {
                let Some(mut gathered) = gather(self.lake(), &segments, slice, program.fields()).await? else {
                    continue;
                };
                for rows in std::mem::take(&mut gathered.traces) {
                    gathered.spans.show(rows);
                    answer.inspected_spans += gathered.spans.len() as u64;
                    metrics.observe_trace(&mut state, &program.view(&gathered.spans)).map_err(limit)?;
                }
            }
        } else {
            let columns = columns_of(program.fields());
            for segment in overlapping(&snapshot, tenant, from, until) {
                answer.inspected_bytes += segment.bytes();
                let options = ReadOptions::columns(&columns).within("start_time", from, until);
                let mut stream = self.lake().reader().stream(&segment, options).await?;
                while let Some(batch) = stream.try_next().await? {
                    let spans = BoundSpans::bind(batch, program.fields())?;
                    answer.inspected_spans += spans.len() as u64;
                    metrics.observe_batch(&mut state, &TraceView::of_batch(&spans), 0..spans.len()).map_err(limit)?;
                }
            }
        }
        answer.series = metrics.finish(state);
        Ok(answer)
    }
}
