//! Folding whole columns into a state: how many spans there are and how long they took, by nothing or by one label, which is
//! what most questions ask. The same as [`Leaf::observe_range`] does span by span, but every value stands in an array.

use std::ops::Range;

use super::grid::{MetricsError, MetricsLimits, TimeGrid};
use super::observe::Observed;
use super::series::Exemplar;
use super::state::SeriesTable;
use super::{Function, Leaf};
use crate::eval::{FieldRef, Node, TraceView};
use crate::source::{FieldColumn, SpanColumns, SpanSource};

/// What a leaf reads of every span.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafColumns<'s> {
    starts: &'s [i64],
    /// None if nobody asks for exemplars.
    span_ids: Option<&'s [[u8; 8]]>,
    /// None if spans are counted.
    durations: Option<&'s [i64]>,
    /// None if there is one series.
    codes: Option<&'s [i32]>,
}

impl Leaf {
    /// The columns that it takes, if they are all that it takes.
    pub(super) fn columns_of<'s, S: SpanSource>(&self, table: &SeriesTable, source: &'s S) -> Option<LeafColumns<'s>> {
        let SpanColumns { starts, span_ids } = source.columns()?;
        let column = |node: &Node| match node {
            Node::Field(FieldRef::Own(field)) => source.field_column(*field),
            _ => None,
        };
        let durations = match &self.function {
            Function::Rate | Function::Count => None,
            Function::Histogram(of) | Function::Quantiles { of, .. } => match column(of)? {
                FieldColumn::Durations(durations) => Some(durations),
                FieldColumn::Codes(_) => return None,
            },
            _ => return None,
        };
        let codes = match (self.by.as_slice(), self.by_element.contains(&true)) {
            ([], _) => None,
            ([only], false) => match column(only)? {
                FieldColumn::Codes(codes) => Some(codes),
                FieldColumn::Durations(_) => return None,
            },
            _ => return None,
        };
        let span_ids = if table.exemplars.is_off() { None } else { Some(span_ids?) };
        self.weighing.is_even().then_some(LeafColumns { starts, span_ids, durations, codes })
    }

    pub(super) fn observe_columns<S: SpanSource>(
        &self,
        table: &mut SeriesTable,
        columns: LeafColumns<'_>,
        condition: &Node,
        view: &TraceView<'_, S>,
        spans: Range<usize>,
        (grid, limits): (&TimeGrid, &MetricsLimits),
    ) -> Result<(), MetricsError> {
        let LeafColumns { starts, span_ids, durations, codes } = columns;
        let is_every = matches!(condition, Node::All(parts) if parts.is_empty());
        let precise = matches!(self.function, Function::Quantiles { precise: true, .. });
        let mut near = grid.bounds_of(None);
        for span in spans {
            let start = starts[span];
            if start <= near.after || start > near.until {
                near = grid.bounds_of(grid.interval_of(start));
            }
            let Some(interval) = near.interval else { continue };
            if !is_every && !condition.holds(view, span) {
                continue;
            }
            let known = match codes {
                Some(codes) => table.find_code(codes[span] as u32),
                None => (!table.series.is_empty()).then_some(0),
            };
            let at = match known {
                Some(at) => at,
                None => {
                    let at = self.series_by_value(table, Observed { view, span, interval, grid, limits })?;
                    codes.inspect(|codes| table.know_code(codes[span] as u32, at));
                    at
                }
            };
            let series = &mut table.series[at];
            let value = match durations {
                Some(durations) => {
                    let nanos = durations[span] as f64;
                    series.in_seconds = true;
                    series.cells.add(interval, nanos, precise, 1.0);
                    nanos / 1e9
                }
                None => {
                    series.cells.add(interval, 1.0, false, 1.0);
                    f64::NAN
                }
            };
            if let Some(span_ids) = span_ids
                && let Some(mixed) = table.exemplars.mixed_if_wanted(span_ids[span])
            {
                let (trace_id, span_id) = (view.source.trace_id(span), view.source.span_id(span));
                let exemplar = Exemplar { trace_id, span_id, timestamp_nanos: start, value };
                table.exemplars.keep(mixed, at as u32, exemplar);
            }
        }
        Ok(())
    }
}
