//! The bytes of an upload: in memory while they are few, beyond that in a nameless file in the store's folder.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use hotspan_lake::LakeError;
use tokio::io::AsyncWriteExt;

use super::{Intake, Refusal};

/// An upload that has arrived whole.
#[derive(Debug)]
pub(super) enum Spooled {
    /// Few bytes.
    Memory(Bytes),
    /// Many; the file has no name, and is gone with the process whatever ends it.
    File(File),
}

/// How much of an upload is kept where.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpoolLimits {
    /// Bytes that memory holds.
    pub(super) in_memory: usize,
    /// Bytes of the whole.
    pub(super) in_all: u64,
}

impl Spooled {
    /// Reads a body. What is announced too large is refused before any of it is read.
    pub(super) async fn read(
        body: Body,
        announced: Option<u64>,
        limits: SpoolLimits,
        folder: &Path,
        intake: &mut Intake<'_>,
    ) -> Result<Self, Refusal> {
        let mut pieces = body.into_data_stream();
        let read = Self::collect(&mut pieces, announced, limits, folder, intake).await;
        if let Err(refusal) = &read {
            intake.release();
            // Who fell silent is not waited for a second time.
            if !matches!(refusal, Refusal::Interrupted(_)) {
                intake.discard(&mut pieces).await;
            }
        }
        read
    }

    async fn collect(
        pieces: &mut BodyDataStream,
        announced: Option<u64>,
        limits: SpoolLimits,
        folder: &Path,
        intake: &mut Intake<'_>,
    ) -> Result<Self, Refusal> {
        let too_large = || Refusal::FileTooLarge { limit: limits.in_all };
        if announced.is_some_and(|length| length > limits.in_all) {
            return Err(too_large());
        }
        intake.check_open()?;
        let mut memory = BytesMut::new();
        let mut file: Option<tokio::fs::File> = None;
        let mut length = 0u64;
        while let Some(piece) = intake.next(pieces).await? {
            length += piece.len() as u64;
            if length > limits.in_all {
                return Err(too_large());
            }
            if file.is_none() && length > limits.in_memory as u64 {
                file = Some(new_file(&std::mem::take(&mut memory), folder).await?);
                intake.release();
            }
            match &mut file {
                Some(file) => file.write_all(&piece).await.map_err(|error| spool_failed(folder, error))?,
                None => {
                    // The buffer may be twice as long as what is in it.
                    intake.hold(2 * (memory.len() + piece.len()))?;
                    memory.extend_from_slice(&piece);
                }
            }
        }
        let Some(mut file) = file else { return Ok(Self::Memory(memory.freeze())) };
        file.flush().await.map_err(|error| spool_failed(folder, error))?;
        Ok(Self::File(file.into_std().await))
    }

    /// Bytes that were in memory, in a file.
    pub(super) async fn write(bytes: &[u8], folder: &Path) -> Result<Self, Refusal> {
        let mut file = new_file(bytes, folder).await?;
        file.flush().await.map_err(|error| spool_failed(folder, error))?;
        Ok(Self::File(file.into_std().await))
    }

    /// The bytes from the start. One reader at a time: the place in the file is shared.
    pub(super) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
            Self::File(file) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                Box::new(BufReader::with_capacity(1 << 18, file))
            }
        })
    }
}

/// A file without a name that begins with these bytes.
async fn new_file(start: &[u8], folder: &Path) -> Result<tokio::fs::File, Refusal> {
    let file = tempfile::tempfile_in(folder).map_err(|error| spool_failed(folder, error))?;
    let mut file = tokio::fs::File::from_std(file);
    file.write_all(start).await.map_err(|error| spool_failed(folder, error))?;
    Ok(file)
}

/// The store's disk failed, or is full.
pub(super) fn spool_failed(folder: &Path, source: io::Error) -> Refusal {
    let path = folder.display().to_string();
    Refusal::from(Arc::new(LakeError::Storage { action: "keeping an upload in", path, source }))
}
