//! The state behind every request: settings, and the store once it is open.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use hotspan_lake::compaction::{CompactionCounters, Compactor};
use hotspan_lake::retention::{Retention, RetentionCounters};
use hotspan_lake::{Ingest, Lake, StoreClaim, Table};
use hotspan_query::span_metrics::SpanMetrics;
use hotspan_query::{Engine, WarmUp};
use hotspan_sql::SqlEngine;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::adhoc::AdHocStore;
use crate::decoding::Decoding;
use crate::listeners::BoundListener;
use crate::metrics::Metrics;
use crate::policy::PolicyStore;
use crate::query_counts::QueryCounts;
use crate::receive::RepeatedWarnings;
use crate::scrape::ScrapeStatus;
use crate::self_tracing::RequestGate;
use crate::settings::Settings;
use crate::stopping::in_time;
use crate::warm_up::read_basics;

/// A server, from before its store is open until after it is closed.
#[derive(Debug)]
pub struct App {
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) queries: QueryCounts,
    pub(crate) started: Instant,
    /// How scraping goes.
    pub(crate) scrape: ScrapeStatus,
    /// Recordings too large for memory take turns.
    pub(crate) long_recordings: Semaphore,
    pub(crate) decoding: Decoding,
    /// What was told lately about requests that are refused again and again.
    pub(crate) repeated_warnings: RepeatedWarnings,
    /// Whether what first questions need is being read ahead.
    pub(crate) warming_up: AtomicBool,
    /// There if the server traces itself.
    pub(crate) request_gate: OnceLock<RequestGate>,
    listeners: OnceLock<Vec<BoundListener>>,
    core: OnceLock<Core>,
    stopping: AtomicBool,
    background: Mutex<Option<Background>>,
}

/// What needs the store.
#[derive(Debug, Clone)]
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) sql: SqlEngine,
    pub(crate) ingest: Ingest,
    pub(crate) compaction: Arc<CompactionCounters>,
    pub(crate) retention: Arc<RetentionCounters>,
    pub(crate) span_metrics: Arc<SpanMetrics>,
    pub(crate) policies: Arc<PolicyStore>,
    pub(crate) adhoc: Arc<AdHocStore>,
}

#[derive(Debug)]
struct Background {
    tasks: Vec<(&'static str, JoinHandle<()>)>,
    stop: CancellationToken,
    lake: Arc<Lake>,
}

/// Why the store can't be used just now. Senders retry on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotServing {
    /// The store is being opened.
    #[error("starting: the store is not open yet; retry in a second")]
    Starting,
    /// The server is ending.
    #[error("stopping: the server is ending; retry in a moment, or elsewhere")]
    Stopping,
}

impl App {
    /// A server whose store is not open yet.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            settings,
            metrics: Metrics::default(),
            queries: QueryCounts::default(),
            started: Instant::now(),
            scrape: ScrapeStatus::default(),
            long_recordings: Semaphore::new(1),
            decoding: Decoding::start(cores)?,
            repeated_warnings: RepeatedWarnings::default(),
            warming_up: AtomicBool::new(true),
            request_gate: OnceLock::new(),
            listeners: OnceLock::new(),
            core: OnceLock::new(),
            stopping: AtomicBool::new(false),
            background: Mutex::new(None),
        })
    }

    pub(crate) fn set_listeners(&self, bound: Vec<BoundListener>) {
        // Set once, by whoever bound them.
        let _ = self.listeners.set(bound);
    }

    pub(crate) fn listeners(&self) -> &[BoundListener] {
        self.listeners.get().map_or(&[], Vec::as_slice)
    }

    /// Opens the store and starts what runs in the background. Gives what is left to be read ahead.
    pub async fn open(&self, claim: StoreClaim) -> anyhow::Result<WarmUp> {
        let lake = Lake::open_claimed(claim).await?;
        lake.reader().set_column_cache_bytes(self.settings.column_cache_bytes);
        let policies = Arc::new(PolicyStore::open(&self.settings.store).await?);
        let adhoc = Arc::new(AdHocStore::open(&self.settings.store, self.settings.max_adhoc_bytes)?);
        let (ingest, _committer) = Ingest::start(Arc::clone(&lake), self.settings.ingest.clone());
        let compactor = Compactor::new(Arc::clone(&lake), self.settings.compaction.clone());
        let compaction = Arc::clone(compactor.counters());
        let keeper = Retention::new(Arc::clone(&lake), self.settings.retention.clone());
        let retention = Arc::clone(keeper.counters());
        let stop = CancellationToken::new();
        let span_metrics = Arc::new(SpanMetrics::default());
        let following = Arc::clone(&span_metrics).follow(Arc::clone(&lake), stop.clone().cancelled_owned());
        let (expiring, expired) = (Arc::clone(&adhoc), stop.clone());
        let profile_age = self.settings.retention.of(Table::Profiles);
        let background = Background {
            tasks: vec![
                ("compaction", tokio::spawn(compactor.run(stop.clone()))),
                ("retention", tokio::spawn(keeper.run(stop.clone()))),
                ("span metrics", tokio::spawn(following)),
                ("ad hoc profiles", tokio::spawn(async move { expiring.expire_until(profile_age, expired).await })),
            ],
            stop,
            lake: Arc::clone(&lake),
        };
        *self.background.lock().unwrap_or_else(PoisonError::into_inner) = Some(background);
        let engine = Engine::new(lake);
        let sql = SqlEngine::start(engine.clone(), self.settings.sql.clone())?;
        let warm_up = read_basics(&engine, self.settings.warm_up).await;
        // Opened once, by `serve`.
        let _ = self.core.set(Core { engine, sql, ingest, compaction, retention, span_metrics, policies, adhoc });
        Ok(warm_up)
    }

    /// The store, if it is open and not closing.
    pub(crate) fn core(&self) -> Result<&Core, NotServing> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(NotServing::Stopping);
        }
        self.opened_core()
    }

    /// The store once it is open, also while the server ends: for what was let in before that, and is waited for.
    pub(crate) fn opened_core(&self) -> Result<&Core, NotServing> {
        self.core.get().ok_or(NotServing::Starting)
    }

    /// From here on, new requests are told to retry; those under way go on.
    pub(crate) fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Ends what runs in the background and closes the store.
    pub(crate) async fn close(&self) {
        let background = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(background) = background {
            background.stop.cancel();
            for (name, task) in background.tasks {
                in_time(name, self.settings.shutdown_grace, task).await;
            }
            background.lake.catalog().close().await;
        }
    }
}
