//! From the model to rows: what decoding a request fills, and what a flush turns into Arrow.

mod columns;
mod known_ids;
mod profile_columns;
mod profiles;
mod spans;

pub(crate) use columns::{MapColumn, TextColumn};
pub use known_ids::{KnownIds, Standing};
pub use profiles::{KnownSymbols, ProfileRows};
pub(crate) use profiles::{NewId, NewSymbols, retry_key};
pub use spans::SpanRows;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use crate::table::Table;

/// The rows of one request, or of several that were joined: everything one segment is made of.
#[derive(Debug, Default)]
pub struct Rows {
    /// Rows of the table `spans`.
    pub spans: SpanRows,
    /// Rows of the tables `samples`, `profiles`, `series`, `nodes` and `frames`.
    pub profiles: ProfileRows,
}

impl Rows {
    /// The rows of several requests in one.
    pub fn join(parts: Vec<Self>) -> Self {
        let spans: usize = parts.iter().map(|part| part.spans.len()).sum();
        let samples: usize = parts.iter().map(|part| part.profiles.sample_count()).sum();
        let mut parts = parts.into_iter();
        let mut joined = parts.next().unwrap_or_default();
        // Room for all at once: columns that grow part by part would be copied again and again.
        joined.spans.reserve(spans - joined.spans.len());
        joined.profiles.reserve(samples - joined.profiles.sample_count());
        for part in parts {
            joined.spans.append(&part.spans);
            joined.profiles.append(&part.profiles);
        }
        joined
    }

    /// About how much memory the rows take.
    pub fn size(&self) -> usize {
        self.spans.size() + self.profiles.size()
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.profiles.is_empty()
    }

    /// One Arrow batch for each table that has rows.
    pub fn finish(self) -> Result<Vec<(Table, RecordBatch)>, ArrowError> {
        let mut batches = vec![(Table::Spans, self.spans.finish()?)];
        batches.extend(self.profiles.finish()?);
        batches.retain(|(_, batch)| batch.num_rows() > 0);
        Ok(batches)
    }
}
