//! Functions that turn call-path ids into names: `function(path)`, `location(path)`, `stack(path)`, and
//! `collapsed(flame_merge(path, value))`.
//!
//! They read symbols, for which one has to wait. DataFusion has functions that may wait, but only columns and filters may be
//! made of those: no groups, orders, windows or joins. So these are functions like any other, and the thread waits.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use hashbrown::HashMap;
use hotspan_model::TenantId;
use hotspan_query::{Engine, SampleFrame};

use crate::flame_merge::{entries, merged_type};
use crate::made::StatementMemory;
use crate::running::wait_for;

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
pub(crate) fn functions(engine: &Engine, tenant: &TenantId, memory: &StatementMemory) -> Vec<ScalarUDF> {
    let texts = [Text::Function, Text::Location, Text::Stack, Text::Collapsed];
    let function = |text: Text| {
        let argument = if text == Text::Collapsed { merged_type() } else { DataType::UInt64 };
        let signature = Signature::exact(vec![argument], Volatility::Stable);
        let (engine, tenant, memory) = (engine.clone(), tenant.clone(), memory.clone());
        ScalarUDF::new_from_impl(SymbolFunction { engine, tenant, memory, text, signature })
    };
    texts.into_iter().map(function).collect()
}

#[derive(Debug)]
struct SymbolFunction {
    engine: Engine,
    tenant: TenantId,
    memory: StatementMemory,
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

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Some(argument) = arguments.args.into_iter().next() else { return internal_err!("an argument is missing") };
        let column = argument.into_array(rows)?;
        let texts = wait_for(async {
            match self.text {
                Text::Collapsed => self.collapsed(&column).await,
                text => self.of_paths(&column, text).await,
            }
        })?;
        Ok(ColumnarValue::Array(texts))
    }
}

impl SymbolFunction {
    /// Rows repeat their paths, so each is looked up and written once.
    async fn of_paths(&self, column: &ArrayRef, text: Text) -> Result<ArrayRef> {
        let paths = column.as_primitive::<UInt64Type>();
        let mut numbers: HashMap<u64, usize> = HashMap::new();
        let mut distinct: Vec<u64> = Vec::new();
        for path in paths.iter().flatten() {
            numbers.entry(path).or_insert_with(|| {
                distinct.push(path);
                distinct.len() - 1
            });
        }
        let write = |stack: &Vec<SampleFrame>| {
            let leaf = stack.first()?;
            Some(match text {
                Text::Location => location(leaf),
                Text::Stack => joined(stack),
                Text::Function | Text::Collapsed => leaf.function.clone(),
            })
        };
        let texts: Vec<Option<String>> = self.stacks(&distinct).await?.iter().map(write).collect();
        let rows = paths.iter().map(|path| texts.get(*numbers.get(&path?)?)?.as_deref());
        self.array(rows)
    }

    async fn collapsed(&self, column: &ArrayRef) -> Result<ArrayRef> {
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
        self.array(texts.iter().map(Option::as_deref))
    }

    /// The texts as a column, which has room among the memory of statements before it is made.
    fn array<'t>(&self, texts: impl Iterator<Item = Option<&'t str>> + Clone) -> Result<ArrayRef> {
        let (rows, bytes) =
            texts.clone().fold((0, 0), |(rows, bytes), text| (rows + 1, bytes + text.map_or(0, str::len)));
        self.memory.has_room_for(self.name(), bytes)?;
        let mut column = StringBuilder::with_capacity(rows, bytes);
        texts.for_each(|text| column.append_option(text));
        let column: ArrayRef = Arc::new(column.finish());
        self.memory.counted(self.name(), ColumnarValue::Array(column))?.into_array(rows)
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
