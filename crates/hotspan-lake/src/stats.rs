//! What a store holds, by table and level, from the catalog alone.
//!
//! The catalog is opened for reading only, so that this works beside a running server too.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row};

use crate::error::{LakeError, Result};
use crate::table::Table;

/// Live segments of one table and level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LevelStats {
    /// The table.
    pub table: String,
    /// The level.
    pub level: u8,
    /// How many segments.
    pub segments: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes, without indexes.
    pub bytes: u64,
    /// Bytes of their id indexes.
    pub index_bytes: u64,
    /// The earliest time in them, in nanoseconds since 1970.
    pub min_time: i64,
    /// The latest time in them.
    pub max_time: i64,
}

/// What a store holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreStats {
    /// The catalog version that this is.
    pub version: i64,
    /// Tenants that have data.
    pub tenants: u64,
    /// By table, in the order of [`Table::ALL`], then by level.
    pub levels: Vec<LevelStats>,
    /// Segments that were replaced or grew too old, and whose files wait to be deleted.
    pub removed_segments: u64,
    /// Bytes of those.
    pub removed_bytes: u64,
}

impl StoreStats {
    /// Reads the catalog of the store in `folder`.
    pub async fn read(folder: &Path) -> Result<Self> {
        Self::read_catalog(folder).await.map_err(|error| error.of_catalog(folder))
    }

    async fn read_catalog(folder: &Path) -> Result<Self> {
        let mut catalog = open_catalog(folder).await?;
        // One transaction, so that all numbers are of one version (R2).
        let mut transaction = catalog.begin().await?;
        let version: Option<i64> =
            sqlx::query("SELECT MAX(id) FROM version").fetch_one(&mut *transaction).await?.try_get(0)?;
        let rows = sqlx::query(
            "SELECT table_name, level, COUNT(*), SUM(rows), SUM(length), SUM(index_bytes), MIN(min_time), MAX(max_time)
             FROM segment WHERE removed_version IS NULL GROUP BY table_name, level",
        )
        .fetch_all(&mut *transaction)
        .await?;
        let number = |row: &SqliteRow, at: usize| row.try_get::<i64, _>(at).map(|number| number as u64);
        let level = |row: &SqliteRow| -> Result<LevelStats> {
            Ok(LevelStats {
                table: row.try_get(0)?,
                level: number(row, 1)? as u8,
                segments: number(row, 2)?,
                rows: number(row, 3)?,
                bytes: number(row, 4)?,
                index_bytes: number(row, 5)?,
                min_time: row.try_get(6)?,
                max_time: row.try_get(7)?,
            })
        };
        let mut levels = rows.iter().map(level).collect::<Result<Vec<_>>>()?;
        let place = |name: &str| Table::ALL.iter().position(|table| table.name() == name).unwrap_or(Table::ALL.len());
        levels.sort_by_key(|level| (place(&level.table), level.level));
        let others = sqlx::query(
            "SELECT COUNT(DISTINCT CASE WHEN removed_version IS NULL THEN tenant END), COUNT(removed_version),
                    COALESCE(SUM(CASE WHEN removed_version IS NOT NULL THEN length + index_bytes END), 0)
             FROM segment",
        )
        .fetch_one(&mut *transaction)
        .await?;
        // Each to its end: dropped, a connection would close on its own thread while the process ends.
        transaction.rollback().await?;
        catalog.close().await?;
        Ok(Self {
            version: version.unwrap_or(0),
            tenants: number(&others, 0)?,
            levels,
            removed_segments: number(&others, 1)?,
            removed_bytes: number(&others, 2)?,
        })
    }
}

/// Opens the catalog of an existing store for reading.
pub(crate) async fn open_catalog(folder: &Path) -> Result<SqliteConnection> {
    let file = catalog_file(folder)?;
    Ok(SqliteConnectOptions::new().filename(file).read_only(true).connect().await?)
}

/// The catalog of an existing store, or an error that says that there is none.
pub(crate) fn catalog_file(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("catalog.sqlite");
    if file.is_file() {
        return Ok(file);
    }
    Err(LakeError::Storage {
        action: "opening",
        path: folder.display().to_string(),
        source: std::io::Error::new(std::io::ErrorKind::NotFound, "there is no store here (no catalog.sqlite)"),
    })
}
