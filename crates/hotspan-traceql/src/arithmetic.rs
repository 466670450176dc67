//! Calculating with values.
//!
//! Whole numbers stay whole (division truncates) until they overflow, then they go on as floats. A duration plus or
//! minus a duration, or times or divided by a number, is a duration; everything else is a float. What cannot be
//! calculated is nil.

use crate::ast::ArithmeticOp;
use crate::value::FieldValue;

/// `lhs op rhs`.
pub(crate) fn calculate<'a>(lhs: FieldValue<'_>, op: ArithmeticOp, rhs: FieldValue<'_>) -> FieldValue<'a> {
    use FieldValue::{Duration, Float, Int, Nil};
    let (Some(left), Some(right)) = (lhs.as_number(), rhs.as_number()) else { return Nil };
    match (lhs, op, rhs) {
        (Int(left), op, Int(right)) => integers(left, op, right),
        (Duration(left), ArithmeticOp::Add, Duration(right)) => {
            left.checked_add(right).map_or(Float(left as f64 + right as f64), Duration)
        }
        (Duration(left), ArithmeticOp::Sub, Duration(right)) => {
            left.checked_sub(right).map_or(Float(left as f64 - right as f64), Duration)
        }
        (Duration(_), ArithmeticOp::Div | ArithmeticOp::Mod, Int(0)) => Nil,
        (Duration(nanos), ArithmeticOp::Mul, Int(factor)) | (Int(factor), ArithmeticOp::Mul, Duration(nanos)) => {
            nanos.checked_mul(factor).map_or(Float(left * right), Duration)
        }
        (Duration(_), ArithmeticOp::Mul | ArithmeticOp::Div, Int(_) | Float(_))
        | (Float(_), ArithmeticOp::Mul, Duration(_)) => {
            let nanos = floats(left, op, right);
            // Outside this range a duration cannot be told in nanoseconds.
            if nanos.abs() < 9.2e18 { Duration(nanos.round() as i64) } else { Float(nanos) }
        }
        _ => Float(floats(left, op, right)),
    }
}

fn integers<'a>(left: i64, op: ArithmeticOp, right: i64) -> FieldValue<'a> {
    let exact = match op {
        ArithmeticOp::Add => left.checked_add(right),
        ArithmeticOp::Sub => left.checked_sub(right),
        ArithmeticOp::Mul => left.checked_mul(right),
        ArithmeticOp::Div | ArithmeticOp::Mod if right == 0 => return FieldValue::Nil,
        ArithmeticOp::Div => left.checked_div(right),
        ArithmeticOp::Mod => Some(left.checked_rem(right).unwrap_or(0)),
        ArithmeticOp::Pow => u32::try_from(right).ok().and_then(|exponent| left.checked_pow(exponent)),
    };
    exact.map_or_else(|| FieldValue::Float(floats(left as f64, op, right as f64)), FieldValue::Int)
}

/// `left op right` on floats.
pub(crate) fn floats(left: f64, op: ArithmeticOp, right: f64) -> f64 {
    match op {
        ArithmeticOp::Add => left + right,
        ArithmeticOp::Sub => left - right,
        ArithmeticOp::Mul => left * right,
        ArithmeticOp::Div => left / right,
        ArithmeticOp::Mod => left % right,
        ArithmeticOp::Pow => left.powf(right),
    }
}

/// `-value`.
pub(crate) fn negate<'a>(value: FieldValue<'_>) -> FieldValue<'a> {
    match value {
        FieldValue::Int(value) => value.checked_neg().map_or(FieldValue::Float(-(value as f64)), FieldValue::Int),
        FieldValue::Duration(nanos) => {
            nanos.checked_neg().map_or(FieldValue::Float(-(nanos as f64)), FieldValue::Duration)
        }
        FieldValue::Float(value) => FieldValue::Float(-value),
        _ => FieldValue::Nil,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldValue::{Duration, Float, Int, Nil};

    /// Scenario: every operator on whole numbers, with overflow and zero divisors.
    /// Guarantee: results are exact integers where they fit, floats where they do not, nil where there is none.
    #[test]
    fn whole_numbers() {
        assert_eq!(calculate(Int(7), ArithmeticOp::Div, Int(2)), Int(3));
        assert_eq!(calculate(Int(-7), ArithmeticOp::Mod, Int(2)), Int(-1));
        assert_eq!(calculate(Int(2), ArithmeticOp::Pow, Int(10)), Int(1024));
        assert_eq!(calculate(Int(2), ArithmeticOp::Pow, Int(-1)), Float(0.5));
        assert_eq!(calculate(Int(1), ArithmeticOp::Div, Int(0)), Nil);
        assert_eq!(calculate(Int(i64::MAX), ArithmeticOp::Add, Int(1)), Float(9_223_372_036_854_775_808.0));
        assert_eq!(calculate(Int(i64::MIN), ArithmeticOp::Mod, Int(-1)), Int(0));
    }

    /// Scenario: durations combined with durations and numbers.
    /// Guarantee: what is still a length of time stays a duration, ratios become floats.
    #[test]
    fn durations() {
        assert_eq!(calculate(Duration(5), ArithmeticOp::Sub, Duration(7)), Duration(-2));
        assert_eq!(calculate(Duration(10), ArithmeticOp::Div, Int(4)), Duration(3));
        assert_eq!(calculate(Float(1.5), ArithmeticOp::Mul, Duration(10)), Duration(15));
        assert_eq!(calculate(Duration(10), ArithmeticOp::Div, Duration(4)), Float(2.5));
        assert_eq!(calculate(Duration(10), ArithmeticOp::Add, FieldValue::Str("x")), Nil);
    }
}
