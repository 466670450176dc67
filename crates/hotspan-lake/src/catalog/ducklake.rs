//! The catalog as DuckLake sees it, read-only, so that DuckDB lists and reads our tables with
//! `ATTACH 'ducklake:sqlite:catalog.sqlite' AS lake (READ_ONLY)`.
//!
//! DuckLake asks some thirty tables of fixed names (`ducklake.sql`). Versions and files are views over `version` and
//! `segment`, so that a commit costs nothing more; tables and columns are written here, when a store is opened and when
//! a tenant comes. Each tenant is a schema of its own (R6), the anonymous one is `main`. DuckDB takes names that differ in capitals
//! alone for one, and attaches nothing where two schemas have the same, so a tenant of a name that is taken has a number behind:
//! which schema is whose is written down once. Only Parquet is shown: what was received in the last half minute comes with the next compaction. Attributes that have columns of their own differ
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

/// Which schema is whose, since names of tenants may differ in capitals alone, or be `main`. Schemas of before are described anew.
pub(super) const SCHEMAS_OF_TENANTS: &str = "
    CREATE TABLE schema_of_tenant (tenant TEXT PRIMARY KEY, schema_name TEXT NOT NULL UNIQUE COLLATE NOCASE);
    INSERT INTO schema_of_tenant VALUES ('anonymous', 'main');
    DELETE FROM ducklake_metadata;
    DROP VIEW ducklake_data_file;
    CREATE VIEW ducklake_data_file AS
    SELECT
        f.id AS data_file_id, t.table_id AS table_id, f.created_version AS begin_snapshot,
        f.removed_version AS end_snapshot, c.no_number AS file_order, f.path AS path, c.one AS path_is_relative,
        c.parquet AS file_format, f.rows AS record_count, f.length AS file_size_bytes, c.no_number AS footer_size,
        c.zero AS row_id_start, c.no_number AS partition_id, c.no_text AS encryption_key, t.table_id AS mapping_id,
        c.no_number AS partial_max
    FROM segment AS f
    JOIN schema_of_tenant AS n ON n.tenant = f.tenant
    JOIN ducklake_schema AS s ON s.schema_name = n.schema_name
    JOIN ducklake_table AS t ON t.schema_id = s.schema_id AND t.table_name = f.table_name
    CROSS JOIN ducklake_constant AS c
    WHERE f.level > 0;
";

/// Schemas that every database of DuckDB has, which no tenant can have as well.
const TAKEN: [&str; 2] = ["information_schema", "pg_catalog"];

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
    let name = name_schema(connection, tenant).await?;
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

/// The schema that is a tenant's: the one of its name, unless that is taken by another.
async fn name_schema(connection: &mut SqliteConnection, tenant: &str) -> Result<String> {
    let named = sqlx::query("SELECT schema_name FROM schema_of_tenant WHERE tenant = ?").bind(tenant);
    if let Some(row) = named.fetch_optional(&mut *connection).await? {
        return Ok(row.get(0));
    }
    let taken = sqlx::query("SELECT schema_name FROM schema_of_tenant").fetch_all(&mut *connection).await?;
    let taken: Vec<String> = taken.iter().map(|row| row.get(0)).collect();
    let is_free = |name: &String| {
        let mut others = taken.iter().map(String::as_str).chain(TAKEN);
        !others.any(|other| other.eq_ignore_ascii_case(name))
    };
    let mut name = tenant.to_owned();
    let mut number = 2;
    while !is_free(&name) {
        name = format!("{tenant}_{number}");
        number += 1;
    }
    sqlx::query("INSERT INTO schema_of_tenant VALUES (?, ?)").bind(tenant).bind(&name).execute(connection).await?;
    Ok(name)
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

    /// Scenario: tenants whose names differ in capitals alone, are those of schemas that there are anyway, or are what another got;
    /// then the store is moved, so that everything is described again.
    /// Guarantee: each tenant's files are in a schema of its own, DuckDB takes no two names for one, and names stay.
    #[tokio::test]
    async fn no_two_tenants_share_a_schema() {
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
        super::super::schema::migrate(&pool).await.unwrap();
        describe(&pool, Path::new("/store/data")).await.unwrap();
        let tenants = ["team-a", "Team-A", "main", "team-a_2", "TEAM-A", "information_schema", "anonymous"];
        for tenant in tenants {
            add_schema(&mut pool.acquire().await.unwrap(), tenant).await.unwrap();
            let enter = "INSERT INTO segment (tenant, table_name, level, path, start, length, checksum, rows, min_time, max_time,
                             index_bytes, created_version, created_at, data_version)
                         VALUES (?1, 'spans', 1, ?1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0)";
            sqlx::query(enter).bind(tenant).execute(&pool).await.unwrap();
        }
        let expected = [
            ("team-a", "team-a"),
            ("Team-A", "Team-A_2"),
            ("main", "main_2"),
            ("team-a_2", "team-a_2_2"),
            ("TEAM-A", "TEAM-A_3"),
            ("information_schema", "information_schema_2"),
            ("anonymous", "main"),
        ];
        for folder in ["/store/data", "/moved/data"] {
            describe(&pool, Path::new(folder)).await.unwrap();
            for (tenant, schema) in expected {
                let files = "SELECT s.schema_name FROM ducklake_data_file AS f
                             JOIN ducklake_table AS t ON t.table_id = f.table_id
                             JOIN ducklake_schema AS s ON s.schema_id = t.schema_id WHERE f.path = ?";
                let found = sqlx::query(files).bind(tenant).fetch_all(&pool).await.unwrap();
                let names: Vec<String> = found.iter().map(|row| row.get(0)).collect();
                assert_eq!(names, [schema], "{tenant} in {folder}");
            }
        }
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
