//! The catalog: which segments there are. One SQL transaction makes a commit, so that a query sees each
//! commit whole or not at all (R2).
//!
//! The database is the truth. Its live segments are mirrored in memory as a [`Snapshot`], which is swapped
//! after every commit; a query pins one snapshot and reads nothing else.

mod ducklake;
mod schema;
mod snapshot;
mod store_lock;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use hotspan_model::TenantId;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{Row, SqlitePool};
use tokio::sync::{Mutex, broadcast};

pub use snapshot::Snapshot;
pub(crate) use store_lock::StoreLock;

use crate::error::{LakeError, Result};
use crate::segment::{NewSegment, Segment};
use crate::table::Table;

/// The catalog of a store.
#[derive(Debug)]
pub struct Catalog {
    pool: SqlitePool,
    current: ArcSwap<Snapshot>,
    /// Held from the start of a transaction until the snapshot shows it, so that snapshots change in order.
    commit_order: Mutex<()>,
    commits: broadcast::Sender<Arc<[Arc<Segment>]>>,
}

/// Commits that a slow follower may be behind.
const FOLLOWED_COMMITS: usize = 64;

/// An object that no live segment needs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedObject {
    /// Its path.
    pub path: String,
}

impl Catalog {
    /// Opens the catalog in a store's folder, making it if it is not there.
    pub async fn open(folder: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join("catalog.sqlite"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // In WAL mode this is what makes a commit survive a power cut (R1).
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await?;
        schema::migrate(&pool).await?;
        ducklake::describe(&pool, &folder.join("data")).await?;
        let snapshot = load_snapshot(&pool).await?;
        let commits = broadcast::Sender::new(FOLLOWED_COMMITS);
        Ok(Self { pool, current: ArcSwap::from_pointee(snapshot), commit_order: Mutex::new(()), commits })
    }

    /// What is committed now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The segments of every commit from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<[Arc<Segment>]>> {
        self.commits.subscribe()
    }

    /// Adds segments and takes others away, all in one transaction.
    ///
    /// Fails without any change if one of `removed` is gone already: then another compaction was faster.
    pub async fn commit(&self, tenant: &TenantId, added: Vec<NewSegment>, removed: &[i64]) -> Result<Arc<Snapshot>> {
        let _order = self.commit_order.lock().await;
        let now = now_nanos();
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let version: i64 = sqlx::query("INSERT INTO version (committed_at) VALUES (?) RETURNING id")
            .bind(now)
            .fetch_one(&mut *transaction)
            .await?
            .get(0);
        for id in removed {
            let done = sqlx::query(
                "UPDATE segment SET removed_version = ?, removed_at = ? WHERE id = ? AND removed_version IS NULL",
            )
            .bind(version)
            .bind(now)
            .bind(id)
            .execute(&mut *transaction)
            .await?;
            if done.rows_affected() != 1 {
                return Err(LakeError::Damaged {
                    path: format!("segment {id}"),
                    reason: "it was removed by another commit".to_owned(),
                });
            }
        }
        if !self.current.load().has_tenant(tenant) {
            ducklake::add_schema(&mut transaction, tenant.as_str()).await?;
        }
        let mut segments = Vec::with_capacity(added.len());
        for new in added {
            let id = insert_segment(&mut transaction, tenant, &new, version, now).await?;
            segments.push(Arc::new(committed(id, tenant, new, version, now)));
        }
        transaction.commit().await?;
        let next = Arc::new(self.current.load().with_commit(version, &segments, removed));
        self.current.store(Arc::clone(&next));
        // Without followers there is nobody to tell.
        let _ = self.commits.send(segments.into());
        Ok(next)
    }

    /// Objects whose every segment was removed before `deadline`: no query can still be reading them.
    pub async fn removed_objects(&self, deadline: i64) -> Result<Vec<RemovedObject>> {
        let rows = sqlx::query(
            "SELECT path FROM segment GROUP BY path
             HAVING COUNT(*) = COUNT(removed_at) AND MAX(removed_at) <= ?1
             UNION SELECT index_path FROM segment WHERE index_path IS NOT NULL GROUP BY index_path
             HAVING COUNT(*) = COUNT(removed_at) AND MAX(removed_at) <= ?1",
        )
        .bind(deadline)
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|row| RemovedObject { path: row.get(0) }).collect())
    }

    /// Forgets segments whose object has been deleted.
    pub async fn forget(&self, path: &str) -> Result<()> {
        let _order = self.commit_order.lock().await;
        sqlx::query(
            "UPDATE segment SET index_path = NULL, index_bytes = 0 WHERE index_path = ? AND removed_at IS NOT NULL",
        )
        .bind(path)
        .execute(&self.pool)
        .await?;
        sqlx::query("DELETE FROM segment WHERE path = ? AND removed_at IS NOT NULL")
            .bind(path)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Every object path that the catalog mentions, live or not.
    pub async fn known_paths(&self) -> Result<Vec<String>> {
        let rows =
            sqlx::query("SELECT path FROM segment UNION SELECT index_path FROM segment WHERE index_path IS NOT NULL")
                .fetch_all(&self.pool)
                .await?;
        Ok(rows.into_iter().map(|row| row.get(0)).collect())
    }

    /// Closes the database, writing its log back into the main file.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Nanoseconds since 1970.
pub fn now_nanos() -> i64 {
    // A clock before 1970 or after 2262 reads as the nearest end.
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

async fn insert_segment(
    transaction: &mut sqlx::SqliteTransaction<'_>,
    tenant: &TenantId,
    new: &NewSegment,
    version: i64,
    now: i64,
) -> Result<i64> {
    let row = sqlx::query(
        "INSERT INTO segment (tenant, table_name, level, partition, path, start, length, checksum, rows,
                              min_time, max_time, index_path, index_bytes, created_version, created_at, data_version)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
    )
    .bind(tenant.as_str())
    .bind(new.table.name())
    .bind(i64::from(new.level))
    .bind(new.partition)
    .bind(&new.path)
    .bind(new.range.start as i64)
    .bind((new.range.end - new.range.start) as i64)
    .bind(new.checksum as i64)
    .bind(new.rows as i64)
    .bind(new.min_time)
    .bind(new.max_time)
    .bind(new.index.as_ref().map(|(path, _)| path.as_str()))
    .bind(new.index.as_ref().map_or(0, |(_, size)| *size as i64))
    .bind(version)
    .bind(now)
    .bind(new.data_version.unwrap_or(version))
    .fetch_one(&mut **transaction)
    .await?;
    Ok(row.get(0))
}

fn committed(id: i64, tenant: &TenantId, new: NewSegment, version: i64, created_at: i64) -> Segment {
    Segment {
        id,
        tenant: tenant.clone(),
        table: new.table,
        level: new.level,
        partition: new.partition,
        path: new.path,
        range: new.range,
        checksum: new.checksum,
        rows: new.rows,
        min_time: new.min_time,
        max_time: new.max_time,
        index: new.index,
        version,
        created_at,
        data_version: new.data_version.unwrap_or(version),
        resident: new.resident,
    }
}

async fn load_snapshot(pool: &SqlitePool) -> Result<Snapshot> {
    let version: Option<i64> = sqlx::query("SELECT MAX(id) FROM version").fetch_one(pool).await?.get(0);
    let rows = sqlx::query(
        "SELECT id, tenant, table_name, level, partition, path, start, length, checksum, rows, min_time, max_time,
                index_path, index_bytes, created_version, created_at, data_version
         FROM segment WHERE removed_version IS NULL ORDER BY id",
    )
    .fetch_all(pool)
    .await?;
    let segments: Vec<Arc<Segment>> = rows.iter().map(read_segment).collect::<Result<_>>()?;
    Ok(Snapshot::default().with_commit(version.unwrap_or(0), &segments, &[]))
}

fn read_segment(row: &SqliteRow) -> Result<Arc<Segment>> {
    let path: String = row.get("path");
    let damaged = |reason: String| LakeError::Damaged { path: path.clone(), reason };
    let tenant = row.get::<&str, _>("tenant").parse::<TenantId>().map_err(|error| damaged(error.to_string()))?;
    let table = row.get::<&str, _>("table_name").parse::<Table>().map_err(|error| damaged(error.to_string()))?;
    let start = row.get::<i64, _>("start") as u64;
    let index_path: Option<String> = row.get("index_path");
    Ok(Arc::new(Segment {
        id: row.get("id"),
        tenant,
        table,
        level: row.get::<i64, _>("level") as u8,
        partition: row.get("partition"),
        range: start..start + row.get::<i64, _>("length") as u64,
        checksum: row.get::<i64, _>("checksum") as u64,
        rows: row.get::<i64, _>("rows") as u64,
        min_time: row.get("min_time"),
        max_time: row.get("max_time"),
        index: index_path.map(|path| (path, row.get::<i64, _>("index_bytes") as u64)),
        version: row.get("created_version"),
        created_at: row.get("created_at"),
        data_version: row.get("data_version"),
        resident: None,
        path,
    }))
}
