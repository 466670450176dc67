//! The names behind call-path ids.

use hotspan_model::TenantId;
use hotspan_model::selector::Selector;

use crate::Engine;
use crate::error::Result;
use crate::samples::{SampleFrame, frames_of};
use crate::symbols::services_of;

impl Engine {
    /// The frames of each path, the leaf first; none for a path that is not stored, which is all that can be missing here.
    pub async fn stacks(&self, tenant: &TenantId, paths: &[u64]) -> Result<Vec<Vec<SampleFrame>>> {
        let snapshot = self.snapshot();
        // A path has the same id on every day and in every service, so any that stored it will do.
        let (from, until) = snapshot.time_range(tenant, hotspan_lake::Table::Nodes).unwrap_or((0, 0));
        let range = (from, until.saturating_add(hotspan_lake::table::DAY));
        let series = self.fitting_series(tenant, &snapshot, &Selector::default(), range.0, range.1).await?;
        let symbols = self.symbols(tenant, &snapshot, &services_of(&series), range).await?;
        Ok(paths.iter().map(|path| frames_of(&symbols, *path)).collect())
    }
}
