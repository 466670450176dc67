//! The tables of the catalog database, and how an older one becomes today's.

use sqlx::{Row, SqlitePool};

use crate::error::{LakeError, Result};

/// Each entry takes the catalog from one format to the next; entries are never changed once released.
const MIGRATIONS: &[&str] = &[
    SEGMENTS,
    super::ducklake::TABLES,
    SYMBOLS_BY_SERVICE,
    SHORT_ROW_NUMBERS,
    CODED_KEYS,
    IDENTITY_OF_TEXT_HASHES,
    FRAMES_OF_STREAMS,
    IDENTITY_STEP_BY_STEP,
    super::ducklake::TYPED_SNAPSHOTS,
    LABELS_OF_PROFILES,
    SWEEPS,
    super::ducklake::SCHEMAS_OF_TENANTS,
];
/// Stores of formats before this one were never released, and are not read.
const OLDEST: i64 = 8;

const SEGMENTS: &str = "
    CREATE TABLE version (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        committed_at INTEGER NOT NULL
    );
    CREATE TABLE segment (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        table_name TEXT NOT NULL,
        level INTEGER NOT NULL,
        partition INTEGER,
        path TEXT NOT NULL,
        start INTEGER NOT NULL,
        length INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        min_time INTEGER NOT NULL,
        max_time INTEGER NOT NULL,
        index_path TEXT,
        index_bytes INTEGER NOT NULL,
        created_version INTEGER NOT NULL REFERENCES version (id),
        created_at INTEGER NOT NULL,
        data_version INTEGER NOT NULL,
        removed_version INTEGER REFERENCES version (id),
        removed_at INTEGER
    );
    CREATE INDEX segment_path ON segment (path);
    CREATE INDEX segment_live ON segment (id) WHERE removed_version IS NULL;
";

/// Since then, files of nodes and frames hold their service; the catalog itself did not change.
const SYMBOLS_BY_SERVICE: &str = "SELECT 1";

/// Since then, id indexes say how many bytes their row numbers have.
const SHORT_ROW_NUMBERS: &str = "SELECT 1";

/// Since then, the keys of maps are coded.
const CODED_KEYS: &str = "SELECT 1";

/// Since then, the identity of a frame follows from the hashes of its texts.
const IDENTITY_OF_TEXT_HASHES: &str = "SELECT 1";

/// Since then, a stream of level 0 is one LZ4 frame, and no longer one for each buffer in it.
const FRAMES_OF_STREAMS: &str = "SELECT 1";

/// Since then, identities of functions, frames and paths are mixed step by step from those of their texts.
const IDENTITY_STEP_BY_STEP: &str = "SELECT 1";

/// Since then, profiles say their labels; files of before are read without.
const LABELS_OF_PROFILES: &str = "SELECT 1";

/// When a server last looked for objects that a crash left behind.
const SWEEPS: &str = "CREATE TABLE sweep (swept_at INTEGER NOT NULL)";

/// Brings the catalog to the newest format.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<()> {
    let found: i64 = sqlx::query("PRAGMA user_version").fetch_one(pool).await?.get(0);
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(LakeError::NewerFormat { found, known });
    }
    if (1..OLDEST).contains(&found) {
        return Err(LakeError::OlderFormat { found, oldest: OLDEST });
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
        let set_format = format!("PRAGMA user_version = {}", index + 1);
        sqlx::raw_sql(sqlx::AssertSqlSafe(set_format)).execute(&mut *transaction).await?;
        transaction.commit().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;

    /// Scenario: a new catalog, and ones whose format is from the past or the future.
    /// Guarantee: the new one gets today's format, opening it again changes nothing, and the others are refused by name.
    #[tokio::test]
    async fn only_known_formats_are_opened() {
        // Each connection would have a database of its own.
        let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
        migrate(&pool).await.unwrap();
        migrate(&pool).await.unwrap();
        for (format, wanted) in
            [(OLDEST - 1, "reads 8 and newer"), (MIGRATIONS.len() as i64 + 1, "use a newer hotspan")]
        {
            let set_format = format!("PRAGMA user_version = {format}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(set_format)).execute(&pool).await.unwrap();
            let error = migrate(&pool).await.unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
