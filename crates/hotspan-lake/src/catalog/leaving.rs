//! Objects that left the catalog and may still be read, by queries that began before.
//!
//! A level 0 object is read by this process alone, so that it may go as soon as the last query that saw it is over. Parquet
//! files may be read by anybody: for those, only time can tell.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use hashbrown::HashSet;

use super::Snapshot;
use crate::segment::Segment;

/// Level 0 segments that are about to leave the catalog, or have left it, each with its object.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    segments: Mutex<Vec<(String, Weak<Segment>)>>,
}

impl Leaving {
    /// Notes who is about to leave. This must come before the commit: whoever sees there that an object was removed may then
    /// ask whether it is read.
    pub(super) fn note(&self, snapshot: &Snapshot, removed: &[i64]) {
        if removed.is_empty() {
            return;
        }
        let removed: HashSet<i64> = removed.iter().copied().collect();
        let young = snapshot.all_segments().filter(|segment| segment.level == 0 && removed.contains(&segment.id));
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.extend(young.map(|segment| (segment.path.clone(), Arc::downgrade(segment))));
    }

    /// The objects among them that somebody holds a segment of.
    pub(super) fn objects_in_use(&self) -> HashSet<String> {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.retain(|(_, segment)| segment.strong_count() > 0);
        segments.iter().map(|(path, _)| path.clone()).collect()
    }
}
