//! From a statement to a stream of batches, within its limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SendableRecordBatchStream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use hotspan_lake::{Snapshot, Table};
use hotspan_model::TenantId;
use hotspan_query::{Engine, QueryTicket};

use crate::arithmetic::{CheckedArithmetic, CheckedConstants};
use crate::error::{SqlError, message_of};
use crate::flame_merge::flame_merge;
use crate::growth::bound_functions;
use crate::left_out::refuse_left_out;
use crate::limits::SqlOptions;
use crate::made::StatementMemory;
use crate::read_only::{QUESTIONS, refuse_writing};
use crate::running::{AnswerSink, SqlThreads};
use crate::sums::{SATURATING_SUM, checked_sum, saturating_sum};
use crate::table::LakeTable;
use crate::table_functions::tell_why_arguments_fail;
use crate::views::{PIECES_SCHEMA, joining};
use crate::{symbols, system};

const CATALOG: &str = "lake";
const MAIN_SCHEMA: &str = "main";
/// The most words and signs of a statement.
const MAX_TOKENS: usize = 8192;

/// Answers statements about a lake. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqlEngine {
    engine: Engine,
    options: SqlOptions,
    threads: SqlThreads,
    /// What all statements share.
    memory: Arc<dyn MemoryPool>,
}

/// The answer to a statement, while it is being computed. Dropping it ends the work.
pub struct SqlAnswer {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows; an error ends them.
    pub batches: BoxStream<'static, Result<RecordBatch, SqlError>>,
}

impl std::fmt::Debug for SqlAnswer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SqlAnswer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl SqlEngine {
    /// An engine over the lake that another engine asks, with threads of its own.
    pub fn start(engine: Engine, options: SqlOptions) -> io::Result<Self> {
        let memory = Arc::new(GreedyMemoryPool::new(options.memory_bytes));
        Ok(Self { engine, options, threads: SqlThreads::start()?, memory })
    }

    /// Begins to answer a statement. The first batch has been computed when this returns, so that most errors are
    /// known before a caller answers anything.
    ///
    /// Boxed, since futures are compiled where they are awaited: all of the planner would be, once more, in each crate that
    /// asks.
    pub fn query<'a>(&'a self, tenant: &'a TenantId, statement: &'a str) -> BoxFuture<'a, Result<SqlAnswer, SqlError>> {
        self.answer(tenant, statement).boxed()
    }

    async fn answer(&self, tenant: &TenantId, statement: &str) -> Result<SqlAnswer, SqlError> {
        let ticket = self.engine.queries().begin(tenant, "sql", statement);
        match self.begin(tenant, statement).await {
            Ok((schema, first, rest)) => Ok(SqlAnswer { schema, batches: watched(first, rest, ticket) }),
            Err(error) => {
                ticket.failed(&error);
                Err(error)
            }
        }
    }

    async fn begin(
        &self,
        tenant: &TenantId,
        statement: &str,
    ) -> Result<(SchemaRef, Option<RecordBatch>, Batches), SqlError> {
        let limit = self.options.time_limit;
        let deadline = tokio::time::Instant::now() + limit;
        let (this, tenant, statement) = (self.clone(), tenant.clone(), statement.to_owned());
        let mut running = self.threads.run(|sink| async move { this.run(&tenant, &statement, sink).await });
        let schema = tokio::time::timeout_at(deadline, running.schema()).await.map_err(|_| too_slow(limit))??;
        let mut rest: Batches = stream::unfold(Some(running), move |state| async move {
            let mut running = state?;
            match tokio::time::timeout_at(deadline, running.next()).await {
                Ok(Some(Ok(batch))) => Some((Ok(batch), Some(running))),
                Ok(Some(Err(error))) => Some((Err(error), None)),
                Ok(None) => None,
                Err(_) => Some((Err(too_slow(limit)), None)),
            }
        })
        // An empty answer is asked again after its end.
        .fuse()
        .boxed();
        let first = rest.next().await.transpose()?;
        Ok((schema, first, rest))
    }

    /// Plans a statement and computes its answer, until that is whole or nobody wants it any more.
    async fn run(&self, tenant: &TenantId, statement: &str, sink: AnswerSink) {
        let AnswerSink { schema: schema_sink, rows } = sink;
        let mut batches = match self.execute(tenant, statement).await {
            Ok((schema, batches)) => {
                if schema_sink.send(Ok(schema)).is_err() {
                    return;
                }
                batches
            }
            Err(error) => {
                // Nobody waits if it is not taken.
                let _ = schema_sink.send(Err(error));
                return;
            }
        };
        while let Some(batch) = batches.next().await {
            if rows.send(batch.map_err(SqlError::from)).await.is_err() {
                return;
            }
        }
    }

    async fn execute(
        &self,
        tenant: &TenantId,
        statement: &str,
    ) -> Result<(SchemaRef, SendableRecordBatchStream), SqlError> {
        refuse_endless(statement)?;
        let context = self.context(tenant).await?;
        let read_only = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let state = context.state();
        let parsed = state.sql_to_statement(statement, &state.config().options().sql_parser.dialect)?;
        refuse_writing(&parsed)?;
        refuse_left_out(&parsed)?;
        let plan = state.statement_to_plan(parsed).await?;
        read_only.verify_plan(&plan).map_err(read_only_hint)?;
        let frame = context.execute_logical_plan(plan).await?;
        // The plan knows no types that its parts were only brought to later, such as those of a union.
        let batches = frame.execute_stream().await?;
        Ok((batches.schema(), batches))
    }

    /// A session that sees one snapshot of one tenant's tables, and nothing else.
    async fn context(&self, tenant: &TenantId) -> Result<SessionContext, DataFusionError> {
        let mut config = SessionConfig::new()
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, MAIN_SCHEMA)
            .with_information_schema(true)
            .with_target_partitions(std::thread::available_parallelism().map_or(2, usize::from));
        // So that errors say where in the statement they are.
        config.options_mut().sql_parser.collect_spans = true;
        // Without a disk to spill to, a statement that needs too much is told so.
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(&self.memory))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .build_arc()?;
        let mut context = SessionContext::new_with_config_rt(config, runtime);
        let snapshot = self.engine.snapshot();
        let catalog = Arc::new(MemoryCatalogProvider::new());
        catalog.register_schema(MAIN_SCHEMA, self.tables(tenant, &snapshot, |table| joining(table).is_none())?)?;
        catalog.register_schema(PIECES_SCHEMA, self.tables(tenant, &snapshot, |table| joining(table).is_some())?)?;
        catalog.register_schema(system::SYSTEM_SCHEMA, self.system_tables(tenant, &snapshot)?)?;
        context.register_catalog(CATALOG, Arc::clone(&catalog) as Arc<dyn CatalogProvider>);
        let memory = StatementMemory::new(&self.memory);
        bound_functions(&mut context, &memory)?;
        context.register_expr_planner(Arc::new(CheckedConstants))?;
        context.add_analyzer_rule(Arc::new(CheckedArithmetic));
        tell_why_arguments_fail(&context);
        context.register_udaf(flame_merge());
        for function in symbols::functions(&self.engine, tenant, &memory) {
            context.register_udf(function);
        }
        context.register_udaf(saturating_sum());
        for table in Table::ALL {
            if let Some(statement) = joining(table) {
                let view = context.sql(statement).await?.into_view();
                context.register_table(table.name(), view)?;
            }
        }
        // The views hold what they are made of, which is nobody else's business.
        context.deregister_udaf(SATURATING_SUM);
        catalog.deregister_schema(PIECES_SCHEMA, true)?;
        context.register_udaf(checked_sum());
        Ok(context)
    }

    fn tables(
        &self,
        tenant: &TenantId,
        snapshot: &Arc<Snapshot>,
        wanted: impl Fn(Table) -> bool,
    ) -> Result<Arc<dyn SchemaProvider>, DataFusionError> {
        let schema = MemorySchemaProvider::new();
        for table in Table::ALL.into_iter().filter(|table| wanted(*table)) {
            let rows = LakeTable::new(Arc::clone(self.engine.lake()), Arc::clone(snapshot), tenant.clone(), table);
            schema.register_table(table.name().to_owned(), Arc::new(rows))?;
        }
        Ok(Arc::new(schema))
    }

    fn system_tables(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
    ) -> Result<Arc<dyn SchemaProvider>, DataFusionError> {
        let schema = MemorySchemaProvider::new();
        let tables = [
            ("segments", system::segments(snapshot, tenant)?),
            ("queries", system::queries(self.engine.queries(), tenant)?),
        ];
        for (name, batch) in tables {
            let rows = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            schema.register_table(name.to_owned(), Arc::new(rows))?;
        }
        Ok(Arc::new(schema))
    }
}

type Batches = BoxStream<'static, Result<RecordBatch, SqlError>>;

/// The batches, with the end of the query noted in the log: done, failed, or given up by whoever asked.
fn watched(first: Option<RecordBatch>, rest: Batches, ticket: QueryTicket) -> Batches {
    let batches = stream::iter(first.map(Ok)).chain(rest);
    stream::unfold((batches.boxed(), Some(ticket)), |(mut batches, mut ticket)| async move {
        match batches.next().await {
            Some(Ok(batch)) => Some((Ok(batch), (batches, ticket))),
            Some(Err(error)) => {
                if let Some(ticket) = ticket.take() {
                    ticket.failed(&error);
                }
                Some((Err(error), (batches, None)))
            }
            None => {
                if let Some(ticket) = ticket.take() {
                    ticket.done();
                }
                None
            }
        }
    })
    .boxed()
}

/// Refuses what would nest deeper than the planner has room for: no statement is deeper than it has words and signs.
fn refuse_endless(statement: &str) -> Result<(), SqlError> {
    let dialect = GenericDialect {};
    // What is no text of SQL at all is left to the parser, which says where.
    let tokens = Tokenizer::new(&dialect, statement).tokenize().unwrap_or_default();
    let count = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).count();
    if count > MAX_TOKENS {
        return Err(SqlError::Limit(format!(
            "the statement has {count} words and signs, and may have {MAX_TOKENS}; ask in several statements"
        )));
    }
    Ok(())
}

fn too_slow(limit: Duration) -> SqlError {
    SqlError::Limit(format!(
        "the statement ran longer than {} s (sql.time_limit); narrow its time range or ask for less",
        limit.as_secs_f64()
    ))
}

/// DataFusion says which statements are off; here it is said why.
fn read_only_hint(error: DataFusionError) -> SqlError {
    let text = message_of(&error);
    if text.contains("not supported: ") {
        return SqlError::Invalid(format!("{text} (SQL is read-only: {QUESTIONS})"));
    }
    SqlError::from(error)
}
