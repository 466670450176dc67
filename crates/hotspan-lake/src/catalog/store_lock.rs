//! A store belongs to one process: the second one is refused, and told who holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::error::{LakeError, Result};

/// The claim on a store. The system drops it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Claims the store in `folder`.
    pub(crate) fn acquire(folder: &Path) -> Result<Self> {
        let path = folder.join("lock");
        let failed = |source| LakeError::Storage { action: "locking", path: path.display().to_string(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Best effort: the message is clear without the number too.
                let _ = file.read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "unknown".to_owned() } else { holder.trim().to_owned() };
                return Err(LakeError::InUse { path: folder.display().to_string(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let note = format!("{}\n", std::process::id());
        let write_note = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(note.as_bytes())
        };
        // The number only serves the message to the second process; a full disk must not stop a start.
        let _ = write_note(&mut file);
        Ok(Self { _file: file })
    }
}
