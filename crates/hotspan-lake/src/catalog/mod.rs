//! The catalog: which segments there are. One SQL transaction makes a commit, so that a query sees each
//! commit whole or not at all (R2).
//!
//! The database is the truth. Its live segments are mirrored in memory as a [`Snapshot`], which is swapped
//! after every commit; a query pins one snapshot and reads nothing else.

mod ducklake;
mod leaving;
mod schema;
mod snapshot;
mod store_lock;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use hotspan_model::TenantId;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{Connection as _, QueryBuilder, Row, SqlitePool};
use tokio::sync::{Mutex, broadcast};
use tracing::warn;

pub use snapshot::Snapshot;
pub(crate) use store_lock::StoreLock;

use self::leaving::Leaving;
use crate::error::{LakeError, Result};
use crate::segment::{Piece, Segment};
use crate::table::Table;

/// The catalog of a store.
#[derive(Debug)]
pub struct Catalog {
    pool: SqlitePool,
    current: ArcSwap<Snapshot>,
    /// Held from the start of a transaction until the snapshot shows it, so that snapshots change in order.
    commit_order: Mutex<()>,
    commits: broadcast::Sender<Arc<[Arc<Segment>]>>,
    leaving: Leaving,
    found: Found,
    /// When the newest version was made.
    last_version_at: AtomicI64,
}

/// A catalog as it was when it was opened, before anybody worked with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// When it was opened.
    pub(crate) opened_at: i64,
    /// When its newest version was made; none if it had none.
    pub(crate) last_version_at: Option<i64>,
}

/// How long the work on a store goes on without a version that tells of it.
const LONGEST_WITHOUT_VERSION: i64 = 60 * 1_000_000_000;

/// Commits that a slow follower may be behind.
const FOLLOWED_COMMITS: usize = 64;

/// Longest time that closing waits for statements that are under way.
const LONGEST_CLOSE: Duration = Duration::from_secs(10);

impl Catalog {
    /// Opens the catalog in a store's folder, making it if it is not there. Boxed, so as to be compiled once.
    pub fn open(folder: &Path) -> BoxFuture<'_, Result<Self>> {
        Self::open_database(folder).map_err(|error| error.of_catalog(folder)).boxed()
    }

    async fn open_database(folder: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join("catalog.sqlite"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // In WAL mode this is what makes a commit survive a power cut (R1).
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new()
            .max_connections(2)
            // A full disk makes SQLite roll back by itself. The library then fails to, thinks the transaction open for as long as
            // the connection lives, and starts no other: such a connection is closed, and a new one takes its place.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_with(options)
            .await?;
        schema::migrate(&pool).await?;
        ducklake::describe(&pool, &folder.join("data")).await?;
        let snapshot = load_snapshot(&pool).await?;
        let last_version_at =
            sqlx::query("SELECT max(committed_at) FROM version").fetch_one(&pool).await?.try_get(0)?;
        let found = Found { opened_at: now_nanos(), last_version_at };
        let commits = broadcast::Sender::new(FOLLOWED_COMMITS);
        Ok(Self {
            pool,
            current: ArcSwap::from_pointee(snapshot),
            commit_order: Mutex::new(()),
            commits,
            leaving: Leaving::default(),
            found,
            last_version_at: AtomicI64::new(found.last_version_at.unwrap_or(i64::MIN)),
        })
    }

    /// What it was when it was opened.
    pub(crate) fn found(&self) -> Found {
        self.found
    }

    /// What is committed now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The segments of every commit from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<[Arc<Segment>]>> {
        self.commits.subscribe()
    }

    /// Adds segments with new rows, all in one transaction.
    pub async fn commit(&self, tenant: &TenantId, added: Vec<Piece>) -> Result<Arc<Snapshot>> {
        self.replace(tenant, added, &[], None).await
    }

    /// Adds segments and takes others away, all in one transaction. `data_version` is the latest version that brought
    /// rows of what is added; none if this commit does.
    ///
    /// Fails without any change if one of `removed` is gone already: then another compaction was faster.
    pub async fn replace(
        &self,
        tenant: &TenantId,
        added: Vec<Piece>,
        removed: &[i64],
        data_version: Option<i64>,
    ) -> Result<Arc<Snapshot>> {
        let _order = self.commit_order.lock().await;
        let now = now_nanos();
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let version: i64 = sqlx::query(ducklake::NEW_VERSION).bind(now).fetch_one(&mut *transaction).await?.get(0);
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
        let data_version = data_version.unwrap_or(version);
        let mut segments = Vec::with_capacity(added.len());
        for piece in added {
            let tenant = tenant.clone();
            segments.push(Segment { id: 0, tenant, version, created_at: now, data_version, piece });
        }
        insert_segments(&mut transaction, &mut segments).await?;
        let segments: Vec<Arc<Segment>> = segments.into_iter().map(Arc::new).collect();
        self.leaving.note(&self.current.load(), removed);
        transaction.commit().await?;
        self.last_version_at.store(now, Ordering::Relaxed);
        let next = Arc::new(self.current.load().with_commit(version, &segments, removed));
        self.current.store(Arc::clone(&next));
        // Without followers there is nobody to tell.
        let _ = self.commits.send(segments.into());
        Ok(next)
    }

    /// Makes a version that nothing comes or goes with, if there was none for a while. Before an object is made, so that no crash
    /// leaves one that is much newer than the catalog: that would look as if the catalog were an old copy.
    pub(crate) async fn note_work(&self) -> Result<()> {
        let last = self.last_version_at.load(Ordering::Relaxed);
        if now_nanos().saturating_sub(last) < LONGEST_WITHOUT_VERSION {
            return Ok(());
        }
        let _order = self.commit_order.lock().await;
        let now = now_nanos();
        sqlx::query(ducklake::NEW_VERSION).bind(now).fetch_one(&self.pool).await?;
        self.last_version_at.store(now, Ordering::Relaxed);
        Ok(())
    }

    /// Objects whose every segment was removed, and that no query can still be reading: it was removed before `deadline`, or
    /// only this process reads it and no longer does.
    pub async fn unread_objects(&self, deadline: i64) -> Result<Vec<String>> {
        let removed = sqlx::query(
            "SELECT path, MAX(removed_at), MAX(level) FROM segment GROUP BY path
             HAVING COUNT(*) = COUNT(removed_at)
             UNION SELECT index_path, MAX(removed_at), MAX(level) FROM segment WHERE index_path IS NOT NULL GROUP BY index_path
             HAVING COUNT(*) = COUNT(removed_at)",
        )
        .fetch_all(&self.pool)
        .await?;
        // Asked after the catalog: what that says was removed has been noted before.
        let in_use = self.leaving.objects_in_use();
        let mut unread = Vec::new();
        for row in removed {
            let (path, removed_at, level): (String, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            if removed_at <= deadline || level == 0 && !in_use.contains(&path) {
                unread.push(path);
            }
        }
        Ok(unread)
    }

    /// Forgets segments whose objects have been deleted.
    pub async fn forget(&self, objects: &[String]) -> Result<()> {
        let _order = self.commit_order.lock().await;
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        for path in objects {
            for statement in [
                "UPDATE segment SET index_path = NULL, index_bytes = 0 WHERE index_path = ? AND removed_at IS NOT NULL",
                "DELETE FROM segment WHERE path = ? AND removed_at IS NOT NULL",
            ] {
                sqlx::query(statement).bind(path).execute(&mut *transaction).await?;
            }
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Forgets versions that no segment came or went with. The newest stays: its number says where to go on.
    pub async fn forget_versions(&self) -> Result<u64> {
        let _order = self.commit_order.lock().await;
        let deleted = sqlx::query(
            "DELETE FROM version WHERE id < (SELECT MAX(id) FROM version)
             AND id NOT IN (SELECT created_version FROM segment)
             AND id NOT IN (SELECT removed_version FROM segment WHERE removed_version IS NOT NULL)",
        )
        .execute(&self.pool)
        .await?;
        Ok(deleted.rows_affected())
    }

    /// A version such that whatever was committed at `time` or later has a greater number; so may have what was committed
    /// shortly before, since versions are forgotten.
    pub async fn last_version_before(&self, time: i64) -> Result<i64> {
        let found = sqlx::query("SELECT id FROM version WHERE committed_at < ? ORDER BY id DESC LIMIT 1")
            .bind(time)
            .fetch_optional(&self.pool)
            .await?;
        Ok(found.map_or(0, |row| row.get(0)))
    }

    /// Every object path that the catalog mentions, live or not.
    pub async fn known_paths(&self) -> Result<Vec<String>> {
        let rows =
            sqlx::query("SELECT path FROM segment UNION SELECT index_path FROM segment WHERE index_path IS NOT NULL")
                .fetch_all(&self.pool)
                .await?;
        rows.into_iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// When the catalog was opened by the server that last looked for orphans; none if none did.
    pub(crate) async fn last_sweep(&self) -> Result<Option<i64>> {
        Ok(sqlx::query("SELECT max(swept_at) FROM sweep").fetch_one(&self.pool).await?.try_get(0)?)
    }

    /// Notes that a server that opened the catalog at `opened_at` has looked for orphans.
    pub(crate) async fn note_sweep(&self, opened_at: i64) -> Result<()> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM sweep").execute(&mut *transaction).await?;
        sqlx::query("INSERT INTO sweep VALUES (?)").bind(opened_at).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Closes the database, writing its log back into the main file.
    pub async fn close(&self) {
        // All that was committed is durable: a statement that does not end is no reason for a process not to.
        if tokio::time::timeout(LONGEST_CLOSE, self.pool.close()).await.is_err() {
            warn!("the catalog was not closed in time; its log is read at the next start");
        }
    }
}

/// Nanoseconds since 1970.
pub fn now_nanos() -> i64 {
    // A clock before 1970 or after 2262 reads as the nearest end.
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

/// Segments in one statement: SQLite has a limit of 32,766 values in each.
const SEGMENTS_PER_INSERT: usize = 1000;

/// Enters segments and learns their ids.
async fn insert_segments(transaction: &mut sqlx::SqliteTransaction<'_>, segments: &mut [Segment]) -> Result<()> {
    for part in segments.chunks_mut(SEGMENTS_PER_INSERT) {
        let mut insert = QueryBuilder::new(
            "INSERT INTO segment (tenant, table_name, level, partition, path, start, length, checksum, rows,
                              min_time, max_time, index_path, index_bytes, created_version, created_at, data_version) ",
        );
        insert.push_values(part.iter(), |mut row, segment| {
            row.push_bind(segment.tenant.as_str())
                .push_bind(segment.table.name())
                .push_bind(i64::from(segment.level))
                .push_bind(segment.partition)
                .push_bind(segment.path.as_str())
                .push_bind(segment.range.start as i64)
                .push_bind(segment.bytes() as i64)
                .push_bind(segment.checksum as i64)
                .push_bind(segment.rows as i64)
                .push_bind(segment.min_time)
                .push_bind(segment.max_time)
                .push_bind(segment.index.as_ref().map(|(path, _)| path.as_str()))
                .push_bind(segment.index.as_ref().map_or(0, |(_, size)| *size as i64))
                .push_bind(segment.version)
                .push_bind(segment.created_at)
                .push_bind(segment.data_version);
        });
        let last = insert.build().execute(&mut **transaction).await?.last_insert_rowid();
        // Nobody else inserts meanwhile, so that the rows of a statement are numbered one after another.
        let count = part.len() as i64;
        for (segment, id) in part.iter_mut().zip(last - count + 1..) {
            segment.id = id;
        }
    }
    Ok(())
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
    let path: String = row.try_get("path")?;
    let damaged = |reason: String| LakeError::Damaged { path: path.clone(), reason };
    // A column of SQLite holds what it is given, whatever it was made for.
    let number = |column: &str| row.try_get::<i64, _>(column).map_err(|error| damaged(error.to_string()));
    let text = |column: &str| row.try_get::<&str, _>(column).map_err(|error| damaged(error.to_string()));
    let (start, length) = (number("start")? as u64, number("length")? as u64);
    let index_path: Option<String> = row.try_get("index_path").map_err(|error| damaged(error.to_string()))?;
    let index_bytes = number("index_bytes")? as u64;
    let piece = Piece {
        table: text("table_name")?.parse::<Table>().map_err(|error| damaged(error.to_string()))?,
        level: u8::try_from(number("level")?).map_err(|error| damaged(format!("level: {error}")))?,
        partition: row.try_get("partition").map_err(|error| damaged(error.to_string()))?,
        range: start..start.saturating_add(length),
        checksum: number("checksum")? as u64,
        rows: number("rows")? as u64,
        min_time: number("min_time")?,
        max_time: number("max_time")?,
        index: index_path.map(|path| (path, index_bytes)),
        resident: None,
        resident_bytes: 0,
        path: path.clone(),
    };
    Ok(Arc::new(Segment {
        id: number("id")?,
        tenant: text("tenant")?.parse::<TenantId>().map_err(|error| damaged(error.to_string()))?,
        version: number("created_version")?,
        created_at: number("created_at")?,
        data_version: number("data_version")?,
        piece,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a new catalog, and one that is opened again; every connection to it.
    /// Guarantee: a commit is in the log on the disk before it returns: the log is synced at each.
    #[tokio::test]
    async fn commits_are_synced() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let catalog = Catalog::open(folder.path()).await.unwrap();
            let mut connections = Vec::new();
            for _ in 0..catalog.pool.options().get_max_connections() {
                connections.push(catalog.pool.acquire().await.unwrap());
            }
            assert!(connections.len() > 1);
            for connection in &mut connections {
                let mode = sqlx::query("PRAGMA journal_mode").fetch_one(&mut **connection).await.unwrap();
                assert_eq!(mode.get::<String, _>(0), "wal");
                let synchronous = sqlx::query("PRAGMA synchronous").fetch_one(&mut **connection).await.unwrap();
                assert_eq!(synchronous.get::<i64, _>(0), 2, "2 is FULL");
            }
            drop(connections);
            catalog.close().await;
        }
    }

    /// Scenario: SQLite rolls a transaction back by itself, as it does where the disk is full, on every connection of the pool.
    /// Guarantee: whoever has a transaction to make next makes it, and so does everybody after.
    #[tokio::test]
    async fn a_transaction_that_the_database_ended_holds_up_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(folder.path()).await.unwrap();
        for _ in 0..catalog.pool.options().get_max_connections() {
            let mut transaction = catalog.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
            sqlx::raw_sql("ROLLBACK").execute(&mut *transaction).await.unwrap();
            transaction.rollback().await.unwrap_err();
        }
        for opened_at in 1..10 {
            catalog.note_sweep(opened_at).await.unwrap();
            assert_eq!(catalog.last_sweep().await.unwrap(), Some(opened_at));
        }
        catalog.close().await;
    }
}
