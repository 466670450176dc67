//! `compare()`: how often each attribute value occurs among the selected spans and among the others.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

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
    baseline: Group,
    selection: Group,
    room: Room,
}

/// What bounds the memory: every row of counts has a cell for each interval.
#[derive(Debug, Clone)]
struct Room {
    intervals: usize,
    rows: usize,
    most_rows: usize,
    /// Whether an attribute was left out whole.
    lost_attributes: bool,
}

impl Room {
    /// An empty row, if there is room for one.
    fn new_row(&mut self) -> Option<Vec<f64>> {
        if self.rows >= self.most_rows {
            return None;
        }
        self.rows += 1;
        Some(vec![0.0; self.intervals])
    }
}

type Group = HashMap<(Option<Scope>, String), Counts>;

#[derive(Debug, Clone)]
struct Counts {
    total: Vec<f64>,
    values: HashMap<Value, Vec<f64>>,
    has_more: bool,
}

impl CompareState {
    pub(super) fn new(intervals: usize, max_points: usize) -> Self {
        let most_rows = (max_points / intervals.max(1)).max(1);
        let room = Room { intervals, rows: 0, most_rows, lost_attributes: false };
        Self { baseline: HashMap::new(), selection: HashMap::new(), room }
    }

    /// What was left out, for a person.
    pub(super) fn note(&self) -> Option<String> {
        let is_cut = |group: &Group| group.values().any(|counts| counts.has_more);
        if self.room.lost_attributes {
            return Some(format!(
                "compare() has room for {MAX_ATTRIBUTES} attributes and {} values of {} intervals: the attributes that \
                 came last were left out (limits: compare attributes, max points); use a longer step or select fewer spans",
                self.room.most_rows, self.room.intervals
            ));
        }
        (is_cut(&self.baseline) || is_cut(&self.selection)).then(|| {
            format!("compare() tells at most {MAX_VALUES} values of an attribute apart; some are in the totals only")
        })
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
        weight: f64,
    ) {
        let Function::Compare { selection, window, intrinsics, .. } = function else { return };
        let start = view.source.start_nanos(span);
        let is_selected = selection.as_ref().is_none_or(|node| node.holds(view, span))
            && window.is_none_or(|(from, to)| start >= from && start < to);
        let room = &mut self.room;
        let group = if is_selected { &mut self.selection } else { &mut self.baseline };
        for (name, node) in intrinsics {
            let value = node.value(view, span);
            if !matches!(value, FieldValue::Nil | FieldValue::Str("")) {
                count(group, room, (None, name), value, interval, weight);
            }
        }
        view.source.for_each_attribute(span, &mut |scope, name, value| {
            count(group, room, (Some(scope), name), value, interval, weight);
        });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let room = &mut self.room;
        room.lost_attributes |= other.room.lost_attributes;
        for (mine, theirs) in [(&mut self.baseline, &other.baseline), (&mut self.selection, &other.selection)] {
            for (attribute, counts) in theirs {
                let Some(known) = known_or_new(mine, room, attribute) else { continue };
                add(&mut known.total, &counts.total);
                known.has_more |= counts.has_more;
                for (value, row) in &counts.values {
                    match row_of(known, room, value.clone()) {
                        Some(known_row) => add(known_row, row),
                        None => known.has_more = true,
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
                let labelled = |meta: &str, kind: &str, value: Value, row: &[f64]| Series {
                    labels: vec![(meta.to_owned(), Value::Str(kind.to_owned())), (attribute.clone(), value)],
                    points: points(row, grid),
                    exemplars: Vec::new(),
                };
                let mut rows: Vec<(Value, Vec<f64>)> = counts.values.into_iter().collect();
                rows.sort_by(|left, right| {
                    let (left_sum, right_sum) = (left.1.iter().sum::<f64>(), right.1.iter().sum::<f64>());
                    right_sum.total_cmp(&left_sum).then_with(|| left.0.cmp(&right.0))
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

fn points(row: &[f64], grid: &TimeGrid) -> Vec<Point> {
    let point = |(interval, count): (usize, &f64)| Point { timestamp_nanos: grid.timestamp(interval), value: *count };
    row.iter().enumerate().map(point).collect()
}

fn add(left: &mut [f64], right: &[f64]) {
    for (left, right) in left.iter_mut().zip(right) {
        *left += right;
    }
}

/// The counts of an attribute, made if it is new and there is room.
fn known_or_new<'g>(
    group: &'g mut Group,
    room: &mut Room,
    attribute: &(Option<Scope>, String),
) -> Option<&'g mut Counts> {
    if !group.contains_key(attribute) {
        let total = if group.len() < MAX_ATTRIBUTES { room.new_row() } else { None };
        let Some(total) = total else {
            room.lost_attributes = true;
            return None;
        };
        group.insert(attribute.clone(), Counts { total, values: HashMap::new(), has_more: false });
    }
    group.get_mut(attribute)
}

/// The row of a value, made if it is new and there is room.
fn row_of<'c>(counts: &'c mut Counts, room: &mut Room, value: Value) -> Option<&'c mut Vec<f64>> {
    let has_room = counts.values.len() < MAX_VALUES;
    match counts.values.entry(value) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(new) if has_room => Some(new.insert(room.new_row()?)),
        Entry::Vacant(_) => None,
    }
}

fn count(
    group: &mut Group,
    room: &mut Room,
    (scope, name): (Option<Scope>, &str),
    value: FieldValue<'_>,
    interval: usize,
    weight: f64,
) {
    let attribute = (scope, name.to_owned());
    let Some(counts) = known_or_new(group, room, &attribute) else { return };
    counts.total[interval] += weight;
    match row_of(counts, room, value.to_value()) {
        Some(row) => row[interval] += weight,
        None => counts.has_more = true,
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::{MemorySpan, MemoryTrace};
    use crate::value::Value;
    use crate::{MetricsLimits, Program, TimeGrid};

    /// Scenario: more attributes than there is room for, with and without a small limit on points.
    /// Guarantee: what is kept is counted, and what is left out is said.
    #[test]
    fn what_is_left_out_is_said() {
        let attributes = (0..2500).map(|number| (format!("key-{number}"), Value::Int(number))).collect();
        let span = MemorySpan { attributes, start_nanos: 5, ..MemorySpan::default() };
        let trace = MemoryTrace { spans: vec![span], ..MemoryTrace::default() };
        let program = Program::new("{ } | compare({ status = error })").unwrap();
        let metrics = program.metrics().unwrap();
        let run = |limits: MetricsLimits| {
            let mut state = metrics.start(TimeGrid::instant(0, 10).unwrap(), limits);
            let source = trace.bind(program.fields());
            metrics.observe_trace(&mut state, &program.view(&source)).unwrap();
            (state.notes(), metrics.finish(state).len())
        };
        let (notes, series) = run(MetricsLimits::default());
        assert!(notes[0].contains("2000 attributes"), "{notes:?}");
        assert!(series >= 4000, "{series}");
        let (notes, series) = run(MetricsLimits { max_points: 10, ..MetricsLimits::default() });
        assert!(notes[0].contains("max points") && series <= 10, "{notes:?} {series}");
        assert!(program.reads_every_attribute());
    }
}
