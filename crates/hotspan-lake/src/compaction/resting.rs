//! Segments that a job failed on rest for a while, so that one damaged file does not keep all others from going up.

use std::time::Duration;

use hashbrown::HashMap;

use crate::segment::Segment;

/// How long a segment rests that is not what was written: it will hardly mend itself.
pub(super) const AFTER_DAMAGE: Duration = Duration::from_secs(3600);
/// How long all that a job read rests if it failed for another reason.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Which segments rest, and until when.
#[derive(Debug, Default)]
pub(super) struct Resting(HashMap<i64, i64>);

impl Resting {
    /// Puts a segment to rest.
    pub(super) fn put(&mut self, segment: &Segment, now: i64, rest: Duration) {
        self.0.insert(segment.id, now.saturating_add(i64::try_from(rest.as_nanos()).unwrap_or(i64::MAX)));
    }

    /// Forgets segments whose rest is over at `now`.
    pub(super) fn wake(&mut self, now: i64) {
        self.0.retain(|_, until| *until > now);
    }

    /// Whether a segment rests.
    pub(super) fn has(&self, segment: &Segment) -> bool {
        self.0.contains_key(&segment.id)
    }

    /// How many rest.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
