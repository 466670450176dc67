//! What was sent and not taken, by the minute that it tells of, or in which it came: answers about that time say so (R4).
//!
//! Senders have been told, and the metrics count it. This is for whoever looks at the data later; it is kept in memory, so
//! a restart forgets it. A whole request that is refused is not counted: its sender still has it, and may send it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hotspan_model::TenantId;

const MINUTE: i64 = 60 * 1_000_000_000;
/// Data comes at most so much later than the time it tells of, as a rule.
const UNDER_WAY: i64 = 5 * MINUTE;
/// Minutes that are remembered, of all tenants together (R5); the oldest are forgotten first.
const MOST_MINUTES: usize = 20_000;

/// Items of requests that were taken without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rejected {
    /// Spans.
    pub spans: u64,
    /// Samples, those of rejected profiles included.
    pub samples: u64,
}

/// What was rejected lately.
#[derive(Debug, Default)]
pub struct RejectedItems {
    by_minute: Mutex<BTreeMap<(i64, TenantId), Rejected>>,
}

impl RejectedItems {
    /// Remembers what was rejected at a time.
    pub fn note(&self, tenant: &TenantId, time: i64, rejected: Rejected) {
        if rejected == Rejected::default() {
            return;
        }
        let mut by_minute = self.by_minute.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = by_minute.entry((time.div_euclid(MINUTE), tenant.clone())).or_default();
        sum.spans = sum.spans.saturating_add(rejected.spans);
        sum.samples = sum.samples.saturating_add(rejected.samples);
        if by_minute.len() > MOST_MINUTES {
            by_minute.pop_first();
        }
    }

    /// What was rejected of a tenant's from `from` until `until`, or while data of that time came in.
    pub fn between(&self, tenant: &TenantId, from: i64, until: i64) -> Rejected {
        // A minute before as well: where a question's time is that of what was found, the first of it may be what is missing.
        let (first, last) = (from.div_euclid(MINUTE) - 1, until.saturating_add(UNDER_WAY).div_euclid(MINUTE));
        let by_minute = self.by_minute.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Rejected::default();
        for ((minute, owner), rejected) in by_minute.iter() {
            if (first..=last).contains(minute) && owner == tenant {
                sum.spans = sum.spans.saturating_add(rejected.spans);
                sum.samples = sum.samples.saturating_add(rejected.samples);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: two tenants have items rejected at different times, one of them for longer than is remembered.
    /// Guarantee: each time and tenant is told by itself, and memory stays bounded by forgetting the oldest.
    #[test]
    fn rejections_are_told_by_time_and_tenant() {
        let items = RejectedItems::default();
        let [one, other] = ["one", "other"].map(|name| name.parse::<TenantId>().unwrap());
        items.note(&one, 10 * MINUTE, Rejected { spans: 1, samples: 20 });
        items.note(&one, 10 * MINUTE + 5, Rejected { spans: 2, samples: 0 });
        items.note(&other, 10 * MINUTE, Rejected { spans: 0, samples: 7 });
        assert_eq!(items.between(&one, 6 * MINUTE, 8 * MINUTE), Rejected { spans: 3, samples: 20 });
        assert_eq!(items.between(&other, i64::MIN, i64::MAX), Rejected { spans: 0, samples: 7 });
        assert_eq!(items.between(&one, 11 * MINUTE, 12 * MINUTE), Rejected { spans: 3, samples: 20 });
        assert_eq!(items.between(&one, 12 * MINUTE, 13 * MINUTE), Rejected::default());
        for minute in 0..MOST_MINUTES as i64 {
            items.note(&one, (100 + minute) * MINUTE, Rejected { spans: 1, samples: 0 });
        }
        assert_eq!(items.between(&one, i64::MIN, i64::MAX).spans, MOST_MINUTES as u64);
    }
}
