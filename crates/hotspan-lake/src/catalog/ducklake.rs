//! The catalog as DuckLake sees it, read-only, so that DuckDB lists and reads our tables with
//! `ATTACH 'ducklake:sqlite:catalog.sqlite' AS lake (READ_ONLY)`.
//!
//! DuckLake asks some thirty tables of fixed names (`ducklake.sql`). Versions and files are views over `version` and
//! `segment`, so that a commit costs nothing more; tables and columns are written here, when a store is opened and when
//! a tenant comes. Each tenant is a schema of its own (R6), the anonymous one is `main`. Only Parquet is shown: what was
//! received in the last half minute comes with the next compaction. Attributes that have columns of their own differ
//! from file to file, which DuckLake can't say; they are in the files.

use std::path::Path;

use arrow::datatypes::{DataType, Field, TimeUnit};
use hotspan_model::TenantId;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Row, SqlitePool};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{LakeError, Result};
use crate::table::Table;

/// The tables and views that DuckLake asks.
pub(super) const TABLES: &str = include_str!("ducklake.sql");

/// DuckDB takes every column of a view for text if one of them is no column of a table, and then thinks version 99 newer than
/// 100: so the time of a version is a text in the table as well.
pub(super) const TYPED_SNAPSHOTS: &str = "
    ALTER TABLE version ADD COLUMN committed_text VARCHAR;
    UPDATE version
    SET committed_text = strftime('%Y-%m-%d %H:%M:%f+00', committed_at / 1000000000.0, 'unixepoch');
    DROP VIEW ducklake_snapshot;
    CREATE VIEW ducklake_snapshot AS
    SELECT
        v.id AS snapshot_id, v.committed_text AS snapshot_time, c.one AS schema_version, c.large AS next_catalog_id,
        c.large AS next_file_id
    FROM version AS v, ducklake_constant AS c;
";

/// Starts a version, at a time in nanoseconds since 1970, and gives its number.
pub(super) const NEW_VERSION: &str = "
    INSERT INTO version (committed_at, committed_text)
    VALUES (?1, strftime('%Y-%m-%d %H:%M:%f+00', ?1 / 1000000000.0, 'unixepoch'))
    RETURNING id
";

/// Table ids are schema ids times this, plus the number of the table.
const TABLES_PER_SCHEMA: i64 = 16;

/// The entry of the metadata that tells whether the description is today's.
const FINGERPRINT: &str = "hotspan_fingerprint";

/// Describes the tables of every tenant, unless that was done already and neither they nor the folder have changed.
pub(super) async fn describe(pool: &SqlitePool, data_folder: &Path) -> Result<()> {
    let folder = std::path::absolute(data_folder).map_err(|source| LakeError::Storage {
        action: "finding",
        path: data_folder.display().to_string(),
        source,
    })?;
    let folder = format!("{}/", folder.display());
    let columns: Vec<Column> = Table::ALL.into_iter().flat_map(columns_of).collect();
    let fingerprint = format!("{:016x}", xxh3_64(format!("{folder} {columns:?}").as_bytes()));
    let found = sqlx::query("SELECT 1 FROM ducklake_metadata WHERE key = ? AND value = ?")
        .bind(FINGERPRINT)
        .bind(&fingerprint)
        .fetch_optional(pool)
        .await?;
    if found.is_some() {
        return Ok(());
    }
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    for table in ["metadata", "schema", "table", "column", "column_mapping", "name_mapping", "schema_versions"] {
        let clear = format!("DELETE FROM ducklake_{table}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(clear)).execute(&mut *transaction).await?;
    }
    let metadata = [
        ("version", "1.0"),
        ("created_by", "hotspan"),
        ("data_path", &folder),
        ("encrypted", "false"),
        (FINGERPRINT, &fingerprint),
    ];
    for (key, value) in metadata {
        sqlx::query("INSERT INTO ducklake_metadata (key, value) VALUES (?, ?)")
            .bind(key)
            .bind(value)
            .execute(&mut *transaction)
            .await?;
    }
    add_schema(&mut transaction, TenantId::ANONYMOUS).await?;
    let tenants =
        sqlx::query("SELECT DISTINCT tenant FROM segment ORDER BY tenant").fetch_all(&mut *transaction).await?;
    for tenant in tenants {
        add_schema(&mut transaction, tenant.get(0)).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Adds the schema of a tenant with all tables, if it is not there yet.
pub(super) async fn add_schema(connection: &mut SqliteConnection, tenant: &str) -> Result<()> {
    let name = if tenant == TenantId::ANONYMOUS { "main" } else { tenant };
    let schema: Option<i64> = sqlx::query(
        "INSERT INTO ducklake_schema SELECT n, printf('00000000-0000-0000-0000-%012d', n), 0, NULL, ?1, '', 1
         FROM (SELECT coalesce(max(schema_id) + 1, 0) AS n FROM ducklake_schema)
         WHERE NOT EXISTS (SELECT 1 FROM ducklake_schema WHERE schema_name = ?1) RETURNING schema_id",
    )
    .bind(name)
    .fetch_optional(&mut *connection)
    .await?
    .map(|row| row.get(0));
    let Some(schema) = schema else { return Ok(()) };
    for (number, table) in (1..).zip(Table::ALL) {
        let id = schema * TABLES_PER_SCHEMA + number;
        sqlx::query(
            "INSERT INTO ducklake_table VALUES
             (?1, printf('00000000-0000-0000-0001-%012d', ?1), 0, NULL, ?2, ?3, '', 1)",
        )
        .bind(id)
        .bind(schema)
        .bind(table.name())
        .execute(&mut *connection)
        .await?;
        sqlx::query("INSERT INTO ducklake_schema_versions VALUES (0, 1, ?)").bind(id).execute(&mut *connection).await?;
        // Files are read by the names of their columns, whatever further columns they have.
        sqlx::query("INSERT INTO ducklake_column_mapping VALUES (?1, ?1, 'map_by_name')")
            .bind(id)
            .execute(&mut *connection)
            .await?;
        for column in columns_of(table) {
            add_column(connection, id, &column).await?;
        }
    }
    Ok(())
}

async fn add_column(connection: &mut SqliteConnection, table: i64, column: &Column) -> Result<()> {
    sqlx::query(
        "INSERT INTO ducklake_column VALUES (?1, 0, NULL, ?2, ?1, ?3, ?4, NULL, 'NULL', 1, ?5, 'literal', 'duckdb')",
    )
    .bind(column.number)
    .bind(table)
    .bind(&column.name)
    .bind(column.type_name)
    .bind(column.parent)
    .execute(&mut *connection)
    .await?;
    let name_in_file = if column.name == LIST_ITEM { "list" } else { &column.name };
    sqlx::query("INSERT INTO ducklake_name_mapping VALUES (?1, ?2, ?3, ?2, ?4, 0)")
        .bind(table)
        .bind(column.number)
        .bind(name_in_file)
        .bind(column.parent)
        .execute(connection)
        .await?;
    Ok(())
}

/// A column as DuckLake describes it: those inside of others have the outer one as parent.
#[derive(Debug, PartialEq, Eq)]
struct Column {
    number: i64,
    name: String,
    type_name: &'static str,
    parent: Option<i64>,
}

/// What DuckLake calls the items of a list.
const LIST_ITEM: &str = "element";

fn columns_of(table: Table) -> Vec<Column> {
    let mut columns = Vec::new();
    for field in table.schema().fields() {
        add_with_inner(&mut columns, field.name(), field.data_type(), None);
    }
    columns
}

fn add_with_inner(columns: &mut Vec<Column>, name: &str, data_type: &DataType, parent: Option<i64>) {
    let number = columns.len() as i64 + 1;
    columns.push(Column { number, name: name.to_owned(), type_name: type_name(data_type), parent });
    let mut add = |name: &str, field: &Field| add_with_inner(columns, name, field.data_type(), Some(number));
    match data_type {
        DataType::List(item) => add(LIST_ITEM, item),
        DataType::Struct(fields) => fields.iter().for_each(|field| add(field.name(), field)),
        DataType::Map(entries, _) => {
            if let DataType::Struct(fields) = entries.data_type() {
                fields.iter().for_each(|field| add(field.name(), field));
            }
        }
        _ => {}
    }
}

/// What DuckLake calls a type.
fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "int8",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Timestamp(TimeUnit::Nanosecond, _) => "timestamp_ns",
        DataType::Binary | DataType::FixedSizeBinary(_) => "blob",
        DataType::List(_) => "list",
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        _ => "varchar",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: every column of every table. Guarantee: it has a type that DuckLake knows; only text is text.
    #[test]
    fn every_column_has_a_type() {
        fn check(data_type: &DataType) {
            let is_text = match data_type {
                DataType::Utf8 => true,
                DataType::Dictionary(_, values) => **values == DataType::Utf8,
                _ => false,
            };
            assert_eq!(type_name(data_type) == "varchar", is_text, "{data_type}");
            match data_type {
                DataType::List(item) => check(item.data_type()),
                DataType::Struct(fields) => fields.iter().for_each(|field| check(field.data_type())),
                DataType::Map(entries, _) => check(entries.data_type()),
                _ => {}
            }
        }
        for table in Table::ALL {
            table.schema().fields().iter().for_each(|field| check(field.data_type()));
        }
        assert!(Table::ALL.len() < TABLES_PER_SCHEMA as usize);
    }

    /// Scenario: columns inside of columns. Guarantee: numbers count up, and parents come before what is in them.
    #[test]
    fn inner_columns_follow_their_parents() {
        let columns = columns_of(Table::Spans);
        for (number, column) in (1..).zip(&columns) {
            assert_eq!(column.number, number);
            assert!(column.parent.is_none_or(|parent| parent < number), "{column:?}");
        }
        let events = columns.iter().find(|column| column.name == "events").unwrap();
        let item = columns.iter().find(|column| column.parent == Some(events.number)).unwrap();
        assert_eq!((item.name.as_str(), item.type_name), (LIST_ITEM, "struct"));
    }
}
