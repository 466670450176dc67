//! How much a query would read.

use super::schema::messages;

messages! {
    AnalyzeQueryRequest { 2 start: int64, 3 end: int64, 4 query: text }

    AnalyzeQueryResponse { 1 query_scopes: many QueryScope, 2 query_impact: one QueryImpact }

    QueryScope {
        1 component_type: text,
        2 component_count: uint64,
        3 block_count: uint64,
        4 series_count: uint64,
        5 profile_count: uint64,
        6 sample_count: uint64,
        7 index_bytes: uint64,
        8 profile_bytes: uint64,
        9 symbol_bytes: uint64,
    }

    QueryImpact { 2 total_bytes_in_time_range: uint64, 3 total_queried_series: uint64, 4 deduplication_needed: flag }
}
