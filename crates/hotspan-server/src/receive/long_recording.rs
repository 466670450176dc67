//! Recordings that are larger than memory should be: read once to see that all is right, then again to store it.

use std::io::Read;
use std::sync::Arc;

use hotspan_formats::jfr::{FarSpans, JfrReader, is_recording};
use hotspan_formats::{ClockWindow, DecodeOptions, FileError};
use hotspan_lake::Table;
use hotspan_lake::catalog::now_nanos;
use hotspan_model::TenantId;
use tokio::runtime::Handle;

use super::Refusal;
use super::ingest_rows::{RowSink, Stored, check_times};
use super::spool::{Spooled, spool_failed};
use super::upload_name::UploadName;
use crate::app::{App, Core};

/// Stores a recording chunk by chunk; an upload of another format is refused as too large.
///
/// Memory holds one chunk at a time, and one recording at a time has its turn (R5). Nothing is stored of a
/// recording that is broken anywhere (R7); one that is cut off by a crash is whole again after a retry, since
/// each chunk is known by its content.
pub(super) async fn store_recording(
    app: &Arc<App>,
    tenant: TenantId,
    file: Spooled,
    (options, name): (DecodeOptions, UploadName),
) -> Result<Stored, Refusal> {
    let core = app.opened_core()?.clone();
    let _turn = app.long_recordings.acquire().await;
    let app = Arc::clone(app);
    let handle = Handle::current();
    let stored = tokio::task::spawn_blocking(move || {
        let clock = app.settings.clock(Table::Samples, now_nanos());
        let recording = Recording { app: &app, file: &file, options: &options, name: &name, clock };
        recording.check_is_one()?;
        let (largest_chunk, far_spans) = recording.check_all()?;
        recording.store(&core, &tenant, (largest_chunk, far_spans), &handle)
    });
    stored.await.map_err(|error| Refusal::Invalid(format!("decoding failed: {error}")))?
}

/// Memory that a chunk takes while it is worked on, as a multiple of its size.
const ROOM_FACTOR: usize = 6;

struct Recording<'r> {
    app: &'r Arc<App>,
    file: &'r Spooled,
    options: &'r DecodeOptions,
    name: &'r UploadName,
    clock: ClockWindow,
}

impl Recording<'_> {
    fn input(&self) -> Result<Box<dyn Read + Send>, Refusal> {
        self.file.reader().map_err(|error| spool_failed(&self.app.settings.store, error))
    }

    fn check_is_one(&self) -> Result<(), Refusal> {
        let mut head = Vec::new();
        let read = self.input()?.take(64 << 10).read_to_end(&mut head);
        read.map_err(|error| spool_failed(&self.app.settings.store, error))?;
        let limit = self.app.settings.limits.max_bytes;
        if is_recording(&head) { Ok(()) } else { Err(Refusal::NoChunks { limit }) }
    }

    /// Reads everything, and says how large the largest chunk is and which spans reach across chunks.
    fn check_all(&self) -> Result<(usize, FarSpans), Refusal> {
        let most = self.app.settings.max_upload_bytes;
        let mut reader = JfrReader::new(self.input()?, None, self.options.clone())?;
        while let Some(set) = reader.next_chunk()? {
            check_times(&set, &self.clock)?;
            if reader.position() as u64 > most {
                return Err(FileError::too_large("jfr", reader.position(), "decompressed bytes", most).into());
            }
        }
        Ok((reader.largest_chunk(), reader.far_spans()))
    }

    fn store(
        &self,
        core: &Core,
        tenant: &TenantId,
        (largest, far_spans): (usize, FarSpans),
        handle: &Handle,
    ) -> Result<Stored, Refusal> {
        let mut all = Stored::default();
        let mut reader = JfrReader::again(self.input()?, None, self.options.clone(), far_spans)?;
        loop {
            let reservation = handle.block_on(core.ingest.reserve(largest.saturating_mul(ROOM_FACTOR)))?;
            let Some(set) = reader.next_chunk()? else { return Ok(all) };
            let mut sink = RowSink::new(&core.ingest, tenant, self.clock.clone());
            sink.push(self.name.mark(set))?;
            all.add(handle.block_on(sink.commit(self.app, reservation))?);
        }
    }
}
