//! What a sum of snapshots is worth.
//!
//! A profile of memory in use, of goroutines or threads says what there was at one moment. A flame graph of an hour sums over all of
//! them, which keeps shares right, but is no amount that anybody had: so whoever reads it hears what one of them has.

use hotspan_formats::{count_text, value_text};
use hotspan_model::{Exactness, TenantId};
use hotspan_query::FlameQuery;
use serde_json::{Value, json};

use super::ApiError;
use super::exactness::exactness_json;
use crate::app::Core;

/// How many profiles a total is the sum of; none where sums are amounts, or there is one profile.
pub(super) async fn snapshots_summed(
    core: &Core,
    tenant: &TenantId,
    query: &FlameQuery,
) -> Result<Option<u64>, ApiError> {
    if !query.profile_type.is_snapshot() || !query.spans.is_empty() || !query.traces.is_empty() {
        return Ok(None);
    }
    let profiles = core.engine.profile_count(tenant, query).await?.count as u64;
    Ok((profiles > 1).then_some(profiles))
}

/// What an answer rests on, and of how many profiles it is the sum, if it is one.
pub(super) fn told_exactness(exactness: &Exactness, summed: Option<u64>) -> Value {
    let mut told = exactness_json(exactness);
    if let Some(profiles) = summed {
        told["snapshots_summed"] = json!(profiles);
    }
    told
}

/// The number of profiles as a sentence, with what one of them has.
pub(super) fn snapshots_text(profiles: u64, total: i64, unit: &str) -> String {
    let each = value_text((total as f64 / profiles.max(1) as f64) as i64, unit);
    format!("the sum of {} profiles, {each} each on average", count_text(profiles))
}
