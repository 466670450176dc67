//! What can go wrong in the lake, told by who can mend it.

use std::path::Path;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// An error of the lake.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// The disk or the object store failed.
    #[error("{action} {path}: {source}")]
    Storage {
        /// What was being done: "writing", "reading", …
        action: &'static str,
        /// The object it was done to.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The catalog database failed.
    #[error("catalog: {0}")]
    Catalog(#[from] sqlx::Error),
    /// The catalog database is not one, or no longer whole.
    #[error(
        "the catalog {path} can't be read: {source}; put a copy of it back, taken together with catalog.sqlite-wal, or name another \
         folder with --store"
    )]
    BrokenCatalog {
        /// The file.
        path: String,
        /// What the database said.
        source: sqlx::Error,
    },
    /// A stored object is not what the catalog says it is.
    #[error("segment {path} is damaged: {reason}")]
    Damaged {
        /// The object.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Arrow refused to build or convert a batch.
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
    /// Parquet could not be written or read.
    #[error("parquet: {0}")]
    Parquet(#[from] ParquetError),
    /// Another process has this store open.
    #[error("the store {path} is in use by process {holder}; one store belongs to one process at a time")]
    InUse {
        /// The store's folder.
        path: String,
        /// The process that holds it, as far as it said.
        holder: String,
    },
    /// There is data, and nothing that says which of it counts.
    #[error(
        "the store {path} holds {objects} files of data and no catalog.sqlite, or an empty one, which would say which of them count: put \
         the catalog back (with catalog.sqlite-wal, if there is one), or name another folder with --store"
    )]
    NoCatalog {
        /// The store's folder.
        path: String,
        /// How many files of ours lie there.
        objects: usize,
    },
    /// The store was written by a newer version.
    #[error("the store has format {found}, this version reads up to {known}; use a newer hotspan")]
    NewerFormat {
        /// The format found.
        found: i64,
        /// The newest format this version knows.
        known: i64,
    },
    /// The store was written by a version whose files this one does not read.
    #[error(
        "the store has format {found}, this version reads {oldest} and newer; name another folder with --store, or move \
         this one away"
    )]
    OlderFormat {
        /// The format found.
        found: i64,
        /// The oldest format this version reads.
        oldest: i64,
    },
    /// The lake is shutting down.
    #[error("the store is shutting down; retry")]
    ShuttingDown,
}

impl LakeError {
    /// Whether the same request may succeed later, without a change to it.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Storage { .. } | Self::Catalog(_) | Self::ShuttingDown)
    }

    /// Whether the object that was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Storage { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// Whether a commit that failed for this reason is surely not durable. Where the database could not say that its log is on the
    /// disk, that may be there all the same.
    pub(crate) fn leaves_nothing_committed(&self) -> bool {
        !matches!(self, Self::Catalog(_)) || self.is_out_of_space()
    }

    /// An error of the database that says nothing but that its file is broken, told as that.
    pub(crate) fn of_catalog(self, folder: &Path) -> Self {
        match self {
            Self::Catalog(source @ sqlx::Error::Database(_)) if is_broken(&source) => {
                Self::BrokenCatalog { path: folder.join("catalog.sqlite").display().to_string(), source }
            }
            other => other,
        }
    }

    /// Whether the disk is full.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Storage { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
            Self::Catalog(sqlx::Error::Database(error)) => error.message().contains("full"),
            _ => false,
        }
    }
}

/// Whether SQLite says that a file is no database, or has pages that can't be.
fn is_broken(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("11" | "26"))
}

/// A result of the lake.
pub type Result<T> = std::result::Result<T, LakeError>;
