//! Numbers about spans for Prometheus: how often, how long, how often failed, by operation and by edge of the
//! service graph.
//!
//! Each commit is folded in once, when it is made: what compaction does with the rows later does not matter, so the
//! counters only grow. They start at zero with the process, as counters do.

mod calls;
mod edges;
mod pairing;
mod waiting;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hashbrown::HashMap;
use hotspan_lake::{Lake, ReadOptions, Segment, Table};
use hotspan_model::TenantId;
use tokio::sync::broadcast::error::RecvError;

pub use calls::{CallCounts, CallSeries, Latency};
pub use edges::{ConnectionType, EdgeCounts, EdgeSeries};

use self::pairing::EdgeCounter;
use crate::error::Result;

/// The numbers of all tenants.
#[derive(Debug, Default)]
pub struct SpanMetrics {
    tenants: Mutex<HashMap<TenantId, Counters>>,
}

/// The numbers of one tenant (R6: never shared). They are of the spans that were stored; what was rejected has a counter of
/// its own, since counters are told beside each other.
#[derive(Debug, Clone, Default)]
pub struct TenantMetrics {
    /// By operation.
    pub calls: CallCounts,
    /// By edge.
    pub edges: EdgeCounts,
}

/// What is counted of one tenant.
#[derive(Debug, Default)]
struct Counters {
    calls: CallCounts,
    edges: EdgeCounter,
}

/// The columns that are read of each commit.
const COLUMNS: [&str; 9] =
    ["trace_id", "span_id", "parent_span_id", "duration", "service", "name", "kind", "status", "attributes"];

impl SpanMetrics {
    /// Folds every commit in from now on, until the lake is closed.
    pub async fn follow(self: Arc<Self>, lake: Arc<Lake>, stop: impl Future<Output = ()>) {
        let mut commits = lake.catalog().subscribe();
        let mut last = lake.catalog().snapshot().version();
        let mut stop = std::pin::pin!(stop);
        loop {
            let received = tokio::select! {
                () = &mut stop => return,
                received = commits.recv() => received,
            };
            let segments: Vec<Arc<Segment>> = match received {
                Ok(segments) => segments.to_vec(),
                // Commits came faster than they could be folded; what is still young is found in the catalog.
                Err(RecvError::Lagged(_)) => lake.catalog().snapshot().all_segments().cloned().collect(),
                Err(RecvError::Closed) => return,
            };
            let mut fresh: Vec<&Arc<Segment>> = segments
                .iter()
                .filter(|segment| segment.level == 0 && segment.table == Table::Spans && segment.version > last)
                .collect();
            fresh.sort_unstable_by_key(|segment| segment.version);
            for segment in fresh {
                last = segment.version;
                if let Err(error) = self.fold(&lake, segment).await {
                    tracing::warn!(%error, path = segment.path, "a commit is missing in the span metrics");
                }
            }
        }
    }

    async fn fold(&self, lake: &Lake, segment: &Arc<Segment>) -> Result<()> {
        for batch in lake.reader().read_all(segment, ReadOptions::columns(&COLUMNS)).await? {
            let mut tenants = self.lock();
            let counters = tenants.entry(segment.tenant.clone()).or_default();
            counters.calls.fold(&batch)?;
            counters.edges.fold(&batch, Instant::now())?;
        }
        Ok(())
    }

    /// A tenant's numbers as they are now.
    pub fn of(&self, tenant: &TenantId) -> TenantMetrics {
        let mut tenants = self.lock();
        let Some(counters) = tenants.get_mut(tenant) else { return TenantMetrics::default() };
        counters.edges.give_up_waiting(Instant::now());
        TenantMetrics { calls: counters.calls.clone(), edges: counters.edges.counted() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, Counters>> {
        // Counters that a panicking thread left behind are still counters.
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
