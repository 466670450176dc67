//! Segments: immutable pieces of a table.
//!
//! A flush writes one object with all its tables as Arrow (level 0). Compaction turns them into sorted
//! Parquet, one file a table and partition (level 1 and up), with an index of the ids inside.

mod chunk;
pub(crate) mod coded_columns;
mod column_cache;
mod column_join;
mod column_writer;
pub(crate) mod dense_columns;
mod footers;
pub mod id_index;
mod id_set;
pub(crate) mod l0;
mod lookup;
mod lz4_frame;
mod page_locations;
pub(crate) mod parquet_file;
mod pruning;
mod read_options;
mod reader;
mod row_group;
mod row_group_writer;
mod trace_rows;

use std::ops::{Deref, Range};

use arrow::array::RecordBatch;
use hotspan_model::TenantId;

pub use chunk::Chunk;
pub use id_set::{IdPart, IdSet};
pub use lookup::IdRows;
pub use read_options::{ReadOptions, RowRanges};
pub use reader::{COLUMN_CACHE_BYTES, SegmentReader};

use crate::table::{DAY, HOUR, Table, WINDOW_15S};

/// A piece of a table as it was written: where it lies, and what is in it.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The table it is a piece of.
    pub table: Table,
    /// How often its rows have been compacted.
    pub level: u8,
    /// Start of the partition that all its rows lie in; level 0 is not partitioned.
    pub partition: Option<i64>,
    /// The object it is in.
    pub path: String,
    /// Where in the object.
    pub range: Range<u64>,
    /// Hash of those bytes.
    pub checksum: u64,
    /// How many rows it has.
    pub rows: u64,
    /// The earliest time in it.
    pub min_time: i64,
    /// The latest time in it.
    pub max_time: i64,
    /// The object that holds its id index, and its size.
    pub index: Option<(String, u64)>,
    /// Its rows, while it is young: what was just written need not be read back.
    pub resident: Option<RecordBatch>,
    /// Memory that those take.
    pub resident_bytes: usize,
}

/// A piece of a table that is in the catalog.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Its row in the catalog.
    pub id: i64,
    /// Who owns it.
    pub tenant: TenantId,
    /// The catalog version that brought it.
    pub version: i64,
    /// When that was, in nanoseconds since 1970.
    pub created_at: i64,
    /// The latest version that brought rows of it: compaction changes `version`, not this. Who has read a table
    /// up to a version need not read a segment whose rows are all older.
    pub data_version: i64,
    /// What it is a commit of.
    pub piece: Piece,
}

impl Deref for Segment {
    type Target = Piece;

    fn deref(&self) -> &Piece {
        &self.piece
    }
}

impl Piece {
    /// Size of the rows in bytes, as stored.
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether it may hold rows of the time from `from` up to, not including, `until`.
    pub fn overlaps(&self, from: i64, until: i64) -> bool {
        let grain = time_grain(self.table);
        self.min_time < until && self.max_time >= from.div_euclid(grain).saturating_mul(grain)
    }
}

/// Rows of derived tables carry the start of a window; this is how long that window is.
pub(crate) fn time_grain(table: Table) -> i64 {
    match table {
        Table::Nodes | Table::Frames => DAY,
        Table::Series | Table::Rollup1h => HOUR,
        Table::Rollup15s => WINDOW_15S,
        Table::Spans | Table::Traces | Table::Samples | Table::Profiles => 1,
    }
}
