//! Bodies of requests, read only as far as there is room for them (R5).

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use hotspan_lake::Ingest;
use hotspan_lake::ingest::Reservation;
use http::{HeaderMap, header};

use crate::app::{App, NotServing};

/// How far a sender is believed that says how long its body will be: beyond that, memory grows with what arrives.
const MOST_BYTES_AHEAD: usize = 8 << 20;
/// How long what comes after a refusal is read and thrown away. A sender that is still writing would not see the answer.
const FAREWELL: Duration = Duration::from_secs(5);
/// Longest silence of somebody who asks.
const QUESTION_IDLE: Duration = Duration::from_secs(30);

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The store is not open.
    #[error(transparent)]
    NotServing(#[from] NotServing),
    /// More bytes than are allowed.
    #[error("the request is larger than {limit} bytes; send smaller batches")]
    TooLarge {
        /// How many are.
        limit: usize,
    },
    /// Too much is under way.
    #[error("too much is under way")]
    NoRoom,
    /// The sender went away, or fell silent, before its body was whole.
    #[error("{0}")]
    Interrupted(String),
}

/// How a body is read, and the room that it takes meanwhile.
#[derive(Debug)]
pub(crate) struct Intake<'a> {
    max_bytes: usize,
    max_idle: Duration,
    queue: Queue<'a>,
    reservation: Option<Reservation>,
}

/// Whose memory a body is counted to.
#[derive(Debug, Clone, Copy)]
enum Queue<'a> {
    /// Nobody's: it is small.
    Nobody,
    /// That of all that is being received.
    Open(&'a Ingest),
    /// The same, but nothing is received just now.
    Closed(NotServing),
}

impl<'a> Intake<'a> {
    /// For what is to be stored.
    pub(crate) fn of_data(app: &'a App) -> Self {
        let queue = match app.core() {
            Ok(core) => Queue::Open(&core.ingest),
            Err(reason) => Queue::Closed(reason),
        };
        let (max_bytes, max_idle) = (app.settings.limits.max_bytes, app.settings.max_idle);
        Self { max_bytes, max_idle, queue, reservation: None }
    }

    /// The same, with another limit.
    pub(crate) fn up_to(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// For a question, which is small.
    pub(crate) fn of_question(max_bytes: usize) -> Self {
        Self { max_bytes, max_idle: QUESTION_IDLE, queue: Queue::Nobody, reservation: None }
    }

    /// Reads a body. What is not taken is read as well, for a while, and thrown away.
    pub(crate) async fn read(&mut self, body: Body, headers: &HeaderMap) -> Result<Bytes, BodyError> {
        let mut pieces = body.into_data_stream();
        let read = self.collect(&mut pieces, announced_length(headers)).await;
        if let Err(error) = &read {
            self.release();
            // Who fell silent is not waited for a second time.
            if !matches!(error, BodyError::Interrupted(_)) {
                self.discard(&mut pieces).await;
            }
        }
        read
    }

    async fn collect(&mut self, pieces: &mut BodyDataStream, announced: Option<u64>) -> Result<Bytes, BodyError> {
        let too_large = BodyError::TooLarge { limit: self.max_bytes };
        if announced.is_some_and(|length| length > self.max_bytes as u64) {
            return Err(too_large);
        }
        self.check_open()?;
        let Some(first) = self.next(pieces).await? else { return Ok(Bytes::new()) };
        self.hold(first.len())?;
        let Some(second) = self.next(pieces).await? else {
            return if first.len() > self.max_bytes { Err(too_large) } else { Ok(first) };
        };
        let expected = announced.map_or(0, |length| (length as usize).min(MOST_BYTES_AHEAD));
        let mut whole = BytesMut::with_capacity(expected.max(first.len() + second.len()));
        whole.extend_from_slice(&first);
        drop(first);
        let mut next = Some(second);
        while let Some(piece) = next {
            let length = whole.len() + piece.len();
            if length > self.max_bytes {
                return Err(too_large);
            }
            // The buffer may be twice as long as what is in it.
            self.hold(2 * length)?;
            whole.extend_from_slice(&piece);
            next = self.next(pieces).await?;
        }
        Ok(whole.freeze())
    }

    /// The next piece of a body, or nothing at its end.
    pub(super) async fn next(&self, pieces: &mut BodyDataStream) -> Result<Option<Bytes>, BodyError> {
        match tokio::time::timeout(self.max_idle, pieces.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(piece))) => Ok(Some(piece)),
            Ok(Some(Err(error))) => Err(BodyError::Interrupted(format!("the body could not be read: {error}"))),
            Err(_) => Err(BodyError::Interrupted(format!(
                "nothing came for {} s in the middle of the body (limits.max_idle)",
                self.max_idle.as_secs_f64()
            ))),
        }
    }

    /// Says no where nothing is received just now.
    pub(super) fn check_open(&self) -> Result<(), BodyError> {
        if let Queue::Closed(reason) = self.queue { Err(reason.into()) } else { Ok(()) }
    }

    /// Makes sure that there is room for so many bytes in all.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), BodyError> {
        self.check_open()?;
        let Queue::Open(ingest) = self.queue else { return Ok(()) };
        let is_there = match &mut self.reservation {
            Some(reservation) => ingest.try_resize(reservation, bytes),
            None => {
                self.reservation = ingest.try_reserve(bytes);
                self.reservation.is_some()
            }
        };
        if is_there { Ok(()) } else { Err(BodyError::NoRoom) }
    }

    /// Hands the room on to whoever works on the body.
    pub(crate) fn take(&mut self) -> Option<Reservation> {
        self.reservation.take()
    }

    /// Gives the room back: what it was for lies elsewhere, or is gone.
    pub(super) fn release(&mut self) {
        self.reservation = None;
    }

    /// Reads the rest and throws it away, as far as it is not much more than what would have been taken.
    pub(super) async fn discard(&self, pieces: &mut BodyDataStream) {
        let mut left = self.max_bytes;
        let rest = async {
            while let Some(Ok(piece)) = pieces.next().await {
                left = left.saturating_sub(piece.len());
                if left == 0 {
                    return;
                }
            }
        };
        // Who is slower than that may not see the answer.
        let _ = tokio::time::timeout(FAREWELL, rest).await;
    }
}

/// How long a body will be, where its sender says so.
pub(super) fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
