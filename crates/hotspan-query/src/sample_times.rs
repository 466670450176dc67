//! When there are samples of what a question is about, whatever time it asks for.

use std::sync::Arc;

use hotspan_lake::table::HOUR;
use hotspan_lake::{Snapshot, arrays};
use hotspan_model::TenantId;
use hotspan_model::selector::Selector;

use crate::Engine;
use crate::error::Result;
use crate::scan::{Grain, Scan, ScannedRows};
use crate::told::Told;

impl Engine {
    /// The times of the first and the last sample of the series that fit a selector; none if there is no sample. Of all hours
    /// that have some, only the first and the last are read.
    pub async fn sample_times(&self, tenant: &TenantId, selector: &Selector) -> Result<Told<Option<(i64, i64)>>> {
        let snapshot = self.snapshot();
        let series = self.fitting_series(tenant, &snapshot, selector, 0, i64::MAX).await?;
        let series = Arc::new(series.iter().map(|entry| entry.id.0).collect::<Vec<u64>>());
        let mut told = Told::default();
        if let Some((first, last)) = self.hours_of_series(tenant, &snapshot, &series).await? {
            told = self.times_in_hour(tenant, &snapshot, &series, first).await?;
            if first != last {
                let in_last = self.times_in_hour(tenant, &snapshot, &series, last).await?;
                told.answer = told.answer.zip(in_last.answer).map(|((earliest, _), (_, latest))| (earliest, latest));
                told.exactness.merge(&in_last.exactness);
            }
        }
        // Samples were rejected at any time that may have been the first or the last.
        told.exactness.dropped = self.lake().rejected().between(tenant, i64::MIN, i64::MAX).samples;
        told.exactness.coverage = None;
        Ok(told)
    }

    async fn times_in_hour(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        series: &Arc<Vec<u64>>,
        hour: i64,
    ) -> Result<Told<Option<(i64, i64)>>> {
        let range = (hour, hour.saturating_add(HOUR));
        let scan = Scan { range, series, grain: Grain::Sample, columns: &["time"] };
        let mut found: Option<(i64, i64)> = None;
        let mut each = |rows: &ScannedRows<'_>| {
            let times = arrays::times(rows.batch, "time")?.values();
            for time in rows.runs.iter().flat_map(|(_, run)| &times[run.clone()]) {
                let (earliest, latest) = found.unwrap_or((*time, *time));
                found = Some((earliest.min(*time), latest.max(*time)));
            }
            Ok(())
        };
        let exactness = self.scan(tenant, snapshot, &scan, &mut each).await?;
        Ok(Told { answer: found, exactness })
    }
}
