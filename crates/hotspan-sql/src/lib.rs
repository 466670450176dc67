//! SQL over the lake, read-only.
//!
//! ```text
//! text -> DataFusion plan -> tables of one pinned snapshot (LakeTable) -> Arrow batches -> JSON, CSV or Arrow
//! ```
//!
//! Every table is complete: what compaction derives (`traces`, rollups) is derived on the fly for segments that it has
//! not reached yet, and symbols that stand in several files count once. So compaction never changes an answer (R2), and
//! neither does the number of files (R3). A query has limits of memory and time, and ends when nobody waits for it.
//!
//! DataFusion lives behind this crate alone, since it is by far the largest dependency.

mod arithmetic;
mod error;
mod flame_merge;
mod growth;
mod left_out;
mod limits;
mod made;
pub mod output;
mod pieces;
mod pushdown;
mod read_only;
mod running;
mod session;
mod sums;
mod symbols;
mod system;
mod table;
mod table_functions;
mod views;

pub use error::SqlError;
pub use limits::SqlOptions;
pub use session::{SqlAnswer, SqlEngine};
