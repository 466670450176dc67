-- The catalog as DuckLake 1.0 sees it: see ducklake.rs. Names and columns are DuckLake's. A column of a view must be a
-- column of a table, since DuckDB learns its type from there: hence the one row of constants.

CREATE TABLE ducklake_constant (
    zero BIGINT, one BIGINT, large BIGINT, no_number BIGINT, no_text VARCHAR, parquet VARCHAR
);
INSERT INTO ducklake_constant VALUES (0, 1, 1000000000000, NULL, NULL, 'parquet');
CREATE TABLE ducklake_metadata (key VARCHAR, value VARCHAR, scope VARCHAR, scope_id BIGINT);
CREATE TABLE ducklake_schema (
    schema_id BIGINT, schema_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_name VARCHAR,
    path VARCHAR, path_is_relative BIGINT
);
CREATE TABLE ducklake_table (
    table_id BIGINT, table_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT,
    table_name VARCHAR, path VARCHAR, path_is_relative BIGINT
);
CREATE TABLE ducklake_column (
    column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order BIGINT,
    column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BIGINT,
    parent_column BIGINT, default_value_type VARCHAR, default_value_dialect VARCHAR
);
CREATE TABLE ducklake_column_mapping (mapping_id BIGINT, table_id BIGINT, type VARCHAR);
CREATE TABLE ducklake_name_mapping (
    mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, parent_column BIGINT,
    is_partition BIGINT
);
CREATE TABLE ducklake_schema_versions (begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT);
CREATE VIEW ducklake_snapshot AS
SELECT
    v.id AS snapshot_id,
    strftime('%Y-%m-%d %H:%M:%f+00', v.committed_at / 1000000000.0, 'unixepoch') AS snapshot_time, c.one AS schema_version, c.large AS next_catalog_id, c.large AS next_file_id
FROM version AS v, ducklake_constant AS c;
CREATE VIEW ducklake_data_file AS
SELECT
    f.id AS data_file_id, t.table_id AS table_id, f.created_version AS begin_snapshot,
    f.removed_version AS end_snapshot, c.no_number AS file_order, f.path AS path, c.one AS path_is_relative,
    c.parquet AS file_format, f.rows AS record_count, f.length AS file_size_bytes, c.no_number AS footer_size,
    c.zero AS row_id_start, c.no_number AS partition_id, c.no_text AS encryption_key, t.table_id AS mapping_id,
    c.no_number AS partial_max
FROM segment AS f
JOIN ducklake_schema AS s ON s.schema_name = CASE WHEN f.tenant = 'anonymous' THEN 'main' ELSE f.tenant END
JOIN ducklake_table AS t ON t.schema_id = s.schema_id AND t.table_name = f.table_name
CROSS JOIN ducklake_constant AS c
WHERE f.level > 0;
CREATE TABLE ducklake_column_tag (
    table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR
);
CREATE TABLE ducklake_delete_file (
    delete_file_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, data_file_id BIGINT,
    path VARCHAR, path_is_relative BIGINT, format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT,
    footer_size BIGINT, encryption_key VARCHAR, partial_max BIGINT
);
CREATE TABLE ducklake_file_column_stats (
    data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT, value_count BIGINT,
    null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BIGINT, extra_stats VARCHAR
);
CREATE TABLE ducklake_file_partition_value (
    data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR
);
CREATE TABLE ducklake_file_variant_stats (
    data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, shredded_type VARCHAR,
    column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR,
    contains_nan BIGINT, extra_stats VARCHAR
);
CREATE TABLE ducklake_files_scheduled_for_deletion (
    data_file_id BIGINT, path VARCHAR, path_is_relative BIGINT, schedule_start VARCHAR
);
CREATE TABLE ducklake_inlined_data_tables (table_id BIGINT, table_name VARCHAR, schema_version BIGINT);
CREATE TABLE ducklake_macro (
    schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT
);
CREATE TABLE ducklake_macro_impl (
    macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, sql VARCHAR, type VARCHAR
);
CREATE TABLE ducklake_macro_parameters (
    macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, parameter_type VARCHAR,
    default_value VARCHAR, default_value_type VARCHAR
);
CREATE TABLE ducklake_partition_column (
    partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, transform VARCHAR
);
CREATE TABLE ducklake_partition_info (
    partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT
);
CREATE TABLE ducklake_snapshot_changes (
    snapshot_id BIGINT, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, commit_extra_info
    VARCHAR
);
CREATE TABLE ducklake_sort_expression (
    sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect VARCHAR,
    sort_direction VARCHAR, null_order VARCHAR
);
CREATE TABLE ducklake_sort_info (sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_table_column_stats (
    table_id BIGINT, column_id BIGINT, contains_null BIGINT, contains_nan BIGINT, min_value VARCHAR, max_value
    VARCHAR, extra_stats VARCHAR
);
CREATE TABLE ducklake_table_stats (
    table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT
);
CREATE TABLE ducklake_tag (
    object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR
);
CREATE TABLE ducklake_view (
    view_id BIGINT, view_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, view_name
    VARCHAR, dialect VARCHAR, sql VARCHAR, column_aliases VARCHAR
);
-- The empty store is a version too.
INSERT INTO version (id, committed_at) VALUES (0, 0);
