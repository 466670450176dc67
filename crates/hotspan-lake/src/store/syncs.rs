//! The two steps that make what was written survive a power cut. They stand apart so that a test can tell what has taken them.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// Makes files and their names durable.
pub(crate) trait Syncs: fmt::Debug + Send + Sync + 'static {
    /// Makes the content of a file durable.
    fn content(&self, file: &File) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn names(&self, folder: &Path) -> io::Result<()>;
}

/// As the system does it.
#[derive(Debug)]
pub(crate) struct SystemSyncs;

impl Syncs for SystemSyncs {
    fn content(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn names(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}
