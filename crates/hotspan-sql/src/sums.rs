//! `sum` of whole numbers, without the wrong ones: DataFusion's wraps around where 64 bits do not hold it.
//!
//! Rows are added up in 128 bits, which no number of rows can fill. So an answer does not depend on the order in which they
//! come, nor on how they were split (R3), and only the sum itself has to fit.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature,
};

/// What the views of rollups sum by.
pub(crate) const SATURATING_SUM: &str = "saturating_sum";

/// The type of a sum that is not whole yet.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// `sum`, which says so where 64 bits do not hold it.
pub(crate) fn checked_sum() -> AggregateUDF {
    WholeSum { name: "sum", sum: sum_udaf(), beyond: Beyond::Refused }.into()
}

/// A sum that stays at the largest number.
pub(crate) fn saturating_sum() -> AggregateUDF {
    WholeSum { name: SATURATING_SUM, sum: sum_udaf(), beyond: Beyond::Largest }.into()
}

/// What becomes of a sum that 64 bits do not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Beyond {
    Refused,
    Largest,
}

/// What a sum has been asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Whole {
    is_signed: bool,
    beyond: Beyond,
}

impl Whole {
    fn wide(self, column: &ArrayRef, row: usize) -> i128 {
        match self.is_signed {
            true => i128::from(column.as_primitive::<Int64Type>().value(row)),
            false => i128::from(column.as_primitive::<UInt64Type>().value(row)),
        }
    }

    /// The sum of a column; none where nothing is in it.
    fn total(self, column: &ArrayRef) -> Option<i128> {
        let total = |values: &mut dyn Iterator<Item = i128>| values.reduce(|sum, value| sum + value);
        match self.is_signed {
            true => total(&mut column.as_primitive::<Int64Type>().iter().flatten().map(i128::from)),
            false => total(&mut column.as_primitive::<UInt64Type>().iter().flatten().map(i128::from)),
        }
    }

    fn fitting(self, sum: i128) -> Result<i128> {
        let (least, most) = match self.is_signed {
            true => (i128::from(i64::MIN), i128::from(i64::MAX)),
            false => (0, i128::from(u64::MAX)),
        };
        if (least..=most).contains(&sum) {
            return Ok(sum);
        }
        match self.beyond {
            Beyond::Largest => Ok(sum.clamp(least, most)),
            Beyond::Refused => Err(DataFusionError::Execution(format!(
                "a sum overflows: it is {sum}, and whole numbers go from {least} to {most}; \
                 sum(CAST(x AS DOUBLE)) is nearly exact, sum(CAST(x AS DECIMAL(38, 0))) exactly"
            ))),
        }
    }

    fn array(self, sums: impl Iterator<Item = Option<i128>>) -> Result<ArrayRef> {
        let sums = sums.map(|sum| sum.map(|sum| self.fitting(sum)).transpose()).collect::<Result<Vec<_>>>()?;
        // What is fitting is not cut by these.
        Ok(match self.is_signed {
            true => Arc::new(sums.into_iter().map(|sum| sum.map(|sum| sum as i64)).collect::<Int64Array>()),
            false => Arc::new(sums.into_iter().map(|sum| sum.map(|sum| sum as u64)).collect::<UInt64Array>()),
        })
    }

    fn scalar(self, sum: Option<i128>) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.array(std::iter::once(sum))?, 0)
    }
}

/// DataFusion's own sum, in all but whole numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeSum {
    name: &'static str,
    sum: Arc<AggregateUDF>,
    beyond: Beyond,
}

impl WholeSum {
    fn whole(&self, kind: &DataType) -> Option<Whole> {
        let is_signed = match kind {
            DataType::Int64 => true,
            DataType::UInt64 => false,
            _ => return None,
        };
        Some(Whole { is_signed, beyond: self.beyond })
    }
}

impl AggregateUDFImpl for WholeSum {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        self.sum.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.sum.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(match self.whole(arguments.return_field.data_type()) {
            Some(whole) if arguments.is_distinct => {
                Box::new(DistinctTotal { whole, values: self.sum.accumulator(arguments)? })
            }
            Some(whole) => Box::new(Total { whole, sum: 0, rows: 0 }),
            None => self.sum.accumulator(arguments)?,
        })
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(match self.whole(arguments.return_field.data_type()) {
            Some(whole) if arguments.is_distinct => {
                Box::new(DistinctTotal { whole, values: self.sum.create_sliding_accumulator(arguments)? })
            }
            Some(whole) => Box::new(Total { whole, sum: 0, rows: 0 }),
            None => self.sum.create_sliding_accumulator(arguments)?,
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if arguments.is_distinct || self.whole(arguments.return_type()).is_none() {
            return self.sum.state_fields(arguments);
        }
        Ok(vec![Arc::new(Field::new(format_state_name(arguments.name, "sum"), WIDE, true))])
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.sum.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match self.whole(arguments.return_field.data_type()) {
            Some(whole) => Box::new(Totals { whole, sums: Vec::new() }),
            None => self.sum.create_groups_accumulator(arguments)?,
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.sum.inner().set_monotonicity(kind)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.sum.documentation()
    }
}

/// The sum of one group, or of a window that slides.
#[derive(Debug)]
struct Total {
    whole: Whole,
    sum: i128,
    /// How many values there are; without any there is no sum.
    rows: u64,
}

impl Total {
    fn so_far(&self) -> Option<i128> {
        (self.rows > 0).then_some(self.sum)
    }
}

fn values_in(column: &ArrayRef) -> u64 {
    (column.len() - column.null_count()) as u64
}

impl Accumulator for Total {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.sum += self.whole.total(&columns[0]).unwrap_or(0);
        self.rows += values_in(&columns[0]);
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.sum -= self.whole.total(&columns[0]).unwrap_or(0);
        self.rows -= values_in(&columns[0]);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum += states[0].as_primitive::<Decimal128Type>().iter().flatten().sum::<i128>();
        self.rows += values_in(&states[0]);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(self.so_far(), 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.whole.scalar(self.so_far())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The sum of values that count once: DataFusion tells them apart, and they are summed here.
#[derive(Debug)]
struct DistinctTotal {
    whole: Whole,
    values: Box<dyn Accumulator>,
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(columns)
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.values.retract_batch(columns)
    }

    fn supports_retract_batch(&self) -> bool {
        self.values.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.values.state()?;
        let Some(ScalarValue::List(list)) = state.first() else {
            return datafusion::common::internal_err!("distinct values are no list");
        };
        self.whole.scalar(self.whole.total(list.values()))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.size()
    }
}

/// The sums of many groups.
#[derive(Debug)]
struct Totals {
    whole: Whole,
    /// By the number of the group; none where nothing was in it yet.
    sums: Vec<Option<i128>>,
}

impl Totals {
    fn add(&mut self, group: usize, value: i128) {
        let sum = self.sums[group].get_or_insert(0);
        *sum += value;
    }
}

/// Whether a row counts.
fn is_wanted(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

fn wide_array(sums: impl Iterator<Item = Option<i128>>) -> ArrayRef {
    Arc::new(sums.collect::<Decimal128Array>().with_data_type(WIDE))
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        group_count: usize,
    ) -> Result<()> {
        self.sums.resize(group_count, None);
        let column = &columns[0];
        for (row, group) in groups.iter().enumerate() {
            if column.is_valid(row) && is_wanted(filter, row) {
                self.add(*group, self.whole.wide(column, row));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], group_count: usize) -> Result<()> {
        self.sums.resize(group_count, None);
        for (group, sum) in groups.iter().zip(states[0].as_primitive::<Decimal128Type>()) {
            if let Some(sum) = sum {
                self.add(*group, sum);
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let column = &columns[0];
        let value = |row| (column.is_valid(row) && is_wanted(filter, row)).then(|| self.whole.wide(column, row));
        Ok(vec![wide_array((0..column.len()).map(value))])
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![wide_array(emit.take_needed(&mut self.sums).into_iter())])
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.whole.array(emit.take_needed(&mut self.sums).into_iter())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sums.capacity() * size_of::<Option<i128>>()
    }
}
