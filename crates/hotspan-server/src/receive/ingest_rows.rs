//! The way of profiles into the lake, whoever sends them: room, decoding off the reactor, commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotspan_formats::otlp::Outcome;
use hotspan_formats::{ClockWindow, Limits};
use hotspan_lake::catalog::now_nanos;
use hotspan_lake::ingest::{Answer, Receipt, Reservation, expect_receipt};
use hotspan_lake::rows::Rows;
use hotspan_lake::{Ingest, Table};
use hotspan_model::labels::{SERVICE_NAME, UNKNOWN_SERVICE};
use hotspan_model::{ProfileSet, TenantId};
use http::HeaderMap;

use super::{Arrived, Refusal, Room, tenant_of};
use crate::app::App;

/// The signal under which profiles are counted, as those of OTLP are.
pub(super) const SIGNAL: &str = "profiles";

/// Collects the rows of one request. Nothing of it is stored before all of it is decoded (R7).
#[derive(Debug)]
pub(super) struct RowSink {
    rows: Rows,
    ingest: Ingest,
    tenant: TenantId,
    profile_types: BTreeSet<String>,
    cut_frames: u64,
    cut_texts: u64,
    clock: ClockWindow,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stored {
    pub(super) profiles: usize,
    pub(super) samples: usize,
    pub(super) duplicates: u64,
    pub(super) profile_types: BTreeSet<String>,
    /// Frames that were cut from stacks deeper than the limit.
    pub(super) cut_frames: u64,
    /// Texts that were longer than the limit, and are kept up to it.
    pub(super) cut_texts: u64,
}

impl Stored {
    /// Adds what became of another part of the same upload.
    pub(super) fn add(&mut self, other: Self) {
        self.profiles += other.profiles;
        self.samples += other.samples;
        self.duplicates += other.duplicates;
        self.profile_types.extend(other.profile_types);
        self.cut_frames += other.cut_frames;
        self.cut_texts += other.cut_texts;
    }
}

impl RowSink {
    /// An empty one for profiles of times in a window.
    pub(super) fn new(ingest: &Ingest, tenant: &TenantId, clock: ClockWindow) -> Self {
        let (ingest, tenant) = (ingest.clone(), tenant.clone());
        Self {
            rows: Rows::default(),
            ingest,
            tenant,
            profile_types: BTreeSet::new(),
            cut_frames: 0,
            cut_texts: 0,
            clock,
        }
    }

    /// Bytes of the rows that were added.
    pub(super) fn size(&self) -> usize {
        self.rows.size()
    }

    /// Adds a decoded set.
    pub(super) fn push(&mut self, mut set: ProfileSet<'_>) -> Result<(), Refusal> {
        for profile in &mut set.profiles {
            profile.labels.set_default(SERVICE_NAME, UNKNOWN_SERVICE);
            self.profile_types.insert(profile.profile_type.to_string());
        }
        check_times(&set, &self.clock)?;
        self.cut_frames += set.cut_frames;
        self.cut_texts += set.cut_texts;
        self.rows.profiles.push(&set, &self.ingest.known().of(&self.tenant));
        Ok(())
    }

    /// Hands over what was added; what comes back says, once it is stored, what became of it.
    pub(super) fn commit(
        self,
        app: &Arc<App>,
        reservation: Reservation,
    ) -> impl Future<Output = Result<Stored, Refusal>> + Send + use<> {
        let (answer, receipt) = expect_receipt();
        let (app, submitted) = (Arc::clone(app), self.submit_for(answer, reservation));
        async move { Ok(submitted.stored(&app, receipt.await?)) }
    }

    /// Hands over what was added for who waits for the receipt.
    fn submit_for(self, answer: Answer, reservation: Reservation) -> Submitted {
        let stored = Stored {
            profiles: self.rows.profiles.profile_count(),
            samples: self.rows.profiles.sample_count(),
            duplicates: 0,
            profile_types: self.profile_types,
            cut_frames: self.cut_frames,
            cut_texts: self.cut_texts,
        };
        self.ingest.submit_for(answer, self.tenant, self.rows, reservation);
        Submitted(stored)
    }
}

/// What will have become of a request, if it is stored.
struct Submitted(Stored);

impl Submitted {
    fn stored(self, app: &App, receipt: Receipt) -> Stored {
        let stored = Stored { duplicates: receipt.duplicate_profiles, ..self.0 };
        let Stored { profiles, cut_frames, cut_texts, .. } = stored;
        let outcome = Outcome { accepted: profiles as u64, cut_frames, cut_texts, ..Outcome::default() };
        app.metrics.received(SIGNAL, &outcome);
        stored
    }
}

/// Refuses a set of which anything is of a time that is not taken: whoever sends a file hears of nothing in part.
pub(super) fn check_times(set: &ProfileSet<'_>, clock: &ClockWindow) -> Result<(), Refusal> {
    for profile in &set.profiles {
        let name = || {
            let service = profile.labels.get(SERVICE_NAME).unwrap_or(UNKNOWN_SERVICE);
            format!("profile {} of {service}", profile.profile_type)
        };
        clock.check(profile.time).map_err(|outside| Refusal::Untimely(format!("the {} {outside}", name())))?;
        for sample in &profile.samples {
            let checked = clock.check(sample.time);
            checked.map_err(|outside| Refusal::Untimely(format!("a sample of the {} {outside}", name())))?;
        }
    }
    Ok(())
}

/// Takes a request in. `body` is what came, `decode` fills the rows on a thread where it may take its time.
pub(super) async fn store_profiles(
    app: &Arc<App>,
    headers: &HeaderMap,
    body: Arrived<'_>,
    decode: impl FnOnce(&Limits, &mut RowSink, &mut Room) -> Result<(), Refusal> + Send + 'static,
) -> Result<Stored, Refusal> {
    let core = app.opened_core()?;
    let tenant = tenant_of(app, headers)?;
    let mut sink = RowSink::new(&core.ingest, &tenant, app.settings.clock(Table::Samples, now_nanos()));
    let mut room = Room::for_body(&core.ingest, body, app.settings.limits.max_bytes)?;
    let decoding_app = Arc::clone(app);
    let (answer, receipt) = expect_receipt();
    let decode_all = move || {
        decode(&decoding_app.settings.limits, &mut sink, &mut room)?;
        let reservation = room.decoded(sink.size())?;
        Ok::<_, Refusal>(sink.submit_for(answer, reservation))
    };
    let decoded = app.decoding.decode(decode_all);
    // Nothing wakes this task in between. What can't be decoded has no receipt, and says why below.
    let receipt = receipt.await;
    let submitted = decoded.await??;
    Ok(submitted.stored(app, receipt?))
}

/// Takes in profiles that were fetched; says how many samples they had.
pub(crate) async fn store_scraped(
    app: &Arc<App>,
    tenant: TenantId,
    set: ProfileSet<'static>,
) -> Result<usize, Refusal> {
    let core = app.opened_core()?;
    let room = Room::for_decoded(&core.ingest)?;
    let mut sink = RowSink::new(&core.ingest, &tenant, app.settings.clock(Table::Samples, now_nanos()));
    sink.push(set)?;
    let reservation = room.decoded(sink.size())?;
    Ok(sink.commit(app, reservation).await?.samples)
}
