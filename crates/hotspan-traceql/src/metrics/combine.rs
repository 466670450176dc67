//! Second stages and arithmetic on finished series.

use hashbrown::{HashMap, HashSet};

use super::finish::Computed;
use super::series::{NAME, Point, Series};
use crate::arithmetic::floats;
use crate::ast::{ArithmeticOp, CompareOp, Literal};
use crate::value::{FieldValue, Value, compare};

/// The `count` largest or smallest series at each point in time; of equal ones, the first by labels.
pub(super) fn keep_extremes(mut series: Vec<Series>, count: usize, largest: bool) -> Vec<Series> {
    let mut at_time: HashMap<i64, Vec<(f64, usize)>> = HashMap::new();
    for (at, one) in series.iter().enumerate() {
        for point in one.points.iter().filter(|point| !point.value.is_nan()) {
            at_time.entry(point.timestamp_nanos).or_default().push((point.value, at));
        }
    }
    let mut kept: HashSet<(i64, usize)> = HashSet::new();
    for (timestamp, mut values) in at_time {
        values.sort_by(|left, right| {
            let order = left.0.total_cmp(&right.0);
            (if largest { order.reverse() } else { order }).then(left.1.cmp(&right.1))
        });
        kept.extend(values.into_iter().take(count).map(|(_, at)| (timestamp, at)));
    }
    for (at, one) in series.iter_mut().enumerate() {
        one.points.retain(|point| kept.contains(&(point.timestamp_nanos, at)));
    }
    series.retain(|one| !one.points.is_empty());
    series
}

/// Points that compare so with a constant; durations are in seconds.
pub(super) fn keep_matching(mut series: Vec<Series>, op: CompareOp, literal: &Literal) -> Vec<Series> {
    let bound = match literal {
        Literal::Int(value) => FieldValue::Int(*value),
        Literal::Float(value) => FieldValue::Float(*value),
        Literal::Duration(nanos) => FieldValue::Float(*nanos as f64 / 1e9),
        _ => FieldValue::Nil,
    };
    for one in &mut series {
        one.points.retain(|point| compare(FieldValue::Float(point.value), op, bound));
    }
    series.retain(|one| !one.points.is_empty());
    series
}

/// `left op right`: series with the same labels meet; a side without labels meets every series of the other.
pub(super) fn arithmetic(left: Computed, op: ArithmeticOp, right: Computed) -> Computed {
    match (left, right) {
        (Computed::Number(left), Computed::Number(right)) => Computed::Number(quotient_or(left, op, right)),
        (Computed::Series(mut series), Computed::Number(number)) => {
            map_values(&mut series, |value| quotient_or(value, op, number));
            Computed::Series(series)
        }
        (Computed::Number(number), Computed::Series(mut series)) => {
            map_values(&mut series, |value| quotient_or(number, op, value));
            Computed::Series(series)
        }
        (Computed::Series(left), Computed::Series(right)) => Computed::Series(join(&left, op, &right)),
    }
}

fn map_values(series: &mut [Series], map: impl Fn(f64) -> f64) {
    for one in series {
        one.labels.retain(|(name, _)| name != NAME);
        for point in &mut one.points {
            point.value = map(point.value);
        }
    }
}

/// Division by zero has no value, rather than an infinite one.
fn quotient_or(left: f64, op: ArithmeticOp, right: f64) -> f64 {
    if op == ArithmeticOp::Div && right == 0.0 { f64::NAN } else { floats(left, op, right) }
}

/// The labels that tell series apart; the name of the function does not.
fn identity(series: &Series) -> Vec<(String, Value)> {
    let mut labels: Vec<_> = series.labels.iter().filter(|(name, _)| name != NAME).cloned().collect();
    labels.sort();
    labels
}

fn is_unlabelled(series: &[Series]) -> bool {
    matches!(series, [only] if identity(only).is_empty())
}

fn join(left: &[Series], op: ArithmeticOp, right: &[Series]) -> Vec<Series> {
    let (left_alone, right_alone) = (is_unlabelled(left), is_unlabelled(right));
    if right_alone && !left_alone {
        return left.iter().map(|one| combine(one, &one.points, op, &right[0].points)).collect();
    }
    if left_alone && !right_alone {
        return right.iter().map(|one| combine(one, &left[0].points, op, &one.points)).collect();
    }
    let by_identity: HashMap<_, _> = right.iter().map(|one| (identity(one), one)).collect();
    left.iter()
        .filter_map(|one| by_identity.get(&identity(one)).map(|other| combine(one, &one.points, op, &other.points)))
        .collect()
}

/// Points of both, in order of time; where one side has none, there is no number.
fn combine(labelled: &Series, left: &[Point], op: ArithmeticOp, right: &[Point]) -> Series {
    let mut points = Vec::with_capacity(left.len().max(right.len()));
    let (mut at_left, mut at_right) = (0, 0);
    while at_left < left.len() || at_right < right.len() {
        let time_left = left.get(at_left).map_or(i64::MAX, |point| point.timestamp_nanos);
        let time_right = right.get(at_right).map_or(i64::MAX, |point| point.timestamp_nanos);
        let timestamp_nanos = time_left.min(time_right);
        let value = if time_left == time_right {
            quotient_or(left[at_left].value, op, right[at_right].value)
        } else {
            f64::NAN
        };
        points.push(Point { timestamp_nanos, value });
        at_left += usize::from(time_left == timestamp_nanos);
        at_right += usize::from(time_right == timestamp_nanos);
    }
    let labels = labelled.labels.iter().filter(|(name, _)| name != NAME).cloned().collect();
    Series { labels, points, exemplars: labelled.exemplars.clone() }
}
