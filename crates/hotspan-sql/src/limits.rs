//! How much a statement may take.

use std::time::Duration;

/// Limits of statements.
#[derive(Debug, Clone)]
pub struct SqlOptions {
    /// Memory for sorting, grouping and joining, of all statements that run.
    pub memory_bytes: usize,
    /// How long one may run, reading its answer included.
    pub time_limit: Duration,
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, time_limit: Duration::from_secs(60) }
    }
}
