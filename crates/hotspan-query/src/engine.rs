//! The engine: a lake, and what is remembered of it between questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use hotspan_lake::{Lake, Snapshot};
use hotspan_model::TenantId;
use tokio::sync::Mutex;

use crate::log::QueryLog;
use crate::series::SeriesIndex;
use crate::symbols::SymbolIndex;
use crate::window_counts::WindowCounts;

/// Answers questions about a lake. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    lake: Arc<Lake>,
    tenants: Arc<std::sync::Mutex<HashMap<TenantId, Arc<TenantMemory>>>>,
    /// Counts questions: what tells which memory was used last.
    clock: Arc<AtomicU64>,
    queries: Arc<QueryLog>,
    windows: Arc<std::sync::Mutex<WindowCounts>>,
}

/// What is remembered for one tenant (R6: never shared).
#[derive(Debug, Default)]
pub(crate) struct TenantMemory {
    pub(crate) symbols: Mutex<SymbolIndex>,
    pub(crate) series: Mutex<SeriesIndex>,
}

impl Engine {
    /// An engine over a lake.
    pub fn new(lake: Arc<Lake>) -> Self {
        Self { lake, tenants: Arc::default(), clock: Arc::default(), queries: Arc::default(), windows: Arc::default() }
    }

    /// The lake that it asks.
    pub fn lake(&self) -> &Arc<Lake> {
        &self.lake
    }

    /// What was asked lately, and what is being answered.
    pub fn queries(&self) -> &Arc<QueryLog> {
        &self.queries
    }

    /// The state of the lake that a question is answered from: pinned once, read throughout (R2).
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.lake.catalog().snapshot()
    }

    pub(crate) fn memory(&self, tenant: &TenantId) -> Arc<TenantMemory> {
        let mut tenants = self.tenants.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(tenants.entry(tenant.clone()).or_default())
    }

    /// What is remembered of the windows of rollups.
    pub(crate) fn windows(&self) -> std::sync::MutexGuard<'_, WindowCounts> {
        self.windows.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Memory of what is remembered of the windows of rollups.
    pub fn window_bytes(&self) -> usize {
        self.windows().bytes()
    }

    /// What is remembered of each tenant.
    pub(crate) fn memories(&self) -> Vec<Arc<TenantMemory>> {
        let tenants = self.tenants.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tenants.values().map(Arc::clone).collect()
    }

    /// A number that is greater than all before.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}
