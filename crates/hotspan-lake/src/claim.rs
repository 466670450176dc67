//! The claim on a store, which comes before everything else: opening the segments sweeps what an earlier process left
//! unfinished, which must not be what another process is writing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::catalog::StoreLock;
use crate::error::{LakeError, Result};
use crate::store::{Syncs, SystemSyncs, create_durable_folder};

/// A store that belongs to this process. Claiming takes no time, opening what is claimed may.
#[derive(Debug)]
pub struct StoreClaim {
    pub(crate) folder: PathBuf,
    _lock: StoreLock,
}

impl StoreClaim {
    /// Claims the store in a local folder, making that if it is not there.
    pub fn new(folder: &Path) -> Result<Self> {
        Self::make(folder, &SystemSyncs)
    }

    pub(crate) fn make(folder: &Path, syncs: &dyn Syncs) -> Result<Self> {
        if folder.exists() && !folder.is_dir() {
            let source = std::io::Error::new(ErrorKind::NotADirectory, "this is a file, and a store is a folder");
            return Err(LakeError::Storage { action: "opening", path: folder.display().to_string(), source });
        }
        create_durable_folder(folder, syncs).map_err(|source| LakeError::Storage {
            action: "creating",
            path: folder.display().to_string(),
            source,
        })?;
        Ok(Self { folder: folder.to_owned(), _lock: StoreLock::acquire(folder)? })
    }
}
