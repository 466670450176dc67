//! Room for the work on a request: first for what it is expected to unpack to, then for what it does, then for its rows (R5).
//!
//! Room is never waited for while some is held: two requests could wait for each other. Who finds none is told to come back.

use hotspan_formats::{Encoding, announced_size};
use hotspan_lake::Ingest;
use hotspan_lake::ingest::Reservation;

use super::Refusal;

/// Memory that a request takes while it is decoded, as a multiple of its unpacked size: the bytes, what they are decoded
/// into, and the rows.
const DECODING_FACTOR: usize = 3;
/// The same for rows: they are joined with others, and encoded.
const ROWS_FACTOR: usize = 2;
/// What a compressed body that does not say is expected to unpack to, as a multiple of its size.
const USUAL_RATIO: usize = 4;

/// Room for a request that is being worked on.
#[derive(Debug)]
pub(crate) struct Room {
    ingest: Ingest,
    reservation: Reservation,
}

impl Room {
    /// Room for a body as it came, or a refusal if too much is under way.
    pub(crate) fn for_body(ingest: &Ingest, encoding: Encoding, body: &[u8], most: usize) -> Result<Self, Refusal> {
        let expected = match encoding {
            Encoding::Identity => body.len(),
            packed => announced_size(packed, body).unwrap_or_else(|| body.len().saturating_mul(USUAL_RATIO)),
        };
        Self::for_unpacked(ingest, expected.min(most))
    }

    /// Room for a request of so many bytes once unpacked.
    pub(crate) fn for_unpacked(ingest: &Ingest, bytes: usize) -> Result<Self, Refusal> {
        let reservation = ingest.try_reserve(bytes.saturating_mul(DECODING_FACTOR)).ok_or(Refusal::Overloaded)?;
        Ok(Self { ingest: ingest.clone(), reservation })
    }

    /// What is being decoded has so many bytes, besides rows that have so many already.
    pub(super) fn decodes(&mut self, unpacked: usize, rows: usize) -> Result<(), Refusal> {
        self.resize(unpacked.saturating_mul(DECODING_FACTOR).saturating_add(rows.saturating_mul(ROWS_FACTOR)))
    }

    /// Everything is decoded, into so many bytes of rows.
    pub(super) fn decoded(mut self, rows: usize) -> Result<Reservation, Refusal> {
        self.resize(rows.saturating_mul(ROWS_FACTOR))?;
        Ok(self.reservation)
    }

    fn resize(&mut self, bytes: usize) -> Result<(), Refusal> {
        if self.ingest.try_resize(&mut self.reservation, bytes) { Ok(()) } else { Err(Refusal::Overloaded) }
    }
}
