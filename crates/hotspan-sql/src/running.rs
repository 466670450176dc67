//! Statements run on threads of their own.
//!
//! A plan over constants or over one huge row does not yield. On the threads that take requests it would hold those up, and
//! nobody would be there to say that its time is over.

use std::future::Future;
use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::error::SqlError;

/// A planner goes down into a statement as deep as that is, several calls a level: 8,192 words and signs nest no deeper than
/// this has room for, even without optimisation. Only what is used of it takes memory.
const STACK_BYTES: usize = 256 << 20;

/// How many threads may wait inside of functions. Tokio has 512 for these and for reading files.
const MAX_WAITING: usize = 256;

/// The threads. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SqlThreads(Arc<OwnedRuntime>);

#[derive(Debug)]
struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        // Whoever drops the last one may itself be a task, which must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Where a statement that runs puts its answer.
pub(crate) struct AnswerSink {
    /// The columns, or why there are none.
    pub(crate) schema: oneshot::Sender<Result<SchemaRef, SqlError>>,
    /// The rows; an error ends them.
    pub(crate) rows: mpsc::Sender<Result<RecordBatch, SqlError>>,
}

/// A statement that runs. Dropping it ends the work, at the latest when that next yields.
pub(crate) struct RunningStatement {
    schema: Option<oneshot::Receiver<Result<SchemaRef, SqlError>>>,
    rows: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    task: JoinSet<()>,
}

impl SqlThreads {
    /// As many as there are cores, and some more while these wait.
    pub(crate) fn start() -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("sql").thread_stack_size(STACK_BYTES).enable_all();
        Ok(Self(Arc::new(OwnedRuntime(Some(builder.build()?)))))
    }

    /// Runs a statement.
    pub(crate) fn run<F>(&self, statement: impl FnOnce(AnswerSink) -> F) -> RunningStatement
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (schema_out, schema) = oneshot::channel();
        let (rows_out, rows) = mpsc::channel(1);
        let mut task = JoinSet::new();
        if let Some(runtime) = &self.0.0 {
            task.spawn_on(statement(AnswerSink { schema: schema_out, rows: rows_out }), runtime.handle());
        }
        RunningStatement { schema: Some(schema), rows, task }
    }
}

impl RunningStatement {
    /// The columns of the answer, once.
    pub(crate) async fn schema(&mut self) -> Result<SchemaRef, SqlError> {
        match self.schema.take() {
            Some(schema) => schema.await.unwrap_or_else(|_| Err(broken_off())),
            None => Err(broken_off()),
        }
    }

    /// The next rows.
    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        if let Some(rows) = self.rows.recv().await {
            return Some(rows);
        }
        // An end that comes from a panic is none.
        match self.task.join_next().await {
            Some(Err(_)) => Some(Err(broken_off())),
            _ => None,
        }
    }
}

/// Waits, on a thread of a statement, for what a function needs. Another thread takes over the thread's other work, since what
/// is waited for may need it done.
pub(crate) fn wait_for<T>(needed: impl Future<Output = DataFusionResult<T>>) -> DataFusionResult<T> {
    // Each that waits holds a thread of the pool that files are read with, which must never run out.
    static WAITING: Semaphore = Semaphore::const_new(MAX_WAITING);
    let Ok(_turn) = WAITING.try_acquire() else {
        return Err(DataFusionError::ResourcesExhausted(format!(
            "{MAX_WAITING} threads of statements read symbols already"
        )));
    };
    tokio::task::block_in_place(|| Handle::current().block_on(needed))
}

fn broken_off() -> SqlError {
    SqlError::Failed("the statement broke off; the log says where".to_owned())
}
