//! What is durable already: call-path nodes of the day and series of the hour need not be written again.
//!
//! Forgetting is harmless, since writing a symbol twice is; so the memory is bounded by starting over.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashSet;
use hotspan_model::{SeriesId, TenantId};

use crate::rows::KnownSymbols;

/// Durable symbols and series, by tenant (R6).
#[derive(Debug)]
pub struct Known {
    max_nodes: usize,
    sets: RwLock<KnownSets>,
}

#[derive(Debug, Default)]
struct KnownSets {
    nodes: HashSet<(TenantKey, i64, u64)>,
    series: HashSet<(TenantKey, i64, SeriesId)>,
    tenants: Vec<TenantId>,
}

type TenantKey = u32;

impl Known {
    pub(super) fn new(max_nodes: usize) -> Self {
        Self { max_nodes, sets: RwLock::default() }
    }

    /// The view of one tenant. It keeps commits from being noted while it lives: take it late and drop it soon.
    pub fn of(&self, tenant: &TenantId) -> KnownOf<'_> {
        let key = self.tenant_key(tenant);
        KnownOf { sets: self.read(), key }
    }

    fn tenant_key(&self, tenant: &TenantId) -> TenantKey {
        {
            let sets = self.read();
            if let Some(at) = sets.tenants.iter().position(|other| other == tenant) {
                return at as TenantKey;
            }
        }
        let mut sets = self.write();
        let at = sets.tenants.iter().position(|other| other == tenant).unwrap_or_else(|| {
            sets.tenants.push(tenant.clone());
            sets.tenants.len() - 1
        });
        at as TenantKey
    }

    /// Notes what a commit has made durable.
    pub(super) fn learn(
        &self,
        tenant: &TenantId,
        nodes: impl Iterator<Item = (i64, u64)>,
        series: impl Iterator<Item = (i64, SeriesId)>,
    ) {
        let key = self.tenant_key(tenant);
        let mut sets = self.write();
        if sets.nodes.len() > self.max_nodes {
            sets.nodes.clear();
        }
        if sets.series.len() > self.max_nodes {
            sets.series.clear();
        }
        sets.nodes.extend(nodes.map(|(day, node)| (key, day, node)));
        sets.series.extend(series.map(|(hour, series)| (key, hour, series)));
    }

    /// How many nodes are known.
    pub fn node_count(&self) -> usize {
        self.read().nodes.len()
    }

    // A panic while holding the lock can't leave a set half changed in a way that matters: see the module.
    fn read(&self) -> RwLockReadGuard<'_, KnownSets> {
        self.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KnownSets> {
        self.sets.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is durable of one tenant.
#[derive(Debug)]
pub struct KnownOf<'a> {
    sets: RwLockReadGuard<'a, KnownSets>,
    key: TenantKey,
}

impl KnownSymbols for KnownOf<'_> {
    fn knows_node(&self, day: i64, node: u64) -> bool {
        self.sets.nodes.contains(&(self.key, day, node))
    }

    fn knows_series(&self, hour: i64, series: SeriesId) -> bool {
        self.sets.series.contains(&(self.key, hour, series))
    }
}
