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

/// A body that came in whole.
#[derive(Debug)]
pub(crate) struct Arrived<'b> {
    /// How it is compressed.
    pub(crate) encoding: Encoding,
    /// The bytes.
    pub(crate) bytes: &'b [u8],
    /// The room that they take.
    pub(crate) held: Option<Reservation>,
}

/// Room for a request that is being worked on, its body included.
#[derive(Debug)]
pub(crate) struct Room {
    ingest: Ingest,
    reservation: Reservation,
    /// Bytes of the body that stay beside what they are unpacked to.
    packed: usize,
}

impl Room {
    /// Makes the room of a body one for the work on it, or refuses if too much is under way. It stays one piece: a request that
    /// takes all room there is can then still enter alone.
    pub(crate) fn for_body(ingest: &Ingest, body: Arrived<'_>, most: usize) -> Result<Self, Refusal> {
        let length = body.bytes.len();
        let (packed, expected) = match body.encoding {
            Encoding::Identity => (0, length),
            encoding => (length, announced_size(encoding, body.bytes).unwrap_or(length.saturating_mul(USUAL_RATIO))),
        };
        let reservation = body.held.or_else(|| ingest.try_reserve(0)).ok_or(Refusal::Overloaded)?;
        let mut room = Self { ingest: ingest.clone(), reservation, packed };
        room.decodes(expected.min(most), 0)?;
        Ok(room)
    }

    /// Room for something that has come in decoded.
    pub(crate) fn for_decoded(ingest: &Ingest) -> Result<Self, Refusal> {
        Self::for_body(ingest, Arrived { encoding: Encoding::Identity, bytes: &[], held: None }, 0)
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
        let bytes = bytes.saturating_add(self.packed);
        if self.ingest.try_resize(&mut self.reservation, bytes) { Ok(()) } else { Err(Refusal::Overloaded) }
    }
}
