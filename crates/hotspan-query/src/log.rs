//! The query log: what was asked lately, what is running, and how it ended.
//!
//! Bounded, in memory, and by tenant (R5, R6): it is for the person who wonders what the server is doing, not an audit.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hotspan_model::TenantId;

/// Queries that are remembered.
const MAX_RECORDS: usize = 1000;
/// Of a longer query, this much is kept.
const MAX_TEXT: usize = 4096;

/// How a query ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Not yet.
    Running,
    /// With an answer.
    Done,
    /// With an error.
    Failed(String),
    /// Nobody waited for its answer any more.
    Cancelled,
}

impl Outcome {
    /// One word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The error, if it failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

/// One query.
#[derive(Debug, Clone)]
pub struct QueryRecord {
    /// Counts up.
    pub id: u64,
    /// Who asked.
    pub tenant: TenantId,
    /// The language or endpoint.
    pub kind: String,
    /// What was asked.
    pub text: String,
    /// When, in nanoseconds since 1970.
    pub started_at: i64,
    /// How it ended.
    pub outcome: Outcome,
    began: Instant,
    took: Option<Duration>,
}

impl QueryRecord {
    /// How long it took, or has been running.
    pub fn duration_nanos(&self) -> i64 {
        i64::try_from(self.took.unwrap_or_else(|| self.began.elapsed()).as_nanos()).unwrap_or(i64::MAX)
    }
}

/// The newest queries of all tenants.
#[derive(Debug, Default)]
pub struct QueryLog {
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    records: VecDeque<QueryRecord>,
    next_id: u64,
}

impl QueryLog {
    /// Notes that a query begins. The ticket notes its end; dropped before, the query counts as cancelled.
    pub fn begin(self: &Arc<Self>, tenant: &TenantId, kind: &str, text: &str) -> QueryTicket {
        let began = Instant::now();
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut state = self.state();
        state.next_id += 1;
        let id = state.next_id;
        if state.records.len() == MAX_RECORDS {
            state.records.pop_front();
        }
        state.records.push_back(QueryRecord {
            id,
            tenant: tenant.clone(),
            kind: kind.to_owned(),
            text: text.chars().take(MAX_TEXT).collect(),
            started_at: i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX),
            outcome: Outcome::Running,
            began,
            took: None,
        });
        QueryTicket { log: Arc::clone(self), id, outcome: Outcome::Cancelled }
    }

    /// The queries of a tenant, the oldest first.
    pub fn of(&self, tenant: &TenantId) -> Vec<QueryRecord> {
        self.state().records.iter().filter(|record| record.tenant == *tenant).cloned().collect()
    }

    fn end(&self, id: u64, outcome: Outcome) {
        let mut state = self.state();
        // It may have been pushed out by newer ones.
        if let Some(record) = state.records.iter_mut().rev().find(|record| record.id == id) {
            record.took = Some(record.began.elapsed());
            record.outcome = outcome;
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query under way.
#[derive(Debug)]
pub struct QueryTicket {
    log: Arc<QueryLog>,
    id: u64,
    outcome: Outcome,
}

impl QueryTicket {
    /// It got its answer.
    pub fn done(mut self) {
        self.outcome = Outcome::Done;
    }

    /// It got an error.
    pub fn failed(mut self, error: &impl Display) {
        self.outcome = Outcome::Failed(error.to_string());
    }
}

impl Drop for QueryTicket {
    fn drop(&mut self) {
        self.log.end(self.id, std::mem::replace(&mut self.outcome, Outcome::Cancelled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: queries of two tenants that end in each way. Guarantee: each tenant sees its own, with their ends.
    #[test]
    fn each_end_is_noted() {
        let log = Arc::new(QueryLog::default());
        let (mine, other) = (TenantId::anonymous(), "other".parse::<TenantId>().unwrap());
        log.begin(&mine, "sql", "SELECT 1").done();
        log.begin(&other, "sql", "secret").done();
        log.begin(&mine, "sql", "SELEC").failed(&"no such keyword");
        drop(log.begin(&mine, "sql", "SELECT 2"));
        let running = log.begin(&mine, "sql", "SELECT 3");
        let ends: Vec<&str> = log.of(&mine).iter().map(|record| record.outcome.name()).collect();
        assert_eq!(ends, ["done", "failed", "cancelled", "running"]);
        running.done();
        assert_eq!(log.of(&mine)[1].outcome.error(), Some("no such keyword"));
        assert_eq!(log.of(&other).len(), 1);
    }

    /// Scenario: far more queries than are kept, one of them very long. Guarantee: the memory is bounded.
    #[test]
    fn bounded() {
        let log = Arc::new(QueryLog::default());
        let tenant = TenantId::anonymous();
        for number in 0..3 * MAX_RECORDS {
            log.begin(&tenant, "sql", &number.to_string()).done();
        }
        log.begin(&tenant, "sql", &"ä".repeat(1 << 20)).done();
        let records = log.of(&tenant);
        assert_eq!(records.len(), MAX_RECORDS);
        assert_eq!(records[MAX_RECORDS - 1].text.chars().count(), MAX_TEXT);
        assert_eq!(records[MAX_RECORDS - 2].text, (3 * MAX_RECORDS - 1).to_string());
    }
}
