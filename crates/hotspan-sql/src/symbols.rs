//! Functions that turn call-path ids into names: `function(path)`, `location(path)`, `stack(path)`, and
//! `collapsed(flame_merge(path, value))`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, UInt64Type};
use async_trait::async_trait;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use hotspan_model::TenantId;
use hotspan_query::{Engine, SampleFrame};

use crate::flame_merge::{entries, merged_type};

/// What a function makes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Text {
    /// The function at the leaf.
    Function,
    /// Its file and line.
    Location,
    /// All functions, the root first, joined by semicolons.
    Stack,
    /// Merged paths, one a line, as collapsed stacks.
    Collapsed,
}

/// The functions, ready to be registered.
pub(crate) fn functions(engine: &Engine, tenant: &TenantId) -> Vec<ScalarUDF> {
    let texts = [Text::Function, Text::Location, Text::Stack, Text::Collapsed];
    let function = |text: Text| {
        let argument = if text == Text::Collapsed { merged_type() } else { DataType::UInt64 };
        let signature = Signature::exact(vec![argument], Volatility::Stable);
        let function = SymbolFunction { engine: engine.clone(), tenant: tenant.clone(), text, signature };
        AsyncScalarUDF::new(Arc::new(function)).into_scalar_udf()
    };
    texts.into_iter().map(function).collect()
}

#[derive(Debug)]
struct SymbolFunction {
    engine: Engine,
    tenant: TenantId,
    text: Text,
    signature: Signature,
}

// Within one session, engine and tenant are always the same.
impl PartialEq for SymbolFunction {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.tenant == other.tenant
    }
}

impl Eq for SymbolFunction {}

impl Hash for SymbolFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.text, &self.tenant).hash(state);
    }
}

impl ScalarUDFImpl for SymbolFunction {
    fn name(&self) -> &str {
        match self.text {
            Text::Function => "function",
            Text::Location => "location",
            Text::Stack => "stack",
            Text::Collapsed => "collapsed",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} reads symbols, and is only called where it may wait for them", self.name())
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for SymbolFunction {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Some(argument) = arguments.args.into_iter().next() else { return internal_err!("an argument is missing") };
        let column = argument.into_array(rows)?;
        let texts = match self.text {
            Text::Collapsed => self.collapsed(&column).await?,
            text => self.of_paths(&column, text).await?,
        };
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}

impl SymbolFunction {
    async fn of_paths(&self, column: &ArrayRef, text: Text) -> Result<StringArray> {
        let paths = column.as_primitive::<UInt64Type>();
        let stacks = self.stacks(paths.values()).await?;
        let texts = stacks.iter().enumerate().map(|(row, stack)| {
            let leaf = stack.first().filter(|_| paths.is_valid(row))?;
            Some(match text {
                Text::Location => location(leaf),
                Text::Stack => joined(stack),
                Text::Function | Text::Collapsed => leaf.function.clone(),
            })
        });
        Ok(texts.collect())
    }

    async fn collapsed(&self, column: &ArrayRef) -> Result<StringArray> {
        let lists = column.as_list::<i32>();
        let mut texts: Vec<Option<String>> = Vec::with_capacity(lists.len());
        for row in 0..lists.len() {
            if lists.is_null(row) {
                texts.push(None);
                continue;
            }
            let list = lists.value(row);
            let (paths, values): (Vec<u64>, Vec<i64>) = entries(list.as_struct()).unzip();
            let stacks = self.stacks(&paths).await?;
            let lines: Vec<String> =
                stacks.iter().zip(values).map(|(stack, value)| format!("{} {value}", joined(stack))).collect();
            texts.push(Some(lines.join("\n")));
        }
        Ok(texts.into_iter().collect())
    }

    /// The frames of each path, the leaf first.
    async fn stacks(&self, paths: &[u64]) -> Result<Vec<Vec<SampleFrame>>> {
        self.engine
            .stacks(&self.tenant, paths)
            .await
            .map_err(|error| DataFusionError::Execution(format!("reading symbols: {error}")))
    }
}

fn joined(stack: &[SampleFrame]) -> String {
    let names: Vec<&str> = stack.iter().rev().map(|frame| frame.function.as_str()).collect();
    names.join(";")
}

fn location(frame: &SampleFrame) -> String {
    if frame.line == 0 { frame.file.clone() } else { format!("{}:{}", frame.file, frame.line) }
}
