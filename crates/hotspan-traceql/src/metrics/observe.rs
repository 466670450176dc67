//! Folding spans into a state.

use std::ops::Range;

use super::grid::{MetricsError, MetricsLimits, TimeGrid};
use super::series::Exemplar;
use super::state::{LeafState, MetricsState, SeriesTable};
use super::{Function, Leaf, Metrics};
use crate::eval::{Node, TraceView};
use crate::source::{SpanSource, TraceSource};
use crate::value::{FieldValue, Value};

/// Most labels of a series: the checker allows no more.
const MAX_LABELS: usize = 5;

impl Metrics {
    /// Folds a whole trace in.
    pub fn observe_trace<S: TraceSource>(
        &self,
        state: &mut MetricsState,
        view: &TraceView<'_, S>,
    ) -> Result<(), MetricsError> {
        let span_count = view.source.span_count();
        let (grid, limits) = (state.grid, state.limits);
        state.forget_texts();
        for (leaf, leaf_state) in self.leaves.iter().zip(&mut state.leaves) {
            if let Some(condition) = &leaf.condition {
                leaf.observe_range(leaf_state, condition, view, 0..span_count, &grid, &limits)?;
                continue;
            }
            for set in leaf.pipeline.run(view, span_count) {
                for span in set.spans {
                    let span = span as usize;
                    if !leaf.weighing.keeps(view.source, span) {
                        continue;
                    }
                    if let Some(interval) = grid.interval_of(view.source.start_nanos(span)) {
                        leaf.observe_span(leaf_state, Observed { view, span, interval, grid: &grid, limits: &limits })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Folds a batch of spans of any traces in. Right only for a program that does not
    /// [need whole traces](crate::Needs::whole_trace); leaves that do are left out.
    pub fn observe_batch<S: SpanSource>(
        &self,
        state: &mut MetricsState,
        view: &TraceView<'_, S>,
        spans: Range<usize>,
    ) -> Result<(), MetricsError> {
        let (grid, limits) = (state.grid, state.limits);
        state.forget_texts();
        for (leaf, leaf_state) in self.leaves.iter().zip(&mut state.leaves) {
            if let Some(condition) = &leaf.condition {
                leaf.observe_range(leaf_state, condition, view, spans.clone(), &grid, &limits)?;
            }
        }
        Ok(())
    }
}

/// A span that is counted, and what it is counted into.
pub(super) struct Observed<'o, 'v, S> {
    pub(super) view: &'o TraceView<'v, S>,
    pub(super) span: usize,
    pub(super) interval: usize,
    pub(super) grid: &'o TimeGrid,
    pub(super) limits: &'o MetricsLimits,
}

// Not derived: that would ask the same of `S`.
impl<S> Copy for Observed<'_, '_, S> {}

impl<S> Clone for Observed<'_, '_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Leaf {
    fn observe_range<S: SpanSource>(
        &self,
        state: &mut LeafState,
        condition: &Node,
        view: &TraceView<'_, S>,
        spans: Range<usize>,
        grid: &TimeGrid,
        limits: &MetricsLimits,
    ) -> Result<(), MetricsError> {
        if let LeafState::Series(table) = state
            && let Some(columns) = self.columns_of(table, view.source)
        {
            return self.observe_columns(table, columns, condition, view, spans, (grid, limits));
        }
        // Spans come roughly in order of time, so the interval of one is mostly the interval of the next.
        let mut near = grid.bounds_of(None);
        for span in spans {
            let start = view.source.start_nanos(span);
            if start <= near.after || start > near.until {
                near = grid.bounds_of(grid.interval_of(start));
                if near.interval.is_none() {
                    continue;
                }
            }
            if let Some(interval) = near.interval
                && self.weighing.keeps(view.source, span)
                && condition.holds(view, span)
            {
                self.observe_span(state, Observed { view, span, interval, grid, limits })?;
            }
        }
        Ok(())
    }

    #[inline]
    fn observe_span<S: SpanSource>(
        &self,
        state: &mut LeafState,
        observed: Observed<'_, '_, S>,
    ) -> Result<(), MetricsError> {
        let Observed { view, span, interval, .. } = observed;
        let weight = self.weighing.weight(view.source, span);
        let table = match state {
            LeafState::Series(table) => table,
            LeafState::Compare(compare) => {
                compare.observe(&self.function, view, span, interval, weight);
                return Ok(());
            }
        };
        let (of, precise) = match &self.function {
            Function::Rate | Function::Count | Function::Compare { .. } => {
                return self.for_each_series(table, observed, |table, at| {
                    table.series[at].cells.add(interval, 1.0, false, weight);
                    keep_exemplar(table, observed, at, f64::NAN)
                });
            }
            Function::Min(of) | Function::Max(of) | Function::Sum(of) | Function::Mean(of) => (of, false),
            Function::Histogram(of) => (of, false),
            Function::Quantiles { of, precise, .. } => (of, *precise),
        };
        let is_bucketed = matches!(self.function, Function::Histogram(_) | Function::Quantiles { .. });
        let mut outcome = Ok(());
        of.for_each_number(view, span, |value| {
            if outcome.is_ok() {
                let (number, is_duration) = match value {
                    FieldValue::Duration(nanos) => (nanos as f64, true),
                    other => (other.as_number().unwrap_or(f64::NAN), false),
                };
                let seconds = if is_duration { number / 1e9 } else { number };
                outcome = self.for_each_series(table, observed, |table, at| {
                    let series = &mut table.series[at];
                    series.in_seconds |= is_duration;
                    // Buckets are powers of two of nanoseconds, as in Tempo; only their names are in seconds.
                    series.cells.add(interval, if is_bucketed { number } else { seconds }, precise, weight);
                    keep_exemplar(table, observed, at, seconds)
                });
            }
        });
        outcome
    }

    /// Shows every series a span belongs to: one, but for labels that spans have a set of values for.
    #[inline]
    fn for_each_series<S: SpanSource>(
        &self,
        table: &mut SeriesTable,
        observed: Observed<'_, '_, S>,
        mut visit: impl FnMut(&mut SeriesTable, usize) -> Result<(), MetricsError>,
    ) -> Result<(), MetricsError> {
        if !self.by_element.contains(&true) {
            let at = self.series_of(table, observed)?;
            return visit(table, at);
        }
        let Observed { view, span, grid, limits, .. } = observed;
        // One value of each label, in every combination.
        let values_of = |(node, by_element): (&Node, &bool)| match by_element {
            true => node.distinct_values(view, span),
            false => vec![node.owned_value(view, span)],
        };
        let values: Vec<Vec<Value>> = self.by.iter().zip(&self.by_element).map(values_of).collect();
        let intervals = grid.intervals();
        let mut chosen = vec![0; values.len()];
        loop {
            let key: Vec<Value> = values.iter().zip(&chosen).map(|(values, at)| values[*at].clone()).collect();
            let at = table.find_or_insert(key, limits, intervals, || self.new_cells(intervals))?;
            visit(table, at)?;
            let Some(next) = (0..chosen.len()).rev().find(|label| chosen[*label] + 1 < values[*label].len()) else {
                return Ok(());
            };
            chosen[next] += 1;
            chosen[next + 1..].fill(0);
        }
    }

    /// The series a span belongs to.
    #[inline]
    fn series_of<S: SpanSource>(
        &self,
        table: &mut SeriesTable,
        observed: Observed<'_, '_, S>,
    ) -> Result<usize, MetricsError> {
        let Observed { view, span, .. } = observed;
        match self.by.as_slice() {
            [] if !table.series.is_empty() => return Ok(0),
            [only] => {
                if let Some(code) = only.code(view, span) {
                    let at = match table.find_code(code) {
                        Some(at) => at,
                        None => {
                            let at = self.series_by_value(table, observed)?;
                            table.know_code(code, at);
                            at
                        }
                    };
                    return Ok(at);
                }
                if let FieldValue::Str(text) = only.value(view, span)
                    && let Some(at) = table.find_text(text)
                {
                    return Ok(at);
                }
            }
            _ => {}
        }
        self.series_by_value(table, observed)
    }

    /// The series of the values of a span's labels.
    pub(super) fn series_by_value<S: SpanSource>(
        &self,
        table: &mut SeriesTable,
        Observed { view, span, grid, limits, .. }: Observed<'_, '_, S>,
    ) -> Result<usize, MetricsError> {
        let mut key = [FieldValue::Nil; MAX_LABELS];
        let mut is_plain = true;
        for (slot, node) in key.iter_mut().zip(&self.by) {
            *slot = node.value(view, span);
            is_plain &= !matches!(slot, FieldValue::Many(_));
        }
        if is_plain && let Some(at) = table.find(&key[..self.by.len().min(MAX_LABELS)]) {
            return Ok(at);
        }
        let key: Vec<Value> = self.by.iter().map(|node| node.owned_value(view, span)).collect();
        let intervals = grid.intervals();
        table.find_or_insert(key, limits, intervals, || self.new_cells(intervals))
    }
}

fn keep_exemplar<S: SpanSource>(
    table: &mut SeriesTable,
    Observed { view, span, .. }: Observed<'_, '_, S>,
    series: usize,
    value: f64,
) -> Result<(), MetricsError> {
    if table.exemplars.is_off() {
        return Ok(());
    }
    let span_id = view.source.span_id(span);
    if let Some(mixed) = table.exemplars.mixed_if_wanted(span_id.0) {
        let (trace_id, timestamp_nanos) = (view.source.trace_id(span), view.source.start_nanos(span));
        table.exemplars.keep(mixed, series as u32, Exemplar { trace_id, span_id, timestamp_nanos, value });
    }
    Ok(())
}
