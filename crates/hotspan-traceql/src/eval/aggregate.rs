//! One value from the spans of a spanset.

use crate::ast::AggregateOp;
use crate::eval::{Node, TraceView};
use crate::source::SpanSource;
use crate::value::{FieldValue, Value};

/// The aggregate over the numbers among the spans' values; nil if there are none.
pub(crate) fn aggregate<S: SpanSource>(
    op: AggregateOp,
    of: Option<&Node>,
    view: &TraceView<'_, S>,
    spans: &[u32],
) -> Value {
    let Some(of) = of else { return Value::Int(spans.len() as i64) };
    let mut fold = Fold::default();
    for span in spans {
        of.for_each_number(view, *span as usize, |number| fold.add(number));
    }
    fold.finish(op)
}

/// Sums stay exact while all values are whole (integers or nanoseconds).
#[derive(Default)]
struct Fold {
    count: u64,
    whole: i128,
    float: f64,
    has_float: bool,
    all_durations: bool,
    smallest: Option<(f64, Value)>,
    largest: Option<(f64, Value)>,
}

impl Fold {
    fn add(&mut self, value: FieldValue<'_>) {
        let Some(number) = value.as_number() else { return };
        self.all_durations = matches!(value, FieldValue::Duration(_)) && (self.count == 0 || self.all_durations);
        self.count += 1;
        match value {
            FieldValue::Int(whole) | FieldValue::Duration(whole) => self.whole += i128::from(whole),
            _ => self.has_float = true,
        }
        self.float += number;
        if self.smallest.as_ref().is_none_or(|(smallest, _)| number < *smallest) {
            self.smallest = Some((number, value.to_value()));
        }
        if self.largest.as_ref().is_none_or(|(largest, _)| number > *largest) {
            self.largest = Some((number, value.to_value()));
        }
    }

    fn finish(self, op: AggregateOp) -> Value {
        if self.count == 0 {
            return Value::Nil;
        }
        match op {
            AggregateOp::Count => Value::Int(self.count as i64),
            AggregateOp::Min => self.smallest.map_or(Value::Nil, |(_, value)| value),
            AggregateOp::Max => self.largest.map_or(Value::Nil, |(_, value)| value),
            AggregateOp::Sum if self.has_float => Value::Float(self.float),
            AggregateOp::Sum => match i64::try_from(self.whole) {
                Ok(nanos) if self.all_durations => Value::Duration(nanos),
                Ok(whole) => Value::Int(whole),
                Err(_) => Value::Float(self.float),
            },
            AggregateOp::Avg if self.all_durations => {
                Value::Duration((self.whole as f64 / self.count as f64).round() as i64)
            }
            AggregateOp::Avg if self.has_float => Value::Float(self.float / self.count as f64),
            AggregateOp::Avg => Value::Float(self.whole as f64 / self.count as f64),
        }
    }
}
