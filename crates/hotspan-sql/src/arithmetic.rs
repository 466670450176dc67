//! `+`, `-` and `*` of whole numbers, without the wrong ones: DataFusion's wrap around where the type does not hold the result.
//!
//! Its own check (`with_fail_on_overflow`) is told to expressions that are ready to run, and constants are computed while a
//! statement is planned, by expressions that nobody else sees. So each sign becomes a call of a function that checks, as soon
//! as the types are known: rows and constants then go the same way. Of constants that is when they are read, since the arguments
//! of table functions never stand in a plan.

use std::sync::Arc;

use arrow::compute::kernels::numeric::{add, mul, neg, sub};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Puts calls that check in the place of signs. Comes after the rules that make both sides of a sign the same type.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &'static str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(with_checks)?.data)
    }
}

/// Puts calls that check in the place of signs between constants.
#[derive(Debug)]
pub(crate) struct CheckedConstants;

impl ExprPlanner for CheckedConstants {
    fn plan_binary_op(&self, sign: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = sign;
        let found = match op {
            BinaryOperator::Plus => Some((Sign::Plus, Operator::Plus)),
            BinaryOperator::Minus => Some((Sign::Minus, Operator::Minus)),
            BinaryOperator::Multiply => Some((Sign::Times, Operator::Multiply)),
            _ => None,
        };
        // The right side first: it is the short one of `1 + 1 + 1 + …`.
        if let Some((sign, operator)) = found
            && let Some(right_kind) = constant_type(&right)
            && let Some(left_kind) = constant_type(&left)
            && let Ok((kind, same)) = BinaryTypeCoercer::new(&left_kind, &operator, &right_kind).get_input_types()
            && kind == same
            && kind.is_integer()
        {
            let operands = [(left, left_kind), (right, right_kind)];
            let brought = operands.map(|(expr, from)| if from == kind { expr } else { cast(expr, kind.clone()) });
            return Ok(PlannerResult::Planned(call(sign, kind, brought.to_vec())));
        }
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// The type of whole numbers that neither rows nor other statements have a part in; none of everything else.
fn constant_type(expr: &Expr) -> Option<DataType> {
    let is_call = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if checked_sign(call).is_some());
    let has_part = |expr: &Expr| {
        !matches!(
            expr,
            Expr::Literal(..)
                | Expr::Negative(_)
                | Expr::BinaryExpr(_)
                | Expr::Cast(_)
                | Expr::TryCast(_)
                | Expr::Case(_)
                | Expr::ScalarFunction(_)
        )
    };
    // A call that checks was made of constants: signs of rows are replaced later.
    if !is_call(expr) && expr.exists(|expr| Ok(has_part(expr))).unwrap_or(true) {
        return None;
    }
    // What has no type yet gets it later, or an error that says why not.
    whole_type(expr, &DFSchema::empty()).unwrap_or_default()
}

fn with_checks(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&plan.inputs());
    // Columns keep the names that signs have given them.
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let checked = expr.transform_up(|expr| checked(expr, &schema))?;
        Ok(checked.update_data(|expr| name.restore(expr)))
    })
}

/// The call that does the same and checks; what is no arithmetic of whole numbers stays as it is.
fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some((sign, kind)) = whole_sign(&expr, schema)? else { return Ok(Transformed::no(expr)) };
    let operands = match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => vec![*left, *right],
        Expr::Negative(operand) => vec![*operand],
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::yes(call(sign, kind, operands)))
}

fn call(sign: Sign, kind: DataType, operands: Vec<Expr>) -> Expr {
    let signature = Signature::any(operands.len(), Volatility::Immutable);
    ScalarUDF::new_from_impl(CheckedSign { sign, kind, signature }).call(operands)
}

/// The sign of an expression, and the type of its whole numbers.
fn whole_sign(expr: &Expr, schema: &DFSchema) -> Result<Option<(Sign, DataType)>> {
    let (sign, left, right) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) => (Sign::Plus, left, right),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => (Sign::Minus, left, right),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right }) => (Sign::Times, left, right),
        Expr::Negative(operand) => (Sign::Negative, operand, operand),
        _ => return Ok(None),
    };
    // The right side first: it is the short one of `1 + 1 + 1 + …`.
    let Some(kind) = whole_type(right, schema)? else { return Ok(None) };
    let is_same = whole_type(left, schema)?.as_ref() == Some(&kind);
    Ok(is_same.then_some((sign, kind)))
}

/// The type of whole numbers; none of everything else.
fn whole_type(expr: &Expr, schema: &DFSchema) -> Result<Option<DataType>> {
    if let Expr::ScalarFunction(call) = expr
        && let Some(checked) = checked_sign(call)
    {
        // Known without going down into it once more for each of its levels.
        return Ok(Some(checked.kind.clone()));
    }
    let kind = expr.get_type(schema)?;
    Ok(kind.is_integer().then_some(kind))
}

fn checked_sign(call: &ScalarFunction) -> Option<&CheckedSign> {
    call.func.inner().downcast_ref()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sign {
    Plus,
    Minus,
    Times,
    Negative,
}

/// A sign between (or before) whole numbers of one type, whose result is of that type too.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSign {
    sign: Sign,
    kind: DataType,
    signature: Signature,
}

impl CheckedSign {
    fn result(&self, operands: &[ColumnarValue]) -> Result<ColumnarValue> {
        match (self.sign, operands) {
            (Sign::Plus, [left, right]) => apply(left, right, add),
            (Sign::Minus, [left, right]) => apply(left, right, sub),
            (Sign::Times, [left, right]) => apply(left, right, mul),
            (Sign::Negative, [ColumnarValue::Array(array)]) => Ok(ColumnarValue::Array(neg(array)?)),
            (Sign::Negative, [ColumnarValue::Scalar(scalar)]) => Ok(ColumnarValue::Scalar(scalar.arithmetic_negate()?)),
            _ => datafusion::common::internal_err!("{} of {} operands", self.name(), operands.len()),
        }
    }

    /// What is too large is told with the way around it.
    fn told(&self, error: DataFusionError) -> DataFusionError {
        match error {
            DataFusionError::ArrowError(error, backtrace) => match *error {
                ArrowError::ArithmeticOverflow(text) => DataFusionError::Execution(format!(
                    "a number overflows: {} does not fit into {}; with CAST(x AS DOUBLE) it is nearly exact, \
                     with CAST(x AS DECIMAL(38, 0)) exact",
                    text.trim_start_matches("Overflow happened on: "),
                    self.kind
                )),
                other => DataFusionError::ArrowError(Box::new(other), backtrace),
            },
            other => other,
        }
    }
}

impl ScalarUDFImpl for CheckedSign {
    fn name(&self) -> &'static str {
        match self.sign {
            Sign::Plus => "+",
            Sign::Minus | Sign::Negative => "-",
            Sign::Times => "*",
        }
    }

    fn schema_name(&self, operands: &[Expr]) -> Result<String> {
        let names: Vec<String> = operands.iter().map(|operand| operand.schema_name().to_string()).collect();
        Ok(match names.as_slice() {
            [operand] => format!("(- {operand})"),
            names => names.join(&format!(" {} ", self.name())),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.kind.clone(), is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.result(&args.args).map_err(|error| self.told(error))
    }
}
