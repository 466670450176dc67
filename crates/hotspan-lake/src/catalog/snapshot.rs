//! One version of the catalog in memory: what a query pins.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_model::TenantId;

use crate::segment::Segment;
use crate::table::Table;

/// The live segments of one catalog version.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    version: i64,
    tables: HashMap<(TenantId, Table), Arc<Vec<Arc<Segment>>>>,
}

impl Snapshot {
    /// The catalog version that this is.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// The segments of a table, oldest commit first.
    pub fn segments(&self, tenant: &TenantId, table: Table) -> Arc<Vec<Arc<Segment>>> {
        self.tables.get(&(tenant.clone(), table)).cloned().unwrap_or_default()
    }

    /// The earliest and the latest time in a table; none if it is empty.
    pub fn time_range(&self, tenant: &TenantId, table: Table) -> Option<(i64, i64)> {
        let segments = self.segments(tenant, table);
        let first = segments.iter().map(|segment| segment.min_time).min()?;
        let last = segments.iter().map(|segment| segment.max_time).max()?;
        Some((first, last))
    }

    /// Every live segment.
    pub fn all_segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.tables.values().flat_map(|segments| segments.iter())
    }

    /// Whether a tenant has data.
    pub(super) fn has_tenant(&self, tenant: &TenantId) -> bool {
        Table::ALL.iter().any(|table| self.tables.contains_key(&(tenant.clone(), *table)))
    }

    /// Every tenant that has data.
    pub fn tenants(&self) -> Vec<TenantId> {
        let mut tenants: Vec<TenantId> = self.tables.keys().map(|(tenant, _)| tenant.clone()).collect();
        tenants.sort_unstable();
        tenants.dedup();
        tenants
    }

    /// The snapshot after a commit. Tables that the commit did not touch are shared with this one.
    pub(super) fn with_commit(&self, version: i64, added: &[Arc<Segment>], removed: &[i64]) -> Self {
        let mut next = Self { version, tables: self.tables.clone() };
        if !removed.is_empty() {
            let removed: HashSet<i64> = removed.iter().copied().collect();
            next.tables.retain(|_, segments| {
                if segments.iter().any(|segment| removed.contains(&segment.id)) {
                    Arc::make_mut(segments).retain(|segment| !removed.contains(&segment.id));
                }
                !segments.is_empty()
            });
        }
        for segment in added {
            let key = (segment.tenant.clone(), segment.table);
            Arc::make_mut(next.tables.entry(key).or_default()).push(Arc::clone(segment));
        }
        next
    }
}
