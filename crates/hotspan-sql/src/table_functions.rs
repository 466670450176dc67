//! Arguments of table functions, such as those of `range(1, 10)`: no rule for plans sees them, since they are computed while the
//! statement is read.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;

/// Lets every table function say why its arguments can't be computed. By themselves they only say that they were not.
pub(crate) fn tell_why_arguments_fail(context: &SessionContext) {
    let functions = context.state_ref().read().table_functions().clone();
    for (name, function) in functions {
        context.register_udtf(&name, Arc::new(ComputedArguments(Arc::clone(function.function()))));
    }
}

#[derive(Debug)]
struct ComputedArguments(Arc<dyn TableFunctionImpl>);

impl TableFunctionImpl for ComputedArguments {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        for expr in args.exprs().iter().filter(|expr| !matches!(expr, Expr::Literal(..))) {
            compute(expr, args.session())?;
        }
        self.0.call_with_args(args)
    }
}

/// Computes what could not be made a constant.
fn compute(expr: &Expr, session: &dyn Session) -> Result<()> {
    let no_columns = Arc::new(Schema::empty());
    let one_row = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(no_columns, Vec::new(), &one_row)?;
    session.create_physical_expr(expr.clone(), &DFSchema::empty())?.evaluate(&row)?;
    Ok(())
}
