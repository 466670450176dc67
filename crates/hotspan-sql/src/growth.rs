//! Functions whose result may be far larger than what they are given, kept within bounds.
//!
//! The memory of a statement is counted where it sorts, groups and joins. What an expression makes is not, so that
//! `repeat('x', 2000000000)` alone would take gigabytes; here it is refused before it is made. What is joined from pieces
//! is as large as these are, and doubles as often as a statement says so (`s || s`): it is counted for as long as it is there.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use datafusion::prelude::SessionContext;
use hashbrown::HashMap;

use crate::made::{CountedConcatenation, StatementMemory};

/// The longest text, and the most elements, that one call may make for one row.
const MOST: u64 = 1 << 16;

const DAY_NANOS: i64 = 86_400_000_000_000;

/// How large a result may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The first argument, as often as the second says.
    Repeats,
    /// As long as the second argument says.
    Fills,
    /// As many as the second argument says, the third for those that are new.
    FillsWith,
    /// The first argument, with the third in place of each second.
    Replaces,
    /// The elements of the first argument, with the third in place of some.
    ReplacesElements,
    /// From one argument to another in steps.
    Steps,
    /// All arguments, or twice the first.
    Joins,
    /// All arguments but the first, with that between them.
    JoinsWith,
    /// The elements of the first argument, with the second between them, the third in place of those that are null.
    JoinsElements,
}

const GROWING: [(&str, Growth); 21] = [
    ("repeat", Growth::Repeats),
    ("lpad", Growth::Fills),
    ("rpad", Growth::Fills),
    ("array_repeat", Growth::Repeats),
    ("array_resize", Growth::FillsWith),
    ("replace", Growth::Replaces),
    ("regexp_replace", Growth::Replaces),
    ("array_replace", Growth::ReplacesElements),
    ("array_replace_n", Growth::ReplacesElements),
    ("array_replace_all", Growth::ReplacesElements),
    ("range", Growth::Steps),
    ("generate_series", Growth::Steps),
    ("concat", Growth::Joins),
    ("overlay", Growth::Joins),
    ("encode", Growth::Joins),
    ("make_array", Growth::Joins),
    ("array_append", Growth::Joins),
    ("array_prepend", Growth::Joins),
    ("array_concat", Growth::Joins),
    ("concat_ws", Growth::JoinsWith),
    ("array_to_string", Growth::JoinsElements),
];

/// Puts bounded functions in the place of those that have none, by whatever name or sign they are called.
pub(crate) fn bound_functions(context: &mut SessionContext, memory: &StatementMemory) -> Result<()> {
    let mut bounded = HashMap::new();
    for (name, growth) in GROWING {
        let function = context.state_ref().read().scalar_functions().get(name).cloned();
        if let Some(function) = function {
            let function = BoundedFunction { function, growth, memory: memory.clone() };
            let function = Arc::new(ScalarUDF::new_from_impl(function));
            context.register_udf(Arc::clone(&function))?;
            bounded.insert(name, function);
        }
    }
    let concatenation = Arc::new(ScalarUDF::new_from_impl(CountedConcatenation::new(memory.clone())));
    context.register_function_rewrite(Arc::new(BoundedExpressions { bounded, concatenation }))
}

/// Signs are planned as functions of their own: `||` of arrays, `[…]`. That of texts is no function at all.
#[derive(Debug)]
struct BoundedExpressions {
    bounded: HashMap<&'static str, Arc<ScalarUDF>>,
    concatenation: Arc<ScalarUDF>,
}

impl FunctionRewrite for BoundedExpressions {
    fn name(&self) -> &'static str {
        "bounded_expressions"
    }

    fn rewrite(&self, expr: Expr, _: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::ScalarFunction(mut call) => match self.bounded.get(call.func.name()) {
                Some(bounded) if !Arc::ptr_eq(bounded, &call.func) => {
                    call.func = Arc::clone(bounded);
                    Transformed::yes(Expr::ScalarFunction(call))
                }
                _ => Transformed::no(Expr::ScalarFunction(call)),
            },
            Expr::BinaryExpr(concatenation) if concatenation.op == Operator::StringConcat => {
                Transformed::yes(self.concatenation.call(vec![Expr::BinaryExpr(concatenation)]))
            }
            other => Transformed::no(other),
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedFunction {
    function: Arc<ScalarUDF>,
    growth: Growth,
    memory: StatementMemory,
}

impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let size = self.growth.most_of(&args.args)?;
        if size > MOST {
            let name = self.name();
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{name} would make up to {size} bytes or elements for one row, and may make {MOST}"
            )));
        }
        self.memory.counted(self.name(), self.function.invoke_with_args(args)?)
    }
}

impl Growth {
    /// The most that a row of these arguments can grow to; zero where nothing grows.
    fn most_of(self, args: &[ColumnarValue]) -> Result<u64> {
        let text = |at: usize| args.get(at).map_or(0, longest);
        let count = |at: usize| args.get(at).map_or(Ok(0), largest);
        let width = |at: usize| args.get(at).map_or(Ok(1), widest);
        let elements = |at: usize| args.get(at).map_or(Ok(0), most_elements);
        Ok(match self {
            Self::Repeats => width(0)?.saturating_mul(count(1)?),
            Self::Fills => count(1)?,
            Self::FillsWith => width(2)?.saturating_mul(count(1)?),
            Self::Replaces if text(2) <= 1 => 0,
            Self::Replaces => (text(0) + 1).saturating_mul(text(2)),
            Self::ReplacesElements => width(2)?.saturating_mul(elements(0)?),
            Self::Steps => steps(args)?,
            Self::Joins => 0,
            Self::JoinsWith => text(0).saturating_mul(args.len() as u64),
            Self::JoinsElements => text(1).max(text(2)).saturating_mul(elements(0)?),
        })
    }
}

/// The size of the largest value, texts in bytes, numbers one each; of arrays, all of them together.
fn widest(value: &ColumnarValue) -> Result<u64> {
    Ok(match value.data_type() {
        kind if kind.is_nested() => value.to_array(1)?.get_array_memory_size() as u64,
        _ => longest(value).max(1),
    })
}

/// The most elements that an array of a row has.
fn most_elements(value: &ColumnarValue) -> Result<u64> {
    let array = value.to_array(1)?;
    Ok(match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().offsets().lengths().max().unwrap_or(0) as u64,
        DataType::LargeList(_) => array.as_list::<i64>().offsets().lengths().max().unwrap_or(0) as u64,
        DataType::FixedSizeList(_, length) => u64::try_from(*length).unwrap_or(0),
        _ => 0,
    })
}

/// The length of the longest text.
fn longest(value: &ColumnarValue) -> u64 {
    let length = match value {
        ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten().map(str::len),
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().iter().flatten().map(str::len).max(),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().map(str::len).max(),
            DataType::Utf8View => array.as_string_view().iter().flatten().map(str::len).max(),
            _ => None,
        },
    };
    length.unwrap_or(0) as u64
}

/// The largest number; zero where all are negative.
fn largest(value: &ColumnarValue) -> Result<u64> {
    Ok(bounds(value)?.map_or(0, |(_, most)| u64::try_from(most).unwrap_or(0)))
}

/// The least and the largest number, times in nanoseconds.
fn bounds(value: &ColumnarValue) -> Result<Option<(i64, i64)>> {
    let nanos = match value.data_type() {
        DataType::Date32 => DAY_NANOS,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1000,
        _ => 1,
    };
    let bounds = match value.cast_to(&DataType::Int64, None)? {
        ColumnarValue::Scalar(ScalarValue::Int64(number)) => number.map(|number| (number, number)),
        ColumnarValue::Scalar(_) => None,
        ColumnarValue::Array(array) => {
            let numbers = array.as_primitive::<Int64Type>();
            min(numbers).zip(max(numbers))
        }
    };
    Ok(bounds.map(|(least, most)| (least.saturating_mul(nanos), most.saturating_mul(nanos))))
}

/// How many elements `range(stop)`, `range(start, stop)` or `range(start, stop, step)` has at most.
fn steps(args: &[ColumnarValue]) -> Result<u64> {
    let (start, stop) = match args {
        [stop] => (Some((0, 0)), bounds(stop)?),
        [start, stop, ..] => (bounds(start)?, bounds(stop)?),
        [] => (None, None),
    };
    let (Some(start), Some(stop)) = (start, stop) else { return Ok(0) };
    let length = stop.1.abs_diff(start.0).max(stop.0.abs_diff(start.1));
    Ok(length / args.get(2).map_or(Ok(1), shortest_step)?.max(1))
}

/// The shortest step, however it is told.
fn shortest_step(value: &ColumnarValue) -> Result<u64> {
    if value.data_type() != DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano) {
        return Ok(bounds(value)?.map_or(1, |(least, most)| least.unsigned_abs().min(most.unsigned_abs())));
    }
    let array = value.to_array(1)?;
    let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
    let lengths = intervals.iter().flatten().map(|step| {
        let days = i64::from(step.months) * 28 + i64::from(step.days);
        days.saturating_mul(DAY_NANOS).saturating_add(step.nanoseconds).unsigned_abs()
    });
    Ok(lengths.min().unwrap_or(1))
}
