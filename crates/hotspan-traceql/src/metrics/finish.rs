//! From a complete state to series.

use super::combine::{arithmetic, keep_extremes, keep_matching};
use super::grid::TimeGrid;
use super::histogram::{LogHistogram, bound, exponent};
use super::series::{BUCKET, Exemplar, NAME, Point, QUANTILE, Series};
use super::state::{Cells, LeafState, MetricsState, SeriesTable};
use super::{Function, Leaf, Metrics, Tree};
use crate::ast::SecondStage;
use crate::value::Value;

/// What a part of the expression is once computed.
pub(super) enum Computed {
    Series(Vec<Series>),
    Number(f64),
}

impl Metrics {
    /// The series, ordered by their labels.
    pub fn finish(&self, state: MetricsState) -> Vec<Series> {
        let grid = state.grid;
        let mut leaves: Vec<Option<Vec<Series>>> = self
            .leaves
            .iter()
            .zip(state.leaves)
            .map(|(leaf, state)| {
                Some(match (state, &leaf.function) {
                    (LeafState::Compare(compare), Function::Compare { top, .. }) => compare.finish(*top, &grid),
                    (LeafState::Series(table), _) => leaf.finish(table, &grid),
                    (LeafState::Compare(_), _) => Vec::new(),
                })
            })
            .collect();
        match compute(&self.tree, &mut leaves) {
            Computed::Series(series) => series,
            Computed::Number(_) => Vec::new(),
        }
    }
}

fn compute(tree: &Tree, leaves: &mut [Option<Vec<Series>>]) -> Computed {
    match tree {
        Tree::Leaf(at) => Computed::Series(leaves[*at].take().unwrap_or_default()),
        Tree::Number(number) => Computed::Number(*number),
        Tree::Binary { op, lhs, rhs } => {
            let (left, right) = (compute(lhs, leaves), compute(rhs, leaves));
            arithmetic(left, *op, right)
        }
        Tree::Staged { of, stage } => match compute(of, leaves) {
            Computed::Series(series) => Computed::Series(match stage {
                SecondStage::TopK(count) => keep_extremes(series, *count as usize, true),
                SecondStage::BottomK(count) => keep_extremes(series, *count as usize, false),
                SecondStage::Filter(op, literal) => keep_matching(series, *op, literal),
            }),
            number => number,
        },
    }
}

impl Leaf {
    fn finish(&self, table: SeriesTable, grid: &TimeGrid) -> Vec<Series> {
        let mut exemplars: Vec<Vec<Exemplar>> = vec![Vec::new(); table.series.len()];
        for candidate in table.exemplars.into_kept() {
            exemplars[candidate.series as usize].push(candidate.exemplar);
        }
        let mut all = Vec::new();
        for (state, mut exemplars) in table.series.into_iter().zip(exemplars) {
            exemplars.sort_by_key(|exemplar| (exemplar.timestamp_nanos, exemplar.span_id));
            let labels: Vec<(String, Value)> = self.labels.iter().cloned().zip(state.key).collect();
            let unit = if state.in_seconds { 1e9 } else { 1.0 };
            match (&self.function, state.cells) {
                (Function::Quantiles { quantiles, precise, .. }, Cells::Histogram(cells)) => {
                    let cells = cells.into_each();
                    all.extend(quantile_series(&labels, &cells, quantiles, *precise, unit, exemplars, grid));
                }
                (_, Cells::Histogram(cells)) => {
                    all.extend(bucket_series(&labels, &cells.into_each(), unit, &exemplars, grid));
                }
                (function, cells) => {
                    let per_second = grid.step_nanos() as f64 / 1e9;
                    let values: Vec<f64> = match cells {
                        Cells::Count(counts) if matches!(function, Function::Rate) => {
                            counts.into_iter().map(|count| count / per_second).collect()
                        }
                        Cells::Count(counts) => counts,
                        Cells::Smallest(values) | Cells::Largest(values) | Cells::Sum(values) => values,
                        Cells::Mean(values) => values.into_iter().map(|(sum, count)| sum / count).collect(),
                        Cells::Histogram(_) => Vec::new(),
                    };
                    for exemplar in exemplars.iter_mut().filter(|exemplar| exemplar.value.is_nan()) {
                        let interval = grid.interval_of(exemplar.timestamp_nanos).unwrap_or(0);
                        exemplar.value = values.get(interval).copied().unwrap_or(f64::NAN);
                    }
                    let points = present_points(values.into_iter().map(Some), grid);
                    let labels = if labels.is_empty() {
                        vec![(NAME.to_owned(), Value::Str(self.name.to_owned()))]
                    } else {
                        labels
                    };
                    all.push(Series { labels, points, exemplars });
                }
            }
        }
        all.sort_by(|left, right| left.labels.cmp(&right.labels));
        all
    }
}

/// The points that have a value.
fn present_points(values: impl Iterator<Item = Option<f64>>, grid: &TimeGrid) -> Vec<Point> {
    values
        .enumerate()
        .filter_map(|(interval, value)| {
            let value = value.filter(|value| !value.is_nan())?;
            Some(Point { timestamp_nanos: grid.timestamp(interval), value })
        })
        .collect()
}

fn with_label(labels: &[(String, Value)], name: &str, value: f64) -> Vec<(String, Value)> {
    labels.iter().cloned().chain([(name.to_owned(), Value::Float(value))]).collect()
}

fn quantile_series(
    labels: &[(String, Value)],
    cells: &[LogHistogram],
    quantiles: &[f64],
    precise: bool,
    unit: f64,
    exemplars: Vec<Exemplar>,
    grid: &TimeGrid,
) -> Vec<Series> {
    let mut all: Vec<Series> = quantiles
        .iter()
        .map(|quantile| {
            let values = cells.iter().map(|cell| cell.quantile(*quantile, precise).map(|value| value / unit));
            Series {
                labels: with_label(labels, QUANTILE, *quantile),
                points: present_points(values, grid),
                exemplars: Vec::new(),
            }
        })
        .collect();
    // An exemplar stands for the lowest quantile that is not below it.
    for exemplar in exemplars {
        let timestamp = grid.interval_of(exemplar.timestamp_nanos).map(|interval| grid.timestamp(interval));
        let value_of = |series: &Series| {
            series.points.iter().find(|point| Some(point.timestamp_nanos) == timestamp).map(|point| point.value)
        };
        let fitting = all
            .iter()
            .enumerate()
            .filter_map(|(at, series)| value_of(series).map(|value| (value, at)))
            .filter(|(value, _)| *value >= exemplar.value)
            .min_by(|left, right| left.0.total_cmp(&right.0))
            .map_or(all.len() - 1, |(_, at)| at);
        all[fitting].exemplars.push(exemplar);
    }
    all
}

fn bucket_series(
    labels: &[(String, Value)],
    cells: &[LogHistogram],
    unit: f64,
    exemplars: &[Exemplar],
    grid: &TimeGrid,
) -> Vec<Series> {
    let mut bounds: Vec<f64> = cells.iter().flat_map(|cell| cell.buckets(false)).map(|(bound, _)| bound).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    bounds
        .into_iter()
        .map(|upper| {
            let counts = cells
                .iter()
                .map(|cell| cell.buckets(false).find(|(bound, _)| *bound == upper).map_or(0.0, |(_, count)| count));
            let is_inside = |exemplar: &&Exemplar| {
                let value = exemplar.value * unit;
                let own = if value > 0.0 { bound(exponent(value, false), false) } else { 0.0 };
                own == upper
            };
            Series {
                labels: with_label(labels, BUCKET, upper / unit),
                points: present_points(counts.map(Some), grid),
                exemplars: exemplars.iter().filter(is_inside).cloned().collect(),
            }
        })
        .collect()
}
