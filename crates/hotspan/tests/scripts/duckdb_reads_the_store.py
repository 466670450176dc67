"""Reads a Hotspan store with DuckDB alone: by DuckLake over the catalog, and by plain Parquet. Prints JSON."""

import glob
import json
import sys

import duckdb
from duckdb_extensions import import_extension

store = sys.argv[1]
for extension in ("ducklake", "sqlite_scanner"):
    import_extension(extension)
db = duckdb.connect()
db.sql("LOAD ducklake; LOAD sqlite_scanner")
db.sql(f"ATTACH 'ducklake:sqlite:{store}/catalog.sqlite' AS lake (READ_ONLY)")


def rows(statement):
    return db.sql(statement).fetchall()


def files(table):
    return f"{store}/data/anonymous/{table}/*/*.parquet"


def parquet(table):
    return f"read_parquet('{files(table)}', union_by_name = true)"


tables = [name for (name,) in rows("SELECT table_name FROM information_schema.tables WHERE table_catalog = 'lake' ORDER BY 1")]
# A trace has a row in each file that has spans of it, until those are merged.
counted = {"traces": "DISTINCT trace_id"}
answer = {
    "tables": tables,
    "counts": {table: rows(f"SELECT count({counted.get(table, '*')}) FROM lake.{table}")[0][0] for table in tables},
    # Every column of every table, by either way.
    "read": {table: len(rows(f"SELECT * FROM lake.{table}")) for table in tables},
    "read_plain": [table for table in tables if glob.glob(files(table)) and rows(f"SELECT * FROM {parquet(table)}")],
    "spans": rows("SELECT hex(trace_id), name, duration, len(events) FROM lake.spans WHERE service = 'shop' ORDER BY name"),
    "services": rows("SELECT services FROM lake.traces ORDER BY trace_id")[0][0],
    "labels": rows("SELECT labels['service_name'] FROM lake.series")[0][0],
    "functions": rows(
        "SELECT f.function, sum(s.value)::BIGINT FROM lake.samples s JOIN lake.nodes n ON s.path = n.id"
        " JOIN lake.frames f ON n.frame = f.id GROUP BY 1 ORDER BY 2 DESC"
    ),
    "attributes": rows(
        f"SELECT DISTINCT \"attr.customer\" FROM {parquet('spans')} WHERE service = 'shop'"
    ),
}
try:
    db.sql("DELETE FROM lake.spans")
    answer["delete"] = "done"
except duckdb.Error:
    answer["delete"] = "refused"
print(json.dumps(answer))
