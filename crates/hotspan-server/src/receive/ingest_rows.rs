//! The way of profiles into the lake, whoever sends them: room, decoding off the reactor, commit.

use std::sync::Arc;

use hotspan_formats::Limits;
use hotspan_lake::Ingest;
use hotspan_lake::rows::Rows;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{ProfileSet, TenantId};
use http::HeaderMap;

use super::{Refusal, tenant_of};
use crate::app::App;

/// Memory that a profile takes while it is worked on, as a multiple of its size on the wire.
const ROOM_FACTOR: usize = 6;

/// The signal under which profiles are counted, as those of OTLP are.
pub(super) const SIGNAL: &str = "profiles";

/// Collects the rows of one request. Nothing of it is stored before all of it is decoded (R7).
#[derive(Debug)]
pub(super) struct RowSink {
    rows: Rows,
    ingest: Ingest,
    tenant: TenantId,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) profiles: usize,
    pub(super) samples: usize,
    pub(super) duplicates: u64,
}

impl RowSink {
    /// Adds a decoded set.
    pub(super) fn push(&mut self, mut set: ProfileSet<'_>) {
        for profile in &mut set.profiles {
            profile.labels.set_default(SERVICE_NAME, "unknown_service");
        }
        self.rows.profiles.push(&set, &self.ingest.known().of(&self.tenant));
    }
}

/// Takes a request in. `wire_bytes` is its size as it came, `decode` fills the rows on a thread where it may
/// take its time.
pub(super) async fn store_profiles(
    app: &Arc<App>,
    headers: &HeaderMap,
    wire_bytes: usize,
    decode: impl FnOnce(&Limits, &mut RowSink) -> Result<(), Refusal> + Send + 'static,
) -> Result<Stored, Refusal> {
    let core = app.core()?;
    let tenant = tenant_of(app, headers)?;
    let room = wire_bytes.saturating_mul(ROOM_FACTOR);
    let reservation = core.ingest.try_reserve(room).ok_or(Refusal::Overloaded)?;
    let mut sink = RowSink { rows: Rows::default(), ingest: core.ingest.clone(), tenant: tenant.clone() };
    let decoding_app = Arc::clone(app);
    let decoded = tokio::task::spawn_blocking(move || {
        decode(&decoding_app.settings.limits, &mut sink)?;
        Ok::<Rows, Refusal>(sink.rows)
    });
    // A decoder never panics; if one did, the sender learns that its request can't be read.
    let rows = decoded.await.map_err(|error| Refusal::Invalid(format!("decoding failed: {error}")))??;
    let (profiles, samples) = (rows.profiles.profile_count(), rows.profiles.sample_count());
    let receipt = core.ingest.submit(tenant, rows, reservation).await?;
    app.metrics.received(SIGNAL, profiles as u64, 0);
    Ok(Stored { profiles, samples, duplicates: receipt.duplicate_profiles })
}
