//! Tables whose rows lie in several files and only count together: their pieces are joined by grouping.
//!
//! Sums of values stay at the largest number, as in the rollups that compaction writes: so it makes no difference to an answer
//! how far that has come (R2).

use hotspan_lake::Table;

/// The name of the raw pieces of a joined table.
pub(crate) const PIECES_SCHEMA: &str = "pieces";

/// The statement that makes one row of all pieces of a row; none where every stored row is whole.
pub(crate) fn joining(table: Table) -> Option<&'static str> {
    match table {
        // The root is the one that started first, as in a search.
        Table::Traces => Some(
            "SELECT trace_id, min(start_time) AS start_time, max(end_time) AS end_time, \
             first_value(root_service ORDER BY root_start_time NULLS LAST) AS root_service, \
             first_value(root_name ORDER BY root_start_time NULLS LAST) AS root_name, \
             min(root_start_time) AS root_start_time, \
             first_value(root_duration ORDER BY root_start_time NULLS LAST) AS root_duration, \
             sum(spans) AS spans, sum(errors) AS errors, \
             array_sort(array_distinct(flatten(array_agg(services)))) AS services \
             FROM pieces.traces GROUP BY trace_id",
        ),
        Table::Rollup15s => Some(
            "SELECT series, time, path, saturating_sum(value) AS value, sum(count) AS count \
             FROM pieces.rollup_15s GROUP BY series, time, path",
        ),
        Table::Rollup1h => Some(
            "SELECT series, time, path, saturating_sum(value) AS value, sum(count) AS count \
             FROM pieces.rollup_1h GROUP BY series, time, path",
        ),
        _ => None,
    }
}
