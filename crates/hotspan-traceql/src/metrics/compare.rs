//! `compare()`: how often each attribute value occurs among the selected spans and among the others.

use hashbrown::HashMap;

use super::Function;
use super::grid::TimeGrid;
use super::series::{META_ERROR, META_TYPE, Point, Series};
use crate::ast::{Field, Scope};
use crate::eval::TraceView;
use crate::source::SpanSource;
use crate::value::{FieldValue, Value};

/// Values of an attribute that are told apart; the rest is counted in the totals only.
const MAX_VALUES: usize = 1_000;
/// Attributes that are looked at in each group.
const MAX_ATTRIBUTES: usize = 2_000;

#[derive(Debug, Clone)]
pub(super) struct CompareState {
    intervals: usize,
    baseline: Group,
    selection: Group,
}

type Group = HashMap<(Option<Scope>, String), Counts>;

#[derive(Debug, Clone)]
struct Counts {
    total: Vec<u64>,
    values: HashMap<Value, Vec<u64>>,
    has_more: bool,
}

impl CompareState {
    pub(super) fn new(intervals: usize) -> Self {
        Self { intervals, baseline: HashMap::new(), selection: HashMap::new() }
    }

    pub(super) fn series_count(&self) -> usize {
        self.baseline.values().chain(self.selection.values()).map(|counts| counts.values.len()).sum()
    }

    pub(super) fn observe<S: SpanSource>(
        &mut self,
        function: &Function,
        view: &TraceView<'_, S>,
        span: usize,
        interval: usize,
    ) {
        let Function::Compare { selection, window, intrinsics, .. } = function else { return };
        let start = view.source.start_nanos(span);
        let is_selected = selection.as_ref().is_none_or(|node| node.holds(view, span))
            && window.is_none_or(|(from, to)| start >= from && start < to);
        let intervals = self.intervals;
        let group = if is_selected { &mut self.selection } else { &mut self.baseline };
        for (name, node) in intrinsics {
            let value = node.value(view, span);
            if !matches!(value, FieldValue::Nil | FieldValue::Str("")) {
                count(group, None, name, value, interval, intervals);
            }
        }
        view.source.for_each_attribute(span, &mut |scope, name, value| {
            count(group, Some(scope), name, value, interval, intervals);
        });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.baseline, &other.baseline), (&mut self.selection, &other.selection)] {
            for (attribute, counts) in theirs {
                let Some(known) = mine.get_mut(attribute) else {
                    if mine.len() < MAX_ATTRIBUTES {
                        mine.insert(attribute.clone(), counts.clone());
                    }
                    continue;
                };
                add(&mut known.total, &counts.total);
                known.has_more |= counts.has_more;
                for (value, row) in &counts.values {
                    if let Some(known_row) = known.values.get_mut(value) {
                        add(known_row, row);
                    } else if known.values.len() < MAX_VALUES {
                        known.values.insert(value.clone(), row.clone());
                    } else {
                        known.has_more = true;
                    }
                }
            }
        }
    }

    pub(super) fn finish(self, top: usize, grid: &TimeGrid) -> Vec<Series> {
        let mut all = Vec::new();
        for (kind, total_kind, group) in
            [("baseline", "baseline_total", self.baseline), ("selection", "selection_total", self.selection)]
        {
            for ((scope, name), counts) in group {
                let attribute = match scope {
                    Some(scope) => Field::attribute(scope, name).to_string(),
                    None => name,
                };
                let labelled = |meta: &str, kind: &str, value: Value, row: &[u64]| Series {
                    labels: vec![(meta.to_owned(), Value::Str(kind.to_owned())), (attribute.clone(), value)],
                    points: points(row, grid),
                    exemplars: Vec::new(),
                };
                let mut rows: Vec<(Value, Vec<u64>)> = counts.values.into_iter().collect();
                rows.sort_by(|left, right| {
                    right.1.iter().sum::<u64>().cmp(&left.1.iter().sum()).then_with(|| left.0.cmp(&right.0))
                });
                if rows.len() > top || counts.has_more {
                    all.push(labelled(META_ERROR, "__too_many_values__", Value::Nil, &[]));
                }
                rows.truncate(top);
                all.extend(rows.into_iter().map(|(value, row)| labelled(META_TYPE, kind, value, &row)));
                all.push(labelled(META_TYPE, total_kind, Value::Nil, &counts.total));
            }
        }
        all.sort_by(|left, right| left.labels.cmp(&right.labels));
        all.dedup();
        all
    }
}

fn points(row: &[u64], grid: &TimeGrid) -> Vec<Point> {
    row.iter()
        .enumerate()
        .map(|(interval, count)| Point { timestamp_nanos: grid.timestamp(interval), value: *count as f64 })
        .collect()
}

fn add(left: &mut [u64], right: &[u64]) {
    for (left, right) in left.iter_mut().zip(right) {
        *left += right;
    }
}

fn count(
    group: &mut Group,
    scope: Option<Scope>,
    name: &str,
    value: FieldValue<'_>,
    interval: usize,
    intervals: usize,
) {
    let attribute = (scope, name.to_owned());
    if !group.contains_key(&attribute) && group.len() >= MAX_ATTRIBUTES {
        return;
    }
    let counts = group.entry(attribute).or_insert_with(|| Counts {
        total: vec![0; intervals],
        values: HashMap::new(),
        has_more: false,
    });
    counts.total[interval] += 1;
    let value = value.to_value();
    if let Some(row) = counts.values.get_mut(&value) {
        row[interval] += 1;
    } else if counts.values.len() < MAX_VALUES {
        let mut row = vec![0; intervals];
        row[interval] = 1;
        counts.values.insert(value, row);
    } else {
        counts.has_more = true;
    }
}
