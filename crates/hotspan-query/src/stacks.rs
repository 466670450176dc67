//! The names behind call-path ids.

use hotspan_model::TenantId;

use crate::Engine;
use crate::error::Result;
use crate::samples::{SampleFrame, frames_of};

impl Engine {
    /// The frames of each path, the leaf first; none for a path that is not stored.
    pub async fn stacks(&self, tenant: &TenantId, paths: &[u64]) -> Result<Vec<Vec<SampleFrame>>> {
        let snapshot = self.snapshot();
        let memory = self.memory(tenant);
        let mut symbols = memory.symbols.lock().await;
        // A path has the same id on every day, so any day that stored it will do.
        let (from, until) = snapshot.time_range(tenant, hotspan_lake::Table::Nodes).unwrap_or((0, 0));
        symbols.catch_up(self.lake(), &snapshot, tenant, from, until.saturating_add(1)).await?;
        Ok(paths.iter().map(|path| frames_of(&mut symbols, *path)).collect())
    }
}
