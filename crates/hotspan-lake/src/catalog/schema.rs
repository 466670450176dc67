//! The tables of the catalog database, and how an older one becomes today's.

use sqlx::{Row, SqlitePool};

use crate::error::{LakeError, Result};

/// Each entry takes the catalog from one format to the next; entries are never changed once released.
const MIGRATIONS: &[&str] = &[SEGMENTS, super::ducklake::TABLES];

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

/// Brings the catalog to the newest format.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<()> {
    let found: i64 = sqlx::query("PRAGMA user_version").fetch_one(pool).await?.get(0);
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(LakeError::NewerFormat { found, known });
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
